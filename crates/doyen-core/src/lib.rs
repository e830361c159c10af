//! Coordinator elections as pure state machines.
//!
//! An algorithm is a [`Protocol`](protocol::Protocol): it is told of events and answers with effects. It has no clock,
//! no randomness, no I/O and no logging, so the simulator, the model checker and a real node run the same code. A
//! *host* is what runs it. [`Node`](node::Node) puts beneath an algorithm what it assumes of the world: reliable
//! [links](link), a [failure detector](detector) and a filter for messages from former lives.
//! [`Session`](session::Session) puts beneath that which process of a member one talks to, and which of them counts. A
//! host runs either just as it runs a bare algorithm.
//!
//! # What a host must do
//!
//! The algorithms are right only under a host that keeps to this:
//!
//! 1. **Raise the incarnation before every start.** It is greater than at any start before, and stored before
//!    `start` is called. If it was lost with the disk, [`Session`](session::Session) finds out which one to take; a host
//!    without sessions takes one that no start can have had. `start` gets what the disk holds, `None` if it holds
//!    nothing, a random number that no other start has drawn, and the time of day.
//! 2. **One event at a time.** `handle` is given the next event when every effect of the last one has been carried out.
//! 3. **Effects in order.** Nothing overtakes anything within an event.
//! 4. **`Persist` is a barrier.** Nothing behind it is done before what it holds would survive a crash: a message must
//!    not leave that a restarted member would not stand by. If storing fails, the process stops. Any algorithm bears a
//!    crash; none bears a member that goes on and has forgotten.
//! 5. **`Announce` is a barrier.** Nothing behind it is done before all who act on the view have been told: a member
//!    that has ceased to lead must not let others know before those on its own machine do.
//! 6. **A timer never fires early.** It fires once for each arming, and may be late, for a process can be paused at any
//!    moment. Arming an armed tag replaces it; a timer that was cancelled or replaced does not fire, even if it was
//!    due; timers do not outlive their process.
//! 7. **Draw the delay** from `min..=max`, with equal chances, and **read the clock at every `SetTimer`**, not once in
//!    a turn of the loop. The clock is monotonic and counts while the machine sleeps; it is never the wall clock.
//! 8. **On waking**, first the lease timers that are due, then the messages that wait, up to a fixed number, then the
//!    other timers that are due. A member that was starved would otherwise act on a silence that lies unread in its
//!    socket, or on a lease that has run out. Messages that wait together are handled by their place in
//!    [`kinds`](protocol::Protocol::kinds), then in the order of sending, where that is known.
//! 9. **Messages** may be lost, doubled, delayed and reordered. They are never altered, reach only the member they are
//!    sent to, and `from` is the member that sent them. What comes from anybody else is dropped before it gets here.
//! 10. **The same configuration everywhere**: members, attributes, ring, mode, and which parts of a node are switched
//!     on. Timings may differ where an algorithm says so.
//! 11. **`PeerDown` and `PeerUp`** come from a failure detector: the node's or the host's, not both. They may be wrong;
//!     a peer that has crashed for good must be reported at last.
//! 12. **`Inform`** is for the records; there is nothing to do. But a process whose disk turns out to be an old copy,
//!     or was lost where nobody can make it good, should stop: its member has stopped already.
//! 13. **Leases.** While [`lease`](protocol::Protocol::lease) names a timer, this member leads until that timer's
//!     deadline, by the clock at the moment of asking: it may have been paused and not have handled the timer yet. When
//!     a view says *retiring*, nothing new begins under the lease; the host stops what runs, waits for everybody who was
//!     told "until then", and feeds `Retired`.
//!
//! [`Host`](host::Host) is what a host offers a member, and [`apply`](host::apply) carries out what the member wants done:
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

pub mod algorithm;
pub mod change;
pub mod config;
pub mod detector;
pub mod explore;
pub mod host;
pub mod layers;
pub mod ledger;
pub mod link;
pub mod members;
pub mod node;
pub mod protocol;
pub mod registry;
pub mod session;
pub mod time;
pub mod trace;
