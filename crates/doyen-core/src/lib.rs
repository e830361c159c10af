//! Coordinator elections and mutual exclusion as pure state machines.
//!
//! An algorithm is a [`Protocol`](protocol::Protocol): it receives events and answers with effects. It has no clock, no
//! randomness, no I/O and no logging, so the simulator, the model checker and a real node run the same code. A *host*
//! runs it. [`Node`](node::Node) is a layer that provides what an algorithm assumes of the world: reliable
//! [links](link), a [failure detector](detector) and a filter for messages from earlier incarnations.
//! [`Session`](session::Session) is the layer below that: it decides which process of a member counts. A host runs each
//! of these like a bare algorithm.
//!
//! # What a host must do
//!
//! The algorithms are correct only under a host that follows these rules:
//!
//! 1. **Raise the incarnation before every start.** It is greater than at any start before, and stored before `start`
//!    is called. If it was lost with the disk, [`Session`](session::Session) finds out which one to take; a host
//!    without sessions takes one that no start can have had. `start` gets what the disk holds (`None` if it holds
//!    nothing), a random number that no other start has drawn, and the time of day.
//! 2. **One event at a time.** `handle` gets the next event when every effect of the last one has been carried out.
//! 3. **Effects in order.** No effect of an event overtakes another.
//! 4. **`Persist` is a barrier.** No later effect is carried out before what it holds would survive a crash: a message
//!    must not leave if the member would contradict it after a restart. If storing fails, the process stops. Every
//!    algorithm tolerates a crash; none tolerates a member that continues after it has forgotten something.
//! 5. **`Announce` is a barrier.** No later effect is carried out before all who act on the view have been informed:
//!    when a member stops leading, the programs on its own machine must know before other members do.
//! 6. **A timer never fires early.** It fires once for each arming, and may be late, because a process can be paused at
//!    any moment. Arming an armed tag replaces it; a timer that was cancelled or replaced does not fire, even if it was
//!    due; timers do not outlive their process.
//! 7. **Draw the delay** uniformly from `min..=max`, and **read the clock at every `SetTimer`**, not once per iteration
//!    of the loop. The clock is monotonic and counts while the machine sleeps; it is never the wall clock.
//! 8. **After waking**, handle first the lease timers that are due, then the waiting messages, up to a fixed number,
//!    then the other timers that are due. Otherwise a starved member would suspect a peer whose messages wait unread in
//!    its socket, or act on a lease that has expired. Messages that wait together are handled in the order of
//!    [`kinds`](protocol::Protocol::kinds), then in the order of sending, where that is known.
//! 9. **Messages** may be lost, duplicated, delayed and reordered. They are never altered, reach only the member they
//!    are sent to, and `from` is the member that sent them. The host drops messages from all other senders.
//! 10. **The same configuration everywhere**: members, attributes, ring, mode, and which parts of a node are switched
//!     on. Timings may differ where an algorithm says so.
//! 11. **`PeerDown` and `PeerUp`** come from a failure detector: the node's or the host's, not both. They may be wrong;
//!     a peer that has crashed permanently must eventually be reported.
//! 12. **`Inform`** is for the records; the host need not act on it. But a process whose disk turns out to be an old
//!     copy, or was lost and cannot be recovered, should stop: its member has already stopped.
//! 13. **Leases.** While [`lease`](protocol::Protocol::lease) names a timer, this member leads until that timer's
//!     deadline, by the clock at the moment of asking: it may have been paused and not have handled the timer yet. When
//!     a view says *retiring*, nothing new begins under the lease; the host stops what runs, waits until every deadline
//!     that it gave out has passed, and feeds `Retired`.
//! 14. **A dead leader.** While a member leads, its host may keep the messages with which a copy of it would answer
//!     `Crashed`, each time as of the last event. Once the process is dead and nothing relies on its lease any more, what
//!     is left of the host may send them ([`Remains`](handover::Remains) says when). It applies no other effect of the copy.
//! 15. **The critical section.** A host feeds `Request` only to a member that is outside, and `Exit` only to one that is
//!     inside, once everything that ran inside has stopped. While [`hold`](protocol::Protocol::hold) names a timer, the
//!     member is inside until that timer's deadline, by the clock at the moment of asking.
//!
//! [`Host`](host::Host) is what a host offers a member, and [`apply`](host::apply) carries out the effects:
//!
//! ```
//! use doyen_core::host::{Host, apply};
//! use doyen_core::members::NodeId;
//! use doyen_core::protocol::{Boot, Effects, Event, Protocol};
//!
//! fn run<P: Protocol, H: Host<P>>(
//!     id: NodeId,
//!     config: &P::Config,
//!     boot: Boot<P::Durable>, // 1
//!     host: &mut H,
//!     mut next_event: impl FnMut(&mut H) -> Option<Event<P::Message, P::Timer>>, // 8, 9
//! ) -> Result<(), H::Error> {
//!     let mut out = Effects::new();
//!     let mut member = P::start(id, config, boot, &mut out);
//!     loop {
//!         apply(out.drain(), host)?; // 3, 4, 5
//!         out.clear();
//!         let Some(event) = next_event(host) else { return Ok(()) };
//!         member.handle(config, event, &mut out); // 2
//!     }
//! }
//! ```

#![forbid(unsafe_code)]

#[macro_use]
mod macros;

pub mod algorithm;
pub mod change;
pub mod clocks;
pub mod closed;
pub mod config;
pub mod detector;
pub mod exclusion;
pub mod explore;
pub mod group;
pub mod handover;
pub mod hearsay;
pub mod host;
pub mod layers;
pub mod ledger;
pub mod link;
pub mod lock;
pub mod map;
pub mod members;
pub mod node;
pub mod protocol;
pub mod registry;
pub mod session;
pub mod snapshot;
pub mod time;
pub mod trace;
pub mod wire;
