//! Crash hand-over: the node of a leader is killed on a machine that lives, three members in network namespaces of their
//! own, each with a job of three processes.
//!
//! Measured is the time from the signal until another member has published a lease in its lease file, by the boot-time clock
//! that all of them share. The lease files are read without pause, which costs a processor.

use std::thread::{sleep, yield_now};
use std::time::Duration;

use doyen::clock::Moment;
use doyen::guardian::lease_file::LeaseReader;
use rustix::process::Signal;

use crate::support::rounds::{STALL, Watch};
use crate::support::wires::Wires;
use crate::support::{Plan, Trial};

const JOB: [&str; 3] = ["sh", "-c", "sleep 1000 & sleep 1000 & wait"];
const PATIENCE: Duration = Duration::from_secs(10);

/// Kills so many leaders; the times in milliseconds, and how often the machine stalled meanwhile. None if namespaces cannot
/// be made here.
pub(super) fn measure(kills: usize) -> Option<(Vec<f64>, usize)> {
    let wires = Wires::lay(3)?;
    let mut trial = wires.found(&Plan { preemption: "never", ..Plan::default() });
    for member in trial.everybody() {
        run(&mut trial, member);
    }
    let (mut times, mut stalls) = (Vec::new(), 0);
    for kill in 0..kills {
        let leader = trial.agree(&[1, 2, 3]);
        // Not always at the same moment of a heartbeat, and after the others have acknowledged some.
        sleep(Duration::from_millis(500 + 7 * kill as u64 % 50));
        let others = trial.everybody().into_iter().filter(|&member| member != leader);
        let readers: Vec<LeaseReader> = others
            .map(|member| LeaseReader::open(&lease_file(&trial, member)).expect("a lease file"))
            .collect();
        let watch = Watch::start();
        let killed = Moment::now();
        trial.signal(leader, Signal::KILL);
        let leads = loop {
            if readers.iter().any(LeaseReader::is_valid) {
                break Moment::now();
            }
            assert!(Moment::now().since(killed) < PATIENCE, "no other member leads");
            yield_now();
        };
        times.push(leads.since(killed).as_secs_f64() * 1000.0);
        stalls += usize::from(watch.end() > STALL);
        trial.wait_for_end(leader);
        run(&mut trial, leader);
    }
    Some((times, stalls))
}

fn lease_file(trial: &Trial, member: usize) -> std::path::PathBuf {
    trial.folder.join(format!("lease-{member}"))
}

fn run(trial: &mut Trial, member: usize) {
    let lease_file = lease_file(trial, member);
    trial.run_job(member, &["--lease-file", lease_file.to_str().expect("a plain path")], &JOB);
}
