//! The quorum, explored: the votes to the end, leases and promises, and the whole, as deep as a test has time for. See
//! `subject.rs` for what that is. `make check-quorum` goes on for longer.
//!
//! A search that finds nothing proves little unless it finds something where something is wrong. So every rule is taken
//! away on which votes or leases rest, and every search must notice; and it must notice the same with every
//! reduction and without.

mod subject;

use doyen_core::algorithm::quorum::rules::Rule;
use doyen_core::time::Span;
use doyen_sim::check::budget::Budget;
use doyen_sim::check::property::Property;
use doyen_sim::check::search::{Limits, Plan};
use doyen_sim::check::{self, Report, Rules, Timers};
use doyen_sim::scenario::Scenario;

use subject::Subject;

/// `D` of the usual scenario.
const TICK: Span = Span::from_millis(1);

fn explore(subject: &Subject, reduce: bool, states: Option<u64>) -> Report {
    let report = subject.explore(reduce, Limits { states, ..Limits::default() }, &|_| {});
    println!("{subject:?}, {reduce}: {:?}", report.progress);
    report
}

fn broken(report: &Report) -> Option<Property> {
    report.violation.as_ref().map(|violation| violation.property)
}

#[test]
fn the_voting_rules_are_explored_to_the_end() {
    for subject in [Subject::votes(3, 2), Subject::votes(4, 1), Subject::votes(3, 3)] {
        let report = explore(&subject, true, None);
        assert_eq!((report.limit, broken(&report)), (None, None), "{subject:?}");
    }
}

#[test]
fn leases_and_promises_are_explored_to_the_end() {
    let report = explore(&Subject::leases(3, 2), true, None);
    assert_eq!((report.limit, broken(&report)), (None, None));
}

#[test]
fn wrong_clocks_and_the_whole_are_safe_as_far_as_a_test_goes() {
    let wrong_clocks = Subject { drift: 200, ..Subject::leases(3, 2) };
    for subject in [wrong_clocks, Subject::whole(3, 2)] {
        let report = explore(&subject, true, Some(500_000));
        assert_eq!(broken(&report), None, "{subject:?}");
    }
}

/// Without `rule` it breaks `property`, as far as it is explored: in the same number of steps whether messages last, or
/// arrive once and are counted; and whether everything is explored or what makes no difference is left out.
fn is_missed(rule: Rule, property: Property, subject: Subject) {
    let lasting = Subject { without: Some(rule), asked: Some(property), faults: 1, ..subject };
    let counted = Subject { lossy: false, ..lasting };
    let found = [(counted, false), (lasting, false), (lasting, true)].map(|(subject, reduce)| {
        let violation = explore(&subject, reduce, None).violation;
        violation.map(|violation| (violation.property, violation.path.len()))
    });
    assert_eq!(found[0].map(|found| found.0), Some(property), "without {rule:?}");
    assert_eq!(found, [found[0]; 3], "without {rule:?}");
}

#[test]
fn a_voting_rule_less_makes_two_leaders_of_one_term() {
    for rule in [
        Rule::Majority,
        Rule::TermIsStored,
        Rule::VoteIsStored,
        Rule::OneVoteATerm,
        Rule::VoteCountsInItsTerm,
        Rule::VoteOutlivesOffice,
    ] {
        is_missed(rule, Property::OneLeaderPerTerm, Subject::votes(3, 2));
    }
}

#[test]
fn a_rule_of_leases_less_makes_two_leaders_at_an_instant() {
    for rule in [
        Rule::Majority,
        Rule::Promise,
        Rule::Quarantine,
        Rule::LeaseFromSending,
        Rule::DriftMargin,
        Rule::LeaseBindsItsHolder,
    ] {
        is_missed(rule, Property::OneLeader, Subject::leases(3, 2));
    }
}

/// Nobody has called an election, and nobody who lives wants to lead: that is no calm in which nothing is owed.
#[test]
fn a_quorum_owes_a_leader_without_being_called() {
    let text = "algorithm = \"quorum\"\nmembers = 3\ndead = [3]\ninitiators = \"none\"\n\
                quorum = { reluctant = [1, 2] }";
    let case = Scenario::from_toml("test", text).unwrap();
    let rules = Rules {
        budget: Budget::default(),
        timers: Timers::Bounded { tick: TICK, detection: 2 },
        fifo: false,
        properties: vec![Property::Termination],
        from: None,
    };
    let plan = Plan { depth_first: false, reduce: false, threads: 1, limits: Limits::default() };
    let report = check::check(&case, &rules, &plan, &|_| {});
    let broken = report.violation.map(|violation| violation.property);
    assert_eq!(broken, Some(Property::Termination));
}

/// Rounded up to a tick, a promise would be longer than it is, and a lease as well.
#[test]
fn clocked_timers_take_no_lease_that_is_not_whole_ticks() {
    let refusal = |promise: &str, timers: Timers| {
        let text = format!(
            "algorithm = \"quorum\"\nmembers = 3\nleader = 3\nquorum = {{ promise = \"{promise}\" }}"
        );
        timers.suit(&Scenario::from_toml("test", &text).unwrap()).err()
    };
    let clocked = Timers::Clocked { tick: TICK, drift: 0 };
    assert_eq!(refusal("22ms", clocked), None);
    assert_eq!(
        refusal("21ms", clocked).unwrap(),
        "a lease of 17.181818ms is not a whole number of ticks of 1ms, in which clocked timers go; a promise of 22ms would do"
    );
    assert_eq!(
        refusal("24.5ms", clocked).unwrap(),
        "a promise of 24.5ms is not a whole number of ticks of 1ms, in which clocked timers go; a promise of 33ms would do"
    );
    assert_eq!(refusal("21ms", Timers::Bounded { tick: TICK, detection: 2 }), None);
}
