//! Part C: the rings.

use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm::{
    ChangRoberts, RingActiveList, RingAllIds, RingList, RingResilient,
};
use doyen_core::time::Span;
use doyen_sim::fault::{Action, Fault};
use doyen_sim::scenario::{RingOrder, Scenario};
use doyen_sim::time::Time;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use super::groups::{
    all_start, any_ring, distance, in_d, in_ring, live, messages, of_kind, ring_and_some, run,
    start, text,
};

/// A ring, who of it is dead, and who of the living starts.
fn ring_with_dead() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, u32)> {
    any_ring(3..=20).prop_flat_map(|ring| {
        let dead = subsequence(ring.clone(), 1..=ring.len() - 2);
        (Just(ring), dead, any::<Index>()).prop_map(|(ring, dead, who)| {
            let live: Vec<u32> = ring.iter().copied().filter(|id| !dead.contains(id)).collect();
            let starts = *who.get(&live);
            (ring, dead, starts)
        })
    })
}

proptest! {
    #[test]
    fn c1_a_list_goes_round_in_2n_messages_and_2n_message_times(
        (ring, some) in ring_and_some(2..=40),
        algorithm in select(vec![RingList, RingResilient]),
        hardened in any::<bool>(),
    ) {
        let mode = text(if hardened { "hardened" } else { "textbook" });
        let scenario = Scenario { initiators: start(&some[..1]), mode, ..in_ring(algorithm, &ring) };
        let outcome = run(&scenario);
        prop_assert_eq!(outcome.messages.total, 2 * ring.len() as u64);
        prop_assert_eq!(in_d(outcome.turnaround), 2.0 * ring.len() as f64);
    }

    #[test]
    fn c2_m_lists_cost_2mn(
        (ring, some) in ring_and_some(2..=15),
        algorithm in select(vec![RingList, RingResilient]),
    ) {
        let scenario = Scenario { initiators: start(&some), ..in_ring(algorithm, &ring) };
        prop_assert_eq!(messages(&scenario), 2 * (ring.len() * some.len()) as u64);
    }

    /// 2(N-f) messages to the living and 2f fruitless probes, each of which takes 2D.
    #[test]
    fn c4_with_f_dead_polled_a_list_goes_round_in_2n_sends(
        (ring, dead, starts) in ring_with_dead(),
        algorithm in select(vec![RingList, RingResilient]),
        hardened in any::<bool>(),
    ) {
        let mode = text(if hardened { "hardened" } else { "textbook" });
        let initiators = start(&[starts]);
        let scenario = Scenario { contact_dead: true, initiators, mode, ..in_ring(algorithm, &ring) };
        let outcome = run(&Scenario { dead: dead.clone(), ..scenario });
        let (all, dead) = (ring.len() as u64, dead.len() as u64);
        prop_assert_eq!(outcome.messages.total, 2 * all);
        prop_assert_eq!(outcome.messages.to_dead, 2 * dead);
        prop_assert_eq!(in_d(outcome.turnaround), (2 * (all - dead) + 4 * dead) as f64);
    }

    /// n + (n-1) + 2(n-1) messages to the living; the dead winner is probed in three circuits.
    #[test]
    fn c5_a_winner_that_dies_after_it_is_listed_costs_a_repetition(n in 3_u32..=30) {
        let at = Time::ZERO + Span::from_micros(u64::from(n) * 1_000 - 500);
        let crash = Fault::at(at, Action::crash(NodeId(n)));
        let outcome = run(&Scenario { fault: vec![crash], ..live(RingResilient, n) });
        let to_living = outcome.messages.total - outcome.messages.to_dead;
        prop_assert_eq!(to_living, u64::from(n + (n - 1) + 2 * (n - 1)));
        prop_assert_eq!(outcome.messages.to_dead, 3);
        prop_assert_eq!(outcome.leader.map(|id| id.0), Some(n - 1));
        prop_assert!(outcome.agreed);
    }

    #[test]
    fn c6_active_lists_cost_n_squared_however_many_start((ring, some) in ring_and_some(2..=20)) {
        let scenario = Scenario { initiators: start(&some), ..in_ring(RingActiveList, &ring) };
        let outcome = run(&scenario);
        let n = ring.len() as u64;
        prop_assert_eq!(outcome.messages.total, n * n);
        prop_assert_eq!(outcome.messages.by_kind.len(), 1, "nobody announces anything");
        prop_assert_eq!(outcome.leader.map(|id| u64::from(id.0)), Some(n));
        prop_assert!(in_d(outcome.informed) <= 2.0 * n as f64 - 1.0);
        if some.len() == 1 {
            prop_assert_eq!(in_d(outcome.informed), 2.0 * n as f64 - 1.0);
        }
    }

    #[test]
    fn c7_absorbed_by_the_initiator_all_ids_cost_half_of_n_n_plus_1_plus_n(
        (ring, some) in ring_and_some(2..=24),
    ) {
        let scenario = Scenario { initiators: start(&some[..1]), ..in_ring(RingAllIds, &ring) };
        let n = ring.len() as u64;
        let absorbed = Scenario { mode: text("os-textbook-absorb"), ..scenario };
        prop_assert_eq!(messages(&absorbed), n * (n + 1) / 2 + n);
    }

    #[test]
    fn c8_removed_by_their_senders_all_ids_cost_n_squared_plus_n_for_one_initiator(
        (ring, some) in ring_and_some(2..=24),
    ) {
        let n = ring.len() as u64;
        let one = Scenario { initiators: start(&some[..1]), ..in_ring(RingAllIds, &ring) };
        prop_assert_eq!(messages(&one), n * n + n);
        let several = Scenario { initiators: start(&some), ..one };
        prop_assert_eq!(messages(&several), n * n + some.len() as u64 * n);
    }

    #[test]
    fn c9_one_initiator_d_hops_from_the_highest_costs_d_plus_2n(
        (ring, some) in ring_and_some(2..=30),
        hardened in any::<bool>(),
    ) {
        let mode = text(if hardened { "hardened" } else { "textbook" });
        let initiators = start(&some[..1]);
        let outcome = run(&Scenario { initiators, mode, ..in_ring(ChangRoberts, &ring) });
        let n = ring.len() as u64;
        let expected = distance(&ring, some[0], n as u32) + 2 * n;
        prop_assert_eq!(outcome.messages.total, expected);
        prop_assert!(expected < 3 * n);
        prop_assert_eq!(in_d(outcome.turnaround), expected as f64);
    }

    #[test]
    fn c10_at_worst_it_takes_3n_minus_1_and_everybody_knows_one_hop_earlier(n in 2_u32..=60) {
        let outcome = run(&live(ChangRoberts, n));
        prop_assert_eq!(outcome.messages.total, 3 * u64::from(n) - 1);
        prop_assert_eq!(in_d(outcome.turnaround), 3.0 * f64::from(n) - 1.0);
        prop_assert_eq!(in_d(outcome.informed), 3.0 * f64::from(n) - 2.0);
    }

    #[test]
    fn c11_all_start_with_keys_falling_clockwise_costs_half_of_n_n_plus_1_plus_n(n in 2_u32..=40) {
        let ring = Some(RingOrder::Descending);
        let scenario = Scenario { initiators: all_start(), ring, ..live(ChangRoberts, n) };
        let n = u64::from(n);
        prop_assert_eq!(messages(&scenario), n * (n + 1) / 2 + n);
        prop_assert!(n <= 3 || n * (n + 1) / 2 + n > 3 * n - 1, "os-textbook's maximum is not one");
    }

    #[test]
    fn c12_all_start_with_keys_rising_clockwise_costs_3n_minus_1(n in 2_u32..=40) {
        let scenario = Scenario { initiators: all_start(), ..live(ChangRoberts, n) };
        prop_assert_eq!(messages(&scenario), 3 * u64::from(n) - 1);
    }

    #[test]
    fn c14_without_swallowing_every_initiator_costs_d_plus_2n_and_an_announcement(
        (ring, some) in ring_and_some(2..=12),
    ) {
        let scenario = Scenario {
            mode: text("os-textbook-no-swallow"),
            initiators: start(&some),
            ..in_ring(ChangRoberts, &ring)
        };
        let outcome = run(&scenario);
        let n = ring.len() as u64;
        let expected: u64 = some.iter().map(|&id| distance(&ring, id, n as u32) + 2 * n).sum();
        prop_assert_eq!(outcome.messages.total, expected);
        prop_assert_eq!(of_kind(&outcome, "ELECTED"), some.len() as u64 * n);
    }
}

#[test]
fn c3_in_the_example_of_001_2_and_5_both_elect_6() {
    let ring: Vec<u32> = (0..8).collect();
    let known = Scenario { dead: vec![7], initiators: start(&[2, 5]), ..in_ring(RingList, &ring) };
    let outcome = run(&known);
    assert_eq!(outcome.messages.total, 28);
    assert_eq!((outcome.leader.map(|id| id.0), outcome.agreed), (Some(6), true));
    let outcome = run(&Scenario { contact_dead: true, ..known });
    assert_eq!((outcome.messages.total, outcome.messages.to_dead), (28 + 4, 4));
    assert_eq!((outcome.leader.map(|id| id.0), outcome.agreed), (Some(6), true));
}

#[test]
fn c9_the_average_over_all_initiators_is_2n_plus_half_of_n_minus_1() {
    for n in 2..=20 {
        let one = |id| messages(&Scenario { initiators: start(&[id]), ..live(ChangRoberts, n) });
        let total: u64 = (1..=n).map(one).sum();
        let n = u64::from(n);
        assert_eq!(2 * total, n * (4 * n + n - 1), "n={n}");
    }
}

/// The mean over all (n-1)! rings, times 420: the harmonic numbers up to 7 have no larger denominator.
#[test]
fn c13_if_all_start_the_average_over_all_rings_is_n_times_the_harmonic_number_plus_n() {
    for n in 5..=7_u32 {
        let rings = rings(n);
        let all = |ring: &Vec<u32>| {
            messages(&Scenario { initiators: all_start(), ..in_ring(ChangRoberts, ring) })
        };
        let total: u64 = rings.iter().map(all).sum();
        let harmonic_times_420: u64 = (1..=u64::from(n)).map(|k| 420 / k).sum();
        let mean_times_420 = u64::from(n) * harmonic_times_420 + 420 * u64::from(n);
        assert_eq!(420 * total, mean_times_420 * rings.len() as u64, "n={n}");
    }
}

/// Every ring of `1..=n`: n first, and the others in every order.
fn rings(n: u32) -> Vec<Vec<u32>> {
    (1..n).fold(vec![vec![n]], |shorter, next| {
        let insert = |ring: Vec<u32>| {
            (1..=ring.len()).map(move |place| {
                let mut longer = ring.clone();
                longer.insert(place, next);
                longer
            })
        };
        shorter.into_iter().flat_map(insert).collect()
    })
}

/// By the letter a single member would send to itself; here it does not.
#[test]
fn a_member_that_is_alone_on_its_ring_elects_itself_without_a_message() {
    for algorithm in [RingList, RingResilient, RingActiveList, RingAllIds, ChangRoberts] {
        for mode in ["textbook", "hardened"] {
            let outcome = run(&Scenario { mode: text(mode), ..live(algorithm, 1) });
            assert_eq!(outcome.messages.total, 0, "{algorithm} {mode}");
            assert!(outcome.agreed, "{algorithm} {mode}");
        }
    }
}
