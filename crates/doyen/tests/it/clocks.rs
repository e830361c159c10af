//! `doyen clocks`, with real nodes. They share the clock of this machine, so the true offset of each is zero.

use serde_json::Value;

use crate::support::{Plan, Trial, complaint};

fn clocks(trial: &Trial, flags: &[&str]) -> (Option<i32>, Value) {
    let output = trial.command(1, &[&["clocks", "--json"], flags].concat());
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|_| panic!("{}", complaint(&output))))
}

#[test]
fn an_offset_is_wrong_by_its_uncertainty_at_most() {
    let mut trial = Trial::start(&Plan { patient: true, ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    // A busy machine may answer slowly.
    let report = trial.wait("all clocks are averaged", || {
        let (code, report) = clocks(&trial, &["--rounds", "3", "--within", "2s"]);
        (code == Some(0)).then_some(report)
    });
    assert_eq!((&report["agreed"], &report["leader"]), (&true.into(), &"n3".into()), "{report}");
    let members = report["members"].as_array().expect("members");
    assert_eq!(members.len(), 3, "{report}");
    for member in members {
        let (offset, uncertainty) = (&member["offset_us"], &member["uncertainty_us"]);
        let (offset, uncertainty) =
            (offset.as_i64().expect("µs"), uncertainty.as_u64().expect("µs"));
        // Both are rounded to microseconds, and so is what a member answers.
        assert!(offset.unsigned_abs() <= uncertainty + 2, "{report}");
        let slew = member["slew_us"].as_i64().expect("a correction");
        let average = report["average_us"].as_i64().expect("an average");
        assert!((average - offset - slew).abs() <= 2, "{report}");
    }

    trial.kill(2);
    let report = trial.wait("two of three, which are a majority, are averaged", || {
        let (code, report) = clocks(&trial, &["--rounds", "1", "--within", "2s"]);
        assert_eq!((code, &report["agreed"]), (Some(1), &false.into()), "{report}");
        report["average_us"].is_i64().then_some(report)
    });
    let silent = &report["members"][1];
    assert_eq!((&silent["name"], &silent["standing"]), (&"n2".into(), &"silent".into()));
    let problem = silent["problem"].as_str().expect("a reason");
    assert!(problem.starts_with("n2 does not answer n1"), "{problem}");
}
