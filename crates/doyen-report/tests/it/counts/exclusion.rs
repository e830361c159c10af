//! Part X: the entries into a critical section, by the numbers of their specification. The reference program counts time in
//! D, holds the section for 1 unless a line says otherwise, and measures saturation in the middle of a long run.

use doyen_core::config::exclusion::{Sets, Tree};
use doyen_core::members::{Members, NodeId};
use doyen_core::registry::Algorithm::{
    self, Centralised, Lamport, Maekawa, Raymond, RicartAgrawala, SuzukiKasami, TokenRing, Voting,
};
use doyen_core::time::Span;
use doyen_report::exclusion::Summary;
use doyen_report::formula;
use doyen_sim::metrics::sections::{Entry, Exclusion};
use doyen_sim::network::DelayModel;
use doyen_sim::scenario::Scenario;
use proptest::prelude::*;
use proptest::sample::select;

use super::groups::{all_start, in_d, live, resolve, run, start, start_at, text};

/// Runs `scenario` in which all requests must be served, one member at a time; how many messages it took, and the rest.
fn entered(scenario: &Scenario) -> (u64, Exclusion) {
    let outcome = run(scenario);
    let run = outcome.exclusion.expect("an exclusion");
    assert!(run.broken.is_empty() && run.waiting.is_empty(), "{:?} {scenario:?}", run.broken);
    assert_eq!(run.overlap, Span::ZERO);
    (outcome.messages.total, run)
}

/// Member `id` asks once.
fn one(algorithm: Algorithm, n: u32, id: u32) -> Scenario {
    Scenario { requests: start(&[id]), ..live(algorithm, n) }
}

/// All members ask once at the same time.
fn all(algorithm: Algorithm, n: u32) -> Scenario {
    Scenario { requests: all_start(), ..live(algorithm, n) }
}

/// All members ask again at once, so often.
fn saturated(algorithm: Algorithm, n: u32, repeat: u32) -> Scenario {
    Scenario { repeat: Some(repeat), ..all(algorithm, n) }
}

fn waits(run: &Exclusion) -> Vec<f64> {
    run.entries.iter().map(|entry| in_d(entry.wait())).collect()
}

fn sync_delays(run: &Exclusion) -> Vec<f64> {
    let mut delays: Vec<f64> = run.sync_delays.iter().map(|&delay| in_d(delay)).collect();
    delays.sort_by(f64::total_cmp);
    delays.dedup();
    delays
}

/// Messages for each entry and entries for each D, in the middle of a saturated run: over whole rounds of `n` entries.
fn steady(run: &Exclusion, n: usize) -> (f64, f64) {
    let entries = &run.entries;
    let (first, last) = (5 * n, entries.len() - 5 * n);
    let last = last - (last - first) % n;
    let [one, other]: [&Entry; 2] = [&entries[first], &entries[last]];
    let count = (last - first) as f64;
    let time = in_d(other.entered - one.entered);
    ((other.messages - one.messages) as f64 / count, count / time)
}

fn assert_close(measured: f64, expected: f64) {
    assert!((measured - expected).abs() < 0.01, "{measured} instead of {expected}");
}

proptest! {
    #[test]
    fn x1_1_to_x1_3_centralised_costs_3_but_nothing_at_the_coordinator(n in 2..30_u32, id in 1..29_u32) {
        let id = 1 + id % (n - 1);
        let (messages, run) = entered(&one(Centralised, n, id));
        prop_assert_eq!((messages, waits(&run)), (3, vec![2.0]));
        let (messages, run) = entered(&one(Centralised, n, n));
        prop_assert_eq!((messages, waits(&run)), (0, vec![0.0]));
        let (messages, _) = entered(&all(Centralised, n));
        prop_assert_eq!(messages, 3 * u64::from(n - 1));
    }

    #[test]
    fn x1_4_the_synchronisation_delay_of_a_coordinator_is_2(n in 3..30_u32) {
        let others: Vec<u32> = (1..n).collect();
        let (_, run) = entered(&Scenario { requests: start(&others), ..live(Centralised, n) });
        prop_assert_eq!(sync_delays(&run), [2.0]);
    }

    #[test]
    fn x2_1_and_x2_2_lamport_costs_3_for_each_other_member(n in 2..20_u32) {
        let others = u64::from(n - 1);
        let (messages, run) = entered(&one(Lamport, n, 1));
        prop_assert_eq!((messages, waits(&run), run.at_exit), (3 * others, vec![2.0], vec![others]));
        let (messages, run) = entered(&all(Lamport, n));
        prop_assert_eq!((messages, sync_delays(&run)), (3 * others * u64::from(n), vec![1.0]));
    }

    #[test]
    fn x2_3_and_x2_4_saved_replies_cost_5_halves_if_all_ask_once(n in 2..20_u32) {
        let mode = text("saved-replies");
        let (messages, _) = entered(&Scenario { mode, ..all(Lamport, n) });
        prop_assert_eq!(2 * messages, 5 * u64::from(n) * u64::from(n - 1));
        let (messages, _) = entered(&Scenario { mode, ..one(Lamport, n, 1) });
        prop_assert_eq!(messages, 3 * u64::from(n - 1));
    }

    #[test]
    fn x3_1_to_x3_3_ricart_agrawala_costs_2_for_each_other_member_in_all(n in 2..20_u32, hardened in any::<bool>()) {
        let mode = text(if hardened { "hardened" } else { "textbook" });
        let others = u64::from(n - 1);
        let (messages, run) = entered(&Scenario { mode, ..one(RicartAgrawala, n, 1) });
        prop_assert_eq!((messages, waits(&run), run.at_exit), (2 * others, vec![2.0], vec![0]));
        let (messages, run) = entered(&Scenario { mode, ..all(RicartAgrawala, n) });
        prop_assert_eq!((messages, sync_delays(&run)), (2 * others * u64::from(n), vec![1.0]));
        // What cs425 adds at exit are deferred REPLYs, which are counted already.
        prop_assert_eq!(run.at_exit, (0..u64::from(n)).rev().collect::<Vec<_>>());
    }

    #[test]
    fn x4_1_and_x4_2_a_token_d_hops_away_takes_d_and_just_after_it_n(n in 2..20_u32, d in 1..19_u32) {
        let d = 1 + d % (n - 1);
        let (_, run) = entered(&one(TokenRing, n, 1 + d));
        prop_assert_eq!(waits(&run), [f64::from(d)]);
        let late = Scenario { requests: start_at([(1, 0.25)]), ..live(TokenRing, n) };
        prop_assert_eq!(waits(&entered(&late).1), [f64::from(n) - 0.25]);
    }

    /// X5.1 for one attempt, and X5.3. The voters are the highest members, and 1 is none.
    #[test]
    fn x5_3_one_attempt_costs_3m_and_takes_2_or_in_turn_2m(voters in 1..12_u32, serial in any::<bool>()) {
        let mode = text(if serial { "serial" } else { "textbook" });
        let votes = voters / 2 + 1;
        let scenario = Scenario { voters: Some(voters), mode, ..one(Voting, voters + 1, 1) };
        let (messages, run) = entered(&scenario);
        let delay = if serial { 2 * votes } else { 2 };
        prop_assert_eq!((messages, waits(&run)), (3 * u64::from(votes), vec![f64::from(delay)]));
    }

    /// X5.1 and X5.2 in all: each entry has at least one attempt, and a failed one costs less than one that succeeds.
    #[test]
    fn x5_1_and_x5_2_voting_costs_between_its_bounds(
        voters in select(vec![3, 5, 7_u32]),
        contenders in 1..6_u32,
        ask_all in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let ids: Vec<u32> = (1..=contenders).collect();
        let scenario = Scenario {
            requests: start(&ids),
            voters: Some(voters),
            ask_all,
            seed: Some(seed),
            delay: text("uniform:0.5ms..1ms"),
            back_off: text("uniform:0.5ms..15ms"),
            ..live(Voting, contenders + voters)
        };
        let outcome = run(&scenario);
        let run = outcome.exclusion.as_ref().unwrap();
        prop_assert!(run.broken.is_empty() && run.waiting.is_empty());
        let kind = |name| outcome.messages.by_kind.iter().find(|(kind, _)| *kind == name).map_or(0, |it| it.1);
        let (entries, m) = (u64::from(contenders), u64::from(voters / 2 + 1));
        let asked = if ask_all { u64::from(voters) } else { m };
        // Attempts in all: each asks so many voters, and each is answered.
        let k = kind("REQUEST") / asked;
        prop_assert_eq!((kind("REQUEST") % asked, kind("VOTE") + kind("DENY")), (0, k * asked));
        let least = 2 * asked * k + m * entries;
        let most = 2 * asked * k + (k - entries) * (m - 1) + asked * entries;
        prop_assert!((least..=most).contains(&outcome.messages.total), "{least} {most} {outcome:?}");
    }

    #[test]
    fn x6_6_idle_maekawa_costs_3_for_each_other_arbiter(
        n in 2..40_u32,
        sets in select(vec![Sets::Cyclic, Sets::Grid]),
        mode in select(vec!["textbook", "original", "cs425-plain"]),
        id in 1..40_u32,
    ) {
        let id = 1 + id % n;
        let scenario = Scenario { sets: Some(sets), mode: text(mode), ..one(Maekawa, n, id) };
        let set = sets.of(NodeId(id), &Members::range(1, n).unwrap());
        let others = set.len() as u64 - 1;
        let (messages, run) = entered(&scenario);
        prop_assert_eq!((messages, waits(&run), run.at_exit), (3 * others, vec![2.0], vec![others]));
    }

    #[test]
    fn x6_8_saturated_maekawa_serves_all_with_less_than_6_for_each_other_arbiter(
        n in select(vec![3, 7, 9, 13_u32]),
        sets in select(vec![Sets::Cyclic, Sets::Grid]),
        seed in any::<u64>(),
    ) {
        let scenario = Scenario {
            sets: Some(sets),
            seed: Some(seed),
            delay: text("uniform:0.2ms..1ms"),
            hold: text("uniform:0.1ms..1ms"),
            ..saturated(Maekawa, n, 5)
        };
        let (messages, run) = entered(&scenario);
        let members = Members::range(1, n).unwrap();
        let largest = members.iter().map(|id| sets.of(id, &members).len()).max().unwrap() as u64;
        prop_assert!(messages <= 6 * (largest - 1) * run.entries.len() as u64);
    }

    #[test]
    fn x7_1_idle_raymond_costs_2_for_each_hop_and_nothing_at_exit(
        n in 2..40_u32,
        tree in select(Tree::ALL.to_vec()),
        ids in (1..40_u32, 1..40_u32),
    ) {
        let (id, token) = (1 + ids.0 % n, 1 + ids.1 % n);
        let scenario = Scenario { tree: Some(tree), leader: Some(token), ..one(Raymond, n, id) };
        let hops = tree.distance(id as usize - 1, token as usize - 1);
        let (messages, run) = entered(&scenario);
        prop_assert_eq!((messages, run.at_exit.clone()), (2 * hops as u64, vec![0]));
        prop_assert_eq!(waits(&run), [2.0 * hops as f64]);
    }

    #[test]
    fn x8_1_and_x8_2_suzuki_kasami_costs_n_or_nothing(n in 2..20_u32) {
        let (messages, run) = entered(&one(SuzukiKasami, n, 2));
        prop_assert_eq!((messages, waits(&run)), (u64::from(n), vec![2.0]));
        let (messages, run) = entered(&one(SuzukiKasami, n, 1));
        prop_assert_eq!((messages, waits(&run)), (0, vec![0.0]));
        let (messages, run) = entered(&all(SuzukiKasami, n));
        prop_assert_eq!(messages, u64::from(n) * u64::from(n - 1));
        prop_assert!(sync_delays(&run).iter().all(|&delay| delay == 1.0));
    }

    /// Every closed form that claims to be about a run gives what is counted there.
    #[test]
    fn every_formula_gives_what_is_counted(
        algorithm in select(Algorithm::EXCLUSIONS.to_vec()),
        n in 2..12_u32,
        ids in proptest::collection::vec((0..12_u32, 0..8_u32), 1..6),
        repeat in 1..4_u32,
        together in any::<bool>(),
        delay in select(vec!["1ms", "uniform:0.5ms..1ms", "exp:0.5ms"]),
        seed in any::<u64>(),
    ) {
        let times = ids.into_iter().map(|(id, at)| (1 + id % n, f64::from(at)));
        let scenario = Scenario {
            requests: if together { all_start() } else { start_at(times) },
            repeat: Some(repeat),
            delay: text(delay),
            seed: Some(seed),
            ..live(algorithm, n)
        };
        let case = resolve(&scenario);
        if let Some(formula) = formula::of(&case) {
            prop_assert_eq!(run(&scenario).messages.total, formula.value, "{}", formula.name);
        }
    }

    /// No algorithm lets two members in, whatever the delays, and all requests are served.
    #[test]
    fn at_most_one_member_is_inside_and_all_are_served(
        algorithm in select(Algorithm::EXCLUSIONS.to_vec()),
        n in 2..10_u32,
        repeat in 1..5_u32,
        hold in select(vec!["0ms", "1ms", "uniform:0ms..3ms", "exp:1ms"]),
        think in select(vec!["0ms", "exp:2ms"]),
        seed in any::<u64>(),
    ) {
        let scenario = Scenario {
            hold: text(hold),
            think: text(think),
            delay: text("uniform:0.1ms..1ms"),
            seed: Some(seed),
            ..saturated(algorithm, n, repeat)
        };
        let (_, run) = entered(&scenario);
        prop_assert_eq!(run.entries.len(), (n * repeat) as usize);
    }
}

#[test]
fn x1_5_an_explicit_deny_costs_one_more_for_each_that_waits() {
    let requests = start(&[1, 2, 3, 4, 5]);
    let scenario = Scenario { requests, mode: text("deny"), ..live(Centralised, 6) };
    assert_eq!(entered(&scenario).0, 3 * 5 + 4);
}

#[test]
fn x1_6_a_coordinator_lets_one_in_every_hold_and_2() {
    let requests = start(&[1, 2, 3, 4, 5]);
    let scenario = Scenario { requests, repeat: Some(60), ..live(Centralised, 6) };
    assert_close(steady(&entered(&scenario).1, 5).1, 1.0 / 3.0);
}

#[test]
fn x4_3_to_x4_5_the_token_ring_costs_1_to_without_end() {
    let scenario = Scenario { hold: text("0.5ms"), ..saturated(TokenRing, 8, 25) };
    let (_, run) = entered(&scenario);
    assert_eq!((steady(&run, 8).0, sync_delays(&run)), (1.0, vec![1.0]));
    // No member wants to enter for a long time: a message in each message time.
    let late = Scenario { requests: start_at([(4, 1000.0)]), ..live(TokenRing, 8) };
    let (messages, _) = entered(&late);
    assert!((1000..1010).contains(&messages), "{messages}");
    let greedy = Scenario { repeat: Some(40), hold: text("0.5ms"), ..one(TokenRing, 5, 3) };
    let (_, run) = entered(&greedy);
    assert_eq!((steady(&run, 1).0, sync_delays(&run)), (5.0, vec![5.0]));
}

/// X5.5: each voter hears another member first, and all wait equally long after that.
#[test]
fn x5_5_voting_with_equal_back_off_never_ends() {
    let slow = |from: u32, to: u32| doyen_sim::fault::LinkOverride {
        from: Some(NodeId(from)),
        to: Some(NodeId(to)),
        kind: Some("REQUEST".to_owned()),
        delay: Some(DelayModel::Fixed(1_500_000)),
        ..Default::default()
    };
    let pairs = [1, 2, 3].into_iter().flat_map(|from| [4, 5, 6].map(|to| (from, to)));
    let links = pairs.filter(|(from, to)| from + 3 != *to).map(|(from, to)| slow(from, to));
    let scenario = Scenario {
        requests: start(&[1, 2, 3]),
        voters: Some(3),
        ask_all: true,
        back_off: text("2ms"),
        bound: text("1.5ms"),
        until: text("3s"),
        link: links.collect(),
        ..live(Voting, 6)
    };
    let run = run(&scenario).exclusion.unwrap();
    assert_eq!((run.entries.len(), run.waiting.len()), (0, 3));
}

#[test]
fn x6_7_the_synchronisation_delay_of_maekawa_is_2_or_1_at_a_shared_arbiter() {
    let members = Members::range(1, 7).unwrap();
    let set = |id: u32| Sets::Plane.of(NodeId(id), &members);
    for (one, other) in (1..=7).flat_map(|one| (1..=7).map(move |other| (one, other))) {
        if one == other {
            continue;
        }
        let scenario = Scenario {
            requests: start_at([(one, 0.0), (other, 3.0)]),
            hold: text("10ms"),
            sets: Some(Sets::Plane),
            ..live(Maekawa, 7)
        };
        let both = |id: u32| set(one).contains(NodeId(id)) && set(other).contains(NodeId(id));
        let delay = if both(one) || both(other) { 1.0 } else { 2.0 };
        assert_eq!(sync_delays(&entered(&scenario).1), [delay], "{one} {other}");
    }
}

#[test]
fn x7_3_the_mean_cost_of_raymond_over_all_pairs() {
    for n in 2..40_usize {
        let pairs = || (0..n).flat_map(|from| (0..n).map(move |to| (from, to)));
        let mean = |tree: Tree| {
            2.0 * pairs().map(|(from, to)| tree.distance(from, to)).sum::<usize>() as f64
                / (n * n) as f64
        };
        let n = n as f64;
        assert_close(mean(Tree::Line), 2.0 * (n * n - 1.0) / (3.0 * n));
        assert_close(mean(Tree::Star), 4.0 * ((n - 1.0) / n).powi(2));
    }
}

#[test]
fn x7_4_saturated_raymond_costs_the_same_on_every_tree() {
    for (tree, n) in Tree::ALL.into_iter().flat_map(|tree| [4, 15].map(|n| (tree, n))) {
        let (_, run) = entered(&Scenario { tree: Some(tree), ..saturated(Raymond, n, 40) });
        let expected = 4.0 * f64::from(n - 1) / f64::from(n);
        assert_close(steady(&run, n as usize).0, expected);
        assert!(run.at_exit.iter().all(|&sent| sent <= 2), "{tree}");
    }
}

/// X9, which contains X2.5, X3.5, X3.6 and X8.3: messages for each entry and entries for each D, with 9 members.
#[test]
fn x9_nine_members_that_always_want_to_enter() {
    let plain = |algorithm| saturated(algorithm, 9, 60);
    let table = [
        (plain(Centralised), 2.667, 0.36),
        (plain(Lamport), 24.0, 0.5),
        (Scenario { mode: text("saved-replies"), ..plain(Lamport) }, 24.0, 0.5),
        (plain(RicartAgrawala), 16.0, 0.5),
        (plain(SuzukiKasami), 9.0, 0.5),
        (plain(TokenRing), 1.0, 0.5),
        (Scenario { sets: Some(Sets::Grid), ..plain(Maekawa) }, 16.0, 0.333),
        (Scenario { sets: Some(Sets::Cyclic), ..plain(Maekawa) }, 12.0, 0.333),
        (Scenario { tree: Some(Tree::Star), ..plain(Raymond) }, 3.556, 0.36),
        (Scenario { tree: Some(Tree::Line), ..plain(Raymond) }, 3.556, 0.36),
        (Scenario { tree: Some(Tree::Binary), ..plain(Raymond) }, 3.556, 0.36),
    ];
    for (scenario, messages, rate) in table {
        let measured = steady(&entered(&scenario).1, 9);
        let close = (measured.0 - messages).abs() < 0.01 && (measured.1 - rate).abs() < 0.01;
        assert!(close, "{:?} {:?}: {measured:?}", scenario.algorithm, scenario.tree);
    }
}

/// The example of the specification, with every value that it prints.
#[test]
fn the_example_is_summed_up_as_it_is_specified() {
    let scenario = Scenario {
        requests: start_at([(1, 0.0), (3, 2.0)]),
        hold: text("5ms"),
        ..live(RicartAgrawala, 5)
    };
    let case = resolve(&scenario);
    let summary = Summary::new(&case, &run(&scenario), formula::of(&case).as_ref()).unwrap();
    let json = serde_json::to_value(&summary).unwrap();
    let expected = serde_json::json!({
        "kind": "exclusion",
        "entries": [
            {"member": 1, "asked": 0, "entered": 2_000_000, "exited": 7_000_000, "fence": null, "bypassed": 0},
            {"member": 3, "asked": 2_000_000, "entered": 8_000_000, "exited": 13_000_000, "fence": null, "bypassed": 0},
        ],
        "messages": {
            "total": 16, "by_kind": {"REPLY": 8, "REQUEST": 8}, "per_entry": 8.0, "at_exit": {"mean": 0.5, "max": 1},
        },
        "wait": {"min": 2_000_000, "median": 4_000_000, "max": 6_000_000},
        "client_delay": 2_000_000,
        "sync_delay": {"min": 1_000_000, "median": 1_000_000, "max": 1_000_000},
        "entries_per_d": 0.154,
        "waiting": [],
        "overlap": 0,
        "properties": {"one-inside": true, "served": true, "causal-order": null},
        "formula": {"name": "Ricart-Agrawala: 2(N-1) per entry", "value": 16, "matches": true},
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&json[key], value, "{key}");
    }
    let kept = [
        "algorithm",
        "mode",
        "members",
        "live",
        "time_unit",
        "seed",
        "messages",
        "stages",
        "ended",
        "end",
        "formula",
        "digest",
    ];
    assert!(kept.iter().all(|&key| json.get(key).is_some()));
    assert!(["leader", "agreed"].iter().all(|&key| json.get(key).is_none()));
}
