//! A cluster that is upgraded while it runs: an earlier program and this one side by side.
//!
//! Every member records its leases with boot-time deadlines (`--trace`), so the traces of all starts, whatever program
//! wrote them, say together whether two leases ever ran at once and for how long none did.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::earlier::earlier_program;
use crate::support::leases::{self, Held};
use crate::support::{Plan, Trial, complaint, doyen, program, skip};
use doyen_core::algorithm::quorum::Stored;
use doyen_core::session::Kept;
use serde_json::Value;

/// How long a planned stop and start may leave the cluster without a lease, on a busy machine.
const LONGEST_DOWNTIME: Duration = Duration::from_secs(10);

/// A cluster of members that run different programs.
struct Cluster {
    trial: Trial,
    /// How often a member has been started.
    starts: usize,
    /// The traces of all starts, in order, and whose they are.
    traces: Vec<(usize, PathBuf)>,
    /// The highest term that each member has shown.
    terms: Vec<u64>,
}

impl Cluster {
    fn found(program: &Path) -> Self {
        let trial = Trial::found(&Plan { program: program.to_owned(), ..Plan::default() });
        let terms = vec![0; trial.everybody().len()];
        Self { trial, starts: 0, traces: Vec::new(), terms }
    }

    fn run(&mut self, member: usize) {
        self.starts += 1;
        let trace = self.trial.folder.join(format!("trace-{}", self.starts));
        self.trial.run_with(member, &["--trace", trace.to_str().expect("a plain path")]);
        self.traces.push((member, trace));
    }

    /// Stops a member and starts it again with `program`, on the same folder.
    fn replace(&mut self, member: usize, program: &Path) {
        assert_eq!(self.trial.stop(member), Some(0), "n{member}:\n{}", self.trial.log(member));
        let others: Vec<usize> =
            self.trial.everybody().into_iter().filter(|&other| other != member).collect();
        self.agree(&others);
        self.trial.replace_program(member, program);
        self.run(member);
        self.agree(&self.trial.everybody());
    }

    /// Waits until `members` follow one of them in the same term; no term has fallen.
    fn agree(&mut self, members: &[usize]) -> usize {
        let (leader, term) = self.trial.wait(&format!("{members:?} agree"), || {
            let seen: Option<Vec<(u64, u64)>> =
                members.iter().map(|&member| leadership(&self.trial, member)).collect();
            let seen = seen?;
            let (leader, term) = *seen.first()?;
            let agreed = seen.iter().all(|&other| other == (leader, term));
            (agreed && members.contains(&(leader as usize))).then_some((leader, term))
        });
        for &member in members {
            let before = std::mem::replace(&mut self.terms[member - 1], term);
            assert!(before <= term, "n{member} was in term {before} and is in term {term}");
        }
        leader as usize
    }

    /// The trace of a member's latest start, and of the one before.
    fn latest_traces(&self, member: usize) -> [String; 2] {
        let mut latest = self.traces.iter().rev().filter(|(of, _)| *of == member);
        [latest.next(), latest.next()].map(|trace| {
            let (_, path) = trace.expect("two starts");
            fs::read_to_string(path).expect("a trace")
        })
    }

    /// The leases of all starts. Those of members that still run are not complete.
    fn leases(&self) -> Vec<Held> {
        let texts = self.traces.iter().map(|(_, path)| fs::read_to_string(path).expect("a trace"));
        texts.flat_map(|text| leases::read(&text)).collect()
    }
}

/// Which leader a member follows, and in which term. Versions differ in what else they tell.
fn leadership(trial: &Trial, member: usize) -> Option<(u64, u64)> {
    let status: Value = serde_json::from_str(&trial.get(member, "/v1/status")?).ok()?;
    Some((status["leader"].as_u64()?, status["term"].as_u64()?))
}

/// Term and vote of the last record that a trace says was stored, in the words of a trace.
fn stored_last(trace: &str) -> Option<(String, String)> {
    let (_, record) = trace.rsplit_once("inner: Some(Stored { ")?;
    let field = |name: &str| {
        let (_, rest) = record.split_once(name)?;
        Some(rest.split_once(", ")?.0.to_owned())
    };
    Some((field("term: ")?, field("voted: ")?))
}

/// Term and vote that the disk held at the start of a trace of the present program.
fn found_first(trace: &str) -> Option<(String, String)> {
    let header: Value = serde_json::from_str(trace.lines().next()?).ok()?;
    let digits = header["durable"].as_str()?;
    let byte = |place| u8::from_str_radix(digits.get(place..place + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    let kept: Kept<Stored> = postcard::from_bytes(&bytes?).ok()?;
    let stored = kept.inner?;
    Some((format!("{:?}", stored.term), format!("{:?}", stored.voted)))
}

/// The highest version of the state file that a member has on its disk.
fn state_version(trial: &Trial, member: usize) -> u16 {
    let state = fs::read(trial.folder_of(member).join("state/state")).expect("a state");
    // Magic, then the version: at the head of both slots in every version.
    let version = |slot: usize| u16::from_le_bytes([state[slot + 8], state[slot + 9]]);
    version(0).max(version(4096))
}

#[test]
fn members_are_upgraded_one_after_the_other_under_one_leader() {
    let earlier = match earlier_program() {
        Ok(earlier) => earlier,
        Err(why) => return skip(&format!("an upgrade from an earlier program: {why}")),
    };
    let mut cluster = Cluster::found(&earlier);
    for member in cluster.trial.everybody() {
        cluster.run(member);
    }
    cluster.agree(&[1, 2, 3]);
    let earlier_version = state_version(&cluster.trial, 1);
    let begun = leases::now();

    for member in cluster.trial.everybody() {
        cluster.replace(member, Path::new(program()));
        if member == 1 {
            let told = cluster.trial.command(1, &["drain", "n2"]);
            assert_eq!(told.status.code(), Some(3), "{told:?}");
            assert!(complaint(&told).contains("n2 runs an older version"), "{told:?}");
        }
        let [_, before] = cluster.latest_traces(member);
        let stored = stored_last(&before);
        // A trace is written a while after what it tells of.
        let kept = cluster.trial.wait("the trace says what the disk held", || {
            let [upgraded, _] = cluster.latest_traces(member);
            found_first(&upgraded).map(Some)
        });
        assert!(stored.is_some(), "n{member} has voted:\n{before}");
        assert_eq!(kept, stored, "term and vote of n{member} survive");
        for other in cluster.trial.everybody() {
            // On a busy machine the leader may lose its lease for a moment.
            cluster.trial.wait(&format!("n{other} tells this program of a leader"), || {
                let asked = doyen(&["status", "--json", "--node", cluster.trial.url(other)]);
                asked.status.success().then_some(())
            });
        }
    }

    // The earlier program is not needed any more: the leader dies, and those that are left elect.
    let leader = cluster.agree(&[1, 2, 3]);
    let left: Vec<usize> = [1, 2, 3].into_iter().filter(|&member| member != leader).collect();
    let ended = leases::now();
    cluster.trial.kill(leader);
    cluster.agree(&left);

    // Back is possible only as long as the state is of a version that the earlier program knows.
    let newer = state_version(&cluster.trial, leader);
    cluster.trial.replace_program(leader, &earlier);
    cluster.run(leader);
    if newer > earlier_version {
        assert_ne!(cluster.trial.wait_for_end(leader), Some(0));
        let log = cluster.trial.log(leader);
        assert!(log.contains("a newer doyen wrote this state"), "{log}");
        cluster.traces.pop();
    } else {
        cluster.agree(&[1, 2, 3]);
        cluster.trial.stop(leader);
    }

    for member in left {
        cluster.trial.stop(member);
    }
    let held = cluster.leases();
    assert_eq!(leases::overlaps(&held), [], "two leases at once");
    let longest = leases::downtimes(&held, begun..ended)
        .into_iter()
        .map(|downtime| Duration::from_nanos(downtime.end - downtime.start))
        .max();
    assert!(longest < Some(LONGEST_DOWNTIME), "no lease for {longest:?}");
}
