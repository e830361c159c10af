//! Runs that never end.
//!
//! A run that goes on forever in a finite space stays, from some moment on, in one strongly connected component of its
//! graph: a set of states each of which can be reached from each. So whether a run can go on forever without coming to
//! rest is a question about components, and it is decided exactly: Tarjan's algorithm finds them all.
//!
//! Not every component holds a run that could happen. Under *weak fairness* a step that stays possible is taken
//! eventually: a message arrives, a timer expires, a detector reports, time passes. A run can stay in a component forever if
//! each such step that is possible in *all* of its states is taken on some way within it. If so, the run that goes every
//! way of the component again and again is fair. If not, no run in any part of it is. So this test is exact.

use std::collections::{HashMap, VecDeque};

use super::seen::Seen;
use super::space::{Claim, Space, Successors};
use super::{Violation, retrace};

/// States by number, and to where their steps lead.
#[derive(Debug, Default)]
pub(super) struct Graph {
    observations: Vec<u32>,
    at_rest: Vec<bool>,
    /// Where the edges of each state begin, and how many there are.
    first: Vec<usize>,
    degree: Vec<u32>,
    edges: Vec<u32>,
}

/// A state of the graph.
pub(super) struct Node {
    pub(super) number: u32,
    pub(super) observation: u32,
    pub(super) at_rest: bool,
    pub(super) degree: u32,
}

/// The number of a state that has not been visited.
const NONE: u32 = u32::MAX;

impl Graph {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds states with their edges, one after the other.
    pub(super) fn add(&mut self, nodes: &[Node], edges: &[u32]) {
        let mut first = self.edges.len();
        self.edges.extend_from_slice(edges);
        for node in nodes {
            let number = node.number as usize;
            if number >= self.observations.len() {
                self.observations.resize(number + 1, 0);
                self.at_rest.resize(number + 1, false);
                self.first.resize(number + 1, 0);
                self.degree.resize(number + 1, 0);
            }
            self.observations[number] = node.observation;
            self.at_rest[number] = node.at_rest;
            self.first[number] = first;
            self.degree[number] = node.degree;
            first += node.degree as usize;
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.edges.capacity() * 4 + self.observations.capacity() * (4 + 1 + 8 + 4)) as u64
    }

    fn len(&self) -> usize {
        self.observations.len()
    }

    fn edges_of(&self, state: u32) -> &[u32] {
        let first = self.first[state as usize];
        &self.edges[first..first + self.degree[state as usize] as usize]
    }

    /// A run that never ends and breaks a claim about rest: in the fair component that is nearest to the start.
    pub(super) fn find_endless<S: Space>(
        &self,
        space: &S,
        seen: &Seen,
        worker: &mut S::Worker,
    ) -> Option<Violation<S::Step>> {
        let mut suspects: Vec<(Vec<u32>, usize)> = self
            .components()
            .into_iter()
            .filter_map(|component| self.broken_in(space, &component).map(|it| (component, it)))
            .collect();
        suspects.sort_by_key(|(component, _)| component.iter().min().copied());
        suspects.into_iter().find_map(|(component, claim)| {
            let is_restless = self.changes_observation(&component);
            let (path, cycle) =
                Inside::new(self, space, seen, &component).fair_cycle(worker, is_restless)?;
            Some(Violation { claim, path, cycle })
        })
    }

    fn changes_observation(&self, component: &[u32]) -> bool {
        component.iter().any(|&state| {
            self.observations[state as usize] != self.observations[component[0] as usize]
        })
    }

    /// The claim that a run breaks if it stays in this component.
    fn broken_in<S: Space>(&self, space: &S, component: &[u32]) -> Option<usize> {
        let observation = self.observations[component[0] as usize];
        let is_restless = self.changes_observation(component);
        let breaks = |&(number, claim): &(usize, &Claim)| match claim {
            Claim::AtRest => !is_restless && !space.holds(number, observation),
            Claim::Rests => is_restless || !space.holds(number, observation),
            Claim::Always | Claim::NoStep => false,
        };
        space.claims().iter().enumerate().find(breaks).map(|(number, _)| number)
    }

    /// The strongly connected components in which a run can stay: with more than one state, or a step from the one to
    /// itself. Tarjan's algorithm, with a stack of its own.
    fn components(&self) -> Vec<Vec<u32>> {
        let mut tarjan = Tarjan {
            graph: self,
            order: vec![NONE; self.len()],
            low: vec![0; self.len()],
            on_stack: vec![false; self.len()],
            stack: Vec::new(),
            calls: Vec::new(),
            visited: 0,
            found: Vec::new(),
        };
        for state in 0..self.len() as u32 {
            if tarjan.order[state as usize] == NONE {
                tarjan.run(state);
            }
        }
        tarjan.found
    }
}

struct Tarjan<'g> {
    graph: &'g Graph,
    order: Vec<u32>,
    low: Vec<u32>,
    on_stack: Vec<bool>,
    stack: Vec<u32>,
    /// The states being visited, and which edge comes next.
    calls: Vec<(u32, usize)>,
    visited: u32,
    found: Vec<Vec<u32>>,
}

impl Tarjan<'_> {
    fn enter(&mut self, state: u32) {
        self.order[state as usize] = self.visited;
        self.low[state as usize] = self.visited;
        self.visited += 1;
        self.stack.push(state);
        self.on_stack[state as usize] = true;
        self.calls.push((state, 0));
    }

    fn run(&mut self, root: u32) {
        self.enter(root);
        while let Some((state, edge)) = self.calls.pop() {
            let Some(&next) = self.graph.edges_of(state).get(edge) else {
                self.leave(state);
                continue;
            };
            self.calls.push((state, edge + 1));
            if self.order[next as usize] == NONE {
                self.enter(next);
            } else if self.on_stack[next as usize] {
                self.low[state as usize] = self.low[state as usize].min(self.order[next as usize]);
            }
        }
    }

    fn leave(&mut self, state: u32) {
        let low = self.low[state as usize];
        if let Some(&(caller, _)) = self.calls.last() {
            self.low[caller as usize] = self.low[caller as usize].min(low);
        }
        if low != self.order[state as usize] {
            return;
        }
        let mut component = Vec::new();
        while let Some(member) = self.stack.pop() {
            self.on_stack[member as usize] = false;
            component.push(member);
            if member == state {
                break;
            }
        }
        if component.len() > 1 || self.graph.edges_of(state).contains(&state) {
            self.found.push(component);
        }
    }
}

/// A way through a component: steps, with the number and the words of the state to which each leads.
type Way<T> = Vec<(T, u32, Vec<u32>)>;

/// A run that never ends: the steps to where it begins to repeat itself, and the steps that it repeats.
type Lasso<T> = (Vec<T>, Vec<T>);

/// A component and its states.
struct Inside<'a, S: Space> {
    graph: &'a Graph,
    space: &'a S,
    seen: &'a Seen,
    /// Sorted.
    states: Vec<u32>,
}

/// The fairness of a cycle so far.
struct Account<T> {
    /// Steps that must be taken eventually, possible in every state so far.
    owed: Vec<T>,
    taken: Vec<T>,
}

impl<'a, S: Space> Inside<'a, S> {
    fn new(graph: &'a Graph, space: &'a S, seen: &'a Seen, component: &[u32]) -> Self {
        let mut states = component.to_vec();
        states.sort_unstable();
        Self { graph, space, seen, states }
    }

    fn has(&self, state: u32) -> bool {
        self.states.binary_search(&state).is_ok()
    }

    /// A fair run that never leaves the component: the steps to it, and those that it repeats. `is_restless`: it must not
    /// stay in one observation.
    fn fair_cycle(&self, worker: &mut S::Worker, is_restless: bool) -> Option<Lasso<S::Step>> {
        let home = self.states[0];
        let print = self.seen.prints_of(&[home])[0];
        let (path, words) = retrace(self.space, worker, &self.seen.path_to(print), false);
        let mut account = Account { owed: self.fair_steps(worker, &words), taken: Vec::new() };
        let mut cycle = Vec::new();
        let mut restless = !is_restless;
        let (mut here, mut at) = (home, words);
        let observation = self.graph.observations[home as usize];
        while !account.owed.is_empty() || !restless {
            let way = self.way(worker, here, &at, |inside, worker, from, step, to| {
                let settles = !account.owed.is_empty() && {
                    let fairness = inside.space.fairness(step);
                    let due = account.owed[0];
                    fairness == Some(due) || !inside.fair_steps(worker, from).contains(&due)
                };
                settles || (!restless && inside.graph.observations[to as usize] != observation)
            })?;
            for (step, number, words) in way {
                account.pass(self.space.fairness(step), &self.fair_steps(worker, &at));
                restless |= self.graph.observations[number as usize] != observation;
                cycle.push(step);
                (here, at) = (number, words);
            }
        }
        if here != home || cycle.is_empty() {
            let back = self.way(worker, here, &at, |_, _, _, _, to| to == home)?;
            cycle.extend(back.into_iter().map(|(step, _, _)| step));
        }
        Some((path, cycle))
    }

    /// The possible steps of a state that must be taken eventually.
    fn fair_steps(&self, worker: &mut S::Worker, words: &[u32]) -> Vec<S::Step> {
        let mut out = Successors::new();
        self.space.steps(worker, words, false, &mut out);
        out.list().iter().filter_map(|next| self.space.fairness(next.step)).collect()
    }

    /// The shortest way from a state, within the component, that ends with a step for which `goal` holds.
    fn way(
        &self,
        worker: &mut S::Worker,
        from: u32,
        words: &[u32],
        mut goal: impl FnMut(&Self, &mut S::Worker, &[u32], S::Step, u32) -> bool,
    ) -> Option<Way<S::Step>> {
        let mut states: HashMap<u32, Vec<u32>> = HashMap::from([(from, words.to_vec())]);
        let mut origins: HashMap<u32, (u32, S::Step)> = HashMap::new();
        let mut queue = VecDeque::from([from]);
        let mut out = Successors::new();
        while let Some(here) = queue.pop_front() {
            let at = states[&here].clone();
            self.space.steps(worker, &at, false, &mut out);
            for next in out.list() {
                let reached = out.state(next);
                let print = self.space.fingerprint(worker, reached);
                let Some(number) = self.seen.number(print).filter(|&number| self.has(number))
                else {
                    continue;
                };
                let reached = reached.to_vec();
                if goal(self, worker, &at, next.step, number) {
                    let mut way = vec![(next.step, number, reached)];
                    let mut back = here;
                    while back != from {
                        let (before, step) = origins[&back];
                        way.push((step, back, states[&back].clone()));
                        back = before;
                    }
                    way.reverse();
                    return Some(way);
                }
                if number != from && !origins.contains_key(&number) {
                    origins.insert(number, (here, next.step));
                    states.insert(number, reached);
                    queue.push_back(number);
                }
            }
        }
        None
    }
}

impl<T: Copy + Eq> Account<T> {
    /// A step was taken from a state in which `possible` had to be taken eventually.
    fn pass(&mut self, step: Option<T>, possible: &[T]) {
        self.taken.extend(step);
        self.owed.retain(|fairness| possible.contains(fairness) && !self.taken.contains(fairness));
    }
}
