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

    /// Draw the space-time diagram
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    svg: Option<PathBuf>,

    /// Print a Mermaid sequence diagram instead
    #[arg(long, help_heading = "Output")]
    mermaid: bool,

    /// Write everything that happens as ndjson; - is the standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    trace: Option<PathBuf>,
}

impl Show {
    /// Whether the standard output is meant for a program.
    pub(super) fn is_machine_readable(&self) -> bool {
        let traces_to_stdout = self.trace.as_deref() == Some(Path::new("-"));
        self.json || self.mermaid || traces_to_stdout
    }

    pub(super) fn show(&self, case: &Case, outcome: &Outcome, summary: &Summary) -> Result<()> {
        self.write_trace(case)?;
        self.draw(case)?;
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
        if self.columns || (small && !self.summary) {
            self.write_columns(case, &mut out)?;
            writeln!(out)?;
        }
        write_summary(&mut out, case, outcome, summary)?;
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

    fn write_trace(&self, case: &Case) -> Result<()> {
        let Some(path) = &self.trace else { return Ok(()) };
        let mut output = Output::create(path)?;
        let mut writer = trace::Writer::new(&trace::Header::of(case), &mut output);
        run::run(case, Some(&mut writer));
        writer.finish().with_context(|| format!("cannot write {}", path.display()))?;
        output.finish()
    }

    /// The pictures. Both are drawn from one more run, which is the same as the others.
    fn draw(&self, case: &Case) -> Result<()> {
        if self.svg.is_none() && !self.mermaid {
            return Ok(());
        }
        let mut film = Film::new(self.upkeep);
        run::run(case, Some(&mut film as &mut dyn Observer));
        let scene = Scene::of(case);
        let records =
            film.records().map_err(|problem| anyhow!("cannot draw this run: {problem}"))?;
        if let Some(path) = &self.svg {
            let mut options = svg::Options::default();
            options.clock = self.clock();
            options.upkeep = self.upkeep;
            let picture = svg::space_time(&scene, records, &options)
                .map_err(|problem| anyhow!("cannot draw this run: {problem}"))?;
            output::write(path, &picture)?;
        }
        if self.mermaid {
            let diagram = mermaid::sequence(&scene, records)
                .map_err(|problem| anyhow!("cannot draw this run: {problem}"))?;
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
        || !matches!(network.delay, DelayModel::Fixed(_))
        || case.ring == RingOrder::Named("random".to_owned())
}

fn write_summary(
    out: &mut impl Write,
    case: &Case,
    outcome: &Outcome,
    summary: &Summary,
) -> Result<()> {
    let verdict = match (outcome.agreed, outcome.leader) {
        (true, Some(leader)) => {
            format!("all {} live members follow {leader}", outcome.views.iter().flatten().count())
        }
        (false, Some(leader)) => format!("all live members follow {leader}, which does not lead"),
        (_, None) => format!("no agreement: {}", disagreement(case, outcome)),
    };
    writeln!(
        out,
        "{} ({}), {} members counted by the `{}` convention: {verdict}",
        summary.algorithm, summary.mode, summary.members, summary.convention
    )?;
    let by_kind = outcome.messages.by_kind.iter();
    let kinds: Vec<String> = by_kind.map(|(kind, count)| format!("{count} {kind}")).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" = {}", kinds.join(" + ")) };
    writeln!(out, "  messages    {}{kinds}", summary.messages.total)?;
    let apart = [
        (summary.messages.to_dead, "of them to dead members"),
        (summary.messages.lost, "of them lost"),
        (summary.messages.link, "acknowledgements and retransmissions apart"),
        (summary.messages.detector, "heartbeats apart"),
    ];
    for (count, what) in apart.into_iter().filter(|&(count, _)| count > 0) {
        writeln!(out, "              {count} {what}")?;
    }
    if let Some(formula) = &summary.formula {
        let verdict = if formula.matches { "as counted" } else { "not what was counted" };
        writeln!(out, "  formula     {} = {}, {verdict}", formula.name, formula.value)?;
    }
    writeln!(
        out,
        "  time        {} until the last message, {} until everybody knew; {} stages",
        outcome.turnaround, outcome.informed, summary.stages
    )?;
    writeln!(
        out,
        "  elections   {} called, {} members involved; the leader changed {}",
        summary.elections,
        summary.involved,
        times(summary.leader_changes)
    )?;
    writeln!(out, "  leaderless  {}; two leaders for {}", outcome.no_leader, outcome.two_leaders)?;
    if summary.ended != "quiet" {
        writeln!(
            out,
            "  stopped     at the {} ({}), never quiet: --until and --message-limit change that",
            summary.ended, outcome.end
        )?;
    }
    Ok(())
}

fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

/// Who follows whom, for those who do not agree.
fn disagreement(case: &Case, outcome: &Outcome) -> String {
    let mut camps: Vec<(String, Vec<String>)> = Vec::new();
    for (position, view) in outcome.views.iter().enumerate() {
        let Some(view) = view else { continue };
        let leader = view.leader.map_or("nobody".to_owned(), |leader| leader.to_string());
        let member = case.members().at(position).to_string();
        match camps.iter_mut().find(|(camp, _)| *camp == leader) {
            Some((_, members)) => members.push(member),
            None => camps.push((leader, vec![member])),
        }
    }
    let camp = |(leader, members): &(String, Vec<String>)| match members.len() {
        1 => format!("{} follows {leader}", members[0]),
        2..=8 => format!("{} follow {leader}", members.join(", ")),
        count => format!("{count} members follow {leader}"),
    };
    camps.iter().map(camp).collect::<Vec<_>>().join("; ")
}
