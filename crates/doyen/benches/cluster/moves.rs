//! A planned move of a job, while the health of the leader is asked a hundred times a second.
//!
//! Measured is the time between the end of the job on the old leader and its start on the new one, by the clock of the machine:
//! what the job itself takes to stop is not in it.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{Plan, Trial};

/// Writes down when it starts and when it is told to stop; stops at once.
const JOB: &str = r#"
    trap 'date +%s%N >> "$1/ends"; exit' TERM
    date +%s%N >> "$1/starts"
    while :; do sleep 0.002; done
"#;

/// Moves the job so often; the times in milliseconds.
pub(super) fn measure(moves: usize) -> Vec<f64> {
    let mut trial = Trial::found(&Plan { preemption: "never", ..Plan::default() });
    let folder = trial.folder.join("job");
    fs::create_dir(&folder).expect("a folder");
    let words = ["sh", "-c", JOB, "job", folder.to_str().expect("a plain path")];
    for member in trial.everybody() {
        let lease_file = trial.folder.join(format!("lease-{member}"));
        let flags = ["--uncontained", "--lease-file", lease_file.to_str().expect("a plain path")];
        trial.run_job(member, &flags, &words);
    }
    let times = |name: &str| -> Vec<u64> {
        let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                trial.everybody().into_iter().for_each(|member| drop(trial.get(member, "/leader")));
                thread::sleep(Duration::from_millis(10));
            }
        });
        for number in 1..=moves {
            let leader = trial.agree(&[1, 2, 3]);
            trial.wait("the job to run", || (times("starts").len() == number).then_some(()));
            thread::sleep(Duration::from_millis(300));
            assert!(trial.command(leader, &["resign"]).status.success(), "n{leader} resigns");
            trial.wait("the job to start again", || (times("starts").len() > number).then_some(()));
        }
        done.store(true, Ordering::Relaxed);
    });
    let (starts, ends) = (times("starts"), times("ends"));
    starts.iter().skip(1).zip(&ends).map(|(start, end)| (start - end) as f64 / 1e6).collect()
}
