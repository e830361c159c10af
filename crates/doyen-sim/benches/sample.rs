//! Measurements, for every benchmark: each is a process of its own, the benchmark's program started again, so that its
//! peak memory belongs to one work.

use std::env;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// The argument that makes a benchmark measure what the arguments after it name, and print the sample.
pub(crate) const MEASURE: &str = "--measure";
/// How often everything is measured.
const ROUNDS: &str = "DOYEN_BENCH_ROUNDS";

/// One measurement, or what many come to.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// How much was done: messages, or states.
    pub(crate) count: u64,
    pub(crate) time: Duration,
    /// The most memory that the process ever had, in bytes, where the system tells.
    pub(crate) peak: Option<u64>,
}

impl Sample {
    /// Ends a measuring process: tells the one that has started it what came out.
    pub(crate) fn print(count: u64, time: Duration) {
        println!("{count} {} {}", time.as_nanos(), peak().unwrap_or(0));
    }

    /// Starts a measuring process.
    pub(crate) fn take(what: &[&str]) -> Self {
        let program = env::current_exe().expect("this program has a path");
        let output = Command::new(program).arg(MEASURE).args(what).output();
        let output = output.expect("this program starts again");
        let failure = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{what:?}: {failure}");
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|it| it.parse().ok()).collect();
        let [count, nanos, peak] = numbers[..] else { panic!("{what:?} printed `{text}`") };
        let peak = (peak > 0).then_some(peak);
        Self { count, time: Duration::from_nanos(nanos), peak }
    }

    /// The median time and the highest peak of samples of the same work.
    pub(crate) fn middle(samples: &[Self]) -> Self {
        let mut times: Vec<Duration> = samples.iter().map(|sample| sample.time).collect();
        times.sort_unstable();
        let middle = times.len() / 2;
        let is_odd = times.len() % 2 == 1;
        let time = if is_odd { times[middle] } else { (times[middle - 1] + times[middle]) / 2 };
        let peak = samples.iter().filter_map(|sample| sample.peak).max();
        Self { time, peak, count: samples[0].count }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.time.as_secs_f64()
    }

    /// How much was done in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.count as f64 / self.seconds()
    }

    pub(crate) fn megabytes(&self) -> Option<f64> {
        self.peak.map(|bytes| bytes as f64 / 1e6)
    }

    /// The peak as a column of a table.
    pub(crate) fn peak_column(&self) -> String {
        self.megabytes().map_or("?".to_owned(), |peak| format!("{peak:.1}"))
    }
}

/// The most memory that this process ever had, in bytes, where the system tells.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// How many rounds the user wants.
pub(crate) fn rounds_asked_for() -> Option<u32> {
    let text = env::var(ROUNDS).ok()?;
    let rounds = text.parse().ok().filter(|&rounds| rounds > 0);
    if rounds.is_none() {
        eprintln!("{ROUNDS} is `{text}`, which is no number of rounds such as 3: ignored");
    }
    rounds
}

/// Measures these works in turn, and in the other order every second round: a machine that is busy for a while slows
/// down all of them. Samples by work.
pub(crate) fn take_turns(
    works: usize,
    rounds: u32,
    measure: impl Fn(usize) -> Sample,
) -> Vec<Vec<Sample>> {
    let mut samples = vec![Vec::new(); works];
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for turn in 0..works {
            let work = if round % 2 == 0 { turn } else { works - 1 - turn };
            samples[work].push(measure(work));
        }
    }
    samples
}

/// Whether a target was reached, in words.
pub(crate) fn verdict(reached: bool) -> &'static str {
    if reached { "reached" } else { "not reached" }
}
