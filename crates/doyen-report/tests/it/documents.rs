//! The lists in the documents are those of the code: who adds an algorithm, a kind of message, a fault or a rule, or moves a
//! file, is told which document does not say so yet.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use doyen_core::config::rules::Rule;
use doyen_core::protocol::{Class, Kind};
use doyen_core::registry::{Algorithm, Purpose};
use doyen_sim::fault::Fault;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The part of a document from `begin` to the next heading.
fn part(file: &str, begin: &str) -> String {
    let text =
        fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (_, part) = text.split_once(begin).unwrap_or_else(|| panic!("{file} has no `{begin}`"));
    part.split("\n## ").next().unwrap_or_default().to_owned()
}

/// The cells of the rows of all tables in a text whose first cell begins with code.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
}

/// What stands in backquotes.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// What an error lists in backquotes, but for what it complains about.
fn listed(error: &str) -> BTreeSet<&str> {
    let (_, list) = error.split_once("expected one of").unwrap_or_else(|| panic!("{error}"));
    code(list).collect()
}

fn fault(text: &str) -> Result<Fault, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

fn kinds(algorithm: Algorithm, is_counted: bool) -> Vec<&'static str> {
    let kinds = algorithm.kinds().iter();
    let kinds = kinds.filter(|Kind { class, .. }| (*class == Class::Algorithm) == is_counted);
    kinds.map(|kind| kind.name).collect()
}

/// The kinds that a cell names; it may refer to those of an algorithm.
fn kinds_in(cell: &str, is_counted: bool) -> Vec<&str> {
    let words = cell.split([' ', ',']).map(|word| word.trim_matches('`'));
    words
        .flat_map(|word| match Algorithm::ALL.into_iter().find(|it| it.name() == word) {
            Some(algorithm) => kinds(algorithm, is_counted),
            None if word.starts_with(char::is_uppercase) => vec![word],
            None => Vec::new(),
        })
        .collect()
}

#[test]
fn scenarios_md_lists_the_kinds_of_messages_of_every_algorithm() {
    let part = part("docs/scenarios.md", "The kinds of messages");
    let mut listed = BTreeSet::new();
    for row in rows(&part) {
        for name in code(row[0]) {
            let algorithm: Algorithm = name.parse().expect("an algorithm");
            listed.insert(algorithm);
            assert_eq!(kinds_in(row[1], true), kinds(algorithm, true), "{name}, in order");
            let [there, here] =
                [kinds_in(row[2], false), kinds(algorithm, false)].map(BTreeSet::from_iter);
            assert_eq!(there, here, "{name}, counted separately");
        }
    }
    assert_eq!(listed, BTreeSet::from(Algorithm::ALL));
}

#[test]
fn scenarios_md_lists_every_key_of_a_fault_and_every_command() {
    let error = fault("nothing = 1").unwrap_err();
    let keys = listed(&error);
    let [faults, quorum] =
        ["## Faults\n", "## Quorum\n"].map(|begin| part("docs/scenarios.md", begin));
    let (_, commands) = quorum.split_once("A command from an operator").expect("commands");
    let documented = rows(&faults).filter(|row| row.len() == 5).map(|row| row[0]);
    let documented: BTreeSet<&str> = documented.chain(commands.lines()).flat_map(code).collect();
    let missing: Vec<_> = keys.iter().filter(|key| !documented.contains(*key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let error = fault("at = '1ms'\ncommand = 'nothing'").unwrap_err();
    let documented = rows(commands).flat_map(|row| code(row[0]).collect::<Vec<_>>());
    assert_eq!(listed(&error), documented.filter(|it| *it != "command").collect());
}

/// Both lists of the kinds of faults, that of the document and that of the error, are those that a table can be.
#[test]
fn every_kind_of_fault_is_listed() {
    let error = fault("nothing = 1").unwrap_err();
    let values = ["1", "'resign'", "[1, 2]", "[[1], [2]]", "true", "{ loss = 0.5 }"];
    let none = fault("at = '1ms'").unwrap_err();
    let (_, told) = none.trim().rsplit_once("exactly one of ").expect("a list");
    let is_kind = |key: &&str| {
        let texts = values.map(|value| format!("at = '1ms'\n{key} = {value}"));
        // Alone or with another key.
        texts.iter().any(|text| fault(text).err().is_none_or(|error| error.contains("is missing")))
    };
    let kinds: BTreeSet<&str> = listed(&error).into_iter().filter(is_kind).collect();
    let told = told.split([',', ' ']).filter(|word| !word.is_empty() && *word != "and");
    assert_eq!(told.collect::<BTreeSet<_>>(), kinds);
    let faults = part("docs/scenarios.md", "exactly one of these kinds:");
    let list = faults.split("(see").next().unwrap_or_default();
    assert_eq!(code(list).collect::<BTreeSet<_>>(), kinds);
}

#[test]
fn quorum_md_says_what_detects_the_removal_of_every_rule() {
    let part = part("docs/quorum.md", "## What detects the removal of each rule\n");
    let documented: Vec<String> =
        rows(&part).map(|row| row[0].trim_matches('`').to_owned()).collect();
    let rules: Vec<String> = Rule::ALL.iter().map(Rule::to_string).collect();
    assert_eq!(BTreeSet::from_iter(&documented), BTreeSet::from_iter(&rules));
    assert_eq!(documented.len(), rules.len(), "no rule has two rows");
}

/// The quorum has a part of its own in README.md; the table of costs has it beside the others.
#[test]
fn readme_md_lists_every_algorithm() {
    let names = |purpose| {
        let those = Algorithm::ALL.into_iter().filter(move |it| it.purpose() == purpose);
        those.map(Algorithm::name).collect::<BTreeSet<_>>()
    };
    let elections = part("README.md", "## The algorithms\n");
    let mut listed: BTreeSet<&str> = rows(&elections).map(|row| row[0].trim_matches('`')).collect();
    listed.insert("quorum");
    assert_eq!(listed, names(Purpose::Elects));
    let costs = part("README.md", "## Mutual exclusion\n");
    let costs: BTreeSet<&str> = code(&costs).collect();
    let missing: Vec<&str> = names(Purpose::Elects).difference(&costs).copied().collect();
    assert!(missing.is_empty(), "costs: {missing:?}");
}

/// All files and folders of the repository that a document may name, as `/crates/doyen/src/lib.rs` and `/web/draw/`.
fn paths() -> Vec<String> {
    let mut paths = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["crates", "docs", "web", "scenarios", "plans", "packaging", "examples", "fuzz"]
            .into_iter()
            .map(|name| root().join(name))
            .collect();
    while let Some(folder) = folders.pop() {
        let shown =
            |path: &Path| format!("/{}", path.strip_prefix(root()).unwrap_or(path).display());
        paths.push(shown(&folder) + "/");
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                paths.push(shown(&path));
            }
        }
    }
    paths
}

#[test]
fn every_file_that_architecture_md_names_is_there() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("a text");
    // Text and code blocks take turns.
    let text = text.split("```").step_by(2).collect::<String>();
    let paths = paths();
    let ends = [".rs", ".js", ".md", ".toml", ".css", "/"];
    let is_file = |name: &&str| !name.contains(' ') && ends.iter().any(|end| name.ends_with(end));
    let mut named = 0;
    for name in code(&text).filter(is_file) {
        // `src/{node,link}.rs` names two files.
        let (before, rest) = name.split_once('{').unwrap_or((name, "}"));
        let (choices, after) = rest.split_once('}').expect("a closing brace");
        for choice in choices.split(',') {
            let end = format!("/{before}{choice}{after}");
            assert!(paths.iter().any(|path| path.ends_with(&end)), "there is no `{name}`");
            named += 1;
        }
    }
    assert!(named > 100, "{named}");
}
