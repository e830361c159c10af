//! Rounds of abuse, and what they took.
//!
//! A test does one round; `make chaos` sets `CHAOS_ROUNDS` and does many, with the same code, and prints a row of a table for
//! each kind. A round in which the whole machine stalled is counted and shown, not left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long the machine may keep a sleeping thread waiting: the margin of the profile lan.
pub const STALL: Duration = Duration::from_millis(50);

/// How many rounds of each kind are to be done.
pub fn rounds() -> usize {
    std::env::var("CHAOS_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// How many rounds are to be done of a kind that takes long: `make chaos` is to end within an hour.
pub fn few_rounds() -> usize {
    rounds().div_ceil(5)
}

/// What the rounds of one kind took.
#[derive(Debug)]
pub struct Tally {
    kind: &'static str,
    took: Vec<Duration>,
    stalls: usize,
    worst_stall: Duration,
}

impl Tally {
    /// Of rounds of this kind.
    pub fn new(kind: &'static str) -> Self {
        Self { kind, took: Vec::new(), stalls: 0, worst_stall: Duration::ZERO }
    }

    /// Does a round, and measures it. Returns whether the machine stalled.
    pub fn round(&mut self, act: impl FnOnce()) -> bool {
        let watch = Watch::start();
        let begun = Instant::now();
        act();
        self.took.push(begun.elapsed());
        let stall = watch.end();
        let has_stalled = stall > STALL;
        self.stalls += usize::from(has_stalled);
        self.worst_stall = self.worst_stall.max(stall);
        has_stalled
    }
}

impl Drop for Tally {
    /// Prints the row, if there were many rounds and all of them went well.
    fn drop(&mut self) {
        if self.took.len() < 2 || thread::panicking() {
            return;
        }
        self.took.sort_unstable();
        let part = |share: usize| self.took[(self.took.len() - 1) * share / 100].as_millis();
        let (kind, rounds, stalls) = (self.kind, self.took.len(), self.stalls);
        println!(
            "| {kind} | {rounds} | 0 | {} | {} | {} | {stalls}, worst {} ms |",
            part(50),
            part(95),
            part(100),
            self.worst_stall.as_millis()
        );
    }
}

/// Tells threads beside a test that it is over, also if it panics: a scope waits for all of its threads, however long they take.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Notices when the whole machine stalls: a thread that sleeps for a moment wakes much later.
pub struct Watch {
    done: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Watch {
    /// Begins.
    pub fn start() -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let is_done = Arc::clone(&done);
        let thread = thread::spawn(move || {
            let (pause, mut worst) = (Duration::from_millis(2), Duration::ZERO);
            while !is_done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                thread::sleep(pause);
                worst = worst.max(begun.elapsed().saturating_sub(pause));
            }
            worst
        });
        Self { done, thread }
    }

    /// The longest that the thread slept too long.
    pub fn end(self) -> Duration {
        self.done.store(true, Ordering::Relaxed);
        self.thread.join().expect("the thread measures")
    }
}
