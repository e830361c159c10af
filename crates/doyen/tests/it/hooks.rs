//! Hooks with real nodes: they follow the state, one at a time, and the lease waits for them.
//!
//! The hooks move a thing that only one member may have: a folder, which a member makes when it leads and removes when it
//! does not. Making it fails if another member has it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Plan, Trial, complaint};
use doyen_core::change::{ElectionReason, LeaderChange, TransferReason};
use doyen_core::protocol::Role;
use rustix::process::{Signal, geteuid};

/// What a member does when it leads and when it does not: `$1` is the shared folder, `$2` what to do.
const MOVE: &str = r#"
    echo "$DOYEN_MEMBER $2 $DOYEN_ROLE $DOYEN_TERM $DOYEN_REASON" >> "$1/log"
    case $2 in
        add) mkdir "$1/held" && echo "$DOYEN_MEMBER" > "$1/held/by" ;;
        remove)
            test -e "$1/stuck-$DOYEN_MEMBER" && exit 1
            test "$(cat "$1/held/by" 2> /dev/null)" = "$DOYEN_MEMBER" || exit 0
            rm -r "$1/held" ;;
    esac
"#;

struct Cluster {
    trial: Trial,
    folder: PathBuf,
}

impl Cluster {
    /// Three members with hooks.
    fn start(timing: Plan) -> Self {
        let mut trial = Trial::found(&Plan { preemption: "never", ..timing });
        let folder = trial.folder.join("shared");
        fs::create_dir(&folder).unwrap();
        for member in trial.everybody() {
            configure(&trial.folder_of(member).join("doyen.toml"), &folder);
        }
        for member in trial.everybody() {
            let lease_file = trial.folder.join(format!("lease-{member}"));
            let lease_file = lease_file.to_str().unwrap();
            trial.run_with(member, &["--lease-file", lease_file, "--log-format", "json"]);
        }
        Self { trial, folder }
    }

    /// Waits until one of `members` leads and holds the thing, and returns it.
    fn holder(&self, members: &[usize]) -> usize {
        self.trial.wait("a leader that holds the thing", || {
            let by = fs::read_to_string(self.folder.join("held/by")).ok()?;
            let member = by.trim().strip_prefix('n')?.parse().ok()?;
            (members.contains(&member) && self.trial.get(member, "/leader").is_some())
                .then_some(member)
        })
    }

    /// Waits until the hooks have logged a text.
    fn wait_for(&self, text: &str) {
        self.trial.wait(text, || self.log().contains(text).then_some(()));
    }

    fn term(&self, member: usize) -> u64 {
        self.trial.wait_for_status(member).term.0
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn others(leader: usize) -> Vec<usize> {
        (1..=3).filter(|&member| member != leader).collect()
    }

    /// Why a member leads.
    fn reason(&self, leader: usize) -> Option<ElectionReason> {
        self.trial.history(leader).iter().rev().find_map(|entry| match entry.change {
            LeaderChange::BecameLeader { reason, .. } => Some(reason),
            _ => None,
        })
    }
}

fn configure(path: &Path, folder: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let hook = |what: &str| {
        let words = ["sh", "-c", MOVE, "hook", folder.to_str().unwrap(), what];
        format!("{words:?}")
    };
    let hooks = format!("\n[hooks]\nleader = {}\nnot_leader = {}\n", hook("add"), hook("remove"));
    let (before, after) = text.split_at(text.find("[[member]]").expect("a table of members"));
    fs::write(path, format!("{before}{hooks}\n{after}")).unwrap();
}

/// Leases of two and a half seconds.
fn wan() -> Plan {
    Plan { profile: "wan", ..Plan::default() }
}

#[test]
fn the_thing_moves_with_leadership_and_is_never_at_two_members() {
    let cluster = Cluster::start(Plan { patient: true, ..Plan::default() });
    let first = cluster.holder(&[1, 2, 3]);
    for member in 1..=3 {
        cluster.wait_for(&format!("n{member} remove follower 0 started"));
    }
    cluster.trial.agree(&[1, 2, 3]);
    let term = cluster.term(first);
    cluster.trial.resign(first);
    let second = cluster.holder(&Cluster::others(first));
    let log = cluster.log();
    assert!(log.contains(&format!("n{first} remove follower {term} stopped")), "{log}");
    // Stopped past its lease: its guardian runs the hook in time, and the next one finds the thing free.
    let term = cluster.term(second);
    cluster.trial.signal(second, Signal::STOP);
    let third = cluster.holder(&Cluster::others(second));
    cluster.trial.signal(second, Signal::CONT);
    let log = cluster.log();
    assert!(log.contains(&format!("n{second} remove follower {term} lease-lapsed")), "{log}");
    cluster.trial.agree(&[1, 2, 3]);
    assert_eq!(cluster.holder(&[1, 2, 3]), third);
    // Killed while it is stopped, with reports of its guardian unread.
    let mut cluster = cluster;
    cluster.trial.signal(third, Signal::STOP);
    cluster.holder(&Cluster::others(third));
    cluster.trial.kill(third);
    let log = cluster.trial.log(third);
    assert!(!log.contains("the guardian ends"), "{log}");
}

#[test]
fn a_node_that_is_killed_is_survived_by_its_hook_and_costs_no_lease() {
    let mut cluster = Cluster::start(wan());
    let leader = cluster.holder(&[1, 2, 3]);
    cluster.trial.agree(&[1, 2, 3]);
    let term = cluster.term(leader);
    cluster.trial.kill(leader);
    let next = cluster.holder(&Cluster::others(leader));
    let crashed = matches!(
        cluster.reason(next),
        Some(ElectionReason::Transferred { reason: TransferReason::Crashed, .. })
    );
    assert!(crashed, "{}", cluster.trial.log(next));
    let log = cluster.log();
    assert!(log.contains(&format!("n{leader} remove follower {term} crashed")), "{log}");
    // The guardian writes in the format of the node's log, also when the node is dead.
    cluster.trial.wait("a line of the guardian", || {
        let log = cluster.trial.lines(leader);
        let lines =
            log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")));
        let lines: Vec<serde_json::Value> = lines.collect();
        lines.iter().any(|line| line["event"] == "lease-released").then_some(())
    });
}

#[test]
fn a_hook_that_fails_holds_the_lease_until_it_succeeds() {
    // Leases that a busy machine does not let lapse: who holds one is what this test is about.
    let mut cluster = Cluster::start(wan());
    let leader = cluster.holder(&[1, 2, 3]);
    cluster.trial.agree(&[1, 2, 3]);
    let term = cluster.term(leader);
    let stuck = cluster.folder.join(format!("stuck-n{leader}"));
    fs::write(&stuck, "").unwrap();
    cluster.trial.resign(leader);
    let (other, name) = (Cluster::others(leader)[0], format!("n{leader}"));
    let told = cluster
        .trial
        .wait("a follower to know of the command", || cluster.trial.status(other)?.moving());
    let by = format!("admin.sock (uid {}) on {name}", geteuid().as_raw());
    let wanted = format!("{name} was told to give up leadership; command from {by}");
    assert_eq!(told, wanted);
    // A drain by another member does not take the place of what moves leadership already.
    let give = |command: &str| cluster.trial.command(other, &[command, &name]);
    let drained = cluster.trial.succession(|| give("drain"));
    assert!(drained.status.success(), "{}", complaint(&drained));
    assert_eq!(cluster.trial.wait_for_status(leader).moving(), Some(wanted));
    let undrained = give("undrain");
    assert!(undrained.status.success(), "{}", complaint(&undrained));
    let failed = format!("n{leader} remove follower {term}");
    let failures = || cluster.log().matches(&failed).count();
    cluster.trial.wait("two failures", || (failures() >= 2).then_some(()));
    // A new guardian has to undo what the dead one has set up; until then nothing is released.
    cluster.trial.kill_guardian(leader);
    let before = failures();
    let again = || cluster.log().matches(&format!("n{leader} remove follower 0 started")).count();
    cluster.trial.wait("a try of the new guardian", || (again() >= 2).then_some(()));
    assert_eq!(failures(), before);
    let status = cluster.trial.wait_for_status(leader);
    assert!(status.role == Role::Retiring && status.lease.is_some(), "it still has the lease");
    cluster.trial.wait("a failure after another", || {
        (cluster.trial.status(leader)?.job_failure()?.times > 1).then_some(())
    });
    let shown = cluster.trial.command(leader, &["status"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let waits = format!("n{leader} has been transferring leadership for ");
    assert!(shown.contains(&waits) && shown.contains("retiring"), "{shown}");
    let failure = "hooks.not_leader ended with exit code 1, ";
    assert!(shown.contains(&format!("n{leader}: {failure}")), "{shown}");
    let explained = cluster.trial.command(leader, &["explain"]);
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(explained.contains(&format!("  n{leader}: {failure}")), "{explained}");
    let other = Cluster::others(leader)[0];
    let doctor = cluster.trial.command(other, &["doctor"]);
    let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert_eq!(doctor.status.code(), Some(1), "{told}");
    let retires = format!("must    n{leader}: has been retiring for ");
    assert!(told.contains(&retires) && told.contains(failure), "{told}");
    let by = fs::read_to_string(cluster.folder.join("held/by")).unwrap();
    assert_eq!(by.trim(), format!("n{leader}"), "and the thing");
    fs::remove_file(&stuck).unwrap();
    let next = cluster.holder(&Cluster::others(leader));
    cluster.trial.wait("the failure is over", || {
        cluster.trial.status(leader)?.job_failure().is_none().then_some(())
    });
    // A hook that fails after a crash: nothing is released, and the next leader waits for the lease.
    cluster.trial.agree(&[1, 2, 3]);
    fs::write(cluster.folder.join(format!("stuck-n{next}")), "").unwrap();
    cluster.trial.kill(next);
    let others = Cluster::others(next);
    let last = cluster.trial.agree(&others);
    let reason = cluster.reason(last);
    assert!(matches!(reason, Some(ElectionReason::Elected { .. })), "{reason:?}");
}

#[test]
fn a_node_that_ends_says_which_hook_it_gave_up_on() {
    let mut trial = Trial::found(&Plan { members: 1, ..Plan::default() });
    let shared = trial.folder.join("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("stuck-n1"), "").unwrap();
    configure(&trial.folder_of(1).join("doyen.toml"), &shared);
    let lease_file = trial.folder.join("lease");
    trial.run_with(1, &["--lease-file", lease_file.to_str().unwrap()]);
    trial.wait("the hook fails", || trial.log(1).contains("failure 1").then_some(()));
    trial.signal(1, Signal::TERM);
    trial.wait("the end of the guardian", || {
        let log = trial.log(1);
        let line = log.lines().find(|line| line.contains("gave up on hooks.not_leader after "))?;
        let end = ": it ended with exit code 1; what it has not undone must be undone by hand";
        assert!(line.ends_with(end), "{line}");
        Some(())
    });
    trial.wait_for_end(1);
}
