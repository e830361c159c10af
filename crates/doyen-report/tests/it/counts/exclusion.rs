//! Part X: the entries into a critical section, by the numbers of their specification. The reference program counts time in
//! D, holds the section for 1 unless a line says otherwise, and measures saturation in the middle of a long run.

use doyen_core::config::exclusion::{Sets, Tree};
use doyen_core::members::{Members, NodeId};
use doyen_core::registry::Algorithm::{
    self, Centralised, Lamport, Maekawa, Raymond, RicartAgrawala, SuzukiKasami, TokenRing, Voting,
};
use doyen_core::time::Span;
use doyen_report::claims::{EntryRow, Selection, entry_tables};
use doyen_report::exclusion::Summary;
use doyen_report::formula;
use doyen_sim::fault::{Fault, LinkOverride};
use doyen_sim::metrics::sections::{Entry, Exclusion};
use doyen_sim::network::DelayModel;
use doyen_sim::scenario::Scenario;
use proptest::prelude::*;
use proptest::sample::select;

use super::groups::{all_start, in_d, live, of_kind, resolve, run, start, start_at, text};

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
        let cost = contend(voters, contenders, ask_all, seed);
        prop_assert!((cost.least..=cost.most).contains(&cost.messages), "{cost:?}");
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
        shape in select(Tree::SHAPES.map(Some).into_iter().chain([None]).collect::<Vec<_>>()),
        ids in (1..40_u32, 1..40_u32),
    ) {
        let tree = shape.unwrap_or_else(|| ternary(n));
        let (id, token) = (1 + ids.0 % n, 1 + ids.1 % n);
        let members = Members::range(1, n).unwrap();
        let hops = tree.distance(id as usize - 1, token as usize - 1, &members);
        let scenario = Scenario { tree: Some(tree), leader: Some(token), ..one(Raymond, n, id) };
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

/// What the entries of members that contend for votes cost, and between what bounds.
#[derive(Debug)]
struct Voted {
    attempts: u64,
    messages: u64,
    least: u64,
    most: u64,
}

/// `contenders` members ask once, at the same time. The voters are other members.
fn contend(voters: u32, contenders: u32, ask_all: bool, seed: u64) -> Voted {
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
    assert!(run.broken.is_empty() && run.waiting.is_empty());
    let (entries, m) = (u64::from(contenders), u64::from(voters / 2 + 1));
    let asked = if ask_all { u64::from(voters) } else { m };
    // Each attempt asks so many voters, and each is answered.
    let requests = of_kind(&outcome, "REQUEST");
    let k = requests / asked;
    assert_eq!(requests % asked, 0);
    assert_eq!(of_kind(&outcome, "VOTE") + of_kind(&outcome, "DENY"), requests);
    Voted {
        attempts: k,
        messages: outcome.messages.total,
        least: 2 * asked * k + m * entries,
        most: 2 * asked * k + (k - entries) * (m - 1) + asked * entries,
    }
}

/// X5.1: after failed attempts an entry may cost 2mk+m and 3mk-(k-1). So 3mk is the cost of one attempt only.
#[test]
fn x5_1_both_bounds_of_voting_are_reached() {
    let costs: Vec<Voted> = (0..200).map(|seed| contend(3, 2, false, seed)).collect();
    let failed = || costs.iter().filter(|cost| cost.attempts > 2);
    assert!(failed().any(|cost| cost.messages == cost.least));
    assert!(failed().any(|cost| cost.messages == cost.most));
}

/// X6.8, as the reference program measures it: delays and stays are random, and INQUIRE is rare.
#[test]
fn x6_8_saturated_maekawa_costs_almost_4_for_each_other_arbiter() {
    for (sets, n, size) in [
        (Sets::Plane, 7, 3),
        (Sets::Plane, 13, 4),
        (Sets::Plane, 21, 5),
        (Sets::Grid, 9, 5),
        (Sets::Grid, 16, 7),
    ] {
        let scenario = |seed| Scenario {
            sets: Some(sets),
            seed: Some(seed),
            delay: text("uniform:0.2ms..1ms"),
            hold: text("uniform:0.1ms..1ms"),
            ..saturated(Maekawa, n, 12)
        };
        let messages: u64 = (0..4).map(|seed| entered(&scenario(seed)).0).sum();
        let each = messages as f64 / f64::from(4 * 12 * n) / f64::from(size - 1);
        assert!((3.95..4.0).contains(&each), "{sets} {n}: {each}");
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
    assert_close(steady(&run, 8).1, 1.0 / 1.5);
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
    let slow = |from: u32, to: u32| LinkOverride {
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
        let members = Members::range(1, n as u32).unwrap();
        let pairs = || (0..n).flat_map(|from| (0..n).map(move |to| (from, to)));
        let mean = |tree: Tree| {
            2.0 * pairs().map(|(from, to)| tree.distance(from, to, &members)).sum::<usize>() as f64
                / (n * n) as f64
        };
        let n = n as f64;
        assert_close(mean(Tree::Line), 2.0 * (n * n - 1.0) / (3.0 * n));
        assert_close(mean(Tree::Star), 4.0 * ((n - 1.0) / n).powi(2));
    }
}

#[test]
fn x7_4_saturated_raymond_costs_the_same_on_every_tree() {
    let sizes = |tree: Tree| [4, 15, 31].map(|n| (tree.clone(), n));
    for (tree, n) in Tree::SHAPES.into_iter().flat_map(sizes) {
        let scenario = Scenario { tree: Some(tree.clone()), ..saturated(Raymond, n, 40) };
        let (_, run) = entered(&scenario);
        let others = f64::from(n - 1) / f64::from(n);
        assert_close(steady(&run, n as usize).0, 4.0 * others);
        // With equal stays of 1, one entry every 1 + 2(N-1)/N.
        assert_close(steady(&run, n as usize).1, 1.0 / (1.0 + 2.0 * others));
        assert!(run.at_exit.iter().all(|&sent| sent <= 2), "{tree}");
    }
}

/// X2.5, X3.5, X3.6 and X8.3 at other sizes than X9's: messages for each entry, and one entry every hold + 1.
#[test]
fn x2_5_x3_5_x3_6_and_x8_3_saturation_costs_as_much_as_one_request() {
    for n in [3, 5, 6] {
        let saved = Scenario { mode: text("saved-replies"), ..saturated(Lamport, n, 40) };
        for (scenario, messages) in [
            (saved, 3 * (n - 1)),
            (saturated(RicartAgrawala, n, 40), 2 * (n - 1)),
            (saturated(SuzukiKasami, n, 40), n),
        ] {
            let (each, rate) = steady(&entered(&scenario).1, n as usize);
            assert_close(each, f64::from(messages));
            assert_close(rate, 0.5);
        }
    }
}

/// X9: messages for each entry, entries for each D and the mean synchronisation delay, with 9 members, all of which enter as
/// often as any other.
#[test]
fn x9_nine_members_that_always_want_to_enter() {
    let plain = |algorithm| saturated(algorithm, 9, 60);
    let table = [
        (plain(Centralised), 2.667, 0.36, 1.78),
        (plain(Lamport), 24.0, 0.5, 1.0),
        (plain(RicartAgrawala), 16.0, 0.5, 1.0),
        (plain(SuzukiKasami), 9.0, 0.5, 1.0),
        (plain(TokenRing), 1.0, 0.5, 1.0),
        (Scenario { sets: Some(Sets::Grid), ..plain(Maekawa) }, 16.0, 0.333, 2.0),
        (Scenario { sets: Some(Sets::Cyclic), ..plain(Maekawa) }, 12.0, 0.333, 2.0),
        (Scenario { tree: Some(Tree::Star), ..plain(Raymond) }, 3.556, 0.36, 1.78),
        (Scenario { tree: Some(Tree::Line), ..plain(Raymond) }, 3.556, 0.36, 1.77),
        (Scenario { tree: Some(Tree::Binary), ..plain(Raymond) }, 3.556, 0.36, 1.78),
    ];
    for (scenario, messages, rate, handover) in table {
        let (_, run) = entered(&scenario);
        let (each, measured_rate) = steady(&run, 9);
        let delays: f64 = run.sync_delays.iter().map(|&delay| in_d(delay)).sum();
        let mean = delays / run.sync_delays.len() as f64;
        for (measured, expected) in [(each, messages), (measured_rate, rate), (mean, handover)] {
            let close = (measured - expected).abs() < 0.01;
            assert!(close, "{:?} {:?}: {measured}", scenario.algorithm, scenario.tree);
        }
        // At the end some have finished; until the middle, none was served twice more than another one.
        let middle = &run.entries[..run.entries.len() / 2];
        let served = |id| middle.iter().filter(|entry| entry.member == NodeId(id)).count();
        let served: Vec<usize> = (1..=9).map(served).collect();
        assert!(served.iter().max().unwrap() - served.iter().min().unwrap() <= 2, "{served:?}");
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

/// X3.4: cs677's delay of 2(n-1) is that of a medium that carries one message at a time.
#[test]
fn x3_4_on_a_serial_medium_an_entry_takes_2_for_each_other_member() {
    for n in 3..20_u32 {
        // The k-th REQUEST arrives at k, and the REPLYs follow one after the other.
        let requests = (3..=n).map(|id| format!("1:{id}:REQUEST+{}ms", id - 2));
        let replies = (2..=n).map(|id| format!("{id}:1:REPLY+{}ms", n - 2));
        let late = requests.chain(replies).map(|it| text(&it).unwrap()).collect();
        let serial = Scenario { late, ..one(RicartAgrawala, n, 1) };
        assert_eq!(waits(&entered(&serial).1), [f64::from(2 * (n - 1))]);
        assert_eq!(waits(&entered(&one(RicartAgrawala, n, 1)).1), [2.0], "on links of their own");
    }
}

/// X5.4, as the reference program measures it: 3 voters, 2 votes, and members that ask again at once.
#[test]
fn x5_4_voting_starves_under_load() {
    for (contenders, attempts, messages) in
        [(1, 1.4, 11.3), (2, 2.3, 16.7), (4, 3.9, 27.2), (8, 8.1, 52.9), (16, 22.1, 139.7)]
    {
        let ids: Vec<u32> = (1..=contenders).collect();
        let scenario = Scenario {
            requests: start(&ids),
            repeat: Some(5_000),
            voters: Some(3),
            ask_all: true,
            delay: text("uniform:0.5ms..1ms"),
            back_off: text("uniform:0.5ms..4ms"),
            until: text("5000ms"),
            ..live(Voting, contenders + 3)
        };
        let outcome = run(&scenario);
        let run = outcome.exclusion.as_ref().unwrap();
        assert!(run.broken.is_empty());
        let entries = run.entries.len() as f64;
        let requests =
            outcome.messages.by_kind.iter().find(|(kind, _)| *kind == "REQUEST").unwrap().1;
        for (measured, expected) in [
            (requests as f64 / 3.0 / entries, attempts),
            (outcome.messages.total as f64 / entries, messages),
        ] {
            let close = (measured / expected - 1.0).abs() < 0.2;
            assert!(close, "{contenders}: {measured} instead of {expected}");
        }
        let wait = run.wait().unwrap();
        assert!(
            contenders == 1 || in_d(wait.max) > 5.0 * in_d(wait.median),
            "{contenders}: {wait:?}"
        );
    }
}

/// X5.6: a second member enters if 2m-n of the m voters that let the first one in have forgotten that, and not with fewer. So
/// its probability is that so many of them restart meanwhile.
#[test]
fn x5_6_forgetful_voters_let_a_second_member_in() {
    for (n, m) in [(3, 2), (4, 3), (5, 3), (5, 4), (7, 4), (8, 5), (8, 6)] {
        for forgetful in 0..=m {
            // The voters are the highest members. Those beyond the first m do not hear 1, and are free for 2.
            let restarts = (3..3 + forgetful).flat_map(|voter| {
                let fault = |kind, at| Fault::from_flag(kind, &format!("{voter}@{at}ms")).unwrap();
                [fault("crash", 5), fault("restart", 6)]
            });
            let unheard = (3 + m..3 + n).map(|voter| format!("1:{voter}:REQUEST"));
            let scenario = Scenario {
                requests: start_at([(1, 0.0), (2, 10.0)]),
                hold: text("15ms"),
                voters: Some(n),
                votes: Some(m),
                ask_all: true,
                until: text("16ms"),
                drop: unheard.map(|it| text(&it).unwrap()).collect(),
                fault: restarts.collect(),
                ..live(Voting, n + 2)
            };
            let run = run(&scenario).exclusion.unwrap();
            assert_eq!(run.overlap > Span::ZERO, forgetful + n >= 2 * m, "{n} {m} {forgetful}");
        }
    }
    let choose =
        |m: u32, k: u32| (1..=k).fold(1.0, |it, i| it * f64::from(m - k + i) / f64::from(i));
    let probability = |n: u32, m: u32, p: f64| -> f64 {
        (2 * m - n..=m)
            .map(|k| choose(m, k) * p.powi(k as i32) * (1.0 - p).powi((m - k) as i32))
            .sum()
    };
    for (per_hour, n, m, printed) in [
        (3.0, 8, 5, 6.9e-6),
        (3.0, 8, 6, 7.2e-12),
        (3.0, 16, 12, 1.1e-22),
        (30.0, 8, 5, 6.8e-4),
        (30.0, 16, 9, 2.4e-3),
        (30.0, 32, 17, 8.7e-3),
    ] {
        let p = probability(n, m, per_hour / 3600.0);
        assert!((p / printed - 1.0).abs() < 0.05, "n={n} m={m}: {p} instead of {printed}");
    }
}

/// X6.10: REQUESTs of high priority that come late make the arbiters ask for their votes again.
fn slow_requests(n: u32, slow: &[f64]) -> Vec<LinkOverride> {
    let link = |(id, factor): (u32, &f64)| LinkOverride {
        from: Some(NodeId(id)),
        kind: Some("REQUEST".to_owned()),
        delay: text(&format!("uniform:{}ms..{}ms", factor * 0.5, factor * 1.5)),
        ..LinkOverride::default()
    };
    (1..=n).zip(slow).map(link).collect()
}

proptest! {
    #[test]
    fn x6_10_late_requests_never_cost_more_than_6_for_each_other_arbiter(
        (sets, n) in select(vec![(Sets::Cyclic, 7), (Sets::Cyclic, 13), (Sets::Grid, 4), (Sets::Grid, 9_u32)]),
        slow in proptest::collection::vec(select(vec![0.01, 1.0, 5.0, 20.0, 60.0]), 13),
        ids in proptest::collection::btree_set(1..=13_u32, 2..13),
        hold in select(vec!["0.1ms", "5ms"]),
        seed in any::<u64>(),
    ) {
        let ids: Vec<u32> = ids.into_iter().filter(|&id| id <= n).collect();
        prop_assume!(!ids.is_empty());
        let scenario = Scenario {
            requests: start(&ids),
            sets: Some(sets),
            hold: text(hold),
            delay: text("uniform:0.01ms..0.5ms"),
            bound: text("90ms"),
            link: slow_requests(n, &slow),
            seed: Some(seed),
            ..live(Maekawa, n)
        };
        let (messages, run) = entered(&scenario);
        prop_assert_eq!(run.entries.len(), ids.len());
        let members = Members::range(1, n).unwrap();
        let largest = members.iter().map(|id| sets.of(id, &members).len()).max().unwrap() as u64;
        prop_assert!(messages <= 6 * (largest - 1) * ids.len() as u64);
    }
}

/// A tree in which every member has three below it, as far as there are so many.
fn ternary(n: u32) -> Tree {
    Tree::Listed((2..=n).map(|id| (NodeId((id + 1) / 3), NodeId(id))).collect())
}

/// X7.2: the diameter of a tree, and the mean of 2d over all pairs.
#[test]
fn x7_2_diameters_and_means_of_trees() {
    let table = [
        (7, [(6, 4.57), (2, 2.94), (4, 3.92), (3, 3.43)]),
        (15, [(14, 9.96), (2, 3.48), (6, 6.54), (5, 5.65)]),
        (31, [(30, 20.65), (2, 3.75), (8, 9.59), (6, 7.72)]),
        (63, [(62, 41.99), (2, 3.87), (10, 12.96), (7, 9.99)]),
    ];
    for (n, expected) in table {
        let members = Members::range(1, n).unwrap();
        let trees = [Tree::Line, Tree::Star, Tree::Binary, ternary(n)];
        for (tree, (diameter, mean)) in trees.into_iter().zip(expected) {
            assert_eq!(tree.suits(&members), Ok(()));
            let n = n as usize;
            let distance = |(from, to)| tree.distance(from, to, &members);
            let hops = (0..n).flat_map(|from| (0..n).map(move |to| (from, to))).map(distance);
            let hops: Vec<usize> = hops.collect();
            assert_eq!(hops.iter().max(), Some(&diameter), "{n} {tree}");
            assert_close(2.0 * hops.iter().sum::<usize>() as f64 / (n * n) as f64, mean);
        }
    }
}

/// A tree that is given by its edges costs what its hops say.
#[test]
fn a_listed_tree_costs_2_for_each_hop() {
    let tree: Tree = "1-4,4-2,2-5,5-3".parse().unwrap();
    let scenario = Scenario { tree: Some(tree), leader: Some(1), ..one(Raymond, 5, 3) };
    let (messages, run) = entered(&scenario);
    assert_eq!((messages, waits(&run)), (8, vec![8.0]));
    let (_, run) = entered(&Scenario { repeat: Some(40), requests: all_start(), ..scenario });
    assert_close(steady(&run, 5).0, 4.0 * 4.0 / 5.0);
}

/// An election of nine members. In a quorum all of them would start one, so one can lead and the others vote.
fn one_candidate(algorithm: Algorithm) -> Scenario {
    let text = match algorithm {
        Algorithm::Quorum => "until = '700ms'\n[quorum]\nwitnesses = [1, 2, 3, 4, 5, 6, 7, 8]",
        _ => "",
    };
    Scenario::parse("election", &format!("algorithm = '{algorithm}'\nmembers = 9\n{text}")).unwrap()
}

/// The tables of README.md and docs/exclusion.md show what `doyen compare --exclusion` measures with nine members.
#[test]
fn the_tables_of_the_documents_show_what_is_measured() {
    let selection = Selection { members: vec![9], cases: vec!["idle", "saturated"] };
    let tables = entry_tables(&selection);
    let measured = |name: &str, case: &str, of_row: fn(&EntryRow) -> Option<f64>| -> Vec<String> {
        let algorithm = name.split('`').nth(1).expect("an algorithm");
        let table = tables.iter().find(|table| table.algorithm == algorithm).expect(algorithm);
        let shape = ["line", "star", "binary"].into_iter().find(|shape| name.contains(shape));
        let is_it = |row: &&EntryRow| row.case == case && row.about.contains(shape.unwrap_or(""));
        let rounded = |value: f64| ((value * 100.0).round() / 100.0).to_string();
        table.rows.iter().filter(is_it).filter_map(of_row).map(rounded).collect()
    };
    let mut rows = 0;
    for (file, names) in [("README.md", 3), ("docs/exclusion.md", 0)] {
        let text = std::fs::read_to_string(format!("../../{file}")).expect(file);
        let head = "measured | saturated | measured |";
        let table = text.lines().skip_while(|line| !line.contains(head)).skip(2);
        for row in table.take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let name = cells[names];
            let of_cell = |cell: &str| -> Vec<String> {
                let values = cell.split("; ").map(|it| it.split(" for ").next().unwrap_or(it));
                values
                    .filter(|it| !it.is_empty())
                    .map(|it| it.parse::<f64>().expect(row).to_string())
                    .collect()
            };
            for (cell, case) in [(cells[names + 2], "idle"), (cells[names + 4], "saturated")] {
                for value in of_cell(cell) {
                    let found = measured(name, case, |row| Some(row.per_entry));
                    assert!(found.contains(&value), "{file}, {name}, {case}: {value} of {found:?}");
                    rows += 1;
                }
            }
            if let Some(rate) = cells.get(names + 6).filter(|_| file != "README.md") {
                for value in of_cell(rate) {
                    let found = measured(name, "saturated", |row| Some(row.entries_per_d));
                    assert!(found.contains(&value), "{file}, {name}: {value} of {found:?}");
                }
            }
            if file == "README.md" && !cells[0].is_empty() {
                let election = one_candidate(cells[0].trim_matches('`').parse().expect(row));
                assert_eq!(run(&election).messages.total.to_string(), cells[2], "{row}");
            }
        }
    }
    assert!(rows > 30, "{rows} numbers");
}
