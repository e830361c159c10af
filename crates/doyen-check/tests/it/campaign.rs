//! Goal: hardened mode keeps its promises whatever goes wrong. Method: a share of the campaign that `make campaign`
//! makes, every algorithm in turn. And the campaign itself finds what is known to be broken.

use doyen_check::campaign::{self, Campaign, shrink};
use doyen_check::property::Property;
use doyen_core::config::Mode;
use doyen_core::registry::Algorithm;
use doyen_sim::scenario::Scenario;

/// Two fifths of them are elections, the others mutual exclusion and services.
const RUNS: u64 = 2_400;

#[test]
fn hardened_algorithms_bear_every_storm() {
    let report = campaign::run(&Campaign::new(Scenario::default(), RUNS, 1), |_| true).unwrap();
    assert_eq!(report.failures, [], "`doyen check --random --seed 1 --run NUMBER` repeats a run");
    assert_eq!(report.runs, RUNS);
    assert_eq!(report.by_algorithm.len(), Algorithm::ALL.len());
    // A campaign in which nothing happens would prove nothing.
    for kind in [
        "crash",
        "restart",
        "restart without disk",
        "pause",
        "clock",
        "cut",
        "mend",
        "partition",
        "heal",
        "false suspicion",
    ] {
        assert!(report.faults.get(kind).is_some_and(|&count| count > RUNS / 20), "{kind}");
    }
    assert!(report.elections > RUNS / 2 && report.leader_changes > RUNS / 4);
    assert!(report.entries > RUNS, "{}", report.entries);
}

/// Nobody promises that two partitions never have a leader each: what is asked for after every event is found.
#[test]
fn two_leaders_at_once_are_found_where_they_are_asked_for() {
    for property in [Property::OneLeader, Property::OneLeaderPerTerm] {
        let asked = Campaign {
            properties: Some(vec![property]),
            patience: 1,
            ..Campaign::new(Scenario::default(), RUNS, 1)
        };
        let report = campaign::run(&asked, |_| true).unwrap();
        let failure = &report.failures[0];
        assert_eq!((failure.breach.property, failure.breach.evidence.len()), (property, 2));
        let shrunk = shrink::shrink(&failure.scenario, property, 2_000, &|| true).unwrap();
        let (members, faults) = size(&shrunk.scenario);
        assert!(members <= 3 && faults <= 2, "{property}: {members} members, {faults} faults");
    }
}

/// How many members and faults there are.
fn size(scenario: &Scenario) -> (usize, usize) {
    (scenario.resolve().unwrap().members().len(), scenario.fault.len())
}

#[test]
fn textbook_algorithms_fail_and_their_failures_become_small() {
    for algorithm in Algorithm::OF_SOURCES {
        let base = Scenario {
            algorithm: Some(algorithm),
            mode: Some(Mode::Textbook),
            ..Scenario::default()
        };
        let textbook = Campaign { patience: 1, ..Campaign::new(base, RUNS, 1) };
        let report = campaign::run(&textbook, |_| true).unwrap();
        let failure = report.failures.first().unwrap_or_else(|| panic!("{algorithm} never fails"));
        let shrunk =
            shrink::shrink(&failure.scenario, failure.breach.property, 2_000, &|| true).unwrap();
        assert_eq!(shrunk.breach.property, failure.breach.property);
        // The modified bully fails once in a thousand runs: much must come together for that.
        let (most_members, most_faults) =
            if algorithm == Algorithm::ModifiedBully { (5, 7) } else { (3, 4) };
        let (members, faults) = size(&shrunk.scenario);
        let is_small = members <= most_members && faults <= most_faults;
        assert!(is_small, "{algorithm}: {members} members, {faults} faults left");
    }
}
