//! What goes wrong everywhere: members crash and come back, do nothing for a while, links are cut one way and the
//! network falls apart. Times are in steps.

use doyen_core::members::{Members, NodeId};

use super::{pick, time};
use crate::random::Random;
use crate::scenario::{After, FaultEntry};

/// A storm while it is drawn.
pub(super) struct Storm<'m> {
    pub(super) members: &'m Members,
    pub(super) random: Random,
    pub(super) lasts: u64,
    /// How long something lasts, at most: one of these.
    pub(super) spells: [u64; 4],
    /// Comes up again whatever happens, so that somebody does.
    pub(super) survivor: NodeId,
    /// Until when a member is down.
    down: Vec<(NodeId, u64)>,
    /// Whose clock runs wrong.
    wrong_clocks: Vec<NodeId>,
    faults: Vec<(u64, FaultEntry)>,
}

impl<'m> Storm<'m> {
    /// One in which `dead` are dead from the beginning.
    pub(super) fn new(
        members: &'m Members,
        dead: &[NodeId],
        survivor: NodeId,
        lasts: u64,
        random: Random,
    ) -> Self {
        let down = dead.iter().map(|&id| (id, u64::MAX)).collect();
        let spells = [5, 50, 400, lasts];
        let (wrong_clocks, faults) = (Vec::new(), Vec::new());
        Self { members, random, lasts, spells, survivor, down, wrong_clocks, faults }
    }

    pub(super) fn fault(&mut self, at: u64, fault: FaultEntry) {
        self.faults.push((at, fault));
    }

    /// Between one and `most` times at which something goes wrong, in order.
    pub(super) fn times(&mut self, most: u64) -> Vec<u64> {
        let count = self.random.between(1, most);
        let mut times: Vec<u64> = (0..count).map(|_| self.random.between(1, self.lasts)).collect();
        times.sort_unstable();
        times
    }

    pub(super) fn crash(&mut self, victim: NodeId, at: u64) {
        self.fault(at, FaultEntry { crash: Some(victim.0), ..FaultEntry::default() });
        self.is_dead(victim);
    }

    /// `id` is down until it is restarted.
    pub(super) fn is_dead(&mut self, id: NodeId) {
        self.down.push((id, u64::MAX));
    }

    /// `id` comes up at `at`, with its disk unless `how` says otherwise.
    pub(super) fn restart(&mut self, id: NodeId, at: u64, how: FaultEntry) {
        self.restart_by(id, at, FaultEntry { restart: Some(id.0), ..how });
    }

    /// `id` comes up at `at` by this fault.
    pub(super) fn restart_by(&mut self, id: NodeId, at: u64, fault: FaultEntry) {
        self.fault(at, fault);
        self.down.retain(|&(down, _)| down != id);
        self.down.push((id, at));
    }

    /// A member dies between two of the messages that it sends at once, or as soon as it has heard of something.
    pub(super) fn crash_in_the_middle(&mut self, victim: NodeId, kind: &str) {
        let when = After {
            member: victim.0,
            has: if self.random.happens(0.7) { "sent" } else { "received" }.to_owned(),
            kind: kind.to_owned(),
            count: self.random.between(1, 4) as u32,
        };
        let crash = Some(victim.0);
        self.fault(0, FaultEntry { when: Some(when), crash, ..FaultEntry::default() });
    }

    pub(super) fn pause(&mut self, at: u64) {
        let pause = Some(self.anybody().0);
        let lasting = Some(time(self.some_time().min(self.lasts - at).max(1)));
        self.fault(at, FaultEntry { pause, lasting, ..FaultEntry::default() });
    }

    /// From `at` on the clock of `id` runs at `rate`.
    pub(super) fn upset_clock(&mut self, id: NodeId, at: u64, rate: f64, skew: Option<String>) {
        let (clock, rate) = (Some(id.0), Some(rate));
        self.fault(at, FaultEntry { clock, rate, skew, ..FaultEntry::default() });
        if !self.wrong_clocks.contains(&id) {
            self.wrong_clocks.push(id);
        }
    }

    pub(super) fn cut(&mut self, at: u64) {
        let (from, to) = (self.anybody(), self.anybody());
        if from == to {
            return;
        }
        let link = Some([from.0, to.0]);
        self.fault(at, FaultEntry { cut: link, ..FaultEntry::default() });
        if self.random.happens(0.5) {
            let mended = (at + self.some_time()).min(self.lasts);
            self.fault(mended, FaultEntry { mend: link, ..FaultEntry::default() });
        }
    }

    /// The network falls apart; `old` says on which side some old processes are.
    pub(super) fn partition(&mut self, at: u64, old: Vec<Vec<u32>>) {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for id in self.members.iter() {
            if self.random.happens(0.5) { one.push(id.0) } else { other.push(id.0) }
        }
        if one.is_empty() || other.is_empty() {
            return;
        }
        let partition = Some(vec![one, other]);
        self.fault(at, FaultEntry { partition, old, ..FaultEntry::default() });
        if self.random.happens(0.5) {
            let healed = (at + self.some_time()).min(self.lasts);
            self.fault(healed, FaultEntry { heal: true, ..FaultEntry::default() });
        }
    }

    /// What was broken is mended: then it is calm.
    pub(super) fn abate(&mut self) {
        for id in std::mem::take(&mut self.wrong_clocks) {
            let (clock, rate) = (Some(id.0), Some(1.0));
            self.fault(self.lasts, FaultEntry { clock, rate, ..FaultEntry::default() });
        }
        let breaks = |(_, fault): &(u64, FaultEntry)| {
            fault.cut.is_some() || fault.partition.is_some() || fault.weather.is_some()
        };
        if self.faults.iter().any(breaks) {
            self.fault(self.lasts, FaultEntry { heal: true, ..FaultEntry::default() });
        }
    }

    pub(super) fn into_faults(mut self) -> Vec<FaultEntry> {
        self.faults.sort_by_key(|&(at, _)| at);
        let timed = |(at, fault): (u64, FaultEntry)| match fault.when {
            Some(_) => fault,
            None => FaultEntry { at: Some(time(at)), ..fault },
        };
        self.faults.into_iter().map(timed).collect()
    }

    /// Short times are as likely as long ones.
    pub(super) fn some_time(&mut self) -> u64 {
        let longest = pick(&self.spells, &mut self.random);
        self.random.between(1, longest)
    }

    pub(super) fn anybody(&mut self) -> NodeId {
        self.members.at(self.random.between(0, self.members.len() as u64 - 1) as usize)
    }

    pub(super) fn is_up(&self, id: NodeId, at: u64) -> bool {
        self.down.iter().all(|&(down, until)| down != id || until <= at)
    }

    /// Whether something happens at a time that is not known.
    pub(super) fn has_untimed(&self) -> bool {
        self.faults.iter().any(|(_, fault)| fault.when.is_some())
    }

    fn up(&self, at: u64) -> impl Iterator<Item = NodeId> {
        self.members.iter().filter(move |&id| self.is_up(id, at))
    }

    pub(super) fn anybody_up(&mut self, at: u64) -> NodeId {
        let up: Vec<NodeId> = self.up(at).collect();
        if up.is_empty() { self.survivor } else { pick(&up, &mut self.random) }
    }

    pub(super) fn best_up(&self, at: u64) -> NodeId {
        self.up(at).max_by_key(|&id| self.members.key(id)).unwrap_or(self.survivor)
    }
}
