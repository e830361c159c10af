//! Runs a plan, or a shard of it, and keeps its rows.
//!
//! The rows of a plan are numbered, and what a row says depends on its number alone. So a plan can be cut into shards
//! that run on as many machines as there are: shard `i/n` has the runs `i`, `i + n`, `i + 2n` and so on, which
//! spreads the expensive ones. [`merge`] puts the parts together again and gives what one machine would have given,
//! byte for byte.

mod table;

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::formula;
use crate::plan::{Limits, Plan};
use crate::row::{Place, Row};
use crate::run;

/// The part of a plan's runs that one machine makes: `2/3`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    index: u64,
    count: u64,
}

/// Rows of a plan: all of them, or those of one shard, in the order of their numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// The plan's fingerprint.
    pub plan: String,
    /// How many runs the plan has in all.
    pub runs: u64,
    /// Which of them these are.
    pub shard: Shard,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Shard {
    /// Everything.
    pub const ALL: Self = Self { index: 1, count: 1 };

    /// The runs of this shard in a plan of `runs` runs.
    pub fn numbers(self, runs: u64) -> impl Iterator<Item = u64> {
        (self.index..=runs).step_by(usize::try_from(self.count).unwrap_or(usize::MAX))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a shard; write 1/3 for the first of three");
        let (index, count) = text.split_once('/').ok_or_else(wrong)?;
        let index = index.trim().parse().map_err(|_| wrong())?;
        let count = count.trim().parse().map_err(|_| wrong())?;
        if index == 0 || index > count { Err(wrong()) } else { Ok(Self { index, count }) }
    }
}

/// Makes the runs of a shard. `progress` is told after each run how many of how many are done; with the feature
/// `parallel` runs are made on all cores, as far as `limits` has memory for them, and the rows are the same.
pub fn run(
    plan: &Plan,
    shard: Shard,
    limits: &Limits,
    progress: impl Fn(u64, u64) + Sync,
) -> Result<Part, String> {
    let runs = plan.size().runs;
    let numbers: Vec<u64> = shard.numbers(runs).collect();
    let done = AtomicU64::new(0);
    let rows = each(&numbers, workers(plan, limits), |number| {
        let row = row(plan, number);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, numbers.len() as u64);
        row
    })?;
    Ok(Part { plan: plan.fingerprint(), runs, shard, rows })
}

/// Makes one run.
pub fn row(plan: &Plan, number: u64) -> Result<Row, String> {
    let job = plan.job(number).map_err(|error| format!("run {number}: {error}"))?;
    let outcome = run::run(&job.case, None);
    let formula = formula::of(&job.case);
    let place = Place { run: job.run, sweep: job.sweep, faults: job.faults };
    Ok(Row::new(place, &job.case, &outcome, formula.as_ref()))
}

/// How many runs there is memory for at once.
fn workers(plan: &Plan, limits: &Limits) -> usize {
    let fitting = limits.bytes / plan.size().peak_bytes.max(1);
    usize::try_from(fitting).unwrap_or(usize::MAX).max(1)
}

#[cfg(feature = "parallel")]
fn each(
    numbers: &[u64],
    workers: usize,
    make: impl Fn(u64) -> Result<Row, String> + Sync,
) -> Result<Vec<Row>, String> {
    use rayon::prelude::*;

    let threads = workers.min(rayon::current_num_threads());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| format!("cannot start {threads} threads: {error}"))?;
    // Runs differ in length by a factor of a million: they are handed out one by one.
    pool.install(|| numbers.par_iter().with_max_len(1).map(|&number| make(number)).collect())
}

#[cfg(not(feature = "parallel"))]
fn each(
    numbers: &[u64],
    _workers: usize,
    make: impl Fn(u64) -> Result<Row, String> + Sync,
) -> Result<Vec<Row>, String> {
    numbers.iter().map(|&number| make(number)).collect()
}

/// Puts the parts of a plan together. They must be of the same plan, and have every run once.
pub fn merge(parts: Vec<Part>) -> Result<Part, String> {
    let first = parts.first().ok_or("there is nothing to merge")?;
    let (plan, runs) = (first.plan.clone(), first.runs);
    for part in &parts {
        if part.plan != plan || part.runs != runs {
            return Err(format!(
                "shard {} is of plan {} with {} runs, shard {} of plan {plan} with {runs}: they do not belong together",
                part.shard, part.plan, part.runs, parts[0].shard
            ));
        }
    }
    let mut rows: Vec<Row> = parts.into_iter().flat_map(|part| part.rows).collect();
    rows.sort_by_key(|row| row.run);
    if let Some(pair) = rows.windows(2).find(|pair| pair[0].run == pair[1].run) {
        return Err(format!("run {} is there twice; give each shard once", pair[0].run));
    }
    if let Some(stray) = rows.iter().find(|row| row.run == 0 || row.run > runs) {
        return Err(format!("there is a run {}, but the plan has {runs}", stray.run));
    }
    if rows.len() as u64 != runs {
        let present = rows.iter().map(|row| row.run);
        let missing = (1..=runs).zip(present.chain([0])).find(|(number, run)| number != run);
        let missing = missing.map_or(1, |(number, _)| number);
        let count = runs - rows.len() as u64;
        return Err(format!(
            "{count} of {runs} runs are missing, the first of them run {missing}; give every shard"
        ));
    }
    Ok(Part { plan, runs, shard: Shard::ALL, rows })
}

#[cfg(test)]
mod tests;
