//! Random campaigns: fault schedules that are generated from a random seed, each followed by calm, each run judged after
//! every event.
//!
//! Run number *i* of a campaign is a [`Scenario`] that depends on the seed and on *i* alone. It names every fault, so a run
//! that fails *is* a scenario: it can be printed, saved, replayed and [shrunk](shrink::shrink). Settings of the campaign's
//! base scenario stay as they are; the others are drawn.
//!
//! First members crash and restart with and without their disks, pause, have wrong clocks and suspect each other falsely;
//! messages are lost and duplicated, links are cut one way and the network is partitioned. Then all faults are healed (see
//! [`premise`]), and the promises of the algorithm must come true: all members follow the best live member and the run
//! comes to rest. Hardened mode tolerates all of these faults. A textbook algorithm gets crashes, restarts and false
//! suspicions only, and fails even so: that is what hardened mode is for. Algorithms of mutual exclusion get what they
//! claim to tolerate.
//!
//! In a *lasting* campaign faults are not healed, and leave a majority of a quorum connected. It must nevertheless have a
//! leader, which stays.
//!
//! The report of a campaign does not depend on the number of threads.

mod draw;
pub mod premise;
pub mod shrink;
pub mod waits;

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};

use doyen_core::config::Mode;
use doyen_core::config::quorum::Preemption;
use doyen_core::config::rules::Rule;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;

use crate::oracle::{self, Breach, Oracle};
use crate::property::Property;
use doyen_sim::fault::{Action, Disk, Fault, Place};
use doyen_sim::metrics::Outcome;
use doyen_sim::parallel;
use doyen_sim::random::splitmix;
use doyen_sim::scenario::{Scenario, ScenarioError};
use waits::{Wait, Waits};

/// Many runs, drawn from one seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Campaign {
    /// What all runs have in common. Without an algorithm all take turns; without a mode it is hardened
    /// mode, or textbook mode where there is no other.
    pub base: Scenario,
    /// How many members, where `base` does not say.
    pub members: RangeInclusive<u32>,
    /// The properties that must hold; by default the [usual ones](Property::usual_at_random) of the algorithm of a run.
    pub properties: Option<Vec<Property>>,
    /// How many runs there are.
    pub runs: u64,
    /// The random seed.
    pub seed: u64,
    /// On how many threads they are made.
    pub threads: usize,
    /// After how many failures to stop.
    pub patience: usize,
    /// Faults are not repaired but last, and leave a majority connected. Only a quorum tolerates that.
    pub lasting: bool,
    /// The rule of the quorum that is removed from all members; the campaign must detect this.
    pub without: Option<Rule>,
}

/// The report of a campaign.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// How many runs were made.
    pub runs: u64,
    /// The same by algorithm.
    pub by_algorithm: BTreeMap<Algorithm, u64>,
    /// How many events were handled; the properties were checked after each.
    pub events: u64,
    /// Election messages.
    pub messages: u64,
    /// Faults and repairs, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// In how many runs each unusual setting was drawn.
    pub drawn: BTreeMap<&'static str, u64>,
    /// Elections called.
    pub elections: u64,
    /// The number of changes of the leader.
    pub leader_changes: u64,
    /// Entries into a critical section.
    pub entries: u64,
    /// Runs without a violation that did not come to rest, so that the properties about rest could not be judged.
    pub undecided: u64,
    /// The longest time for which views kept changing after the last fault, and the run.
    pub slowest_recovery: Option<(Span, u64)>,
    /// How long groups waited for a lease, in runs of algorithms that have leases.
    pub first_leases: Waits,
    /// The runs that failed, in the order of their numbers.
    pub failures: Vec<Failure>,
    /// A fingerprint of all runs, whatever their order.
    pub digest: u64,
}

/// A run that violated a property.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// Its number.
    pub run: u64,
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// The violated property, the time, and the facts that contradict each other.
    pub breach: Breach,
    /// The scenario of the run.
    pub scenario: Scenario,
}

// The fractions in a scenario are never NaN.
impl Eq for Failure {}

/// A run that could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("run {run}{}: {problem}", if *.panicked { " panicked" } else { "" })]
pub struct GenerateError {
    /// Its number.
    pub run: u64,
    /// Why not.
    pub problem: String,
    /// Whether the cause is a panic of the code, not the request.
    pub panicked: bool,
}

/// The result of one run.
struct Verdict {
    algorithm: Algorithm,
    scenario: Scenario,
    outcome: Outcome,
    breach: Option<Breach>,
    undecided: bool,
    recovery: Span,
    first_lease: Option<Wait>,
}

impl Campaign {
    /// Runs drawn from `seed`, with three to seven members, for what the algorithms promise: A1, A2 and A3 once all is
    /// calm, and always that stored terms never fall and messages do not grow. That there is at most one leader at any
    /// instant, or in any term, is promised by a quorum alone.
    pub fn new(base: Scenario, runs: u64, seed: u64) -> Self {
        Self {
            base,
            members: 3..=7,
            properties: None,
            runs,
            seed,
            threads: parallel::processors(),
            patience: 3,
            lasting: false,
            without: None,
        }
    }

    /// The mode of the runs of `algorithm`.
    pub fn mode_of(&self, algorithm: Algorithm) -> Mode {
        let is_hardened = algorithm.reads(Mode::Hardened);
        self.base.mode.unwrap_or(if is_hardened { Mode::Hardened } else { Mode::Textbook })
    }

    /// The scenario of run number `run`, counted from one.
    pub fn scenario(&self, run: u64) -> Result<Scenario, ScenarioError> {
        draw::scenario(self, run)
    }

    fn judge(&self, run: u64) -> Result<Verdict, ScenarioError> {
        let scenario = self.scenario(run)?;
        let mut case = scenario.resolve()?;
        if let Some(rule) = self.without {
            case.config.quorum.rules = case.config.quorum.rules.without(rule);
        }
        let promised = || match self.lasting {
            true => Property::usual_while_faults_last(),
            false => Property::usual_at_random(case.algorithm, case.mode()),
        };
        let mut properties = self.properties.clone().unwrap_or_else(promised);
        let fifo = case.network.fifo;
        if self.properties.is_none() && !case.algorithm.orders_requests(fifo) {
            properties.retain(|&property| property != Property::CausalOrder);
        }
        properties.retain(|property| property.means_nothing_to(case.algorithm, fifo).is_none());
        let mut oracle = Oracle::of(&case, &properties);
        let outcome = oracle::judge(&case, None, &mut oracle);
        let bound = case.recovery();
        let first_lease = oracle.first_lease(outcome.end);
        Ok(Verdict {
            first_lease: first_lease.map(|lasted| Wait { run, lasted, bound }),
            algorithm: case.algorithm,
            scenario,
            outcome,
            breach: oracle.breach().cloned(),
            undecided: oracle.is_undecided(),
            recovery: oracle.recovery(case.calm()),
        })
    }
}

/// Judges one scenario: returns the first of `properties` that it violates, if there is one.
pub fn judge(
    scenario: &Scenario,
    properties: &[Property],
) -> Result<Option<Breach>, ScenarioError> {
    let case = scenario.resolve()?;
    let mut oracle = Oracle::of(&case, properties);
    oracle::judge(&case, None, &mut oracle);
    Ok(oracle.breach().cloned())
}

/// The number of runs between two counts of failures.
const BLOCK: usize = 64;

/// Makes the runs of `campaign`. Before each run `go_on` is asked whether to make it, and told how many have been made: once
/// it says no, only runs in progress are finished, and the report covers the finished runs.
pub fn run(
    campaign: &Campaign,
    go_on: impl Fn(u64) -> bool + Sync,
) -> Result<Report, GenerateError> {
    let numbers: Vec<u64> = (1..=campaign.runs).collect();
    let made = AtomicU64::new(0);
    let mut report = Report::default();
    for block in numbers.chunks(BLOCK) {
        let verdicts = parallel::map(campaign.threads, block, |&number| {
            go_on(made.load(Ordering::Relaxed)).then(|| {
                let verdict = make(number, || campaign.judge(number));
                made.fetch_add(1, Ordering::Relaxed);
                verdict
            })
        });
        let is_cut = verdicts.iter().any(Option::is_none);
        for (&number, verdict) in block.iter().zip(verdicts) {
            let Some(verdict) = verdict else { continue };
            report.add(number, verdict?);
            if report.failures.len() >= campaign.patience.max(1) {
                return Ok(report);
            }
        }
        if is_cut {
            break;
        }
    }
    Ok(report)
}

/// Makes run number `number` alone.
pub fn run_one(campaign: &Campaign, number: u64) -> Result<Report, GenerateError> {
    let mut report = Report::default();
    report.add(number, make(number, || campaign.judge(number))?);
    Ok(report)
}

/// Makes one run, or returns which could not be made and why.
fn make<T>(run: u64, work: impl FnOnce() -> Result<T, ScenarioError>) -> Result<T, GenerateError> {
    match catch(work) {
        Ok(made) => {
            made.map_err(|error| GenerateError { run, problem: error.to_string(), panicked: false })
        }
        Err(problem) => Err(GenerateError { run, problem, panicked: true }),
    }
}

/// Does `work`. If it panics, the panic is printed as usual and its message is returned, so that the caller can add the
/// context.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // Whatever `work` has left half done is dropped with it: nothing here reads it again.
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| message_of(&*payload))
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it does not say why".to_owned())
}

impl Report {
    fn add(&mut self, run: u64, verdict: Verdict) {
        let Verdict { algorithm, scenario, outcome, breach, undecided, recovery, first_lease } =
            verdict;
        self.runs += 1;
        *self.by_algorithm.entry(algorithm).or_default() += 1;
        self.events += outcome.events;
        self.messages += outcome.messages.total;
        self.elections += outcome.elections;
        self.leader_changes += u64::from(outcome.leader_changes);
        self.entries += outcome.exclusion.as_ref().map_or(0, |it| it.entries.len() as u64);
        self.digest = self.digest.wrapping_add(splitmix(outcome.digest ^ splitmix(run)));
        let mends = |fault: &Fault| matches!(fault.what, Action::Mend { .. } | Action::Heal);
        let lasts = !scenario.fault.iter().any(mends);
        for Fault { what, .. } in &scenario.fault {
            let is_cut = matches!(what, Action::Cut { .. });
            let kind = if lasts && is_cut { "lasting cut" } else { kind_of(what) };
            *self.faults.entry(kind).or_default() += 1;
        }
        for feature in features(&scenario) {
            *self.drawn.entry(feature).or_default() += 1;
        }
        match breach {
            Some(breach) => self.failures.push(Failure { run, algorithm, breach, scenario }),
            None if undecided => self.undecided += 1,
            // Only a run that recovered shows how long that takes.
            None => {
                self.recovered(recovery, run);
                first_lease.into_iter().for_each(|wait| self.first_leases.add(wait));
            }
        }
    }

    /// Of two that took equally long the first counts.
    fn recovered(&mut self, recovery: Span, run: u64) {
        let slower = self
            .slowest_recovery
            .is_none_or(|(slowest, of)| recovery > slowest || (recovery == slowest && run < of));
        if slower {
            self.slowest_recovery = Some((recovery, run));
        }
    }
}

/// The name of a fault in a report.
fn kind_of(action: &Action) -> &'static str {
    match action {
        Action::Replace { disk: Disk::Kept, .. } => "clone",
        Action::Replace { hung, .. } if *hung > Span::ZERO => "replacement, old process hangs",
        Action::Replace { .. } => "replacement, old process runs on",
        Action::Restart { disk: Disk::New, .. } => "restart as a new member",
        Action::Restart { disk: Disk::Restored, .. } => "restart with a copied disk",
        Action::Restart { disk: Disk::Lost | Disk::LostUnlessAnother, .. } => {
            "restart without disk"
        }
        Action::Restart { pace: Some(_), .. } => "restart with another pace",
        Action::Restart { place: Place::New | Place::Unnamed, .. } => "restart at another address",
        Action::LinkOverride(_) => "link override",
        Action::Attributes { .. } => "changing attribute",
        Action::Campaign(_) => "false suspicion",
        other => other.kind(),
    }
}

/// The unusual settings of a run of a quorum.
fn features(scenario: &Scenario) -> impl Iterator<Item = &'static str> {
    let features = scenario.quorum.as_ref().map_or([("", false); 11], |options| {
        let prefers = |policy| options.preemption == Some(policy);
        let actions = || scenario.fault.iter().map(|fault| &fault.what);
        let lost = actions().filter(|action| kind_of(action) == "restart without disk");
        let parts_old = |action: &Action| {
            matches!(action, Action::Partition { old, .. } if old.iter().any(|it| !it.is_empty()))
        };
        [
            ("preemption never", prefers(Preemption::Never)),
            ("preemption delayed", prefers(Preemption::Delayed)),
            ("preemption immediate", prefers(Preemption::Immediate)),
            ("witnesses", !options.witnesses.is_empty()),
            ("reluctant members", !options.reluctant.is_empty()),
            ("members with their own pace", !options.pace.is_empty()),
            ("probes", options.probe.is_some()),
            ("several lost disks", lost.count() > 1),
            ("leader at the start", scenario.leader.is_some()),
            ("sessions", scenario.has_sessions()),
            ("old processes on another side", actions().any(parts_old)),
        ]
    });
    features.into_iter().filter(|&(_, is)| is).map(|(feature, _)| feature)
}

#[cfg(test)]
mod tests;
