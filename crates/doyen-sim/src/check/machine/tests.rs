//! States that are taken for one are alike: what can happen in one of them can happen in the other, and leads to states
//! that are taken for one. So whatever is true of the runs from one is true of the runs from the other.
//!
//! That is tried with every state of the quorum that is a few steps from the start. The states are whole ones, and of
//! those that have the same essence once spent messages are left out every one must lead to the same essences. Where
//! members are alike but for their names, so must those that a state becomes by every renaming.

use std::collections::{BTreeSet, HashMap, HashSet};

use doyen_core::algorithm::quorum::rules::Rule;
use doyen_core::algorithm::quorum::settings::{Pace, Preemption};
use doyen_core::algorithm::quorum::voter::Voter;
use doyen_core::algorithm::quorum::{self, Quorum};
use doyen_core::config::{Config, Mode, Timing};
use doyen_core::time::Span;

use super::symmetry::Renaming;
use super::*;
use crate::check::budget::Budget;

/// All rules stand that explorers know, but nobody is courteous if it is bold; three terms are all there are.
fn explored(bold: bool) -> quorum::rules::Rules {
    let rules = quorum::rules::Rules::default();
    let rules = if bold { rules.without(Rule::Courtesy) } else { rules };
    rules.until(Epoch(3))
}

const TICK: Span = Span::from_millis(2);

fn config(preemption: Preemption, bold: bool) -> Config {
    let members = Members::range(1, 3).expect("three members");
    let timing = Timing::for_transmission(Span::from_millis(1));
    let mut config = Config::new(members, timing, Mode::Hardened);
    let quorum = &mut config.quorum;
    quorum.pace = Pace { heartbeat: TICK, promise: TICK * 3, drift: 0, grain: TICK };
    (quorum.jitter, quorum.stagger, quorum.probe) = (Span::ZERO, Span::ZERO, None);
    (quorum.forgiveness, quorum.tenure) = (Span::ZERO, Span::ZERO);
    (quorum.preemption, quorum.remembers) = (preemption, false);
    quorum.rules = explored(bold);
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
        properties: Property::QUORUM.to_vec(),
        from: None,
        scope: None,
    }
}

impl<P: Explorable> Machine<'_, P> {
    /// The fingerprint of the state that a search keeps in place of this one.
    fn print_of_essence(&self, hand: &mut Hand<P>, state: &[u32]) -> u64 {
        let (kept, flights) = state.split_at(self.terms.members.len() + HEAD);
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
    let mut merged = [0, 0];
    for preemption in [Preemption::Never, Preemption::Immediate] {
        let [bold, whole] = [true, false].map(|bold| config(preemption, bold));
        let mut scene = Scene::new(&bold.members);
        for leader in [None, Some(bold.members.highest()), Some(NodeId(1))] {
            scene.leader = leader;
            let mut bold = Machine::<Quorum>::new(&bold, &scene, rules(ANY));
            merged[0] += compare(&mut bold, 15_000);
            let mut whole = Machine::<Quorum>::new(&whole, &scene, rules(0));
            merged[1] += compare(&mut whole, 15_000);
        }
    }
    assert!(merged[0] > 30_000 && merged[1] > 10_000, "only {merged:?} were taken for one");
}

impl<P: Explorable> Machine<'_, P> {
    /// What a state becomes if members get other names.
    fn with_names(&self, state: &[u32], renaming: &Renaming) -> Vec<u32> {
        let (locals, flights) = self.taken_apart(state);
        let count = locals.len();
        let mut store = self.lock();
        let mut words = vec![0; count];
        for (place, local) in locals.iter().enumerate() {
            let renamed = local.renamed(&|id| renaming.name(id));
            words[usize::from(renaming.place(place as u8))] = store.locals.number(renamed);
        }
        let led = Arc::clone(&store.histories.since(state[count + HEAD - 1] as usize)[0]);
        let mut led: Vec<(Epoch, NodeId)> =
            led.iter().map(|&(term, leader)| (term, renaming.name(leader))).collect();
        led.sort_unstable();
        words.extend(&state[count..count + HEAD - 1]);
        words.push(store.histories.number(led));
        let rename = |flight: Flight<P::Message>| {
            let (from, to) = (renaming.place(flight.from), renaming.place(flight.to));
            let flight = Flight { from, to, ..flight };
            (channel(&flight), store.flights.number(flight))
        };
        let mut flights: Vec<(u16, u32)> = flights.into_iter().map(rename).collect();
        flights.sort_unstable();
        words.extend(flights.into_iter().map(|(_, number)| number));
        words
    }
}

/// Compares what can happen in the first `count` states with what can happen in what they become by every renaming.
fn compare_names<P: Explorable>(machine: &mut Machine<'_, P>, count: usize) {
    machine.reduce_states();
    assert_eq!(machine.symmetry.renamings().len(), 5, "three members have six orders");
    let mut hand = machine.hand();
    let mut out = Successors::new();
    let mut states = vec![machine.start()];
    let mut seen: HashSet<Vec<u32>> = states.iter().cloned().collect();
    for visited in 0..count {
        let state = states[visited].clone();
        let expected = outcome(machine, &mut hand, &state, &mut out);
        for reached in out.list().iter().map(|next| out.state(next).to_vec()) {
            if seen.insert(reached.clone()) {
                states.push(reached);
            }
        }
        for renaming in machine.symmetry.renamings() {
            let renamed = machine.with_names(&state, renaming);
            let found = outcome(machine, &mut hand, &renamed, &mut out);
            assert_eq!(found, expected, "{visited}: {:?}", machine.taken_apart(&state));
        }
    }
}

/// The fingerprint of a state, those that it leads to, and what is broken on the way.
fn outcome<P: Explorable>(
    machine: &Machine<'_, P>,
    hand: &mut Hand<P>,
    state: &[u32],
    out: &mut Successors<Step>,
) -> (u64, BTreeSet<(u64, Option<usize>)>) {
    machine.steps(hand, state, false, out);
    let own = machine.fingerprint(hand, state);
    let reached = out.list().iter().map(|next| (out.state(next).to_vec(), next.breaks));
    let reached: Vec<(Vec<u32>, Option<usize>)> = reached.collect();
    let prints = reached.iter().map(|(state, breaks)| (machine.fingerprint(hand, state), *breaks));
    (own, prints.collect())
}

#[test]
fn members_that_are_alike_but_for_their_names_can_be_renamed() {
    let mut config = config(Preemption::Never, true);
    let ids: Vec<NodeId> = config.members.iter().collect();
    let alike = ids.into_iter().map(|id| (id, 0));
    config.members = config.members.clone().with_attrs(alike).expect("three attributes");
    let mut scene = Scene::new(&config.members);
    let mut voters = Machine::<Voter>::new(&config, &scene, rules(ANY));
    compare_names(&mut voters, 2_000);
    scene.leader = Some(config.members.highest());
    let mut bold = Machine::<Quorum>::new(&config, &scene, rules(ANY));
    compare_names(&mut bold, 2_000);
    config.quorum.rules = explored(false);
    let mut whole = Machine::<Quorum>::new(&config, &scene, rules(ANY));
    whole.reduce_states();
    assert!(whole.symmetry.renamings().is_empty(), "who asks whom depends on who is better");
}
