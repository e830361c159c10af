//! States that are taken for one are alike: what can happen in one of them can happen in the other, and leads to states
//! that are taken for one. So whatever is true of the runs from one is true of the runs from the other.
//!
//! That is tried with every state of the quorum that is a few steps from the start. The states are whole ones, and of
//! those that have the same canonical once spent messages are left out every one must lead to the same canonical forms. Where
//! members are alike but for their names, so must those that a state becomes by every renaming.

use std::collections::{BTreeSet, HashMap, HashSet};

use doyen_core::algorithm::quorum::Quorum;
use doyen_core::algorithm::quorum::voter::Voter;
use doyen_core::config::quorum::{Pace, Preemption};
use doyen_core::config::rules::{Rule, Rules as QuorumRules};
use doyen_core::config::{Config, Mode, Timing};
use doyen_core::members::Members;
use doyen_core::time::Span;

use doyen_core::session::Session;

use super::canonical::at_place;
use super::symmetry::Renaming;
use super::*;
use crate::explore::explore_all;
use crate::fingerprint::mix;
use crate::part::{self, Part, Scope};
use crate::search;

/// All rules, but without pre-votes if `bold`; at most three terms are opened.
fn explored(bold: bool) -> QuorumRules {
    let rules = QuorumRules::default();
    let rules = if bold { rules.without(Rule::PreVote) } else { rules };
    rules.until(Term(3))
}

const TICK: Span = Span::from_millis(2);

fn config(preemption: Preemption, bold: bool) -> Config {
    let members = Members::range(1, 3).expect("three members");
    let timing = Timing::for_transmission(Span::from_millis(1));
    let mut config = Config::new(members, timing, Mode::Hardened);
    let quorum = &mut config.quorum;
    quorum.pace = Pace { heartbeat: TICK, vote_lease: TICK * 3, drift: 0, grain: TICK };
    (quorum.jitter, quorum.stagger, quorum.probe) = (Span::ZERO, Span::ZERO, None);
    (quorum.penalty_decay, quorum.tenure) = (Span::ZERO, Span::ZERO);
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

impl<P: Explorable> Model<'_, P> {
    /// The fingerprint of the state that a search keeps in place of this one.
    fn canonical_print(&self, worker: &mut Worker<P>, state: &[u32]) -> u64 {
        let (kept, flights) = state.split_at(self.context.members.len() + HEAD);
        let mut words = kept.to_vec();
        let is_obsolete = |flight: u32| {
            let to = worker.flights[flight as usize].to();
            self.is_obsolete(worker, kept[to], flight)
        };
        words.extend(flights.iter().copied().filter(|&flight| !is_obsolete(flight)));
        self.drop_repetitions(worker, &mut words, 0, kept.len());
        self.fingerprint(worker, &words)
    }
}

/// What can happen in states, by what they are taken for.
#[derive(Default)]
struct Outcomes {
    known: HashMap<u64, BTreeSet<(u64, Option<usize>)>>,
    /// How many states were taken for one that was known.
    merged: usize,
}

impl Outcomes {
    /// Compares what can happen in a state with what can happen in those that are taken for the same. The steps are left in
    /// `out`.
    fn compare<P: Explorable>(
        &mut self,
        model: &Model<'_, P>,
        worker: &mut Worker<P>,
        state: &[u32],
        out: &mut Successors<Step>,
    ) {
        model.steps(worker, state, false, out);
        let own = model.canonical_print(worker, state);
        let print = |next| model.canonical_print(worker, out.state(next));
        let prints: Vec<u64> = out.list().iter().map(print).collect();
        let breaks = out.list().iter().map(|next| next.breaks);
        let mut outcome: BTreeSet<(u64, Option<usize>)> = prints.into_iter().zip(breaks).collect();
        // A step that leads nowhere is as good as none.
        outcome.remove(&(own, None));
        if let Some(other) = self.known.get(&own) {
            self.merged += 1;
            let (locals, flights) = model.take_apart(state);
            assert_eq!(*other, outcome, "{locals:?} {flights:?}");
        } else {
            self.known.insert(own, outcome);
        }
    }
}

/// Compares what can happen in the first `count` whole states, as far as they count as one; returns how many did.
fn compare<P: Explorable>(model: &mut Model<'_, P>, count: usize) -> usize {
    (model.reductions.settled, model.reductions.canonical) = (true, true);
    let (mut worker, mut out) = (model.worker(), Successors::new());
    let mut states = vec![model.start()];
    let mut seen: HashSet<Vec<u32>> = states.iter().cloned().collect();
    let mut outcomes = Outcomes::default();
    for visited in 0..count {
        let state = states[visited].clone();
        outcomes.compare(model, &mut worker, &state, &mut out);
        for reached in out.list().iter().map(|next| out.state(next)) {
            if seen.insert(reached.to_vec()) {
                states.push(reached.to_vec());
            }
        }
    }
    outcomes.merged
}

/// What long runs have come to.
#[derive(Default, Debug)]
struct Reached {
    merged: usize,
    /// States in which one member has led in two terms.
    second_leaderships: usize,
    /// Steps by which a leader was told to hand over.
    transfers: usize,
}

/// The same along random runs of `length` steps, which come to second leaderships and transfers.
fn compare_along(model: &mut Model<'_, Quorum>, runs: u64, length: usize) -> Reached {
    (model.reductions.settled, model.reductions.canonical) = (true, true);
    let (mut worker, mut out) = (model.worker(), Successors::new());
    let mut outcomes = Outcomes::default();
    let mut reached = Reached::default();
    for run in 0..runs {
        let mut state = model.start();
        let mut random = mix(run + 1, at_place(0));
        for _ in 0..length {
            outcomes.compare(model, &mut worker, &state, &mut out);
            let history = state[model.context.members.len() + HEAD - 1];
            let led = &worker.histories[history as usize].past.led;
            let twice = |&(term, id, _): &Leadership| {
                led.iter().any(|&(other, again, _)| again == id && other != term)
            };
            reached.second_leaderships += usize::from(led.iter().any(twice));
            random = mix(random, at_place(1));
            // Crashes are rare, or no run would come far.
            let calm = |next: &&search::space::Successor<Step>| {
                next.step.act != Act::Crash && next.step.crash_after == 0
            };
            let steps: Vec<_> = match random >> 60 {
                0 => out.list().iter().collect(),
                _ => out.list().iter().filter(calm).collect(),
            };
            if steps.is_empty() {
                break;
            }
            let next = steps[(random % steps.len() as u64) as usize];
            reached.transfers += usize::from(matches!(next.step.act, Act::Command(_)));
            state = out.state(next).to_vec();
        }
    }
    reached.merged = outcomes.merged;
    reached
}

#[test]
fn states_of_the_same_canonical_form_are_alike_in_long_runs_too() {
    let bold = config(Preemption::Never, true);
    let mut scene = Scene::new(&bold.members);
    scene.leader = Some(bold.members.highest());
    let mut rules = rules(ANY);
    rules.budget.transfers = 3;
    let mut model = Model::<Quorum>::new(&bold, &scene, rules);
    let reached = compare_along(&mut model, 150, 70);
    assert!(reached.second_leaderships > 100 && reached.transfers > 30, "{reached:?}");
    assert!(reached.merged > 100, "{reached:?}");
}

/// Which reductions are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reduced {
    Nothing,
    /// Canonical forms, rounds counted from the first that counts.
    Forms,
    /// And obsolete messages.
    Obsolete,
    /// Names alone.
    Names,
    All,
}

/// In how many steps something is broken, if it is; and how long all runs are that were seen.
fn verdict(model: &mut Model<'_, Quorum>, reduced: Reduced, states: u64) -> (Option<usize>, usize) {
    let symmetry = Symmetry::of(model.context.members);
    match reduced {
        Reduced::Nothing => {}
        Reduced::Forms => model.reductions.canonical = true,
        Reduced::Obsolete => {
            (model.reductions.canonical, model.reductions.obsolete) = (true, true);
        }
        Reduced::Names => model.symmetry = symmetry,
        Reduced::All => model.reduce_states(),
    }
    let limits = search::Limits { states: Some(states), ..search::Limits::default() };
    let plan = search::Plan { reduce: false, threads: 1, limits };
    let found = explore_all(model, &plan, &|_| true);
    let seen = found.progress.depth as usize - usize::from(found.limit.is_some());
    (found.violation.map(|violation| violation.path.len()), seen)
}

/// The rules that say what a message of an earlier term, round or life is worth. A reduction that drops such messages must
/// not take them for granted.
const ABOUT_OBSOLETE_MESSAGES: [Rule; 6] = [
    Rule::VoteCountsInItsTerm,
    Rule::AckCountsInItsTerm,
    Rule::NoStaleHeartbeat,
    Rule::ReleaseIsForItsTerm,
    Rule::LapsedRoundIsOver,
    Rule::AnswerIsForItsIncarnation,
];

/// With every rule in turn taken away, each reduction comes to the same as none: it breaks something in as many steps, or
/// breaks nothing as far as both have seen.
///
/// What is compared is how short the shortest violation is, if one is within the limit of states of both. That is little
/// without reductions: most rules are missed only in longer runs, where this compares nothing. Nor does it compare which
/// property is broken or which states are reached; `states_of_the_same_canonical_form_are_alike` compares the steps of
/// states that are taken for one, and `tests/it/check_quorum.rs` has longer runs, in which searches with reductions miss
/// every rule.
#[test]
fn with_any_rule_less_each_reduction_finds_what_none_finds() {
    let mut found = 0;
    for &rule in Rule::ALL {
        let mut config = config(Preemption::Never, true);
        config.quorum.rules = explored(true).without(rule);
        let alike: Vec<(NodeId, i64)> = config.members.iter().map(|id| (id, 0)).collect();
        config.members = config.members.clone().with_attrs(alike).expect("three attributes");
        let mut scene = Scene::new(&config.members);
        scene.leader = Some(config.members.highest());
        let mut rules = rules(ANY);
        rules.budget.transfers = 1;
        let states = if ABOUT_OBSOLETE_MESSAGES.contains(&rule) { 40_000 } else { 6_000 };
        let verdict = |reduced| {
            let mut model = Model::<Quorum>::new(&config, &scene, rules.clone());
            verdict(&mut model, reduced, states)
        };
        let (broken, seen) = verdict(Reduced::Nothing);
        found += usize::from(broken.is_some());
        for reduced in [Reduced::Forms, Reduced::Obsolete, Reduced::Names, Reduced::All] {
            let (other, far) = verdict(reduced);
            let both = seen.min(far);
            println!("{rule}, {reduced:?}: {broken:?} {other:?}, {seen} and {far} steps");
            let within = |steps: Option<usize>| steps.filter(|&steps| steps <= both);
            assert_eq!(within(other), within(broken), "{rule}, {reduced:?}");
        }
    }
    assert!(found >= 5, "only {found} rules were missed within the limit: this shows little");
}

#[test]
fn states_of_the_same_canonical_form_are_alike() {
    let mut merged = [0, 0];
    for preemption in [Preemption::Never, Preemption::Immediate] {
        let [bold, whole] = [true, false].map(|bold| config(preemption, bold));
        let mut scene = Scene::new(&bold.members);
        for leader in [None, Some(bold.members.highest()), Some(NodeId(1))] {
            scene.leader = leader;
            let mut bold = Model::<Quorum>::new(&bold, &scene, rules(ANY));
            merged[0] += compare(&mut bold, 15_000);
            let mut whole = Model::<Quorum>::new(&whole, &scene, rules(0));
            merged[1] += compare(&mut whole, 15_000);
        }
    }
    assert!(merged[0] > 30_000 && merged[1] > 10_000, "only {merged:?} were taken for one");
}

impl<P: Explorable> Model<'_, P> {
    /// What a state becomes if members get other names.
    fn with_names(&self, state: &[u32], renaming: &Renaming) -> Vec<u32> {
        let (locals, flights) = self.take_apart(state);
        let count = locals.len();
        let mut store = self.lock();
        let mut words = vec![0; count];
        for (place, local) in locals.iter().enumerate() {
            let renamed = local.renamed(&|id| renaming.name(id));
            words[usize::from(renaming.place(place as u8))] = store.locals.number(renamed);
        }
        let mut past = Past::clone(&store.histories.since(state[count + HEAD - 1] as usize)[0]);
        for (_, leader, _) in &mut past.led {
            *leader = renaming.name(*leader);
        }
        past.led.sort_unstable();
        words.extend(&state[count..count + HEAD - 1]);
        words.push(store.histories.number(past));
        let rename = |flight: Flight<P::Message>| {
            let (from, to) = (renaming.place(flight.from), renaming.place(flight.to));
            let flight = Flight { from, to, ..flight };
            (flight.channel(), store.flights.number(flight))
        };
        let mut flights: Vec<(u16, u32)> = flights.into_iter().map(rename).collect();
        flights.sort_unstable();
        words.extend(flights.into_iter().map(|(_, number)| number));
        words
    }
}

/// Compares what can happen in the first `count` states with what can happen in what they become by every renaming.
fn compare_names<P: Explorable>(model: &mut Model<'_, P>, count: usize) {
    model.reduce_states();
    assert_eq!(model.symmetry.renamings().len(), 5, "three members have six orders");
    let mut worker = model.worker();
    let mut out = Successors::new();
    let mut states = vec![model.start()];
    let mut seen: HashSet<Vec<u32>> = states.iter().cloned().collect();
    for visited in 0..count {
        let state = states[visited].clone();
        let expected = outcome(model, &mut worker, &state, &mut out);
        for reached in out.list().iter().map(|next| out.state(next).to_vec()) {
            if seen.insert(reached.clone()) {
                states.push(reached);
            }
        }
        for renaming in model.symmetry.renamings() {
            let renamed = model.with_names(&state, renaming);
            let found = outcome(model, &mut worker, &renamed, &mut out);
            assert_eq!(found, expected, "{visited}: {:?}", model.take_apart(&state));
        }
    }
}

/// The fingerprint of a state, those that it leads to, and what is broken on the way.
fn outcome<P: Explorable>(
    model: &Model<'_, P>,
    worker: &mut Worker<P>,
    state: &[u32],
    out: &mut Successors<Step>,
) -> (u64, BTreeSet<(u64, Option<usize>)>) {
    model.steps(worker, state, false, out);
    let own = model.fingerprint(worker, state);
    let reached = out.list().iter().map(|next| (out.state(next).to_vec(), next.breaks));
    let reached: Vec<(Vec<u32>, Option<usize>)> = reached.collect();
    let prints = reached.iter().map(|(state, breaks)| (model.fingerprint(worker, state), *breaks));
    (own, prints.collect())
}

#[test]
fn members_that_are_alike_but_for_their_names_can_be_renamed() {
    let mut config = config(Preemption::Never, true);
    let ids: Vec<NodeId> = config.members.iter().collect();
    let alike = ids.into_iter().map(|id| (id, 0));
    config.members = config.members.clone().with_attrs(alike).expect("three attributes");
    let mut scene = Scene::new(&config.members);
    let mut voters = Model::<Voter>::new(&config, &scene, rules(ANY));
    compare_names(&mut voters, 2_000);
    scene.leader = Some(config.members.highest());
    let mut bold = Model::<Quorum>::new(&config, &scene, rules(ANY));
    compare_names(&mut bold, 2_000);
    config.quorum.rules = explored(false);
    let mut whole = Model::<Quorum>::new(&config, &scene, rules(ANY));
    whole.reduce_states();
    assert!(whole.symmetry.renamings().is_empty(), "who asks whom depends on who is better");
}

/// One of two members is replaced twice at once, so that both new processes take the same incarnation.
#[test]
fn of_two_processes_with_the_same_incarnation_one_counts() {
    for without in [None, Some(Rule::SameSessionOnly)] {
        let scope = Scope { terms: 1, without, ..Scope::new(Part::Sessions) };
        let mut rules = Rules::of(scope, false);
        rules.budget.replacements = 2;
        let case = scope.scenario(2).resolve().expect("a scene that makes sense");
        let case = scope.apply(&case, rules.timers);
        let config = part::session_config(&case);
        let mut model = Model::<Session<Voter>>::new(&config, &Scene::of(&case), rules);
        let (mut worker, mut out) = (model.worker(), Successors::new());
        for _ in 0..2 {
            let is_replaced =
                |step: Step| step.slot == 1 && matches!(step.act, Act::Replace { .. });
            model.steps(&mut worker, &model.start(), false, &mut out);
            let next = out.list().iter().find(|next| is_replaced(next.step));
            model.start = out.state(next.expect("it can be replaced")).to_vec();
        }
        model.reduce_states();
        let limits = search::Limits::default();
        let plan = search::Plan { reduce: true, threads: 2, limits };
        let found = explore_all(&model, &plan, &|_| true);
        println!("{scope}: {:?}", found.progress);
        assert!(found.limit.is_none());
        assert_eq!(found.violation.is_some(), without.is_some(), "{without:?}");
    }
}
