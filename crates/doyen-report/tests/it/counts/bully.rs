//! Part A: Bully.

use doyen_core::registry::Algorithm::Bully;
use doyen_sim::scenario::Scenario;
use proptest::prelude::*;
use proptest::sample::select;

use super::groups::{
    all_start, configured, in_d, live, messages, of_kind, run, size_and_rank, size_and_some, start,
    text,
};

fn formula_3(n: u32, r: u32) -> u64 {
    u64::from(n - r + 1) * u64::from(n - r) + u64::from(n) - 1
}

fn started_by(n: u32, ids: &[u32]) -> Scenario {
    Scenario { initiators: start(ids), ..live(Bully, n) }
}

fn read_as(variant: &str, scenario: Scenario) -> Scenario {
    Scenario { mode: text(variant), ..scenario }
}

/// Nobody knows that the coordinator has crashed.
fn contacting(scenario: Scenario) -> Scenario {
    Scenario { contact_dead: true, ..scenario }
}

fn in_order(order: &[&str], scenario: Scenario) -> Scenario {
    Scenario { order: order.iter().map(|kind| (*kind).to_owned()).collect(), ..scenario }
}

proptest! {
    #[test]
    fn a1_one_initiator_costs_formula_3((n, r) in size_and_rank(1..=25)) {
        let outcome = run(&started_by(n, &[r]));
        let asked = u64::from(n - r) * u64::from(n - r + 1) / 2;
        prop_assert_eq!(outcome.messages.total, formula_3(n, r));
        prop_assert_eq!(of_kind(&outcome, "ELECTION"), asked);
        prop_assert_eq!(of_kind(&outcome, "OK"), asked);
        prop_assert_eq!(of_kind(&outcome, "COORDINATOR"), u64::from(n) - 1);
        prop_assert_eq!(outcome.elections, u64::from(n - r) + 1);
    }

    #[test]
    fn a3_the_lowest_initiator_costs_n_squared_minus_1(n in 2_u32..=40) {
        prop_assert_eq!(messages(&started_by(n, &[1])), u64::from(n * n - 1));
    }

    #[test]
    fn a4_several_initiators_cost_what_the_lowest_costs((n, some) in size_and_some(2..=20)) {
        let lowest = *some.iter().min().expect("somebody starts");
        prop_assert_eq!(messages(&started_by(n, &some)), formula_3(n, lowest));
    }

    /// Nor does it matter how long messages take and replies are held back, within the bounds D and p.
    #[test]
    fn a4_holds_for_any_delays_within_the_bounds(
        (n, some) in size_and_some(2..=12),
        processing in select(&["0", "0.5ms", "10ms"][..]),
        seed in any::<u64>(),
    ) {
        let lowest = *some.iter().min().expect("somebody starts");
        let (delay, processing) = (text("uniform:0.01ms..1ms"), text(processing));
        let scenario = Scenario { delay, processing, seed: Some(seed), ..started_by(n, &some) };
        prop_assert_eq!(messages(&scenario), formula_3(n, lowest));
    }

    #[test]
    fn a6_configured_and_contacted_costs_n_minus_r_squared_plus_n_minus_2(
        (n, r) in size_and_rank(2..=21),
    ) {
        let scenario = contacting(configured(Bully, n + 1));
        let outcome = run(&Scenario { initiators: start(&[r]), ..scenario });
        let n = u64::from(n) + 1;
        prop_assert_eq!(outcome.messages.total, (n - u64::from(r)).pow(2) + n - 2);
        prop_assert_eq!(outcome.messages.to_dead, n - u64::from(r));
    }

    #[test]
    fn a7_configured_and_announced_to_all_costs_one_more((n, r) in size_and_rank(2..=21)) {
        let scenario = contacting(configured(Bully, n + 1));
        let announce = text("all");
        let n = u64::from(n) + 1;
        let scenario = Scenario { initiators: start(&[r]), announce, ..scenario };
        prop_assert_eq!(messages(&scenario), (n - u64::from(r)).pow(2) + n - 1);
    }

    #[test]
    fn a8_configured_the_best_case_is_n_minus_2_messages_and_one_message_time(n in 3_u32..=60) {
        let second = Scenario { initiators: start(&[n - 1]), ..configured(Bully, n) };
        prop_assert_eq!(messages(&second), u64::from(n) - 2);
        let outcome = run(&read_as("eager", second));
        prop_assert_eq!(outcome.messages.total, u64::from(n) - 2);
        prop_assert_eq!(in_d(outcome.turnaround), 1.0);
    }

    #[test]
    fn a9_configured_and_contacted_the_best_case_takes_one_election_and_3_d(n in 3_u32..=60) {
        let second = Scenario { initiators: start(&[n - 1]), ..contacting(configured(Bully, n)) };
        let outcome = run(&second);
        prop_assert_eq!(of_kind(&outcome, "ELECTION"), 1);
        prop_assert_eq!(of_kind(&outcome, "COORDINATOR"), u64::from(n) - 2);
        prop_assert_eq!(in_d(outcome.turnaround), 3.0);
    }

    #[test]
    fn a10_serial_configured_and_contacted_the_worst_case_takes_5_d(n in 4_u32..=30) {
        let outcome = run(&read_as("serial", contacting(configured(Bully, n))));
        prop_assert_eq!(in_d(outcome.informed), 5.0);
    }

    #[test]
    fn a11_configured_and_contacted_the_worst_case_takes_4_d(n in 3_u32..=30) {
        let outcome = run(&contacting(configured(Bully, n)));
        prop_assert_eq!(in_d(outcome.informed), 4.0);
    }

    #[test]
    fn a12_eager_the_worst_case_takes_2_d(n in 3_u32..=30) {
        prop_assert_eq!(in_d(run(&read_as("eager", live(Bully, n))).informed), 2.0);
        prop_assert_eq!(in_d(run(&read_as("eager", configured(Bully, n + 1))).informed), 2.0);
    }

    #[test]
    fn a13_five_stages_are_a_maximum_and_not_the_rule((n, r) in size_and_rank(3..=12)) {
        let serial = read_as("serial", contacting(configured(Bully, n + 1)));
        let outcome = run(&Scenario { initiators: start(&[r]), ..serial });
        prop_assert!(in_d(outcome.informed) <= 5.0);
        let outcome = run(&read_as("eager", started_by(n, &[n])));
        prop_assert_eq!(in_d(outcome.informed), 1.0);
        prop_assert_eq!(outcome.stages, 1);
    }

    #[test]
    fn a14_without_the_guard_000_is_exponential((n, r) in size_and_rank(2..=12)) {
        prop_assume!(r < n);
        let outcome = run(&read_as("cs677-no-guard", started_by(n, &[r])));
        prop_assert_eq!(of_kind(&outcome, "ELECTION"), (1 << (n - r)) - 1);
        prop_assert_eq!(of_kind(&outcome, "OK"), (1 << (n - r)) - 1);
        prop_assert_eq!(of_kind(&outcome, "COORDINATOR"), u64::from(n - 1) << (n - r - 1));
    }

    #[test]
    fn a15_eager_keeps_formula_3_if_elections_are_handled_first((n, r) in size_and_rank(1..=15)) {
        prop_assert_eq!(messages(&read_as("eager", started_by(n, &[r]))), formula_3(n, r));
    }

    #[test]
    fn a16_with_a_patient_winner_the_order_within_an_instant_does_not_matter(
        (n, some) in size_and_some(2..=12),
        order in Just(["ELECTION", "OK", "COORDINATOR"]).prop_shuffle(),
    ) {
        let lowest = *some.iter().min().expect("somebody starts");
        let scenario = in_order(&order, started_by(n, &some));
        prop_assert_eq!(messages(&scenario), formula_3(n, lowest));
    }
}

#[test]
fn a2_the_example_of_002_takes_811899_messages() {
    let outcome = run(&started_by(1000, &[100]));
    assert_eq!(outcome.messages.total, 811_899);
    assert_eq!(
        outcome.messages.by_kind,
        [("ELECTION", 405_450), ("OK", 405_450), ("COORDINATOR", 999)]
    );
}

#[test]
fn a5_the_average_over_all_initiators_is_a_third_of_n_squared_minus_1_plus_n_minus_1() {
    for n in 1..=25 {
        let total: u64 = (1..=n).map(|r| messages(&started_by(n, &[r]))).sum();
        let n = u64::from(n);
        assert_eq!(3 * total, n * (n * n - 1) + 3 * n * (n - 1), "n={n}");
    }
}

#[test]
fn a6_configured_and_contacted_the_example_of_002_would_take_810998() {
    let scenario = contacting(configured(Bully, 1000));
    assert_eq!(messages(&Scenario { initiators: start(&[100]), ..scenario }), 810_998);
}

/// The members that accept the COORDINATOR before they hear of the election ask once more.
#[test]
fn a15_eager_breaks_formula_3_if_coordinators_are_handled_first() {
    let order = ["COORDINATOR", "ELECTION", "OK"];
    let outcome = run(&in_order(&order, read_as("eager", live(Bully, 10))));
    assert_eq!(formula_3(10, 1), 99);
    assert_eq!(
        outcome.messages.by_kind,
        [("ELECTION", 73), ("OK", 73), ("COORDINATOR", 16)],
        "162 messages"
    );
}

/// Late ELECTIONs restart elections after the COORDINATOR was accepted.
#[test]
fn a17_eager_breaks_formula_5_if_the_highest_starts_as_well() {
    let outcome = run(&read_as("eager", started_by(6, &[1, 6])));
    assert_eq!(formula_3(6, 1), 35);
    assert_eq!(
        outcome.messages.by_kind,
        [("ELECTION", 21), ("OK", 21), ("COORDINATOR", 12)],
        "54 messages"
    );
    assert_eq!(messages(&Scenario { initiators: all_start(), ..live(Bully, 6) }), 35);
}
