//! `doyen reload` and SIGHUP: what changes without a restart, what is refused, and that a refusal changes nothing.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use crate::support::{Plan, Trial, complaint};
use rustix::process::Signal;

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn config(trial: &Trial, member: usize) -> PathBuf {
    trial.folder_of(member).join("doyen.toml")
}

/// Changes the configuration of a member: settings that come first, tables that come last, and one text for another.
fn edit(trial: &Trial, member: usize, first: &str, last: &str, (old, new): (&str, &str)) {
    let text = fs::read_to_string(config(trial, member)).expect("a configuration");
    assert!(text.contains(old), "{old} in {text}");
    let text = text.replacen(old, new, 1);
    fs::write(config(trial, member), format!("{first}{text}{last}")).expect("it is written");
}

fn reload(trial: &Trial, member: usize) -> Output {
    trial.command(member, &["reload"])
}

#[test]
fn priority_log_hook_and_timing_change_without_a_restart() {
    let trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    let unchanged = reload(&trial, 1);
    assert!(unchanged.status.success(), "{}", complaint(&unchanged));
    assert!(said(&unchanged).contains("n1 reloaded its configuration; keys: "), "{unchanged:?}");

    let told = trial.folder.join("told");
    let hook = format!(
        "\n[hooks]\nchange = [\"/bin/sh\", \"-c\", \"echo $DOYEN_LEADER >> {}\"]\n",
        told.display()
    );
    edit(&trial, 1, "log = \"debug\"\n", &hook, ("priority = 1\n", "priority = 9\n"));
    let changed = trial.command(3, &["reload", "n1"]);
    assert!(changed.status.success(), "{}", complaint(&changed));
    for what in ["logs debug", "new hooks", "priority 9"] {
        assert!(said(&changed).contains(what), "{what} in {}", said(&changed));
    }
    trial.follow(1, &[1, 2, 3]);
    trial.wait("the new hook was run", || {
        fs::read_to_string(&told).ok().filter(|text| text.contains("n1"))
    });

    let timing = "\n[timing]\nprofile = \"lan\"\ntenure = \"2s\"\n";
    let text = fs::read_to_string(config(&trial, 2)).expect("a configuration");
    let profile = text.find("[timing]").map(|at| text[at..].lines().take(2).collect::<Vec<_>>());
    let old = profile.map_or_else(String::new, |lines| lines.join("\n"));
    edit(&trial, 2, "", if old.is_empty() { timing } else { "" }, (&old, timing.trim()));
    let changed = reload(&trial, 2);
    assert!(changed.status.success(), "{}", complaint(&changed));
    assert!(said(&changed).contains("from the next term on timing.tenure"), "{}", said(&changed));
    assert!(!trial.log(2).contains("uses its new timing"), "no term has begun");
    trial.transfer(2, 3);
    trial.wait("the new timing is adopted", || {
        trial.log(2).contains("uses its new timing from term").then_some(())
    });
}

#[test]
fn what_needs_a_restart_or_is_wrong_is_refused_and_nothing_changes() {
    let trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    let before = fs::read_to_string(config(&trial, 1)).expect("a configuration");
    let restore = || fs::write(config(&trial, 1), &before).expect("it is written");
    let refused = |why: &str| {
        // From another machine, whose configuration is right.
        let output = trial.command(2, &["reload", "n1"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let told = complaint(&output);
        assert!(told.contains(why), "{why} in {told}");
        restore();
    };

    // One change that could be made at once, and one that needs a restart.
    edit(&trial, 1, "log = \"debug\"\ngrace = \"3s\"\n", "", ("priority = 1\n", "priority = 9\n"));
    refused("grace needs a restart: it is read at a start only; nothing has changed");
    let priority = trial.wait_for_status(1).members[0].priority;
    assert_eq!(priority, 1, "nothing has changed");
    edit(&trial, 1, "http_admin = true\n", "", ("priority = 1\n", "priority = 1\n"));
    refused("http_admin needs a restart: its sockets are open");
    let text = before.replace("profile = \"lan\"", "profile = \"wan\"");
    assert_ne!(text, before, "another profile");
    fs::write(config(&trial, 1), text).expect("it is written");
    refused(
        ": timing.profile needs a restart: current leases and vote leases depend on it; nothing",
    );
    edit(&trial, 1, "log = \"loud\"\n", "", ("priority = 1\n", "priority = 1\n"));
    let here = reload(&trial, 1);
    assert_eq!(here.status.code(), Some(2), "so that `systemctl reload` fails: {here:?}");
    refused("`loud` is not a level");
    edit(&trial, 1, "", "nonsense", ("priority = 1\n", "priority = 1\n"));
    refused("doyen.toml");

    // A key file that others can read: the old keys stay.
    let key = trial.folder_of(1).join("key");
    let mode = |mode| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(&key, permissions).expect("its mode");
    };
    mode(0o644);
    refused("other users can read the keys");
    trial.signal(1, Signal::HUP);
    trial.wait("the log says that nothing was reloaded", || {
        trial.log(1).contains("not reloaded: ").then_some(())
    });
    mode(0o600);
    trial.signal(1, Signal::HUP);
    trial.wait("the log says what was reloaded", || {
        trial.log(1).contains("reloaded its configuration; keys: ").then_some(())
    });
    trial.follow(3, &[1, 2, 3]);
}

/// The guardian runs the new hooks: what the new `not_leader` undoes is what the new `leader` did.
#[test]
fn hooks_of_the_guardian_change_without_a_restart() {
    let mut trial = Trial::found(&Plan { preemption: "never", ..Plan::default() });
    let marks = trial.folder.join("marks");
    let hooks = |word: &str| {
        let line = |role: &str| {
            format!("[\"/bin/sh\", \"-c\", \"echo {word} {role} >> {}\"]", marks.display())
        };
        format!("\n[hooks]\nleader = {}\nnot_leader = {}\n", line("leads"), line("does not"))
    };
    let has = |trial: &Trial, text: &str| {
        trial.wait(text, || {
            fs::read_to_string(&marks).ok().filter(|marks| marks.contains(text)).map(drop)
        });
    };
    edit(&trial, 1, "", &hooks("old"), ("", ""));
    for member in [1, 2, 3] {
        trial.run(member);
    }
    trial.agree(&[1, 2, 3]);
    has(&trial, "old does not");
    let before = fs::read_to_string(config(&trial, 1)).expect("a configuration");
    fs::write(config(&trial, 1), before.replace("echo old", "echo new")).expect("it is written");
    let changed = reload(&trial, 1);
    assert!(said(&changed).contains("new hooks"), "{}{}", said(&changed), complaint(&changed));
    let given = trial.succession(|| trial.command(2, &["transfer", "n1"]));
    let led = complaint(&given).contains("is the leader already");
    assert!(given.status.success() || led, "{}", complaint(&given));
    trial.follow(1, &[1, 2, 3]);
    if !led {
        has(&trial, "new leads");
    }
    trial.transfer(1, 2);
    has(&trial, "new does not");
}

/// A node that runs without hooks gets some while it leads: a guardian runs them, as after a restart. When the last one is
/// removed, what they did is undone; and they may come back.
#[test]
fn the_first_hooks_are_added_and_the_last_ones_removed_without_a_restart() {
    let trial = Trial::start(&Plan { patient: true, preemption: "never", ..Plan::default() });
    let leader = trial.agree(&[1, 2, 3]);
    let follower = if leader == 1 { 2 } else { 1 };
    let pid = trial.pid(leader);
    let term = trial.wait_for_status(leader).term;
    let marks = trial.folder.join("marks");
    let hook = |role: &str| {
        let line = format!("echo $DOYEN_MEMBER {role} >> {}", marks.display());
        format!("[\"/bin/sh\", \"-c\", \"{line}\"]")
    };
    let hooks =
        format!("\n[hooks]\nleader = {}\nnot_leader = {}\n", hook("leads"), hook("does not"));
    let marked = |text: String| {
        trial.wait(&text, || {
            let marks = fs::read_to_string(&marks).unwrap_or_default();
            marks.lines().last().filter(|last| *last == text).map(drop)
        });
    };
    let add = |member: usize| {
        edit(&trial, member, "", &hooks, ("", ""));
        let changed = reload(&trial, member);
        assert!(said(&changed).contains("new hooks"), "{}{}", said(&changed), complaint(&changed));
    };

    let before = fs::read_to_string(config(&trial, leader)).expect("a configuration");
    add(follower);
    marked(format!("n{follower} does not"));
    add(leader);
    marked(format!("n{leader} leads"));
    let text = fs::read_to_string(&marks).expect("marks");
    let start = format!("n{leader} does not\nn{leader} leads\n");
    assert!(text.ends_with(&start), "as after a start: {text}");

    fs::write(config(&trial, leader), &before).expect("it is written");
    let removed = reload(&trial, leader);
    assert!(said(&removed).contains("no hooks any more"), "{removed:?}");
    marked(format!("n{leader} does not"));
    assert_eq!(trial.wait_for_status(leader).leader.map(|it| it.0 as usize), Some(leader));
    add(leader);
    marked(format!("n{leader} leads"));
    assert_eq!(trial.wait_for_status(leader).term, term, "it has led all the time");

    trial.transfer(leader, follower);
    marked(format!("n{follower} leads"));
    let text = fs::read_to_string(&marks).expect("marks");
    let order = format!("n{leader} does not\nn{follower} leads\n");
    assert!(text.ends_with(&order), "the old leader's first: {text}");
    assert_eq!(trial.pid(leader), pid, "no process was restarted");
}

#[test]
fn hooks_that_cannot_run_under_the_lease_are_refused_and_nothing_changes() {
    let trial = Trial::start(&Plan { algorithm: "bully", ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    edit(&trial, 1, "", "\n[hooks]\nleader = [\"/bin/true\"]\n", ("", ""));
    let refused = reload(&trial, 1);
    assert!(!refused.status.success(), "{refused:?}");
    assert!(complaint(&refused).contains("bully has no leases"), "{}", complaint(&refused));
    trial.follow(3, &[1, 2, 3]);
}
