//! Goal: a lease that is not covered by a majority is found in the run in which it is published, not only when a second
//! leader makes use of it. Method: take away each rule that leases rest on, and look how soon random runs break
//! `leases-covered`; with all rules the same runs must not.

use doyen_check::campaign::Campaign;
use doyen_check::oracle::{self, Oracle};
use doyen_check::property::Property;
use doyen_core::config::rules::Rule;
use doyen_core::registry::Algorithm;
use doyen_sim::scenario::{Case, Scenario};

fn is_covered(scenario: &Scenario, without: Option<Rule>) -> bool {
    let mut case = scenario.resolve().unwrap();
    if let Some(rule) = without {
        case.config.quorum.rules = case.config.quorum.rules.without(rule);
    }
    let mut oracle = Oracle::of(&case, &[Property::LeasesCovered]);
    oracle::judge(&case, None, &mut oracle);
    oracle.breach().is_none()
}

#[test]
fn what_leases_rest_on_is_missed_within_a_few_runs() {
    let base = Scenario { algorithm: Some(Algorithm::Quorum), ..Scenario::default() };
    for (rule, most) in [
        (Rule::Majority, 20),
        (Rule::VoteLease, 3),
        (Rule::HoldDown, 200),
        (Rule::HoldDownIsLongest, 1_000),
        (Rule::VoteLeaseAsRequested, 100),
        (Rule::LeaseFromSending, 3),
        (Rule::DriftMargin, 3),
        (Rule::VoteIsNoLease, 3),
        (Rule::NoStaleHeartbeat, 1_000),
        (Rule::LeaseEndsBeforeTransfer, 100),
    ] {
        let campaign = Campaign::new(base.clone(), most, 1);
        let scenario = |run| campaign.scenario(run).unwrap();
        let found = (1..=most).find(|&run| !is_covered(&scenario(run), Some(rule)));
        let found = found.unwrap_or_else(|| panic!("{rule:?} is not missed in {most} runs"));

        assert!(is_covered(&scenario(found), None), "run {found}, with all rules");
    }
}

/// A member that restarts with another profile observes the longest vote lease that it has given: if it did not, two
/// members would lead at once.
#[test]
fn a_restart_with_a_shorter_vote_lease_needs_the_longest_hold_down() {
    let path = "../../scenarios/quorum/a-restart-with-a-shorter-vote-lease.toml";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(path).unwrap();
    let scenario = Scenario::parse("test", &text).unwrap();
    let mut case = scenario.resolve().unwrap();
    let overlaps = |case: &Case| {
        let mut oracle = Oracle::of(case, &[Property::OneLeader]);
        oracle::judge(case, None, &mut oracle);
        oracle.breach().is_some()
    };
    assert!(is_covered(&scenario, None) && !overlaps(&case));
    assert!(!is_covered(&scenario, Some(Rule::HoldDownIsLongest)));
    case.config.quorum.rules = case.config.quorum.rules.without(Rule::HoldDownIsLongest);
    assert!(overlaps(&case));
}
