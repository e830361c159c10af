//! The metrics of a recorded run: what `doyen sim --json` prints, and the formula beside it.

use doyen_core::members::NodeId;
use doyen_core::time::Span;
use doyen_report::exclusion;
use doyen_report::formula::{self, Formula};
use doyen_report::summary::Summary;
use doyen_sim::metrics::{Ended, Outcome};
use doyen_sim::scenario::Case;
use serde::Serialize;

/// The results of a run. Fields that a run without a clock cannot have are empty.
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
    /// The results of the critical section, if there is one.
    pub(crate) exclusion: Option<Entries>,
    pub(crate) formula: Option<Prediction>,
    /// Why no formula applies, or why it does not hold here.
    pub(crate) no_formula: Option<String>,
}

/// The results of the critical section.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Entries {
    /// The members in the order in which they entered.
    pub(crate) order: Vec<NodeId>,
    /// The members that wait at the end.
    pub(crate) waiting: Vec<NodeId>,
    /// Messages for each entry.
    pub(crate) per_entry: Option<f64>,
    pub(crate) longest_wait_ns: Option<u64>,
    /// From an exit to the next entry of a member that was waiting: the median.
    pub(crate) sync_delay_ns: Option<u64>,
    pub(crate) two_inside: bool,
}

impl Entries {
    fn of(case: &Case, outcome: &Outcome) -> Option<Self> {
        let summary = exclusion::Summary::new(case, outcome, None)?;
        Some(Self {
            order: summary.entries.iter().map(|entry| entry.member).collect(),
            waiting: summary.waiting,
            per_entry: summary.messages.per_entry,
            longest_wait_ns: summary.wait.map(|wait| wait.max.as_nanos()),
            sync_delay_ns: summary.sync_delay.map(|delay| delay.median.as_nanos()),
            two_inside: !summary.properties.one_inside,
        })
    }
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
        let inside = outcome.exclusion.as_ref();
        Self {
            exclusion: Entries::of(case, outcome),
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
            downtime_ns: if inside.is_some() { 0 } else { outcome.downtime.as_nanos() },
            overlap_ns: inside.map_or(outcome.overlap, |run| run.overlap).as_nanos(),
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

/// The formula for a case and why it does not apply. If something goes wrong in a run, the formula is that of the same
/// run without faults: what was predicted, and why the result differs.
fn prediction(case: &Case, ended: Ended) -> (Option<Formula>, Option<String>) {
    let formula = formula::of(case).or_else(|| formula::undisturbed(case));
    let why_not = formula::why_not(case).or_else(|| {
        let stopped =
            "the run was stopped before it was over, and the formulas are about whole runs";
        (ended != Ended::Quiet).then(|| stopped.to_owned())
    });
    (formula, why_not)
}
