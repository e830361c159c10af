//! `doyen algorithms`: what each algorithm guarantees, and how one of them works.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use doyen_core::registry::{Algorithm, Purpose};
use serde_json::json;

use super::{Answer, terminal};

/// List the algorithms, or explain one: its sources, guarantees, rules and messages
#[derive(Args, Debug)]
pub(crate) struct Algorithms {
    /// Explain this one
    #[arg(value_name = "NAME", value_parser = super::election::algorithm(), hide_possible_values = true)]
    algorithm: Option<Algorithm>,

    /// Print one JSON array, or one object for a NAME
    #[arg(long)]
    json: bool,
}

impl Algorithms {
    pub(crate) fn run(self) -> Result<Answer> {
        let mut out = io::stdout().lock();
        match (self.algorithm, self.json) {
            (Some(algorithm), true) => {
                serde_json::to_writer_pretty(&mut out, &as_json(algorithm))?;
                writeln!(out)?;
            }
            (None, true) => {
                let rows: Vec<_> = Algorithm::ALL.into_iter().map(as_json).collect();
                serde_json::to_writer_pretty(&mut out, &rows)?;
                writeln!(out)?;
            }
            (Some(algorithm), false) => explain(&mut out, algorithm)?,
            (None, false) => list(&mut out)?,
        }
        Ok(Answer::Yes)
    }
}

fn as_json(algorithm: Algorithm) -> serde_json::Value {
    let guarantees: serde_json::Map<String, serde_json::Value> = algorithm
        .guarantees()
        .iter()
        .map(|guarantee| {
            let mode = if guarantee.hardened { "hardened" } else { "textbook" };
            let guarantee = json!({
                "safety_needs": guarantee.safety,
                "liveness_needs": guarantee.liveness,
                "in_a_partition": guarantee.partition,
                "messages": guarantee.cost,
            });
            (mode.to_owned(), guarantee)
        })
        .collect();
    let variants: Vec<&str> = algorithm.variants().iter().map(|variant| variant.name()).collect();
    let kinds = algorithm.kinds().iter().map(|kind| {
        json!({
            "name": kind.name,
            "family": kind.family,
            "class": kind.class,
            "meaning": kind.meaning,
        })
    });
    json!({
        "name": algorithm.name(),
        "summary": algorithm.summary(),
        "source": algorithm.source(),
        "purpose": algorithm.purpose().name(),
        "ring": algorithm.is_ring(),
        "needs_fifo": algorithm.needs_fifo(),
        "one_crash": algorithm.one_crash(),
        "variants": variants,
        "guarantees": guarantees,
        "rules": algorithm.rules().collect::<Vec<_>>(),
        "kinds": kinds.collect::<Vec<_>>(),
    })
}

fn list(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "ELECTIONS: all members follow one leader.\n")?;
    for algorithm in Algorithm::ELECTIONS {
        write_entry_of_list(out, algorithm)?;
    }
    writeln!(
        out,
        "MUTUAL EXCLUSION, for study: one member at a time is in the critical section.\n"
    )?;
    for algorithm in Algorithm::EXCLUSIONS {
        write_entry_of_list(out, algorithm)?;
    }
    writeln!(
        out,
        "Only quorum guarantees at most one leader at any instant: that needs a majority of the members.\n\
         Exclusion that tolerates crashes needs such a leader too: none of the algorithms above does.\n\
         `doyen algorithms NAME` explains one: its rules and messages."
    )
}

fn write_entry_of_list(out: &mut impl Write, algorithm: Algorithm) -> io::Result<()> {
    writeln!(out, "{algorithm}: {}", algorithm.summary())?;
    write_guarantees(out, algorithm)?;
    if !algorithm.variants().is_empty() {
        let names: Vec<&str> = algorithm.variants().iter().map(|variant| variant.name()).collect();
        writeln!(out, "  literal readings, for study: {}", names.join(", "))?;
    }
    writeln!(out)
}

fn explain(out: &mut impl Write, algorithm: Algorithm) -> io::Result<()> {
    writeln!(out, "{algorithm}: {}", algorithm.summary())?;
    writeln!(out, "  from: {}", algorithm.source())?;
    write_guarantees(out, algorithm)?;
    writeln!(out, "\nRules, where m is the member to which they apply")?;
    let widest = algorithm.rules().map(|rule| rule.id.len()).max().unwrap_or(0);
    for rule in algorithm.rules() {
        write_entry(out, rule.id, widest, rule.title)?;
        write_entry(out, "", widest, &rule.text.replace("{m}", "m"))?;
    }
    writeln!(out, "\nMessages")?;
    let widest = algorithm.kinds().iter().map(|kind| kind.name.len()).max().unwrap_or(0);
    for kind in algorithm.kinds() {
        write_entry(out, kind.name, widest, &format!("{} ({})", kind.meaning, kind.family.name()))?;
    }
    if !algorithm.variants().is_empty() {
        writeln!(out, "\nLiteral readings, for study (--mode)")?;
        let widest = algorithm.variants().iter().map(|it| it.name().len()).max().unwrap_or(0);
        for variant in algorithm.variants() {
            write_entry(out, variant.name(), widest, variant.summary())?;
        }
    }
    Ok(())
}

fn write_guarantees(out: &mut impl Write, algorithm: Algorithm) -> io::Result<()> {
    for guarantee in algorithm.guarantees() {
        writeln!(out, "  {}", if guarantee.hardened { "hardened" } else { "textbook" })?;
        let [safety, liveness] = match algorithm.purpose() {
            Purpose::Elects => {
                ["the best live member leads, if  ", "every election ends, if         "]
            }
            Purpose::Excludes => {
                ["at most one member is inside, if", "every one that waits enters, if "]
            }
            Purpose::Records => {
                ["a snapshot is consistent, if    ", "every snapshot ends, if         "]
            }
            Purpose::Serves => {
                ["promises                        ", "every request is served, if     "]
            }
        };
        writeln!(out, "    {safety} {}", guarantee.safety)?;
        writeln!(out, "    {liveness} {}", guarantee.liveness)?;
        writeln!(out, "    in a partition                   {}", guarantee.partition)?;
        writeln!(out, "    messages                         {}", guarantee.cost)?;
    }
    writeln!(out, "  one crash: {}", algorithm.one_crash())
}

/// A name, and beside it a text of any length.
fn write_entry(out: &mut impl Write, name: &str, widest: usize, text: &str) -> io::Result<()> {
    let indent = widest + 4;
    let lines = terminal::wrapped(text, terminal::width().saturating_sub(indent));
    for (number, line) in lines.iter().enumerate() {
        let name = if number == 0 { name } else { "" };
        writeln!(out, "  {name:widest$}  {line}")?;
    }
    Ok(())
}
