//! `doyen sim`: one run.

mod flags;
mod show;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use doyen_sim::scenario::{Case, Scenario};
use doyen_sim::selfcheck::{self, Verdict};
use doyen_sim::summary::Summary;
use doyen_sim::{expect, formula, run};

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
  doyen sim scenarios/002-figure-1.toml

Times are virtual. D, the bound on a message's delay from which every time-out is made, is the longest delay unless
--bound says otherwise.")]
pub(crate) struct Sim {
    /// A scenario; flags override what it says
    #[arg(value_name = "FILE.toml")]
    file: Option<PathBuf>,

    #[command(flatten)]
    flags: flags::Flags,

    #[command(flatten)]
    show: show::Show,

    /// Run twice and prove that both runs are the same
    #[arg(long, help_heading = "Output")]
    self_check: bool,
}

impl Sim {
    pub(crate) fn run(self) -> Result<Answer> {
        let case = self.case()?;
        check_memory(&case)?;
        if self.self_check {
            return check_determinism(&case);
        }
        let spinner = Spinner::start("simulating");
        let outcome = run::run(&case, None);
        drop(spinner);
        let formula = formula::of(&case);
        let summary = Summary::new(&case, &outcome, formula.as_ref());
        let differences = expect::differences(&case, &outcome, formula.as_ref());
        self.show.show(&case, &outcome, &summary)?;
        for difference in &differences {
            eprintln!("doyen: not as expected: {difference}");
        }
        if case.expect.is_some() && differences.is_empty() && !self.show.is_machine_readable() {
            println!("As expected.");
        }
        Ok(if differences.is_empty() { Answer::Yes } else { Answer::No })
    }

    /// The scenario of the file and the flags, checked.
    fn case(&self) -> Result<Case> {
        let Some(path) = &self.file else {
            let mut scenario = Scenario::default();
            self.flags.apply(&mut scenario)?;
            return scenario.resolve().map_err(|error| anyhow!(flags::as_flag(&error)));
        };
        let (name, text) = read(path)?;
        let mut scenario = Scenario::parse(&name, &text).map_err(|error| anyhow!(error))?;
        self.flags.apply(&mut scenario)?;
        scenario.resolve().map_err(|error| anyhow!(error.in_file(&name, &text)))
    }
}

pub(super) fn read(path: &Path) -> Result<(String, String)> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
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
    let verdict = selfcheck::check(case);
    drop(spinner);
    match verdict {
        Verdict::Same { digest, events } => {
            println!("Two runs of {events} events, one fingerprint: {digest:016x}");
            Ok(Answer::Yes)
        }
        Verdict::Different(difference) => {
            println!("Two runs differ first in record {}:", difference.index);
            println!("  first:  {:?}", difference.first);
            println!("  second: {:?}", difference.second);
            Ok(Answer::No)
        }
    }
}
