//! The reductions of bounded timers leave out nothing that matters: whatever the algorithm, the mode and the budget, each
//! property holds with them if and only if it holds without them.
//!
//! Hardened algorithms must hold, which a reduction that leaves out too much would pass; textbook algorithms with
//! faults break agreement, validity and termination, the last in runs that never end, and literal readings break more.
//! A reduction that loses such a run fails here.

use doyen_check::budget::Budget;
use doyen_check::property::Property;
use doyen_check::search::{Limits, Plan};
use doyen_check::{Report, Rules, Timers};
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_sim::scenario::{Case, Initiator, Initiators, MemberList, Scenario};

const NOTHING: Budget = Budget::NOTHING;
const CRASH: Budget = Budget { crashes: 1, ..NOTHING };
const LOSS: Budget = Budget { losses: 1, ..NOTHING };
const SUSPICION: Budget = Budget { suspicions: 1, ..NOTHING };
const DUPLICATION: Budget = Budget { duplications: 1, ..NOTHING };

/// Hardened algorithms with one fault have fewer states. A textbook algorithm that has more is not compared.
const MOST_STATES: u64 = 200_000;

/// What is asked about one by one, so that one broken property does not hide another.
const ASKED: [Property; 4] =
    [Property::Agreement, Property::Validity, Property::Termination, Property::OneLeader];

/// Three members. `initiators` have called an election; if nobody has, the highest member leads.
fn case(algorithm: Algorithm, mode: &str, initiators: &[u32]) -> Case {
    let called = initiators.iter().copied().map(Initiator::AtOnce);
    let scenario = Scenario {
        algorithm: Some(algorithm),
        mode: Some(mode.parse().unwrap()),
        members: Some(MemberList::Count(3)),
        leader: initiators.is_empty().then_some(3),
        initiators: (!initiators.is_empty()).then(|| Initiators::Listed(called.collect())),
        ..Scenario::default()
    };
    scenario.resolve().unwrap_or_else(|error| panic!("{algorithm}: {error}"))
}

fn explore(case: &Case, budget: Budget, fifo: bool, property: Property, reduce: bool) -> Report {
    let timers = Timers::Bounded { tick: Span::from_millis(1), detection: 2 };
    // An orphan's token that goes round for ever and grows has no end of states: it is stopped when it is too long.
    let properties = vec![property, Property::BoundedMessages];
    let rules = Rules { budget, timers, fifo, properties, from: None, scope: None };
    let limits = Limits { states: Some(MOST_STATES), ..Limits::default() };
    // With one thread it is always the same state at which a search stops.
    let plan = Plan { reduce, threads: 1, limits };
    doyen_check::check(case, &rules, &plan, &|_| true)
}

/// Explores a model both ways; says which properties are broken, and how many states there were with and without.
fn compare(case: &Case, budget: Budget, fifo: bool) -> (Vec<Property>, [u64; 2]) {
    let mut broken = Vec::new();
    let mut states = [0, 0];
    for property in ASKED {
        let [reduced, whole] =
            [true, false].map(|reduce| explore(case, budget, fifo, property, reduce));
        let about = format!("{}, {}, {budget}, {property}", case.algorithm, case.config.mode);
        if whole.limit.is_some() {
            continue;
        }
        assert_eq!(reduced.limit, None, "{about}");
        assert_eq!(reduced.violation.is_some(), whole.violation.is_some(), "{about}");
        if let Some(violation) = whole.violation {
            broken.push(violation.property);
        } else {
            states = [reduced.progress.states, whole.progress.states];
        }
    }
    (broken, states)
}

#[test]
fn textbook_verdicts_agree() {
    let mut found = Vec::new();
    for algorithm in Algorithm::OF_SOURCES {
        for (initiators, budget) in
            [(&[][..], CRASH), (&[1], CRASH), (&[1, 2], LOSS), (&[1], SUSPICION)]
        {
            let case = case(algorithm, "textbook", initiators);
            found.extend(compare(&case, budget, true).0);
        }
    }
    for property in [Property::Agreement, Property::Validity, Property::Termination] {
        let times = found.iter().filter(|&&it| it == property).count();
        assert!(times >= 5, "{property} is broken only {times} times: this shows little");
    }
}

#[test]
fn literal_verdicts_agree() {
    for (algorithm, mode) in [
        (Algorithm::Bully, "cs677-no-t2"),
        (Algorithm::Bully, "notes-one-timer"),
        (Algorithm::Bully, "naive-ok"),
        (Algorithm::ModifiedBully, "kordafshari-literal-timers"),
        (Algorithm::ModifiedBully, "kordafshari-figure4"),
        (Algorithm::RingAllIds, "os-textbook-absorb"),
    ] {
        for budget in [NOTHING, CRASH] {
            compare(&case(algorithm, mode, &[1, 2]), budget, true);
        }
    }
}

#[test]
fn hardened_verdicts_agree_and_there_is_less_to_explore() {
    for algorithm in Algorithm::OF_SOURCES {
        for budget in [CRASH, SUSPICION, DUPLICATION] {
            let case = case(algorithm, "hardened", &[]);
            let (broken, [reduced, whole]) = compare(&case, budget, true);
            // Only a majority could prevent two leaders at one instant.
            let promised = |property: &&Property| **property != Property::OneLeader;
            assert_eq!(broken.iter().find(promised), None, "{algorithm}, {budget}");
            assert!(reduced > 0 && reduced <= whole, "{algorithm}, {budget}: {reduced} of {whole}");
        }
    }
}

/// Where messages overtake each other there is less to leave out.
#[test]
fn verdicts_agree_where_messages_overtake_each_other() {
    for algorithm in [Algorithm::Bully, Algorithm::ModifiedBully] {
        for mode in ["textbook", "hardened"] {
            compare(&case(algorithm, mode, &[1, 2]), CRASH, false);
        }
    }
}
