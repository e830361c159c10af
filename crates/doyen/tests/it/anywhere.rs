//! Commands to any member: it forwards them over the sealed channel to the member that they are for.

use std::fs;
use std::process::Output;
use std::time::{Duration, Instant};

use crate::support::{Plan, Trial, complaint};
use rustix::process::Signal;
use serde_json::Value;

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Three members that keep the leader that they have, also on a busy machine. They serve HTTP for the test alone: commands run
/// as if they did not.
fn steady() -> (Trial, usize, Vec<usize>) {
    let trial = Trial::start(&Plan { preemption: "never", patient: true, ..Plan::default() });
    let leader = trial.agree(&[1, 2, 3]);
    let followers = [1, 2, 3].into_iter().filter(|&member| member != leader).collect();
    (trial, leader, followers)
}

/// A command on a machine whose node serves no HTTP.
fn offline(trial: &Trial, member: usize, words: &[&str]) -> Output {
    std::process::Command::new(crate::support::program())
        .args(words)
        .arg("--config")
        .arg(trial.folder_of(member).join("doyen.toml"))
        .env("DOYEN_HTTP", "off")
        .output()
        .expect("doyen can be run")
}

/// The history of every member says by whom and where leadership was moved.
fn says_who_commanded(trial: &Trial, asked: usize) {
    let by = format!(") on n{asked}");
    for member in trial.everybody() {
        trial.wait(&format!("the history of n{member} says who gave the command"), || {
            let mut entries = trial.history(member).into_iter();
            entries.find(|it| {
                it.text.contains("; command from admin.sock (uid ") && it.text.contains(&by)
            })
        });
    }
}

#[test]
fn a_follower_that_is_told_to_resign_has_the_leader_do_it() {
    let (trial, leader, followers) = steady();
    let asked = followers[0];
    let resigned = trial.succession(|| offline(&trial, asked, &["resign"]));
    assert!(resigned.status.success(), "{}", complaint(&resigned));
    let told = said(&resigned);
    assert!(told.starts_with(&format!("n{leader} resigns; next in line is n")), "{told}");
    let next = trial
        .wait("another leader", || Some(trial.agree(&[1, 2, 3])).filter(|&next| next != leader));
    for member in [1, 2, 3].into_iter().filter(|&it| it != leader) {
        trial.wait(&format!("n{next} leads, and n{member} says that n{leader} resigned"), || {
            trial.status(member)?.why.filter(|why| why.contains("(resigned)"))
        });
    }
    says_who_commanded(&trial, asked);
}

#[test]
fn a_preference_that_moves_leadership_is_told_to_all_with_its_source() {
    let trial = Trial::start(&Plan { patient: true, ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    let preferred = trial.succession(|| offline(&trial, 1, &["prefer", "n2", "--for", "2h"]));
    assert!(preferred.status.success(), "{}", complaint(&preferred));
    trial.follow(2, &[1, 2, 3]);
    trial.wait("n1 says that n2 was preferred", || {
        trial.status(1)?.why.filter(|why| why.contains("(preferred)"))
    });
    says_who_commanded(&trial, 1);
}

#[test]
fn commands_to_any_member_reach_the_one_that_they_are_for() {
    let (mut trial, leader, followers) = steady();
    let (asked, next) = (followers[0], followers[1]);

    let to = format!("n{next}");
    let transferred = trial.succession(|| offline(&trial, asked, &["transfer", &to]));
    assert!(transferred.status.success(), "{}", complaint(&transferred));
    let told = said(&transferred);
    assert!(told.starts_with(&format!("n{leader} transfers leadership to n{next}")), "{told}");
    trial.follow(next, &[1, 2, 3]);
    says_who_commanded(&trial, asked);

    let drained = offline(&trial, asked, &["drain", &format!("n{leader}"), "--for", "2h"]);
    assert!(drained.status.success(), "{}", complaint(&drained));
    assert!(trial.wait_for_status(leader).drained);
    let shown = offline(&trial, asked, &["status", &format!("n{leader}"), "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("a status");
    assert_eq!((&shown["name"], &shown["drained"]), (&format!("n{leader}").into(), &true.into()));
    let undrained = offline(&trial, asked, &["undrain", &format!("n{leader}")]);
    assert!(undrained.status.success(), "{}", complaint(&undrained));
    assert!(!trial.wait_for_status(leader).drained);

    let preferred = offline(&trial, asked, &["prefer", &format!("n{next}"), "--for", "1h"]);
    assert!(said(&preferred).contains(&format!("prefers n{next} for 1h")), "{preferred:?}");
    let own = offline(&trial, asked, &["status", "--json"]);
    let own: Value = serde_json::from_slice(&own.stdout).expect("a status");
    assert_eq!(own["name"], format!("n{asked}"), "over the admin socket");

    let all = offline(&trial, asked, &["history", "--all"]);
    assert!(all.status.success(), "{}", complaint(&all));
    for member in 1..=3 {
        let seen = said(&all).lines().any(|line| line.contains(&format!("  n{member}  ")));
        assert!(seen, "n{member} in {}", said(&all));
    }

    let unknown = offline(&trial, asked, &["drain", "n9"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(complaint(&unknown).contains("n9 is not a member"), "{unknown:?}");

    trial.kill(leader);
    let dead = offline(&trial, asked, &["drain", &format!("n{leader}")]);
    assert_eq!(dead.status.code(), Some(3), "{dead:?}");
    let told = complaint(&dead);
    assert!(told.contains(&format!("n{leader} does not answer n{asked}: ")), "{told}");
    let all = offline(&trial, asked, &["history", "--all", "--json"]);
    assert_eq!(all.status.code(), Some(3), "{all:?}");
    let entries: Vec<Value> = serde_json::from_slice(&all.stdout).expect("the others' changes");
    assert!(entries.iter().any(|entry| entry["member"] == format!("n{next}")), "{entries:?}");
    assert!(complaint(&all).contains(&format!("n{leader} does not answer")), "{all:?}");
    let log = trial.log(asked);
    assert!(log.contains("rejected command `drain`"), "{log}");
    assert!(!log.contains("rejected command `history`"), "a question is no command: {log}");
    let rotated = offline(&trial, asked, &["keys", "rotate"]);
    assert_eq!(rotated.status.code(), Some(3), "{rotated:?}");
    assert!(complaint(&rotated).contains("nothing has changed"), "{rotated:?}");
}

#[test]
fn a_node_that_is_stopped_is_noticed_in_seconds() {
    let (trial, _, followers) = steady();
    trial.signal(followers[0], Signal::STOP);
    for words in [&["status"][..], &["status", "n1"], &["history", "n1"], &["doctor"]] {
        let begun = Instant::now();
        let output = offline(&trial, followers[0], words);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let told = complaint(&output);
        assert!(told.contains("its process is stopped or overloaded"), "{told}");
        assert!(begun.elapsed() < Duration::from_secs(12), "{words:?}: {:?}", begun.elapsed());
    }
    trial.signal(followers[0], Signal::CONT);
}

#[test]
fn a_member_may_reject_forwarded_commands_and_still_be_read() {
    let mut trial = Trial::found(&Plan::default());
    let config = trial.folder_of(2).join("doyen.toml");
    let text = fs::read_to_string(&config).expect("a configuration");
    fs::write(&config, format!("forwarded_commands = false\n{text}")).expect("it is written");
    for member in [1, 2, 3] {
        trial.run(member);
    }
    trial.follow(3, &[1, 2, 3]);
    let drained = trial.command(1, &["drain", "n2"]);
    assert_eq!(drained.status.code(), Some(1), "{drained:?}");
    let told = "n2 rejects forwarded commands (forwarded_commands = false)";
    assert!(complaint(&drained).contains(told), "{drained:?}");
    let rotated = trial.command(1, &["keys", "rotate"]);
    assert!(complaint(&rotated).contains("forwarded_commands = false on n2"), "{rotated:?}");
    assert_eq!(trial.wait_for_status(1).keys.len(), 1, "no key was created");
    assert!(!trial.wait_for_status(2).drained);
    let shown = trial.command(1, &["status", "n2"]);
    assert!(said(&shown).contains("seen from n2"), "{shown:?}");
    assert!(trial.command(2, &["drain"]).status.success(), "on its own machine");
}
