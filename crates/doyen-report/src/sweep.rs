//! Makes the runs of a plan. The rows depend on the plan alone, not on the machine or the number of its cores.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::formula;
use crate::plan::{Limits, Plan};
use crate::row::{Row, Section};
use crate::summary::Summary;
use doyen_sim::metrics::Views;
use doyen_sim::{parallel, run};

/// Makes all runs, on all processors as far as `limits` has memory for that. `progress` is told after each run how many are
/// done.
pub fn run(
    plan: &Plan,
    limits: &Limits,
    progress: impl Fn(u64) + Sync,
) -> Result<Vec<Row>, String> {
    let done = AtomicU64::new(0);
    let numbers: Vec<u64> = (1..=plan.size().runs).collect();
    let rows = parallel::map(threads(plan, limits), &numbers, |&number| {
        let row = row(plan, number);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        row
    });
    rows.into_iter().collect()
}

/// Makes one run.
pub fn row(plan: &Plan, number: u64) -> Result<Row, String> {
    let job = plan.job(number).map_err(|error| format!("run {number}: {error}"))?;
    let mut outcome = run::run(&job.case, None);
    let section = Section::of(&job.case, &outcome);
    // A row has nothing about each member, and there may be many rows.
    (outcome.by_member, outcome.views) = (Vec::new(), Views::default());
    let summary = Summary::new(&job.case, outcome, formula::of(&job.case));
    Ok(Row { run: job.run, sweep: job.sweep, faults: job.faults, summary, section })
}

/// One for each processor, as far as the runs fit into memory at once.
fn threads(plan: &Plan, limits: &Limits) -> usize {
    let fitting = limits.bytes / plan.size().peak_bytes.max(1);
    usize::try_from(fitting).unwrap_or(usize::MAX).clamp(1, parallel::processors())
}

#[cfg(test)]
mod tests {
    //! Goal: a plan gives the same rows every time, and a row says what its run was. Method: one small plan.

    use super::*;
    use crate::row::{FIELDS, to_csv, to_json};

    const PLAN: &str = r#"
        seed = 7
        [base]
        delay = "exp:1ms"
        [[sweep]]
        name = "sizes"
        algorithms = "bully"
        modes = ["textbook", "hardened"]
        members = [2, 5, 8]
        initiator = ["lowest", "random"]
        seeds = 3
        [[sweep]]
        name = "losses"
        algorithms = "bully"
        modes = "hardened"
        members = 4
        loss = ["0%", "20%"]
        seeds = "1..2"
    "#;

    fn plan(text: &str) -> Plan {
        Plan::from_toml("test", text, &Limits::default()).unwrap()
    }

    #[test]
    fn a_plan_gives_the_same_rows_every_time_and_reports_each_once() {
        let seen = std::sync::Mutex::new(Vec::new());
        let progress = |done| seen.lock().unwrap().push(done);
        let rows = run(&plan(PLAN), &Limits::default(), progress).unwrap();
        let again: Vec<Row> = (1..=40).map(|number| row(&plan(PLAN), number).unwrap()).collect();
        assert_eq!(rows.len(), 2 * 3 * 2 * 3 + 2 * 2);
        assert_eq!(to_csv(&rows), to_csv(&again));
        assert_eq!(to_json(&rows), to_json(&again));
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, (1..=40).collect::<Vec<_>>());
    }

    #[test]
    fn a_row_is_the_scenario_it_names() {
        let plan = plan(PLAN);
        let text = plan.job(17).unwrap().scenario.to_toml();
        let again = doyen_sim::scenario::Scenario::from_toml("run 17", &text).unwrap();
        let digest = run::run(&again, None).digest;
        assert_eq!(row(&plan, 17).unwrap().summary.outcome.digest, digest);
    }

    #[test]
    fn a_row_has_every_field_that_a_chart_can_show() {
        let values = row(&plan(PLAN), 1).unwrap().values();
        for field in FIELDS {
            assert!(values.contains_key(field.name), "{}", field.name);
        }
    }

    #[test]
    fn the_paper_s_example_is_counted_in_a_sweep() {
        let text =
            "[base]\nmembers = 1000\n[[sweep]]\nalgorithms = \"bully\"\ninitiator = [100, 1000]";
        let rows = run(&plan(text), &Limits::default(), |_| {}).unwrap();
        let count = |row: &Row| (row.summary.initiator, row.summary.outcome.messages.total);
        let counted: Vec<_> = rows.iter().map(count).collect();
        assert_eq!(counted, [(Some(100), 811_899), (Some(1000), 999)]);
    }
}
