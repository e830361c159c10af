//! The lease file of a real node: a transfer waits for a program that has locked it, and the readers in
//! `examples/lease-file/` fail closed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Plan, Trial, skip};
use doyen::clock::Moment;
use doyen::guardian::lease_file::{Lease, LeaseReader};

/// Three members that run a job while they lead, with leases of more than two seconds; and the leader.
struct Jobs {
    trial: Trial,
    leader: usize,
}

impl Jobs {
    fn start() -> Self {
        let plan = Plan { profile: "wan", preemption: "never", ..Plan::default() };
        let mut trial = Trial::found(&plan);
        for member in trial.everybody() {
            let file = lease_file(&trial, member);
            let flags = ["--uncontained", "--lease-file", file.to_str().expect("a plain path")];
            trial.run_job(member, &flags, &["sleep", "1000"]);
        }
        let leader = trial.agree(&[1, 2, 3]);
        Self { trial, leader }
    }

    fn file(&self) -> PathBuf {
        lease_file(&self.trial, self.leader)
    }

    fn wait_for_lease(&self, reader: &LeaseReader) -> Lease {
        self.trial.wait("a lease in the file", || reader.read().ok().flatten())
    }

    /// The leader resigns, and the file shows no lease any more. Returns a lease that it showed before.
    fn resign(&self, reader: &LeaseReader) -> Lease {
        let shown = self.trial.wait("the resignation to be accepted", || {
            let shown = reader.read().ok().flatten()?;
            self.trial.command(self.leader, &["resign"]).status.success().then_some(shown)
        });
        self.trial.wait("the deadline to be zero", || {
            reader.read().expect("a lease file").is_none().then_some(())
        });
        shown
    }

    /// Follows leadership to the member that has it now.
    fn go_on(&mut self) {
        self.wait_for_another();
        self.leader = self.trial.agree(&[1, 2, 3]);
    }

    fn another_leads(&self) -> bool {
        let mut others = [1, 2, 3].into_iter().filter(|&member| member != self.leader);
        others.any(|member| self.trial.get(member, "/leader").is_some())
    }

    fn wait_for_another(&self) -> Moment {
        self.trial.wait("another leader", || self.another_leads().then(Moment::now))
    }
}

fn lease_file(trial: &Trial, member: usize) -> PathBuf {
    trial.folder.join(format!("lease-{member}"))
}

#[test]
fn a_transfer_waits_for_a_program_that_has_locked_the_file_and_goes_on_when_it_lets_go() {
    let mut jobs = Jobs::start();
    // Of those in time a few may have been too long under way, on a busy machine: one that waits for the deadline does so each
    // time.
    let mut seen = Vec::new();
    while seen.len() < ROUNDS && !seen.contains(&Some(true)) {
        seen.push(goes_on_before_the_deadline(&jobs));
        jobs.go_on();
    }
    let late = seen.iter().filter(|&&it| it == Some(false)).count();
    assert!(seen.contains(&Some(true)) && late < ROUNDS / 2, "before the deadline: {seen:?}");
}

/// How often it is looked whether a transfer goes on before the deadline.
const ROUNDS: usize = 6;

/// Whether another member led before the deadline that a program has seen, as soon as that has unlocked the file. None if
/// the job took too long to stop, so that the file was not unlocked in time.
fn goes_on_before_the_deadline(jobs: &Jobs) -> Option<bool> {
    let reader = LeaseReader::open(&jobs.file()).expect("a lease file");
    jobs.wait_for_lease(&reader);
    let lock = File::open(jobs.file()).expect("a lease file");
    lock.lock_shared().expect("a lock");
    let shown = jobs.resign(&reader);
    sleep(Duration::from_millis(300));
    let (another_leads, lease) = (jobs.another_leads(), reader.read().expect("a lease file"));
    if Moment::now() >= shown.deadline {
        return None;
    }
    assert!(!another_leads, "another member leads while a program acts under the old lease");
    assert!(lease.is_none(), "renewals do not show it again");
    lock.unlock().expect("it is locked");
    Some(jobs.wait_for_another() < shown.deadline)
}

#[test]
fn a_transfer_waits_for_a_program_no_longer_than_until_the_deadline_that_it_saw() {
    let jobs = Jobs::start();
    let reader = LeaseReader::open(&jobs.file()).expect("a lease file");
    jobs.wait_for_lease(&reader);
    let lock = File::open(jobs.file()).expect("a lease file");
    lock.lock_shared().expect("a lock");
    let shown = jobs.resign(&reader);
    let led = jobs.wait_for_another();
    assert!(led >= shown.deadline, "another member leads while a program acts under the old lease");
}

/// How a reader is called.
struct Example {
    name: &'static str,
    command: Vec<PathBuf>,
}

impl Example {
    /// What of the three can be run here.
    fn all(folder: &Path) -> Vec<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lease-file");
        let runs = |program: &str| {
            let found = Command::new(program).arg("--version").output().is_ok();
            if !found {
                skip(&format!(
                    "a reader of lease files: {program} is not installed (`make tools`)"
                ));
            }
            found
        };
        let mut examples = Vec::new();
        if runs("cc") {
            let program = folder.join("reader");
            let compiled = Command::new("cc")
                .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"])
                .args([&program, &source.join("reader.c")])
                .output()
                .expect("cc can be run");
            assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
            examples.push(Self { name: "C", command: vec![program] });
        }
        if runs("python3") {
            let command = vec!["python3".into(), source.join("reader.py")];
            examples.push(Self { name: "Python", command });
        }
        if runs("flock") {
            examples
                .push(Self { name: "sh", command: vec!["sh".into(), source.join("reader.sh")] });
        }
        examples
    }

    fn command(&self, file: &Path) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).arg(file).stdin(Stdio::null());
        command
    }

    fn read(&self, file: &Path) -> Output {
        self.command(file).output().expect("it runs")
    }

    fn assert_refuses(&self, file: &Path, why: &str) {
        let output = self.read(file);
        assert_eq!(output.status.code(), Some(1), "{}, {why}: {output:?}", self.name);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "no lease\n", "{}, {why}", self.name);
    }
}

#[test]
fn the_readers_see_the_lease_and_fail_closed() {
    let mut jobs = Jobs::start();
    let (file, folder) = (jobs.file(), jobs.trial.folder.clone());
    let reader = LeaseReader::open(&file).expect("a lease file");
    let examples = Example::all(&folder);
    let lease = jobs.wait_for_lease(&reader);
    for example in &examples {
        let output = example.read(&file);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}: {output:?}", example.name);
        let prefix = format!("term {}, ", lease.term);
        let left = text.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(" ms left\n"));
        let left: u64 = left.and_then(|left| left.parse().ok()).expect(&text);
        assert!((1..=2_500).contains(&left), "{}: {text}", example.name);
        let follower = [1, 2, 3].into_iter().find(|&member| member != jobs.leader);
        example.assert_refuses(&lease_file(&jobs.trial, follower.unwrap()), "a deadline of zero");
        example.assert_refuses(&folder.join("no-such-file"), "no file");
        for (at, why) in [
            (0, "another magic"),
            (8, "another version"),
            (16, "half written"),
            (50, "another boot"),
            (64, "another time namespace"),
        ] {
            let copy = folder.join("copy");
            let mut bytes = fs::read(&file).expect("a lease file");
            bytes[at] ^= 1;
            fs::write(&copy, &bytes).expect("a copy");
            example.assert_refuses(&copy, why);
            fs::write(&copy, &bytes[..79]).expect("a copy");
            example.assert_refuses(&copy, "cut short");
        }
        waits_for_the_lock(example, &file);
    }
    jobs.trial.kill(jobs.leader);
    jobs.trial.wait("the lease to be over", || (!reader.is_valid()).then_some(()));
    for example in &examples {
        example.assert_refuses(&file, "doyen is dead");
    }
}

/// A reader takes the lock before it reads: whoever waits for its end knows that it reads nothing old.
fn waits_for_the_lock(example: &Example, file: &Path) {
    let copy = file.with_extension("locked");
    fs::copy(file, &copy).expect("a copy");
    let lock = File::options().write(true).open(&copy).expect("a copy");
    lock.lock().expect("a lock");
    let mut child = example.command(&copy).stdout(Stdio::piped()).spawn().expect("it starts");
    sleep(Duration::from_millis(300));
    assert!(
        child.try_wait().expect("it can be waited for").is_none(),
        "{} does not lock",
        example.name
    );
    rustix::io::pwrite(&lock, &[0; 8], 24).expect("it can be written");
    lock.unlock().expect("it is locked");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{} read what was there before", example.name);
}
