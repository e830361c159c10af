//! `render`: a run as a picture, a text or a file: what `doyen sim` writes for the same scenario.

use doyen_check::counterexample::Counterexample;
use doyen_sim::render::svg::{self, Theme};
use doyen_sim::render::{Recording, RunInfo, TooLarge, mermaid};
use doyen_sim::trace::{Header, Observer, TraceEvent, Writer};
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::run::simulate;
use crate::source::{Opened, Source};
use crate::{Progress, limits, schedule};

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    source: Source,
    form: Form,
    #[serde(default)]
    theme: Ground,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
enum Form {
    Svg,
    Mermaid,
    Toml,
    Trace,
    Command,
}

/// The background of a picture.
#[derive(Clone, Copy, Deserialize, Debug, Default)]
#[serde(rename_all = "lowercase")]
enum Ground {
    #[default]
    Auto,
    Light,
    Dark,
}

impl From<Ground> for Theme {
    fn from(ground: Ground) -> Self {
        match ground {
            Ground::Auto => Self::Auto,
            Ground::Light => Self::Light,
            Ground::Dark => Self::Dark,
        }
    }
}

/// A file.
#[derive(Debug, Serialize)]
pub(crate) struct File {
    text: String,
    name: String,
    #[serde(rename = "type")]
    media_type: &'static str,
}

pub(crate) fn render(request: &Request, progress: Progress<'_>) -> Result<File, Problem> {
    let Request { source, form, theme } = request;
    let (text, base) = match source.schedule()? {
        Some(file) => (of_schedule(&file, *form, (*theme).into())?, "counterexample"),
        None => {
            let opened = source.open()?;
            (of_scenario(&opened, *form, (*theme).into(), progress)?, source.base_name())
        }
    };
    let (extension, media_type) = match form {
        Form::Svg => ("svg", "image/svg+xml"),
        Form::Mermaid => ("mmd", "text/plain"),
        Form::Toml => ("toml", "application/toml"),
        Form::Trace => ("ndjson", "application/x-ndjson"),
        Form::Command => ("sh", "text/plain"),
    };
    Ok(File { text, name: format!("{base}.{extension}"), media_type })
}

fn of_scenario(
    opened: &Opened,
    form: Form,
    theme: Theme,
    progress: Progress<'_>,
) -> Result<String, Problem> {
    match form {
        Form::Command => Ok(opened.source.command()),
        Form::Toml => Ok(opened.toml()),
        Form::Trace => {
            let mut trace = Capped::default();
            simulate(opened, Some(&mut trace), progress)?;
            written(&Header::of(&opened.case), &trace)
        }
        Form::Svg | Form::Mermaid => {
            let mut recording = Recording::new(false);
            simulate(opened, Some(&mut recording), progress)?;
            let info = RunInfo::of(&opened.case);
            let drawn = recording.events().and_then(|events| match form {
                Form::Svg => {
                    svg::space_time(&info, events, &svg::Options { theme, ..Default::default() })
                }
                _ => mermaid::sequence(&info, events, None),
            });
            drawn.map_err(too_large)
        }
    }
}

fn of_schedule(file: &Counterexample, form: Form, theme: Theme) -> Result<String, Problem> {
    let replay = match form {
        Form::Command => return Ok(schedule::command()),
        Form::Toml => return Ok(file.to_toml()),
        Form::Svg | Form::Mermaid | Form::Trace => schedule::replay(file)?,
    };
    let info = RunInfo::of(&replay.case);
    match form {
        Form::Svg => {
            let options = svg::Options {
                theme,
                subtitle: Some(replay.verdict()),
                emphasis: replay.broken.then(|| replay.past.clone()),
                ..svg::Options::default()
            };
            svg::space_time(&info, &replay.records, &options).map_err(too_large)
        }
        Form::Mermaid => {
            mermaid::sequence(&info, &replay.records, replay.repeats_from()).map_err(too_large)
        }
        _ => written(&Header::of(&replay.case), &Capped(replay.records)),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn too_large(problem: TooLarge) -> Problem {
    Problem::of_scenario("members", format!("cannot draw this run: {problem}"))
}

/// The events of a run, up to a limit.
#[derive(Default)]
struct Capped(Vec<TraceEvent>);

impl Observer for Capped {
    fn observe(&mut self, event: &TraceEvent) {
        self.0.push(event.clone());
    }

    fn wants_more(&self) -> bool {
        self.0.len() <= limits::TRACE
    }
}

fn written(header: &Header, trace: &Capped) -> Result<String, Problem> {
    if !trace.wants_more() {
        let detail = format!(
            "this run has more than {} events; write its trace with `doyen sim … --trace FILE`",
            limits::TRACE
        );
        return Err(Problem::of_scenario("until", detail));
    }
    let mut out = Vec::new();
    let mut writer = Writer::new(header, &mut out);
    trace.0.iter().for_each(|event| writer.observe(event));
    let text = writer.finish().ok().and_then(|()| String::from_utf8(out).ok());
    text.ok_or_else(|| Problem::new("The answer cannot be written", "the trace is not a text"))
}
