//! Commands that simulate or check, with few threads and few file descriptors.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::starts::{after, by_user, user};
use crate::support::{complaint, new_folder, program};

const STUDY: [&[&str]; 5] = [
    &["sim", "--algorithm", "bully", "--members", "6"],
    &["check", "--algorithm", "bully", "--members", "3", "--crashes", "1", "--threads", "4"],
    &["check", "--random", "--algorithm", "bully", "--runs", "40", "--threads", "4"],
    &["compare", "--exclusion", "--members", "3..4"],
    &["compare", "--plan", "small.toml", "--csv", "-"],
];

const PLAN: &str = "[[sweep]]\nalgorithms = \"bully\"\nmembers = [5, 10]\nseeds = 10\n";

/// What a command says and its exit code, begun like this.
fn run(begin: &[String], words: &[&str]) -> (String, Option<i32>) {
    let folder = new_folder();
    fs::write(folder.join("small.toml"), PLAN).expect("it is written");
    // Another user may read it.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut command = Command::new(&begin[0]);
    let output = command.args(&begin[1..]).arg(program()).args(words).current_dir(&folder).output();
    let output = output.expect("it can be run");
    fs::remove_dir_all(folder).expect("it is there");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &complaint(&output);
    (said, output.status.code())
}

#[test]
fn with_few_threads_simulations_and_checks_have_the_same_results() {
    let Some(user) = by_user(user(12)) else { return };
    for words in STUDY {
        let (expected, _) = run(&user, words);
        // A check says how long it took.
        let is_repeatable = words[0] != "check";
        for threads in 1..=3 {
            let limit = ["prlimit".to_owned(), format!("--nproc={threads}")];
            let (said, code) = run(&[&user[..], &limit].concat(), words);
            // A check waits for signals in a thread.
            let may_fail = threads == 1 && said.contains("doyen: cannot start a thread");
            assert!(code == Some(0) || may_fail, "{words:?} with {threads}: {said}");
            assert!(said == expected || !is_repeatable, "{words:?} with {threads}: {said}");
        }
    }
}

#[test]
fn no_limit_of_file_descriptors_makes_a_simulation_or_a_check_panic() {
    for words in STUDY {
        let within = |limit: u32| run(&after(&format!("ulimit -n {limit}")), words);
        for limit in 3..20 {
            let (said, _) = within(limit);
            assert!(!said.contains("panicked"), "{words:?} with {limit}: {said}");
        }
        let (said, code) = within(20);
        assert_eq!(code, Some(0), "{words:?}: {said}");
    }
}
