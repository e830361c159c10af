//! Goal: snapshots are consistent on channels that keep the order and not without, and a sequencer loses over a failover what
//! it is said to lose. Method: random runs, and explorations of elections of which a snapshot is taken.

use doyen_check::budget::Budget;
use doyen_check::campaign::{self, Campaign};
use doyen_check::property::Property;
use doyen_check::search::{Limits, Plan};
use doyen_check::{Rules, Timers, check};
use doyen_core::config::{Mode, Variant};
use doyen_core::registry::Algorithm;
use doyen_sim::scenario::Scenario;

fn random(algorithm: Algorithm, mode: Mode, property: Property, runs: u64) -> campaign::Report {
    let base = Scenario { algorithm: Some(algorithm), mode: Some(mode), ..Scenario::default() };
    let properties = Some(vec![property]);
    let asked = Campaign { properties, patience: usize::MAX, ..Campaign::new(base, runs, 1) };
    campaign::run(&asked, |_| true).unwrap()
}

#[test]
fn every_snapshot_of_a_bank_is_consistent_if_links_keep_the_order() {
    let report = random(Algorithm::Bank, Mode::Textbook, Property::ConsistentCut, 600);
    assert_eq!(report.failures, []);
    assert!(report.messages > 600, "there were payments: {}", report.messages);
}

#[test]
fn a_snapshot_of_a_bank_loses_or_makes_money_if_links_do_not_keep_the_order() {
    let base =
        Scenario { algorithm: Some(Algorithm::Bank), fifo: Some(false), ..Scenario::default() };
    let asked = Campaign { patience: 1, ..Campaign::new(base, 600, 1) };
    let report = campaign::run(&asked, |_| true).unwrap();
    assert_eq!(report.failures[0].breach.property, Property::ConsistentCut);
}

/// The reference program finds what a crashed member delivered lost in 36 of 600 runs of the eager sequencer, and its order
/// contradicted in 67; live members are reset if only a majority is asked. Schedules are drawn in another way here.
#[test]
fn what_an_eager_sequencer_delivered_is_lost_over_a_failover_and_a_stable_one_loses_nothing() {
    let eager = Mode::Textbook;
    let majority = Mode::Literal(Variant::CollectsMajority);
    for mode in [eager, majority, Mode::Hardened] {
        for property in [Property::TotalOrder, Property::NoDuplicates] {
            let report = random(Algorithm::Sequencer, mode, property, 300);
            assert_eq!(report.failures, [], "{mode} {property}");
        }
    }
    let stays = Property::DeliveriesStay;
    for mode in [eager, majority] {
        let report = random(Algorithm::Sequencer, mode, stays, 300);
        assert!(report.failures.len() > 3, "{mode}: {} of 300", report.failures.len());
    }
    let report = random(Algorithm::Sequencer, Mode::Hardened, stays, 1_000);
    assert_eq!(report.failures, []);
    assert!(report.faults.get("crash").is_some_and(|&count| count >= 1_000));
}

/// Checks a bully of three members, one of which starts a snapshot.
fn explored(fifo: bool) -> doyen_check::Report {
    let text = "algorithm = \"bully\"\nmembers = 3\ninitiators = [2]";
    let case = Scenario::from_toml("test", text).unwrap();
    let rules = Rules {
        budget: Budget { snapshots: 1, ..Budget::default() },
        timers: Timers::Free { expiries: 1 },
        fifo,
        properties: vec![Property::ConsistentCut],
        from: None,
        scope: None,
    };
    let plan = Plan { reduce: true, threads: 1, limits: Limits::default() };
    check(&case, &rules, &plan, &|_| true)
}

#[test]
fn a_snapshot_of_an_election_is_consistent_exactly_if_links_keep_the_order() {
    let report = explored(true);
    assert_eq!((report.violation, report.limit), (None, None));
    assert!(report.progress.states > 100, "{:?}", report.progress);
    let violation = explored(false).violation.expect("a marker overtakes a message");
    assert_eq!(violation.property, Property::ConsistentCut);
}
