//! The depth-first search: one path at a time, eight bytes for each state.
//!
//! It finds long runs that a breadth-first search does not reach in time: two rules of sessions are missed only in such runs
//! (see `Scope::is_deep`).

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::time::Duration;

use doyen_sim::hash::FastHasher;

use super::space::{Space, Successors};
use super::{Found, Judge, Limit, Plan, Progress, Violation, Watch};

/// The number of states between two checks of the limits.
const INTERVAL: u64 = 4096;

/// A state on the path: how it was reached, its steps, and which of them comes next.
struct Frame<S> {
    step: Option<S>,
    steps: Successors<S>,
    next: usize,
}

/// Explores `space` depth first. It does not search for runs that never end.
pub fn search_deep<S: Space>(space: &S, plan: &Plan, watch: Watch<'_>) -> Found<S::Step> {
    Depth {
        space,
        plan,
        watch,
        began: plan.limits.now(),
        worker: space.worker(),
        judge: Judge::default(),
        seen: HashSet::default(),
        path: Vec::new(),
        spare: Vec::new(),
        cut_off: 0,
        progress: Progress::default(),
    }
    .run()
}

struct Depth<'a, S: Space> {
    space: &'a S,
    plan: &'a Plan,
    watch: Watch<'a>,
    began: Duration,
    worker: S::Worker,
    judge: Judge,
    seen: HashSet<u64, BuildHasherDefault<FastHasher>>,
    path: Vec<Frame<S::Step>>,
    /// To be reused.
    spare: Vec<Successors<S::Step>>,
    /// The number of states at the limit of depth whose steps were not followed.
    cut_off: u64,
    progress: Progress,
}

impl<S: Space> Depth<'_, S> {
    fn run(mut self) -> Found<S::Step> {
        let start = self.space.start();
        self.seen.insert(self.space.fingerprint(&mut self.worker, &start));
        let mut pending = Some((None, start));
        loop {
            if let Some((step, words)) = pending.take() {
                if let Some(claim) = self.enter(step, &words) {
                    return self.end(None, Some((claim, None)));
                }
                if let Some(limit) = self.limit() {
                    return self.end(Some(limit), None);
                }
            }
            let depth = self.path.len();
            let Some(frame) = self.path.last_mut() else { return self.end(None, None) };
            let Some(next) = frame.steps.list().get(frame.next) else {
                self.spare.extend(self.path.pop().map(|frame| frame.steps));
                continue;
            };
            frame.next += 1;
            self.progress.generated += 1;
            if let Some(claim) = next.breaks {
                let step = next.step;
                return self.end(None, Some((claim, Some(step))));
            }
            let state = frame.steps.state(next);
            let print = self.space.fingerprint(&mut self.worker, state);
            let too_deep = self.plan.limits.depth.is_some_and(|limit| depth as u32 > limit);
            if !too_deep && self.seen.insert(print) {
                pending = Some((Some(next.step), state.to_vec()));
            }
        }
    }

    /// Enters a new state; returns the claim that it breaks.
    fn enter(&mut self, step: Option<S::Step>, words: &[u32]) -> Option<usize> {
        let Self { space, worker, seen, .. } = self;
        let mut out = self.spare.pop().unwrap_or_default();
        let reduced = space.steps(worker, words, self.plan.reduce, &mut out);
        // A step to a known state may close a loop, in which a step that was left out would be put off forever.
        let mut is_known = |next| seen.contains(&space.fingerprint(worker, out.state(next)));
        if reduced && out.list().iter().any(&mut is_known) {
            space.steps(worker, words, false, &mut out);
        }
        let observation = space.observation(worker, words);
        let at_rest = !out.list().iter().any(|next| space.fairness(next.step).is_some());
        self.progress.stranded += u64::from(at_rest && out.is_stranded());
        let broken = self.judge.broken(self.space, observation, at_rest && !out.is_stranded());
        let depth = self.path.len() as u32;
        let is_deepest = self.plan.limits.depth.is_some_and(|limit| depth >= limit);
        self.cut_off += u64::from(is_deepest && !out.list().is_empty());
        self.path.push(Frame { step, steps: out, next: 0 });
        self.progress.depth = self.progress.depth.max(depth);
        broken
    }

    fn limit(&mut self) -> Option<Limit> {
        let limits = self.plan.limits;
        self.progress.states = self.seen.len() as u64;
        let is_full = self.seen.len() == self.seen.capacity();
        if !self.progress.states.is_multiple_of(INTERVAL)
            && limits.states.is_none_or(|limit| self.progress.states < limit)
            && !is_full
        {
            return None;
        }
        self.take_stock();
        if !(self.watch)(&self.progress) {
            return Some(Limit::Interrupt);
        }
        // The next state doubles the table, and both tables exist for a moment.
        let more = if is_full { 2 * self.table_bytes() } else { 0 };
        let is_too_large = limits.is_full(self.progress.memory, more);
        let reached = limits.reached(&self.progress).filter(|&limit| limit != Limit::Depth);
        reached.or(is_too_large.then_some(Limit::Memory))
    }

    /// The bytes of the table of states: at most seven of eight places are filled, and each has one more byte.
    fn table_bytes(&self) -> u64 {
        self.seen.capacity() as u64 * 9 * 8 / 7
    }

    fn take_stock(&mut self) {
        let frames: u64 = self.path.iter().map(|frame| frame.steps.bytes()).sum();
        self.progress.states = self.seen.len() as u64;
        self.progress.memory = self.table_bytes() + frames;
        self.progress.frontier = self.path.len() as u64 + self.cut_off;
        self.progress.elapsed = self.plan.limits.now().saturating_sub(self.began);
    }

    /// The result. `broken`: a claim, and the step that broke it, unless a state did.
    fn end(
        mut self,
        limit: Option<Limit>,
        broken: Option<(usize, Option<S::Step>)>,
    ) -> Found<S::Step> {
        self.take_stock();
        let violation = broken.map(|(claim, last)| {
            let path = self.path.iter().filter_map(|frame| frame.step).chain(last).collect();
            Violation { claim, path, cycle: Vec::new() }
        });
        let is_cut = violation.is_none() && self.cut_off > 0;
        let limit = limit.or(is_cut.then_some(Limit::Depth));
        let void = violation.is_none() && !self.space.is_sound();
        Found { progress: self.progress, limit, violation, sought_endless: false, void }
    }
}
