//! Generates the faults that every algorithm meets: members crash and come back, do nothing for a while, links are cut
//! one way and the network is partitioned. Times are in steps.

use doyen_core::members::{Members, NodeId};
use doyen_core::time::Span;

use super::{pick, time};
use doyen_sim::fault::{Action, Disk, Fault, PaceOverride, Place, Trigger};
use doyen_sim::random::Random;
use doyen_sim::time::Time;

/// A fault schedule that is being generated.
pub(super) struct FaultGenerator<'m> {
    pub(super) members: &'m Members,
    pub(super) random: Random,
    /// When the last fault happens.
    pub(super) end: u64,
    /// How long something lasts, at most: one of these.
    pub(super) spells: [u64; 4],
    /// The member that always restarts.
    pub(super) survivor: NodeId,
    /// Until when a member is down.
    down: Vec<(NodeId, u64)>,
    /// The members whose clocks are wrong.
    wrong_clocks: Vec<NodeId>,
    faults: Vec<Fault>,
}

/// How a member restarts; by default as it was when it crashed.
#[derive(Clone, Copy, Default)]
pub(super) struct Comeback {
    pub(super) disk: Disk,
    pub(super) pace: Option<PaceOverride>,
    pub(super) place: Place,
}

impl<'m> FaultGenerator<'m> {
    /// One for a run in which `dead` are dead from the beginning.
    pub(super) fn new(
        members: &'m Members,
        dead: &[NodeId],
        survivor: NodeId,
        end: u64,
        random: Random,
    ) -> Self {
        let down = dead.iter().map(|&id| (id, u64::MAX)).collect();
        let spells = [5, 50, 400, end];
        let (wrong_clocks, faults) = (Vec::new(), Vec::new());
        Self { members, random, end, spells, survivor, down, wrong_clocks, faults }
    }

    pub(super) fn add(&mut self, at: u64, what: Action) {
        self.faults.push(Fault::at(Time::ZERO + time(at), what));
    }

    /// Adds `what`, which `when` triggers.
    pub(super) fn add_when(&mut self, when: Trigger, what: Action) {
        self.faults.push(Fault { when, what });
    }

    /// Between one and `most` times of faults, in order.
    pub(super) fn times(&mut self, most: u64) -> Vec<u64> {
        let count = self.random.between(1, most);
        let mut times: Vec<u64> = (0..count).map(|_| self.random.between(1, self.end)).collect();
        times.sort_unstable();
        times
    }

    pub(super) fn crash(&mut self, victim: NodeId, at: u64) {
        self.add(at, Action::crash(victim));
        self.mark_down(victim);
    }

    /// From now on `id` is down until it is restarted.
    pub(super) fn mark_down(&mut self, id: NodeId) {
        self.down.push((id, u64::MAX));
    }

    pub(super) fn restart(&mut self, id: NodeId, at: u64, how: Comeback) {
        let Comeback { disk, pace, place } = how;
        self.restart_by(id, at, Action::Restart { member: id, disk, pace, place });
    }

    /// `id` comes up at `at` by this fault.
    pub(super) fn restart_by(&mut self, id: NodeId, at: u64, what: Action) {
        self.add(at, what);
        self.down.retain(|&(down, _)| down != id);
        self.down.push((id, at));
    }

    /// A member crashes between two of the messages that it sends at once, or as soon as it has received a message.
    pub(super) fn crash_in_the_middle(&mut self, victim: NodeId, kind: &str) {
        let sent = self.random.happens(0.7);
        let count = self.random.between(1, 4) as u32;
        let when = Trigger::Message { member: victim, sent, kind: kind.to_owned(), count };
        self.add_when(when, Action::crash(victim));
    }

    pub(super) fn pause(&mut self, at: u64) {
        let member = self.any_member();
        let lasting = time(self.some_time().min(self.end - at).max(1));
        self.add(at, Action::Pause { member, lasting });
    }

    /// From `at` on the clock of `id` runs at this rate.
    pub(super) fn upset_clock(&mut self, id: NodeId, at: u64, rate_ppm: u32, jump: Span) {
        self.add(at, Action::Clock { member: id, rate_ppm, jump });
        if !self.wrong_clocks.contains(&id) {
            self.wrong_clocks.push(id);
        }
    }

    pub(super) fn cut(&mut self, at: u64) {
        let (from, to) = (self.any_member(), self.any_member());
        if from == to {
            return;
        }
        self.add(at, Action::Cut { from, to });
        if self.random.happens(0.5) {
            let mended = (at + self.some_time()).min(self.end);
            self.add(mended, Action::Mend { from, to });
        }
    }

    /// The network is partitioned; `old` says on which side some old processes are.
    pub(super) fn partition(&mut self, at: u64, old: Vec<Vec<NodeId>>) {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for id in self.members.iter() {
            if self.random.happens(0.5) { one.push(id) } else { other.push(id) }
        }
        if one.is_empty() || other.is_empty() {
            return;
        }
        self.add(at, Action::Partition { groups: vec![one, other], old });
        if self.random.happens(0.5) {
            let healed = (at + self.some_time()).min(self.end);
            self.add(healed, Action::Heal);
        }
    }

    /// All faults are repaired: from then on the run is calm.
    pub(super) fn heal(&mut self) {
        for member in std::mem::take(&mut self.wrong_clocks) {
            self.add(self.end, Action::Clock { member, rate_ppm: 1_000_000, jump: Span::ZERO });
        }
        let breaks = |fault: &Fault| {
            let Fault { what, .. } = fault;
            matches!(
                what,
                Action::Cut { .. } | Action::Partition { .. } | Action::LinkOverride { .. }
            )
        };
        if self.faults.iter().any(breaks) {
            self.add(self.end, Action::Heal);
        }
    }

    /// The schedule; what waits for a message comes first.
    pub(super) fn into_faults(mut self) -> Vec<Fault> {
        self.faults.sort_by_key(|fault| fault.time().unwrap_or_default());
        self.faults
    }

    /// Short times are as likely as long ones.
    pub(super) fn some_time(&mut self) -> u64 {
        let longest = pick(&self.spells, &mut self.random);
        self.random.between(1, longest)
    }

    pub(super) fn any_member(&mut self) -> NodeId {
        self.members.at(self.random.between(0, self.members.len() as u64 - 1) as usize)
    }

    pub(super) fn is_up(&self, id: NodeId, at: u64) -> bool {
        self.down.iter().all(|&(down, until)| down != id || until <= at)
    }

    /// Whether something happens at a time that is not known.
    pub(super) fn has_untimed(&self) -> bool {
        self.faults.iter().any(|fault| fault.time().is_none())
    }

    fn up(&self, at: u64) -> impl Iterator<Item = NodeId> {
        self.members.iter().filter(move |&id| self.is_up(id, at))
    }

    pub(super) fn any_member_up(&mut self, at: u64) -> NodeId {
        let up: Vec<NodeId> = self.up(at).collect();
        if up.is_empty() { self.survivor } else { pick(&up, &mut self.random) }
    }

    pub(super) fn best_up(&self, at: u64) -> NodeId {
        self.up(at).max_by_key(|&id| self.members.key(id)).unwrap_or(self.survivor)
    }
}
