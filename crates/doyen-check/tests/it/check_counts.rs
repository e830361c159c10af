//! A search counts and decides the same on one thread and on two, with and without reduction.
//!
//! The numbers of states of Chang–Roberts (all members have started, ids fall clockwise, links keep the order) were found
//! by three other engines: they are an oracle. The benchmark `checker` counts the larger rings.

use std::sync::atomic::{AtomicBool, Ordering};

use doyen_check::budget::Budget;
use doyen_check::property::Property;
use doyen_check::search::{Limit, Limits, Plan, Progress};
use doyen_check::{Report, Rules, Timers};
use doyen_core::time::Span;
use doyen_sim::scenario::{Case, Scenario};

const TICK: Span = Span::from_millis(1);

/// Everything that is judged where a run comes to rest, or on the way.
const AT_REST: [Property; 4] =
    [Property::Agreement, Property::Validity, Property::OneLeader, Property::BoundedMessages];

fn case(text: &str) -> Case {
    Scenario::from_toml("test", text).expect("the scenario makes sense")
}

fn ring(members: u32) -> Case {
    case(&format!(
        "algorithm = \"chang-roberts\"\nmode = \"textbook\"\nmembers = {members}\n\
         ring = \"descending\"\ninitiators = \"all\"\nfifo = true"
    ))
}

fn calm(timers: Timers, properties: &[Property]) -> Rules {
    let properties = properties.to_vec();
    Rules { budget: Budget::default(), timers, fifo: true, properties, from: None, scope: None }
}

fn plan(reduce: bool, threads: usize) -> Plan {
    Plan { reduce, threads, limits: Limits::default() }
}

fn explore(case: &Case, rules: &Rules, plan: &Plan) -> Report {
    let report = doyen_check::check(case, rules, plan, &|_| true);
    assert_eq!(report.limit, None);
    report
}

/// What a report decides.
fn verdict(report: &Report) -> Option<Property> {
    report.violation.as_ref().map(|violation| violation.property)
}

#[test]
fn the_states_of_chang_roberts_are_those_that_others_count() {
    let rules = calm(Timers::Free { expiries: 0 }, &[Property::OneLeader]);
    for (members, states) in [(6, 435), (8, 4_870), (10, 58_796)] {
        for threads in [1, 2] {
            let report = explore(&ring(members), &rules, &plan(false, threads));
            assert_eq!(report.progress.states, states, "{members} members, {threads} threads");
            assert_eq!((report.violation, report.progress.frontier), (None, 0));
        }
    }
}

#[test]
fn with_reduction_a_ring_has_no_more_than_n_squared_states() {
    let rules = calm(Timers::Free { expiries: 0 }, &AT_REST);
    for members in [6, 8, 10, 12, 16] {
        for threads in [1, 2] {
            let report = explore(&ring(members), &rules, &plan(true, threads));
            let most = u64::from(members * members);
            assert!(report.progress.states <= most, "{members}: {}", report.progress.states);
            assert_eq!(report.violation, None);
        }
    }
}

#[test]
fn a_limit_of_depth_is_reached_only_if_something_lies_deeper() {
    let rules = calm(Timers::Free { expiries: 0 }, &[Property::OneLeader]);
    let explore_to = |depth: u32| {
        let limits = Limits { depth: Some(depth), ..Limits::default() };
        let plan = Plan { limits, ..plan(false, 1) };
        doyen_check::check(&ring(6), &rules, &plan, &|_| true)
    };
    let whole = explore(&ring(6), &rules, &plan(false, 1)).progress;
    assert_eq!(whole.states, 435);
    let Report { limit, progress, .. } = explore_to(whole.depth + 1);
    assert_eq!((limit, progress.states, progress.frontier), (None, 435, 0));
    let Report { limit, progress, .. } = explore_to(whole.depth - 1);
    assert_eq!((limit, progress.depth), (Some(Limit::Depth), whole.depth - 1));
    assert!(progress.states < 435 && progress.frontier > 0, "{progress:?}");
}

/// A limit of states is overshot by no more than the steps of one state lead to, for each thread.
#[test]
fn a_search_stops_close_to_its_limit_of_states() {
    let rules = calm(Timers::Free { expiries: 0 }, &[Property::OneLeader]);
    // Of a message on each link and an election called by everybody.
    let steps_of_a_state = 2 * 10;
    for threads in [1, 2] {
        for most in [1, 100, 5_000, 50_000] {
            let limits = Limits { states: Some(most), ..Limits::default() };
            let plan = Plan { limits, ..plan(false, threads) };
            let Report { limit, progress, .. } =
                doyen_check::check(&ring(10), &rules, &plan, &|_| true);
            assert_eq!(limit, Some(Limit::States), "{most} states");
            let closest = most..=most + threads as u64 * steps_of_a_state;
            assert!(closest.contains(&progress.states), "{} for {most}", progress.states);
            assert!(progress.frontier > 0, "something was left");
        }
    }
}

#[test]
fn a_search_stops_close_to_its_limit_of_memory() {
    let rules = calm(Timers::Free { expiries: 0 }, &[Property::OneLeader]);
    for threads in [1, 2] {
        let most = 4_000_000;
        let limits = Limits { memory: Some(most), ..Limits::default() };
        let plan = Plan { limits, ..plan(false, threads) };
        let Report { limit, progress, .. } =
            doyen_check::check(&ring(12), &rules, &plan, &|_| true);
        assert_eq!(limit, Some(Limit::Memory));
        let is_close = (most / 4..most * 5 / 4).contains(&progress.memory);
        assert!(is_close, "{} bytes", progress.memory);
    }
}

/// Whoever has seen enough says so, and learns how far it got.
#[test]
fn a_search_that_is_interrupted_stops() {
    static ENOUGH: AtomicBool = AtomicBool::new(false);
    let rules = calm(Timers::Free { expiries: 0 }, &[Property::OneLeader]);
    for threads in [1, 2] {
        let limits = Limits { interrupt: Some(&ENOUGH), ..Limits::default() };
        let plan = Plan { limits, ..plan(false, threads) };
        let flag = |progress: &Progress| {
            ENOUGH.store(progress.states > 100, Ordering::Relaxed);
            true
        };
        let answer = |progress: &Progress| progress.states <= 100;
        for tired in [&flag as &(dyn Fn(&Progress) -> bool + Sync), &answer] {
            ENOUGH.store(false, Ordering::Relaxed);
            let Report { limit, progress, .. } =
                doyen_check::check(&ring(10), &rules, &plan, tired);
            assert_eq!(limit, Some(Limit::Interrupt));
            assert!(progress.frontier > 0 && progress.states < 58_796, "{}", progress.states);
        }
    }
}

#[test]
fn runs_that_never_end_are_sought_when_all_has_been_seen_and_a_property_is_about_them() {
    let sought = |case: &Case, properties: &[Property], plan: &Plan| {
        let rules = calm(Timers::Free { expiries: 1 }, properties);
        doyen_check::check(case, &rules, plan, &|_| true).sought_endless
    };
    let broad = plan(false, 1);
    assert!(sought(&ring(4), &[Property::OneLeader, Property::Agreement], &broad));
    assert!(!sought(&ring(4), &[Property::OneLeader, Property::BoundedMessages], &broad));
    let limits = Limits { states: Some(10), ..Limits::default() };
    assert!(!sought(&ring(4), &[Property::Agreement], &Plan { limits, ..broad.clone() }));
    let bully = case("algorithm = \"bully\"\nmembers = 3\ninitiators = [1]");
    assert!(!sought(&bully, &[Property::OneLeader, Property::Agreement], &broad), "broken sooner");
}

/// Models with and without a violation, and which it is.
fn models() -> Vec<(Case, Rules, Option<Property>)> {
    let mut models = Vec::new();
    let nothing = Timers::Free { expiries: 0 };
    for algorithm in ["chang-roberts", "ring-active-list", "ring-all-ids"] {
        for initiators in ["[1]", "[1, 3]", "\"all\""] {
            let text = format!(
                "algorithm = \"{algorithm}\"\nmode = \"textbook\"\nmembers = 4\n\
                 initiators = {initiators}\nfifo = true"
            );
            models.push((case(&text), calm(nothing, &AT_REST), None));
        }
    }
    let starved = "algorithm = \"ring-all-ids\"\nmode = \"os-textbook-absorb\"\nmembers = 3\n\
                   initiators = [1, 2]\nfifo = true";
    models.push((
        case(starved),
        calm(nothing, &[Property::Termination]),
        Some(Property::Termination),
    ));
    for (initiators, expiries, broken) in [
        ("[1]", 1, Some(Property::OneLeader)),
        ("[1, 2]", 1, Some(Property::OneLeader)),
        ("[1]", 2, Some(Property::OneLeader)),
        ("[3]", 1, None),
        ("[3]", 2, None),
    ] {
        let text = format!(
            "algorithm = \"bully\"\nmode = \"textbook\"\nmembers = 3\ninitiators = {initiators}"
        );
        models.push((case(&text), calm(Timers::Free { expiries }, &AT_REST), broken));
    }
    models
}

#[test]
fn verdicts_agree_with_and_without_reduction() {
    for (case, rules, expected) in models() {
        let whole = explore(&case, &rules, &plan(false, 1));
        assert_eq!(verdict(&whole), expected, "{:?} {rules:?}", case.algorithm);
        for threads in [1, 2] {
            let reduced = explore(&case, &rules, &plan(true, threads));
            assert_eq!(verdict(&reduced), expected, "{:?} reduced, {rules:?}", case.algorithm);
            assert!(reduced.progress.states <= whole.progress.states || expected.is_some());
        }
    }
}

#[test]
fn what_is_found_is_the_same_on_one_thread_and_on_two() {
    let text = "algorithm = \"bully\"\nmode = \"textbook\"\nmembers = 4\nleader = 4";
    let timers = Timers::Bounded { tick: TICK, detection: 2 };
    let budget = Budget { crashes: 1, restarts: 1, ..Budget::default() };
    let rules = Rules { budget, ..calm(timers, &AT_REST) };
    let one = explore(&case(text), &rules, &plan(false, 1));
    let two = explore(&case(text), &rules, &plan(false, 2));
    assert!(one.violation.is_some());
    assert_eq!(one.violation, two.violation);
}
