//! A check can begin anywhere in a simulation.

use doyen_check::budget::Budget;
use doyen_check::property::Property;
use doyen_check::search::{Limits, Plan};
use doyen_check::{Report, Rules, Timers};
use doyen_core::time::Span;
use doyen_sim::scenario::Scenario;
use doyen_sim::time::Time;

fn explore(scenario: &str, from: Option<&str>) -> Report {
    let case = Scenario::from_toml("test", scenario).expect("a scenario that makes sense");
    let at = |text: &str| Time(text.parse::<Span>().expect("a time").as_nanos());
    let rules = Rules {
        budget: Budget::default(),
        timers: Timers::usual(&case),
        fifo: case.network.fifo,
        properties: Property::USUAL.to_vec(),
        from: from.map(at),
        scope: None,
    };
    let plan = Plan { reduce: false, threads: 1, limits: Limits::default() };
    doyen_check::check(&case, &rules, &plan, &|_| true)
}

const BULLY: &str = "algorithm = 'bully'\nmembers = 3\ninitiators = [1]\nbound = '1ms'\ndelay = 'uniform:0.5ms..1ms'";

#[test]
fn from_the_beginning_it_is_the_whole_check() {
    for scenario in
        [BULLY, "algorithm = 'chang-roberts'\nmembers = 5\ninitiators = 'all'\nfifo = true"]
    {
        let whole = explore(scenario, None);
        assert_eq!(whole.violation, None);
        assert_eq!(
            explore(scenario, Some("0")).progress.states,
            whole.progress.states,
            "{scenario}"
        );
    }
}

#[test]
fn the_later_it_begins_the_less_is_left() {
    let states = |from| {
        let report = explore(BULLY, Some(from));
        assert_eq!((report.violation, report.limit), (None, None), "from {from}");
        report.progress.states
    };
    let left = ["0", "1ms", "2ms", "9ms"].map(states);
    assert!(left.is_sorted_by(|one, other| one > other), "{left:?}");
    assert_eq!(left[3], 1, "by then it is over");
}

/// 5 has died in the simulation; nobody has noticed when the check begins.
#[test]
fn what_has_gone_wrong_before_has_gone_wrong() {
    let scenario = "algorithm = 'bully'\nmode = 'hardened'\nmembers = 3\nleader = 3\n\
                    [[fault]]\nat = '2ms'\ncrash = 3";
    let report = explore(scenario, Some("3ms"));
    assert_eq!((report.violation, report.limit), (None, None));
    assert!(report.progress.states > 100, "{:?}", report.progress);
}
