//! The premises that must hold before the end of a run can be judged.
//!
//! The algorithms guarantee something about runs in which faults end: the network is whole again, clocks run right, a
//! member is alive, and a live member has detected that a leader is needed. A run without that proves nothing. So every
//! scenario that a campaign draws [meets][holds] this premise, and a scenario that has been shrunk must still meet it.
//! Mutual exclusion guarantees nothing under faults that it does not tolerate ([`Case::tolerates_faults`]).
//!
//! The premise is about the fault schedule, not about one run of it: a fault that waits for a message may happen or
//! not.

use std::collections::{BTreeMap, BTreeSet};

use doyen_core::ledger;
use doyen_core::members::NodeId;
use doyen_core::protocol::AdminCommand;
use doyen_core::registry::Purpose;
use doyen_core::time::Span;

use crate::property::Property;
use doyen_sim::fault::{Action, Disk, Fault, Place};
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;

/// The state once every fault of a schedule has happened.
#[derive(Debug, Default)]
struct EndState {
    dead: BTreeSet<NodeId>,
    cuts: BTreeMap<(NodeId, NodeId), u32>,
    /// Whether there is a partition or a link override.
    apart: bool,
    wrong_clocks: BTreeSet<NodeId>,
    /// Whether clocks have been more wrong than a quorum tolerates.
    beyond_drift: bool,
    /// The members that have lost their disks.
    diskless: BTreeSet<NodeId>,
    /// Two members may have been without their disks at the same time: they wait for each other forever.
    lost_together: bool,
    /// The members whose configured names resolve elsewhere: two of them may never find each other, and neither may one
    /// of them and a replacement.
    unnamed: BTreeSet<NodeId>,
    replaced: BTreeSet<NodeId>,
    /// The members that are drained until a further command.
    drained: BTreeSet<NodeId>,
    /// The time of the last crash, and when each member last detected that a leader is needed.
    last_crash: Option<Time>,
    noticed: BTreeMap<NodeId, Time>,
    /// Whether something happens that is never healed, or at an unknown time.
    unmendable: bool,
}

/// Whether `case` meets the premise of `property`.
pub fn suits(property: Property, case: &Case) -> bool {
    if Property::LASTING.contains(&property) { lasts(case) } else { holds(case) }
}

/// The most members, because every set of them is examined.
const MAX_MEMBERS: usize = 16;

/// Whether a clock of this rate is no more wrong than the members of a quorum assume.
fn is_within_drift(case: &Case, rate_ppm: u32) -> bool {
    rate_ppm.abs_diff(1_000_000) <= case.config.quorum.pace.drift * 1_000
}

/// Whether the faults of `case` last, and leave a majority connected both ways, in which a member may lead.
pub fn lasts(case: &Case) -> bool {
    let members = case.members();
    let may_last = |fault: &Fault| match fault.what {
        Action::Clock { rate_ppm, jump, .. } => {
            jump == Span::ZERO && is_within_drift(case, rate_ppm)
        }
        Action::Cut { .. } | Action::Crash { .. } => true,
        Action::Command { ref command, .. } => matches!(command, AdminCommand::Attribute(_)),
        Action::Restart { .. }
        | Action::Replace { .. }
        | Action::CopyDisk(_)
        | Action::Pause { .. }
        | Action::Mend { .. }
        | Action::Partition { .. }
        | Action::LinkOverride(_)
        | Action::Heal
        | Action::Drop { .. }
        | Action::Campaign(_)
        | Action::Attributes { .. } => false,
    };
    let all_last = case.faults.iter().all(|fault| fault.time().is_some() && may_last(fault));
    if members.len() > MAX_MEMBERS || !all_last {
        return false;
    }
    let end = EndState::of(case);
    let settings = &case.config.quorum;
    let may_lead =
        |id: NodeId| !settings.witnesses.contains(id) && !settings.reluctant.contains(id);
    let ids: Vec<NodeId> = members.iter().filter(|id| !end.dead.contains(id)).collect();
    let whole = |set: u32| {
        let chosen = || ids.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1);
        let linked = |from: NodeId| chosen().all(|(_, &to)| !end.cuts.contains_key(&(from, to)));
        chosen().count() >= ledger::majority(members.len())
            && chosen().any(|(_, &id)| may_lead(id))
            && chosen().all(|(_, &id)| linked(id))
    };
    (0..1_u32 << ids.len()).any(whole)
}

/// Whether `case` meets the premise of the guarantees.
pub fn holds(case: &Case) -> bool {
    if case.algorithm.purpose() == Purpose::Excludes && !case.algorithm.has_leases() {
        return case.tolerates_faults();
    }
    EndState::of(case).is_calm(case)
}

impl EndState {
    fn of(case: &Case) -> Self {
        let mut end = Self::default();
        end.dead.extend(&case.dead);
        end.last_crash = case.dead.first().map(|_| Time::ZERO);
        end.noticed.extend(case.initiators.iter());
        let timed = case.faults.iter().filter_map(|fault| Some((fault.time()?, &fault.what)));
        let mut timed: Vec<(Time, &Action)> = timed.collect();
        timed.sort_by_key(|&(at, _)| at);
        for (at, action) in timed {
            end.happens(case, at, action);
        }
        // A fault that waits for a message may come before all others or after them, or never.
        for fault in case.faults.iter().filter(|fault| fault.time().is_none()) {
            match fault.what {
                Action::Crash { member, .. } => drop(end.dead.insert(member)),
                Action::Restart { .. } | Action::Pause { .. } => {}
                Action::Replace { .. }
                | Action::CopyDisk(_)
                | Action::Clock { .. }
                | Action::Cut { .. }
                | Action::Mend { .. }
                | Action::Partition { .. }
                | Action::LinkOverride(_)
                | Action::Heal
                | Action::Drop { .. }
                | Action::Campaign(_)
                | Action::Command { .. }
                | Action::Attributes { .. } => end.unmendable = true,
            }
        }
        end
    }

    fn happens(&mut self, case: &Case, at: Time, action: &Action) {
        match *action {
            Action::Crash { member, .. } => {
                self.dead.insert(member);
                self.last_crash = Some(at);
            }
            Action::Restart { member, disk, place, .. } => {
                self.moves(member, place);
                self.unmendable |= disk == Disk::New;
                if self.dead.remove(&member) {
                    self.restarts(member, disk);
                    // A member that starts looks for a leader.
                    self.noticed.insert(member, at);
                }
            }
            // A clone is detected if a member that knows the original is reachable, and stops: then nothing is
            // guaranteed.
            Action::Replace { disk: Disk::Kept, .. } => self.unmendable = true,
            Action::Replace { member, disk, place, .. } => {
                // With two members no rule can tell whose old process one has found.
                self.unmendable |= case.members().len() < 3;
                self.moves(member, place);
                self.dead.remove(&member);
                self.loses_disk(member, disk);
                self.replaced.insert(member);
                self.noticed.insert(member, at);
            }
            Action::Campaign(member) if !self.dead.contains(&member) => {
                self.noticed.insert(member, at);
            }
            Action::Clock { member, rate_ppm, jump } => {
                match rate_ppm == 1_000_000 {
                    true => self.wrong_clocks.remove(&member),
                    false => self.wrong_clocks.insert(member),
                };
                self.beyond_drift |= jump > Span::ZERO || !is_within_drift(case, rate_ppm);
            }
            Action::Cut { from, to } => *self.cuts.entry((from, to)).or_default() += 1,
            Action::Mend { from, to } => {
                let cuts = self.cuts.remove(&(from, to)).unwrap_or_default();
                if cuts > 1 {
                    self.cuts.insert((from, to), cuts - 1);
                }
            }
            Action::Partition { .. } | Action::LinkOverride(_) => self.apart = true,
            Action::Heal => {
                self.apart = false;
                self.cuts.clear();
            }
            Action::Command { member, command: AdminCommand::Drain { lasting: None, .. } } => {
                self.drained.insert(member);
            }
            Action::Command { member, command: AdminCommand::Undrain }
                if !self.dead.contains(&member) =>
            {
                self.drained.remove(&member);
            }
            Action::CopyDisk(_)
            | Action::Pause { .. }
            | Action::Drop { .. }
            | Action::Campaign(_)
            | Action::Command { .. }
            | Action::Attributes { .. } => {}
        }
    }

    fn moves(&mut self, member: NodeId, place: Place) {
        if place == Place::Unnamed {
            self.unnamed.insert(member);
        }
    }

    fn restarts(&mut self, member: NodeId, disk: Disk) {
        match disk {
            Disk::Kept => {}
            // An old copy is detected if all members with later data are reachable. The copy says whether the member is
            // drained.
            Disk::Restored => {
                let whole = self.dead.is_empty() && self.cuts.is_empty() && !self.apart;
                self.unmendable |= !whole;
            }
            Disk::Lost | Disk::LostUnlessAnother | Disk::New => self.loses_disk(member, disk),
        }
    }

    fn loses_disk(&mut self, member: NodeId, disk: Disk) {
        let alone = self.diskless.iter().all(|&other| other == member);
        self.lost_together |= !alone && disk != Disk::LostUnlessAnother;
        self.diskless.insert(member);
        self.drained.remove(&member);
    }

    /// Whether a majority is alive in which a member may lead; if a member needs answers from all, whether all are
    /// alive.
    fn suits_quorum(&self, case: &Case) -> bool {
        let settings = &case.config.quorum;
        let may_lead = |id: NodeId| {
            !settings.witnesses.contains(id)
                && !settings.reluctant.contains(id)
                && !self.drained.contains(&id)
        };
        let alive = || case.members().iter().filter(|id| !self.dead.contains(id));
        let answered = self.diskless.is_empty() || self.dead.is_empty() && !self.lost_together;
        alive().count() >= ledger::majority(case.members().len())
            && alive().any(may_lead)
            && answered
            && (self.unnamed.is_empty() || self.unnamed.union(&self.replaced).count() < 2)
            && !self.beyond_drift
    }

    fn is_calm(&self, case: &Case) -> bool {
        let mended = !self.apart
            && self.cuts.is_empty()
            && self.wrong_clocks.is_empty()
            && !self.unmendable
            && case.chaos.is_none();
        if case.algorithm.has_leases() {
            // Its members monitor their leader themselves.
            return mended && self.suits_quorum(case);
        }
        let is_alive = |id: &NodeId| !self.dead.contains(id);
        let alive = case.members().iter().filter(is_alive).count();
        match case.algorithm.elects() {
            true => mended && alive > 0 && self.is_noticed(case),
            // No election is called for a service; a stable sequencer needs a majority.
            false => mended && alive >= ledger::majority(case.members().len()),
        }
    }

    /// Whether a member that is alive in the end knows that a leader is needed, if one is: because there was none at the
    /// beginning, or because one may have died and no detector tells.
    fn is_noticed(&self, case: &Case) -> bool {
        let noticed = || self.noticed.iter().filter(|(id, _)| !self.dead.contains(id));
        let by_whom = case.leader.is_some() || noticed().next().is_some();
        let in_time = match (case.detector, self.last_crash) {
            (None, Some(crash)) => noticed().any(|(_, &at)| at >= crash + Span::from_nanos(1)),
            _ => true,
        };
        by_whom && in_time
    }
}
