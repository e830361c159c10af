//! Shrinks a scenario that fails, so that a reader can follow it.
//!
//! Passes over the scenario drop members, drop faults and requests, reset what is unusual (loss, varying delays, attributes,
//! a ring out of order) and halve times, until no pass changes anything or the runs are used up. The result breaks the same
//! property, under the same [`premise`]. Each attempt is one run, and attempts are made in a fixed order, so the same
//! scenario always shrinks to the same one.

use doyen_core::members::NodeId;
use doyen_core::protocol::AdminCommand;
use doyen_core::time::Span;
use doyen_sim::fault::{Action, Disk, Fault, Place, Trigger};
use doyen_sim::scenario::{Initiator, Initiators, MemberList, QuorumOptions, RingOrder, Scenario};
use doyen_sim::time::Time;

use super::{judge, premise};
use crate::oracle::Breach;
use crate::property::Property;

/// Times are not halved below this.
const SHORTEST: Span = Span::from_millis(1);

/// A shrunk scenario, and what it still breaks.
#[derive(Clone, PartialEq, Debug)]
pub struct Shrunk {
    /// The scenario.
    pub scenario: Scenario,
    /// The broken property, the time and the evidence.
    pub breach: Breach,
    /// The number of runs that were made.
    pub runs: u32,
}

/// Shrinks `scenario`, which breaks `property`, with at most `runs` runs, and stops once `go_on` returns false. Returns
/// `None` if the scenario does not break the property.
pub fn shrink(
    scenario: &Scenario,
    property: Property,
    runs: u32,
    go_on: &dyn Fn() -> bool,
) -> Option<Shrunk> {
    let mut shrinker = Shrinker { property, left: runs, go_on, best: None };
    let without_chaos = Scenario { chaos: None, ..scenario.clone() };
    if !shrinker.attempt(without_chaos) && !shrinker.attempt(scenario.clone()) {
        return None;
    }
    loop {
        let before = shrinker.best.clone();
        shrinker.drop_members();
        shrinker.drop_faults();
        shrinker.drop_requests();
        shrinker.reset_options();
        shrinker.halve_times();
        if shrinker.best == before || shrinker.left == 0 {
            break;
        }
    }
    let (scenario, breach) = shrinker.best?;
    Some(Shrunk { scenario, breach, runs: runs - shrinker.left })
}

struct Shrinker<'g> {
    property: Property,
    /// The number of runs that may still be made.
    left: u32,
    go_on: &'g dyn Fn() -> bool,
    /// The smallest scenario so far, and how it fails.
    best: Option<(Scenario, Breach)>,
}

impl Shrinker<'_> {
    /// Accepts `candidate` if it breaks the same property and the premise of the property holds.
    fn attempt(&mut self, candidate: Scenario) -> bool {
        let is_same = self.best.as_ref().is_some_and(|(best, _)| *best == candidate);
        if is_same || self.left == 0 || !(self.go_on)() {
            return false;
        }
        let Ok(case) = candidate.resolve() else { return false };
        if self.best.is_some() && !premise::suits(self.property, &case) {
            return false;
        }
        self.left -= 1;
        let Ok(Some(breach)) = judge(&candidate, &[self.property]) else { return false };
        self.best = Some((candidate, breach));
        true
    }

    /// Accepts the best scenario so far with a change, if that still fails.
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
            let others: Vec<u32> = self.ids().into_iter().filter(|&other| other != id).collect();
            // Without a member everything is drawn differently: another seed may do what this one did.
            let _ = [None, Some(1), Some(2), Some(3)].into_iter().any(|seed| {
                self.attempt_with(|scenario| {
                    remove_member(scenario, id, &others);
                    scenario.seed = seed.or(scenario.seed);
                })
            });
        }
    }

    /// Drops half of the faults at once, then a quarter, and so on down to single ones; and pairs of which neither can be
    /// dropped alone, such as a crash and its restart.
    fn drop_faults(&mut self) {
        let mut size = self.faults().len().div_ceil(2);
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
        let mut first = 0;
        while first < self.faults().len() {
            let dropped = (first + 1..self.faults().len()).any(|second| {
                self.attempt_with(|scenario| {
                    scenario.fault.remove(second);
                    scenario.fault.remove(first);
                })
            });
            first += usize::from(!dropped);
        }
    }

    /// Drops requests to enter a critical section, one after the other.
    fn drop_requests(&mut self) {
        let mut place = 0;
        while let Some((best, _)) = &self.best
            && let Some(Initiators::Listed(listed)) = &best.requests
            && place < listed.len()
        {
            let dropped = self.attempt_with(|scenario| {
                if let Some(Initiators::Listed(listed)) = &mut scenario.requests {
                    listed.remove(place);
                }
            });
            place += usize::from(!dropped);
        }
    }

    /// Resets what is unusual, one option at a time.
    fn reset_options(&mut self) {
        // A new field does not compile until it is reset below, made simpler elsewhere or listed as kept.
        #[rustfmt::skip]
        let Scenario {
            title: _, algorithm: _, mode: _, members: _, leader: _, message_limit: _, chaos: _, expect: _, // kept
            fault: _, drop: _, late: _, twice: _, quorum: _, // elsewhere
            about: _, convention: _, attr: _, ring: _, dead: _, contact_dead: _, initiators: _, requests: _, hold: _, repeat: _,
            think: _, sets: _, tree: _, voters: _, votes: _, ask_all: _, back_off: _, grant: _, announce: _, seed: _, until: _,
            delay: _, processing: _, bound: _, loss: _, duplicate: _, fifo: _, order: _, window: _, heartbeat: _, preempt: _,
            detector: _, reliable: _, sessions: _, link: _,
        } = Scenario::default();
        let changes: [fn(&mut Scenario); 35] = [
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
            |scenario| scenario.requests = None,
            |scenario| scenario.repeat = None,
            |scenario| scenario.hold = None,
            |scenario| scenario.think = None,
            |scenario| scenario.sets = None,
            |scenario| scenario.tree = None,
            |scenario| scenario.until = None,
            |scenario| scenario.seed = None,
            |scenario| scenario.about.clear(),
            |scenario| scenario.preempt = None,
            |scenario| scenario.bound = None,
            |scenario| scenario.convention = None,
            |scenario| scenario.voters = None,
            |scenario| scenario.votes = None,
            |scenario| scenario.ask_all = false,
            |scenario| scenario.back_off = None,
            |scenario| scenario.grant = None,
            |scenario| scenario.announce = None,
            |scenario| scenario.fifo = None,
            |scenario| scenario.window = None,
            |scenario| scenario.reliable = false,
        ];
        for change in changes {
            self.attempt_with(change);
        }
        let of_quorum: [fn(&mut QuorumOptions); 13] = [
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
        for change in of_quorum {
            self.attempt_with(|scenario| scenario.quorum.iter_mut().for_each(change));
        }
        for index in 0..self.faults().len() {
            for change in SIMPLER {
                self.attempt_with(|scenario| change(&mut scenario.fault[index].what));
            }
        }
    }

    /// Halves the time between two faults, and the duration of each, as often as possible.
    fn halve_times(&mut self) {
        for index in 0..self.faults().len() {
            while self.attempt_with(|scenario| halve_gap(scenario, index)) {}
            while self.attempt_with(|scenario| {
                if let Some(length) = length_of(&mut scenario.fault[index].what) {
                    *length = half(*length);
                }
            }) {}
        }
    }
}

/// The ways in which a fault becomes simpler.
const SIMPLER: [fn(&mut Action); 8] = [
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
        if let Action::Crash { guardian, .. } = action {
            *guardian = None;
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
    // A member that is replaced while its process is down has no old process.
    |action| {
        if let Action::Replace { member, disk, place, .. } = *action {
            *action = Action::Restart { member, disk, pace: None, place };
        }
    },
];

/// The duration of a fault, if it has one.
fn length_of(action: &mut Action) -> Option<&mut Span> {
    match action {
        Action::Pause { lasting, .. }
        | Action::Replace { hung: lasting, .. }
        | Action::Attributes { lasting, .. }
        | Action::Command {
            command: AdminCommand::Prefer { lasting, .. } | AdminCommand::Pause { lasting },
            ..
        } => Some(lasting),
        Action::Command { command: AdminCommand::Drain { lasting, .. }, .. } => lasting.as_mut(),
        Action::Crash { .. }
        | Action::Restart { .. }
        | Action::CopyDisk(_)
        | Action::Clock { .. }
        | Action::Cut { .. }
        | Action::Mend { .. }
        | Action::Partition { .. }
        | Action::LinkOverride(_)
        | Action::Heal
        | Action::Drop { .. }
        | Action::Campaign(_)
        | Action::Command { .. } => None,
    }
}

/// Half of a time, to whole milliseconds; the time itself if that would be too short.
fn half(span: Span) -> Span {
    let millis = span.as_nanos() / 2 / SHORTEST.as_nanos();
    if millis == 0 { span } else { SHORTEST * millis }
}

/// The fault at `index` and all later ones happen sooner, by half of the time since the fault before.
fn halve_gap(scenario: &mut Scenario, index: usize) {
    let Some(now) = scenario.fault[index].time() else { return };
    let before = scenario.fault[..index].iter().filter_map(Fault::time).max().unwrap_or_default();
    if before >= now {
        return;
    }
    let gap = now - before;
    let by = Span::from_nanos(gap.as_nanos() - half(gap).as_nanos());
    for fault in &mut scenario.fault[index..] {
        if let Trigger::At(at) = &mut fault.when {
            *at = Time(at.0.saturating_sub(by.as_nanos()));
        }
    }
}

/// Removes member `id` and everything that names it; `others` are the members that are left.
pub(crate) fn remove_member(scenario: &mut Scenario, id: u32, others: &[u32]) {
    let is_counted = others.iter().copied().eq(1..=others.len() as u32);
    scenario.members = Some(match is_counted {
        true => MemberList::Count(others.len() as u64),
        false => MemberList::Listed(others.to_vec()),
    });
    scenario.attr.remove(&id.to_string());
    if let Some(RingOrder::Listed(ring)) = &mut scenario.ring {
        ring.retain(|&other| other != id);
    }
    scenario.dead.retain(|&dead| dead != id);
    scenario.leader = scenario.leader.filter(|&leader| leader != id);
    for listed in [&mut scenario.initiators, &mut scenario.requests] {
        if let Some(Initiators::Listed(listed)) = listed {
            listed.retain(|initiator| match *initiator {
                Initiator::AtOnce(member) | Initiator::At { member, .. } => member != id,
            });
        }
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Six bullies fall apart, the half without a leader elects its best, and the network heals: two leaders
    /// forever. Everything else in it is irrelevant.
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
    fn an_interrupt_returns_the_smallest_so_far() {
        let asked = Cell::new(0);
        let go_on = || asked.replace(asked.get() + 1) < 3;
        let shrunk = shrink(&planted(), Property::Agreement, 2_000, &go_on).unwrap();
        assert_eq!((shrunk.runs, shrunk.breach.property), (3, Property::Agreement));
        assert_eq!(shrink(&planted(), Property::Agreement, 2_000, &|| false), None);
    }

    #[test]
    fn a_shrunk_scenario_survives_being_written_down() {
        let small = shrink_by(2_000, Property::Agreement).unwrap().scenario;
        let text = small.to_toml();
        assert_eq!(Scenario::parse("shrunk", &text).unwrap(), small);
    }
}
