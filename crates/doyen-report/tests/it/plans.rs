//! Goal: every plan of this project can be run, and its charts are about something. Method: each is read, which checks
//! every combination, and a few of its runs are made.

use std::fs;
use std::path::Path;

use doyen_report::plan::{DEFAULT_PLAN, DEFAULT_PLAN_NAME, Limits, Plan};
use doyen_report::sweep;
use doyen_sim::metrics::Ended;

fn plans() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    let mut plans = vec![(DEFAULT_PLAN_NAME.to_owned(), DEFAULT_PLAN.to_owned())];
    for entry in fs::read_dir(folder).expect("the folder of plans can be read") {
        let path = entry.expect("its entries too").path();
        let text = fs::read_to_string(&path).expect("a plan can be read");
        plans.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text));
    }
    plans
}

#[test]
fn every_plan_can_be_run_and_has_reports() {
    let plans = plans();
    assert!(plans.len() > 3, "{} plans", plans.len());
    for (name, text) in plans {
        let plan = Plan::from_toml(&name, &text, &Limits::default())
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(!plan.title.is_empty() && !plan.reports.is_empty(), "{name}");
        assert!(plan.size().peak_bytes < 1 << 30, "{name}: {:?}", plan.size());
        let last = plan.size().runs;
        for run in [1, last / 3, last / 2, last] {
            let row = sweep::row(&plan, run).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_ne!(row.summary.outcome.ended, Ended::MessageLimit, "{name}: run {run}");
        }
    }
}

#[test]
fn every_chart_of_every_plan_shows_some_of_its_runs() {
    for (name, text) in plans() {
        let plan = Plan::from_toml(&name, &text, &Limits::default())
            .unwrap_or_else(|error| panic!("{error}"));
        // Enough of the runs to meet every sweep, and cheap enough for a test.
        let step = usize::try_from(plan.size().runs / 150 + 1).expect("a small number");
        let small = |run: &u64| plan.job(*run).is_ok_and(|job| job.case.members().len() <= 200);
        let runs = (1..=plan.size().runs).step_by(step).filter(small);
        let rows: Vec<_> =
            runs.map(|run| sweep::row(&plan, run).expect("it was checked")).collect();
        let large = |sweep: &Option<String>| {
            sweep.as_ref().is_some_and(|sweep| rows.iter().all(|row| row.sweep != *sweep))
        };
        for report in plan.reports.iter().filter(|report| !large(&report.sweep)) {
            let shown = rows.iter().any(|row| report.values_of(row).is_some());
            assert!(shown, "{name}: {}", report.title);
        }
    }
}
