//! Ctrl-C: a long check stops, and says what it has covered.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// What takes longer than this has hung.
const LIMIT: Duration = Duration::from_secs(60);

/// More states than any test has time for.
const ENDLESS: &str = "check --algorithm ring-active-list --mode hardened --members 5 --crashes 2 --restarts 2 --threads 1";

/// Runs `doyen` and sends it `signal` as soon as it listens to signals and has had a moment to begin.
fn interrupted(arguments: &str, signal: Signal) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_doyen"))
        .args(arguments.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("doyen can be started");
    let began = Instant::now();
    while !listens(child.id()) {
        assert!(began.elapsed() < LIMIT, "it does not listen to signals");
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_millis(500));
    kill_process(Pid::from_child(&child), signal).expect("it runs");
    child.wait_with_output().expect("it ends")
}

/// Whether a process has a handler of SIGINT, by the mask of signals that it catches.
fn listens(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (Signal::INT.as_raw() - 1) & 1 == 1)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_exploration_that_is_interrupted_says_what_it_has_covered() {
    let output = interrupted(ENDLESS, Signal::INT);
    let (said, remarks) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{said}{remarks}");
    assert!(
        said.contains("Interrupted: ") && said.contains(" reached but not fully expanded."),
        "{said}"
    );
    assert!(said.contains("Not violated in the expanded states:\n  terms-never-fall"), "{said}");
    assert!(remarks.starts_with("doyen: stopping"), "{remarks}");
}

#[test]
fn random_runs_that_are_interrupted_say_how_many_were_made() {
    let output =
        interrupted("check --random --algorithm bully --members 5 --runs 9000000", Signal::INT);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{said}{}", text(&output.stderr));
    assert!(said.contains("Held in every completed run:"), "{said}");
    assert!(said.contains("Interrupted: ") && said.contains(" of 9000000 runs."));
}

#[test]
fn whoever_asks_to_terminate_gets_the_same_for_programs() {
    let output = interrupted(&format!("{ENDLESS} --json"), Signal::TERM);
    assert_eq!(output.status.code(), Some(130));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(said["verdict"], "limit");
    assert_eq!(said["limit"], "interrupt");
    assert_eq!(said["complete"], false);
    assert!(said["frontier"].as_u64() > Some(0), "{said}");
}
