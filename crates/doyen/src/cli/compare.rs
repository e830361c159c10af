//! `doyen compare`: what each algorithm costs, formula beside measurement, and what is to be said about what the
//! literature prints. With a plan: any sweep.

mod budget;
mod tables;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use doyen_sim::claims::{self, Claim, Measured, Table};
use doyen_sim::plan::{DEFAULT_PLAN, DEFAULT_PLAN_NAME, Limits, Plan};
use doyen_sim::report::{self, Page};
use doyen_sim::scenario::Case;
use doyen_sim::sweep::{self, Part, Shard};
use serde_json::json;

use self::budget::BudgetArgs;
use super::output::{self, Output};
use super::progress::{self, Spinner};
use super::{Answer, memory, sim};

/// Compare the algorithms: messages, stages and time, formula beside measurement
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen compare                                         the tables and verdicts of the literature
  doyen compare --html report.html                      the same as a page with plots
  doyen compare --budget --profile wan --loss 1%        what an operator gets: dead air, false failovers
  doyen compare --plan plans/loss.toml --csv loss.csv   a sweep; docs/plans.md describes plans
  doyen compare --plan plans/loss.toml --shard 1/2 --csv part1.csv
  doyen compare --plan plans/loss.toml --merge part1.csv part2.csv --html loss.html")]
pub(crate) struct Compare {
    /// Run this sweep instead of the literature's tables
    #[arg(long, value_name = "FILE.toml")]
    plan: Option<PathBuf>,

    /// Run only this part of the sweep: 1/3 is the first of three
    #[arg(long, value_name = "I/N", requires = "plan", conflicts_with = "merge")]
    shard: Option<Shard>,

    /// Put the parts of a sweep together instead of running it
    #[arg(long, value_name = "PARTS", num_args = 1.., requires = "plan")]
    merge: Vec<PathBuf>,

    /// Write the rows as CSV; - is the standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write tables and verdicts, or the rows of a sweep, as JSON; - or nothing is the standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,

    /// Write a self-contained page with plots
    #[arg(long, value_name = "FILE", conflicts_with = "shard")]
    html: Option<PathBuf>,

    /// Show the evidence for every verdict
    #[arg(long, conflicts_with = "plan")]
    evidence: bool,

    #[command(flatten)]
    budget: BudgetArgs,
}

impl Compare {
    pub(crate) fn run(self) -> Result<Answer> {
        match &self.plan {
            None if self.budget.budget => self.run_budget(),
            Some(path) => self.run_plan(path),
            None => self.run_literature(),
        }
    }

    /// What an operator gets for a timing.
    fn run_budget(&self) -> Result<Answer> {
        let mut outputs = self.open()?;
        let text = self.budget.run(self.json.is_some())?;
        match &mut outputs.json {
            Some(json) => json.write_text(&text)?,
            None => io::stdout().lock().write_all(text.as_bytes())?,
        }
        outputs.finish()?;
        Ok(Answer::Yes)
    }

    /// The tables and verdicts of the literature.
    fn run_literature(&self) -> Result<Answer> {
        let mut outputs = self.open()?;
        let spinner = Spinner::start("simulating the literature");
        let tables = claims::tables(&in_parallel);
        let claims = claims::claims(&in_parallel);
        drop(spinner);
        if let Some(csv) = &mut outputs.csv {
            csv.write_text(&tables::csv(&tables)?)?;
        }
        if let Some(json) = &mut outputs.json {
            let document = json!({ "tables": tables, "claims": claims });
            json.write_text(&format!("{}\n", serde_json::to_string_pretty(&document)?))?;
        }
        if let Some(html) = &mut outputs.html {
            html.write_text(&self.page(&tables, &claims)?)?;
        }
        let quiet = outputs.finish()?;
        if !quiet {
            let mut out = io::stdout().lock();
            tables::write(&mut out, &tables)?;
            tables::write_claims(&mut out, &claims, self.evidence)?;
        }
        // A formula that stands in a table without holding is our own mistake, unlike a claim that is wrong.
        let holds = |table: &Table| table.rows.iter().all(|row| row.matches || !row.exhaustive);
        Ok(if tables.iter().all(holds) { Answer::Yes } else { Answer::No })
    }

    /// The page of the literature: tables, verdicts, and the plots of the default plan.
    fn page(&self, tables: &[Table], claims: &[Claim]) -> Result<String> {
        let limits = limits();
        let plan = Plan::from_toml(DEFAULT_PLAN_NAME, DEFAULT_PLAN, &limits);
        let plan = plan.map_err(|error| anyhow!(error))?;
        let part = self.sweep(&plan, &limits)?;
        let page = Page::new(&plan, &part.rows).with_tables(report::sections(tables, claims));
        Ok(page.with_command("doyen compare --html FILE").html())
    }

    /// A sweep.
    fn run_plan(&self, path: &Path) -> Result<Answer> {
        let (name, text) = sim::read(path)?;
        let limits = limits();
        let plan = Plan::from_toml(&name, &text, &limits).map_err(|error| anyhow!(error))?;
        if self.csv.is_none() && self.json.is_none() && self.html.is_none() {
            bail!(
                "nowhere to put the result; add --csv FILE, --json FILE or --html FILE (- is the standard output)"
            );
        }
        let mut outputs = self.open()?;
        let part =
            if self.merge.is_empty() { self.sweep(&plan, &limits)? } else { self.merge(&plan)? };
        if let Some(csv) = &mut outputs.csv {
            csv.write_text(&part.to_csv().map_err(|error| anyhow!(error))?)?;
        }
        if let Some(json) = &mut outputs.json {
            json.write_text(&part.to_json().map_err(|error| anyhow!(error))?)?;
        }
        if let Some(html) = &mut outputs.html {
            let command = format!("doyen compare --plan {name} --html FILE");
            html.write_text(&Page::new(&plan, &part.rows).with_command(command).html())?;
        }
        outputs.finish()?;
        let shard = if part.shard == Shard::ALL {
            String::new()
        } else {
            format!(", shard {}", part.shard)
        };
        eprintln!("{} rows of plan {}{shard}", part.rows.len(), part.plan);
        Ok(Answer::Yes)
    }

    /// Opens the files, so that a wrong name is found before anything runs.
    fn open(&self) -> Result<Outputs> {
        let files = [&self.csv, &self.json, &self.html];
        output::check_distinct(files.into_iter().flatten().map(PathBuf::as_path))?;
        let create = |path: &Option<PathBuf>| path.as_deref().map(Output::create).transpose();
        let quiet = files.into_iter().flatten().any(|path| path == Path::new("-"));
        Ok(Outputs {
            csv: create(&self.csv)?,
            json: create(&self.json)?,
            html: create(&self.html)?,
            quiet,
        })
    }

    fn sweep(&self, plan: &Plan, limits: &Limits) -> Result<Part> {
        let shard = self.shard.unwrap_or(Shard::ALL);
        let bar = progress::bar(plan.size().runs, "runs");
        let part = sweep::run(plan, shard, limits, |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        });
        bar.finish_and_clear();
        part.map_err(|error| anyhow!(error))
    }

    fn merge(&self, plan: &Plan) -> Result<Part> {
        let read = |path: &PathBuf| {
            let (name, text) = sim::read(path)?;
            Part::read(&name, &text).map_err(|error| anyhow!(error))
        };
        let parts = self.merge.iter().map(read).collect::<Result<Vec<Part>>>()?;
        let whole = sweep::merge(parts).map_err(|error| anyhow!("--merge: {error}"))?;
        if whole.plan != plan.fingerprint() {
            bail!(
                "--merge: the parts are of another plan ({}, not {})",
                whole.plan,
                plan.fingerprint()
            );
        }
        Ok(whole)
    }
}

/// The files that are asked for.
struct Outputs {
    csv: Option<Output>,
    json: Option<Output>,
    html: Option<Output>,
    /// One of them is the standard output.
    quiet: bool,
}

impl Outputs {
    /// Gives all files their names; says whether the standard output is taken.
    fn finish(self) -> Result<bool> {
        for output in [self.csv, self.json, self.html].into_iter().flatten() {
            output.finish()?;
        }
        Ok(self.quiet)
    }
}

/// Measures cases on all cores; the order of the results is that of the cases.
fn in_parallel(cases: &[Case]) -> Vec<Measured> {
    use rayon::prelude::*;

    cases.par_iter().with_max_len(1).map(claims::measure).collect()
}

fn limits() -> Limits {
    Limits { bytes: memory::available(), ..Limits::default() }
}
