//! What an operator gets for a timing: how long nobody leads, how often the leader changes for no reason, how much is
//! said, for every algorithm on the same network.
//!
//! Three experiments, each a number of simulated runs with different seeds:
//!
//! - **crash**: whoever leads crashes at a random moment; dead air is the time until another acts as leader. With
//!   leases that is from the crash to the next lease. If nobody leads at that moment, the next to lead crashes;
//! - **hand-over**: the leader is told to resign instead; dead air is the time in which nobody acts as leader. The
//!   seeds' algorithms know no hand-over: for them a planned stop is a crash;
//! - **calm**: nothing fails for a while, but the network delays and loses: every change of leader is a false failover,
//!   and what is sent is counted.
//!
//! The network delays every message by a quarter to three quarters of the round trip. The seeds' algorithms run
//! hardened, over the reliable link, with a failure detector whose heartbeat is the profile's.

use doyen_core::algorithm::Algorithm;
use doyen_core::algorithm::quorum::settings::Profile;
use doyen_core::config::Mode;
use doyen_core::members::NodeId;
use doyen_core::protocol::Order;
use doyen_core::time::Span;
use serde::Serialize;

use crate::fault::{Action, Fault};
use crate::network::DelayModel;
use crate::random::Random;
use crate::record::{Observer, Record, What};
use crate::run;
use crate::scenario::{Case, Initiators, MemberList, QuorumOptions, Scenario, ScenarioError};
use crate::text::Share;
use crate::time::Time;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Question {
    /// The timing.
    pub profile: Profile,
    /// How long a message and its answer take, on average.
    pub round_trip: Span,
    /// How many messages are lost, as a fraction.
    pub loss: f64,
    /// How many members there are.
    pub members: u32,
    /// How often each experiment is made.
    pub trials: u32,
    /// What everything random is drawn from.
    pub seed: u64,
}

/// What an algorithm gives.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Budget {
    /// The algorithm.
    pub algorithm: &'static str,
    /// How long nobody led after a crash.
    pub crash: Quantiles,
    /// How long nobody led in a planned hand-over; nothing where there is none.
    pub hand_over: Option<Quantiles>,
    /// How often another member led within an hour in which nothing failed.
    pub false_failovers_an_hour: f64,
    /// How many messages all members together sent in a second of calm, whatever they were for.
    pub messages_a_second: f64,
    /// Whether at most one member acts as leader at any instant.
    pub one_leader: bool,
}

/// Times, from the shortest to the longest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Quantiles {
    /// Half are shorter, in nanoseconds.
    pub p50: u64,
    /// All but one in a hundred are shorter.
    pub p99: u64,
    /// None is longer.
    pub max: u64,
    /// In so many trials nobody led any more when the time was up.
    pub never: u32,
}

/// How long the members are left alone before anything happens to their leader.
const SETTLING: Span = Span::from_millis(2_000);
/// How long calm is watched in each trial of it.
const CALM: Span = Span::from_millis(60_000);
/// How many minutes of calm are watched at most.
const MOST_CALM: u32 = 60;

/// Answers `question` for one algorithm. `watch` is called after every trial.
pub fn measure(
    algorithm: Algorithm,
    question: &Question,
    watch: &mut dyn FnMut(),
) -> Result<Budget, ScenarioError> {
    let mut random = Random::new(question.seed);
    let crash = trials(algorithm, question, Trouble::Crash, &mut random, watch)?;
    let hand_over = match algorithm.has_leases() {
        true => Some(trials(algorithm, question, Trouble::Resign, &mut random, watch)?),
        false => None,
    };
    let (changes, messages, watched) = calm(algorithm, question, &mut random, watch)?;
    let seconds = watched.as_nanos() as f64 / 1e9;
    Ok(Budget {
        algorithm: algorithm.name(),
        crash,
        hand_over,
        false_failovers_an_hour: f64::from(changes) * 3600.0 / seconds,
        messages_a_second: messages as f64 / seconds,
        one_leader: algorithm.has_leases(),
    })
}

/// How many times [`measure`] calls those who watch.
pub fn work(algorithm: Algorithm, question: &Question) -> u64 {
    let kinds = if algorithm.has_leases() { 2 } else { 1 };
    u64::from(question.trials) * kinds + u64::from(question.trials.min(MOST_CALM))
}

/// What happens to the leader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Crash,
    Resign,
}

fn trials(
    algorithm: Algorithm,
    question: &Question,
    trouble: Trouble,
    random: &mut Random,
    watch: &mut dyn FnMut(),
) -> Result<Quantiles, ScenarioError> {
    let (mut times, mut never) = (Vec::new(), 0);
    let patience = question.profile.settings().pace.promise * 100;
    for _ in 0..question.trials {
        // Anywhere between two heartbeats.
        let heartbeat = question.profile.timing().heartbeat.as_nanos();
        let at = Time::ZERO + SETTLING + Span::from_nanos(random.between(0, heartbeat));
        let scenario = scenario(algorithm, question, random.bits());
        let gap = match next_leader(&scenario, at, patience)? {
            Some((leader, at)) => dead_air(&scenario, trouble, leader, at, patience)?,
            None => None,
        };
        match gap {
            Some(span) => times.push(span.as_nanos()),
            None => never += 1,
        }
        watch();
    }
    Ok(Quantiles::of(times, never))
}

/// Who leads at a moment, or if nobody does who leads next, and at which moment it surely does. Nothing if nobody leads
/// within `patience`.
fn next_leader(
    scenario: &Scenario,
    at: Time,
    patience: Span,
) -> Result<Option<(NodeId, Time)>, ScenarioError> {
    // Nearly always somebody leads, and nothing need be simulated beyond that moment.
    for end in [at, at + patience] {
        let mut calm = scenario.clone();
        watch_until(&mut calm, end);
        let found = leader_from(&reigns(&calm.resolve()?), at);
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Has a run go on until then, although nothing but upkeep may be left.
fn watch_until(scenario: &mut Scenario, end: Time) {
    scenario.until = Some(end - Time::ZERO);
    scenario.fault.push(Fault::at(end + CALM, Action::Heal));
}

/// How long nobody acts as leader once `trouble` has come over a leader, until somebody does.
fn dead_air(
    scenario: &Scenario,
    trouble: Trouble,
    leader: NodeId,
    at: Time,
    patience: Span,
) -> Result<Option<Span>, ScenarioError> {
    let what = match trouble {
        Trouble::Crash => Action::Crash { member: leader, forwards: false },
        Trouble::Resign => Action::Order { member: leader, order: Order::Resign },
    };
    let mut troubled = scenario.clone();
    troubled.fault.push(Fault::at(at, what));
    troubled.until = Some(at + patience - Time::ZERO);
    Ok(first_gap_from(&reigns(&troubled.resolve()?), at))
}

/// Changes of leader and messages in calm, and how long it was watched.
fn calm(
    algorithm: Algorithm,
    question: &Question,
    random: &mut Random,
    watch: &mut dyn FnMut(),
) -> Result<(u32, u64, Span), ScenarioError> {
    let (mut changes, mut messages, mut watched) = (0, 0, Span::ZERO);
    for _ in 0..question.trials.min(MOST_CALM) {
        let mut scenario = scenario(algorithm, question, random.bits());
        watch_until(&mut scenario, Time::ZERO + CALM);
        let outcome = run::run(&scenario.resolve()?, None);
        changes += outcome.leader_changes;
        let sent = &outcome.messages;
        messages += sent.total + sent.link + sent.detector;
        watched = watched + (outcome.end - Time::ZERO);
        watch();
    }
    Ok((changes, messages, watched))
}

/// The group: the best member leads, the network delays and loses.
fn scenario(algorithm: Algorithm, question: &Question, seed: u64) -> Scenario {
    let quarter = Span::from_nanos((question.round_trip.as_nanos() / 4).max(1));
    let timing = question.profile.timing();
    let seeds = !algorithm.has_leases();
    Scenario {
        algorithm: Some(algorithm),
        mode: Some(Mode::Hardened),
        members: Some(MemberList::Count(u64::from(question.members))),
        leader: Some(question.members),
        initiators: Some(Initiators::None),
        seed: Some(seed >> 1),
        delay: Some(DelayModel::Uniform { min: quarter.as_nanos(), max: (quarter * 3).as_nanos() }),
        loss: Share::new(question.loss).ok(),
        heartbeat: Some(timing.heartbeat),
        detector: seeds.then_some(timing.heartbeat),
        reliable: seeds,
        quorum: (!seeds)
            .then(|| QuorumOptions { profile: Some(question.profile), ..QuorumOptions::default() }),
        ..Scenario::default()
    }
}

/// From when to when somebody acted as leader, the earliest first.
fn reigns(case: &Case) -> Vec<Reign> {
    let leased = case.algorithm.has_leases();
    // Nobody says that the first leader leads; but it needs a lease where there are leases.
    let first = case.leader.filter(|_| !leased).map(|leader| (leader, Time::ZERO));
    let mut watcher = Watcher { leased, leading: first.into_iter().collect(), reigns: Vec::new() };
    run::run(case, Some(&mut watcher));
    let Watcher { leading, mut reigns, .. } = watcher;
    let goes_on = |(leader, since)| Reign { since, until: FOREVER, leader };
    reigns.extend(leading.into_iter().map(goes_on));
    reigns.sort_unstable();
    reigns
}

/// The end of what has none.
const FOREVER: Time = Time(u64::MAX);

/// From when to when somebody acted as leader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Reign {
    since: Time,
    until: Time,
    leader: NodeId,
}

/// Notes from when to when somebody acted as leader.
struct Watcher {
    /// Whether a lease makes a leader, or its belief.
    leased: bool,
    /// Who leads since when.
    leading: Vec<(NodeId, Time)>,
    /// Reigns that are over.
    reigns: Vec<Reign>,
}

impl Observer for Watcher {
    fn observe(&mut self, record: &Record) {
        let (member, leads) = match record.what {
            What::Leased { member, until } if self.leased => (member, until.is_some()),
            What::View { member, role, .. } if !self.leased => (member, role.leads()),
            What::Crashed { member, .. } => (member, false),
            _ => return,
        };
        let led = self.leading.iter().position(|&(id, _)| id == member);
        match (led, leads) {
            (None, true) => self.leading.push((member, record.at)),
            (Some(place), false) => {
                let (_, since) = self.leading.swap_remove(place);
                self.reigns.push(Reign { since, until: record.at, leader: member });
            }
            _ => {}
        }
    }
}

/// The first time after `trouble` in which nobody led. Nothing if nobody led any more.
fn first_gap_from(reigns: &[Reign], trouble: Time) -> Option<Span> {
    // Until when somebody has led without a gap, from the reign on that the trouble met.
    let mut led_until = trouble;
    for &Reign { since, until, .. } in reigns {
        if until < trouble || until == led_until && since < trouble {
            continue;
        }
        if since > led_until {
            return Some(since - led_until);
        }
        led_until = led_until.max(until);
    }
    // A hand-over in which one takes over at the very instant leaves no gap at all.
    (led_until == FOREVER).then_some(Span::ZERO)
}

/// Who led at `at`, or if nobody did who led next, and a moment at which it did.
fn leader_from(reigns: &[Reign], at: Time) -> Option<(NodeId, Time)> {
    // What else happens at the instant at which a reign begins may come before it.
    let in_office = |reign: &Reign| at.max(reign.since + Span::from_nanos(1));
    let reign = reigns.iter().find(|reign| in_office(reign) < reign.until)?;
    Some((reign.leader, in_office(reign)))
}

impl Quantiles {
    fn of(mut times: Vec<u64>, never: u32) -> Self {
        times.sort_unstable();
        let at = |share: usize| {
            let place = (times.len() * share).div_ceil(100).saturating_sub(1);
            times.get(place).copied().unwrap_or(0)
        };
        Self { p50: at(50), p99: at(99), max: at(100), never }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(trials: u32) -> Question {
        let round_trip = Span::from_millis(1);
        Question { profile: Profile::Lan, round_trip, loss: 0.0, members: 3, trials, seed: 1 }
    }

    #[test]
    fn a_gap_is_what_lies_between_two_reigns() {
        let gap = |reigns: &[(u64, u64)]| first_gap_from(&list(reigns), Time(10));
        const END: u64 = FOREVER.0;
        assert_eq!(gap(&[(0, 10), (15, END)]), Some(Span::from_nanos(5)));
        assert_eq!(gap(&[(0, 12), (15, END)]), Some(Span::from_nanos(3)));
        assert_eq!(gap(&[(0, 4), (5, 12), (20, END)]), Some(Span::from_nanos(8)));
        assert_eq!(gap(&[(0, 10), (10, END)]), Some(Span::ZERO));
        assert_eq!(gap(&[(0, 10)]), None);
    }

    /// Reigns from when to when: of 1, of 2 and so on.
    fn list(reigns: &[(u64, u64)]) -> Vec<Reign> {
        let reign = |(&(since, until), id)| Reign {
            since: Time(since),
            until: Time(until),
            leader: NodeId(id),
        };
        reigns.iter().zip(1..).map(reign).collect()
    }

    #[test]
    fn trouble_meets_whoever_leads_then_or_next() {
        let met = |at: u64| leader_from(&list(&[(0, 10), (15, 16), (20, 30)]), Time(at));
        assert_eq!(met(9), Some((NodeId(1), Time(9))));
        assert_eq!(met(10), Some((NodeId(3), Time(21))), "2 led too short for anything to happen");
        assert_eq!(met(29), Some((NodeId(3), Time(29))));
        assert_eq!(met(30), None);
    }

    #[test]
    fn who_crashes_is_the_leader_of_the_moment_not_the_first_one() {
        for algorithm in [Algorithm::Quorum, Algorithm::Bully] {
            let mut scenario = scenario(algorithm, &question(1), 7);
            let (at, patience) = (Time::ZERO + SETTLING, Span::from_millis(2_000));
            let found = next_leader(&scenario, at, patience).unwrap();
            assert_eq!(found, Some((NodeId(3), at)), "{algorithm}");
            let crash = Action::Crash { member: NodeId(3), forwards: false };
            scenario.fault.push(Fault::at(Time(100_000_000), crash));
            let found = next_leader(&scenario, at, patience).unwrap();
            assert_eq!(found, Some((NodeId(2), at)), "{algorithm}");
            // Nobody leads just after the crash: who leads next is met.
            let after = Time::ZERO + Span::from_millis(101);
            let (leader, then) = next_leader(&scenario, after, patience).unwrap().unwrap();
            assert!(leader == NodeId(2) && then > after && then < at, "{algorithm}: {then}");
        }
    }

    #[test]
    fn a_quorum_is_back_within_a_promise_and_hands_over_within_three_round_trips() {
        let budget = measure(Algorithm::Quorum, &question(20), &mut || {}).unwrap();
        let ms = |millis: u64| millis * 1_000_000;
        let Quantiles { p50, max, never, .. } = budget.crash;
        assert!(p50 > ms(150) && max < ms(340) && never == 0, "{budget:?}");
        let hand_over = budget.hand_over.unwrap();
        assert!(hand_over.max <= ms(3) && hand_over.never == 0, "{budget:?}");
        assert_eq!(budget.false_failovers_an_hour, 0.0);
        // Two followers, each asked and answering twenty times a second; and a few probes.
        assert!((80.0..90.0).contains(&budget.messages_a_second), "{budget:?}");
    }
}
