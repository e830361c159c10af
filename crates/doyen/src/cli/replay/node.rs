//! `doyen replay` of what real nodes recorded (`doyen node --trace`): the same events through the same code.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use doyen::node::replay::{self, Held, Replayed, Trace};
use doyen::node::trace::Header;
use serde_json::json;

use super::Answer;
use super::sim;

/// Whether this is the beginning of a node's trace.
pub(super) fn is_trace(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.contains(r#""doyen":"node-trace""#))
}

/// Plays the traces again, and says whether all is as it was and as it should be.
pub(super) fn run(files: &[PathBuf], json: bool) -> Result<Answer> {
    refuse_repeated_files(files)?;
    let mut read: Vec<(String, Trace, Replayed)> = Vec::new();
    for file in files {
        let (name, text) = sim::read(file)?;
        let trace = replay::read(&text).map_err(|error| anyhow!("{name}: {error}"))?;
        if let Some((other, ..)) = read.iter().find(|(_, other, _)| other.header == trace.header) {
            let Header { member, incarnation, .. } = trace.header;
            let start = incarnation.0;
            bail!(
                "{other} and {name} are both of member {member}, start {start}; give one of them"
            );
        }
        let replayed = replay::replay(&trace).map_err(|error| anyhow!("{name}: {error}"))?;
        read.push((name, trace, replayed));
    }
    let traces: Vec<Trace> = read.iter().map(|(_, trace, _)| trace.clone()).collect();
    let overlaps = replay::overlaps(&traces);
    let found: usize = read.iter().map(|(.., played)| played.findings.len()).sum();
    let verdict = match found + overlaps.len() {
        0 if traces.iter().any(|trace| trace.missing.is_some()) => Verdict::HeldSoFar,
        0 => Verdict::Held,
        wrong => Verdict::Broken(wrong),
    };
    let mut out = io::stdout().lock();
    if json {
        let pair = |(one, other): &(Held, Held)| json!([held(one), held(other)]);
        let object = json!({
            "verdict": verdict.name(),
            "traces": read.iter().map(|(name, trace, played)| summary(name, trace, played)).collect::<Vec<_>>(),
            "overlapping_leases": overlaps.iter().map(pair).collect::<Vec<_>>(),
        });
        writeln!(out, "{object}")?;
        return Ok(verdict.answer());
    }
    let named = |lease: &Held| {
        let holder = read.iter().find(|(_, trace, _)| trace.header.member == lease.member);
        holder.map_or_else(|| lease.member.to_string(), |(.., played)| played.name.clone())
    };
    for (name, trace, replayed) in &read {
        tell(&mut out, name, trace, replayed, files.len() == 1)?;
    }
    for (one, other) in &overlaps {
        let common = one.until.min(other.until) - other.from;
        let [one, other] = [one, other].map(named);
        writeln!(out, "TWO LEASES AT ONCE: {one} and {other}, for {common} ns")?;
    }
    let leases = traces.iter().map(|trace| replay::leases(trace).len()).sum();
    writeln!(out, "{}", totals(&read, leases))?;
    writeln!(out, "{}", verdict.in_words(leases))?;
    Ok(verdict.answer())
}

/// The same file twice would be compared with itself.
fn refuse_repeated_files(files: &[PathBuf]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for file in files {
        // One that is not there is told of when it is read.
        if !seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone())) {
            bail!("{} is given twice; give each trace once", file.display());
        }
    }
    Ok(())
}

/// How much was played again.
fn totals(read: &[(String, Trace, Replayed)], leases: usize) -> String {
    let members: BTreeSet<_> = read.iter().map(|(_, trace, _)| trace.header.member).collect();
    let events: usize = read.iter().map(|(.., played)| played.steps.len()).sum();
    let effects: usize = read.iter().map(|(.., played)| effects(played)).sum();
    let leaders = read.iter().map(|(.., played)| played.leaders).max().unwrap_or_default();
    let changed = match leaders {
        0 => "the leader never changed".to_owned(),
        1 => "the leader changed once".to_owned(),
        2 => "the leader changed twice".to_owned(),
        leaders => format!("the leader changed {leaders} times"),
    };
    format!(
        "{} of {}: {} with {} compared, {}, {changed}",
        count(read.len(), "trace"),
        count(members.len(), "member"),
        count(events, "event"),
        count(effects, "effect"),
        count(leases, "lease"),
    )
}

fn effects(played: &Replayed) -> usize {
    played.steps.iter().map(|step| step.did.len()).sum()
}

fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What came of all traces together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Held,
    /// Nothing is wrong as far as they go, but one has lost its end.
    HeldSoFar,
    /// So many things are wrong.
    Broken(usize),
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Held => "holds",
            Self::HeldSoFar => "limit",
            Self::Broken(_) => "violated",
        }
    }

    fn answer(self) -> Answer {
        match self {
            Self::Held => Answer::Yes,
            Self::HeldSoFar => Answer::Limit,
            Self::Broken(_) => Answer::No,
        }
    }

    /// The last line, for traces with so many leases.
    fn in_words(self, leases: usize) -> String {
        let held = match self {
            Self::Broken(1) => return "BROKEN: one thing is wrong, see above".to_owned(),
            Self::Broken(wrong) => return format!("BROKEN: {wrong} things are wrong, see above"),
            Self::Held => "Held",
            Self::HeldSoFar => "Held as far as it goes",
        };
        let leases = match leases {
            0 => "no leases".to_owned(),
            1 => "1 lease".to_owned(),
            leases => format!("{leases} leases, no two at once"),
        };
        format!(
            "{held}: every event again through the core, with the same effects; terms never fall, one vote a term, stored \
             before sent; {leases}"
        )
    }
}

/// How many events before one that differs are shown.
const BEFORE: usize = 5;

/// One trace; every event of it, if it is the only one. Of one that differs somewhere, only those just before.
fn tell(
    out: &mut impl Write,
    name: &str,
    trace: &Trace,
    replayed: &Replayed,
    whole: bool,
) -> io::Result<()> {
    let header = &trace.header;
    let (member, start) = (&replayed.name, header.incarnation.0);
    let events = count(replayed.steps.len(), "event");
    writeln!(out, "{name}: {member}, start {start}, {events}")?;
    let begun = replayed.steps.get(1).map_or(0, |step| step.at);
    if whole {
        let left_out = match replayed.findings.is_empty() {
            true => 0,
            false => replayed.steps.len().saturating_sub(BEFORE),
        };
        if left_out > 0 {
            writeln!(out, "              {} left out", count(left_out, "event"))?;
        }
        for step in &replayed.steps[left_out..] {
            let seconds = step.at.saturating_sub(begun) as f64 / 1e9;
            writeln!(out, "{seconds:>12.6}  {}  [{}]", step.event, step.rules.join(" "))?;
            for effect in &step.did {
                writeln!(out, "                {effect}")?;
            }
        }
    }
    for finding in &replayed.findings {
        writeln!(out, "{name}: line {}: {}", finding.line, finding.what)?;
    }
    // The start is an event, and the first line.
    let lines = trace.records.len() + 1;
    if let Some(finding) = replayed.findings.first().filter(|finding| finding.line < lines) {
        let rest = count(lines - finding.line, "line");
        writeln!(out, "{name}: stopped there; {rest} after it not played")?;
    }
    if let Some(missing) = &trace.missing {
        writeln!(out, "{name} ENDS EARLY: line {} {}", missing.line, missing.what)?;
    }
    Ok(())
}

fn held(lease: &Held) -> serde_json::Value {
    json!({ "member": lease.member, "from": lease.from, "until": lease.until })
}

fn summary(name: &str, trace: &Trace, replayed: &Replayed) -> serde_json::Value {
    let finding = |finding: &replay::Finding| json!({ "line": finding.line, "what": finding.what });
    json!({
        "file": name,
        "member": trace.header.member,
        "name": replayed.name,
        "incarnation": trace.header.incarnation,
        "events": replayed.steps.len(),
        "effects": effects(replayed),
        "leader_changes": replayed.leaders,
        "leases": replay::leases(trace).len(),
        "findings": replayed.findings.iter().map(finding).collect::<Vec<_>>(),
        "missing": trace.missing.as_ref().map(finding),
    })
}
