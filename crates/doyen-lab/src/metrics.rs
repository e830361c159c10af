//! The metrics of a recorded run: what `doyen sim --json` prints, and the formula beside it.

use doyen_core::members::NodeId;
use doyen_core::time::Span;
use doyen_report::formula::{self, Formula};
use doyen_report::summary::Summary;
use doyen_sim::metrics::Ended;
use doyen_sim::scenario::Case;
use serde::Serialize;

/// What a run came to. What a run without a clock cannot say is empty.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub(crate) struct Metrics {
    pub(crate) messages: u64,
    pub(crate) by_kind: Vec<Count>,
    pub(crate) to_down: u64,
    pub(crate) background: u64,
    pub(crate) stages: Option<u32>,
    pub(crate) turnaround_ns: Option<u64>,
    pub(crate) informed_ns: Option<u64>,
    pub(crate) elections: u64,
    pub(crate) agreed: bool,
    pub(crate) leader: Option<NodeId>,
    pub(crate) downtime_ns: u64,
    pub(crate) overlap_ns: u64,
    pub(crate) two_leaders: bool,
    pub(crate) formula: Option<Prediction>,
    /// Why no formula applies, or why it does not hold here.
    pub(crate) no_formula: Option<String>,
}

/// How many messages of a kind were sent.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Count {
    pub(crate) kind: usize,
    pub(crate) count: u64,
}

/// What theory says about the messages of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Prediction {
    name: String,
    filled: String,
    value: u64,
    holds: bool,
    source: &'static str,
}

impl Metrics {
    /// The metrics of a simulated run. `kinds` are the names of the kinds by number.
    pub(crate) fn of(case: &Case, summary: &Summary, kinds: &[&str]) -> Self {
        let outcome = &summary.outcome;
        let messages = &outcome.messages;
        let by_kind = messages.by_kind.iter().filter_map(|&(name, count)| {
            let kind = kinds.iter().position(|kind| *kind == name)?;
            Some(Count { kind, count })
        });
        let (formula, no_formula) = prediction(case, outcome.ended);
        Self {
            messages: messages.total,
            by_kind: by_kind.collect(),
            to_down: messages.to_dead,
            background: messages.link + messages.detector,
            stages: Some(outcome.stages),
            turnaround_ns: Some(outcome.turnaround.as_nanos()),
            informed_ns: outcome.informed.map(Span::as_nanos),
            elections: outcome.elections,
            agreed: outcome.agreed,
            leader: outcome.leader,
            downtime_ns: outcome.downtime.as_nanos(),
            overlap_ns: outcome.overlap.as_nanos(),
            two_leaders: outcome.overlap.as_nanos() > 0,
            formula: formula.map(|it| Prediction::new(it, messages.total)),
            no_formula,
        }
    }
}

impl Prediction {
    pub(crate) fn new(formula: Formula, counted: u64) -> Self {
        Self {
            name: formula.printed,
            filled: formula.filled,
            value: formula.value,
            holds: formula.value == counted,
            source: formula.source,
        }
    }
}

/// The formula for a case and why it does not apply. Of a run in which something goes wrong, the formula is that of the
/// same run without it: what was predicted, and why it came otherwise.
fn prediction(case: &Case, ended: Ended) -> (Option<Formula>, Option<String>) {
    let formula = formula::of(case).or_else(|| formula::undisturbed(case));
    let why_not = formula::why_not(case).or_else(|| {
        let stopped =
            "the run was stopped before it was over, and the formulas are about whole runs";
        (ended != Ended::Quiet).then(|| stopped.to_owned())
    });
    (formula, why_not)
}
