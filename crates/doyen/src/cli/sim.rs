//! `doyen sim`: one run, shown event by event if it is small, with the files that are asked for.

mod exclusion;
pub(super) mod fold;
mod service;
mod summary;

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use doyen_core::protocol::Class;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_report::expectation;
use doyen_report::formula::{self, Formula};
use doyen_report::summary::Summary;
use doyen_sim::cut::Cut;
use doyen_sim::fault::{Chaos, Fault};
use doyen_sim::message::{Late, MessageName, Twice};
use doyen_sim::metrics::sections::Exclusion;
use doyen_sim::metrics::{Ended, Outcome};
use doyen_sim::network::DelayModel;
use doyen_sim::render::columns::{self, Columns};
use doyen_sim::render::{MAX_MESSAGES, Recording, RunInfo, mermaid, svg};
use doyen_sim::run;
use doyen_sim::scenario::{Case, RingOrder, Scenario};
use doyen_sim::text::Share;
use doyen_sim::trace::{self, EventKind, Observer, Observers, TraceEvent};

use super::election::{Election, as_flag, set};
use super::output::{self, Output};
use super::progress::Progress;
use super::section::Section;
use super::{Answer, scenarios, system, terminal};

/// What is shown event by event by default.
const SMALL_RUN_MEMBERS: usize = 16;
const SMALL_RUN_MESSAGES: u64 = 200;

/// Simulate one election, or entries into a critical section, message by message
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  doyen sim --algorithm bully --members 5
  doyen sim --algorithm bully --members 1000 --initiators 100 --json
  doyen sim --algorithm ring-list --members 0..7 --dead 7 --initiators 2,5
  doyen sim --algorithm chang-roberts --members 12 --ring random --initiators all --svg ring.svg
  doyen sim --algorithm bully --mode hardened --members 5 --leader 5 --crash 5@10ms --detector 5ms
  doyen sim --algorithm ricart-agrawala --members 5 --requests 1,3@2ms --hold 5ms
  doyen sim --algorithm bully --members 5 --snapshot 3@2ms
  doyen sim kordafshari/figure-1
  doyen sim my-scenario.toml --mode hardened

Times are virtual. All time-outs derive from D, the bound on a message's delay: the longest delay
unless --bound is given. docs/scenarios.md describes scenario files.

The signs in the columns of an election:
{}

of mutual exclusion, where they differ:
{}

In brackets are the rules that fired: `doyen algorithms bully` explains those of bully.", columns::LEGEND, columns::LEGEND_OF_EXCLUSION))]
pub(crate) struct Sim {
    /// Scenario: a file, or the name of one that is built in (`doyen scenarios` lists them); flags override its values
    #[arg(value_name = "SCENARIO")]
    file: Option<PathBuf>,

    #[command(flatten)]
    election: Election,

    #[command(flatten)]
    section: Section,

    /// How long a message takes: 1ms, uniform:1ms..2ms or exp:1ms [default: 1ms]
    #[arg(long, value_name = "TIME", help_heading = "Network")]
    delay: Option<DelayModel>,

    /// How long a member takes at most to reply [default: 0]
    #[arg(long, value_name = "TIME", help_heading = "Network")]
    processing: Option<Span>,

    /// D, the bound on delays [default: the longest delay; for exp, ten times the mean]
    #[arg(long, value_name = "TIME", help_heading = "Network")]
    bound: Option<Span>,

    /// Share of messages that are lost, such as 5%
    #[arg(long, value_name = "SHARE", help_heading = "Network")]
    loss: Option<Share>,

    /// Share of messages that arrive twice, such as 1%
    #[arg(long, value_name = "SHARE", help_heading = "Network")]
    duplicate: Option<Share>,

    /// End the run at this time at the latest
    #[arg(long, value_name = "TIME", help_heading = "Timing")]
    until: Option<Span>,

    /// End the run after this many election messages [default: 1000000000]
    #[arg(long, value_name = "COUNT", help_heading = "Timing")]
    message_limit: Option<u64>,

    /// Random seed [default: 1]
    #[arg(long, value_name = "SEED", help_heading = "Timing")]
    seed: Option<u64>,

    /// Crash a member: 5@3ms; with its control part still forwarding: 5@3ms,forwards
    #[arg(long, value_name = "ID@TIME", value_parser = fault("crash"), help_heading = "Faults")]
    crash: Vec<Fault>,

    /// Restart a member: 5@9ms; without its disk: 5@9ms,fresh
    #[arg(long, value_name = "ID@TIME", value_parser = fault("restart"), help_heading = "Faults")]
    restart: Vec<Fault>,

    /// Pause a member: 3@2ms+10ms
    #[arg(long, value_name = "ID@TIME+TIME", value_parser = fault("pause"), help_heading = "Faults")]
    pause: Vec<Fault>,

    /// Change the rate of a member's clock: 3=0.9@0 (and 3=1.0@5ms+2ms jumps ahead by 2ms)
    #[arg(long, value_name = "ID=RATE@TIME", value_parser = fault("clock"), help_heading = "Faults")]
    clock: Vec<Fault>,

    /// Cut the link from one member to another: 1>3@2ms
    #[arg(long, value_name = "ID>ID@TIME", value_parser = fault("cut"), help_heading = "Faults")]
    cut: Vec<Fault>,

    /// Partition the members into groups: 1,2/3,4@2ms
    #[arg(long, value_name = "IDS/IDS@TIME", value_parser = fault("partition"), help_heading = "Faults")]
    partition: Vec<Fault>,

    /// End every cut and partition: 50ms
    #[arg(long, value_name = "TIME", value_parser = fault("heal"), help_heading = "Faults")]
    heal: Vec<Fault>,

    /// Crash members at random: every 50ms on average, for 20ms on average, until 1s: 50ms,20ms,1s
    #[arg(long, value_name = "EVERY,FOR,UNTIL", help_heading = "Faults")]
    chaos: Option<Chaos>,

    /// Lose one message: 6:1:COORDINATOR; the second such: 6:1:COORDINATOR:2; the next of a kind after 7ms: TOKEN@7ms
    #[arg(long, value_name = "FROM:TO:KIND or KIND@TIME", help_heading = "Faults")]
    drop: Vec<Loss>,

    /// Delay one message: 6:2:COORDINATOR+2ms
    #[arg(long, value_name = "FROM:TO:KIND+TIME", help_heading = "Faults")]
    late: Vec<Late>,

    /// Deliver one message twice: 6:3:COORDINATOR; the copy 2ms after the first: 6:3:COORDINATOR+2ms
    #[arg(long, value_name = "FROM:TO:KIND", help_heading = "Faults")]
    twice: Vec<Twice>,

    /// Take a snapshot of the whole group, started by a member: 3@5ms. Links keep the order of messages then
    #[arg(long, value_name = "ID@TIME", value_parser = fault("snapshot"), help_heading = "Faults")]
    snapshot: Vec<Fault>,

    /// Let a member tell another one something, outside an algorithm of mutual exclusion: '3>1@2ms'
    #[arg(long, value_name = "FROM>TO@TIME", value_parser = fault("tell"), help_heading = "Faults")]
    tell: Vec<Fault>,

    /// Print one JSON object and nothing else
    #[arg(long, help_heading = "Output", conflicts_with_all = ["columns", "summary", "mermaid"])]
    json: bool,

    /// Show every event in columns, whatever the size
    #[arg(long, help_heading = "Output", conflicts_with = "summary")]
    columns: bool,

    /// Show only the summary
    #[arg(long, help_heading = "Output")]
    summary: bool,

    /// Show heartbeats and acknowledgements too
    #[arg(long, help_heading = "Output")]
    background: bool,

    /// Draw the space-time diagram; - is the standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    svg: Option<PathBuf>,

    /// Print a Mermaid sequence diagram instead
    #[arg(long, help_heading = "Output")]
    mermaid: bool,

    /// Write every event as ndjson; - is the standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    trace: Option<PathBuf>,
}

/// A message that is lost: one that is named, or the next of a kind.
#[derive(Clone, Debug)]
enum Loss {
    Named(MessageName),
    Next(Fault),
}

impl FromStr for Loss {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.contains('@') {
            true => Fault::from_flag("drop", text).map(Self::Next),
            false => text.parse().map(Self::Named),
        }
    }
}

/// Reads the values of the flag for this kind of fault.
fn fault(kind: &'static str) -> impl Fn(&str) -> Result<Fault, String> + Clone {
    move |text| Fault::from_flag(kind, text)
}

impl Sim {
    pub(crate) fn run(self) -> Result<Answer> {
        let case = self.case()?;
        check_memory(&case)?;
        let outputs = output::create_all([&self.svg, &self.trace], self.json || self.mermaid)?;
        let (outcome, columns) = self.simulate(&case, outputs);
        for message in &outcome.never_sent {
            system::note(format_args!("no message {message} was sent"));
        }
        // A formula is not about a run that was cut short.
        let formula = formula::of(&case).filter(|_| outcome.ended == Ended::Quiet);
        let differences = expectation::differences(&case, &outcome, formula.as_ref());
        let result = Sums::new(&case, outcome, formula);
        for difference in &differences {
            system::note(format_args!("not as expected: {difference}"));
        }
        let is_written = columns.is_ok();
        let shown = columns.and_then(|columns| self.show(&case, &result, columns));
        if is_written {
            output::note_written([&self.svg, &self.trace]);
        }
        // A closed pipe does not hide a negative answer.
        if !differences.is_empty() || result.breaks_a_claim(&case) {
            return Ok(Answer::No);
        }
        shown?;
        if case.expect.is_some() && !self.is_machine_readable() {
            writeln!(io::stdout(), "As expected.")?;
        }
        Ok(Answer::Yes)
    }

    /// The scenario of the file and the flags.
    fn case(&self) -> Result<Case> {
        let Some(path) = &self.file else {
            let mut scenario = Scenario::default();
            self.apply(&mut scenario)?;
            return scenario.resolve().map_err(as_flag);
        };
        let (name, text) = scenarios::read(path)?;
        let (written, _) = Scenario::read(&name, &text).map_err(|error| anyhow!(error))?;
        let mut scenario = written.clone();
        self.apply(&mut scenario)?;
        if scenario != written && scenario.expect.take().is_some() {
            system::note(format_args!(
                "flags change the run, so what {name} expects is not checked"
            ));
        }
        // The file alone is valid, so a mistake is in a flag.
        scenario.resolve().map_err(as_flag)
    }

    fn apply(&self, scenario: &mut Scenario) -> Result<()> {
        // Every flag is named, so that none is accepted and ignored.
        #[rustfmt::skip]
        let Self {
            file: _, election, section,
            delay, processing, bound, loss, duplicate, until, message_limit, seed,
            crash, restart, pause, clock, cut, partition, heal, chaos, drop, late, twice, snapshot, tell,
            json: _, columns: _, summary: _, background: _, svg: _, mermaid: _, trace: _,
        } = self;
        election.apply(scenario)?;
        section.apply(scenario);
        set!(scenario: delay, processing, bound, loss, duplicate, until, message_limit, seed, chaos);
        let faults = [crash, restart, pause, clock, cut, partition, heal, snapshot, tell];
        scenario.fault.extend(faults.into_iter().flatten().cloned());
        for loss in drop {
            match loss {
                Loss::Named(message) => scenario.drop.push(message.clone()),
                Loss::Next(fault) => scenario.fault.push(fault.clone()),
            }
        }
        scenario.late.extend_from_slice(late);
        scenario.twice.extend_from_slice(twice);
        Ok(())
    }

    /// Whether stdout is meant for a program.
    fn is_machine_readable(&self) -> bool {
        self.json || self.mermaid || output::is_stdout([&self.svg, &self.trace])
    }

    /// Runs `case` once; every output comes from this run. Returns the columns of a small run. Files appear together or
    /// not at all.
    fn simulate(
        &self,
        case: &Case,
        [mut svg, mut trace]: [Option<Output>; 2],
    ) -> (Outcome, Result<Option<Vec<u8>>>) {
        let header = trace::Header::of(case);
        let mut writer = trace.as_mut().map(|output| trace::Writer::new(&header, output));
        let mut recording =
            (self.mermaid || svg.is_some()).then(|| Recording::new(self.background));
        let streams = self.columns && !self.is_machine_readable();
        let is_small = case.members().len() <= SMALL_RUN_MEMBERS;
        let buffers = is_small && !self.summary && !self.is_machine_readable();
        let (mut stdout, mut buffer) = (io::stdout(), Vec::new());
        let target: &mut dyn Write = if streams { &mut stdout } else { &mut buffer };
        let mut columns = (streams || buffers).then(|| Preview {
            columns: self.columns(case, target),
            streams,
            messages: 0,
            events: 0,
        });
        let mut observers = Observers::default();
        observers.0.extend(writer.as_mut().map(|it| it as &mut dyn Observer));
        observers.0.extend(recording.as_mut().map(|it| it as &mut dyn Observer));
        observers.0.extend(columns.as_mut().map(|it| it as &mut dyn Observer));
        let spinner = (!streams).then(|| Progress::spinner("simulating"));
        let is_watched = !observers.0.is_empty();
        let outcome = run::run(case, is_watched.then_some(&mut observers as &mut dyn Observer));
        drop(spinner);
        let written =
            writer.map_or(Ok(()), trace::Writer::finish).context("cannot write the trace");
        let is_whole = columns.map_or(Ok(false), |preview| {
            let is_whole = preview.wants_more() && !streams;
            preview.columns.finish().map(|()| is_whole)
        });
        let finished = written
            .and_then(|()| self.draw(case, recording.as_ref(), svg.as_mut()))
            .and_then(|()| output::finish_all([svg, trace]))
            .and_then(|()| Ok(is_whole? && outcome.messages.total <= SMALL_RUN_MESSAGES));
        let shown = finished.map(|is_small| match (is_small, outcome.ended) {
            (true, _) => Some(buffer),
            (false, Ended::Quiet) => None,
            (false, _) => fold::fold(&String::from_utf8_lossy(&buffer)).map(String::into_bytes),
        });
        (outcome, shown)
    }

    fn columns<'a>(&self, case: &Case, out: &'a mut dyn Write) -> Columns<'a> {
        let options =
            columns::Options { colour: terminal::has_colours(), background: self.background };
        if self.columns {
            // If this cannot be written, neither can the columns, which report it.
            let _ = write_heading(out, case);
        }
        Columns::new(RunInfo::of(case), options, out)
    }

    fn draw(
        &self,
        case: &Case,
        recording: Option<&Recording>,
        svg: Option<&mut Output>,
    ) -> Result<()> {
        let Some(recording) = recording else { return Ok(()) };
        let info = RunInfo::of(case);
        let refused = |problem| anyhow!("cannot draw this run: {problem}");
        let events = recording.events().map_err(refused)?;
        if let Some(output) = svg {
            let options = svg::Options { background: self.background, ..svg::Options::default() };
            output.write_text(&svg::space_time(&info, events, &options).map_err(refused)?)?;
        }
        if self.mermaid {
            let diagram = mermaid::sequence(&info, events, None).map_err(refused)?;
            io::stdout().lock().write_all(diagram.as_bytes())?;
        }
        Ok(())
    }

    /// Prints the result. `columns` are those of a small run, unless they were printed during the run.
    fn show(&self, case: &Case, result: &Sums, columns: Option<Vec<u8>>) -> Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            match result {
                Sums::Election(summary) => serde_json::to_writer(&mut out, summary)?,
                Sums::Exclusion(summary, _) => serde_json::to_writer(&mut out, summary)?,
                Sums::Service(summary) => serde_json::to_writer(&mut out, summary)?,
            }
            return Ok(writeln!(out)?);
        }
        if self.is_machine_readable() {
            return Ok(());
        }
        if !self.columns {
            write_heading(&mut out, case)?;
        }
        let shows_columns = self.columns || columns.is_some();
        out.write_all(&columns.unwrap_or_default())?;
        if shows_columns && !case.algorithm.elects() {
            writeln!(out, "\n{}", columns::LEGEND_OF_EXCLUSION)?;
        } else if shows_columns && out.is_terminal() {
            let algorithm = case.algorithm;
            let hint = "Signs: `doyen help sim`.";
            writeln!(out, "\nRules in brackets: `doyen algorithms {algorithm}`. {hint}")?;
        }
        if shows_columns {
            writeln!(out)?;
        }
        match result {
            Sums::Election(summary) => summary::write(&mut out, case, summary)?,
            Sums::Exclusion(summary, run) => exclusion::write(&mut out, summary, run)?,
            Sums::Service(summary) => service::write(&mut out, summary)?,
        }
        if let Some(cut) = result.snapshot() {
            service::write_snapshot(&mut out, cut)?;
        }
        if !shows_columns && !self.summary {
            writeln!(out, "--columns shows every event.")?;
        }
        if is_random(case) {
            writeln!(
                out,
                "Seed {}: the same arguments with --seed {0} repeat this run.",
                case.seed
            )?;
        }
        Ok(())
    }
}

/// The result of a run, as an object with stable names.
enum Sums {
    Election(Box<Summary>),
    Exclusion(Box<doyen_report::exclusion::Summary>, Exclusion),
    Service(Box<doyen_report::service::Summary>),
}

impl Sums {
    fn new(case: &Case, mut outcome: Outcome, formula: Option<Formula>) -> Self {
        let entered = doyen_report::exclusion::Summary::new(case, &outcome, formula.as_ref());
        match (entered, outcome.exclusion.take()) {
            (Some(summary), Some(run)) => Self::Exclusion(Box::new(summary), run),
            _ if case.algorithm.elects() => {
                Self::Election(Box::new(Summary::new(case, outcome, formula)))
            }
            _ => Self::Service(Box::new(doyen_report::service::Summary::new(case, outcome))),
        }
    }

    fn snapshot(&self) -> Option<&Cut> {
        match self {
            Self::Election(summary) => summary.outcome.snapshot.as_ref(),
            Self::Exclusion(summary, _) => summary.snapshot.as_ref(),
            Self::Service(summary) => summary.snapshot.as_ref(),
        }
    }

    /// Whether the run broke a property that the mode claims.
    fn breaks_a_claim(&self, case: &Case) -> bool {
        match self {
            Self::Election(_) | Self::Service(_) => false,
            Self::Exclusion(summary, _) => summary.breaks_a_claim(case),
        }
    }
}

/// What the scenario is called, and what it is about.
fn write_heading(out: &mut dyn Write, case: &Case) -> io::Result<()> {
    for text in [&case.title, &case.about].into_iter().filter(|text| !text.is_empty()) {
        writeln!(out, "{text}\n")?;
    }
    Ok(())
}

/// Columns written during the run: all of them, or those of a run that may turn out to be small.
struct Preview<'a> {
    columns: Columns<'a>,
    streams: bool,
    messages: u64,
    events: usize,
}

impl Observer for Preview<'_> {
    fn observe(&mut self, event: &TraceEvent) {
        let is_counted = matches!(event.kind, EventKind::Sent { class: Class::Algorithm, .. });
        self.messages += u64::from(is_counted);
        self.events += 1;
        self.columns.observe(event);
    }

    fn wants_more(&self) -> bool {
        self.streams || self.messages <= SMALL_RUN_MESSAGES && self.events <= 10 * MAX_MESSAGES
    }
}

/// Whether another seed would give another run.
fn is_random(case: &Case) -> bool {
    let network = &case.network;
    network.loss > 0.0
        || network.duplication > 0.0
        || network.processing > 0
        || case.chaos.is_some()
        || case.config.hardened()
        || network.links.iter().any(|link| link.loss.is_some() || link.delay.is_some())
        || !matches!(network.delay, DelayModel::Fixed(_))
        || case.algorithm == Algorithm::Voting
        || case.requests.as_ref().is_some_and(|it| {
            [it.hold, it.think].iter().any(|model| !matches!(model, DelayModel::Fixed(_)))
        })
        || case.ring == RingOrder::Random
}

/// The name and the text of a file.
pub(super) fn read(path: &Path) -> Result<(String, String)> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("{name} is not a text file"))?;
    Ok((name, text))
}

/// Rejects a run that would not fit into memory.
fn check_memory(case: &Case) -> Result<()> {
    let (needed, available) = (case.memory_estimate(), system::available_memory());
    if needed <= available {
        return Ok(());
    }
    bail!(
        "--members: {} members with {} need about {:.1} GB of memory, and {:.1} GB are free; use fewer members, or an \
         initiator with a higher number",
        case.members().len(),
        case.algorithm,
        needed as f64 / 1e9,
        available as f64 / 1e9,
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Args;

    use super::*;
    use crate::cli::check::Check;

    /// The long flags of a command.
    fn flags<A: Args>() -> BTreeSet<String> {
        let command = A::augment_args(clap::Command::new(""));
        command.get_arguments().filter_map(clap::Arg::get_long).map(str::to_owned).collect()
    }

    fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
        names.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn the_lab_and_the_command_line_have_the_same_flags() {
        let output = ["json", "columns", "summary", "background", "svg", "mermaid", "trace"];
        // These are of the command line alone: a fault generator, and a limit that the lab sets itself.
        let own = ["chaos", "message-limit"];
        let flags = &(&flags::<Sim>() - &names(output)) - &names(own);
        assert_eq!(flags, names(doyen_lab::FLAGS));
    }

    /// So does the page: `browser/simulate.rs` compares its list with the lab's.
    #[test]
    fn the_lab_knows_every_fault() {
        let command = Sim::augment_args(clap::Command::new(""));
        let faults = command.get_arguments().filter(|it| it.get_help_heading() == Some("Faults"));
        let faults = faults.filter_map(clap::Arg::get_long).filter(|it| *it != "chaos");
        assert_eq!(names(doyen_lab::changes()), names(faults));
    }

    #[test]
    fn the_lab_knows_which_flags_an_exploration_does_not_take() {
        let missing = &names(doyen_lab::FLAGS) - &flags::<Check>();
        let of_random_runs = names(["seed", "hold", "think", "grant"]);
        assert_eq!(&missing | &of_random_runs, names(doyen_lab::FLAGS_OF_SIM_ALONE));
    }
}
