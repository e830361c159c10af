//! The lock service under random faults: what it promises holds whatever crashes, pauses, is cut off or lost, as long as no
//! clock is off by more than the drift.

use doyen_sim::metrics::Ended;
use doyen_sim::run;
use doyen_sim::scenario::{Case, Scenario};
use proptest::prelude::*;
use proptest::sample::select;

/// A fault, and the time in milliseconds after which it is over.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// Of a member, which comes up again.
    Crash(u32),
    Pause(u32),
    /// Of a member from all others.
    CutOff(u32),
    /// In thousandths of the true rate.
    Clock(u32, u32),
}

fn trouble() -> impl Strategy<Value = (Trouble, u32, u32)> {
    let member = || 1..=5_u32;
    let what = prop_oneof![
        member().prop_map(Trouble::Crash),
        member().prop_map(Trouble::Pause),
        member().prop_map(Trouble::CutOff),
        (member(), 905..=1095_u32).prop_map(|(member, rate)| Trouble::Clock(member, rate)),
    ];
    (what, 0..400_u32, 1..250_u32)
}

fn faults(all: &[(Trouble, u32, u32)]) -> String {
    let mut text = String::new();
    for &(what, at, lasting) in all {
        let end = at + lasting;
        text += &match what {
            Trouble::Crash(member) => format!(
                "[[fault]]\nat = \"{at}ms\"\ncrash = {member}\n[[fault]]\nat = \"{end}ms\"\nrestart = {member}\n"
            ),
            Trouble::Pause(member) => {
                format!("[[fault]]\nat = \"{at}ms\"\npause = {member}\nfor = \"{lasting}ms\"\n")
            }
            Trouble::CutOff(member) => format!(
                "[[fault]]\nat = \"{at}ms\"\npartition = [[{member}]]\n[[fault]]\nat = \"{end}ms\"\nheal = true\n"
            ),
            Trouble::Clock(member, rate) => {
                let rate = f64::from(rate) / 1000.0;
                format!("[[fault]]\nat = \"{at}ms\"\nclock = {member}\nrate = {rate}\n")
            }
        };
    }
    text
}

fn case(mode: &str, seed: u64, loss: &str, hold: &str, troubles: &str) -> Case {
    let text = format!(
        "algorithm = \"lock-service\"\nmode = \"{mode}\"\nmembers = 5\nleader = 5\nrequests = \"all\"\nrepeat = 3\n\
         hold = \"{hold}\"\nthink = \"exp:5ms\"\ndelay = \"uniform:0.1ms..1ms\"\nloss = {loss}\nseed = {seed}\n{troubles}"
    );
    Scenario::from_toml("test", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

proptest! {
    #[test]
    fn never_two_are_inside_and_fences_rise(
        troubles in proptest::collection::vec(trouble(), 0..8),
        loss in select(vec!["0.0", "0.02", "0.2"]),
        hold in select(vec!["1ms", "uniform:0ms..60ms", "exp:30ms"]),
        seed in any::<u32>(),
    ) {
        let case = case("hardened", seed.into(), loss, hold, &faults(&troubles));
        let outcome = run::run(&case, None);
        let run = outcome.exclusion.expect("an exclusion");
        prop_assert!(run.broken.is_empty(), "{:?} {troubles:?}", run.broken);
        prop_assert_eq!(outcome.overlap.as_nanos(), 0, "two leaders at once");
        if outcome.ended == Ended::Quiet {
            prop_assert_eq!(run.waiting, []);
        }
    }
}

/// A test that cannot fail is none: without what makes a failover safe, the same faults let two in.
#[test]
fn an_empty_table_is_noticed() {
    let crash = faults(&[(Trouble::Crash(5), 8, 300), (Trouble::CutOff(1), 8, 300)]);
    let found = (0..20).any(|seed| {
        let case = case("empty-table", seed, "0.0", "60ms", &crash);
        !run::run(&case, None).exclusion.expect("an exclusion").broken.is_empty()
    });
    assert!(found, "no seed lets two in");
}
