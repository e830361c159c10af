//! `doyen replay`: a counterexample with an explanation, or the traces of real nodes (`doyen node --trace`), played through
//! the same code again and checked.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use doyen::node::replay::{self as node, Held, Replayed, Trace};
use doyen::node::trace::{Header, files};
use doyen_check::counterexample::Counterexample;
use doyen_check::ending::Ending;
use doyen_check::replay::{self, Replay as Played};
use doyen_sim::render::columns::{self, Columns};
use doyen_sim::render::{RunInfo, TooLarge, mermaid, svg};
use doyen_sim::trace::Observer;
use serde_json::{Value, json};

use super::progress::Progress;
use super::terminal::{count, has_colours, leader_changes};
use super::{Answer, output, sim};

/// How many events before a difference are shown.
const CONTEXT: usize = 5;

/// Replay a counterexample and explain it, or replay and check traces of nodes
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen check --algorithm bully --mode cs677-no-t2 --members 3 --crashes 2 --property A3
  doyen replay counterexample.toml
  doyen replay counterexample.toml --svg why.svg
  doyen replay n1.trace                    every event of one node, heartbeats included
  doyen replay n1.trace n2.trace n3.trace  the verdict on several, and whether leases overlapped
A trace in several files (n1.trace, n1.trace.part2, ...) is read as a whole, whichever of them is given.

Exit: 0 the property holds in this run (traces: every rule was kept), 1 it is violated, 2 the file is wrong, 4 the file
ends too early to tell.")]
pub(crate) struct Replay {
    /// A counterexample of `doyen check`, or the traces of one or more nodes of this machine
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Draw the space-time diagram, with the causes of the violation highlighted; - is the standard output
    #[arg(long, value_name = "FILE", help_heading = "Counterexamples only")]
    svg: Option<PathBuf>,

    /// Write a Mermaid sequence diagram
    #[arg(long, value_name = "FILE", help_heading = "Counterexamples only")]
    mermaid: Option<PathBuf>,

    /// Show heartbeats and acknowledgements too
    #[arg(long, help_heading = "Counterexamples only")]
    background: bool,

    /// Print one JSON object and nothing else
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl Replay {
    pub(crate) fn run(self) -> Result<Answer> {
        // The first file of a trace may have been removed.
        let first = &self.files[0];
        let parts = files::files_of(first).unwrap_or_default();
        let (name, text) =
            sim::read(if first.exists() { first } else { parts.first().unwrap_or(first) })?;
        if text.lines().next().is_some_and(|line| line.contains(r#""doyen":"node-trace""#)) {
            return self.replay_traces(&name);
        }
        if self.files.len() > 1 {
            bail!("{name} is not the trace of a node; give one counterexample at a time");
        }
        let file = Counterexample::parse(&name, &text).map_err(|error| anyhow!(error))?;
        let spinner = Progress::spinner("replaying");
        let played = file.replay().map_err(|error| anyhow!(error))?;
        drop(spinner);
        let to_stdout = self.write_files(&played)?;
        let (verdict, answer) = match played.broken {
            true => ("violated", Answer::No),
            false if played.is_undecided() => ("limit", Answer::Limit),
            false => ("holds", Answer::Yes),
        };
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", as_json(&played, verdict))?;
        } else if !to_stdout {
            self.write_columns(&played, &mut out)?;
            write!(out, "\n{}", played.why())?;
        }
        Ok(answer)
    }

    /// Writes the files that are asked for, all of them or none; tells whether one is stdout.
    fn write_files(&self, played: &Played) -> Result<bool> {
        let files = [&self.svg, &self.mermaid];
        let [mut svg, mut mermaid] = output::create_all(files, self.json)?;
        let failed = |problem: TooLarge| anyhow!("cannot draw this run: {problem}");
        if let Some(output) = &mut svg {
            output.write_text(&self.draw(played).map_err(failed)?)?;
        }
        if let Some(output) = &mut mermaid {
            let info = RunInfo::of(&played.case);
            let diagram = mermaid::sequence(&info, &played.records, played.repeats_from());
            output.write_text(&diagram.map_err(failed)?)?;
        }
        output::finish_all([svg, mermaid])?;
        output::note_written(files);
        Ok(output::is_stdout(files))
    }

    fn draw(&self, played: &Played) -> Result<String, TooLarge> {
        let mut options = svg::Options { background: self.background, ..svg::Options::default() };
        let repeated = played.repeats_from().filter(|_| played.broken);
        let repeated = repeated.and_then(|first| played.records.get(first));
        let repeated = repeated.map(|record| format!("; repeats from {}", record.at));
        options.subtitle = Some(played.verdict() + &repeated.unwrap_or_default());
        options.emphasis = played.broken.then(|| played.past.clone());
        svg::space_time(&RunInfo::of(&played.case), &played.records, &options)
    }

    fn write_columns(&self, played: &Played, out: &mut impl Write) -> Result<()> {
        if !played.case.about.is_empty() {
            writeln!(out, "{}\n", played.case.about)?;
        }
        let options = columns::Options { colour: has_colours(), background: self.background };
        let mut shown = Vec::new();
        let mut columns = Columns::new(RunInfo::of(&played.case), options, &mut shown);
        for (index, record) in played.records.iter().enumerate() {
            if played.repeats_from() == Some(index) {
                columns.remark("repeats from here:");
            }
            columns.observe(record);
        }
        columns.finish()?;
        // A run that was cut short may have repeated a loop.
        if played.ending == Ending::Limit
            && let Some(folded) = sim::fold::fold(&String::from_utf8_lossy(&shown))
        {
            shown = folded.into_bytes();
        }
        Ok(out.write_all(&shown)?)
    }

    fn replay_traces(&self, first: &str) -> Result<Answer> {
        // A node records when it sends, not when a message arrives, so there is nothing to draw.
        let drawn = [("svg", self.svg.is_some()), ("mermaid", self.mermaid.is_some())];
        if let Some((flag, _)) =
            drawn.iter().chain(&[("background", self.background)]).find(|(_, is)| *is)
        {
            bail!("--{flag}: {first} is the trace of a node; this flag is for counterexamples");
        }
        let spinner = Progress::spinner("replaying");
        let traces = read_traces(&self.files)?;
        drop(spinner);
        let overlaps =
            node::overlaps(&traces.iter().map(|it| it.trace.clone()).collect::<Vec<_>>());
        let findings: usize = traces.iter().map(|it| it.played.findings.len()).sum();
        let (verdict, answer) = match findings + overlaps.len() {
            0 if traces.iter().any(TraceFile::is_incomplete) => ("limit", Answer::Limit),
            0 => ("holds", Answer::Yes),
            _ => ("violated", Answer::No),
        };
        let mut out = io::stdout().lock();
        if self.json {
            let held =
                |it: &Held| json!({ "member": it.member, "from": it.from, "until": it.until });
            let pair = |(one, other): &(Held, Held)| json!([held(one), held(other)]);
            let object = json!({
                "verdict": verdict,
                "traces": traces.iter().map(TraceFile::as_json).collect::<Vec<_>>(),
                "overlapping_leases": overlaps.iter().map(pair).collect::<Vec<_>>(),
            });
            writeln!(out, "{object}")?;
            return Ok(answer);
        }
        let name_of = |lease: &Held| {
            let holder = traces.iter().find(|it| it.trace.header.member == lease.member);
            holder.map_or_else(|| lease.member.to_string(), |it| it.played.name.clone())
        };
        for file in &traces {
            file.write(&mut out, traces.len() == 1)?;
        }
        for (one, other) in &overlaps {
            let common = one.until.min(other.until) - other.from;
            let [one, other] = [one, other].map(name_of);
            writeln!(out, "OVERLAP: {one} and {other} both held a lease for {common} ns")?;
        }
        writeln!(out, "{}", totals(&traces))?;
        let kept = "the core repeats every event with the same effects; terms never fall, one vote per term, stored \
                    before sent, leases never overlap";
        match answer {
            Answer::No => {
                let problems = count((findings + overlaps.len()) as u64, "problem");
                writeln!(out, "VIOLATED: {problems}, see above")?;
            }
            Answer::Limit => writeln!(out, "Holds as far as the traces go: {kept}")?,
            _ => writeln!(out, "Holds: {kept}")?,
        }
        Ok(answer)
    }
}

fn as_json(played: &Played, verdict: &str) -> Value {
    let step = |played: &replay::Played| {
        json!({
            "at": played.at,
            "step": played.step.to_string(),
            "rules": played.rules,
            "repeated": played.repeated,
        })
    };
    json!({
        "verdict": verdict,
        "property": played.property.name(),
        "says": played.property.words(),
        "broken": played.broken,
        "facts": played.facts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "ending": played.ending.name(),
        "gap": played.gap,
        "steps": (!played.is_timed).then(|| played.steps.iter().map(step).collect::<Vec<_>>()),
        "events": played.records,
    })
}

struct TraceFile {
    name: String,
    trace: Trace,
    played: Replayed,
}

/// The files of each trace together, and each start of a member at most once: a trace would be compared with itself.
fn read_traces(files: &[PathBuf]) -> Result<Vec<TraceFile>> {
    let mut seen = BTreeSet::new();
    for file in files {
        // One that does not exist is reported when it is read.
        if !seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone())) {
            bail!("{} is given twice; give each trace once", file.display());
        }
    }
    let mut traces: Vec<TraceFile> = Vec::new();
    let mut read = BTreeSet::new();
    for file in files.iter().map(|file| files::trace_of(file)) {
        if !read.insert(file.clone()) {
            continue;
        }
        let name = file.display().to_string();
        let mut parts = files::files_of(&file).unwrap_or_default();
        if parts.is_empty() {
            parts.push(file);
        }
        let texts = parts.iter().map(|part| sim::read(part).map_err(|error| format!("{error:#}")));
        let trace = node::read_files(texts).map_err(|error| anyhow!(error))?;
        let id = |header: &Header| (header.member, header.incarnation, header.session);
        if let Some(other) = traces.iter().find(|it| id(&it.trace.header) == id(&trace.header)) {
            let Header { member, incarnation, .. } = trace.header;
            let (other, start) = (&other.name, incarnation.0);
            bail!(
                "{other} and {name} are both of member {member}, start {start}; give one of them"
            );
        }
        let played = node::replay(&trace).map_err(|error| anyhow!("{name}: {error}"))?;
        traces.push(TraceFile { name, trace, played });
    }
    Ok(traces)
}

fn totals(traces: &[TraceFile]) -> String {
    let members: BTreeSet<_> = traces.iter().map(|it| it.trace.header.member).collect();
    let sum = |number: fn(&TraceFile) -> usize| traces.iter().map(number).sum::<usize>() as u64;
    let leaders = traces.iter().map(|it| it.played.leaders).max().unwrap_or_default();
    format!(
        "{} of {}: {} with {} compared, {}, {}",
        count(traces.len() as u64, "trace"),
        count(members.len() as u64, "member"),
        count(sum(|it| it.played.steps.len()), "event"),
        count(sum(TraceFile::effects), "effect"),
        count(sum(|it| node::leases(&it.trace).len()), "lease"),
        leader_changes(leaders as u64),
    )
}

impl TraceFile {
    /// Whether something is missing, at its beginning or at its end.
    fn is_incomplete(&self) -> bool {
        self.trace.is_beheaded() || self.trace.missing.is_some()
    }

    fn effects(&self) -> usize {
        self.played.steps.iter().map(|step| step.did.len()).sum()
    }

    /// Writes the findings, and the events if this is the only trace; before a difference only the last few.
    fn write(&self, out: &mut impl Write, is_only: bool) -> io::Result<()> {
        let Self { name, trace, played } = self;
        let (member, start) = (&played.name, trace.header.incarnation.0);
        let events = count(played.steps.len() as u64, "event");
        writeln!(out, "{name}: {member}, start {start}, {events}")?;
        if is_only {
            let begun = played.steps.get(1).map_or(0, |step| step.at);
            let is_clean = played.findings.is_empty();
            let skipped = if is_clean { 0 } else { played.steps.len().saturating_sub(CONTEXT) };
            if skipped > 0 {
                writeln!(out, "              {} not shown", count(skipped as u64, "event"))?;
            }
            for step in &played.steps[skipped..] {
                let seconds = step.at.saturating_sub(begun) as f64 / 1e9;
                let rules = match step.rules.is_empty() {
                    true => String::new(),
                    false => format!("  [{}]", step.rules.join(" ")),
                };
                writeln!(out, "{seconds:>12.6}  {}{rules}", step.event)?;
                for effect in &step.did {
                    writeln!(out, "                {effect}")?;
                }
            }
        }
        for finding in &played.findings {
            writeln!(out, "{name}: line {}: {}", finding.line, finding.what)?;
        }
        if trace.is_beheaded() {
            let line = trace.header.line;
            writeln!(
                out,
                "{name} BEGINS LATE: with line {line}, because its first files were removed; only its leases are checked"
            )?;
        }
        // The start is an event, and the first line.
        let lines = trace
            .records
            .last()
            .and_then(|it| it.line)
            .map_or(trace.records.len() + 1, |it| it as usize);
        if let Some(finding) = played.findings.first().filter(|finding| finding.line < lines) {
            let rest = count((lines - finding.line) as u64, "line");
            writeln!(out, "{name}: stopped there; {rest} after it not replayed")?;
        }
        if let Some(missing) = &trace.missing {
            writeln!(out, "{name} ENDS EARLY: line {} {}", missing.line, missing.what)?;
        }
        Ok(())
    }

    fn as_json(&self) -> Value {
        let Self { name, trace, played } = self;
        let finding =
            |finding: &node::Finding| json!({ "line": finding.line, "what": finding.what });
        json!({
            "file": name,
            "member": trace.header.member,
            "name": played.name,
            "incarnation": trace.header.incarnation,
            "events": played.steps.len(),
            "effects": self.effects(),
            "leader_changes": played.leaders,
            "leases": node::leases(trace).len(),
            "findings": played.findings.iter().map(finding).collect::<Vec<_>>(),
            "first_line": trace.header.line,
            "missing": trace.missing.as_ref().map(finding),
        })
    }
}
