//! `run`: simulates a scenario and records it.

use doyen_report::formula;
use doyen_report::summary::Summary;
use doyen_sim::metrics::{Ended, Outcome};
use doyen_sim::monitor::Monitor;
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;
use doyen_sim::trace::Observer;
use doyen_sim::words::grouped;
use doyen_sim::world::Watchers;
use serde::Deserialize;
use serde_json::json;

use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::record::Recorder;
use crate::recorded::{Outline, Run};
use crate::source::{Opened, Source};
use crate::{Progress, limits, schedule};

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    source: Source,
    #[serde(default)]
    limit: Limit,
}

#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
struct Limit {
    /// How many steps are recorded.
    events: Option<usize>,
}

/// Simulates and records.
pub(crate) fn run(request: &Request, progress: Progress<'_>) -> Result<Run, Problem> {
    if let Some(file) = request.source.schedule()? {
        return schedule::record(&request.source, &file);
    }
    let opened = request.source.open()?;
    let limit = request.limit.events.unwrap_or(limits::USUAL_STEPS).min(limits::STEPS);
    record(&opened, limit, progress)
}

/// Simulates a scenario and records at most `limit` steps. Metrics are of the whole run.
fn record(opened: &Opened, limit: usize, progress: Progress<'_>) -> Result<Run, Problem> {
    let case = &opened.case;
    let shown = case.members().len() <= limits::RECORDED_MEMBERS;
    let mut recorder = if shown { Recorder::new(case, limit) } else { Recorder::empty(case) };
    let observer = shown.then_some(&mut recorder as &mut dyn Observer);
    let outcome = simulate(opened, observer, progress)?;
    let is_cut = shown && recorder.is_cut();
    let end = match is_cut {
        true => recorder.steps.last().map_or(Time::ZERO, |step| Time(step.at)),
        false => outcome.end,
    };
    let outline = Outline {
        case,
        source: opened.source.clone(),
        command: opened.source.command(),
        toml: opened.toml(),
        end,
        ended: ended(outcome.ended),
        truncated: truncated(opened, &outcome, is_cut.then_some(recorder.steps.len())),
        repeats: None,
        warnings: outcome
            .never_sent
            .iter()
            .map(|message| format!("no message {message} was sent"))
            .collect(),
        counted: outcome.messages.by_kind.iter().map(|&(name, _)| name).collect(),
        rest: if is_cut || !shown { rest_of(&outcome) } else { 0 },
    };
    let formula = formula::of(case).filter(|_| outcome.ended == Ended::Quiet);
    let summary = Summary::new(case, outcome, formula);
    Ok(Run::new(outline, recorder, |_, _, kinds| Metrics::of(case, &summary, kinds)))
}

/// Runs a scenario that a stranger may have written: limits end it.
pub(crate) fn simulate(
    opened: &Opened,
    observer: Option<&mut dyn Observer>,
    progress: Progress<'_>,
) -> Result<Outcome, Problem> {
    let mut case = opened.case.clone();
    case.message_limit = case.message_limit.min(limits::MESSAGES);
    case.event_limit = limits::EVENTS;
    watched(&case, observer, None, progress)
}

/// Runs a case unless `progress` stops it.
pub(crate) fn watched(
    case: &Case,
    observer: Option<&mut dyn Observer>,
    monitor: Option<&mut dyn Monitor>,
    progress: Progress<'_>,
) -> Result<Outcome, Problem> {
    let mut report = |events: u64| progress(&json!({ "events": events }).to_string());
    // All of them observe the run as long as the report lives.
    let watchers = Watchers {
        observer: observer.map(|it| it as &mut dyn Observer),
        monitor: monitor.map(|it| it as &mut dyn Monitor),
        progress: Some(&mut report),
    };
    let outcome = doyen_sim::run::watched(case, watchers);
    match outcome.ended {
        Ended::Interrupt => Err(Problem::stopped()),
        _ => Ok(outcome),
    }
}

/// A fingerprint of what was not recorded.
fn rest_of(outcome: &Outcome) -> u64 {
    let parts = [outcome.events, outcome.messages.total, outcome.end.0, u64::from(outcome.stages)];
    parts.into_iter().fold(0, |rest: u64, part| rest.rotate_left(16) ^ part)
}

fn ended(ended: Ended) -> &'static str {
    match ended {
        Ended::Quiet => "quiet",
        Ended::TimeLimit => "time limit",
        Ended::MessageLimit => "message limit",
        Ended::EventLimit | Ended::Interrupt => "events",
    }
}

/// What is missing from the record, as a sentence.
fn truncated(opened: &Opened, outcome: &Outcome, shown: Option<usize>) -> Option<String> {
    let members = opened.case.members().len();
    if members > limits::RECORDED_MEMBERS {
        return Some(format!(
            "This run has {} members. Steps are shown of at most {}.",
            grouped(members as u64),
            limits::RECORDED_MEMBERS
        ));
    }
    shown.map(|shown| {
        format!(
            "This run has {} events. Shown: the first {}.",
            grouped(outcome.events),
            grouped(shown as u64)
        )
    })
}
