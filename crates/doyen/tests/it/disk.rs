//! Disks that are full, that may not be written, and that fail: with real processes.
//!
//! A node whose disk is to be full or read-only sees its state folder through a mount of its own, in a mount namespace
//! that ends with it. That needs root; a test that has to skip says so.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::rounds::{Tally, rounds};
use crate::support::{Plan, Trial, complaint, has_ended, new_folder, program, skip};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// Runs the words after it with the folder `$1` replaced by a small disk with the same contents, full to the last byte.
/// What `dd` cannot write any more is the point.
const FULL: &str = r#"set -e; copy=$(mktemp -d); cp -a "$1/." "$copy/"; mount -t tmpfs -o size=256k tmpfs "$1"
    cp -a "$copy/." "$1/"; rm -r "$copy"; dd if=/dev/zero of="$1/fill" 2>&1 | grep -q "No space left"; shift; exec "$@""#;

/// The same, with the folder `$1` read-only.
const READ_ONLY: &str =
    r#"set -e; mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; shift; exec "$@""#;

/// Has a too large file be an error instead of the end.
const LIMITED: &str = r#"trap "" XFSZ; exec "$@""#;

/// What the command of a process begins with whose `folder` is mounted by `script`; nothing if this cannot be done here.
fn mounted(script: &str, folder: &Path) -> Option<Vec<String>> {
    let words = ["unshare", "--mount", "sh", "-c", script, "sh"];
    let mut words: Vec<String> = words.map(str::to_owned).to_vec();
    words.push(folder.to_str().expect("a plain path").to_owned());
    let scratch = new_folder();
    let mut trial = words[..words.len() - 1].to_vec();
    trial.extend([scratch.to_str().expect("a plain path").to_owned(), "true".to_owned()]);
    let tried = run(&trial);
    let _ = fs::remove_dir_all(scratch);
    if !tried.status.success() {
        skip(&format!("a folder cannot be mounted here, root is needed: {}", complaint(&tried)));
        return None;
    }
    Some(words)
}

fn run(words: &[String]) -> Output {
    Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).output().expect("it can be run")
}

#[test]
fn a_full_disk_does_not_stop_a_node() {
    let mut trial = Trial::found(&Plan::default());
    let state = trial.folder_of(2).join("state");
    let Some(prefix) = mounted(FULL, &state) else { return };
    for member in trial.everybody() {
        trial.run(member);
    }
    trial.follow(3, &[1, 2, 3]);
    trial.stop(2);
    trial.begin_with(2, prefix);
    trial.run(2);
    trial.follow(3, &[1, 2, 3]);
    // It has to store its term and its vote, in place.
    trial.kill(3);
    trial.follow(2, &[1, 2]);
}

/// The first start creates the admin secret.
#[test]
fn a_node_that_cannot_create_its_admin_secret_does_not_join() {
    let mut trial = Trial::found(&Plan::default());
    let state = trial.folder_of(2).join("state");
    let Some(mut prefix) = mounted(FULL, &state) else { return };
    prefix.extend(["env", "DOYEN_HTTP_ADMIN=true"].map(str::to_owned));
    trial.begin_with(2, prefix);
    for member in trial.everybody() {
        trial.run(member);
    }
    trial.agree(&[1, 3]);
    assert_eq!(trial.wait_for_end(2), Some(1), "a supervisor starts it again:\n{}", trial.log(2));
    assert!(trial.log(2).contains("No space left on device"), "{}", trial.log(2));
    let seen = trial.wait_for_status(1).members[1].observed_address.clone();
    assert_eq!(seen, None, "it has not been met");
}

/// A trace is for people who look for an error: without one the node goes on, and says so once.
#[test]
fn a_trace_on_a_full_disk_ends_and_the_node_goes_on() {
    let mut trial = Trial::found(&Plan::default());
    let folder = trial.folder.join("traces");
    fs::create_dir(&folder).expect("a folder");
    let Some(prefix) = mounted(FULL, &folder) else { return };
    trial.begin_with(2, prefix);
    let trace = folder.join("n2");
    trial.run_with(2, &["--log-format", "json", "--trace", trace.to_str().expect("a plain path")]);
    [1, 3].iter().for_each(|&member| trial.run(member));
    trial.follow(3, &[1, 2, 3]);
    trial.wait("the trace ends", || trial.log(2).contains("trace-ended").then_some(()));
    // Many more events would be recorded.
    trial.kill(3);
    trial.follow(2, &[1, 2]);
    assert_eq!(trial.stop(2), Some(0), "{}", trial.log(2));
    let log = trial.log(2);
    let ends: Vec<&str> = log.lines().filter(|line| line.contains("trace-ended")).collect();
    let [line] = ends[..] else { panic!("{log}") };
    assert!(line.contains(&format!("the trace {} ends here: No space left", trace.display())));
}

#[test]
fn nothing_is_founded_on_a_full_disk() {
    let folder = new_folder();
    let Some(mut words) = mounted(FULL, &folder) else { return };
    // What is left on the disk goes with the mount, so the process lists it itself.
    let script = r#""$1" init --cluster orders --member n1=127.0.0.1:7301 --out "$2/cluster"; echo $?; ls -A "$2""#;
    words.extend(["sh", "-c", script, "sh", program()].map(str::to_owned));
    words.push(folder.to_str().expect("a plain path").to_owned());
    let output = run(&words);
    let complaint = complaint(&output);
    assert!(complaint.contains("No space left on device"), "{complaint}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2\nfill\n");
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn a_state_that_may_not_be_written_is_named() {
    let mut trial = Trial::found(&Plan::default());
    let state = trial.folder_of(1).join("state");
    let Some(prefix) = mounted(READ_ONLY, &state) else { return };
    trial.begin_with(1, prefix);
    trial.run(1);
    assert_eq!(trial.wait_for_end(1), Some(2));
    let log = trial.log(1);
    assert!(log.contains("Read-only file system"), "{log}");
    assert!(log.contains(state.to_str().unwrap()), "{log}");
}

#[test]
fn a_write_that_fails_ends_the_node_and_the_others_go_on() {
    let mut trial = Trial::found(&Plan::default());
    trial.begin_with(3, ["sh", "-c", LIMITED, "sh"].map(str::to_owned).to_vec());
    for member in trial.everybody() {
        trial.run(member);
    }
    trial.follow(3, &[1, 2, 3]);
    // From now on it cannot write its second slot, which begins here.
    let pid = i32::try_from(trial.pid(3)).ok().and_then(Pid::from_raw);
    let limit = Rlimit { current: Some(4096), maximum: Some(4096) };
    prlimit(pid, Resource::Fsize, limit).expect("its limit can be set");
    // Every term is stored, in the one slot or in the other.
    for (from, to) in [(3, 2), (2, 3)] {
        let to_name = format!("n{to}");
        trial.wait("the office changes, or the node ends", || {
            // Rejected while the other has acknowledged none of the last heartbeats, and when it leads.
            let _ = trial.command(from, &["transfer", &to_name]);
            let moved = trial.status(1)?.leader.is_some_and(|id| id.0 as usize == to);
            (moved || has_ended(trial.pid(3))).then_some(())
        });
    }
    assert_eq!(trial.wait_for_end(3), Some(1));
    let log = trial.log(3);
    assert!(log.contains("File too large") && log.contains("must not forget"), "{log}");
    trial.follow(2, &[1, 2]);
}

/// What may have become of a state file of two slots, each at the beginning of a block of 4 KiB.
fn damages(state: &[u8]) -> Vec<(String, Vec<u8>)> {
    let zeroed = |range: std::ops::Range<usize>| {
        let mut bytes = state.to_vec();
        let end = range.end.min(bytes.len());
        bytes[range.start..end].fill(0);
        bytes
    };
    let mut damages: Vec<(String, Vec<u8>)> = vec![
        ("the first slot is gone".to_owned(), zeroed(0..4096)),
        ("the second slot is gone".to_owned(), zeroed(4096..8192)),
        ("all of it is zero".to_owned(), vec![0; state.len()]),
    ];
    for length in [0, 1, 2047, 4096, 4097] {
        damages.push((format!("cut to {length} bytes"), state[..length.min(state.len())].to_vec()));
    }
    // Two bits, so that one is in each slot, somewhere else in each round.
    for round in 0..rounds() {
        let mut bytes = state.to_vec();
        for slot in [0, 4096] {
            let place = slot + round * 41 % 2048;
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 1 << (round % 8);
            }
        }
        damages.push((format!("round {round}: a bit in each slot"), bytes));
    }
    damages
}

/// It goes on if what is left is its last state. If not, it says so, or the others do, and nothing else happens to them.
#[test]
fn no_damage_to_a_state_passes_for_a_state() {
    let mut trial = Trial::start(&Plan { patient: true, ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    let file = trial.folder_of(1).join("state/state");
    let number = damages(&fs::read(&file).unwrap()).len();
    let mut tally = Tally::new("a damaged state, then a rejoin if it is lost");
    let mut kept = 0;
    // On a busy machine the leader may be lost in a round: then the case is repeated. What a damaged state does to the others it
    // does each time.
    const ATTEMPTS: usize = 3;
    let (mut case, mut attempts) = (0, 1);
    while case < number {
        let term = trial.wait_for_status(3).term;
        trial.stop(1);
        let (what, damaged) = damages(&fs::read(&file).unwrap()).swap_remove(case);
        fs::write(&file, damaged).unwrap();
        let _ = fs::remove_file(trial.folder_of(1).join("log"));
        let mut runs = false;
        tally.round(|| {
            trial.run(1);
            runs = trial.wait("it runs or says why it does not", || {
                let has_ended = has_ended(trial.pid(1));
                let leader = |member| trial.status(member).and_then(|it| it.leader);
                let follows = leader(1).is_some() && leader(1) == leader(3);
                (has_ended || follows).then_some(!has_ended)
            });
            if runs {
                return;
            }
            let code = trial.wait_for_end(1);
            let log = trial.log(1);
            assert!(matches!(code, Some(1 | 2)), "{what}: {code:?}: {log}");
            assert!(log.contains("doyen rejoin`"), "{what}: it says what to do: {log}");
            trial.rejoin(1);
        });
        trial.follow(3, &[1, 2, 3]);
        let is_undisturbed = trial.wait_for_status(3).term == term;
        assert!(is_undisturbed || attempts < ATTEMPTS, "{what}: a later term each time");
        if is_undisturbed {
            (case, attempts, kept) = (case + 1, 1, kept + usize::from(runs));
        } else {
            attempts += 1;
        }
    }
    println!("{kept} of {number} kept");
    assert!((1..number).contains(&kept), "one slot is the last state: {kept} of {number}");
}
