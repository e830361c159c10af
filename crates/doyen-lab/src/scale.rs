//! `scale`: the same scenario with another number of members, as curves and as a map of where messages come from.
//!
//! Single messages are not stored, so a run of a million members needs no more memory than one of five.

mod buckets;
mod resize;

use doyen_core::layers;
use doyen_core::ledger::Stored;
use doyen_core::members::{Members, Term};
use doyen_core::protocol::{AdminCommand, Bonds, Kind, Pledge, View};
use doyen_core::time::Span;
use doyen_report::formula::{self, Formula};
use doyen_sim::fault::Disk;
use doyen_sim::metrics::Outcome;
use doyen_sim::monitor::{Counted, Monitor, Sending};
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;
use doyen_sim::words::grouped;
use serde::{Deserialize, Serialize};

use crate::metrics::Prediction;
use crate::problem::Problem;
use crate::run::watched;
use crate::source::{Opened, Source};
use crate::{Progress, limits};
use buckets::Buckets;

/// The points of a curve at most.
const POINTS: usize = 400;
/// The most rows and columns of the map, and the most members of a group that has one.
const ROWS: usize = 200;
const COLUMNS: usize = 120;
const MAPPED_MEMBERS: usize = 2_000;

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    source: Source,
    members: u64,
}

/// A run as curves and a map.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    members: usize,
    messages: u64,
    formula: Option<Prediction>,
    turnaround_ns: Option<u64>,
    curves: Vec<Curve>,
    heat: Option<Heat>,
    /// Why the numbers come from the formula alone, or are those of a part of the run.
    note: Option<String>,
    growth: Option<Growth>,
}

/// The values of the formula for every size up to that of a run that is too large.
#[derive(Debug, Serialize)]
struct Growth {
    /// Members and messages.
    points: Vec<(usize, u64)>,
    /// Runs with more messages are not simulated.
    simulated_up_to: u64,
}

/// How many messages of a kind had been sent by each time.
#[derive(Debug, Serialize)]
struct Curve {
    name: &'static str,
    family: &'static str,
    points: Vec<(u64, u64)>,
}

/// How many messages were sent, by member and time.
#[derive(Debug, Serialize)]
struct Heat {
    rows: usize,
    columns: usize,
    t0: u64,
    t1: u64,
    cells: Vec<u64>,
    label: String,
}

pub(crate) fn scale(request: &Request, progress: Progress<'_>) -> Result<Answer, Problem> {
    let opened = request.source.open()?;
    let scenario = resize::resized(&opened, request.members)?;
    let mut case = scenario.resolve()?;
    // A formula has no limit.
    case.message_limit = u64::MAX;
    let formula = formula::of(&case).or_else(|| formula::undisturbed(&case));
    if let Some(reason) = too_large(&case, formula.as_ref()) {
        let growth = growth(&opened, request.members);
        return predicted(&case, formula, reason, growth);
    }
    case.message_limit = limits::SCALED_MESSAGES;
    case.event_limit = limits::SCALED_EVENTS;
    let mut counter = Counter::new(&case);
    let outcome = watched(&case, None, Some(&mut counter), progress)?;
    Ok(counter.answer(&case, &outcome, formula))
}

/// Why a run is not simulated here.
fn too_large(case: &Case, formula: Option<&Formula>) -> Option<String> {
    let messages = formula.map_or(0, |formula| formula.value);
    if messages > limits::SCALED_MESSAGES {
        let number = grouped(messages);
        return Some(format!(
            "{number} messages are too many to simulate here: this is the formula"
        ));
    }
    (case.memory_estimate() > limits::MEMORY)
        .then(|| "the run needs too much memory here: this is the formula".to_owned())
}

/// How the messages grow with the members. Sizes follow each other by factors of about three: 3, 10, 30, 100.
fn growth(opened: &Opened, members: u64) -> Growth {
    let tens = (0..).map_while(|power| 10_u64.checked_pow(power));
    let sizes = tens.flat_map(|ten| [ten, 3 * ten]).skip(1).take_while(|&size| size < members);
    let value = |size: u64| {
        let mut case = resize::resized(opened, size).ok()?.resolve().ok()?;
        case.message_limit = u64::MAX;
        let formula = formula::of(&case).or_else(|| formula::undisturbed(&case))?;
        Some((case.members().len(), formula.value))
    };
    let points = sizes.chain([members]).filter_map(value).collect();
    Growth { points, simulated_up_to: limits::SCALED_MESSAGES }
}

/// The values of the formula for a run that is too large.
fn predicted(
    case: &Case,
    formula: Option<Formula>,
    reason: String,
    growth: Growth,
) -> Result<Answer, Problem> {
    let members = case.members().len();
    let Some(formula) = formula else {
        let detail = format!("{} members are too many here; use fewer", grouped(members as u64));
        return Err(Problem::of_scenario("members", detail));
    };
    let messages = formula.value;
    Ok(Answer {
        members,
        messages,
        formula: Some(Prediction::new(formula, messages)),
        turnaround_ns: None,
        curves: Vec::new(),
        heat: None,
        note: Some(reason),
        growth: Some(growth),
    })
}

/// Counts the election messages of a run.
struct Counter<'c> {
    members: &'c Members,
    kinds: Vec<Kind>,
    by_kind: Buckets,
    by_member: Option<Buckets>,
}

impl<'c> Counter<'c> {
    fn new(case: &'c Case) -> Self {
        let members = case.members();
        let kinds = layers::kinds(case.algorithm);
        // Fine enough to separate the instants of a small run.
        let width = (case.config.timing.transmission.as_nanos() / 16).max(1);
        let rows = members.len().min(ROWS);
        let is_mapped = members.len() <= MAPPED_MEMBERS;
        Self {
            members,
            by_kind: Buckets::new(POINTS, kinds.len(), width),
            by_member: is_mapped.then(|| Buckets::new(COLUMNS, rows, width)),
            kinds,
        }
    }

    fn answer(self, case: &Case, outcome: &Outcome, formula: Option<Formula>) -> Answer {
        let curve = |(lane, kind): (usize, &Kind)| {
            let points = self.by_kind.cumulative(lane);
            let (name, family) = (kind.name, kind.family.name());
            (!points.is_empty()).then_some(Curve { name, family, points })
        };
        let is_cut = outcome.events >= limits::SCALED_EVENTS
            || outcome.messages.total >= limits::SCALED_MESSAGES;
        Answer {
            members: case.members().len(),
            messages: outcome.messages.total,
            formula: formula.map(|formula| Prediction::new(formula, outcome.messages.total)),
            turnaround_ns: Some(outcome.turnaround.as_nanos()),
            curves: self.kinds.iter().enumerate().filter_map(curve).collect(),
            heat: self.by_member.map(|buckets| Heat::new(case, &buckets)),
            note: is_cut.then(|| format!("stopped after {} events", grouped(outcome.events))),
            growth: None,
        }
    }
}

impl Heat {
    fn new(case: &Case, buckets: &Buckets) -> Self {
        let (members, rows) = (case.members().len(), buckets.lanes());
        let label = match members.div_ceil(rows) {
            1 => "messages sent, a row for each member".to_owned(),
            several => format!("messages sent, a row for {several} members"),
        };
        let (columns, t1, cells) = buckets.rows();
        Self { rows, columns, t0: 0, t1, cells, label }
    }
}

impl Monitor for Counter<'_> {
    fn sent(&mut self, at: Time, sending: Sending) {
        if !sending.of_election {
            return;
        }
        if let Some(kind) = self.kinds.iter().position(|kind| kind.name == sending.kind) {
            self.by_kind.add(at.0, kind);
        }
        if let (Some(buckets), Some(place)) =
            (&mut self.by_member, self.members.position(sending.from))
        {
            buckets.add(at.0, place * buckets.lanes() / self.members.len());
        }
    }

    // Other events are not counted.
    fn view_changed(&mut self, _: Time, _: u32, _: View) {}
    fn stored(&mut self, _: Time, _: u32, _: Stored) {}
    fn drain_stored(&mut self, _: u32, _: bool) {}
    fn pledged(&mut self, _: Time, _: u32, _: u32, _: Pledge) {}
    fn received(&mut self, _: u32, _: Option<Span>, _: Option<Term>) {}
    fn lease_changed(&mut self, _: Time, _: u32, _: Option<(Time, Counted)>) {}
    fn bonds_changed(&mut self, _: u32, _: Bonds<Counted>) {}
    fn event_ended(&mut self, _: Time) {}
    fn clock_changed(&mut self, _: Time, _: u32, _: &dyn Fn(Time) -> Time) {}
    fn retired(&mut self, _: u32, _: Term) {}
    fn commanded(&mut self, _: u32, _: AdminCommand) {}
    fn elections_called(&mut self, _: Time, _: u32, _: u32) {}
    fn crashed(&mut self, _: Time, _: u32) {}
    fn restarted(&mut self, _: Time, _: u32, _: Disk, _: Stored) {}
    fn second_process_started(&mut self, _: Time, _: u32, _: bool) {}
}

#[cfg(test)]
mod tests;
