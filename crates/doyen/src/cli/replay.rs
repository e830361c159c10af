//! `doyen replay`: a counterexample again, and why; or what a node recorded, again.

mod node;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use doyen_check::counterexample::Counterexample;
use doyen_check::replay;
use doyen_sim::render::columns::{self, Columns};
use doyen_sim::render::{RunInfo, mermaid, svg};
use doyen_sim::trace::Observer;
use serde_json::json;

use super::output::{self, Output};
use super::{Answer, sim};

/// Play a counterexample again, and say why its property does not hold; or what nodes recorded with --trace
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen check --algorithm bully --mode cs677-no-t2 --members 3 --crashes 2 --property A3
  doyen replay counterexample.toml
  doyen replay counterexample.toml --svg why.svg
  doyen replay n1.trace                    every event of one node, heartbeats included
  doyen replay n1.trace n2.trace n3.trace  what came of several, and whether two leases ran at once

Exit: 0 the run no longer breaks the property (traces: every promise was kept), 1 it does, 2 the file is wrong, 4 the
file ends too early to tell.")]
pub(crate) struct Replay {
    /// The counterexample, as `doyen check` wrote it; or the traces of one or more nodes of this machine
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Draw the space-time diagram, with what led to the violation in full colour; - is the standard output
    #[arg(long, value_name = "FILE", help_heading = "Counterexamples only")]
    svg: Option<PathBuf>,

    /// Write a Mermaid sequence diagram
    #[arg(long, value_name = "FILE", help_heading = "Counterexamples only")]
    mermaid: Option<PathBuf>,

    /// Show heartbeats and acknowledgements too
    #[arg(long, help_heading = "Counterexamples only")]
    upkeep: bool,

    /// Print one JSON object and nothing else
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl Replay {
    pub(crate) fn run(self) -> Result<Answer> {
        let (name, text) = sim::read(&self.files[0])?;
        if node::is_trace(&text) {
            self.refuse_pictures_of_traces(&name)?;
            return node::run(&self.files, self.json);
        }
        if self.files.len() > 1 {
            bail!("{name} is no trace of a node; give one counterexample at a time");
        }
        let file = Counterexample::parse(&name, &text).map_err(|error| anyhow!(error))?;
        let replay = file.replay().map_err(|error| anyhow!(error))?;
        let to_stdout = self.write_files(&replay)?;
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", summary(&replay))?;
        } else if !to_stdout {
            self.write_columns(&replay, &mut out)?;
            write!(out, "\n{}", replay.why())?;
        }
        Ok(match replay.broken {
            true => Answer::No,
            false if replay.is_undecided() => Answer::Limit,
            false => Answer::Yes,
        })
    }

    /// A node records what happens to itself, not when what it sends arrives: that is no picture.
    fn refuse_pictures_of_traces(&self, name: &str) -> Result<()> {
        let asked = [
            ("svg", self.svg.is_some()),
            ("mermaid", self.mermaid.is_some()),
            ("upkeep", self.upkeep),
        ];
        match asked.into_iter().find(|&(_, is_asked)| is_asked) {
            Some((flag, _)) => {
                bail!("--{flag}: {name} is the trace of a node; this is for counterexamples")
            }
            None => Ok(()),
        }
    }

    /// Writes the files that are asked for, all of them or none; says whether one is the standard output.
    fn write_files(&self, replay: &replay::Replay) -> Result<bool> {
        let stdout = Path::new("-");
        let asked = [&self.svg, &self.mermaid];
        let targets = || asked.into_iter().flatten().map(PathBuf::as_path);
        output::check_distinct(targets().chain(self.json.then_some(stdout)))?;
        let mut outputs = Vec::new();
        for (target, make) in asked.into_iter().zip([svg, mermaid]) {
            if let Some(target) = target {
                let mut output = Output::create(target)?;
                output.write_text(&make(self, replay)?)?;
                outputs.push(output);
            }
        }
        for output in outputs {
            output.finish()?;
        }
        Ok(targets().any(|target| target == stdout))
    }

    fn write_columns(&self, replay: &replay::Replay, out: &mut impl Write) -> Result<()> {
        if !replay.case.about.is_empty() {
            writeln!(out, "{}\n", replay.case.about)?;
        }
        let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let options = columns::Options { colour, background: self.upkeep };
        let mut columns = Columns::new(RunInfo::of(&replay.case), options, out);
        for (index, record) in replay.records.iter().enumerate() {
            if replay.repeats_from() == Some(index) {
                columns.remark("from here on again and again:");
            }
            columns.observe(record);
        }
        Ok(columns.finish()?)
    }
}

fn svg(command: &Replay, replay: &replay::Replay) -> Result<String> {
    let mut options = svg::Options::default();
    options.background = command.upkeep;
    let repeated =
        replay.repeats_from().filter(|_| replay.broken).and_then(|first| replay.records.get(first));
    let repeated = repeated.map(|record| format!("; from {} on for ever", record.at));
    options.subtitle = Some(replay.verdict() + &repeated.unwrap_or_default());
    options.emphasis = replay.broken.then(|| replay.past.clone());
    svg::space_time(&RunInfo::of(&replay.case), &replay.records, &options)
        .map_err(|problem| anyhow!("cannot draw this run: {problem}"))
}

fn mermaid(_: &Replay, replay: &replay::Replay) -> Result<String> {
    mermaid::sequence(&RunInfo::of(&replay.case), &replay.records, replay.repeats_from())
        .map_err(|problem| anyhow!("cannot draw this run: {problem}"))
}

fn summary(replay: &replay::Replay) -> serde_json::Value {
    let step = |played: &replay::Played| {
        json!({
            "at": played.at,
            "step": played.step.to_string(),
            "rules": played.rules,
            "repeated": played.repeated,
        })
    };
    let verdict = match replay.broken {
        true => "violated",
        false if replay.is_undecided() => "limit",
        false => "holds",
    };
    json!({
        "verdict": verdict,
        "property": replay.property.name(),
        "says": replay.property.words(),
        "broken": replay.broken,
        "facts": replay.facts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "ending": replay.ending.name(),
        "gap": replay.gap,
        "steps": (!replay.is_timed).then(|| replay.steps.iter().map(step).collect::<Vec<_>>()),
        "events": replay.records,
    })
}
