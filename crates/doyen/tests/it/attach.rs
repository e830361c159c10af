//! `doyen run --attach`: a command under the lease of a node that runs in another process.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::support::{Plan, Trial, program, skip};
use doyen::guardian::contain::Containment;
use doyen::guardian::lease_file::LeaseFile;

/// As in `run.rs`: a copy that starts while one process of an earlier copy is alive says so.
const JOB: &str = r#"
    exec 9> "$1/lock"
    flock -n 9 || echo "$DOYEN_TOKEN" >> "$1/overlaps"
    sleep 1000 &
    echo "$DOYEN_TOKEN" >> "$1/starts"
    trap 'exit 0' TERM
    while :; do sleep 0.01; done
"#;

/// Three nodes, and a `doyen run` beside each.
struct Beside {
    trial: Trial,
    folder: PathBuf,
    runs: Vec<Child>,
}

impl Beside {
    fn start() -> Self {
        let plan = Plan { profile: "wan", preemption: "never", ..Plan::default() };
        let mut trial = Trial::found(&plan);
        let folder = trial.folder.join("job");
        fs::create_dir(&folder).unwrap();
        let lease_file = |trial: &Trial, member: usize| {
            trial.folder.join(format!("lease-{member}")).to_str().unwrap().to_owned()
        };
        for member in trial.everybody() {
            let file = lease_file(&trial, member);
            trial.run_with(member, &["--lease-file", &file]);
        }
        trial.agree(&[1, 2, 3]);
        let runs = trial.everybody().into_iter().map(|member| {
            let log = fs::File::create(trial.folder.join(format!("run-{member}"))).unwrap();
            let http = trial.url(member).trim_start_matches("http://");
            let mut command = Command::new(program());
            command.args(["run", "--attach", "--http", http, "--config"]);
            command.arg(trial.folder_of(member).join("doyen.toml"));
            command.args([
                "--lease-file",
                &lease_file(&trial, member),
                "--",
                "sh",
                "-c",
                JOB,
                "job",
            ]);
            command.arg(&folder).stdin(Stdio::null()).stderr(log);
            command.spawn().expect("doyen run starts")
        });
        let runs = runs.collect();
        Self { trial, folder, runs }
    }

    fn tokens(&self) -> Vec<u64> {
        let text = fs::read_to_string(self.folder.join("starts")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn wait_for_more(&self, count: usize) -> usize {
        self.trial.wait("a start of the job", || {
            Some(self.tokens().len()).filter(|&starts| starts > count)
        })
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for run in &mut self.runs {
            let _ = run.kill();
            let _ = run.wait();
        }
    }
}

#[test]
fn a_command_beside_a_node_moves_with_its_lease_and_never_runs_twice() {
    if Containment::available().expect("a thread").is_none() {
        return skip("run --attach: no PID namespaces and no cgroup v2 that may be written to");
    }
    let mut beside = Beside::start();
    let starts = beside.wait_for_more(0);
    let leader = beside.trial.agree(&[1, 2, 3]);
    beside.trial.resign(leader);
    let starts = beside.wait_for_more(starts);
    let second = beside.trial.agree(&[1, 2, 3]);
    assert_ne!(second, leader);
    // A planned restart: the file is the same, and the command beside the node goes on working.
    assert_eq!(beside.trial.stop(leader), Some(0));
    let file = beside.trial.folder.join(format!("lease-{leader}"));
    beside.trial.run_with(leader, &["--lease-file", file.to_str().unwrap()]);
    assert_eq!(beside.trial.agree(&[1, 2, 3]), second);
    let starts = beside.tokens().len().max(starts);
    beside.trial.transfer(second, leader);
    let starts = beside.wait_for_more(starts);
    let second = beside.trial.agree(&[1, 2, 3]);
    assert_eq!(second, leader);
    // The node dies, and nothing releases its lease: the command is killed before that is over.
    beside.trial.kill(second);
    let starts = beside.wait_for_more(starts);
    // `doyen run` dies: its guardian ends the command.
    let others: Vec<usize> = (1..=3).filter(|&member| member != second).collect();
    let third = beside.trial.agree(&others);
    beside.runs[third - 1].kill().unwrap();
    beside.runs[third - 1].wait().unwrap();
    beside.trial.wait("the command to be gone", || {
        let free =
            Command::new("flock").arg("-n").arg(beside.folder.join("lock")).arg("true").status();
        free.expect("flock").success().then_some(())
    });
    assert_eq!(beside.tokens().len(), starts);
    let overlaps = fs::read_to_string(beside.folder.join("overlaps")).unwrap_or_default();
    assert_eq!(overlaps, "", "copies that started while an earlier one was alive");
    let tokens = beside.tokens();
    assert!(tokens.is_sorted_by(|one, next| one < next), "tokens rise: {tokens:?}");
}

#[test]
fn without_a_node_that_publishes_its_lease_it_says_what_to_start() {
    let trial = Trial::start(&Plan { members: 1, ..Plan::default() });
    trial.follow(1, &[1]);
    let lease_file = trial.folder.join("lease");
    for is_left in [false, true] {
        // Of a node that has ended.
        if is_left {
            drop(LeaseFile::create(&lease_file).unwrap());
        }
        // It would wait for a lease otherwise.
        let output = Command::new("timeout")
            .args(["10", program(), "run", "--attach", "--uncontained", "--config"])
            .arg(trial.folder_of(1).join("doyen.toml"))
            .arg("--lease-file")
            .arg(&lease_file)
            .args(["--", "true"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(125) && text.contains("doyen node --lease-file"),
            "{text}"
        );
    }
}
