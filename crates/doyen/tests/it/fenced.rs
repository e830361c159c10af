//! A register behind a fence, written by the job of every leader, through failovers with pauses.
//!
//! A pause stops everything of the leader at once, as a suspended machine does: the node, its guardian and the job. When they
//! go on, the job, which does not know, writes for a moment longer. Only the fencing token protects then.

use std::fs;
use std::path::PathBuf;

use crate::support::rounds::{Tally, rounds};
use crate::support::{Plan, Trial, program, skip};
use doyen::guardian::contain::Containment;
use rustix::process::{Pid, Signal, kill_process};

/// Writes its token again and again. `$1` is doyen, `$2` the folder.
const JOB: &str = r#"
    while :; do
        "$1" fence "$2/fence" -- sh -c 'echo "$DOYEN_TOKEN" >> "$0/accepted"' "$2" 2>> "$2/refused"
        sleep 0.01
    done
"#;

struct Register {
    trial: Trial,
    folder: PathBuf,
}

impl Register {
    fn tokens(&self) -> Vec<u64> {
        let text = fs::read_to_string(self.folder.join("accepted")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn refusals(&self) -> usize {
        let text = fs::read_to_string(self.folder.join("refused")).unwrap_or_default();
        text.lines().filter(|line| line.contains("token")).count()
    }

    /// Waits until a token above `token` has been accepted.
    fn wait_for_more(&self, token: u64) -> u64 {
        self.trial.wait("a write of another leader", || {
            self.tokens().into_iter().max().filter(|&highest| highest > token)
        })
    }
}

/// The node with this number, its guardian, init and the shell of the job. What the shell has started belongs to the
/// register: it is not paused while it holds the lock.
fn chain(node: i32) -> Vec<i32> {
    let child_of = |pid: &i32| {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
        let children = threads.filter_map(|it| fs::read_to_string(it.path().join("children")).ok());
        children.collect::<String>().split_whitespace().next()?.parse().ok()
    };
    std::iter::successors(Some(node), child_of).take(4).collect()
}

fn send(pids: &[i32], signal: Signal) {
    for pid in pids.iter().filter_map(|&pid| Pid::from_raw(pid)) {
        // Some may have ended meanwhile.
        let _ = kill_process(pid, signal);
    }
}

#[test]
fn a_fenced_register_accepts_no_older_token_after_a_pause_of_everything() {
    if Containment::available().expect("a thread").is_none() {
        return skip(
            "a fenced register: no PID namespaces and no cgroup v2 that may be written to",
        );
    }
    let plan = Plan { patient: true, preemption: "never", ..Plan::default() };
    let mut trial = Trial::found(&plan);
    let folder = trial.folder.join("register");
    fs::create_dir(&folder).unwrap();
    let words = ["sh", "-c", JOB, "job", program(), folder.to_str().unwrap()];
    for member in trial.everybody() {
        let lease_file = trial.folder.join(format!("lease-{member}"));
        trial.run_job(member, &["--lease-file", lease_file.to_str().unwrap()], &words);
    }
    let register = Register { trial, folder };
    let (mut highest, mut tally) = (
        register.wait_for_more(0),
        Tally::new("everything of the leader is paused, with a fenced register"),
    );
    for _ in 0..rounds() {
        let leader = register.trial.agree(&[1, 2, 3]);
        let pids = register.trial.wait("node, guardian, init and job", || {
            Some(chain(register.trial.pid(leader) as i32)).filter(|pids| pids.len() == 4)
        });
        tally.round(|| {
            send(&pids, Signal::STOP);
            highest = register.wait_for_more(highest);
            // The job goes on first, before its guardian can end it: it tries to write, and is refused.
            let refusals = register.refusals();
            send(&pids[2..], Signal::CONT);
            register.trial.wait("a refusal", || (register.refusals() > refusals).then_some(()));
            send(&pids[..2], Signal::CONT);
        });
    }
    drop(tally);
    let tokens = register.tokens();
    assert!(tokens.is_sorted(), "an older token was accepted: {tokens:?}");
    println!("{} writes accepted, {} refused", tokens.len(), register.refusals());
}
