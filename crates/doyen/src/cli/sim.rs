//! `doyen sim`: one run.

mod flags;
mod show;
mod summary;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use doyen_report::summary::Summary;
use doyen_report::{expect, formula};
use doyen_sim::account::Ended;
use doyen_sim::run;
use doyen_sim::scenario::{Case, Scenario};

use super::election::as_flag;
use super::progress::Spinner;
use super::{Answer, memory};

/// Simulate one election, message by message
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen sim --algorithm bully --members 5
  doyen sim --algorithm bully --members 1000 --initiators 100 --json
  doyen sim --algorithm ring-list --members 0..7 --dead 7 --initiators 2,5
  doyen sim --algorithm chang-roberts --members 12 --ring random --initiators all --svg ring.svg
  doyen sim --algorithm bully --mode hardened --members 5 --leader 5 --crash 5@10ms --detector 5ms
  doyen sim scenarios/kordafshari/figure-1.toml

Times are virtual. D, the bound on a message's delay from which every time-out is made, is the
longest delay unless --bound says otherwise. docs/scenarios.md describes scenario files.")]
pub(crate) struct Sim {
    /// A scenario; flags override what it says
    #[arg(value_name = "FILE.toml")]
    file: Option<PathBuf>,

    #[command(flatten)]
    flags: flags::Flags,

    #[command(flatten)]
    show: show::Show,

    /// Run twice and prove that both runs are the same
    #[arg(
        long,
        help_heading = "Output",
        conflicts_with_all = ["json", "columns", "summary", "mermaid", "svg", "trace"]
    )]
    self_check: bool,
}

impl Sim {
    pub(crate) fn run(self) -> Result<Answer> {
        let case = self.case()?;
        check_memory(&case)?;
        if self.self_check {
            return check_determinism(&case);
        }
        let outputs = self.show.open()?;
        let (outcome, columns) = self.show.run(&case, outputs);
        // A run that was cut short is not what a formula is about.
        let formula = formula::of(&case).filter(|_| outcome.ended == Ended::Quiet);
        let differences = expect::differences(&case, &outcome, formula.as_ref());
        let summary = Summary::new(&case, outcome, formula);
        for difference in &differences {
            eprintln!("doyen: not as expected: {difference}");
        }
        let shown = columns.and_then(|columns| self.show.show(&case, &summary, columns));
        if !differences.is_empty() {
            return Ok(Answer::No);
        }
        shown?;
        if case.expect.is_some() && !self.show.is_machine_readable() {
            writeln!(io::stdout(), "As expected.")?;
        }
        Ok(Answer::Yes)
    }

    /// The scenario of the file and the flags, checked.
    fn case(&self) -> Result<Case> {
        let Some(path) = &self.file else {
            let mut scenario = Scenario::default();
            self.flags.apply(&mut scenario)?;
            return scenario.resolve().map_err(|error| anyhow!(as_flag(&error)));
        };
        let (name, text) = read(path)?;
        let written = Scenario::parse(&name, &text).map_err(|error| anyhow!(error))?;
        written.resolve().map_err(|error| anyhow!(error.in_file(&name, &text)))?;
        let mut scenario = written.clone();
        self.flags.apply(&mut scenario)?;
        if scenario != written && scenario.expect.take().is_some() {
            eprintln!("doyen: flags change the run, so what {name} expects is not checked");
        }
        // The file alone makes sense: whatever is wrong now came with a flag.
        scenario.resolve().map_err(|error| anyhow!(as_flag(&error)))
    }
}

pub(super) fn read(path: &Path) -> Result<(String, String)> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("{name} is not a text"))?;
    Ok((name, text))
}

/// Refuses what would not fit into memory before it begins.
fn check_memory(case: &Case) -> Result<()> {
    let needed = case.memory_estimate();
    let available = memory::available();
    if needed <= available {
        return Ok(());
    }
    bail!(
        "--members: {} members with {} would need about {:.1} GB of memory; {:.1} GB are free. Use fewer members, or \
         an initiator with a higher number",
        case.members().len(),
        case.algorithm,
        needed as f64 / 1e9,
        available as f64 / 1e9,
    )
}

fn check_determinism(case: &Case) -> Result<Answer> {
    let spinner = Spinner::start("running twice");
    let (first, second) = (run::run(case, None), run::run(case, None));
    drop(spinner);
    let mut out = io::stdout().lock();
    if first != second {
        writeln!(out, "Two runs differ: {:016x} and {:016x}", first.digest, second.digest)?;
        return Ok(Answer::No);
    }
    let (events, digest) = (first.events, first.digest);
    writeln!(out, "Two runs of {events} events, one fingerprint: {digest:016x}")?;
    Ok(Answer::Yes)
}
