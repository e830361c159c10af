//! `doyen algorithms`: what each algorithm guarantees.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use doyen_core::registry::Algorithm;
use serde_json::json;

use super::Answer;

/// List the algorithms, their sources, guarantees and requirements
#[derive(Args, Debug)]
pub(crate) struct Algorithms {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

impl Algorithms {
    pub(crate) fn run(self) -> Result<Answer> {
        let mut out = io::stdout().lock();
        if self.json {
            let rows: Vec<_> = Algorithm::ALL.into_iter().map(as_json).collect();
            serde_json::to_writer_pretty(&mut out, &rows)?;
            writeln!(out)?;
            return Ok(Answer::Yes);
        }
        for algorithm in Algorithm::ALL {
            write_text(&mut out, algorithm)?;
        }
        writeln!(
            out,
            "Only quorum guarantees at most one leader at any instant: that needs a majority of the members."
        )?;
        Ok(Answer::Yes)
    }
}

fn as_json(algorithm: Algorithm) -> serde_json::Value {
    let guarantees: serde_json::Map<String, serde_json::Value> = algorithm
        .guarantees()
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
    json!({
        "name": algorithm.name(),
        "summary": algorithm.summary(),
        "source": algorithm.source(),
        "ring": algorithm.is_ring(),
        "needs_fifo": algorithm.needs_fifo(),
        "variants": variants,
        "guarantees": guarantees,
    })
}

fn write_text(out: &mut impl Write, algorithm: Algorithm) -> io::Result<()> {
    writeln!(out, "{algorithm}: {}", algorithm.summary())?;
    for guarantee in algorithm.guarantees() {
        writeln!(out, "  {}", if guarantee.hardened { "hardened" } else { "textbook" })?;
        writeln!(out, "    the best live member leads, if   {}", guarantee.safety)?;
        writeln!(out, "    every election ends, if          {}", guarantee.liveness)?;
        writeln!(out, "    in a partition                   {}", guarantee.partition)?;
        writeln!(out, "    messages                         {}", guarantee.cost)?;
    }
    if !algorithm.variants().is_empty() {
        let names: Vec<&str> = algorithm.variants().iter().map(|variant| variant.name()).collect();
        writeln!(out, "  literal readings, for study: {}", names.join(", "))?;
    }
    writeln!(out)
}
