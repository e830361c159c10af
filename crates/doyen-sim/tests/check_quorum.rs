//! The quorum, explored.
//!
//! **The voting rules alone**, completely: everybody stands whenever it likes, messages take any time, arrive in any
//! order or never, and members crash between any two writes and messages and come back. Nothing else that a quorum does
//! can add a run to these: leases, promises and priorities only keep members from standing and from answering.
//!
//! **With leases and promises**, where clocks keep time and messages take any time, as deep as the time goes.

use std::sync::atomic::{AtomicU8, Ordering};

use doyen_core::algorithm::quorum::Quorum;
use doyen_core::algorithm::quorum::rules::{Rule, Rulebook, Sound};
use doyen_core::algorithm::quorum::settings::{Pace, Preemption};
use doyen_core::algorithm::quorum::voter::Voter;
use doyen_core::config::{Config, Mode, Timing};
use doyen_core::members::Members;
use doyen_core::node::{Node, NodeConfig};
use doyen_core::protocol::Protocol;
use doyen_core::time::Span;
use doyen_sim::check::budget::{ANY_CAMPAIGNS, Budget};
use doyen_sim::check::property::Property;
use doyen_sim::check::search::{Limits, Plan};
use doyen_sim::check::{self, Explorable, Report, Rules, Scene, Timers};
use doyen_sim::scenario::Scenario;

/// `D`, a tick.
const TICK: Span = Span::from_millis(1);

/// One rule less. Which, is set before a search: all of its threads must see it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Broken {}

static MISSING: AtomicU8 = AtomicU8::new(u8::MAX);

impl Rulebook for Broken {
    fn keeps(rule: Rule) -> bool {
        MISSING.load(Ordering::Relaxed) != rule as u8
    }
}

fn config(members: u32) -> Config {
    let timing = Timing::for_transmission(TICK);
    Config::new(Members::range(1, members).unwrap(), timing, Mode::Hardened)
}

/// Votes among `members`, each of which may stand in every term, with so many crashes and restarts.
fn vote<V: Protocol<Config = Config> + Explorable>(
    members: u32,
    faults: u8,
    properties: &[Property],
) -> Report {
    let config = config(members);
    let campaigns = ANY_CAMPAIGNS;
    let budget = Budget { campaigns, crashes: faults, restarts: faults, ..Budget::default() };
    let rules = Rules {
        budget,
        timers: Timers::Free { expiries: 1 },
        fifo: false,
        properties: properties.to_vec(),
        from: None,
    };
    let plan = Plan { depth_first: false, reduce: false, threads: 1, limits: Limits::default() };
    check::explore::<V>(&config, &Scene::new(&config.members), &rules, &plan, &|_| {})
}

const OF_VOTES: [Property; 4] = [
    Property::OneLeaderPerTerm,
    Property::OneVoteATerm,
    Property::TermsNeverFall,
    Property::StoredFirst,
];

#[test]
fn the_voting_rules_are_explored_completely() {
    let report = vote::<Voter<Sound, 2>>(3, 1, &OF_VOTES);
    println!("{:?}", report.progress);
    assert_eq!((report.limit, report.violation), (None, None));
}

#[test]
fn a_voting_rule_less_makes_two_leaders_of_one_term() {
    for rule in [
        Rule::Majority,
        Rule::TermIsStored,
        Rule::VoteIsStored,
        Rule::OneVoteATerm,
        Rule::VoteCountsInItsTerm,
        Rule::VoteOutlivesOffice,
    ] {
        MISSING.store(rule as u8, Ordering::Relaxed);
        let found = vote::<Voter<Broken, 2>>(3, 1, &[Property::OneLeaderPerTerm]);
        println!("{rule:?}: {:?}", found.progress);
        let broken = found.violation.map(|violation| violation.property);
        assert_eq!(broken, Some(Property::OneLeaderPerTerm), "without {rule:?}");
    }
}

#[test]
fn with_leases() {
    let mut config = config(3);
    let quorum = &mut config.quorum;
    quorum.pace = Pace { heartbeat: TICK * 2, promise: TICK * 4, drift: 0, grain: TICK };
    (quorum.jitter, quorum.stagger) = (Span::ZERO, Span::ZERO);
    (quorum.tenure, quorum.forgiveness) = (Span::ZERO, Span::ZERO);
    (quorum.preemption, quorum.remembers) = (Preemption::Never, false);
    let members = config.members.clone();
    let mut scene = Scene::new(&members);
    scene.leader = Some(members.highest());
    let rules = Rules {
        budget: Budget { crashes: 1, restarts: 1, ..Budget::default() },
        timers: Timers::Clocked { tick: TICK },
        fifo: false,
        properties: vec![
            Property::OneLeader,
            Property::OneLeaderPerTerm,
            Property::OneVoteATerm,
            Property::TermsNeverFall,
            Property::StoredFirst,
        ],
        from: None,
    };
    let limits = Limits { states: Some(1_000_000), ..Limits::default() };
    let plan = Plan { depth_first: false, reduce: false, threads: 1, limits };
    let node = NodeConfig {
        inner: config,
        members: members.clone(),
        filter: true,
        link: None,
        detector: None,
    };
    let report = check::explore::<Node<Quorum>>(&node, &scene, &rules, &plan, &|_| {});
    println!("{:?} {:?}", report.progress, report.limit);
    assert_eq!(report.violation, None);
}

/// Nobody has called an election, and nobody who lives wants to lead: that is no calm in which nothing is owed.
#[test]
fn a_quorum_owes_a_leader_without_being_called() {
    let text = "algorithm = \"quorum\"\nmembers = 3\ndead = [3]\ninitiators = \"none\"\n\
                quorum = { reluctant = [1, 2] }";
    let case = Scenario::from_toml("test", text).unwrap();
    let rules = Rules {
        budget: Budget::default(),
        timers: Timers::Bounded { tick: TICK, detection: 2 },
        fifo: false,
        properties: vec![Property::Termination],
        from: None,
    };
    let plan = Plan { depth_first: false, reduce: false, threads: 1, limits: Limits::default() };
    let report = check::check(&case, &rules, &plan, &|_| {});
    let broken = report.violation.map(|violation| violation.property);
    assert_eq!(broken, Some(Property::Termination));
}

/// Rounded up to a tick, a promise would be longer than it is, and a lease as well.
#[test]
fn clocked_timers_take_no_lease_that_is_not_whole_ticks() {
    let refusal = |promise: &str, timers: Timers| {
        let text = format!(
            "algorithm = \"quorum\"\nmembers = 3\nleader = 3\nquorum = {{ promise = \"{promise}\" }}"
        );
        timers.suit(&Scenario::from_toml("test", &text).unwrap()).err()
    };
    let clocked = Timers::Clocked { tick: TICK };
    assert_eq!(refusal("22ms", clocked), None);
    assert_eq!(
        refusal("21ms", clocked).unwrap(),
        "a lease of 17.181818ms is not a whole number of ticks of 1ms, in which clocked timers go; a promise of 22ms would do"
    );
    assert_eq!(
        refusal("24.5ms", clocked).unwrap(),
        "a promise of 24.5ms is not a whole number of ticks of 1ms, in which clocked timers go; a promise of 33ms would do"
    );
    assert_eq!(refusal("21ms", Timers::Bounded { tick: TICK, detection: 2 }), None);
}
