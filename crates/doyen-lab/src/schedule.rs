//! A counterexample as a recorded run: the schedule that the checker found, executed again.
//!
//! A schedule has only ticks and no clock: times show the order of steps, and fields that need a clock are left out.

use doyen_check::counterexample::Counterexample;
use doyen_check::ending::Ending;
use doyen_check::replay::Replay;
use doyen_core::protocol::{Class, Role};
use doyen_sim::render::model::Life;
use doyen_sim::time::Time;
use doyen_sim::trace::{EventKind, Observer};

use crate::limits;
use crate::metrics::{Count, Metrics};
use crate::problem::Problem;
use crate::record::{Intervals, Recorder};
use crate::recorded::{Loop, Outline, Run};
use crate::source::Source;

/// The name under which a counterexample is exported.
pub(crate) const FILE: &str = "counterexample.toml";

/// The command that executes it again.
pub(crate) fn command() -> String {
    format!("doyen replay {FILE}")
}

/// Executes the schedule of a counterexample.
pub(crate) fn replay(file: &Counterexample) -> Result<Replay, Problem> {
    file.replay().map_err(|detail| Problem::of_scenario("toml", detail))
}

/// The run of a schedule.
pub(crate) fn record(source: &Source, file: &Counterexample) -> Result<Run, Problem> {
    Ok(record_replay(source.clone(), file.to_toml(), &replay(file)?))
}

/// The run of a schedule that was executed. `toml` is its file.
pub(crate) fn record_replay(source: Source, toml: String, replay: &Replay) -> Run {
    let mut recorder = Recorder::new(&replay.case, limits::STEPS);
    let mut first_repeated = None;
    for (index, event) in replay.records.iter().enumerate() {
        if replay.repeats_from() == Some(index) {
            first_repeated = Some(recorder.steps.len());
        }
        recorder.observe(event);
    }
    let last = recorder.steps.len().saturating_sub(1);
    let repeats = first_repeated.filter(|&from| from <= last).map(|from| Loop { from, to: last });
    let end = replay.records.iter().map(|record| arrival(&record.kind).max(record.at)).max();
    let outline = Outline {
        case: &replay.case,
        source,
        command: command(),
        toml,
        end: end.unwrap_or_default(),
        ended: match replay.ending {
            Ending::Rest => "quiet",
            Ending::Cycle(_) => "repeats",
            Ending::There | Ending::Limit | Ending::Early => "violation",
        },
        truncated: recorder.is_cut().then(|| "Only the first steps are shown.".to_owned()),
        repeats,
        warnings: Vec::new(),
        counted: Vec::new(),
        rest: 0,
    };
    let calls = replay.records.iter();
    let calls = calls.filter(|it| matches!(it.kind, EventKind::Campaign { .. })).count();
    let elections = calls as u64;
    Run::new(outline, recorder, |recorder, intervals, _| Metrics {
        elections,
        ..counted(recorder, intervals, end.unwrap_or_default())
    })
}

/// When a message arrives at the latest.
fn arrival(event: &EventKind) -> Time {
    match event {
        EventKind::Sent { arrives, again, .. } => arrives.max(again).unwrap_or_default(),
        _ => Time::ZERO,
    }
}

/// What can be counted without a clock.
fn counted(recorder: &Recorder, intervals: &Intervals, end: Time) -> Metrics {
    let mut metrics = Metrics::default();
    for message in &recorder.messages {
        match recorder.class_of(message) {
            Class::Algorithm => {
                metrics.messages += 1;
                metrics.to_down += u64::from(message.is_missed());
                match metrics.by_kind.iter_mut().find(|count| count.kind == message.kind) {
                    Some(count) => count.count += 1,
                    None => metrics.by_kind.push(Count { kind: message.kind, count: 1 }),
                }
            }
            Class::Link | Class::Detector | Class::Marker | Class::Client => {
                metrics.background += 1;
            }
        }
    }
    let live = recorder.states().filter(|(_, state)| state.life != Life::Down);
    let mut leaders = live.clone().map(|(_, state)| state.leader);
    let first = leaders.next().flatten();
    metrics.leader = first.filter(|_| leaders.all(|leader| leader == first));
    let leads = |(id, role): (_, Role)| metrics.leader == Some(id) && role.leads();
    metrics.agreed = live.map(|(id, state)| (id, state.role)).any(leads);
    (metrics.downtime_ns, metrics.overlap_ns) = intervals.totals(end.0);
    metrics.two_leaders = metrics.overlap_ns > 0;
    metrics.no_formula =
        Some("this is one schedule of many, and the formulas are about runs".to_owned());
    metrics
}
