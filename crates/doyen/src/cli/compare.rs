//! `doyen compare`: the cost of each algorithm, formula beside measurement, and whether the statements of the literature
//! hold. With a plan: any sweep.

mod tables;

use std::collections::BTreeSet;
use std::io::{self, StdoutLock};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use doyen_core::registry::Purpose;
use doyen_report::claims::{self, Claim, EntryTable, Selection, Table};
use doyen_report::plan::{
    DEFAULT_PLAN, DEFAULT_PLAN_NAME, EXCLUSION_PLAN, EXCLUSION_PLAN_NAME, Limits, Plan,
};
use doyen_report::report::{self, Page, Section};
use doyen_report::row::{self, Row};
use doyen_report::sweep;
use serde::Serialize;
use serde_json::json;

use super::progress::Progress;
use super::terminal::count;
use super::{Answer, output, sim, system};

/// Compare the algorithms: messages, stages and time, formula beside measurement
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen compare                                         tables and verdicts on the literature
  doyen compare --html report.html                      the same as a page with charts
  doyen compare --exclusion                             the same for mutual exclusion
  doyen compare --exclusion --members 3..31 --load idle,saturated
                                                        at every size, without the verdicts
  doyen compare --plan plans/loss.toml --csv loss.csv   a sweep; docs/plans.md describes plans")]
pub(crate) struct Compare {
    /// Run this sweep instead of the literature's tables
    #[arg(long, value_name = "FILE.toml")]
    plan: Option<PathBuf>,

    /// Compare the algorithms of mutual exclusion: what an entry costs, and verdicts on the literature
    #[arg(long, conflicts_with = "plan")]
    exclusion: bool,

    /// The numbers of members: 3..31 or 5,9,21 [default: 5,9,31]
    #[arg(long, value_name = "SIZES", value_parser = sizes, requires = "exclusion")]
    members: Option<Sizes>,

    /// Whether one member asks or all ask again at once
    #[arg(long, value_name = "LOADS", value_enum, value_delimiter = ',', requires = "exclusion")]
    load: Vec<Load>,

    /// Write the rows as CSV; - is the standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write tables and verdicts, or the rows of a sweep, as JSON; - or no value is the standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,

    /// Write a self-contained page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Show the evidence for every verdict
    #[arg(long, conflicts_with = "plan")]
    evidence: bool,
}

/// How often members ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Load {
    Idle,
    Saturated,
}

impl Load {
    /// The case of the literature's tables.
    fn case(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Saturated => "saturated",
        }
    }
}

/// Numbers of members, ascending, each once.
#[derive(Clone, Debug)]
struct Sizes(Vec<u32>);

/// With fewer members some of the cases do not exist; with more, saturated runs take long.
const SIZES: RangeInclusive<u32> = 3..=200;

/// Reads `3..31` and `5,9,21`.
fn sizes(text: &str) -> Result<Sizes, String> {
    let wrong =
        || format!("write for example 3..31 or 5,9,21, from {} to {}", SIZES.start(), SIZES.end());
    let number = |text: &str| {
        let number = text.trim().parse::<u32>().ok();
        number.filter(|number| SIZES.contains(number)).ok_or_else(wrong)
    };
    let mut all = BTreeSet::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((first, last)) => all.extend(number(first)?..=number(last)?),
            None => drop(all.insert(number(part)?)),
        }
    }
    if all.is_empty() { Err(wrong()) } else { Ok(Sizes(all.into_iter().collect())) }
}

impl Compare {
    pub(crate) fn run(self) -> Result<Answer> {
        match &self.plan {
            Some(path) => self.run_plan(path),
            None if self.exclusion => self.run_exclusion(),
            None => self.run_literature(),
        }
    }

    fn run_literature(&self) -> Result<Answer> {
        let tables = self.run_tables(
            || (claims::tables(), claims::claims(Purpose::Elects)),
            |table: &Table| (table.algorithm, &table.rows),
            |tables, claims| {
                let sections = report::sections(tables, claims);
                page_of(DEFAULT_PLAN_NAME, DEFAULT_PLAN, sections, "")
            },
            |out, tables| tables::write(out, tables),
        )?;
        // A formula in a table that does not hold is a mistake of doyen, unlike a wrong claim.
        let holds = |table: &Table| table.rows.iter().all(|row| row.matches || !row.exhaustive);
        Ok(if tables.iter().all(holds) { Answer::Yes } else { Answer::No })
    }

    fn run_exclusion(&self) -> Result<Answer> {
        let selection = Selection {
            members: self.members.as_ref().map(|Sizes(sizes)| sizes.clone()).unwrap_or_default(),
            cases: self.load.iter().map(|load| load.case()).collect(),
        };
        // The verdicts are about what the sources print, at sizes of their own.
        let claims = || match selection == Selection::default() {
            true => claims::claims(Purpose::Excludes),
            false => Vec::new(),
        };
        let tables = self.run_tables(
            || (claims::entry_tables(&selection), claims()),
            |table: &EntryTable| (table.algorithm, &table.rows),
            |tables, claims| {
                let sections = report::entry_sections(tables, claims);
                page_of(EXCLUSION_PLAN_NAME, EXCLUSION_PLAN, sections, "--exclusion ")
            },
            |out, tables| tables::write_entries(out, tables),
        )?;
        let holds = |table: &EntryTable| table.rows.iter().all(|row| row.matches);
        Ok(if tables.iter().all(holds) { Answer::Yes } else { Answer::No })
    }

    /// Measures tables and verdicts, and writes them to where they are wanted.
    fn run_tables<T: Serialize, R: Serialize>(
        &self,
        measure: impl FnOnce() -> (Vec<T>, Vec<Claim>),
        rows: impl Fn(&T) -> (&str, &Vec<R>),
        page: impl FnOnce(&[T], &[Claim]) -> Result<String>,
        show: impl FnOnce(&mut StdoutLock<'_>, &[T]) -> io::Result<()>,
    ) -> Result<Vec<T>> {
        let [mut csv, mut json, mut html] = output::create_all(self.files(), false)?;
        let spinner = Progress::spinner("simulating the literature");
        let (tables, claims) = measure();
        drop(spinner);
        if let Some(csv) = &mut csv {
            csv.write_text(&tables::csv(tables.iter().map(rows)))?;
        }
        if let Some(json) = &mut json {
            let document = json!({ "tables": tables, "claims": claims });
            json.write_text(&format!("{}\n", serde_json::to_string_pretty(&document)?))?;
        }
        if let Some(html) = &mut html {
            html.write_text(&page(&tables, &claims)?)?;
        }
        output::finish_all([csv, json, html])?;
        if !output::is_stdout(self.files()) {
            let mut out = io::stdout().lock();
            show(&mut out, &tables)?;
            if !claims.is_empty() {
                tables::write_claims(&mut out, &claims, self.evidence)?;
            }
        }
        output::note_written(self.files());
        Ok(tables)
    }

    fn run_plan(&self, path: &Path) -> Result<Answer> {
        let (name, text) = sim::read(path)?;
        let limits = limits();
        let plan = Plan::from_toml(&name, &text, &limits).map_err(|error| anyhow!(error))?;
        if self.files().into_iter().flatten().next().is_none() {
            bail!(
                "--plan needs an output; add --csv FILE, --json FILE or --html FILE (- is the standard output)"
            );
        }
        let [mut csv, mut json, mut html] = output::create_all(self.files(), false)?;
        let rows = run_sweep(&plan, &limits)?;
        if let Some(csv) = &mut csv {
            csv.write_text(&format!("# {}\n{}", row::CONVENTIONS, row::to_csv(&rows)))?;
        }
        if let Some(json) = &mut json {
            json.write_text(&row::to_json(&rows))?;
        }
        if let Some(html) = &mut html {
            let command = format!("doyen compare --plan {name} --html FILE");
            html.write_text(&Page::new(&plan, &rows).with_command(command).html())?;
        }
        output::finish_all([csv, json, html])?;
        let charts = match &self.html {
            None => String::new(),
            Some(_) => format!(", {}", count(plan.reports.len() as u64, "chart")),
        };
        let files = self.files().into_iter().flatten();
        let files: Vec<String> = files.map(|path| path.display().to_string()).collect();
        system::note(format_args!(
            "{}{charts}: written to {}",
            count(rows.len() as u64, "run"),
            files.join(", ")
        ));
        Ok(Answer::Yes)
    }

    fn files(&self) -> [&Option<PathBuf>; 3] {
        [&self.csv, &self.json, &self.html]
    }
}

/// The page of the literature: tables, verdicts, and the charts of a plan that is built in.
fn page_of(name: &str, plan: &str, sections: Vec<Section>, flags: &str) -> Result<String> {
    let limits = limits();
    let plan = Plan::from_toml(name, plan, &limits).map_err(|error| anyhow!(error))?;
    let rows = run_sweep(&plan, &limits)?;
    let page = Page::new(&plan, &rows).with_tables(sections);
    Ok(page.with_command(format!("doyen compare {flags}--html FILE")).html())
}

fn run_sweep(plan: &Plan, limits: &Limits) -> Result<Vec<Row>> {
    let progress = Progress::bar(plan.size().runs, "runs");
    sweep::run(plan, limits, |done| progress.set_position(done)).map_err(|error| anyhow!(error))
}

fn limits() -> Limits {
    Limits { bytes: system::available_memory(), ..Limits::default() }
}
