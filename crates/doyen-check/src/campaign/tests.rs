//! A campaign depends on its seed alone, and checks only what is promised.

use doyen_core::config::Mode;

use super::*;
use doyen_sim::network::DelayModel;

fn campaign(runs: u64) -> Campaign {
    Campaign::new(Scenario::default(), runs, 7)
}

#[test]
fn every_scenario_drawn_makes_sense_and_becomes_calm() {
    for mode in [Mode::Hardened, Mode::Textbook] {
        let base = Scenario { mode: Some(mode), ..Scenario::default() };
        let campaign = Campaign::new(base, 700, 3);
        for run in 1..=campaign.runs {
            let scenario = campaign.scenario(run).unwrap();
            let case = scenario.resolve().unwrap();
            assert!(premise::holds(&case), "run {run}: {scenario:?}");
        }
    }
}

#[test]
fn what_the_base_says_stays() {
    let base = Scenario {
        algorithm: Some(Algorithm::Bully),
        members: Some(doyen_sim::scenario::MemberList::Listed(vec![4, 9])),
        delay: Some(DelayModel::Fixed(2_000_000)),
        seed: Some(5),
        ..Scenario::default()
    };
    let scenario = Campaign::new(base.clone(), 10, 1).scenario(3).unwrap();
    assert_eq!((&scenario.members, &scenario.delay), (&base.members, &base.delay));
    assert_eq!(scenario.seed, Some(5));
}

#[test]
fn what_is_drawn_never_contradicts_what_the_base_says_of_the_beginning() {
    let bases = [
        "members = 4\nconvention = \"configured\"",
        "members = 4\ninitiators = [1, 2, 3]",
        "members = 4\ninitiators = \"none\"",
        "members = 4\ndead = [4]\ninitiators = [{ member = 2, at = \"1ms\" }]",
    ];
    for (base, mode) in bases.into_iter().flat_map(|base| [(base, "hardened"), (base, "textbook")])
    {
        let text = format!("algorithm = \"bully\"\nmode = \"{mode}\"\n{base}");
        let campaign = Campaign::new(Scenario::parse("base", &text).unwrap(), 300, 1);
        for run in 1..=campaign.runs {
            let scenario = campaign.scenario(run).unwrap();
            let case =
                scenario.resolve().unwrap_or_else(|error| panic!("{base}, run {run}: {error}"));
            assert!(premise::holds(&case), "{base}, run {run}: {scenario:?}");
        }
    }
}

/// So that `--algorithm A --run I` repeats run I of a campaign over all of them.
#[test]
fn naming_the_algorithm_whose_turn_it_is_changes_nothing() {
    let by_turns = campaign(100);
    for run in 1..=100 {
        let scenario = by_turns.scenario(run).unwrap();
        let base = Scenario { algorithm: scenario.algorithm, ..Scenario::default() };
        assert_eq!(Campaign { base, ..campaign(100) }.scenario(run).unwrap(), scenario);
    }
}

#[test]
fn every_scenario_survives_being_written_down() {
    let campaign = campaign(200);
    for run in 1..=200 {
        let scenario = campaign.scenario(run).unwrap();
        let text = scenario.to_toml();
        assert_eq!(Scenario::parse("drawn", &text).unwrap(), scenario);
    }
}

#[test]
fn every_run_can_be_made_alone_and_is_the_same() {
    let whole = run(&campaign(70), |_| true).unwrap();
    let single = |number| run_one(&campaign(70), number).unwrap();
    let singles: Vec<Report> = (1..=70).map(single).collect();
    let digest = singles.iter().fold(0_u64, |sum, report| sum.wrapping_add(report.digest));
    let total = |count: fn(&Report) -> u64| singles.iter().map(count).sum::<u64>();
    assert_eq!((digest, total(|it| it.runs)), (whole.digest, 70));
    assert_eq!(total(|it| it.events), whole.events);
    let slowest = singles.iter().filter_map(|report| report.slowest_recovery);
    assert_eq!(slowest.map(|(span, _)| span).max(), whole.slowest_recovery.map(|(span, _)| span));
}

/// Textbook bullies do not tolerate restarts: the campaign finds that, and stops after the given number of failures.
#[test]
fn failures_stop_a_campaign_at_the_same_run_every_time() {
    let base = Scenario { mode: Some(Mode::Textbook), ..Scenario::default() };
    let textbook = Campaign { patience: 2, ..Campaign::new(base, 2_000, 1) };
    let report = run(&textbook, |_| true).unwrap();
    assert_eq!(report.failures.len(), 2);
    assert_eq!(report.runs, report.failures[1].run);
    let failure = &report.failures[0];
    let again = judge(&failure.scenario, &Property::USUAL).unwrap();
    assert_eq!(again.as_ref(), Some(&failure.breach));
    assert_eq!(run(&textbook, |_| true).unwrap(), report);
}

/// After an interrupt no run is started, and the report is about those that were made.
#[test]
fn a_campaign_that_is_stopped_tells_of_the_runs_that_were_made() {
    let report = run(&campaign(1_000), |made| made < 10).unwrap();
    let threads = parallel::processors() as u64;
    assert!((10..=10 + threads).contains(&report.runs), "{} runs", report.runs);
    assert_eq!(run(&campaign(1_000), |_| false).unwrap(), Report::default());
}

#[test]
fn a_base_that_makes_no_sense_is_refused() {
    let base = Scenario { leader: Some(99), ..Scenario::default() };
    let error = run(&Campaign::new(base, 10, 1), |_| true).unwrap_err();
    assert!(error.to_string().starts_with("run 1: leader: "), "{error}");
    assert!(!error.panicked);
}

#[test]
fn a_run_that_panics_is_named_and_takes_no_other_with_it() {
    let sound = |run: u64| {
        assert_ne!(run, 6, "six is too many");
        Ok(run)
    };
    let made = parallel::map(2, &[5, 6, 7], |&run| make(run, || sound(run)));
    assert_eq!((&made[0], &made[2]), (&Ok(5), &Ok(7)));
    let error = made[1].clone().unwrap_err();
    assert!(error.panicked && error.run == 6, "{error:?}");
    let message = error.to_string();
    assert!(
        message.starts_with("run 6 panicked: ") && message.contains("six is too many"),
        "{message}"
    );
}
