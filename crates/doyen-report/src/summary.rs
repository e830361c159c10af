//! One run as one object, input and result: what `doyen sim --json` prints and what the rows of a sweep have. The names
//! are stable.

use doyen_core::time::Span;
use serde::Serialize;

use crate::formula::Formula;
use doyen_sim::metrics::Outcome;
use doyen_sim::scenario::{Case, Convention};

/// A run. Times are virtual nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The algorithm's name.
    pub algorithm: &'static str,
    /// `textbook`, `hardened` or a literal variant.
    pub mode: String,
    /// The members that the counts are about.
    pub convention: Convention,
    /// How many members are configured.
    pub members: u64,
    /// How many of them are alive at the beginning.
    pub live: u64,
    /// Whether messages go to dead members, because no member knows that they are dead.
    pub contact_dead: bool,
    /// The clockwise order: `ascending`, `descending`, `random` or `listed`.
    pub ring: &'static str,
    /// How many members detect the failure of the coordinator.
    pub initiators: u64,
    /// r: the lowest of them is the r-th lowest live member.
    pub initiator: Option<u64>,
    /// How long a message takes.
    pub delay: String,
    /// D, from which the members derive their time-outs.
    pub bound: Span,
    /// p, how long a reply takes at most.
    pub processing: Span,
    /// W, a modified bully's window.
    pub window: Span,
    /// The probability that a message is lost.
    pub loss: f64,
    /// The probability that a message arrives twice.
    pub duplicate: f64,
    /// Whether messages go over the reliable link.
    pub reliable: bool,
    /// The period of the failure detector, if it is on.
    pub detector: Option<Span>,
    /// The random seed.
    pub seed: u64,
    /// The outcome of the run.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The turnaround in units of D.
    pub turnaround_d: Option<f64>,
    /// The time until all were informed, in units of D.
    pub informed_d: Option<f64>,
    /// The closed form for this case, where there is one.
    pub formula: Option<String>,
    /// How many messages it gives.
    pub formula_value: Option<u64>,
    /// Whether that is what was counted.
    pub formula_matches: Option<bool>,
    /// The unit of all times.
    pub time_unit: &'static str,
}

impl Summary {
    /// Sums up a run.
    pub fn new(case: &Case, outcome: Outcome, formula: Option<Formula>) -> Self {
        let timing = &case.config.timing;
        let d = timing.transmission.as_nanos() as f64;
        let in_d = |span: Span| (d > 0.0).then(|| span.as_nanos() as f64 / d);
        Self {
            algorithm: case.algorithm.name(),
            mode: case.mode().to_string(),
            convention: case.convention,
            members: case.members().len() as u64,
            live: (case.members().len() - case.dead.len()) as u64,
            contact_dead: case.contact_dead,
            ring: case.ring.name(),
            initiators: case.initiators.len() as u64,
            initiator: lowest_initiator(case),
            delay: case.network.delay.to_string(),
            bound: timing.transmission,
            processing: timing.processing,
            window: timing.window,
            loss: case.network.loss,
            duplicate: case.network.duplication,
            reliable: case.reliable,
            detector: case.detector,
            seed: case.seed,
            turnaround_d: in_d(outcome.turnaround),
            informed_d: outcome.informed.and_then(in_d),
            formula_value: formula.as_ref().map(|formula| formula.value),
            formula_matches: formula.as_ref().map(|f| f.value == outcome.messages.total),
            formula: formula.map(|formula| formula.name),
            outcome,
            time_unit: "ns",
        }
    }
}

/// The rank, among the live members from 1, of the lowest initiator.
fn lowest_initiator(case: &Case) -> Option<u64> {
    let members = case.members();
    let rank = case.initiators.iter().map(|(id, _)| members.rank(id)).min()?;
    let dead_below = case.dead.iter().filter(|&&id| members.rank(id) < rank).count();
    Some((rank - dead_below) as u64 + 1)
}
