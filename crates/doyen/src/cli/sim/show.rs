//! How a run is shown: columns for a small one, a summary for a large one, and whatever files are asked for.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use doyen_sim::account::Outcome;
use doyen_sim::record::Observer;
use doyen_sim::render::columns::{self, Columns};
use doyen_sim::render::{Clock, Film, Scene, mermaid, svg};
use doyen_sim::run;
use doyen_sim::scenario::Case;
use doyen_sim::summary::Summary;
use doyen_sim::trace;

use super::summary;
use crate::cli::output::{self, Output};

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

    /// Write times as multiples of D, as the literature does
    #[arg(long, help_heading = "Output")]
    in_d: bool,

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

    pub(super) fn show(
        &self,
        case: &Case,
        outcome: &Outcome,
        summary: &Summary,
        outputs: Outputs,
    ) -> Result<()> {
        self.write_files(case, outputs)?;
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, summary)?;
            return Ok(writeln!(out)?);
        }
        if self.is_machine_readable() {
            return Ok(());
        }
        if !case.about.is_empty() {
            writeln!(out, "{}\n", case.about)?;
        }
        let small = case.members().len() <= SMALL_RUN_MEMBERS
            && outcome.messages.total <= SMALL_RUN_MESSAGES;
        let columns = self.columns || (small && !self.summary);
        if columns {
            self.write_columns(case, &mut out)?;
            writeln!(out)?;
        }
        let unit = self.in_d.then_some(case.config.timing.transmission);
        summary::write(&mut out, case, outcome, summary, unit)?;
        if !columns && !self.summary {
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

    fn clock(&self) -> Clock {
        if self.in_d { Clock::Transmissions } else { Clock::Seconds }
    }

    fn write_columns(&self, case: &Case, out: &mut impl Write) -> Result<()> {
        let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let options = columns::Options { colour, clock: self.clock(), upkeep: self.upkeep };
        let mut columns = Columns::new(Scene::of(case), options, out);
        run::run(case, Some(&mut columns));
        Ok(columns.finish()?)
    }

    /// Trace and pictures, each from one more run, which is the same as the others. They appear together or not at
    /// all.
    fn write_files(&self, case: &Case, outputs: Outputs) -> Result<()> {
        let Outputs { mut svg, mut trace } = outputs;
        if let Some(output) = &mut trace {
            let mut writer = trace::Writer::new(&trace::Header::of(case), output);
            run::run(case, Some(&mut writer));
            writer.finish().context("cannot write the trace")?;
        }
        if self.mermaid || svg.is_some() {
            self.draw(case, svg.as_mut())?;
        }
        for output in [svg, trace].into_iter().flatten() {
            output.finish()?;
        }
        Ok(())
    }

    fn draw(&self, case: &Case, output: Option<&mut Output>) -> Result<()> {
        let mut film = Film::new(self.upkeep);
        run::run(case, Some(&mut film as &mut dyn Observer));
        let scene = Scene::of(case);
        let refused = |problem| anyhow!("cannot draw this run: {problem}");
        let records = film.records().map_err(refused)?;
        if let Some(output) = output {
            let mut options = svg::Options::default();
            options.clock = self.clock();
            options.upkeep = self.upkeep;
            output.write_text(&svg::space_time(&scene, records, &options).map_err(refused)?)?;
        }
        if self.mermaid {
            let diagram = mermaid::sequence(&scene, records, None).map_err(refused)?;
            io::stdout().lock().write_all(diagram.as_bytes())?;
        }
        Ok(())
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
