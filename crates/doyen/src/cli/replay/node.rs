//! `doyen replay` of what real nodes recorded (`doyen node --trace`): the same events through the same code.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use doyen::node::replay::{self, Held, Replayed, Trace};
use serde_json::json;

use super::Answer;
use super::sim;

/// Whether this is the beginning of a node's trace.
pub(super) fn is_trace(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.contains(r#""doyen":"node-trace""#))
}

/// Plays the traces again, and says whether all is as it was and as it should be.
pub(super) fn run(files: &[PathBuf], json: bool) -> Result<Answer> {
    let mut read = Vec::new();
    for file in files {
        let (name, text) = sim::read(file)?;
        let trace = replay::read(&text).map_err(|error| anyhow!("{name}: {error}"))?;
        let replayed = replay::replay(&trace).map_err(|error| anyhow!("{name}: {error}"))?;
        read.push((name, trace, replayed));
    }
    let traces: Vec<Trace> = read.iter().map(|(_, trace, _)| trace.clone()).collect();
    let overlaps = replay::overlaps(&traces);
    let sound = overlaps.is_empty() && read.iter().all(|(.., played)| played.findings.is_empty());
    let mut out = io::stdout().lock();
    for (name, trace, replayed) in &read {
        match json {
            true => writeln!(out, "{}", summary(name, trace, replayed))?,
            false => tell(&mut out, name, trace, replayed, files.len() == 1)?,
        }
    }
    if json {
        let pair = |(one, other): &(Held, Held)| json!([held(one), held(other)]);
        let pairs: Vec<_> = overlaps.iter().map(pair).collect();
        writeln!(out, "{}", json!({ "sound": sound, "overlapping_leases": pairs }))?;
        return Ok(if sound { Answer::Yes } else { Answer::No });
    }
    for (one, other) in &overlaps {
        let common = one.until.min(other.until) - other.from;
        writeln!(out, "TWO LEASES AT ONCE: {} and {}, for {common} ns", one.member, other.member)?;
    }
    let leases: usize = traces.iter().map(|trace| replay::leases(trace).len()).sum();
    let verdict = if sound { "Held" } else { "BROKEN" };
    writeln!(
        out,
        "{verdict}: every event again through the core, with the same effects; terms never fall, one vote a term, \
         stored before sent; {leases} leases, no two at once"
    )?;
    Ok(if sound { Answer::Yes } else { Answer::No })
}

/// One trace; every event of it, if it is the only one.
fn tell(
    out: &mut impl Write,
    name: &str,
    trace: &Trace,
    replayed: &Replayed,
    whole: bool,
) -> io::Result<()> {
    let header = &trace.header;
    let (member, life, events) = (header.member, header.incarnation.0, replayed.steps.len());
    writeln!(out, "{name}: member {member}, life {life}, {events} events")?;
    let begun = replayed.steps.get(1).map_or(0, |step| step.at);
    if whole {
        for step in &replayed.steps {
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
        "incarnation": trace.header.incarnation,
        "events": replayed.steps.len(),
        "leases": replay::leases(trace).len(),
        "findings": replayed.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}
