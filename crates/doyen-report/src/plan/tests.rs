//! Goal: a plan says what it means, or is refused with the line that is wrong. Method: small plans as text.

use super::*;

fn read(text: &str) -> std::result::Result<Plan, String> {
    Plan::from_toml("p.toml", text, &Limits::default())
}

fn refused(text: &str) -> String {
    match read(text) {
        Ok(plan) => panic!("accepted, with {} runs", plan.size().runs),
        Err(error) => error,
    }
}

#[test]
fn runs_are_every_combination_with_the_seed_changing_fastest() {
    let plan = read(
        "seed = 3\n[base]\nmembers = 5\n[[sweep]]\nname = \"a\"\nalgorithms = \"bully\"\n\
         modes = [\"textbook\", \"eager\"]\nloss = [\"0%\", 0.5]\nseeds = 2",
    );
    let plan = plan.unwrap();
    assert_eq!(plan.size().runs, 8);
    let runs: Vec<(String, f64, u64)> = (1..=8)
        .map(|run| plan.job(run).unwrap().case)
        .map(|case| (case.mode().to_string(), case.network.loss, case.seed))
        .collect();
    let seeds = [derive_seed(3, 0), derive_seed(3, 1)];
    let mut expected = Vec::new();
    for mode in ["textbook", "eager"] {
        for loss in [0.0, 0.5] {
            expected.extend(seeds.map(|seed| (mode.to_owned(), loss, seed)));
        }
    }
    assert_eq!(runs, expected);
    assert!(plan.job(0).is_err() && plan.job(9).is_err());
}

#[test]
fn sweeps_follow_each_other() {
    let plan = read(
        "[[sweep]]\nalgorithms = \"bully\"\nmembers = \"2..4\"\n\
         [[sweep]]\nname = \"b\"\nalgorithms = \"bully\"\nmembers = 9\nseeds = \"5..6\"",
    );
    let plan = plan.unwrap();
    let runs: Vec<(String, usize, u64)> = (1..=plan.size().runs)
        .map(|run| plan.job(run).unwrap())
        .map(|job| (job.sweep, job.case.members().len(), job.case.seed))
        .collect();
    let first = derive_seed(1, 0);
    let expected = [
        ("sweep-1", 2, first),
        ("sweep-1", 3, first),
        ("sweep-1", 4, first),
        ("b", 9, 5),
        ("b", 9, 6),
    ];
    assert_eq!(runs, expected.map(|(name, n, seed)| (name.to_owned(), n, seed)));
}

#[test]
fn a_mode_that_an_algorithm_does_not_have_is_left_out_of_it() {
    let plan = "[base]\nmembers = 3\n[[sweep]]\nalgorithms = [\"bully\", \"ring-list\"]\n\
                modes = [\"textbook\", \"eager\"]";
    let written: Written = toml::from_str(plan).unwrap();
    let sweeps = written.resolve_sweeps(&Limits::default(), &mut Vec::new());
    assert_eq!(sweeps[0].runs, 3);
    let error =
        refused("[[sweep]]\nalgorithms = \"bully\"\nmembers = 3\nmodes = [\"os-textbook-absorb\"]");
    assert!(error.starts_with("p.toml:4: sweep 1, modes: none of these"), "{error}");
}

#[test]
fn the_detector_is_counted_among_the_living() {
    let base = "[base]\nmembers = 6\ndead = [2]\n[[sweep]]\nalgorithms = \"bully\"\n";
    let who = |initiator: &str| -> Vec<u32> {
        let plan = read(&format!("{base}initiator = {initiator}")).unwrap();
        let first = |case: &Case| case.initiators.iter().next().unwrap().0.0;
        let noticing = |run| first(&plan.job(run).unwrap().case);
        (1..=plan.size().runs).map(noticing).collect()
    };
    assert_eq!(who("\"1..5\""), [1, 3, 4, 5, 6]);
    assert_eq!(who("[\"lowest\", \"middle\", \"highest\"]"), [1, 4, 6]);
    assert_ne!(who("\"random\""), [2]);
    let error = refused(&format!("{base}initiator = 6"));
    assert_eq!(
        error,
        "p.toml:6: sweep 1, initiator: there is no live member number 6; they are numbered 1 to 5"
    );
}

#[test]
fn several_detectors_are_drawn_by_the_seed() {
    let plan = read(
        "[[sweep]]\nalgorithms = \"bully\"\nmembers = 50\ninitiators = [3, \"all\", \"none\"]\nseeds = 2",
    );
    let plan = plan.unwrap();
    let count = |run| plan.job(run).unwrap().case.initiators.len();
    assert_eq!((1..=6).map(count).collect::<Vec<_>>(), [3, 3, 50, 50, 0, 0]);
    assert_ne!(plan.job(1).unwrap().case.initiators, plan.job(2).unwrap().case.initiators);
}

#[test]
fn faults_are_named_and_added_to_the_base() {
    let plan = read(
        "[base]\nmembers = 3\n[faults.crash]\nfault = [{ at = \"1ms\", crash = 3 }]\n\
         [faults.storm]\nchaos = { crash_every = \"5ms\", down_for = \"5ms\", until = \"50ms\" }\n\
         [[sweep]]\nalgorithms = \"bully\"\nfaults = [\"none\", \"crash\", \"storm\"]",
    );
    let plan = plan.unwrap();
    let what = |run| {
        let job = plan.job(run).unwrap();
        (job.faults, job.case.faults.len(), job.case.chaos.is_some())
    };
    assert_eq!(what(1), ("none".to_owned(), 0, false));
    assert_eq!(what(2), ("crash".to_owned(), 1, false));
    assert_eq!(what(3), ("storm".to_owned(), 0, true));
}

#[test]
fn every_error_names_its_line() {
    let sweep = "[[sweep]]\nalgorithms = \"bully\"\nmembers = 3\n";
    let cases = [
        (
            "titel = \"x\"".to_owned(),
            "p.toml:1: titel: there is no such key; did you mean `title`?",
        ),
        (
            "[base]\nmembrs = 3".to_owned(),
            "p.toml:2: membrs: there is no such key; did you mean `members`?",
        ),
        ("title = \"x\"".to_owned(), "p.toml: sweep: is missing"),
        ("[[sweep]]\nmembers = 3".to_owned(), "p.toml:1: sweep 1, algorithms: is missing"),
        ("[[sweep]]\nalgorithms = \"bully\"".to_owned(), "p.toml:1: sweep 1, members: is missing"),
        (
            "[[sweep]]\nmembers = 3\nalgorithms = \"buly\"".to_owned(),
            "p.toml:3: sweep 1, algorithms: unknown algorithm",
        ),
        (
            format!("{sweep}los = 3"),
            "p.toml:4: sweep 1, los: cannot be swept; did you mean `loss`?",
        ),
        (format!("{sweep}loss = \"5\""), "p.toml:4: sweep 1, loss: `5` is not a share"),
        (format!("{sweep}loss = true"), "p.toml:4: sweep 1, loss: `true` is not a share"),
        (format!("{sweep}delay = 5"), "p.toml:4: sweep 1, delay: `5`: invalid type"),
        (format!("{sweep}seeds = []"), "p.toml:4: sweep 1, seeds: the list is empty"),
        (format!("{sweep}seeds = 0"), "p.toml:4: sweep 1, seeds: no seed, no run"),
        (format!("{sweep}seeds = 1000000"), "p.toml:4: sweep 1, seeds: 1000000 are too many"),
        (format!("{sweep}initiators = -2"), "p.toml:4: sweep 1, initiators: -2 is below zero"),
        (
            format!("{sweep}initiators = 4"),
            "p.toml:4: sweep 1, initiators: 4 cannot notice; only 3 are alive",
        ),
        (
            format!("{sweep}initiator = 1\ninitiators = 2"),
            "p.toml:4: sweep 1, initiator: is swept beside initiators",
        ),
        (
            format!("{sweep}faults = \"storm\""),
            "p.toml:4: sweep 1, faults: there is no table [faults.storm]",
        ),
        (
            format!("{sweep}{sweep}name = \"sweep-1\""),
            "p.toml:7: sweep 2, name: there are two sweeps `sweep-1`",
        ),
        (format!("[base]\ndelay = \"x\"\n{sweep}"), "p.toml:2: `x` is not a length of time"),
        (format!("[base]\nseed = 4\n{sweep}"), "p.toml:2: base.seed: write the seed at the head"),
    ];
    for (text, expected) in cases {
        let error = refused(&text);
        assert!(error.starts_with(expected), "{text}\n→ {error}");
    }
}

#[test]
fn every_error_in_a_report_names_its_line() {
    let report = "[[sweep]]\nname = \"a\"\nalgorithms = \"bully\"\nmembers = 3\n[[report]]\n";
    let cases = [
        ("x = \"members\"", "p.toml:5: report 1, y: is missing"),
        (
            "x = \"size\"\ny = \"messages\"",
            "p.toml:6: report 1, x: a run has no `size`; use one of",
        ),
        ("x = \"mode\"\ny = \"messages\"", "p.toml:6: report 1, x: mode has no numbers"),
        ("x = \"members\"\ny = \"mode\"", "p.toml:7: report 1, y: mode has no numbers"),
        (
            "x = \"members\"\ny = \"bytes\"\nscale = \"cubic\"",
            "p.toml:8: report 1, scale: `cubic`; use linear",
        ),
        (
            "x = \"members\"\ny = \"bytes\"\nformula = true",
            "p.toml:8: report 1, formula: the closed forms",
        ),
        (
            "x = \"members\"\ny = \"bytes\"\nsweep = \"b\"",
            "p.toml:8: report 1, sweep: there is no sweep `b`",
        ),
        (
            "x = \"members\"\ny = \"bytes\"\nseries = \"colour\"",
            "p.toml:8: report 1, series: a run has no `colour`",
        ),
        (
            "x = \"members\"\ny = \"bytes\"\nonly = { colour = 1 }",
            "p.toml:8: report 1, only: a run has no `colour`",
        ),
        ("x = \"members\"\ny = \"bytes\"\ncolor = 1", "p.toml:8: color: there is no such key"),
    ];
    for (text, expected) in cases {
        let error = refused(&format!("{report}{text}"));
        assert!(error.starts_with(expected), "{text}\n→ {error}");
    }
}

#[test]
fn all_mistakes_are_told_in_the_order_of_the_file() {
    let error = refused(
        "titel = \"x\"\n[[sweep]]\nname = \"a\"\nalgorithms = [\"buly\", \"quorm\"]\nmembers = \"50..10\"\n\
         [[sweep]]\nalgorithms = \"bully\"\nmembers = 3\nlos = 1\n\
         [[report]]\nsweep = \"a\"\nx = \"initiatr\"\ny = \"mesages\"\nformula = true\n\
         [[report]]\nx = \"members\"",
    );
    let told: Vec<&str> = error.lines().map(str::trim).collect();
    let expected = [
        "7 mistakes:",
        "p.toml:1: titel: there is no such key",
        "p.toml:4: sweep 1, algorithms: unknown algorithm `buly`",
        "p.toml:4: sweep 1, algorithms: unknown algorithm `quorm`",
        "p.toml:5: sweep 1, members: `50..10` runs backwards",
        "p.toml:9: sweep 2, los: cannot be swept",
        "p.toml:12: report 1, x: a run has no `initiatr`",
        "p.toml:13: report 1, y: a run has no `mesages`",
    ];
    assert_eq!(told.len(), expected.len(), "{error}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}\n→ {expected}");
    }
}

#[test]
fn absurd_sizes_are_refused_before_anything_runs() {
    let many = refused(
        "[[sweep]]\nname = \"x\"\nalgorithms = \"bully\"\nmembers = \"1..1000\"\nseeds = 1000",
    );
    assert!(
        many.starts_with("p.toml:2: sweep 1, name: makes 1000000 runs or more; at most 200000"),
        "{many}"
    );
    let large = refused("[[sweep]]\nalgorithms = \"bully\"\nmembers = [10, 1000000]");
    assert!(
        large.starts_with("p.toml:3: sweep 1, members: bully with 1000000 members needs about"),
        "{large}"
    );
    let unheard = refused("[[sweep]]\nalgorithms = \"bully\"\nmembers = 1000000000");
    assert!(unheard.contains("more than can be simulated"), "{unheard}");
    assert!(read("[[sweep]]\nalgorithms = \"bully\"\nmembers = \"1..99999999\"").is_err());
}

#[test]
fn a_chart_can_be_limited_to_rows_that_have_a_value() {
    let text = "[[sweep]]\nalgorithms = \"bully\"\nmembers = [2, 9000]\ninitiator = \"highest\"\n\
                [[report]]\nx = \"members\"\ny = \"messages\"\n";
    let shown = |only: &str| -> Vec<u64> {
        let plan = read(&format!("{text}only = {{ {only} }}")).unwrap();
        let rows = (1..=2).map(|run| crate::sweep::row(&plan, run).unwrap());
        let shown = rows.filter(|row| plan.reports[0].values_of(row).is_some());
        shown.map(|row| row.summary.members).collect()
    };
    assert_eq!(shown("members = 9000"), [9000]);
    assert_eq!(shown("agreed = true"), [2, 9000]);
    assert_eq!(shown("agreed = false"), [0; 0]);
    assert_eq!(shown("mode = \"textbook\", members = 2"), [2]);
    assert_eq!(shown("delay = \"1ms\""), [2, 9000]);
    assert_eq!(shown("loss = \"5%\""), [0; 0]);
    assert_eq!(shown("detector = \"none\""), [2, 9000]);
}
