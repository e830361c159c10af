//! Makes a scenario that fails as small as it can be made, so that a person can follow it.
//!
//! Members go first, then faults, then everything else that is unusual (loss, delays that vary, attributes, a ring out
//! of order), then times become round and short; and all of it again, until nothing helps any more or the number of
//! runs is used up. What is left breaks the same property, after the same calm: see [`premise`]. One try
//! is one run, and tries are made in a fixed order, so the same scenario always shrinks to the same one.

use doyen_core::members::NodeId;
use doyen_core::protocol::AdminCommand;
use doyen_core::time::Span;

use super::{judge, premise};
use crate::oracle::Breach;
use crate::property::Property;
use doyen_sim::fault::{Action, Disk, Fault, Place, Trigger};
use doyen_sim::scenario::{Initiator, Initiators, MemberList, QuorumOptions, RingOrder, Scenario};
use doyen_sim::time::Time;

/// A scenario that was made smaller, and what it still breaks.
#[derive(Clone, PartialEq, Debug)]
pub struct Shrunk {
    /// The scenario.
    pub scenario: Scenario,
    /// What it breaks, when and why.
    pub breach: Breach,
    /// How many runs that took.
    pub runs: u32,
}

/// Makes `scenario`, which breaks `property`, smaller with at most `runs` runs, and no more once `go_on` says no. `None`
/// if it does not break it.
pub fn shrink(
    scenario: &Scenario,
    property: Property,
    runs: u32,
    go_on: &dyn Fn() -> bool,
) -> Option<Shrunk> {
    let mut shrinker = Shrinker { property, left: runs, go_on, best: None };
    let mut start = scenario.clone();
    start.chaos = None;
    if !shrinker.attempt(start) && !shrinker.attempt(scenario.clone()) {
        return None;
    }
    loop {
        let before = shrinker.best.clone();
        shrinker.drop_members();
        shrinker.drop_faults();
        shrinker.simplify();
        shrinker.round_times();
        if shrinker.best == before || shrinker.left == 0 {
            break;
        }
    }
    let (scenario, breach) = shrinker.best?;
    Some(Shrunk { scenario, breach, runs: runs - shrinker.left })
}

struct Shrinker<'g> {
    property: Property,
    /// How many more runs may be made.
    left: u32,
    go_on: &'g dyn Fn() -> bool,
    /// The smallest scenario so far, and how it fails.
    best: Option<(Scenario, Breach)>,
}

impl Shrinker<'_> {
    /// Takes `candidate` if it fails in the same way and asks for nothing that it should not.
    fn attempt(&mut self, candidate: Scenario) -> bool {
        let same = self.best.as_ref().is_some_and(|(best, _)| *best == candidate);
        if same || self.left == 0 || !(self.go_on)() {
            return false;
        }
        let Ok(case) = candidate.resolve() else { return false };
        if self.best.is_some() && !premise::suits(self.property, &case) {
            return false;
        }
        self.left -= 1;
        match judge(&candidate, &[self.property]) {
            Ok(Some(breach)) => {
                self.best = Some((candidate, breach));
                true
            }
            _ => false,
        }
    }

    /// Takes the best so far as `change` leaves it, if that still fails.
    fn attempt_with(&mut self, change: impl FnOnce(&mut Scenario)) -> bool {
        let Some((best, _)) = &self.best else { return false };
        let mut candidate = best.clone();
        change(&mut candidate);
        self.attempt(candidate)
    }

    fn ids(&self) -> Vec<u32> {
        let case = self.best.as_ref().and_then(|(best, _)| best.resolve().ok());
        case.map_or(Vec::new(), |case| case.members().iter().map(|id| id.0).collect())
    }

    fn faults(&self) -> &[Fault] {
        self.best.as_ref().map_or(&[], |(best, _)| &best.fault)
    }

    fn drop_members(&mut self) {
        for id in self.ids() {
            let left: Vec<u32> = self.ids().into_iter().filter(|&other| other != id).collect();
            // Without a member everything is drawn differently: another seed may do what this one did.
            let seeds = [None, Some(1), Some(2), Some(3)];
            let _ = seeds.into_iter().any(|seed| {
                self.attempt_with(|scenario| {
                    without(scenario, id, left.clone());
                    scenario.seed = seed.or(scenario.seed);
                })
            });
        }
        // Numbers without gaps are easier on the reader.
        let ids = self.ids();
        if ids.iter().zip(1..).any(|(&id, number)| id != number) {
            self.attempt_with(|scenario| renumber(scenario, &ids));
        }
        let ids = self.ids();
        if ids.iter().zip(1..).all(|(&id, number)| id == number) {
            let count = MemberList::Count(ids.len() as u64);
            self.attempt_with(|scenario| scenario.members = Some(count));
        }
    }

    /// Leaves out half of the faults at once, then a quarter, and so on down to pairs that belong together and to
    /// single ones.
    fn drop_faults(&mut self) {
        let mut size = self.faults().len() / 2;
        while size > 0 {
            let mut first = 0;
            while first < self.faults().len() {
                let dropped = self.attempt_with(|scenario| {
                    let end = (first + size).min(scenario.fault.len());
                    scenario.fault.drain(first..end);
                });
                first += if dropped { 0 } else { size };
            }
            size /= 2;
        }
        self.drop_single_faults();
        self.drop_pairs();
    }

    fn drop_single_faults(&mut self) {
        for index in (0..self.faults().len()).rev() {
            self.attempt_with(|scenario| drop(scenario.fault.remove(index)));
        }
    }

    /// A crash and its restart, a cut and its mending: neither can be left out alone.
    fn drop_pairs(&mut self) {
        let mut first = 0;
        while first < self.faults().len() {
            let count = self.faults().len();
            let dropped = (first + 1..count).any(|second| {
                self.attempt_with(|scenario| {
                    scenario.fault.remove(second);
                    scenario.fault.remove(first);
                })
            });
            first += usize::from(!dropped);
        }
    }

    /// Everything that is unusual becomes usual, one thing at a time.
    fn simplify(&mut self) {
        let changes: [fn(&mut Scenario); 17] = [
            |scenario| scenario.sessions = false,
            |scenario| scenario.loss = None,
            |scenario| scenario.duplicate = None,
            |scenario| scenario.processing = None,
            |scenario| scenario.attr.clear(),
            |scenario| scenario.ring = None,
            |scenario| scenario.delay = None,
            |scenario| scenario.link.clear(),
            |scenario| scenario.order.clear(),
            |scenario| scenario.contact_dead = false,
            |scenario| scenario.dead.clear(),
            |scenario| scenario.heartbeat = None,
            |scenario| scenario.detector = scenario.detector.map(|_| Span::from_millis(10)),
            |scenario| scenario.initiators = None,
            |scenario| scenario.until = None,
            |scenario| scenario.seed = None,
            |scenario| scenario.about.clear(),
        ];
        for change in changes {
            self.attempt_with(change);
        }
        self.simplify_quorum();
        let initiators = self.best.as_ref().map_or(0, |(best, _)| listed(best).len());
        for index in (0..initiators).rev() {
            self.attempt_with(|scenario| {
                if let Some(Initiators::Listed(listed)) = &mut scenario.initiators {
                    listed.remove(index);
                }
            });
        }
        for index in 0..self.faults().len() {
            for change in SIMPLER {
                self.attempt_with(|scenario| change(&mut scenario.fault[index].what));
            }
        }
    }

    fn simplify_quorum(&mut self) {
        let changes: [fn(&mut QuorumOptions); 13] = [
            |options| *options = QuorumOptions::default(),
            |options| options.pace.clear(),
            |options| options.witnesses.clear(),
            |options| options.reluctant.clear(),
            |options| options.probe = None,
            |options| options.retire = None,
            |options| options.jitter = None,
            |options| options.stagger = None,
            |options| options.preemption = None,
            |options| options.tenure = None,
            |options| options.penalty_decay = None,
            |options| options.vote_lease = None,
            |options| options.drift = None,
        ];
        for change in changes {
            self.attempt_with(|scenario| scenario.quorum.iter_mut().for_each(change));
        }
        self.attempt_with(|scenario| scenario.preempt = None);
        self.attempt_with(|scenario| scenario.bound = None);
        for id in self.ids() {
            self.attempt_with(|scenario| {
                if let Some(options) = &mut scenario.quorum {
                    options.pace.remove(&id.to_string());
                }
            });
        }
    }

    /// Gaps between faults become short, and what is left of times round.
    fn round_times(&mut self) {
        for index in 0..self.faults().len() {
            for gap in [0, 1, 2, 5, 10, 20, 50] {
                if self.attempt_with(|scenario| pull_forward(scenario, index, gap)) {
                    break;
                }
            }
            for grain in [100_000, 10_000, 1_000] {
                self.attempt_with(|scenario| {
                    if let Trigger::At(at) = &mut scenario.fault[index].when {
                        *at = Time::ZERO + round(*at - Time::ZERO, grain);
                    }
                });
                self.attempt_with(|scenario| {
                    if let Some(length) = length_of(&mut scenario.fault[index].what) {
                        *length = round(*length, grain);
                    }
                });
            }
        }
    }
}

/// How a fault becomes more usual, one thing at a time.
const SIMPLER: [fn(&mut Action); 7] = [
    |action| match action {
        Action::Restart { disk, .. } => *disk = Disk::Kept,
        Action::Replace { disk: disk @ Disk::LostUnlessAnother, .. } => *disk = Disk::Lost,
        _ => {}
    },
    |action| {
        if let Action::Restart { pace, .. } = action {
            *pace = None;
        }
    },
    |action| {
        if let Action::Clock { jump, .. } = action {
            *jump = Span::ZERO;
        }
    },
    |action| match action {
        Action::Restart { place, .. } => *place = Place::Same,
        Action::Replace { place, .. } => *place = Place::New,
        _ => {}
    },
    |action| {
        if let Action::Replace { hung, .. } = action {
            *hung = Span::ZERO;
        }
    },
    |action| {
        if let Action::Partition { old, .. } = action {
            old.clear();
        }
    },
    // A machine that is replaced while its process is down has no old process.
    |action| {
        if let Action::Replace { member, disk, place, .. } = *action {
            *action = Action::Restart { member, disk, pace: None, place };
        }
    },
];

/// How long what a fault brings about lasts, if that is said.
fn length_of(action: &mut Action) -> Option<&mut Span> {
    match action {
        Action::Pause { lasting, .. }
        | Action::Replace { hung: lasting, .. }
        | Action::Attributes { lasting, .. }
        | Action::Command { command: AdminCommand::Prefer { lasting, .. }, .. } => Some(lasting),
        Action::Command { command: AdminCommand::Drain { lasting, .. }, .. } => lasting.as_mut(),
        _ => None,
    }
}

fn listed(scenario: &Scenario) -> &[Initiator] {
    match &scenario.initiators {
        Some(Initiators::Listed(listed)) => listed,
        _ => &[],
    }
}

/// `scenario` without member `id`, of whom nothing is said any more; `left` are the others.
fn without(scenario: &mut Scenario, id: u32, left: Vec<u32>) {
    scenario.members = Some(MemberList::Listed(left));
    scenario.attr.remove(&id.to_string());
    if let Some(RingOrder::Listed(ring)) = &mut scenario.ring {
        ring.retain(|&other| other != id);
    }
    scenario.dead.retain(|&dead| dead != id);
    scenario.leader = scenario.leader.filter(|&leader| leader != id);
    if let Some(Initiators::Listed(listed)) = &mut scenario.initiators {
        listed.retain(|initiator| {
            !matches!(*initiator, Initiator::AtOnce(who)
            | Initiator::At { member: who, .. } if who == id)
        });
    }
    if let Some(options) = &mut scenario.quorum {
        options.witnesses.retain(|&other| other != id);
        options.reluctant.retain(|&other| other != id);
        options.pace.remove(&id.to_string());
    }
    let id = NodeId(id);
    scenario.link.retain(|link| link.from != Some(id) && link.to != Some(id));
    for Fault { what, .. } in &mut scenario.fault {
        if let Action::Partition { groups, old } = what {
            groups.iter_mut().chain(old).for_each(|group| group.retain(|&other| other != id));
        }
    }
    scenario.fault.retain(|fault| !fault.names(id));
}

/// Gives the members, who are `ids`, the numbers from one on, in the same order.
fn renumber(scenario: &mut Scenario, ids: &[u32]) {
    let number = |id: u32| ids.iter().position(|&other| other == id).map_or(id, |at| at as u32 + 1);
    let change = |id: &mut u32| *id = number(*id);
    scenario.members = Some(MemberList::Count(ids.len() as u64));
    let attr = std::mem::take(&mut scenario.attr);
    scenario.attr = (attr.into_iter())
        .map(|(id, attr)| (id.parse().map_or(id, |id| number(id).to_string()), attr))
        .collect();
    if let Some(RingOrder::Listed(ring)) = &mut scenario.ring {
        ring.iter_mut().for_each(change);
    }
    scenario.dead.iter_mut().chain(&mut scenario.leader).for_each(change);
    if let Some(options) = &mut scenario.quorum {
        options.witnesses.iter_mut().chain(&mut options.reluctant).for_each(change);
        let pace = std::mem::take(&mut options.pace);
        options.pace = (pace.into_iter())
            .map(|(id, pace)| (id.parse().map_or(id, |id| number(id).to_string()), pace))
            .collect();
    }
    if let Some(Initiators::Listed(listed)) = &mut scenario.initiators {
        for initiator in listed {
            match initiator {
                Initiator::AtOnce(who) | Initiator::At { member: who, .. } => change(who),
            }
        }
    }
    let change = |id: &mut NodeId| id.0 = number(id.0);
    for link in &mut scenario.link {
        link.from.iter_mut().chain(&mut link.to).for_each(change);
    }
    for fault in &mut scenario.fault {
        fault.members_mut().into_iter().for_each(|(_, id)| change(id));
    }
}

/// Fault number `index` happens `gap` milliseconds after the one before it, and so do all after it follow sooner.
fn pull_forward(scenario: &mut Scenario, index: usize, gap: u64) {
    let Some(now) = scenario.fault[index].time() else { return };
    let before = scenario.fault[..index].iter().filter_map(Fault::time).max().unwrap_or_default();
    let sooner = before + Span::from_millis(gap);
    if sooner >= now {
        return;
    }
    let by = now - sooner;
    for fault in &mut scenario.fault[index..] {
        if let Trigger::At(at) = &mut fault.when {
            *at = Time(at.0.saturating_sub(by.as_nanos()));
        }
    }
}

/// A time to the next lower multiple of `grain` microseconds, unless that is zero.
fn round(span: Span, grain: u64) -> Span {
    let grain = Span::from_micros(grain).as_nanos();
    match span.as_nanos() / grain * grain {
        0 => span,
        rounded => Span::from_nanos(rounded),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Six bullies fall apart, the half without a leader elects its best, and the network heals: two leaders for ever.
    /// Everything else in it has no part in that.
    fn planted() -> Scenario {
        let text = r#"
            algorithm = "bully"
            members = 6
            leader = 6
            ring = [3, 1, 2, 6, 5, 4]
            seed = 77
            delay = "uniform:0.2ms..1ms"
            processing = "0.1ms"
            attr = { 1 = 10, 2 = 20, 3 = 30, 4 = 40, 5 = 50, 6 = 60 }
            [[fault]]
            at = "3.7ms"
            cut = [5, 6]
            [[fault]]
            at = "9.1ms"
            clock = 2
            rate = 1.05
            [[fault]]
            at = "12.3ms"
            mend = [5, 6]
            [[fault]]
            at = "23.7ms"
            partition = [[1, 2, 4], [3, 5, 6]]
            [[fault]]
            at = "25.1ms"
            pause = 3
            for = "2.3ms"
            [[fault]]
            at = "31.9ms"
            campaign = 1
            [[fault]]
            at = "40.3ms"
            clock = 2
            rate = 1.0
            [[fault]]
            at = "77.7ms"
            heal = true
        "#;
        Scenario::parse("planted", text).unwrap()
    }

    fn shrink_by(runs: u32, property: Property) -> Option<Shrunk> {
        shrink(&planted(), property, runs, &|| true)
    }

    #[test]
    fn a_planted_failure_shrinks_to_what_makes_it_fail() {
        let shrunk = shrink_by(2_000, Property::Agreement).unwrap();
        let small = &shrunk.scenario;
        let case = small.resolve().unwrap();
        assert!(case.members().len() <= 2, "{small:?}");
        assert!(small.fault.len() <= 3, "{small:?}");
        assert!(small.attr.is_empty() && small.ring.is_none() && small.delay.is_none());
        assert!(premise::holds(&case));
        assert_eq!(shrunk.breach.property, Property::Agreement);
        assert_eq!(judge(small, &[Property::Agreement]).unwrap(), Some(shrunk.breach.clone()));
        assert_eq!(shrink_by(2_000, Property::Agreement), Some(shrunk));
    }

    #[test]
    fn what_does_not_fail_is_not_shrunk_and_no_run_is_made_beyond_the_limit() {
        assert_eq!(shrink_by(100, Property::TermsNeverFall), None);
        let shrunk = shrink_by(5, Property::Agreement).unwrap();
        assert!(shrunk.runs <= 5);
    }

    #[test]
    fn whoever_has_enough_gets_the_smallest_so_far() {
        let asked = Cell::new(0);
        let go_on = || asked.replace(asked.get() + 1) < 3;
        let shrunk = shrink(&planted(), Property::Agreement, 2_000, &go_on).unwrap();
        assert_eq!((shrunk.runs, shrunk.breach.property), (3, Property::Agreement));
        assert_eq!(shrink(&planted(), Property::Agreement, 2_000, &|| false), None);
    }

    #[test]
    fn a_shrunk_scenario_survives_being_written_down() {
        let small = shrink_by(2_000, Property::Agreement).unwrap().scenario;
        let text = toml::to_string(&small).unwrap();
        assert_eq!(Scenario::parse("shrunk", &text).unwrap(), small);
    }
}
