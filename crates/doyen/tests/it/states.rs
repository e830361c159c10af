//! A state that is not the last one of its member: an old copy, a clone, none at all. What a damaged file may pass for is in
//! `disk.rs`, and which of two processes counts in `processes.rs`. A test does one round, `make chaos` several.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::rounds::{Tally, rounds};
use crate::support::{Plan, Trial, complaint, free_address, program};

/// Three members that n3 leads, also on a busy machine.
fn start() -> Trial {
    let trial = Trial::start(&Plan { patient: true, ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    trial
}

fn state_of(trial: &Trial, member: usize) -> PathBuf {
    trial.folder_of(member).join("state").join("state")
}

/// What was logged in earlier rounds does not count in the next.
fn forget_log(trial: &Trial, member: usize) {
    fs::remove_file(trial.folder_of(member).join("log")).expect("a log");
}

/// Puts an earlier copy of its state back while n1 is down.
fn restore(trial: &mut Trial, state: &Path, copy: &[u8]) {
    trial.kill(1);
    fs::write(state, copy).unwrap();
    forget_log(trial, 1);
}

/// Runs n1, whose state the others reject, and which says how to go on; returns its log.
fn run_rejected(trial: &mut Trial) -> String {
    trial.run(1);
    assert_eq!(trial.wait_for_end(1), Some(1), "{}", trial.log(1));
    let log = trial.log(1);
    assert!(log.contains("`doyen rejoin`"), "{log}");
    log
}

#[test]
fn a_restored_state_is_noticed_and_its_member_rejoins() {
    let mut trial = start();
    let state = state_of(&trial, 1);
    let mut tally = Tally::new("a state of an earlier start is restored, then a rejoin");
    for _ in 0..rounds() {
        trial.kill(1);
        let copy = fs::read(&state).unwrap();
        trial.run(1);
        trial.follow(3, &[1]);
        restore(&mut trial, &state, &copy);
        tally.round(|| {
            run_rejected(&mut trial);
            // A supervisor starts it again and again; every start would be a later life, and pass for a new one.
            for _ in 0..3 {
                trial.run(1);
                assert_eq!(trial.wait_for_end(1), Some(2), "{}", trial.log(1));
            }
            let log = trial.log(1);
            assert!(log.contains("other members have refused this state"), "{log}");
            trial.rejoin(1);
            trial.follow(3, &[1, 2, 3]);
        });
    }
}

/// A nightly backup: a copy that was made during the last life has an incarnation that nothing is wrong with. The term finds it.
#[test]
fn a_copy_of_the_last_life_is_found_by_its_term() {
    let mut trial = start();
    let state = state_of(&trial, 1);
    let mut tally = Tally::new("a state of an earlier term is restored, then a rejoin");
    for _ in 0..rounds() {
        let term = trial.wait_for_status(1).term;
        let copy = fs::read(&state).unwrap();
        trial.transfer(3, 2);
        trial.wait("n1 follows in a later term", || {
            trial.status(1).filter(|it| it.term > term && it.leader.is_some()).map(drop)
        });
        restore(&mut trial, &state, &copy);
        tally.round(|| {
            let log = run_rejected(&mut trial);
            assert!(log.contains("has seen this member in term"), "{log}");
            trial.rejoin(1);
            // It takes over from n2 again meanwhile.
            trial.follow(3, &[1, 2, 3]);
        });
    }
}

#[test]
fn a_cloned_state_stops_the_one_that_comes_second() {
    let mut trial = start();
    let mut tally = Tally::new("a clone of a member is started");
    for round in 0..rounds() {
        trial.kill(1);
        let clone = trial.folder.join(format!("clone-{round}"));
        fs::create_dir(&clone).unwrap();
        fs::set_permissions(&clone, fs::Permissions::from_mode(0o700)).unwrap();
        fs::copy(state_of(&trial, 1), clone.join("state")).unwrap();
        trial.run(1);
        trial.follow(3, &[1, 2, 3]);
        let start = trial.wait_for_status(1).incarnation.0;
        let elsewhere = free_address();
        let config = trial.folder_of(1).join("doyen.toml");
        tally.round(|| {
            // One that goes on is ended, with another exit code.
            let second = Command::new("timeout")
                .args(["30", program(), "node", "--config", config.to_str().unwrap()])
                .args(["--listen", &elsewhere, "--http", &free_address()])
                .args(["--state-dir", clone.to_str().unwrap()])
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let told = complaint(&second);
            assert_eq!(second.status.code(), Some(1), "{told}");
            let by =
                ["n2", "n3"].map(|name| format!("{name} has seen this member in start {start}"));
            assert!(by.iter().any(|by| told.contains(by)), "{by:?}: {told}");
        });
        trial.follow(3, &[1, 2, 3]);
        assert_eq!(trial.wait_for_status(1).incarnation.0, start, "the first one goes on");
    }
}

#[test]
fn a_lost_state_does_not_look_like_a_first_start() {
    let mut trial = start();
    let mut tally = Tally::new("a state is lost, then a rejoin");
    for _ in 0..rounds() {
        trial.kill(2);
        // The disk is lost, and the folder with it.
        fs::remove_dir_all(trial.folder_of(2).join("state")).unwrap();
        forget_log(&trial, 2);
        tally.round(|| {
            trial.run(2);
            assert_eq!(trial.wait_for_end(2), Some(2), "{}", trial.log(2));
            assert!(trial.log(2).contains("`doyen rejoin`"), "{}", trial.log(2));
            trial.rejoin(2);
            trial.follow(3, &[1, 2, 3]);
        });
    }
    trial.kill(3);
    trial.follow(2, &[1, 2]);
}
