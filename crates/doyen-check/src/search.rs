//! Searches a [`Space`] for a run that breaks a claim.
//!
//! The search is breadth first, so the first violation that it finds is as short as possible (`search/bfs.rs`). Claims
//! about states, about steps and about states without further steps are judged on the way. Claims about runs that never end
//! need the graph of all states, which the search writes down if there is such a claim (`search/graph.rs`).
//!
//! A depth-first search (`search/dfs.rs`) finds long violations with less memory; it does not search for endless runs.

mod bfs;
mod crew;
mod dfs;
mod graph;
mod level;
mod seen;
pub mod space;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bfs::Search;
pub use dfs::search_deep;
use space::{Claim, Space, Successor, Successors};

/// How to search.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whether redundant orders and states are left out.
    pub reduce: bool,
    /// The number of threads.
    pub threads: usize,
    /// When to stop.
    pub limits: Limits,
}

/// When to stop, even if not everything was explored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The number of states. A search exceeds it by no more than the successors of one state for each thread.
    pub states: Option<u64>,
    /// The time, by `clock`.
    pub time: Option<Duration>,
    /// The bytes that the search keeps (see [`Progress::memory`]), or that the whole process takes by `resident`.
    pub memory: Option<u64>,
    /// Returns the bytes that the whole process takes, if they count.
    pub resident: Option<fn() -> u64>,
    /// The number of steps from the start.
    pub depth: Option<u32>,
    /// Stops the search when it becomes true.
    pub interrupt: Option<&'static AtomicBool>,
    /// Returns the time since a fixed moment. Without a clock no time passes.
    pub clock: Option<fn() -> Duration>,
}

/// The limit that stopped a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Of states.
    States,
    /// Of time.
    Time,
    /// Of memory.
    Memory,
    /// Of steps from the start.
    Depth,
    /// The search was interrupted.
    Interrupt,
}

/// The progress of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Different states.
    pub states: u64,
    /// Steps tried.
    pub generated: u64,
    /// The distance of the farthest state from the start, in steps.
    pub depth: u32,
    /// States whose steps have not been tried.
    pub frontier: u64,
    /// Bytes of the table of states, of the states whose steps are to be tried, and of the graph. Local states and messages,
    /// each of which is stored once, are not counted.
    pub memory: u64,
    /// The time that it has taken, by the clock of the [`Limits`].
    pub elapsed: Duration,
    /// States in which a timer is armed that may not expire any more.
    pub stranded: u64,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Found<S> {
    /// How much was explored.
    pub progress: Progress,
    /// The limit that stopped the search.
    pub limit: Option<Limit>,
    /// A run that breaks a claim.
    pub violation: Option<Violation<S>>,
    /// Whether runs that never end were searched for.
    pub sought_endless: bool,
    /// Something was left out that may matter: the result counts only if it is a violation.
    pub void: bool,
}

/// A run that breaks a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation<S> {
    /// The number of the claim.
    pub claim: usize,
    /// The steps to the violation.
    pub path: Vec<S>,
    /// The steps that then repeat forever.
    pub cycle: Vec<S>,
}

impl<S> Found<S> {
    /// A search that has explored everything and has found nothing.
    fn nothing(progress: Progress) -> Self {
        Self { progress, limit: None, violation: None, sought_endless: false, void: false }
    }
}

/// Receives the progress of a search from time to time; returns whether to continue.
pub type Watch<'w> = &'w (dyn Fn(&Progress) -> bool + Sync);

/// Explores `space` until a claim is broken, everything has been explored or a limit is reached.
pub fn search<S: Space>(space: &S, plan: &Plan, watch: Watch<'_>) -> Found<S::Step> {
    Search::new(space, plan, watch).run()
}

impl Limits {
    /// What is left for a search after others that took `spent` together. Their memory is free again, and every search
    /// starts at the beginning.
    pub fn left_after(self, spent: &Progress) -> Self {
        Self {
            states: self.states.map(|states| states.saturating_sub(spent.states)),
            time: self.time.map(|time| time.saturating_sub(spent.elapsed)),
            ..self
        }
    }

    /// The time since a fixed moment.
    pub(crate) fn now(&self) -> Duration {
        self.clock.map_or(Duration::ZERO, |clock| clock())
    }

    /// Whether the search was interrupted.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.is_some_and(|wanted| wanted.load(Ordering::Relaxed))
    }

    /// Whether `more` bytes would be too many besides the `counted` ones, or besides those of the whole process.
    fn is_full(&self, counted: u64, more: u64) -> bool {
        let taken = || self.resident.map_or(counted, |resident| resident().max(counted));
        self.memory.is_some_and(|most| taken() + more > most)
    }

    /// The limit that has been reached, if any.
    fn reached(&self, progress: &Progress) -> Option<Limit> {
        let reached = |limit: Option<u64>, is: u64| limit.is_some_and(|limit| is >= limit);
        if self.is_interrupted() {
            Some(Limit::Interrupt)
        } else if reached(self.states, progress.states) {
            Some(Limit::States)
        } else if self.time.is_some_and(|limit| progress.elapsed >= limit) {
            Some(Limit::Time)
        } else if reached(self.memory, progress.memory) {
            Some(Limit::Memory)
        } else if reached(self.depth.map(u64::from), u64::from(progress.depth)) {
            Some(Limit::Depth)
        } else {
            None
        }
    }
}

/// The steps along a path of fingerprints, and the state at its end.
fn retrace<S: Space>(
    space: &S,
    worker: &mut S::Worker,
    path: &[u64],
    reduce: bool,
) -> (Vec<S::Step>, Vec<u32>) {
    let mut state = space.start();
    let mut steps = Vec::new();
    let mut out = Successors::new();
    for &wanted in &path[1..] {
        let mut follow = |worker: &mut S::Worker, reduce: bool| {
            space.steps(worker, &state, reduce, &mut out);
            let leads_on = |next: &&Successor<S::Step>| {
                space.fingerprint(worker, out.state(next)).max(1) == wanted.max(1)
            };
            out.list().iter().find(leads_on).map(|next| (next.step, out.state(next).to_vec()))
        };
        let found = follow(worker, reduce).or_else(|| follow(worker, false));
        let (step, reached) = found.expect("the path was found by the same steps");
        steps.push(step);
        state = reached;
    }
    (steps, state)
}

/// Memoises which claim an observation breaks.
#[derive(Default)]
struct Judge {
    /// By observation: the first broken claim, in any state and in a state at rest.
    broken: Vec<Option<[Option<usize>; 2]>>,
}

impl Judge {
    /// The claim that a state with this observation breaks.
    #[inline]
    fn broken<S: Space>(&mut self, space: &S, observation: u32, at_rest: bool) -> Option<usize> {
        let observation = observation as usize;
        if observation >= self.broken.len() {
            self.broken.resize(observation + 1, None);
        }
        let verdict = self.broken[observation].get_or_insert_with(|| {
            let breaks = |judged: fn(&Claim) -> bool| {
                let claims = space.claims().iter().enumerate().filter(|(_, claim)| judged(claim));
                claims
                    .map(|(number, _)| number)
                    .find(|&number| !space.holds(number, observation as u32))
            };
            let anywhere = |claim: &Claim| matches!(claim, Claim::Always);
            let at_rest = |claim: &Claim| !matches!(claim, Claim::NoStep);
            [breaks(anywhere), breaks(at_rest)]
        });
        verdict[usize::from(at_rest)]
    }
}
