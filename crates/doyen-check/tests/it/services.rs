//! Goal: snapshots are consistent on channels that keep the order and not without, a sequencer loses over a failover what it is
//! said to lose, and a lock has one holder. Method: random runs, and explorations; then each rule is taken away, and missed.

use doyen_check::budget::Budget;
use doyen_check::campaign::{self, Campaign};
use doyen_check::oracle::{self, Oracle};
use doyen_check::part::{Part, Scope};
use doyen_check::property::Property;
use doyen_check::search::{Limits, Plan};
use doyen_check::selection::Selection;
use doyen_check::{Report, Rules, Timers, check};
use doyen_core::config::exclusion::Reliance;
use doyen_core::config::{Mode, Variant};
use doyen_core::registry::Algorithm;
use doyen_sim::scenario::{Case, Scenario};

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
fn explored(fifo: bool) -> Report {
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

const NOTHING: Budget = Budget::NOTHING;
const CRASH: Budget = Budget { crashes: 1, ..NOTHING };

fn case(text: &str) -> Case {
    let keys = text.replace(' ', "\n");
    Scenario::from_toml("test", &keys).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Checks `case` for `properties`, or for the usual ones.
fn explore(case: &Case, budget: Budget, properties: &[Property], reduce: bool) -> Report {
    let timers = Timers::usual(case);
    let usual = || Selection::explorable(&[], case, budget, timers).unwrap().checked;
    let properties = if properties.is_empty() { usual() } else { properties.to_vec() };
    let (fifo, from, scope) = (case.network.fifo, None, Scope::of(case));
    let rules = Rules { budget, timers, fifo, properties, from, scope };
    rules.suit(case).unwrap_or_else(|error| panic!("{}: {error}", case.algorithm));
    let limits = Limits { states: Some(1_500_000), ..Limits::default() };
    check(case, &rules, &Plan { reduce, threads: 1, limits }, &|_| true)
}

fn broken(report: &Report) -> Option<Property> {
    report.violation.as_ref().map(|violation| violation.property)
}

const EAGER: &str = "algorithm=\"sequencer\" members=3 requests=[1,2]";
const STABLE: &str = "algorithm=\"sequencer\" mode=\"hardened\" members=3 requests=[1,2]";

/// The same of every schedule of three members and two multicasts.
#[test]
fn a_sequencer_is_explored() {
    for (text, budget, states) in [
        (EAGER, NOTHING, 32),
        (EAGER, CRASH, 1_991),
        (STABLE, NOTHING, 496),
        (STABLE, CRASH, 25_214),
    ] {
        let report = explore(&case(text), budget, &[], false);
        assert_eq!((broken(&report), report.limit), (None, None), "{text}, {budget}");
        assert_eq!(report.progress.states, states, "{text}, {budget}");
    }
    let majority = EAGER.replace("members", "mode=\"collects-majority\" members");
    for text in [EAGER, &majority] {
        for reduce in [false, true] {
            let report = explore(&case(text), CRASH, &[Property::DeliveriesStay], reduce);
            assert_eq!(broken(&report), Some(Property::DeliveriesStay), "{text}");
        }
    }
    // One message is enough: at the end, no live member has what the crashed one has delivered.
    let once = EAGER.replace("[1,2]", "[1]");
    let report = explore(&case(&once), CRASH, &[Property::DeliveriesStay], true);
    let path = report.violation.expect("a message is lost").path;
    assert!(
        path.iter().any(|step| step.to_string().starts_with("crash 1")
            || step.to_string().contains("crash after")),
        "{path:?}"
    );
}

#[test]
fn a_rule_of_a_sequencer_that_is_taken_away_is_missed() {
    use Property::{DeliveriesStay, NoDuplicates, TotalOrder};
    let take_over = Budget { campaigns: 1, ..NOTHING };
    for (text, budget, rule, property) in [
        (EAGER, take_over, Reliance::OrderedOnce, NoDuplicates),
        (STABLE, take_over, Reliance::AnsweredTermBinds, TotalOrder),
        (STABLE, CRASH, Reliance::MajorityHasIt, DeliveriesStay),
        (STABLE, CRASH, Reliance::LatestLogWins, DeliveriesStay),
    ] {
        let mut case = case(text);
        let report = explore(&case, budget, &[property], true);
        assert_eq!((broken(&report), report.limit), (None, None), "{text} as it is");
        case.config.exclusion.without = Some(rule);
        let report = explore(&case, budget, &[property], true);
        assert_eq!(broken(&report), Some(property), "{text} without {rule:?}");
    }
}

const BANK: &str = "algorithm=\"bank\" members=3 fifo=true requests=\"all\"";

#[test]
fn a_bank_is_explored_and_a_rule_of_its_snapshot_that_is_taken_away_is_missed() {
    let snapshot = Budget { snapshots: 1, ..NOTHING };
    let mut bank = case(BANK);
    let report = explore(&bank, snapshot, &[], false);
    assert_eq!((broken(&report), report.limit), (None, None));
    assert_eq!(report.progress.states, 4_146);
    let unordered = case(&BANK.replace("true", "false"));
    let report = explore(&unordered, snapshot, &[], true);
    assert_eq!(broken(&report), Some(Property::ConsistentCut));
    for rule in [Reliance::MarkersToAll, Reliance::FirstMarkerCloses, Reliance::MarkerCloses] {
        bank.config.exclusion.without = Some(rule);
        let report = explore(&bank, snapshot, &[], true);
        assert_eq!(broken(&report), Some(Property::ConsistentCut), "without {rule:?}");
    }
    // No member can notice what it has not recorded; that money is missing shows in the snapshot as a whole.
    let base = Scenario { algorithm: Some(Algorithm::Bank), ..Scenario::default() };
    let asked = Campaign::new(base, 100, 1);
    let is_noticed = |run| {
        let mut case = asked.scenario(run).unwrap().resolve().unwrap();
        case.config.exclusion.without = Some(Reliance::OpenChannelsRecord);
        let mut oracle = Oracle::of(&case, &[Property::ConsistentCut]);
        oracle::judge(&case, None, &mut oracle);
        oracle.breach().is_some()
    };
    assert!((1..=asked.runs).any(is_noticed));
}

/// Beneath two leaders, of which the second may be elected at any moment after the lease of the first.
#[test]
fn the_lock_service_is_explored_over_a_failover() {
    let mut scenario = Scope::new(Part::Locks).scenario(3);
    let hardened = scenario.resolve().unwrap();
    let report = explore(&hardened, NOTHING, &[], true);
    assert_eq!((broken(&report), report.limit), (None, None));
    assert_eq!(report.progress.states, 731_292);
    for variant in [Variant::EmptyTable, Variant::SomeClaims] {
        scenario.mode = Some(Mode::Literal(variant));
        let report = explore(&scenario.resolve().unwrap(), CRASH, &[], true);
        assert_eq!(broken(&report), Some(Property::OneInside), "{variant:?}");
    }
}

/// Whatever goes wrong that a quorum tolerates, no two members are inside and fences rise, and in the end all are served.
#[test]
fn random_runs_of_the_lock_service_keep_its_promises() {
    let base = Scenario { algorithm: Some(Algorithm::LockService), ..Scenario::default() };
    let report = campaign::run(&Campaign::new(base.clone(), 300, 1), |_| true).unwrap();
    assert_eq!(report.failures, []);
    assert!(report.entries > 300, "{}", report.entries);
    let mode = Some(Mode::Literal(Variant::EmptyTable));
    let asked = Campaign::new(Scenario { mode, ..base }, 300, 1);
    let report = campaign::run(&Campaign { patience: 1, ..asked }, |_| true).unwrap();
    let found = report.failures.first().map(|failure| failure.breach.property);
    assert_eq!(found, Some(Property::OneInside));
}

/// ME3 in random runs: members tell each other of requests, and those that depend on each other are served in order.
#[test]
fn random_runs_judge_the_order_of_requests() {
    let failures = |algorithm: Algorithm, mode: Mode| {
        let (algorithm, mode, fifo) = (Some(algorithm), Some(mode), Some(true));
        let base = Scenario { algorithm, mode, fifo, ..Scenario::default() };
        let properties = Some(vec![Property::CausalOrder]);
        let asked = Campaign { properties, patience: usize::MAX, ..Campaign::new(base, 500, 1) };
        let report = campaign::run(&asked, |_| true).unwrap();
        let told = report.faults.get("tell").copied().unwrap_or_default();
        assert!(told > 1_000, "{:?}", report.faults);
        report.failures.len()
    };
    assert_eq!(failures(Algorithm::Lamport, Mode::Textbook), 0);
    assert!(failures(Algorithm::SuzukiKasami, Mode::Textbook) > 0);
}
