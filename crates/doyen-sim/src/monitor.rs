//! What a world reports to the checks of a run.
//!
//! An [`Observer`](crate::trace::Observer) gets what a reader of a trace sees. A [`Monitor`] gets what safety rules are
//! about: what is stored, what binds a member, when a lease ends, and which faults happen. Members are named by their
//! position; a second process of a member has the next free one. Nothing is computed for a monitor that is absent.

use doyen_core::ledger::Stored;
use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::{AdminCommand, Bonds, Pledge, View};
use doyen_core::time::Span;

use crate::fault::Disk;
use crate::time::Time;

/// A time that a member counts by its own clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted {
    /// When it began to count.
    pub since: Time,
    /// In nanoseconds of that clock.
    pub wait: u64,
}

/// A message that is sent.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The kind of message.
    pub kind: &'static str,
    /// Whether the election sends it, not a layer below.
    pub of_election: bool,
    /// Its length on the wire.
    pub bytes: usize,
}

/// Judges a run while it happens.
pub trait Monitor {
    /// The view of the member at `position` has changed.
    fn view_changed(&mut self, at: Time, position: u32, view: View);
    /// The member at `position` has stored its term, and its vote in it.
    fn stored(&mut self, at: Time, position: u32, stored: Stored);
    /// The member at `position` has stored whether it is drained.
    fn drain_stored(&mut self, position: u32, drained: bool);
    /// One member has sent another a message that binds the sender.
    fn pledged(&mut self, at: Time, from: u32, to: u32, pledge: Pledge);
    /// The member at `position` handles a message that asks it for a vote lease, or releases it from that of a term.
    fn received(&mut self, position: u32, asked: Option<Span>, released: Option<Term>);
    /// The lease of the member at `position` has another end: the time, and what its holder's clock shows then.
    fn lease_changed(&mut self, at: Time, position: u32, lease: Option<(Time, Counted)>);
    /// What binds the member at `position` may have changed.
    fn bonds_changed(&mut self, position: u32, bonds: Bonds<Counted>);
    /// Everything that followed from one event has been reported.
    fn event_ended(&mut self, at: Time);
    /// The clock of the member at `position` has changed: `moved` maps an earlier due time to the present one.
    fn clock_changed(&mut self, at: Time, position: u32, moved: &dyn Fn(Time) -> Time);
    /// All work that ran under the lease that the member at `position` had in `term` is over.
    fn retired(&mut self, position: u32, term: Term);
    /// The member at `position` has received a command.
    fn commanded(&mut self, position: u32, command: AdminCommand);
    /// A message has been sent.
    fn sent(&mut self, at: Time, sending: Sending);
    /// The member at `position` has called this many elections at once.
    fn elections_called(&mut self, at: Time, position: u32, count: u32);
    /// The member at `position` has crashed.
    fn crashed(&mut self, at: Time, position: u32);
    /// The member at `position` is up again, with `stored` on its disk.
    fn restarted(&mut self, at: Time, position: u32, disk: Disk, stored: Stored);
    /// A second process of the member at `position` starts, without a disk or as a clone of the first.
    fn second_process_started(&mut self, at: Time, position: u32, is_clone: bool);
}
