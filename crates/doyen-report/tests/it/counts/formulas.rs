//! Wherever a closed form is said to apply, it is exact.

use std::collections::BTreeSet;

use doyen_core::registry::Algorithm;
use doyen_report::formula;
use doyen_sim::run;
use doyen_sim::scenario::{Convention, MemberList, Scenario};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::groups::{group, resolve, text};

/// Anything that a closed form could be about, and much that none is about.
fn any_case() -> impl Strategy<Value = Scenario> {
    let delay = select(vec!["1ms", "0.3ms", "uniform:0ms..1ms", "uniform:0.9ms..1ms", "exp:1ms"]);
    let network = (delay, select(vec!["0", "0.1ms", "1ms"]), any::<(bool, bool)>());
    let processing = select(vec![None, None, text("0.1ms"), text("3ms")]);
    let reading = (any::<Index>(), any::<bool>(), any::<bool>(), any::<bool>());
    let chance = (processing, any::<u64>());
    let parts = (select(Algorithm::OF_SOURCES.to_vec()), group(9), network, reading, chance);
    parts.prop_map(|(algorithm, group, network, reading, (processing, seed))| {
        let (delay, window, (fifo, reliable)) = network;
        let (mode, contact_dead, configured, tell_all) = reading;
        let variants = algorithm.variants().iter().map(|variant| variant.name());
        let modes: Vec<&str> = ["textbook", "hardened"].into_iter().chain(variants).collect();
        let configured = configured && group.dead.contains(&group.highest());
        Scenario {
            mode: text(modes[mode.index(modes.len())]),
            convention: configured.then_some(Convention::Configured),
            contact_dead,
            announce: tell_all.then(|| "all".to_owned()),
            delay: text(delay),
            bound: if delay.starts_with("exp") { None } else { text("1ms") },
            processing,
            fifo: fifo.then_some(true),
            reliable,
            window: text(window),
            seed: Some(seed),
            ..group.scenario(algorithm)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn a_closed_form_is_exact_where_it_applies(scenario in any_case()) {
        let case = resolve(&scenario);
        if let Some(formula) = formula::of(&case) {
            let outcome = run::run(&case, None);
            prop_assert_eq!(outcome.messages.total, formula.value, "{:?}, {:?}", formula, outcome);
        }
    }
}

/// cs677 without its guard floods a reliable link: it gives the peer up, and the count is lower than the closed form.
#[test]
fn a_flood_that_a_link_does_not_carry_has_no_closed_form() {
    let case = |members: u64, reliable| {
        let scenario = Scenario {
            algorithm: Some(Algorithm::Bully),
            mode: text("cs677-no-guard"),
            members: Some(MemberList::Count(members)),
            reliable,
            ..Scenario::default()
        };
        let case = resolve(&scenario);
        (formula::of(&case).map(|formula| formula.value), run::run(&case, None).messages.total)
    };
    assert_eq!(case(8, false), (Some(702), 702));
    assert!(matches!(case(8, true), (None, counted) if counted < 702));
    assert!(matches!(case(7, true), (Some(formula), counted) if formula == counted));
}

/// So that the property above is about something.
#[test]
fn every_algorithm_has_closed_forms_in_both_modes() {
    let mut runner = TestRunner::deterministic();
    let mut found = BTreeSet::new();
    for _ in 0..1000 {
        let case = resolve(&any_case().new_tree(&mut runner).expect("a case").current());
        if formula::of(&case).is_some_and(|formula| formula.value > 0) {
            found.insert((case.algorithm, case.mode().to_string()));
        }
    }
    for algorithm in Algorithm::OF_SOURCES {
        for mode in ["textbook", "hardened"] {
            assert!(found.contains(&(algorithm, mode.to_owned())), "{algorithm} {mode}");
        }
    }
}
