//! What went wrong elsewhere, played with a quorum: every file in `scenarios/quorum/` must give what it says, with every
//! invariant of the quorum checked after every event, and never two leaders at once.

use std::fs;
use std::path::{Path, PathBuf};

use doyen_check::oracle::{self, Oracle};
use doyen_check::property::Property;
use doyen_report::expectation;
use doyen_sim::scenario::{Case, Scenario};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/quorum")
}

fn read(file: &str) -> String {
    fs::read_to_string(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Every scenario, by the name of its file without `.toml`, in order.
fn scenarios() -> Vec<(String, Case)> {
    let entries = fs::read_dir(folder()).expect("there is such a folder");
    let names = entries.map(|entry| entry.expect("it can be read").file_name());
    let mut names: Vec<String> = names
        .filter_map(|name| name.to_string_lossy().strip_suffix(".toml").map(str::to_owned))
        .collect();
    names.sort_unstable();
    let load = |name: String| {
        let file = format!("{name}.toml");
        let case = Scenario::from_toml(&file, &read(&file));
        (name, case.unwrap_or_else(|problem| panic!("{problem}")))
    };
    names.into_iter().map(load).collect()
}

#[test]
fn every_scenario_gives_what_it_says_and_breaks_no_invariant() {
    let mut problems = Vec::new();
    for (name, case) in scenarios() {
        let mut oracle = Oracle::of(&case, &Property::QUORUM);
        let outcome = oracle::judge(&case, None, &mut oracle);
        problems.extend(oracle.breach().map(|breach| format!("{name}: {breach:?}")));
        let differences = expectation::differences(&case, &outcome, None);
        problems.extend(differences.iter().map(|difference| format!("{name}: {difference}")));
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn every_scenario_says_what_it_shows_and_expects_one_leader_at_most() {
    for (name, case) in scenarios() {
        let lines = case.about.trim().lines().count();
        assert!((1..=3).contains(&lines), "{name}: `about` has {lines} lines");
        let expect = case.expect.as_ref().unwrap_or_else(|| panic!("{name}: expects nothing"));
        assert_eq!(expect.two_leaders, Some(false), "{name}");
        assert!(expect.quiet.is_some(), "{name}: `expect` does not say whether it becomes quiet");
    }
}

#[test]
fn the_table_lists_every_scenario_once() {
    let table = read("README.md");
    let listed = table.lines().filter_map(|line| line.strip_prefix("| [")?.split_once(']'));
    let listed: Vec<&str> = listed.map(|(name, _)| name).collect();
    let names: Vec<String> = scenarios().into_iter().map(|(name, _)| name).collect();
    assert_eq!(listed, names);
}
