//! One run of mutual exclusion as one object: what `doyen sim --json` prints of it. The names are stable.

use std::collections::BTreeMap;

use doyen_core::config::Mode;
use doyen_core::ledger::Invariant;
use doyen_core::members::NodeId;
use doyen_core::time::Span;
use doyen_sim::cut::Cut;
use doyen_sim::fault::Action;
use doyen_sim::metrics::sections::{Entry, Exclusion, Fencing, Spread};
use doyen_sim::metrics::{Ended, Outcome};
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;
use serde::Serialize;

use crate::formula::Formula;

/// A run. Times are virtual nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// What the algorithm does.
    pub kind: &'static str,
    /// The algorithm's name.
    pub algorithm: &'static str,
    /// `textbook`, `hardened` or a literal variant.
    pub mode: String,
    /// How many members are configured.
    pub members: u64,
    /// How many of them are alive at the beginning.
    pub live: u64,
    /// The random seed.
    pub seed: u64,
    /// Every entry, in order.
    pub entries: Vec<Entry>,
    /// What was sent.
    pub messages: Messages,
    /// How long members waited, over all entries.
    pub wait: Option<Spread>,
    /// The longest wait of a member that found no other one waiting or inside.
    pub client_delay: Option<Span>,
    /// From an exit to the next entry, where that member was waiting already.
    pub sync_delay: Option<Spread>,
    /// Entries for each D until the last exit.
    pub entries_per_d: Option<f64>,
    /// The members that wait at the end.
    pub waiting: Vec<NodeId>,
    /// How long more than one member was inside.
    pub overlap: Span,
    /// The results of fences and of grants that end, if entries have fences.
    #[serde(flatten)]
    pub fencing: Option<Fencing>,
    /// What the members have recorded, if a snapshot was started.
    #[serde(flatten)]
    pub snapshot: Option<Cut>,
    /// Which properties hold in this run; empty where the run says nothing about one.
    pub properties: Properties,
    /// The closed form for this case, where there is one.
    pub formula: Option<Theory>,
    /// The longest chain of messages.
    pub stages: u32,
    /// Why the run ended.
    pub ended: Ended,
    /// When it ended.
    pub end: Time,
    /// A fingerprint of what happened.
    pub digest: String,
    /// The unit of all times.
    pub time_unit: &'static str,
}

/// What was sent.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Messages {
    /// The messages of the algorithm.
    pub total: u64,
    /// The same by kind.
    pub by_kind: BTreeMap<&'static str, u64>,
    /// For each entry.
    pub per_entry: Option<f64>,
    /// Those that were sent while a member left.
    pub at_exit: Option<AtExit>,
}

/// The messages that were sent while members left.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct AtExit {
    /// The mean over all exits.
    pub mean: f64,
    /// The most.
    pub max: u64,
}

/// Which properties hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Properties {
    /// At most one member is inside at any instant.
    pub one_inside: bool,
    /// Every live member that asked has entered.
    pub served: bool,
    /// Entries are in the order of requests that depend on each other. Only a run with application messages can show
    /// this.
    pub causal_order: Option<bool>,
    /// The later of two entries has the larger fence, where entries have fences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fences_rise: Option<bool>,
}

/// What theory says about the messages of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Theory {
    /// The formula.
    pub name: String,
    /// How many messages it gives for this run.
    pub value: u64,
    /// Whether that is what was counted.
    pub matches: bool,
}

impl Summary {
    /// Sums up a run in which members entered a critical section; none if it was another kind of run.
    pub fn new(case: &Case, outcome: &Outcome, formula: Option<&Formula>) -> Option<Self> {
        let run = outcome.exclusion.as_ref()?;
        let theory = |formula: &Formula| Theory {
            name: formula.name.clone(),
            value: formula.value,
            matches: formula.value == outcome.messages.total,
        };
        Some(Self {
            kind: "exclusion",
            algorithm: case.algorithm.name(),
            mode: case.mode().to_string(),
            members: case.members().len() as u64,
            live: (case.members().len() - case.dead.len()) as u64,
            seed: case.seed,
            entries: run.entries.clone(),
            messages: Messages::of(outcome, run),
            wait: run.wait(),
            client_delay: run.client_delay(),
            sync_delay: run.sync_delay(),
            entries_per_d: entries_per_d(case, run),
            waiting: run.waiting.clone(),
            overlap: run.overlap,
            fencing: run.fencing,
            snapshot: outcome.snapshot.clone(),
            properties: Properties::of(run),
            formula: formula.map(theory),
            stages: outcome.stages,
            ended: outcome.ended,
            end: outcome.end,
            digest: format!("{:016x}", outcome.digest),
            time_unit: "ns",
        })
    }

    /// Whether the run violated a property that the mode claims, with no fault that the mode does not claim to tolerate.
    /// With leases, faults may keep members waiting, but two members are never inside, unless a clock is wrong.
    pub fn breaks_a_claim(&self, case: &Case) -> bool {
        let is_unsafe = !self.properties.one_inside || self.properties.fences_rise == Some(false);
        let unserved = !self.properties.served && self.ended == Ended::Quiet;
        let has_leases = case.algorithm.has_leases() && !matches!(case.mode(), Mode::Literal(_));
        let wrong_clock = case.faults.iter().any(|it| matches!(it.what, Action::Clock { .. }));
        let is_safe_anyhow = has_leases && !wrong_clock;
        let is_out_of_order = self.properties.causal_order == Some(false)
            && case.algorithm.orders_requests(case.network.fifo);
        is_unsafe && (case.is_tolerated() || is_safe_anyhow)
            || (unserved || is_out_of_order) && case.is_tolerated()
    }
}

impl Messages {
    fn of(outcome: &Outcome, run: &Exclusion) -> Self {
        let total = outcome.messages.total;
        let (entries, exits) = (run.entries.len(), run.at_exit.len());
        let sum: u64 = run.at_exit.iter().sum();
        Self {
            total,
            by_kind: outcome.messages.by_kind.iter().copied().collect(),
            per_entry: (entries > 0).then(|| rounded(total as f64 / entries as f64)),
            at_exit: run
                .at_exit
                .iter()
                .max()
                .map(|&max| AtExit { mean: rounded(sum as f64 / exits as f64), max }),
        }
    }
}

impl Properties {
    fn of(run: &Exclusion) -> Self {
        let broken = |invariant| run.broken.iter().any(|it| it.invariant == invariant);
        Self {
            one_inside: !broken(Invariant::OneInside),
            served: run.waiting.is_empty(),
            causal_order: run.in_order,
            fences_rise: run.fencing.map(|_| !broken(Invariant::FencesRise)),
        }
    }
}

/// Entries for each D, from the beginning to the last exit.
fn entries_per_d(case: &Case, run: &Exclusion) -> Option<f64> {
    let until = run.last_exit().filter(|&exit| exit > Time::ZERO)?;
    let d = case.config.timing.transmission.as_nanos() as f64;
    Some(rounded(run.entries.len() as f64 * d / until.0 as f64))
}

/// Three decimals are enough to compare.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
