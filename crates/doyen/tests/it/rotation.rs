//! `doyen keys rotate` and `doyen doctor`, with real nodes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use crate::support::{Plan, Trial, complaint};
use doyen::key::{Key, KeyFile, Keyring};
use serde_json::Value;

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The fingerprints in the key file of a member.
fn keys(trial: &Trial, member: usize) -> Vec<String> {
    let file = trial.folder_of(member).join("key");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    Keyring::read(&file).expect("keys").fingerprints()
}

/// Has a member use these keys.
fn give(trial: &Trial, member: usize, keys: &[&Key]) {
    let lines: Vec<String> = keys.iter().map(|key| key.to_line() + "\n").collect();
    fs::write(trial.folder_of(member).join("key"), lines.concat()).expect("it is written");
    let reloaded = trial.command(member, &["reload-keys"]);
    assert!(reloaded.status.success(), "{}", complaint(&reloaded));
}

fn doctor(trial: &Trial, member: usize) -> (Option<i32>, Value) {
    let output = trial.command(member, &["doctor", "--json"]);
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|_| panic!("{}", complaint(&output))))
}

#[test]
fn keys_are_rotated_from_one_place_and_a_rotation_is_continued_from_any_state() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    let before = keys(&trial, 1);
    let rotated = trial.command(2, &["keys", "rotate"]);
    assert!(rotated.status.success(), "{}{}", said(&rotated), complaint(&rotated));
    assert!(said(&rotated).contains("3 members seal and open with "), "{}", said(&rotated));
    let after = keys(&trial, 1);
    assert!(after.len() == 1 && after != before, "{before:?} {after:?}");
    assert!([2, 3].iter().all(|&member| keys(&trial, member) == after));
    trial.follow(3, &[1, 2, 3]);
    assert_eq!(trial.metric(1, "doyen_datagrams_rejected_total", "reason=\"key\"").unwrap_or(0), 0);

    let old = Keyring::read(&trial.folder_of(1).join("key")).expect("keys").keys()[0].clone();
    let new = Key::generate().expect("a key");
    let (a, b) = (&old, &new);
    let target = new.fingerprint();
    for interrupted in [
        [vec![a, b], vec![a], vec![a]],
        [vec![a, b], vec![a, b], vec![a, b]],
        [vec![a, b], vec![b, a], vec![a, b]],
        [vec![b], vec![b, a], vec![b, a]],
    ] {
        // Through states in which every member opens what every other one seals.
        if keys(&trial, 1) == [target.clone()] {
            (1..=3).for_each(|member| give(&trial, member, &[b, a]));
        }
        if interrupted[0] != [b] {
            (1..=3).for_each(|member| give(&trial, member, &[a, b]));
        }
        (1..=3).for_each(|member| give(&trial, member, &interrupted[member - 1]));
        let plain = trial.command(1, &["keys", "rotate"]);
        assert_eq!(plain.status.code(), Some(1), "{plain:?}");
        assert!(
            complaint(&plain).contains("give the key that is to remain: `doyen keys rotate --to "),
            "{}",
            complaint(&plain)
        );
        let report = trial.wait("nothing must be mended", || {
            let (code, report) = doctor(&trial, 1);
            (code == Some(0)).then_some(report)
        });
        let hint = report["findings"][0]["fix"].as_str().unwrap_or_default();
        assert!(hint.contains("doyen keys rotate --to "), "{report}");
        let rotated = trial.command(1, &["keys", "rotate", "--to", &target]);
        assert!(rotated.status.success(), "{}{}", said(&rotated), complaint(&rotated));
        assert!((1..=3).all(|member| keys(&trial, member) == [target.clone()]));
        let again = trial.command(3, &["keys", "rotate", "--to", &target]);
        assert!(again.status.success(), "nothing is left to do: {}", complaint(&again));
    }
    let unknown = trial.command(1, &["keys", "rotate", "--to", "00000000"]);
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");

    trial.kill(3);
    let stopped = trial.command(1, &["keys", "rotate"]);
    assert_eq!(stopped.status.code(), Some(3), "{stopped:?}");
    assert!(complaint(&stopped).contains("n3 does not answer n1"), "{}", complaint(&stopped));
    assert!((1..=3).all(|member| keys(&trial, member) == [target.clone()]), "nothing has changed");
}

#[test]
fn a_member_that_goes_away_stops_a_rotation_before_it_is_locked_out() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    let old = Keyring::read(&trial.folder_of(1).join("key")).expect("keys").keys()[0].clone();
    let new = Key::generate().expect("a key");
    (1..=2).for_each(|member| give(&trial, member, &[&old, &new]));
    trial.kill(3);
    let stopped = trial.command(1, &["keys", "rotate", "--to", &new.fingerprint()]);
    assert_eq!(stopped.status.code(), Some(3), "{stopped:?}");
    for member in [1, 2] {
        assert_eq!(keys(&trial, member), [old.fingerprint(), new.fingerprint()], "n{member}");
    }
    trial.run(3);
    trial.agree(&[1, 2, 3]);
    let rotated = trial.command(1, &["keys", "rotate", "--to", &new.fingerprint()]);
    assert!(rotated.status.success(), "{}{}", said(&rotated), complaint(&rotated));
    assert!((1..=3).all(|member| keys(&trial, member) == [new.fingerprint()]));

    // A new key that only n2 has: it was added last, whichever seals.
    let file = KeyFile::private(trial.folder_of(2).join("key"));
    file.add(&Key::generate().expect("a key")).expect("it is added");
    let newest = keys(&trial, 2)[1].clone();
    let told = format!("continue with `doyen keys rotate --to {newest}`, or revert it with");
    let reloaded = trial.command(2, &["reload-keys"]);
    assert!(reloaded.status.success(), "{}", complaint(&reloaded));
    let plain = trial.command(1, &["keys", "rotate"]);
    assert!(complaint(&plain).contains(&told), "{}", complaint(&plain));
    let (_, report) = doctor(&trial, 1);
    let mut findings = report["findings"].as_array().expect("findings").iter();
    let is_told = |it: &Value| it["fix"].as_str().is_some_and(|fix| fix.starts_with(&told));
    assert!(findings.any(is_told), "{report}");
}

#[test]
fn a_member_that_cannot_write_its_keys_is_named_with_the_way_on() {
    let trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    let before = keys(&trial, 2);
    // What stands in the way of a new file, as a full disk does.
    let obstacle = trial.folder_of(2).join(format!(".key.{}.draft", trial.pid(2)));
    fs::create_dir(&obstacle).expect("a folder");
    let refused = trial.command(2, &["keys", "rotate"]);
    let why = complaint(&refused);
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(why.contains("stopped: n2: ") && why.contains("nothing has changed"), "{why}");
    assert!((1..=3).all(|member| keys(&trial, member) == before));

    let stopped = trial.command(1, &["keys", "rotate"]);
    let why = complaint(&stopped);
    assert_eq!(stopped.status.code(), Some(1), "{why}");
    assert!(why.contains("stopped: n2: "), "{why}");
    let (_, again) = why.split_once("correct that, then continue: doyen ").expect("the way on");
    fs::remove_dir(&obstacle).expect("it is removed");
    let again: Vec<&str> = again.split_whitespace().collect();
    let rotated = trial.command(1, &again);
    assert!(rotated.status.success(), "{}", complaint(&rotated));
    assert!((1..=3).all(|member| keys(&trial, member) == [again[3]]));
}

#[test]
fn of_two_rotations_at_once_each_stops_before_a_member_is_locked_out() {
    let trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    std::thread::scope(|scope| {
        for member in [1, 2] {
            let trial = &trial;
            scope.spawn(move || trial.command(member, &["keys", "rotate"]));
        }
    });
    let all: Vec<Vec<String>> = (1..=3).map(|member| keys(&trial, member)).collect();
    let opens = |seals: &String| all.iter().all(|keys| keys.contains(seals));
    assert!(all.iter().all(|keys| opens(&keys[0])), "{all:?}");
    let rotated = trial.command(1, &["keys", "rotate", "--to", &all[0][0]]);
    assert!(rotated.status.success(), "{}{}", said(&rotated), complaint(&rotated));
    assert!((1..=3).all(|member| keys(&trial, member) == [all[0][0].clone()]));
}

#[test]
fn the_doctor_says_what_to_mend() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    let healthy = trial.wait("nothing to fix", || {
        let output = trial.command(1, &["doctor"]);
        output.status.success().then(|| said(&output))
    });
    let expected = format!("nothing to fix: 3 members of {}, asked through n1\n", trial.name);
    assert_eq!(healthy, expected);

    // Another key on n2, which nobody else has.
    let other = Key::generate().expect("a key");
    give(&trial, 2, &[&other]);
    let report = trial.wait("the other key is found", || {
        let (code, report) = doctor(&trial, 1);
        let found = report["findings"].as_array()?.iter().any(|it| {
            it["member"] == "n2" && it["fix"].as_str().is_some_and(|fix| fix.contains("key file"))
        });
        (found && code == Some(1)).then_some(report)
    });
    assert_eq!(report["healthy"], false);

    trial.kill(3);
    let report = trial.wait("the silence of n3 is found", || {
        let (_, report) = doctor(&trial, 1);
        let findings = report["findings"].as_array()?.clone();
        findings.into_iter().find(|it| it["member"] == "n3" && it["severity"] == "must")
    });
    assert!(report["fix"].as_str().expect("a fix").starts_with("start its node"), "{report}");
}
