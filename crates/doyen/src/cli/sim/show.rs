//! How a run is shown: columns for a small one, a summary for a large one, and whatever files are asked for.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use doyen_core::protocol::Class;
use doyen_report::summary::Summary;
use doyen_sim::account::Outcome;
use doyen_sim::render::columns::{self, Columns};
use doyen_sim::render::{MAX_MESSAGES, Recording, RunInfo, mermaid, svg};
use doyen_sim::run;
use doyen_sim::scenario::Case;
use doyen_sim::trace::{self, EventKind, Observer, Observers, TraceEvent};

use super::summary;
use crate::cli::output::{self, Output};
use crate::cli::progress::Spinner;

/// A run that is shown event by event unless asked otherwise: what a person reads.
const SMALL_RUN_MEMBERS: usize = 16;
const SMALL_RUN_MESSAGES: u64 = 200;

#[derive(Args, Debug)]
pub(super) struct Show {
    /// Print one JSON object and nothing else
    #[arg(long, help_heading = "Output", conflicts_with_all = ["columns", "summary", "mermaid"])]
    json: bool,

    /// Show every event in columns, whatever the size
    #[arg(long, help_heading = "Output", conflicts_with = "summary")]
    columns: bool,

    /// Show the summary only
    #[arg(long, help_heading = "Output")]
    summary: bool,

    /// Show heartbeats and acknowledgements too
    #[arg(long, help_heading = "Output")]
    upkeep: bool,

    /// Draw the space-time diagram; - is the standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    svg: Option<PathBuf>,

    /// Print a Mermaid sequence diagram instead
    #[arg(long, help_heading = "Output")]
    mermaid: bool,

    /// Write everything that happens as ndjson; - is the standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    trace: Option<PathBuf>,
}

/// The files that are asked for, opened before anything runs.
#[derive(Debug)]
pub(super) struct Outputs {
    svg: Option<Output>,
    trace: Option<Output>,
}

impl Show {
    /// Whether the standard output is meant for a program.
    pub(super) fn is_machine_readable(&self) -> bool {
        let to_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
        self.json || self.mermaid || to_stdout(&self.trace) || to_stdout(&self.svg)
    }

    /// Opens the files, so that a wrong name is found at once.
    pub(super) fn open(&self) -> Result<Outputs> {
        let stdout = Path::new("-");
        let taken = (self.json || self.mermaid).then_some(stdout);
        let files = [&self.svg, &self.trace].into_iter().flatten().map(PathBuf::as_path);
        output::check_distinct(files.chain(taken))?;
        let create = |path: &Option<PathBuf>| path.as_deref().map(Output::create).transpose();
        Ok(Outputs { svg: create(&self.svg)?, trace: create(&self.trace)? })
    }

    /// Runs `case` once: everything that is asked for comes from this run. Says what it came to, and gives the columns of
    /// a small run. Files appear together or not at all.
    pub(super) fn run(&self, case: &Case, outputs: Outputs) -> (Outcome, Result<Option<Vec<u8>>>) {
        let Outputs { svg, mut trace } = outputs;
        let header = trace::Header::of(case);
        let mut writer = trace.as_mut().map(|output| trace::Writer::new(&header, output));
        let mut recording = (self.mermaid || svg.is_some()).then(|| Recording::new(self.upkeep));
        let streams = self.columns && !self.is_machine_readable();
        let is_small = case.members().len() <= SMALL_RUN_MEMBERS;
        let previews = is_small && !self.summary && !self.is_machine_readable();
        let (mut stdout, mut buffer) = (io::stdout(), Vec::new());
        let columns = if streams {
            Some(self.columns(case, &mut stdout))
        } else if previews {
            Some(self.columns(case, &mut buffer))
        } else {
            None
        };
        let mut columns = columns.map(|columns| Live { columns, streams, messages: 0, events: 0 });
        let mut observers = Observers::default();
        observers.0.extend(writer.as_mut().map(|it| it as &mut dyn Observer));
        observers.0.extend(recording.as_mut().map(|it| it as &mut dyn Observer));
        observers.0.extend(columns.as_mut().map(|it| it as &mut dyn Observer));
        let spinner = (!streams).then(|| Spinner::start("simulating"));
        let is_watched = !observers.0.is_empty();
        let outcome = run::run(case, is_watched.then_some(&mut observers as &mut dyn Observer));
        drop(spinner);
        let written = writer.map_or(Ok(()), trace::Writer::finish);
        let is_whole = columns.map_or(Ok(false), |live| {
            let is_whole = live.wants_more() && !streams;
            live.columns.finish().map(|()| is_whole)
        });
        let finished = written
            .context("cannot write the trace")
            .and_then(|()| self.finish_files(case, recording.as_ref(), svg, trace))
            .and_then(|()| Ok(is_whole?))
            .map(|is_whole| is_whole && outcome.messages.total <= SMALL_RUN_MESSAGES);
        (outcome, finished.map(|is_small| is_small.then_some(buffer)))
    }

    fn finish_files(
        &self,
        case: &Case,
        recording: Option<&Recording>,
        mut svg: Option<Output>,
        trace: Option<Output>,
    ) -> Result<()> {
        if let Some(recording) = recording {
            self.draw(case, recording, svg.as_mut())?;
        }
        for output in [svg, trace].into_iter().flatten() {
            output.finish()?;
        }
        Ok(())
    }

    /// Prints what a run came to. `columns` are those of a small run, unless they were printed while it went on.
    pub(super) fn show(
        &self,
        case: &Case,
        summary: &Summary,
        columns: Option<Vec<u8>>,
    ) -> Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, summary)?;
            return Ok(writeln!(out)?);
        }
        if self.is_machine_readable() {
            return Ok(());
        }
        if !case.about.is_empty() && !self.columns {
            writeln!(out, "{}\n", case.about)?;
        }
        let shows_columns = self.columns || columns.is_some();
        out.write_all(&columns.unwrap_or_default())?;
        if shows_columns {
            writeln!(out)?;
        }
        summary::write(&mut out, case, summary)?;
        if !shows_columns && !self.summary {
            writeln!(out, "--columns shows every event.")?;
        }
        if uses_chance(case) {
            writeln!(
                out,
                "Seed {}: the same arguments with --seed {0} repeat this run.",
                case.seed
            )?;
        }
        Ok(())
    }

    fn columns<'a>(&self, case: &Case, out: &'a mut dyn Write) -> Columns<&'a mut dyn Write> {
        let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let options = columns::Options { colour, background: self.upkeep };
        if self.columns && !case.about.is_empty() {
            // If it cannot be written, neither can the first line of the columns, which says so.
            let _ = writeln!(out, "{}\n", case.about);
        }
        Columns::new(RunInfo::of(case), options, out)
    }

    fn draw(&self, case: &Case, recording: &Recording, output: Option<&mut Output>) -> Result<()> {
        let info = RunInfo::of(case);
        let refused = |problem| anyhow!("cannot draw this run: {problem}");
        let events = recording.events().map_err(refused)?;
        if let Some(output) = output {
            let mut options = svg::Options::default();
            options.background = self.upkeep;
            output.write_text(&svg::space_time(&info, events, &options).map_err(refused)?)?;
        }
        if self.mermaid {
            let diagram = mermaid::sequence(&info, events, None).map_err(refused)?;
            io::stdout().lock().write_all(diagram.as_bytes())?;
        }
        Ok(())
    }
}

/// Columns that are written while a run goes on: all of them, or those of a run that may turn out to be small.
struct Live<'a> {
    columns: Columns<&'a mut dyn Write>,
    streams: bool,
    messages: u64,
    events: usize,
}

impl Observer for Live<'_> {
    fn observe(&mut self, event: &TraceEvent) {
        let is_counted = matches!(event.kind, EventKind::Sent { class: Class::Election, .. });
        self.messages += u64::from(is_counted);
        self.events += 1;
        self.columns.observe(event);
    }

    fn wants_more(&self) -> bool {
        self.streams || self.messages <= SMALL_RUN_MESSAGES && self.events <= 10 * MAX_MESSAGES
    }
}

/// Whether another seed would give another run.
fn uses_chance(case: &Case) -> bool {
    use doyen_sim::network::DelayModel;
    use doyen_sim::scenario::RingOrder;
    let network = &case.network;
    network.loss > 0.0
        || network.duplication > 0.0
        || network.processing > 0
        || case.chaos.is_some()
        || case.config.hardened()
        || network.links.iter().any(|link| link.loss.is_some() || link.delay.is_some())
        || !matches!(network.delay, DelayModel::Fixed(_))
        || case.ring == RingOrder::Random
}
