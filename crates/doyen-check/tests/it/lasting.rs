//! Goal: faults that last keep no quorum from having a leader, nor make it change leaders again and again, as long as a
//! majority is connected. Method: a share of the lasting campaign that `make campaign` makes.

use doyen_check::campaign::{self, Campaign, premise};
use doyen_check::oracle::{self, Oracle};
use doyen_check::property::Property;
use doyen_core::config::rules::Rule;
use doyen_sim::scenario::Scenario;

const RUNS: u64 = 600;

fn campaign(runs: u64) -> Campaign {
    Campaign { lasting: true, ..Campaign::new(Scenario::default(), runs, 1) }
}

#[test]
fn a_connected_majority_has_a_leader_that_stays() {
    let report = campaign::run(&campaign(RUNS), |_| true).unwrap();
    let again = "`doyen check --random --lasting --seed 1 --run NUMBER` repeats a run";
    assert_eq!(report.failures, [], "{again}");
    assert_eq!((report.runs, report.undecided), (RUNS, 0));
    // A campaign in which nothing happens would prove nothing.
    for (kind, least) in
        [("lasting cut", RUNS), ("crash", RUNS / 10), ("changing attribute", RUNS / 20)]
    {
        let count = report.faults.get(kind).copied().unwrap_or_default();
        assert!(count >= least, "{kind}: {count}");
    }
    assert!(report.first_leases.worst().is_some_and(|worst| worst.share() <= 300));
}

#[test]
fn what_is_drawn_lasts_and_leaves_a_majority_connected() {
    for run in 1..=200 {
        let scenario = campaign(200).scenario(run).unwrap();
        assert!(premise::lasts(&scenario.resolve().unwrap()), "run {run}");
    }
    let text = |cuts: &str| format!("algorithm = \"quorum\"\nmembers = 3\nfault = [{cuts}]");
    let lasts = |cuts: &str| {
        let scenario = Scenario::parse("test", &text(cuts)).unwrap();
        premise::lasts(&scenario.resolve().unwrap())
    };
    assert!(lasts("{ at = \"1ms\", cut = [1, 2] }, { at = \"1ms\", cut = [2, 3] }"));
    // One way is not enough for anybody.
    assert!(!lasts(
        "{ at = \"1ms\", cut = [1, 2] }, { at = \"1ms\", cut = [2, 3] }, { at = \"1ms\", cut = [3, 1] }"
    ));
    assert!(!lasts("{ at = \"1ms\", cut = [1, 2] }, { at = \"2ms\", heal = true }"));
}

/// A group of three that nobody can lead is found.
#[test]
fn a_group_without_a_leader_is_found() {
    let broken = |text: &str| {
        let case = Scenario::from_toml("test", text).unwrap();
        let mut oracle = Oracle::of(&case, &Property::LASTING);
        oracle::judge(&case, None, &mut oracle);
        oracle.breach().map(|breach| breach.property)
    };
    let apart = r#"
        algorithm = "quorum"
        members = 3
        leader = 3
        fault = [{ at = "20ms", partition = [[1], [2], [3]] }]
    "#;
    // The lease that ran when it fell apart is over, and none has followed.
    assert_eq!(broken(apart), Some(Property::SteadyLeader));
    let never = r#"
        algorithm = "quorum"
        members = 3
        fault = [{ at = "0", partition = [[1], [2], [3]] }]
    "#;
    assert_eq!(broken(never), Some(Property::LeaderInTime));
    let whole = r#"
        algorithm = "quorum"
        members = 3
        leader = 3
        fault = [{ at = "20ms", crash = 3 }]
    "#;
    assert_eq!(broken(whole), None);
}

/// Where half of the members are enough, leaders replace each other again and again.
#[test]
fn a_leader_that_changes_for_ever_is_found() {
    let campaign = campaign(RUNS);
    let finds = |rule: Rule| {
        (1..=RUNS).any(|run| {
            let mut case = campaign.scenario(run).unwrap().resolve().unwrap();
            case.config.quorum.rules = case.config.quorum.rules.without(rule);
            let mut oracle = Oracle::of(&case, &[Property::SteadyLeader]);
            oracle::judge(&case, None, &mut oracle);
            oracle.breach().is_some()
        })
    };
    assert!(finds(Rule::Majority));
}
