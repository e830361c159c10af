//! The breadth-first search: level by level, on any number of threads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Scope};
use std::time::Duration;

use super::crew::Helper;
use super::graph::{Graph, Node};
use super::level::{Batch, Level, StateBuffer, Waiting};
use super::seen::{Inserted, Keeps, Origin, Quota, Seen};
use super::space::{Claim, Reached, Space, Successors};
use super::{Found, Judge, Limit, Plan, Progress, Violation, Watch, retrace};

/// With fewer states in a level than this, one thread is faster than many.
const WORTH_SHARING: usize = 512;
/// The time between two reports of progress, in milliseconds.
const PROGRESS_INTERVAL: u64 = 100;

/// A breadth-first search.
pub(super) struct Search<'a, S: Space> {
    space: &'a S,
    plan: &'a Plan,
    watch: Watch<'a>,
    began: Duration,
    seen: Seen,
    level: Level,
    numbered: AtomicU32,
    graph: Option<Graph>,
    /// As it was at the end of the last level; the next three fields are current.
    progress: Progress,
    states: AtomicU64,
    generated: AtomicU64,
    /// The bytes of the next level that each thread has found.
    buffered: Vec<AtomicU64>,
    /// When progress was last reported, in milliseconds from the beginning.
    last_report: AtomicU64,
    /// The limit that was reached in the middle of a level.
    stopped: OnceLock<Limit>,
}

/// One thread's share of a level. No two are in one cache line, so that threads do not wait for each other's writes.
#[repr(align(128))]
struct Share<S: Space> {
    worker: S::Worker,
    judge: Judge,
    out: Successors<S::Step>,
    /// The states that it has taken from the level. Some are left at its end only if the table of states had no room.
    batch: Batch,
    /// The number of states that it may add to the table.
    quota: Quota,
    /// The states of the next level that it has found, and how many of them have been counted.
    next: StateBuffer,
    counted: usize,
    generated: u64,
    stranded: u64,
    broken: Option<Broken<S::Step>>,
    /// For the graph: the states, and where their steps lead.
    edges: Vec<u32>,
    nodes: Vec<Node>,
}

/// The other threads: each is given its share of a level and gives it back.
type Helpers<'a, S> = Vec<Helper<(Arc<Search<'a, S>>, Share<S>), Share<S>>>;

/// A broken claim: in this state, or by this step from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Broken<S> {
    print: u64,
    claim: usize,
    step: Option<S>,
}

impl<'a, S: Space> Search<'a, S> {
    pub(super) fn new(space: &'a S, plan: &'a Plan, watch: Watch<'a>) -> Self {
        let endless = |claim: &Claim| !matches!(claim, Claim::Always | Claim::NoStep);
        let graph = space.claims().iter().any(endless).then(Graph::new);
        Self {
            space,
            plan,
            watch,
            began: plan.limits.now(),
            // Only the reduction needs the distance from the start.
            seen: Seen::new(Keeps { numbers: graph.is_some(), depths: plan.reduce }),
            level: Level::new(plan.threads.max(1)),
            numbered: AtomicU32::new(0),
            graph,
            progress: Progress::default(),
            states: AtomicU64::new(1),
            generated: AtomicU64::new(0),
            buffered: (0..plan.threads.max(1)).map(|_| AtomicU64::new(0)).collect(),
            last_report: AtomicU64::new(0),
            stopped: OnceLock::new(),
        }
    }

    pub(super) fn run(mut self) -> Found<S::Step> {
        let threads = self.plan.threads.max(1);
        let mut shares: Vec<Share<S>> = (0..threads).map(|_| Share::new(self.space)).collect();
        self.begin(&mut shares);
        // Threads share the search while they are at work. In between there is one owner.
        let mut search = Arc::new(self);
        thread::scope(|scope| {
            let mut helpers = Vec::new();
            loop {
                Self::expand(&mut search, &mut shares, &mut helpers, scope);
                if let Some(found) = owned(&mut search).end_level(&mut shares) {
                    return found;
                }
            }
        })
    }

    /// Ends a level whose states have been tried, as far as the limits allow; returns what was found if the search ends.
    fn end_level(&mut self, shares: &mut [Share<S>]) -> Option<Found<S::Step>> {
        let put_off: usize = shares.iter().map(|share| share.batch.len()).sum();
        let left_over = self.level.left() + put_off;
        let broken = shares.iter().filter_map(|share| share.broken);
        if let Some(broken) = broken.min_by_key(|it| (it.print, it.claim)) {
            self.progress = self.progress_now(left_over);
            let violation = Some(self.explain(&mut shares[0].worker, broken));
            return Some(Found { violation, ..Found::nothing(self.progress) });
        }
        self.gather(shares);
        let is_over = self.level.len() == 0;
        self.progress.depth += u32::from(!is_over);
        self.progress = self.progress_now(self.level.len() + left_over);
        if !(self.watch)(&self.progress) {
            self.stopped.get_or_init(|| Limit::Interrupt);
        }
        if !self.space.is_sound() {
            return Some(Found { void: true, ..Found::nothing(self.progress) });
        }
        let reached = || self.plan.limits.reached(&self.progress);
        let is_left = self.progress.frontier > 0;
        let limit = self.stopped.get().copied().or_else(reached).filter(|_| is_left);
        if !is_over && limit.is_none() {
            return None;
        }
        // Only a complete graph shows endless runs: at a limit states lack their steps.
        let whole = self.graph.take().filter(|_| limit.is_none());
        let sought_endless = whole.is_some();
        let violation = whole
            .and_then(|graph| graph.find_endless(self.space, &self.seen, &mut shares[0].worker));
        self.progress.elapsed = self.elapsed();
        Some(Found { limit, violation, sought_endless, ..Found::nothing(self.progress) })
    }

    fn elapsed(&self) -> Duration {
        self.plan.limits.now().saturating_sub(self.began)
    }

    /// Makes the start the first level.
    fn begin(&mut self, shares: &mut [Share<S>]) {
        let first = &mut shares[0];
        let start = self.space.start();
        let print = self.space.fingerprint(&mut first.worker, &start);
        let number = self.numbered.fetch_add(1, Ordering::Relaxed);
        assert!(self.seen.extend(&mut first.quota, 1), "an empty table has room for a state");
        let origin = Origin { from: print, depth: 0 };
        self.seen.insert(print, origin, &mut first.quota, || number);
        first.next.add(number, print, |words| words.extend_from_slice(&start));
        self.gather(shares);
    }

    /// Tries every step from the states of the level, as far as the limits allow.
    fn expand<'scope>(
        search: &mut Arc<Self>,
        shares: &mut Vec<Share<S>>,
        helpers: &mut Helpers<'a, S>,
        scope: &'scope Scope<'scope, '_>,
    ) where
        Self: 'scope,
        S: 'scope,
    {
        let is_shared = search.level.len() >= WORTH_SHARING;
        if is_shared && helpers.is_empty() {
            let start = |thread| {
                Helper::start(scope, move |(search, mut share): (Arc<Self>, Share<S>)| {
                    search.work(thread, &mut share);
                    share
                })
            };
            helpers.extend((1..shares.len()).map_while(start));
            // Where no thread can be started, those that run do all the work. The other shares have not been used.
            shares.truncate(helpers.len() + 1);
        }
        loop {
            if is_shared {
                for (helper, share) in helpers.iter().zip(shares.drain(1..)) {
                    helper.give((Arc::clone(search), share));
                }
            }
            search.work(0, &mut shares[0]);
            if is_shared {
                shares.extend(helpers.iter().map(Helper::take));
            }
            if shares.iter().all(|share| share.batch.is_empty()) || search.stopped.get().is_some() {
                return;
            }
            // The table doubles: if that exceeds the limit, this is the limit.
            let now = search.progress_now(0).memory;
            if search.plan.limits.is_full(now, search.seen.bytes()) {
                let _ = search.stopped.set(Limit::Memory);
                return;
            }
            owned(search).seen.grow(shares.iter_mut().map(|share| &mut share.quota));
        }
    }

    /// Tries steps from states of a level until none is left, a limit is reached or the table of states is full.
    fn work(&self, thread: usize, share: &mut Share<S>) {
        let most_states = self.plan.limits.states.unwrap_or(u64::MAX);
        // A shared counter that is written for every state would slow threads down; a limit of states needs it.
        let counts_each = self.plan.limits.states.is_some();
        while self.stopped.get().is_none() {
            if share.batch.is_empty() {
                let Some(batch) = self.level.take(thread) else { return };
                share.batch = batch;
            }
            while let Some(state) = self.level.next_of(&share.batch) {
                if !self.visit(state, share) {
                    break;
                }
                share.batch.advance();
                if counts_each && self.count(share) >= most_states {
                    break;
                }
            }
            self.count(share);
            self.buffered[thread].store(share.bytes(), Ordering::Relaxed);
            self.check_limits();
            if !share.batch.is_empty() {
                return;
            }
        }
    }

    /// Adds the states that a thread has found since the last time to the total, and returns the total.
    fn count(&self, share: &mut Share<S>) -> u64 {
        let fresh = (share.next.len() - share.counted) as u64;
        share.counted = share.next.len();
        self.generated.fetch_add(std::mem::take(&mut share.generated), Ordering::Relaxed);
        self.states.fetch_add(fresh, Ordering::Relaxed) + fresh
    }

    /// Stops the search at a limit and, from time to time, reports progress.
    fn check_limits(&self) {
        let progress = self.progress_now(self.level.left());
        let reached = self.plan.limits.reached(&progress);
        if let Some(limit) = reached.filter(|&limit| limit != Limit::Depth) {
            self.stopped.get_or_init(|| limit);
        }
        let now = progress.elapsed.as_millis() as u64;
        let last = self.last_report.load(Ordering::Relaxed);
        // Without a clock every report is due; the watcher decides how many of them it shows.
        let is_due = now >= last + PROGRESS_INTERVAL || self.plan.limits.clock.is_none();
        let wins = || {
            let order = Ordering::Relaxed;
            self.last_report.compare_exchange(last, now, order, order).is_ok()
        };
        if is_due && wins() {
            if !(self.watch)(&progress) {
                self.stopped.get_or_init(|| Limit::Interrupt);
            }
            if self.plan.limits.is_full(progress.memory, 0) {
                self.stopped.get_or_init(|| Limit::Memory);
            }
        }
    }

    /// The progress, with so many states whose steps are to be tried.
    fn progress_now(&self, frontier: usize) -> Progress {
        let graph = self.graph.as_ref().map_or(0, Graph::bytes);
        let buffered: u64 = self.buffered.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum();
        Progress {
            states: self.states.load(Ordering::Relaxed),
            generated: self.generated.load(Ordering::Relaxed),
            frontier: frontier as u64,
            memory: self.seen.bytes() + self.level.bytes() + buffered + graph,
            elapsed: self.elapsed(),
            ..self.progress
        }
    }

    /// Tries every step from one state; returns whether the table had room for the states that they lead to. If not, the
    /// state must be tried again: nothing has been counted, and states that were added will be known.
    fn visit(&self, state: Waiting<'_>, share: &mut Share<S>) -> bool {
        let Waiting { words, print, .. } = state;
        let mut out = std::mem::take(&mut share.out);
        // The reduction looks at the states that steps lead to.
        if !self.plan.reduce {
            out.leave_unwritten(print);
        }
        let first_edge = share.edges.len();
        let reduced = self.space.steps(&mut share.worker, words, self.plan.reduce, &mut out);
        let mut generated = out.list().len();
        let mut followed = self.follow(&out, state, share);
        if reduced && followed == Some(true) {
            // This may close a loop, in which a step that was left out would be put off forever.
            share.edges.truncate(first_edge);
            self.space.steps(&mut share.worker, words, false, &mut out);
            generated += out.list().len();
            followed = self.follow(&out, state, share);
        }
        let has_room = followed.is_some();
        if has_room {
            share.generated += generated as u64;
            let degree = (share.edges.len() - first_edge) as u32;
            self.judge(state, &out, degree, share);
        } else {
            share.edges.truncate(first_edge);
        }
        share.out = out;
        has_room
    }

    /// Judges a state by its observation and by its steps.
    #[inline]
    fn judge(
        &self,
        state: Waiting<'_>,
        out: &Successors<S::Step>,
        degree: u32,
        share: &mut Share<S>,
    ) {
        let Waiting { words, number, print } = state;
        let observation = self.space.observation(&mut share.worker, words);
        let at_rest = !out.list().iter().any(|next| self.space.fairness(next.step).is_some());
        if at_rest && out.is_stranded() {
            share.stranded += 1;
        }
        let at_rest = at_rest && !out.is_stranded();
        if let Some(claim) = share.judge.broken(self.space, observation, at_rest) {
            share.found(Broken { print, claim, step: None });
        }
        if self.graph.is_some() {
            share.nodes.push(Node { number, observation, at_rest, degree });
        }
    }

    /// Adds the states to which the steps from `state` lead; returns whether one of them is no farther from the start than
    /// it. Returns nothing if the table has no room.
    fn follow(
        &self,
        out: &Successors<S::Step>,
        state: Waiting<'_>,
        share: &mut Share<S>,
    ) -> Option<bool> {
        let Waiting { words, print, .. } = state;
        if !self.seen.extend(&mut share.quota, out.list().len()) {
            return None;
        }
        let depth = self.progress.depth.saturating_add(1).min(u32::from(u16::MAX)) as u16;
        let origin = Origin { from: print, depth };
        let mut leads_back = false;
        for next in out.list() {
            if let Reached::Unwritten { print, .. } = next.reached {
                self.seen.read_ahead(print);
            }
        }
        for next in out.list() {
            let reached = match next.reached {
                Reached::Unwritten { print, .. } => print,
                Reached::Written { .. } => {
                    self.space.fingerprint(&mut share.worker, out.state(next))
                }
            };
            let mut number = 0;
            let inserted = self.seen.insert(reached, origin, &mut share.quota, || {
                number = self.numbered.fetch_add(1, Ordering::Relaxed);
                number
            });
            match inserted {
                Inserted::New => {
                    share.next.add(number, reached, |all| match next.reached {
                        Reached::Unwritten { change, .. } => {
                            self.space.write(&share.worker, words, change, all);
                        }
                        Reached::Written { .. } => all.extend_from_slice(out.state(next)),
                    });
                    debug_assert_eq!(
                        self.space.fingerprint(&mut share.worker, share.next.last()),
                        reached,
                        "a fingerprint is that of the state, however it was found"
                    );
                }
                Inserted::Known { number: known, depth: reached } => {
                    number = known;
                    leads_back |= reached < depth || depth == u16::MAX;
                }
            }
            if self.graph.is_some() {
                share.edges.push(number);
            }
            if let Some(claim) = next.breaks {
                share.found(Broken { print, claim, step: Some(next.step) });
            }
        }
        Some(leads_back)
    }

    /// Gathers what the threads found: it becomes the level.
    fn gather(&mut self, shares: &mut [Share<S>]) {
        for (thread, share) in shares.iter_mut().enumerate() {
            self.level.replace(thread, &mut share.next);
            share.counted = 0;
            self.progress.stranded += std::mem::take(&mut share.stranded);
            if let Some(graph) = &mut self.graph {
                graph.add(&share.nodes, &share.edges);
                share.nodes.clear();
                share.edges.clear();
            }
            *self.buffered[thread].get_mut() = share.bytes();
        }
    }

    /// The run that ends with what is broken.
    fn explain(&self, worker: &mut S::Worker, broken: Broken<S::Step>) -> Violation<S::Step> {
        let path = self.seen.path_to(broken.print);
        let (mut path, _) = retrace(self.space, worker, &path, self.plan.reduce);
        path.extend(broken.step);
        Violation { claim: broken.claim, path, cycle: Vec::new() }
    }
}

/// The search, while no other thread is at work.
fn owned<T>(search: &mut Arc<T>) -> &mut T {
    Arc::get_mut(search).expect("a helper gives the search back before its share")
}

impl<S: Space> Share<S> {
    fn new(space: &S) -> Self {
        Self {
            worker: space.worker(),
            judge: Judge::default(),
            out: Successors::new(),
            batch: Batch::default(),
            quota: Quota::default(),
            next: StateBuffer::default(),
            counted: 0,
            generated: 0,
            stranded: 0,
            broken: None,
            edges: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// The bytes of what it has found.
    fn bytes(&self) -> u64 {
        let graph = self.edges.capacity() * 4 + self.nodes.capacity() * size_of::<Node>();
        self.next.bytes() + graph as u64
    }

    /// Keeps the broken claim with the lowest fingerprint, so that the result does not depend on threads.
    fn found(&mut self, broken: Broken<S::Step>) {
        if self.broken.is_none_or(|first| (broken.print, broken.claim) < (first.print, first.claim))
        {
            self.broken = Some(broken);
        }
    }
}
