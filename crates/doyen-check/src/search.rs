//! Searches a [`Space`] for a run that breaks a claim.
//!
//! **Breadth first**, level by level, on all cores: what it finds first is as short as can be. **Depth first**, on one
//! core: it remembers half as much a state and only one path of states, and finds long runs.
//!
//! Claims about every state, about single steps and about states without a further step are judged on the way. Claims
//! about runs that never end need the graph of all states, which the breadth-first search writes down if there is one:
//! see `check/graph.rs`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::graph::Graph;
use super::level::{Batch, Level, Pile, Waiting};
use super::seen::{Keeps, Leave, Origin, Seen, Sighting};
use super::space::{Claim, Space, Successors};

/// With fewer states in a level than this, one thread is faster than many.
const WORTH_SHARING: usize = 512;
/// How often those who watch are told how far it is, in milliseconds.
const GLANCE: u64 = 100;

/// How to search.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Depth first instead of breadth first.
    pub depth_first: bool,
    /// Whether steps that others stand for are left out.
    pub reduce: bool,
    /// How many threads.
    pub threads: usize,
    /// When to stop.
    pub limits: Limits,
}

/// When to stop, whether everything was seen or not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// After so many states. A search has no more than that and, for each thread, those to which the steps of one state
    /// lead.
    pub states: Option<u64>,
    /// After so long.
    pub time: Option<Duration>,
    /// When what is kept of states takes so many bytes (see [`Progress::memory`]), or the whole process does.
    pub memory: Option<u64>,
    /// How many bytes the whole process takes, if that counts.
    pub resident: Option<fn() -> u64>,
    /// So many steps from the start.
    pub depth: Option<u32>,
    /// When this is set, whoever sets it.
    pub interrupt: Option<&'static AtomicBool>,
}

/// Which limit stopped a search.
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
    /// Of somebody's patience, who has said so.
    Interrupt,
}

/// How far a search is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Different states seen.
    pub states: u64,
    /// Steps tried.
    pub generated: u64,
    /// The longest of the shortest paths so far; depth first, the longest path.
    pub depth: u32,
    /// States seen whose steps have not been tried.
    pub frontier: u64,
    /// Bytes that the table of states, the states whose steps are to be tried and the graph take. What members and
    /// messages are, each of which is kept once, is not counted.
    pub memory: u64,
    /// How long it has taken.
    pub elapsed: Duration,
    /// States in which something was left to do that the budget did not allow.
    pub stranded: u64,
}

/// What came of a search.
#[derive(Clone, Debug)]
pub struct Found<S> {
    /// How far it got.
    pub progress: Progress,
    /// What stopped it before everything was seen.
    pub limit: Option<Limit>,
    /// A run that breaks a claim.
    pub violation: Option<Violation<S>>,
    /// Whether runs that never end were looked for.
    pub sought_endless: bool,
    /// Something was left out that may matter, so this search counts for nothing, unless it has found a violation.
    pub void: bool,
}

/// A run that breaks a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation<S> {
    /// The claim, by number.
    pub claim: usize,
    /// The steps to where it is broken.
    pub path: Vec<S>,
    /// The steps that go on for ever after that.
    pub cycle: Vec<S>,
}

impl<S> Found<S> {
    /// A search that has seen everything and has found nothing.
    fn nothing(progress: Progress) -> Self {
        Self { progress, limit: None, violation: None, sought_endless: false, void: false }
    }
}

/// What is done with what has been seen so far.
pub type Watch<'w> = &'w (dyn Fn(&Progress) + Sync);

/// Explores `space` until a claim is broken, everything has been seen or a limit is reached.
pub fn search<S: Space>(space: &S, plan: &Plan, watch: Watch<'_>) -> Found<S::Step> {
    if plan.depth_first {
        super::depth::search(space, plan, watch)
    } else {
        Breadth::new(space, plan, watch).run()
    }
}

/// A breadth-first search.
struct Breadth<'a, S: Space> {
    space: &'a S,
    plan: &'a Plan,
    watch: Watch<'a>,
    began: Instant,
    seen: Seen,
    numbered: AtomicU32,
    graph: Option<Graph>,
    /// As it was at the end of the last level, but for the next three, which are as they are.
    progress: Progress,
    states: AtomicU64,
    generated: AtomicU64,
    /// How many bytes each thread has found of the next level.
    piled: Vec<AtomicU64>,
    /// When those who watch were last told, in milliseconds from the beginning.
    last_glance: AtomicU64,
    /// The limit that was reached in the middle of a level.
    stopped: OnceLock<Limit>,
}

/// What one thread has made of its share of a level. No two lie in one line of a cache, or threads would wait for each
/// other's writes.
#[repr(align(128))]
struct Share<S: Space> {
    hand: S::Hand,
    judge: Judge,
    out: Successors<S::Step>,
    /// What it has taken of the level. Something is left at its end only if the table of states had no room.
    batch: Batch,
    /// How many states it may add to the table.
    leave: Leave,
    /// What it has found of the next level, and how much of that has been counted.
    next: Pile,
    counted: usize,
    generated: u64,
    stranded: u64,
    broken: Option<Broken<S::Step>>,
    /// For the graph: each state with its mood, whether it is at rest, and to where its steps lead.
    edges: Vec<u32>,
    nodes: Vec<Node>,
}

/// A state of the graph as a thread has seen it.
pub(super) struct Node {
    pub(super) number: u32,
    pub(super) mood: u32,
    pub(super) at_rest: bool,
    pub(super) degree: u32,
}

/// A broken claim: in this state, or by this step from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Broken<S> {
    print: u64,
    claim: usize,
    step: Option<S>,
}

impl<'a, S: Space> Breadth<'a, S> {
    fn new(space: &'a S, plan: &'a Plan, watch: Watch<'a>) -> Self {
        let endless = |claim: &Claim| !matches!(claim, Claim::Always | Claim::NoStep);
        let graph = space.claims().iter().any(endless).then(Graph::new);
        Self {
            space,
            plan,
            watch,
            began: Instant::now(),
            // Only a reduction asks how far from the start a state is.
            seen: Seen::new(Keeps { numbers: graph.is_some(), depths: plan.reduce }),
            numbered: AtomicU32::new(0),
            graph,
            progress: Progress::default(),
            states: AtomicU64::new(1),
            generated: AtomicU64::new(0),
            piled: (0..plan.threads.max(1)).map(|_| AtomicU64::new(0)).collect(),
            last_glance: AtomicU64::new(0),
            stopped: OnceLock::new(),
        }
    }

    fn run(mut self) -> Found<S::Step> {
        let threads = self.plan.threads.max(1);
        let mut shares: Vec<Share<S>> = (0..threads).map(|_| Share::new(self.space)).collect();
        let mut level = self.first_level(&mut shares);
        let mut limit = None;
        while level.len() > 0 && limit.is_none() {
            let left_over = self.expand(&level, &mut shares);
            let broken = shares.iter().filter_map(|share| share.broken);
            if let Some(broken) = broken.min_by_key(|it| (it.print, it.claim)) {
                self.progress = self.glance(&level, left_over);
                let violation = Some(self.explain(&mut shares[0].hand, broken));
                let progress = self.progress;
                return Found { violation, ..Found::nothing(progress) };
            }
            self.gather(&mut level, &mut shares);
            self.progress.depth += u32::from(level.len() > 0);
            self.progress = self.glance(&level, level.len() + left_over);
            (self.watch)(&self.progress);
            if !self.space.is_sound() {
                return Found { void: true, ..Found::nothing(self.progress) };
            }
            let reached = || self.plan.limits.reached(&self.progress);
            let is_left = self.progress.frontier > 0;
            limit = self.stopped.get().copied().or_else(reached).filter(|_| is_left);
        }
        // What was cut off at a limit has loops that lead nowhere: only a whole graph tells of endless runs.
        let whole = self.graph.take().filter(|_| limit.is_none());
        let sought_endless = whole.is_some();
        let violation =
            whole.and_then(|graph| graph.find_endless(self.space, &self.seen, &mut shares[0].hand));
        self.progress.elapsed = self.began.elapsed();
        Found { limit, violation, sought_endless, ..Found::nothing(self.progress) }
    }

    /// The level that has the start alone.
    fn first_level(&mut self, shares: &mut [Share<S>]) -> Level {
        let first = &mut shares[0];
        let start = self.space.start();
        let print = self.space.fingerprint(&mut first.hand, &start);
        let number = self.numbered.fetch_add(1, Ordering::Relaxed);
        assert!(self.seen.extend(&mut first.leave, 1), "an empty table has room for a state");
        let origin = Origin { from: print, depth: 0 };
        self.seen.insert(print, origin, &mut first.leave, || number);
        first.next.add(&start, number, print);
        let mut level = Level::new(shares.len());
        self.gather(&mut level, shares);
        level
    }

    /// Tries every step from every state of a level, or of as many as the limits allow; says how many are left.
    fn expand(&mut self, level: &Level, shares: &mut [Share<S>]) -> usize {
        let threads = if level.len() < WORTH_SHARING { 1 } else { shares.len() };
        loop {
            let this = &*self;
            std::thread::scope(|scope| {
                let mut crew = shares[..threads].iter_mut().enumerate();
                let (_, own) = crew.next().expect("there is at least one thread");
                for (thread, share) in crew {
                    scope.spawn(move || this.work(level, thread, share));
                }
                this.work(level, 0, own);
            });
            let put_off: usize = shares.iter().map(|share| share.batch.len()).sum();
            if put_off == 0 || self.stopped.get().is_some() {
                return level.left() + put_off;
            }
            // The table doubles: if that is more than there is, this is the limit.
            let now = self.glance(level, 0).memory;
            if self.plan.limits.is_full(now, self.seen.bytes()) {
                let _ = self.stopped.set(Limit::Memory);
                return level.left() + put_off;
            }
            self.seen.grow(shares.iter_mut().map(|share| &mut share.leave));
        }
    }

    /// Tries steps from states of a level until none is left, a limit is reached or the table of states has no room.
    fn work(&self, level: &Level, thread: usize, share: &mut Share<S>) {
        let most_states = self.plan.limits.states.unwrap_or(u64::MAX);
        // A word that all threads write to for every state would slow them down, unless it has to be known at any time.
        let counts_each = self.plan.limits.states.is_some();
        while self.stopped.get().is_none() {
            if share.batch.is_empty() {
                let Some(batch) = level.take(thread) else { return };
                share.batch = batch;
            }
            while let Some(state) = level.next_of(&share.batch) {
                if !self.visit(state, share) {
                    break;
                }
                share.batch.advance();
                if counts_each && self.count(share) >= most_states {
                    break;
                }
            }
            self.count(share);
            self.piled[thread].store(share.bytes(), Ordering::Relaxed);
            self.look_up(level);
            if !share.batch.is_empty() {
                return;
            }
        }
    }

    /// Adds what a thread has found since the last time to what all have; says how many states that are.
    fn count(&self, share: &mut Share<S>) -> u64 {
        let fresh = (share.next.len() - share.counted) as u64;
        share.counted = share.next.len();
        self.generated.fetch_add(std::mem::take(&mut share.generated), Ordering::Relaxed);
        self.states.fetch_add(fresh, Ordering::Relaxed) + fresh
    }

    /// Stops the search at a limit and, once in a while, says how far it is.
    fn look_up(&self, level: &Level) {
        let progress = self.glance(level, level.left());
        let reached = self.plan.limits.reached(&progress);
        if let Some(limit) = reached.filter(|&limit| limit != Limit::Depth) {
            self.stopped.get_or_init(|| limit);
        }
        let now = progress.elapsed.as_millis() as u64;
        let last = self.last_glance.load(Ordering::Relaxed);
        let is_mine = || {
            let order = Ordering::Relaxed;
            self.last_glance.compare_exchange(last, now, order, order).is_ok()
        };
        if now >= last + GLANCE && is_mine() {
            (self.watch)(&progress);
            if self.plan.limits.is_full(progress.memory, 0) {
                self.stopped.get_or_init(|| Limit::Memory);
            }
        }
    }

    /// How far the search is, with the steps of so many states yet to be tried.
    fn glance(&self, level: &Level, frontier: usize) -> Progress {
        let graph = self.graph.as_ref().map_or(0, Graph::bytes);
        let piled: u64 = self.piled.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum();
        Progress {
            states: self.states.load(Ordering::Relaxed),
            generated: self.generated.load(Ordering::Relaxed),
            frontier: frontier as u64,
            memory: self.seen.bytes() + level.bytes() + piled + graph,
            elapsed: self.began.elapsed(),
            ..self.progress
        }
    }

    /// Tries every step from one state; says whether there was room for what they lead to. If there was not, it must be
    /// tried again: nothing has been counted, and what has been added will be known.
    fn visit(&self, state: Waiting<'_>, share: &mut Share<S>) -> bool {
        let Waiting { words, print, .. } = state;
        let mut out = std::mem::take(&mut share.out);
        let first_edge = share.edges.len();
        let reduced = self.space.steps(&mut share.hand, words, self.plan.reduce, &mut out);
        let mut generated = out.list().len();
        let mut followed = self.follow(&out, print, share);
        if reduced && followed == Some(true) {
            // This may close a loop, in which what was left out would be put off for ever.
            share.edges.truncate(first_edge);
            self.space.steps(&mut share.hand, words, false, &mut out);
            generated += out.list().len();
            followed = self.follow(&out, print, share);
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

    /// Judges a state by itself and by what can happen in it.
    #[inline]
    fn judge(
        &self,
        state: Waiting<'_>,
        out: &Successors<S::Step>,
        degree: u32,
        share: &mut Share<S>,
    ) {
        let Waiting { words, number, print } = state;
        let mood = self.space.mood(&mut share.hand, words);
        let at_rest = !out.list().iter().any(|next| self.space.duty(next.step).is_some());
        if at_rest && out.is_stranded() {
            share.stranded += 1;
        }
        let at_rest = at_rest && !out.is_stranded();
        if let Some(claim) = share.judge.broken(self.space, mood, at_rest) {
            share.found(Broken { print, claim, step: None });
        }
        if self.graph.is_some() {
            share.nodes.push(Node { number, mood, at_rest, degree });
        }
    }

    /// Notes where the steps from the state with fingerprint `print` lead; says whether one leads to a state that is no
    /// further from the start than this one. Says nothing if there is no room for so many states.
    fn follow(&self, out: &Successors<S::Step>, print: u64, share: &mut Share<S>) -> Option<bool> {
        if !self.seen.extend(&mut share.leave, out.list().len()) {
            return None;
        }
        let depth = self.progress.depth.saturating_add(1).min(u32::from(u16::MAX)) as u16;
        let origin = Origin { from: print, depth };
        let mut leads_back = false;
        for next in out.list() {
            let state = out.state(next);
            let reached = self.space.fingerprint(&mut share.hand, state);
            let mut number = 0;
            let sighting = self.seen.insert(reached, origin, &mut share.leave, || {
                number = self.numbered.fetch_add(1, Ordering::Relaxed);
                number
            });
            match sighting {
                Sighting::New => share.next.add(state, number, reached),
                Sighting::Known { number: known, depth: reached } => {
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

    /// Gathers what the threads found: `level` becomes the one that comes next.
    fn gather(&mut self, level: &mut Level, shares: &mut [Share<S>]) {
        for (thread, share) in shares.iter_mut().enumerate() {
            level.replace(thread, &mut share.next);
            share.counted = 0;
            self.progress.stranded += std::mem::take(&mut share.stranded);
            if let Some(graph) = &mut self.graph {
                graph.add(&share.nodes, &share.edges);
                share.nodes.clear();
                share.edges.clear();
            }
            *self.piled[thread].get_mut() = share.bytes();
        }
    }

    /// The run that ends with what is broken.
    fn explain(&self, hand: &mut S::Hand, broken: Broken<S::Step>) -> Violation<S::Step> {
        let path = self.seen.path_to(broken.print);
        let (mut path, _) = retrace(self.space, hand, &path, self.plan.reduce);
        path.extend(broken.step);
        Violation { claim: broken.claim, path, cycle: Vec::new() }
    }
}

impl Limits {
    /// What is left of them for a search that follows others, which took `spent` together. Their memory is free again,
    /// and every search begins at its own start.
    pub fn left_after(self, spent: &Progress) -> Self {
        Self {
            states: self.states.map(|states| states.saturating_sub(spent.states)),
            time: self.time.map(|time| time.saturating_sub(spent.elapsed)),
            ..self
        }
    }

    /// Whether somebody has said that it is enough.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupt.is_some_and(|wanted| wanted.load(Ordering::Relaxed))
    }

    /// Whether `more` bytes would be too many besides the `counted` ones, or besides what the whole process takes.
    pub(super) fn is_full(&self, counted: u64, more: u64) -> bool {
        let taken = || self.resident.map_or(counted, |resident| resident().max(counted));
        self.memory.is_some_and(|most| taken() + more > most)
    }

    /// The limit that has been reached, if one has.
    pub(super) fn reached(&self, progress: &Progress) -> Option<Limit> {
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
pub(super) fn retrace<S: Space>(
    space: &S,
    hand: &mut S::Hand,
    path: &[u64],
    reduce: bool,
) -> (Vec<S::Step>, Vec<u32>) {
    let mut state = space.start();
    let mut steps = Vec::new();
    let mut out = Successors::new();
    for &wanted in &path[1..] {
        let mut follow = |hand: &mut S::Hand, reduce: bool| {
            space.steps(hand, &state, reduce, &mut out);
            let leads_on = |next: &&super::space::Successor<S::Step>| {
                space.fingerprint(hand, out.state(next)).max(1) == wanted.max(1)
            };
            out.list().iter().find(leads_on).map(|next| (next.step, out.state(next).to_vec()))
        };
        let found = follow(hand, reduce).or_else(|| follow(hand, false));
        let (step, reached) = found.expect("the path was found by the same steps");
        steps.push(step);
        state = reached;
    }
    (steps, state)
}

impl<S: Space> Share<S> {
    fn new(space: &S) -> Self {
        Self {
            hand: space.hand(),
            judge: Judge::default(),
            out: Successors::new(),
            batch: Batch::default(),
            leave: Leave::default(),
            next: Pile::default(),
            counted: 0,
            generated: 0,
            stranded: 0,
            broken: None,
            edges: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// How many bytes what it has found takes.
    fn bytes(&self) -> u64 {
        let graph = self.edges.capacity() * 4 + self.nodes.capacity() * size_of::<Node>();
        self.next.bytes() + graph as u64
    }

    /// Keeps the broken claim that comes first by fingerprint, whichever thread finds it.
    fn found(&mut self, broken: Broken<S::Step>) {
        if self.broken.is_none_or(|first| (broken.print, broken.claim) < (first.print, first.claim))
        {
            self.broken = Some(broken);
        }
    }
}

/// Remembers which claims hold in which mood.
#[derive(Default)]
pub(super) struct Judge {
    /// By mood: the first claim that is broken, anywhere and at rest.
    broken: Vec<Option<[Option<usize>; 2]>>,
}

impl Judge {
    /// The claim that a state of this mood breaks.
    #[inline]
    pub(super) fn broken<S: Space>(
        &mut self,
        space: &S,
        mood: u32,
        at_rest: bool,
    ) -> Option<usize> {
        let mood = mood as usize;
        if mood >= self.broken.len() {
            self.broken.resize(mood + 1, None);
        }
        let verdict = self.broken[mood].get_or_insert_with(|| {
            let breaks = |judged: fn(&Claim) -> bool| {
                let claims = space.claims().iter().enumerate().filter(|(_, claim)| judged(claim));
                claims.map(|(number, _)| number).find(|&number| !space.holds(number, mood as u32))
            };
            let anywhere = |claim: &Claim| matches!(claim, Claim::Always);
            let at_rest = |claim: &Claim| !matches!(claim, Claim::NoStep | Claim::Eventually);
            [breaks(anywhere), breaks(at_rest)]
        });
        verdict[usize::from(at_rest)]
    }
}
