//! Part B: the modified bully.

use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm::ModifiedBully;
use doyen_sim::fault::LinkOverride;
use doyen_sim::scenario::Scenario;
use doyen_sim::trace::{EventKind, TraceEvent};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::groups::{
    all_start, configured, in_d, live, messages, of_kind, run, size_and_rank, size_and_some, start,
    start_at, text, watch,
};

fn formula_1(n: u32, r: u32) -> u64 {
    u64::from(2 * (n - r) + n)
}

fn formula_6(n: u32, some: &[u32]) -> u64 {
    let lowest = some.iter().min().expect("somebody starts");
    u64::from((n - lowest) + some.iter().map(|r| n - r).sum::<u32>() + n)
}

fn started_by(n: u32, ids: &[u32]) -> Scenario {
    Scenario { initiators: start(ids), ..live(ModifiedBully, n) }
}

/// Two or more of the members below the highest, lowest first.
fn size_and_several() -> impl Strategy<Value = (u32, Vec<u32>)> {
    (3_u32..=16).prop_flat_map(|n| {
        let below: Vec<u32> = (1..n).collect();
        let count = below.len();
        (Just(n), subsequence(below, 2..=count))
    })
}

/// Whether `member` waited for the COORDINATOR in vain.
fn gave_up(records: &[TraceEvent], member: u32) -> bool {
    records.iter().any(|record| match &record.kind {
        EventKind::Fired { member: who, rules, .. } => {
            who.0 == member && rules.iter().any(|rule| rule == "M13")
        }
        _ => false,
    })
}

proptest! {
    #[test]
    fn b1_one_initiator_below_the_highest_costs_formula_1((n, r) in size_and_rank(2..=60)) {
        prop_assume!(r < n);
        let outcome = run(&started_by(n, &[r]));
        prop_assert_eq!(outcome.messages.total, formula_1(n, r));
        prop_assert_eq!(of_kind(&outcome, "ELECTION"), u64::from(n - r));
        prop_assert_eq!(of_kind(&outcome, "OK"), u64::from(n - r));
        prop_assert_eq!(of_kind(&outcome, "GRANT"), 1);
        prop_assert_eq!(of_kind(&outcome, "COORDINATOR"), u64::from(n) - 1);
    }

    #[test]
    fn b3_the_highest_costs_n_minus_1_one_less_than_formula_1(n in 1_u32..=60) {
        let outcome = run(&started_by(n, &[n]));
        prop_assert_eq!(outcome.messages.total, formula_1(n, n) - 1);
        prop_assert_eq!(of_kind(&outcome, "GRANT"), 0);
    }

    #[test]
    fn b4_the_lowest_costs_3n_minus_2_not_3n_minus_1(n in 2_u32..=60) {
        prop_assert_eq!(messages(&started_by(n, &[1])), 3 * u64::from(n) - 2);
    }

    #[test]
    fn b5_configured_and_contacted_costs_2_n_minus_r_plus_n_minus_1((n, r) in size_and_rank(2..=30)) {
        prop_assume!(r < n);
        let scenario = Scenario { contact_dead: true, ..configured(ModifiedBully, n + 1) };
        let outcome = run(&Scenario { initiators: start(&[r]), ..scenario });
        prop_assert_eq!(outcome.messages.total, u64::from(2 * (n + 1 - r) + n));
        prop_assert_eq!(outcome.messages.to_dead, 2);
    }

    #[test]
    fn b7_elections_inside_every_window_cost_formula_6(
        (n, some) in size_and_some(2..=20),
        window in select(&["0", "1ms", "2ms"][..]),
        hardened in any::<bool>(),
    ) {
        let mode = text(if hardened { "hardened" } else { "textbook" });
        let outcome = run(&Scenario { window: text(window), mode, ..started_by(n, &some) });
        let no_grant = u64::from(some.iter().all(|&r| r == n));
        prop_assert_eq!(outcome.messages.total, formula_6(n, &some) - no_grant);
        prop_assert_eq!(of_kind(&outcome, "STOP"), 0);
    }

    #[test]
    fn b8_if_everybody_starts_it_costs_half_of_n_squared_plus_3n_minus_2(n in 2_u32..=40) {
        let scenario = Scenario { initiators: all_start(), ..live(ModifiedBully, n) };
        prop_assert_eq!(messages(&scenario), u64::from((n * n + 3 * n - 2) / 2));
    }

    /// Sum of 2(n-rj), a STOP for each of those above every initiator but the lowest, and n.
    #[test]
    fn b9_in_falling_order_further_apart_than_the_window_stops_come_on_top(
        (n, some) in size_and_several(),
    ) {
        let times = some.iter().rev().zip(0..).map(|(&id, turn)| (id, 0.5 * f64::from(turn)));
        let scenario = Scenario {
            window: text("0.25ms"),
            initiators: start_at(times),
            ..live(ModifiedBully, n)
        };
        let above: u64 = some.iter().map(|r| u64::from(n - r)).sum();
        let above_others = above - u64::from(n - some[0]);
        let outcome = run(&scenario);
        prop_assert_eq!(of_kind(&outcome, "STOP"), above_others);
        prop_assert_eq!(outcome.messages.total, 2 * above + above_others + u64::from(n));
    }

    #[test]
    fn b10_in_rising_order_within_d_it_costs_formula_6((n, some) in size_and_several()) {
        let gap = 0.9 / some.len() as f64;
        let times = some.iter().zip(0..).map(|(&id, turn)| (id, gap * f64::from(turn)));
        let scenario = Scenario { initiators: start_at(times), ..live(ModifiedBully, n) };
        prop_assert_eq!(messages(&scenario), formula_6(n, &some));
    }

    #[test]
    fn b12_it_takes_four_stages_and_the_window_and_one_for_the_highest(
        (n, r) in size_and_rank(2..=20),
        window in select(&[0.0, 0.5, 2.0][..]),
    ) {
        prop_assume!(r < n);
        let scenario = Scenario { window: text(&format!("{window}ms")), ..started_by(n, &[r]) };
        let outcome = run(&scenario);
        prop_assert_eq!(outcome.stages, 4);
        prop_assert_eq!(in_d(outcome.informed), 4.0 + window);
        let outcome = run(&Scenario { mode: text("eager"), ..started_by(n, &[n]) });
        prop_assert_eq!(outcome.stages, 1);
        prop_assert_eq!(in_d(outcome.informed), 1.0);
    }

    #[test]
    fn b13_d_after_the_grant_repeats_the_election_in_every_run((n, r) in size_and_rank(2..=20)) {
        prop_assume!(r < n);
        let textbook = run(&started_by(n, &[r]));
        prop_assert_eq!(textbook.elections, 1);
        let literal = run(&Scenario { mode: text("kordafshari-literal-timers"), ..started_by(n, &[r]) });
        prop_assert!(literal.elections > 1);
        prop_assert!(literal.messages.total > formula_1(n, r));
    }

    #[test]
    fn b14_3d_is_too_short_for_an_answerer_whose_election_was_fast((n, r) in size_and_rank(3..=12)) {
        prop_assume!(r < n - 1);
        let fast = LinkOverride {
            to: Some(NodeId(n - 1)),
            kind: text("ELECTION"),
            delay: text("0"),
            ..LinkOverride::default()
        };
        let textbook = Scenario { link: vec![fast], ..started_by(n, &[r]) };
        let (outcome, records) = watch(&textbook);
        prop_assert!(!gave_up(&records, n - 1));
        prop_assert_eq!(in_d(outcome.informed), 4.0);
        let literal = Scenario { mode: text("kordafshari-literal-timers"), ..textbook };
        let (_, records) = watch(&Scenario { until: text("3.5ms"), ..literal });
        prop_assert!(gave_up(&records, n - 1));
    }
}

#[test]
fn b2_the_example_of_002_takes_2800_messages() {
    assert_eq!(messages(&started_by(1000, &[100])), 2800);
}

#[test]
fn b6_the_average_over_all_initiators_is_2n_minus_1_minus_1_over_n() {
    for n in 2..=30 {
        let total: u64 = (1..=n).map(|r| messages(&started_by(n, &[r]))).sum();
        let n = u64::from(n);
        assert_eq!(total, 2 * n * n - n - 1, "n={n}");
    }
}

#[test]
fn b7b_eager_breaks_formula_6_if_the_highest_starts_as_well() {
    let outcome = run(&Scenario { mode: text("eager"), ..started_by(6, &[2, 6]) });
    assert_eq!(formula_6(6, &[2, 6]), 14);
    assert_eq!(outcome.messages.by_kind, [("ELECTION", 4), ("OK", 1), ("COORDINATOR", 10)]);
}

#[test]
fn b9_5_3_and_1_of_8_in_falling_order_take_46_messages_and_not_30() {
    let scenario = Scenario {
        window: text("0.25ms"),
        initiators: start_at([(5, 0.0), (3, 0.5), (1, 1.0)]),
        ..live(ModifiedBully, 8)
    };
    assert_eq!(formula_6(8, &[5, 3, 1]), 30);
    assert_eq!(
        run(&scenario).messages.by_kind,
        [("STOP", 8), ("ELECTION", 15), ("OK", 15), ("GRANT", 1), ("COORDINATOR", 7)]
    );
}

#[test]
fn b11_a_lower_initiator_after_the_grant_causes_a_second_grant_and_a_second_announcement() {
    let scenario =
        Scenario { initiators: start_at([(3, 0.0), (1, 1.5)]), ..live(ModifiedBully, 8) };
    assert_eq!(formula_6(8, &[3, 1]), 27);
    assert_eq!(
        run(&scenario).messages.by_kind,
        [("STOP", 5), ("ELECTION", 12), ("OK", 12), ("GRANT", 2), ("COORDINATOR", 14)]
    );
}
