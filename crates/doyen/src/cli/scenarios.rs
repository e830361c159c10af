//! `doyen scenarios`: the scenarios that are built in, the same as in the lab.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Result, anyhow};
use clap::Args;
use doyen_lab::gallery::{self, GROUPS};

use super::{Answer, sim};

/// List the built-in scenarios, or show one
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen scenarios
  doyen scenarios kordafshari/figure-1
  doyen scenarios flaws/f01-slow-leader > mine.toml
  doyen sim kordafshari/figure-1 --crash 6@2.5ms")]
pub(crate) struct Scenarios {
    /// Show this one as a scenario file
    name: Option<String>,
}

impl Scenarios {
    pub(crate) fn run(self) -> Result<Answer> {
        let mut out = io::stdout().lock();
        if let Some(name) = &self.name {
            let entry = gallery::find(name).map_err(|problem| anyhow!(problem))?;
            out.write_all(entry.text.as_bytes())?;
            return Ok(Answer::Yes);
        }
        let width = gallery::entries().map(|entry| entry.name.len()).max().unwrap_or_default();
        for group in GROUPS {
            writeln!(out, "{}", group.title)?;
            for entry in group.entries {
                writeln!(out, "  {:width$}  {}", entry.name, entry.scenario().title)?;
            }
            writeln!(out)?;
        }
        writeln!(
            out,
            "`doyen sim NAME` runs one, `doyen scenarios NAME` shows it, `doyen check NAME` explores it."
        )?;
        Ok(Answer::Yes)
    }
}

/// The name and the text of a scenario: of a file or, if there is no such file, of one that is built in.
pub(super) fn read(path: &Path) -> Result<(String, String)> {
    let built_in = path.to_str().filter(|_| !path.exists()).map(|name| (name, gallery::find(name)));
    match built_in {
        None => sim::read(path),
        Some((_, Ok(entry))) => Ok((entry.name.to_owned(), entry.text.to_owned())),
        // If the user names a file, the error is about the file.
        Some((name, Err(_))) if name.ends_with(".toml") => sim::read(path),
        Some((name, Err(problem))) => Err(anyhow!("there is no file {name}, and {problem}")),
    }
}
