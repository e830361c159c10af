//! The availability that a timing gives an operator, for every algorithm on the same network: the downtime after a
//! crash and in a transfer, how often the leader changes without a failure, and how many messages are sent.
//!
//! Three experiments, each a number of simulated runs with different seeds:
//!
//! - **crash**: the leader crashes at a random moment; the downtime lasts until another member acts as leader. With
//!   leases that is from the crash to the next lease. If no member leads at that moment, the next leader crashes;
//! - **transfer**: the leader is told to resign instead; the downtime is the time in which no member acts as leader. The
//!   textbook algorithms have no transfer: for them a planned stop is a crash;
//! - **calm**: nothing fails for a while, but the network delays and loses messages: every change of leader is a false
//!   failover, and what is sent is counted.
//!
//! The network delays every message by a quarter to three quarters of the round trip. The textbook algorithms run
//! hardened, over the reliable link, with a failure detector whose heartbeat is the profile's.

use doyen_core::config::Mode;
use doyen_core::config::quorum::Profile;
use doyen_core::members::NodeId;
use doyen_core::protocol::AdminCommand;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use serde::Serialize;

use doyen_sim::fault::{Action, Fault};
use doyen_sim::network::DelayModel;
use doyen_sim::random::Random;
use doyen_sim::run;
use doyen_sim::scenario::{Case, Initiators, MemberList, QuorumOptions, Scenario, ScenarioError};
use doyen_sim::text::Share;
use doyen_sim::time::Time;
use doyen_sim::trace::{EventKind, Observer, TraceEvent};

/// A request for an estimate.
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
    /// How often each experiment is repeated.
    pub trials: u32,
    /// The random seed.
    pub seed: u64,
}

/// The availability of an algorithm.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// The algorithm.
    pub algorithm: &'static str,
    /// The downtime after a crash.
    pub crash: Quantiles,
    /// The downtime in a planned transfer; none where the algorithm has no transfer.
    pub transfer: Option<Quantiles>,
    /// How often the leader changes in an hour without a failure.
    pub false_failovers_per_hour: f64,
    /// How many messages all members together send in a second without a failure, of all kinds.
    pub messages_per_second: f64,
    /// Whether at most one member acts as leader at any instant.
    pub one_leader: bool,
}

/// Lengths of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Quantiles {
    /// Half are shorter.
    pub p50_ns: u64,
    /// All but one in a hundred are shorter.
    pub p99_ns: u64,
    /// None is longer.
    pub max_ns: u64,
    /// The number of trials in which no member led again before the time was up.
    pub never: u32,
}

/// How long a run lasts before anything happens to the leader.
const SETTLING: Span = Span::from_millis(2_000);
/// How long each calm trial lasts.
const CALM: Span = Span::from_millis(60_000);
/// The most minutes of calm that are simulated.
const MOST_CALM: u32 = 60;

/// Answers `question` for one algorithm. `watch` is called after every trial.
pub fn measure(
    algorithm: Algorithm,
    question: &Question,
    watch: &mut dyn FnMut(),
) -> Result<Estimate, ScenarioError> {
    let mut random = Random::new(question.seed);
    let crash = trials(algorithm, question, Loss::Crash, &mut random, watch)?;
    let transfer = match algorithm.has_leases() {
        true => Some(trials(algorithm, question, Loss::Resign, &mut random, watch)?),
        false => None,
    };
    let (changes, messages, watched) = calm(algorithm, question, &mut random, watch)?;
    let seconds = watched.as_nanos() as f64 / 1e9;
    Ok(Estimate {
        algorithm: algorithm.name(),
        crash,
        transfer,
        false_failovers_per_hour: f64::from(changes) * 3600.0 / seconds,
        messages_per_second: messages as f64 / seconds,
        one_leader: algorithm.has_leases(),
    })
}

/// How many times [`measure`] calls `watch`.
pub fn work(algorithm: Algorithm, question: &Question) -> u64 {
    let kinds = if algorithm.has_leases() { 2 } else { 1 };
    u64::from(question.trials) * kinds + u64::from(question.trials.min(MOST_CALM))
}

/// What happens to the leader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    Crash,
    Resign,
}

fn trials(
    algorithm: Algorithm,
    question: &Question,
    loss: Loss,
    random: &mut Random,
    watch: &mut dyn FnMut(),
) -> Result<Quantiles, ScenarioError> {
    let (mut times, mut never) = (Vec::new(), 0);
    let patience = question.profile.settings().pace.vote_lease * 100;
    for _ in 0..question.trials {
        // Anywhere between two heartbeats.
        let heartbeat = question.profile.timing().heartbeat.as_nanos();
        let at = Time::ZERO + SETTLING + Span::from_nanos(random.between(0, heartbeat));
        let scenario = scenario(algorithm, question, random.bits());
        let gap = match next_leader(&scenario, at, patience)? {
            Some((leader, at)) => downtime(&scenario, loss, leader, at, patience)?,
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

/// The leader at a moment, or the next leader if there is none, and a moment at which it leads. None if no member leads
/// within `patience`.
fn next_leader(
    scenario: &Scenario,
    at: Time,
    patience: Span,
) -> Result<Option<(NodeId, Time)>, ScenarioError> {
    // There is nearly always a leader, and nothing need be simulated beyond that moment.
    for end in [at, at + patience] {
        let mut calm = scenario.clone();
        watch_until(&mut calm, end);
        let found = leader_from(&intervals(&calm.resolve()?), at);
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Makes a run continue until then, even if only heartbeats are left.
fn watch_until(scenario: &mut Scenario, end: Time) {
    scenario.until = Some(end - Time::ZERO);
    scenario.fault.push(Fault::at(end + CALM, Action::Heal));
}

/// How long no member acts as leader after the leader was lost.
fn downtime(
    scenario: &Scenario,
    loss: Loss,
    leader: NodeId,
    at: Time,
    patience: Span,
) -> Result<Option<Span>, ScenarioError> {
    let what = match loss {
        Loss::Crash => Action::crash(leader),
        Loss::Resign => Action::Command { member: leader, command: AdminCommand::Resign },
    };
    let mut changed = scenario.clone();
    changed.fault.push(Fault::at(at, what));
    changed.until = Some(at + patience - Time::ZERO);
    Ok(first_gap_from(&intervals(&changed.resolve()?), at))
}

/// Changes of leader and messages in calm, and the simulated time.
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
    let textbook = !algorithm.has_leases();
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
        detector: textbook.then_some(timing.heartbeat),
        reliable: textbook,
        quorum: (!textbook)
            .then(|| QuorumOptions { profile: Some(question.profile), ..QuorumOptions::default() }),
        ..Scenario::default()
    }
}

/// The intervals in which a member acted as leader, the earliest first.
fn intervals(case: &Case) -> Vec<LeaderInterval> {
    let leased = case.algorithm.has_leases();
    // The first leader is not announced; but it needs a lease where there are leases.
    let first = case.leader.filter(|_| !leased).map(|leader| (leader, Time::ZERO));
    let mut watcher =
        Watcher { leased, leading: first.into_iter().collect(), intervals: Vec::new() };
    run::run(case, Some(&mut watcher));
    let Watcher { leading, mut intervals, .. } = watcher;
    let goes_on = |(leader, since)| LeaderInterval { since, until: FOREVER, leader };
    intervals.extend(leading.into_iter().map(goes_on));
    intervals.sort_unstable();
    intervals
}

/// The end of an interval that has not ended.
const FOREVER: Time = Time(u64::MAX);

/// From when to when a member acted as leader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct LeaderInterval {
    since: Time,
    until: Time,
    leader: NodeId,
}

/// Records from when to when a member acted as leader.
struct Watcher {
    /// Whether a leader is a member with a lease, or one that believes that it leads.
    leased: bool,
    /// The present leaders, and since when they lead.
    leading: Vec<(NodeId, Time)>,
    /// Intervals that are over.
    intervals: Vec<LeaderInterval>,
}

impl Observer for Watcher {
    fn observe(&mut self, record: &TraceEvent) {
        let (member, leads) = match record.kind {
            EventKind::Leased { member, until, old: false } if self.leased => {
                (member, until.is_some())
            }
            EventKind::View { member, role, .. } if !self.leased => (member, role.leads()),
            EventKind::Crashed { member, .. } => (member, false),
            _ => return,
        };
        let led = self.leading.iter().position(|&(id, _)| id == member);
        match (led, leads) {
            (None, true) => self.leading.push((member, record.at)),
            (Some(place), false) => {
                let (_, since) = self.leading.swap_remove(place);
                self.intervals.push(LeaderInterval { since, until: record.at, leader: member });
            }
            _ => {}
        }
    }
}

/// The first downtime from `loss` on; none if no member led again.
fn first_gap_from(intervals: &[LeaderInterval], loss: Time) -> Option<Span> {
    // The time until which there was a leader without a gap, from the interval on in which the leader was lost.
    let mut led_until = loss;
    for &LeaderInterval { since, until, .. } in intervals {
        if until < loss || until == led_until && since < loss {
            continue;
        }
        if since > led_until {
            return Some(since - led_until);
        }
        led_until = led_until.max(until);
    }
    // A transfer in which the successor takes over at the same instant leaves no gap.
    (led_until == FOREVER).then_some(Span::ZERO)
}

/// The leader at `at`, or the next leader if there was none, and a moment at which it led.
fn leader_from(intervals: &[LeaderInterval], at: Time) -> Option<(NodeId, Time)> {
    // Another event at the instant at which an interval begins may come before it.
    let since = |interval: &LeaderInterval| at.max(interval.since + Span::from_nanos(1));
    let interval = intervals.iter().find(|interval| since(interval) < interval.until)?;
    Some((interval.leader, since(interval)))
}

impl Quantiles {
    fn of(mut times: Vec<u64>, never: u32) -> Self {
        times.sort_unstable();
        let at = |share: usize| {
            let place = (times.len() * share).div_ceil(100).saturating_sub(1);
            times.get(place).copied().unwrap_or(0)
        };
        Self { p50_ns: at(50), p99_ns: at(99), max_ns: at(100), never }
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
    fn a_gap_is_what_lies_between_two_intervals() {
        let gap = |intervals: &[(u64, u64)]| first_gap_from(&list(intervals), Time(10));
        const END: u64 = FOREVER.0;
        assert_eq!(gap(&[(0, 10), (15, END)]), Some(Span::from_nanos(5)));
        assert_eq!(gap(&[(0, 12), (15, END)]), Some(Span::from_nanos(3)));
        assert_eq!(gap(&[(0, 4), (5, 12), (20, END)]), Some(Span::from_nanos(8)));
        assert_eq!(gap(&[(0, 10), (10, END)]), Some(Span::ZERO));
        assert_eq!(gap(&[(0, 10)]), None);
    }

    /// Intervals from when to when: of 1, of 2 and so on.
    fn list(intervals: &[(u64, u64)]) -> Vec<LeaderInterval> {
        let interval = |(&(since, until), id)| LeaderInterval {
            since: Time(since),
            until: Time(until),
            leader: NodeId(id),
        };
        intervals.iter().zip(1..).map(interval).collect()
    }

    #[test]
    fn the_leader_of_the_moment_or_the_next_one_is_met() {
        let met = |at: u64| leader_from(&list(&[(0, 10), (15, 16), (20, 30)]), Time(at));
        assert_eq!(met(9), Some((NodeId(1), Time(9))));
        assert_eq!(met(10), Some((NodeId(3), Time(21))), "2 led too short for anything to happen");
        assert_eq!(met(29), Some((NodeId(3), Time(29))));
        assert_eq!(met(30), None);
    }

    #[test]
    fn the_leader_of_the_moment_crashes_not_the_first_one() {
        for algorithm in [Algorithm::Quorum, Algorithm::Bully] {
            let mut scenario = scenario(algorithm, &question(1), 7);
            let (at, patience) = (Time::ZERO + SETTLING, Span::from_millis(2_000));
            let found = next_leader(&scenario, at, patience).unwrap();
            assert_eq!(found, Some((NodeId(3), at)), "{algorithm}");
            let crash = Action::crash(NodeId(3));
            scenario.fault.push(Fault::at(Time(100_000_000), crash));
            let found = next_leader(&scenario, at, patience).unwrap();
            assert_eq!(found, Some((NodeId(2), at)), "{algorithm}");
            // There is no leader just after the crash: the next one is met.
            let after = Time::ZERO + Span::from_millis(101);
            let (leader, then) = next_leader(&scenario, after, patience).unwrap().unwrap();
            assert!(leader == NodeId(2) && then > after && then < at, "{algorithm}: {then}");
        }
    }

    #[test]
    fn a_quorum_is_back_within_a_vote_lease_and_transfers_within_three_round_trips() {
        let estimate = measure(Algorithm::Quorum, &question(20), &mut || {}).unwrap();
        let ms = |millis: u64| millis * 1_000_000;
        let Quantiles { p50_ns, max_ns, never, .. } = estimate.crash;
        assert!(p50_ns > ms(150) && max_ns < ms(340) && never == 0, "{estimate:?}");
        let transfer = estimate.transfer.unwrap();
        assert!(transfer.max_ns <= ms(3) && transfer.never == 0, "{estimate:?}");
        assert_eq!(estimate.false_failovers_per_hour, 0.0);
        // Two followers, each asked and answering twenty times a second; and a few probes.
        assert!((80.0..90.0).contains(&estimate.messages_per_second), "{estimate:?}");
    }
}
