//! Goal: the quorum keeps its promises whatever goes wrong. Method: a share of the campaign that `make campaign` makes,
//! with every invariant judged after every event, and how long groups were without a lease afterwards.

use doyen_check::campaign::{self, Campaign};
use doyen_check::oracle::{self, Oracle};
use doyen_check::property::Property;
use doyen_core::config::Mode;
use doyen_core::registry::Algorithm;
use doyen_sim::scenario::Scenario;

/// `make campaign` makes a million of them.
const RUNS: u64 = 2_000;

#[test]
fn a_quorum_bears_every_storm() {
    let base = Scenario { algorithm: Some(Algorithm::Quorum), ..Scenario::default() };
    let report = campaign::run(&Campaign::new(base, RUNS, 1), |_| true).unwrap();
    assert_eq!(
        report.failures,
        [],
        "`doyen check --random --algorithm quorum --seed 1 --run NUMBER` repeats a run"
    );
    assert_eq!((report.runs, report.undecided), (RUNS, 0));
    // A campaign in which nothing happens would prove nothing.
    for (kind, least) in [
        ("crash", RUNS),
        ("restart", RUNS),
        ("restart without disk", RUNS / 20),
        ("restart with another pace", RUNS / 10),
        ("restart at another address", RUNS / 100),
        ("replacement, old process hangs", RUNS / 100),
        ("replacement, old process runs on", RUNS / 100),
        ("copy", RUNS / 100),
        ("restart with a copied disk", RUNS / 100),
        ("changing attribute", RUNS / 10),
        ("pause", RUNS),
        ("clock", RUNS),
        ("cut", RUNS / 2),
        ("partition", RUNS / 2),
        ("link override", RUNS),
        ("command", RUNS),
    ] {
        let count = report.faults.get(kind).copied().unwrap_or_default();
        assert!(count >= least, "{kind}: {count}");
    }
    for feature in ["witnesses", "members with their own pace", "several lost disks"] {
        let runs = report.drawn.get(feature).copied().unwrap_or_default();
        assert!(runs >= RUNS / 50, "{feature}: {runs}");
    }
    assert!(report.elections > RUNS && report.leader_changes > RUNS);
    // L1: 99.9 % of the runs keep it, and all of them three times as much.
    let (enough, worst) = (report.first_leases.enough_for(999), report.first_leases.worst());
    assert!(enough <= 100, "{enough} % of L1");
    assert!(worst.is_some_and(|worst| worst.share() <= 300), "{worst:?}");
}

/// A leader dies in bad weather, and its heartbeats arrive for as long as that keeps them. Everybody follows it until the
/// last of them has come: nobody may be blamed before.
#[test]
fn what_the_dead_have_said_may_arrive_late() {
    let text = r#"
        algorithm = "quorum"
        members = 3
        heartbeat = "2ms"
        quorum = { vote_lease = "37.142857ms" }
        fault = [
            { at = "0s", link = { delay = "uniform:100us..148.8ms", share = 0.4 } },
            { at = "400ms", crash = 3 },
            { at = "400ms", heal = true },
        ]
    "#;
    let case = Scenario::from_toml("test", text).unwrap();
    let mut oracle = Oracle::of(&case, &Property::usual_of(Algorithm::Quorum, Mode::Hardened));
    let outcome = oracle::judge(&case, None, &mut oracle);
    assert_eq!(oracle.breach(), None);
    let leaders = outcome.views.iter().flatten().map(|view| view.leader.map(|id| id.0));
    assert_eq!(leaders.collect::<Vec<_>>(), [Some(2), Some(2)]);
}
