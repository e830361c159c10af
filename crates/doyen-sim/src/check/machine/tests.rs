//! States that are taken for one are alike: what can happen in one of them can happen in the other, and leads to states
//! that are taken for one. So whatever is true of the runs from one is true of the runs from the other.
//!
//! That is tried with every state of the quorum that is a few steps from the start. The states are whole ones, and of
//! those that have the same essence once spent messages are left out every one must lead to the same essences.

use std::collections::{BTreeSet, HashMap, HashSet};

use doyen_core::algorithm::quorum::Quorum;
use doyen_core::algorithm::quorum::rules::{Rule, Rulebook};
use doyen_core::algorithm::quorum::settings::{Pace, Preemption};
use doyen_core::config::{Config, Mode, Timing};
use doyen_core::time::Span;

use super::*;
use crate::check::budget::Budget;

/// All rules stand, but nobody is courteous if it is bold; three terms are all there are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Explored<const BOLD: bool> {}

impl<const BOLD: bool> Rulebook for Explored<BOLD> {
    fn keeps(rule: Rule) -> bool {
        rule != Rule::Courtesy || !BOLD
    }

    fn last_term() -> Epoch {
        Epoch(3)
    }
}

const TICK: Span = Span::from_millis(2);

fn config(preemption: Preemption) -> Config {
    let members = Members::range(1, 3).expect("three members");
    let timing = Timing::for_transmission(Span::from_millis(1));
    let mut config = Config::new(members, timing, Mode::Hardened);
    let quorum = &mut config.quorum;
    quorum.pace = Pace { heartbeat: TICK, promise: TICK * 3, drift: 0, grain: TICK };
    (quorum.jitter, quorum.stagger, quorum.probe) = (Span::ZERO, Span::ZERO, None);
    (quorum.forgiveness, quorum.tenure) = (Span::ZERO, Span::ZERO);
    (quorum.preemption, quorum.remembers) = (preemption, false);
    config
}

fn rules(campaigns: u8) -> Rules {
    Rules {
        budget: Budget {
            crashes: ANY,
            restarts: ANY,
            losses: ANY,
            duplications: ANY,
            campaigns,
            ..Budget::default()
        },
        timers: Timers::Clocked { tick: TICK, drift: 0 },
        fifo: false,
        properties: vec![Property::OneLeader, Property::OneLeaderPerTerm],
        from: None,
    }
}

impl<P: Explorable> Machine<'_, P> {
    /// The fingerprint of the state that a search keeps in place of this one.
    fn print_of_essence(&self, hand: &mut Hand<P>, state: &[u32]) -> u64 {
        let (kept, flights) = state.split_at(self.terms.members.len() + 2);
        let mut words = kept.to_vec();
        let is_spent = |flight: u32| {
            let to = hand.flights[flight as usize].to();
            self.is_spent(hand, kept[to], flight)
        };
        words.extend(flights.iter().copied().filter(|&flight| !is_spent(flight)));
        self.drop_repetitions(hand, &mut words, 0, kept.len());
        self.fingerprint(hand, &words)
    }
}

/// Compares what can happen in the first `count` whole states, as far as they are taken for one; says how many were.
fn compare<P: Explorable>(machine: &mut Machine<'_, P>, count: usize) -> usize {
    (machine.canonical, machine.essential) = (true, true);
    let mut hand = machine.hand();
    let mut out = Successors::new();
    let mut states = vec![machine.start()];
    let mut seen: HashSet<Vec<u32>> = states.iter().cloned().collect();
    let mut outcomes: HashMap<u64, BTreeSet<(u64, Option<usize>)>> = HashMap::new();
    let mut merged = 0;
    for visited in 0..count {
        let state = states[visited].clone();
        machine.steps(&mut hand, &state, false, &mut out);
        let own = machine.print_of_essence(&mut hand, &state);
        let mut outcome = BTreeSet::new();
        for next in out.list() {
            let reached = out.state(next);
            outcome.insert((machine.print_of_essence(&mut hand, reached), next.breaks));
            if seen.insert(reached.to_vec()) {
                states.push(reached.to_vec());
            }
        }
        // A step that leads nowhere is as good as none.
        outcome.remove(&(own, None));
        if let Some(other) = outcomes.get(&own) {
            merged += 1;
            let (locals, flights) = machine.taken_apart(&state);
            assert_eq!(*other, outcome, "{visited}: {locals:?} {flights:?}");
        } else {
            outcomes.insert(own, outcome);
        }
    }
    merged
}

#[test]
fn states_of_the_same_essence_are_alike() {
    for preemption in [Preemption::Never, Preemption::Immediate] {
        let config = config(preemption);
        let mut scene = Scene::new(&config.members);
        for leader in [None, Some(config.members.highest()), Some(NodeId(1))] {
            scene.leader = leader;
            let mut bold = Machine::<Quorum<Explored<true>>>::new(&config, &scene, rules(ANY));
            let merged = compare(&mut bold, 15_000);
            assert!(merged > 1_500, "bold, {leader:?}, {preemption:?}: only {merged}");
            let mut whole = Machine::<Quorum<Explored<false>>>::new(&config, &scene, rules(0));
            let merged = compare(&mut whole, 15_000);
            assert!(merged > 150, "whole, {leader:?}, {preemption:?}: only {merged}");
        }
    }
}
