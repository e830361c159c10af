//! The scenarios of the sources: every file is a figure or an example. All of them run here, with the expected result.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use doyen_report::{expectation, formula};
use doyen_sim::run;
use doyen_sim::scenario::{Case, Scenario};
use doyen_sim::trace::{EventKind, TraceEvent};

/// Runs with more messages than this are not run twice more just to see that they are the same.
const SMALL: u64 = 10_000;

/// A scenario, and the name of its file without `.toml`.
struct File {
    name: String,
    case: Case,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn read(file: &str) -> String {
    fs::read_to_string(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn load(name: &str) -> Result<File, String> {
    let file = format!("{name}.toml");
    let case = Scenario::from_toml(&file, &read(&file))?;
    Ok(File { name: name.to_owned(), case })
}

/// The folders of the sources, and of what goes beyond them, in the order of the table.
const SOURCES: [&str; 7] =
    ["cs677", "notes", "kordafshari", "os-textbook", "cs425", "exclusion", "services"];

/// The names of all scenarios, in the order of the table.
fn names() -> Vec<String> {
    let names: Vec<String> = SOURCES.iter().flat_map(|source| names_in(source)).collect();
    assert!(names.len() >= 80, "where are the scenarios? {names:?}");
    names
}

/// The names of the scenarios of one source, in alphabetical order.
fn names_in(source: &str) -> Vec<String> {
    let entries = fs::read_dir(folder().join(source)).expect("every source has a folder");
    let file_name = |entry: io::Result<DirEntry>| entry.expect("it can be read").file_name();
    let mut names: Vec<String> = entries
        .map(|entry| file_name(entry).to_string_lossy().into_owned())
        .filter_map(|file| file.strip_suffix(".toml").map(|name| format!("{source}/{name}")))
        .collect();
    names.sort_unstable();
    names
}

/// Fails with all problems that `check` finds in all scenarios, each behind the name of its file.
fn check_all(check: impl Fn(&File) -> Vec<String>) {
    let problems_of = |name: &String| match load(name) {
        Ok(file) => check(&file).iter().map(|problem| format!("{name}.toml: {problem}")).collect(),
        Err(problem) => vec![problem],
    };
    let problems: Vec<String> = names().iter().flat_map(problems_of).collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn every_scenario_gives_what_it_says() {
    check_all(|file| {
        let outcome = run::run(&file.case, None);
        expectation::differences(&file.case, &outcome, formula::of(&file.case).as_ref())
    });
}

#[test]
fn every_scenario_says_where_it_comes_from_and_what_to_expect() {
    check_all(|file| {
        let mut problems = Vec::new();
        let (source, _) = file.name.split_once('/').unwrap_or_default();
        if !file.case.about.to_lowercase().starts_with(source) {
            problems.push(format!("`about` does not begin with its source, `{source}`"));
        }
        if !file.case.title.to_lowercase().starts_with(source) {
            problems.push(format!("`title` does not begin with its source, `{source}`"));
        }
        if file.case.about.lines().count() > 3 {
            problems.push("`about` is longer than three lines".to_owned());
        }
        match &file.case.expect {
            None => problems.push("`expect` is missing".to_owned()),
            Some(expect) if expect.quiet.is_none() => {
                problems.push("`expect` does not say whether the run becomes quiet".to_owned());
            }
            Some(_) => {}
        }
        problems
    });
}

#[test]
fn every_scenario_has_a_short_title_of_its_own() {
    let mut titles = BTreeSet::new();
    for name in SOURCES.iter().chain(&["flaws", "quorum"]).flat_map(|folder| names_in(folder)) {
        let title = load(&name).unwrap_or_else(|problem| panic!("{problem}")).case.title;
        assert!(!title.is_empty(), "{name}.toml has no title");
        assert!(title.chars().count() <= 64, "{name}.toml: the title is too long: {title}");
        assert!(titles.insert(title.clone()), "{name}.toml: another scenario is called {title}");
    }
}

#[test]
fn every_rule_that_fires_has_words() {
    for name in SOURCES.iter().chain(&["flaws", "quorum"]).flat_map(|folder| names_in(folder)) {
        let case = load(&name).unwrap_or_else(|problem| panic!("{problem}")).case;
        if case.expect.as_ref().and_then(|expect| expect.messages) > Some(SMALL) {
            continue;
        }
        let mut events: Vec<TraceEvent> = Vec::new();
        run::run(&case, Some(&mut events));
        for id in events.iter().flat_map(|event| event.kind.rules()) {
            let has_words = case.algorithm.rules().any(|rule| rule.id == id);
            assert!(has_words, "{name}.toml: {} has no words for {id}", case.algorithm);
        }
    }
}

#[test]
fn every_small_run_can_be_repeated() {
    check_all(|file| {
        if file.case.expect.as_ref().and_then(|expect| expect.messages) > Some(SMALL) {
            return Vec::new();
        }
        let again = load(&file.name).expect("it was right a moment ago");
        let (first, second) = (run::run(&file.case, None), run::run(&again.case, None));
        if first == second { Vec::new() } else { vec!["two runs differ".to_owned()] }
    });
}

#[test]
fn the_table_lists_every_scenario_once() {
    let table = read("README.md");
    let listed: Vec<&str> = (table.lines())
        .filter_map(|line| line.strip_prefix("| [")?.split_once(']').map(|(name, _)| name))
        .collect();
    assert_eq!(listed, names());
}

/// cs425's picture: "The election was started by process 17. The highest process identifier encountered so far is 24."
#[test]
fn the_ring_of_cs425_stops_at_its_picture() {
    let file = load("cs425/ring-pictured").expect("the scenario is right");
    let mut records: Vec<TraceEvent> = Vec::new();
    run::run(&file.case, Some(&mut records));
    let sent: Vec<String> = (records.iter())
        .filter_map(|record| match &record.kind {
            EventKind::Sent { from, to, text, .. } => Some(format!("{from} to {to}: {text}")),
            _ => None,
        })
        .collect();
    assert_eq!(sent, ["17 to 24: ELECTION 17", "24 to 1: ELECTION 24", "1 to 28: ELECTION 24"]);
}
