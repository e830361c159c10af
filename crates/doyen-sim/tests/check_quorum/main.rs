//! The quorum, explored: the votes to the end; leases and promises, and the whole, as deep as a test has time for. See
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
    let once = |subject: Subject| Subject { faults: 1, ..subject };
    for subject in [once(Subject::votes(3, 2)), Subject::votes(3, 3), Subject::votes(4, 2)] {
        let report = explore(&subject, true, None);
        assert_eq!((report.limit, broken(&report)), (None, None), "{subject:?}");
    }
}

#[test]
fn leases_wrong_clocks_and_the_whole_are_safe_as_far_as_a_test_goes() {
    let leases = Subject::leases(3, 2);
    let wrong_clocks = Subject { drift: 200, ..leases };
    for subject in [leases, wrong_clocks, Subject::whole(3, 2)] {
        let report = explore(&subject, true, Some(100_000));
        assert_eq!(broken(&report), None, "{subject:?}");
    }
}

/// With one term there is an end to both ways.
#[test]
fn with_and_without_reductions_everything_is_seen_and_holds() {
    for subject in [Subject::votes(3, 1), Subject::votes(2, 2)] {
        let [all, fewer] = [false, true].map(|reduce| explore(&subject, reduce, None));
        for report in [&all, &fewer] {
            assert_eq!((report.limit, broken(report)), (None, None), "{subject:?}");
        }
        let (all, fewer) = (all.progress.states, fewer.progress.states);
        assert!(fewer * 3 < all * 2, "{subject:?}: {fewer} of {all} states");
    }
}

/// Without `rule` it breaks `property`; says in how many steps.
fn is_missed(rule: Rule, property: Property, subject: Subject, reduce: bool) -> usize {
    let subject = Subject { without: Some(rule), asked: Some(property), faults: 1, ..subject };
    let violation = explore(&subject, reduce, None).violation;
    let found = violation.as_ref().map(|violation| violation.property);
    assert_eq!(found, Some(property), "without {rule:?}");
    violation.map_or(0, |violation| violation.path.len())
}

/// That is so in the same number of steps whether messages last, or arrive once and are counted; and whether everything
/// is explored or what makes no difference is left out.
fn is_missed_in_any_way(rule: Rule, property: Property, subject: Subject) {
    let counted = Subject { lossy: false, ..subject };
    let steps = [(counted, false), (subject, false), (subject, true)]
        .map(|(subject, reduce)| is_missed(rule, property, subject, reduce));
    assert_eq!(steps, [steps[0]; 3], "without {rule:?}");
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
        is_missed_in_any_way(rule, Property::OneLeaderPerTerm, Subject::votes(3, 2));
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
        is_missed(rule, Property::OneLeader, Subject::leases(3, 2), true);
    }
    is_missed_in_any_way(Rule::Majority, Property::OneLeader, Subject::leases(3, 2));
}

#[test]
fn a_rule_less_breaks_a_promise_or_lets_somebody_lead_whom_nobody_elected() {
    for (rule, property) in [
        (Rule::Promise, Property::PromisesKept),
        (Rule::Quarantine, Property::PromisesKept),
        (Rule::Majority, Property::LeasesRise),
        (Rule::TermIsStored, Property::LeasesRise),
    ] {
        is_missed(rule, property, Subject::leases(3, 2), true);
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
        "a lease of 17.181818ms is not a whole number of ticks of 1ms, in which clocked timers go; promise = \"22ms\" under [quorum] in a scenario would do"
    );
    assert_eq!(
        refusal("24.5ms", clocked).unwrap(),
        "a promise of 24.5ms is not a whole number of ticks of 1ms, in which clocked timers go; promise = \"33ms\" under [quorum] in a scenario would do"
    );
    assert_eq!(refusal("21ms", Timers::Bounded { tick: TICK, detection: 2 }), None);
}
