//! `doyen run` with real processes: one copy of a job in the cluster, whatever is killed or stopped.
//!
//! The job takes a lock on a file that all copies share, and every process of its tree holds that lock. A copy that starts
//! while one process of an earlier copy is alive finds the lock taken and says so. Each copy also writes down its fencing
//! token.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::rounds::{Tally, rounds};
use crate::support::{Plan, Trial, doyen, skip};
use doyen::api::{LeaderReport, PermitGiven};
use doyen::clock::Moment;
use doyen::guardian::contain::Containment;
use doyen::node::status::Entry;
use doyen_core::change::{ElectionReason, LeaderChange, TransferReason};
use doyen_core::members::NodeId;
use doyen_core::protocol::Role;
use rustix::process::Signal;

/// Ignores SIGTERM, forks twice, changes its session. If there is a file `eat`, it joins the cgroup that is named there and
/// eats memory.
const JOB: &str = r#"
    trap '' TERM INT HUP
    exec 9> "$1/lock"
    flock -n 9 || echo "$DOYEN_TOKEN" >> "$1/overlaps"
    setsid sh -c "trap '' TERM; setsid sleep 1000 & sleep 1000" &
    (sleep 1000 &) &
    rm -f "$1/eat"
    echo "$DOYEN_TOKEN $DOYEN_TERM" >> "$1/starts"
    while ! test -e "$1/eat"; do sleep 0.1; done
    echo 0 > "$(cat "$1/eat")/cgroup.procs"
    exec tail /dev/zero
"#;

struct Jobs {
    trial: Trial,
    folder: PathBuf,
    flags: Vec<String>,
}

impl Jobs {
    /// Three members, each of which runs the job while it leads.
    fn start(flags: &[&str]) -> Option<Self> {
        Self::start_with(Plan::default(), flags)
    }

    /// The same with other timing.
    fn start_with(timing: Plan, flags: &[&str]) -> Option<Self> {
        if Containment::available().expect("a thread").is_none() {
            skip("jobs: no PID namespaces and no cgroup v2 that may be written to");
            return None;
        }
        let trial = Trial::found(&Plan { preemption: "never", ..timing });
        let folder = trial.folder.join("job");
        fs::create_dir(&folder).unwrap();
        let everybody = trial.everybody();
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let mut jobs = Self { trial, folder, flags };
        everybody.into_iter().for_each(|member| jobs.run(member));
        Some(jobs)
    }

    fn run(&mut self, member: usize) {
        let lease_file = self.trial.folder.join(format!("lease-{member}"));
        let mut all = vec!["--lease-file", lease_file.to_str().unwrap()];
        all.extend(self.flags.iter().map(String::as_str));
        if !all.contains(&"--grace") {
            all.extend(["--grace", "300ms"]);
        }
        let place = self.folder.to_str().unwrap();
        self.trial.run_job(member, &all, &["sh", "-c", JOB, "job", place]);
    }

    /// Starts a member that was killed again, and lets one that was stopped go on.
    fn mend(&mut self, member: usize) {
        match self.trial.is_running(member) {
            true => self.trial.signal(member, Signal::CONT),
            false => self.run(member),
        }
    }

    /// The fencing tokens of all starts so far.
    fn tokens(&self) -> Vec<u64> {
        let text = fs::read_to_string(self.folder.join("starts")).unwrap_or_default();
        let token = |line: &str| line.split(' ').next().and_then(|word| word.parse().ok());
        text.lines().filter_map(token).collect()
    }

    /// Waits until the job has been started more than `count` times; says how often.
    fn wait_for_more(&self, count: usize) -> usize {
        self.trial.wait(&format!("start number {}", count + 1), || {
            Some(self.tokens().len()).filter(|&starts| starts > count)
        })
    }

    fn leader(&self, among: &[usize]) -> usize {
        self.trial.agree(among)
    }

    fn lease_deadline(&self, leader: usize) -> Moment {
        let report = self.trial.get(leader, "/v1/leader").expect("an answer");
        let report: LeaderReport = serde_json::from_str(&report).expect("a report");
        Moment::from_nanos(report.lease.expect("a lease").until)
    }

    fn guardian_of(&self, member: usize) -> i32 {
        let children =
            Command::new("pgrep").args(["-P", &self.trial.pid(member).to_string()]).output();
        let children = String::from_utf8(children.expect("pgrep").stdout).unwrap();
        children.lines().next().and_then(|line| line.parse().ok()).expect("a guardian")
    }

    fn assert_no_overlap(&self) {
        let overlaps = fs::read_to_string(self.folder.join("overlaps")).unwrap_or_default();
        assert_eq!(overlaps, "", "copies that started while an earlier one was alive");
        let tokens = self.tokens();
        assert!(tokens.is_sorted_by(|one, next| one < next), "tokens rise: {tokens:?}");
    }
}

/// Leases of two and a half seconds.
fn wan() -> Plan {
    Plan { profile: "wan", ..Plan::default() }
}

fn send(pid: i32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    rustix::process::kill_process(pid, signal).expect("it runs");
}

/// Kills the doyen of the leader, and says who leads then, and since when at the latest. Leases last for two and a half
/// seconds.
fn kill_and_wait(jobs: &mut Jobs, leader: usize) -> (usize, Moment) {
    jobs.trial.kill(leader);
    jobs.trial.wait("another leader", || {
        let others = [1, 2, 3].into_iter().filter(|&member| member != leader);
        let mut leading = others.filter(|&member| jobs.trial.get(member, "/leader").is_some());
        leading.next().map(|member| (member, Moment::now()))
    })
}

/// Whether a member leads because the guardian of `dead` has released its lease.
fn was_handed_over(jobs: &Jobs, leader: usize, dead: usize) -> bool {
    let by = NodeId(dead as u32);
    let reason = ElectionReason::Transferred { by, reason: TransferReason::Crashed };
    let history = jobs.trial.history(leader);
    let became = |it: &Entry| matches!(it.change, LeaderChange::BecameLeader { reason: why, .. } if why == reason);
    history.iter().any(became)
}

#[test]
fn a_doyen_that_is_killed_on_a_machine_that_lives_costs_no_lease() {
    // On a busy machine the lease may be over first. A successor that waits for it does so each time.
    const ATTEMPTS: usize = 3;
    let Some(mut jobs) = Jobs::start_with(wan(), &[]) else { return };
    let mut starts = jobs.wait_for_more(0);
    for attempt in 1..=ATTEMPTS {
        let leader = jobs.leader(&[1, 2, 3]);
        // The successor must have acknowledged a heartbeat.
        jobs.trial.follow(leader, &[1, 2, 3]);
        let deadline = jobs.lease_deadline(leader);
        let (successor, led) = kill_and_wait(&mut jobs, leader);
        let is_in_time = was_handed_over(&jobs, successor, leader) && led < deadline;
        starts = jobs.wait_for_more(starts);
        jobs.assert_no_overlap();
        if is_in_time {
            return;
        }
        let log = jobs.trial.log(leader);
        assert!(attempt < ATTEMPTS, "each successor waited for the lease: {log}");
        jobs.mend(leader);
    }
}

#[test]
fn a_lease_is_not_released_before_the_permits_of_the_dead_are_over() {
    let Some(mut jobs) = Jobs::start_with(wan(), &[]) else { return };
    let starts = jobs.wait_for_more(0);
    let leader = jobs.leader(&[1, 2, 3]);
    let permit: PermitGiven = jobs.trial.wait("a permit", || {
        let (status, body) = jobs.trial.post(leader, "/v1/permit", r#"{"for": "1s"}"#)?;
        assert_eq!(status, 200, "{body}");
        Some(serde_json::from_str(&body).expect("a permit"))
    });
    let (successor, led) = kill_and_wait(&mut jobs, leader);
    assert!(led >= Moment::from_nanos(permit.until), "it leads while the permit is valid");
    assert!(was_handed_over(&jobs, successor, leader), "{}", jobs.trial.log(leader));
    jobs.wait_for_more(starts);
    jobs.assert_no_overlap();
}

/// Does one or many rounds: something happens to the leader, another copy of the job starts, and nothing of the earlier
/// copy is alive by then.
fn abuse(kind: &'static str, act: impl Fn(&mut Jobs, usize)) {
    abuse_with(&[], kind, act);
}

fn abuse_with(flags: &[&str], kind: &'static str, act: impl Fn(&mut Jobs, usize)) {
    let Some(mut jobs) = Jobs::start(flags) else { return };
    let (mut starts, mut tally) = (jobs.wait_for_more(0), Tally::new(kind));
    for _ in 0..rounds() {
        let leader = jobs.leader(&[1, 2, 3]);
        tally.round(|| {
            act(&mut jobs, leader);
            starts = jobs.wait_for_more(starts);
        });
        jobs.assert_no_overlap();
        jobs.mend(leader);
    }
}

#[test]
fn doyen_is_killed() {
    abuse("doyen is killed", |jobs, leader| jobs.trial.kill(leader));
}

#[test]
fn doyen_is_stopped_past_its_lease() {
    abuse("doyen is stopped past its lease", |jobs, leader| {
        jobs.trial.signal(leader, Signal::STOP);
    });
}

#[test]
fn the_guardian_is_killed() {
    abuse("the guardian is killed", |jobs, leader| send(jobs.guardian_of(leader), Signal::KILL));
}

#[test]
fn the_guardian_is_stopped_past_the_lease() {
    abuse("the guardian is stopped past the lease", |jobs, leader| {
        send(jobs.guardian_of(leader), Signal::STOP);
    });
}

#[test]
fn doyen_and_guardian_are_killed_at_once() {
    if !Containment::available().expect("a thread").namespace {
        return skip("both killed at once: PID namespaces need root");
    }
    abuse("doyen and guardian are killed at once", |jobs, leader| {
        let guardian = jobs.guardian_of(leader);
        jobs.trial.signal(leader, Signal::STOP);
        send(guardian, Signal::KILL);
        jobs.trial.kill(leader);
    });
}

#[test]
fn the_command_runs_out_of_memory() {
    let Some(group) = MemoryGroup::create() else {
        return skip("out of memory: no memory cgroup may be created here");
    };
    // Otherwise the same member starts it again, later and later.
    let flags = ["--give-up-after", "1"];
    abuse_with(&flags, "the command runs out of memory, and leadership is given up", |jobs, _| {
        let eat = jobs.folder.join("eat");
        fs::write(eat.with_extension("new"), group.0.as_os_str().as_encoded_bytes()).unwrap();
        fs::rename(eat.with_extension("new"), eat).unwrap();
    });
}

#[test]
fn leadership_is_transferred() {
    abuse("leadership is transferred", |jobs, leader| {
        jobs.trial.resign(leader);
    });
}

#[test]
fn every_json_log_line_of_run_names_its_event() {
    let Some(jobs) = Jobs::start(&["--log-format", "json"]) else { return };
    jobs.wait_for_more(0);
    let starting = jobs.trial.wait("a start in a log", || {
        let lines: Vec<serde_json::Value> = [1, 2, 3]
            .map(|member| jobs.trial.lines(member))
            .iter()
            .flat_map(|log| log.lines())
            .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
            .collect();
        for line in &lines {
            assert!(line["event"].is_string(), "{line}");
        }
        lines.into_iter().find(|line| line["event"] == "starting")
    });
    assert!(starting["term"].is_u64() && starting["token"].is_u64(), "{starting}");
}

#[test]
fn a_job_ends_with_its_lease_though_elections_are_paused() {
    // The job must not end before it is made to: while elections are paused there is no next one.
    let timing = Plan { patient: true, ..Plan::default() };
    let Some(jobs) = Jobs::start_with(timing, &[]) else { return };
    jobs.wait_for_more(0);
    let leader = jobs.leader(&[1, 2, 3]);
    jobs.trial.wait("the pause to be accepted", || {
        jobs.trial.command(leader, &["pause", "--for", "1h"]).status.success().then_some(())
    });
    let is_alive = || {
        let mut lock = Command::new("flock");
        !lock.arg("-n").arg(jobs.folder.join("lock")).arg("true").status().expect("flock").success()
    };
    assert!(is_alive(), "{}", jobs.trial.log(leader));
    for other in (1..=3).filter(|&member| member != leader) {
        jobs.trial.signal(other, Signal::STOP);
    }
    jobs.trial.wait("the end of the job", || (!is_alive()).then_some(()));
    // The guardian ends it before the lease is over, so that nothing runs after.
    let status = jobs.trial.wait("the end of the lease", || {
        jobs.trial.status(leader).filter(|status| status.lease.is_none())
    });
    assert!(status.pause.is_some() && !is_alive(), "{status:?}");
}

#[test]
fn a_second_signal_ends_the_command_before_the_lease_is_released() {
    let Some(mut jobs) = Jobs::start_with(wan(), &["--grace", "60s"]) else { return };
    let (mut starts, mut tally) = (jobs.wait_for_more(0), Tally::new("a second signal"));
    // Whether a node that is about to end releases its lease is a race: once is not enough to see it.
    for _ in 0..rounds().max(4) {
        tally.round(|| {
            let leader = jobs.leader(&[1, 2, 3]);
            jobs.trial.follow(leader, &[1, 2, 3]);
            jobs.trial.signal(leader, Signal::INT);
            jobs.trial.wait("the leader to retire", || {
                (jobs.trial.status(leader)?.role == Role::Retiring).then_some(())
            });
            jobs.trial.signal(leader, Signal::INT);
            assert_eq!(jobs.trial.wait_for_end(leader), Some(125), "{}", jobs.trial.log(leader));
            starts = jobs.wait_for_more(starts);
            jobs.assert_no_overlap();
            // Its guardian may release the lease when the command has ended. The dying node must not.
            let others: Vec<usize> = (1..=3).filter(|&member| member != leader).collect();
            let next = jobs.leader(&others);
            let by_the_node = |it: &Entry| {
                let LeaderChange::BecameLeader { reason, .. } = it.change else { return false };
                matches!(reason, ElectionReason::Transferred { by, reason }
                    if by == NodeId(leader as u32) && reason != TransferReason::Crashed)
            };
            let history = jobs.trial.history(next);
            assert!(!history.iter().any(by_the_node), "{history:?}");
            jobs.run(leader);
        });
    }
}

/// A cgroup, of either version, whose processes may have very little memory.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn create() -> Option<Self> {
        let name = format!("doyen-test-{}", std::process::id());
        let kinds = [("memory", "memory.limit_in_bytes"), ("", "memory.max")];
        kinds.into_iter().find_map(|(mount, limit)| {
            let folder = Path::new("/sys/fs/cgroup").join(mount).join(&name);
            fs::create_dir(&folder).ok()?;
            let group = Self(folder);
            fs::write(group.0.join(limit), (32 << 20).to_string()).ok()?;
            Some(group)
        })
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn once_ends_with_the_exit_code_of_the_command_and_signals_are_passed_on() {
    let mut trial = Trial::found(&Plan { members: 1, ..Plan::default() });
    let lease_file = trial.folder.join("lease");
    let flags = ["--once", "--lease-file", lease_file.to_str().unwrap(), "--uncontained"];
    let effects = trial.folder.join("effects");
    let script = format!("trap '' TERM; echo effect >> {}; exit 42", effects.display());
    for times in 1..=3 {
        trial.run_job(1, &flags, &["sh", "-c", &script]);
        assert_eq!(trial.wait_for_end(1), Some(42), "{}", trial.log(1));
        assert_eq!(
            fs::read_to_string(&effects).unwrap().lines().count(),
            times,
            "{}",
            trial.log(1)
        );
    }
    trial.run_job(1, &flags[1..], &["no-such-program"]);
    assert_eq!(trial.wait_for_end(1), Some(127), "{}", trial.log(1));
    trial.run_job(1, &flags[1..], &["sh", "-c", "exit 3"]);
    trial.wait("it is started again", || trial.log(1).contains("starting it again").then_some(()));
    assert_eq!(trial.stop(1), Some(128 + 15), "{}", trial.log(1));
    let ready = trial.folder.join("ready");
    let script = format!(
        "trap 'exit 8' HUP; trap 'exit 9' USR1; touch {}; while :; do sleep 0.05; done",
        ready.display()
    );
    trial.run_job(1, &flags, &["sh", "-c", &script]);
    trial.wait("the command runs", || ready.exists().then_some(()));
    // This one is for the node alone.
    trial.signal(1, Signal::HUP);
    trial.wait("the node reloads", || {
        trial.log(1).contains("reloaded its configuration; keys: ").then_some(())
    });
    trial.signal(1, Signal::from_named_raw(10).expect("SIGUSR1"));
    assert_eq!(trial.wait_for_end(1), Some(9), "{}", trial.log(1));
}

#[test]
fn what_cannot_be_safe_is_refused() {
    let refused = |plan: &Plan, flags: &[&str]| {
        let trial = Trial::found(plan);
        let config = trial.folder_of(1).join("doyen.toml");
        let mut all = vec!["run", "--config", config.to_str().unwrap(), "--uncontained"];
        all.extend(flags);
        all.extend(["--", "true"]);
        let output = doyen(&all);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let bully = refused(&Plan { algorithm: "bully", ..Plan::default() }, &[]);
    assert!(bully.contains("bully has no leases"), "{bully}");
    let fast = refused(&Plan { profile: "fast", ..Plan::default() }, &[]);
    assert!(fast.contains("the margin does not fit the lease"), "{fast}");
    let wide = refused(&Plan::default(), &["--margin", "1s"]);
    assert!(wide.contains("or a shorter margin"), "{wide}");
}

#[test]
fn a_command_that_keeps_failing_and_a_member_without_one_are_found() {
    let mut trial = Trial::found(&Plan { preemption: "never", ..Plan::default() });
    trial.run(1);
    for member in [2, 3] {
        trial.run_job(member, &["--uncontained"], &["sh", "-c", "exit 7"]);
    }
    let leader = trial.agree(&[1, 2, 3]);
    if leader == 1 {
        trial.transfer(1, 2);
    }
    let told = trial.wait("the failures are found", || {
        let doctor = trial.command(1, &["doctor"]);
        let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
        let fails = told.contains(": leads, and the command ended with exit code 7, ");
        (fails && doctor.status.code() == Some(1)).then_some(told)
    });
    let without = "should  n1: runs no command when it leads, and n2 and n3 do";
    assert!(told.contains(without), "{told}");
}
