//! The state space of a protocol: the shipped state machines, and every event that can happen to them.
//!
//! # States are numbers
//!
//! What a process does depends on its own [`Local`] state and on the event, on nothing else. So each local state and each
//! message is stored once and has a number, and each pair of a local state and an event is handed to the state machine
//! once: the result is memoised. A global state is a short list of numbers, and a step replaces a few of them:
//!
//! ```text
//!     local states, one a slot │ what is left of the budget │ the past │ messages in flight
//! ```
//!
//! The past is what properties need to know of earlier steps: who led, and the ledger of the critical section. Every member has
//! a slot. Protocols that distinguish processes of a member ([`Protocol::has_sessions`]) have further
//! slots, which are vacant at first: for processes that were replaced and run on, and for clones. A message to a member
//! may arrive at any of its processes. See `model/processes.rs`.
//!
//! Messages are sorted by receiver, then by sender; those of one link stay in the order of sending if links are FIFO.
//!
//! # Steps
//!
//! - A message in flight arrives (with FIFO links, the first of its link). If the budget allows it is lost, or arrives
//!   twice. A message to a process that is down is lost.
//! - An armed timer expires. *Free* timers expire at any moment: the asynchronous model. *Bounded* timers expire when they
//!   are due, and time advances only when nothing that is due remains: the synchronous model. A message then takes at most
//!   one tick, which is `D`, and a message that has taken a tick is handled before a timer.
//! - A failure detector reports a crash or a recovery, at any moment after it. If the budget allows it reports a crash that
//!   did not happen, and corrects itself at any later moment.
//! - The client of a process asks to enter the critical section, as often as the scene says, and leaves it. It need not ask,
//!   but it must leave.
//! - A process crashes, possibly between two messages or writes of one event; restarts; starts an election; receives a
//!   command. All of these take from the budget.
//!
//! Every order is explored. Only fingerprints can hide a state (see `fingerprint.rs`).
//!
//! # Lasting messages
//!
//! If any number of messages may be lost and duplicated, links are not FIFO and nothing bounds delays, the messages in
//! flight are a *set* that only grows: a message that was sent may arrive at any later moment, any number of times, or
//! never. That removes no run and adds none: a lost message is one that does not arrive any more, and a message that
//! arrives *k* times is one that was duplicated. Claims about states and steps mean the same in both models; claims about
//! the end of runs do not, because here something is always in flight.
//!
//! It makes states far fewer: runs in which the same messages were sent reach the same state, whatever the order and the
//! number of deliveries. A delivery that changes nothing is not a step.

mod canonical;
mod intern;
mod judge;
pub(crate) mod local;
mod obsolete;
mod processes;
mod reduce;
mod saturate;
pub(crate) mod step;
mod successors;
mod symmetry;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doyen_core::explore::Explore;
use doyen_core::ledger::sections::Sections;
use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::{Durable, Effect, Origin, Protocol, Role, Section, View};
use doyen_sim::hash::FastSet;
use doyen_sim::world::{self, Frozen, Snapshot};

use crate::budget::{ANY, Budget, BudgetLeft};
use crate::part::Scope;
use crate::property::{Property, Seen};
use crate::rules::{MAX_MEMBERS, Rules};
use crate::scene::Scene;
use crate::search::space::{Claim, Space, Successors};
use crate::timers::Timers;
use intern::Interner;
use local::{Context, Handled, Input, Local, Requests};
use obsolete::Trust;
use step::{Act, Step};
pub(crate) use successors::Parts;
use symmetry::Symmetry;
pub(crate) use worker::{Consequence, Worker};

/// With bounded timers a message takes at most so many ticks.
const MAX_TICKS: u8 = 1;

/// The words of a state between its local states and its messages: two of the budget, and the past.
const HEAD: usize = 3;

/// A message in flight.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Flight<M> {
    pub(crate) from: u8,
    pub(crate) to: u8,
    /// The ticks that it has taken so far.
    pub(crate) age: u8,
    /// Which start of the sender sent it, for protocols with sessions; else zero.
    pub(crate) start: u16,
    pub(crate) message: M,
}

impl<M> Flight<M> {
    /// Receiver and sender: what messages are sorted by.
    fn channel(&self) -> u16 {
        u16::from(self.to) << 8 | u16::from(self.from)
    }
}

/// A process that led: its term, its member, and which of the member's processes it is.
type Leadership = (Term, NodeId, u8);

/// What has happened on the way to a state, as far as a property is about it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Past {
    /// The processes that led, in order.
    led: Vec<Leadership>,
    /// The ledger of the critical section. What it knows of where members are follows from their views; what it counts
    /// beyond that, only where a property is about it.
    sections: Sections,
}

/// Which states count as one, and which steps are left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reductions {
    /// States that differ only in how long ago something happened that all detectors know of.
    pub(crate) settled: bool,
    /// States with the same [canonical form](Explore::canonical).
    canonical: bool,
    /// With lasting messages: messages without effect are dropped, and so are crashes that lose nothing but messages.
    obsolete: bool,
    /// With lasting messages: a step that only sends something is taken at once.
    saturate: bool,
}

/// What there is to do for every step, decided once.
#[derive(Clone, Copy, Debug)]
struct Uses {
    /// There are leases, of which a step may break a rule.
    leases: bool,
    /// Failure detectors report to members.
    detector: bool,
    /// The order of entries and the number of tokens are checked.
    order: bool,
    tokens: bool,
    /// What members have delivered is checked.
    deliveries: bool,
}

/// The state space of a check.
pub(crate) struct Model<'c, P: Explore> {
    pub(crate) context: Context<'c, P>,
    pub(crate) rules: Rules,
    uses: Uses,
    /// The number of local states in a state: one for each member, and those of further processes.
    slots: usize,
    claims: Vec<Claim>,
    start: Vec<u32>,
    /// A leader existed or an election was called at the start, or members call elections by themselves. Without that,
    /// nothing is claimed about the end of a run until an election is called.
    election_called: bool,
    store: Mutex<Store<P>>,
    observations: Mutex<Interner<Seen>>,
    /// Whether a property is about who led before.
    tracks_leaderships: bool,
    /// How often one member may enter while another one waits, if a property is about that.
    most_overtaking: Option<u32>,
    /// Whether messages last: see above.
    lasting: bool,
    pub(crate) reductions: Reductions,
    /// Which messages may be dropped.
    trust: Trust,
    /// The other names that members could have, if they are interchangeable.
    symmetry: Symmetry,
    /// The receivers to which each member has ever sent, a bit for each position.
    pub(crate) channels: Vec<AtomicU64>,
    /// The highest term that was stored at the start.
    first_term: Term,
}

/// Everything that is stored once.
struct Store<P: Explore> {
    locals: Interner<Local<P>>,
    flights: Interner<Flight<P::Message>>,
    timers: Interner<P::Timer>,
    histories: Interner<Past>,
    /// The pairs of local states between which there is a step.
    transitions: FastSet<(u32, u32)>,
}

/// The processes and messages from which a start is assembled.
struct Setup<P: Explore> {
    locals: Vec<Local<P>>,
    sends: Vec<Flight<P::Message>>,
}

impl<'c, P: Explore> Model<'c, P> {
    /// The space of `rules`, starting from `scene`.
    pub(crate) fn new(config: &'c P::Config, scene: &Scene<'c>, rules: Rules) -> Self {
        let mut model = Self::empty(config, scene, rules);
        model.election_called =
            P::has_leases(config) || scene.leader.is_some() || !scene.initiators.is_empty();
        model.start = model.begin(scene);
        model.first_term = model.term_at_the_start();
        model
    }

    /// The space of `rules`, starting from the middle of a simulation, where the clients of `scene` have still to ask so
    /// often. Links that were cut there are whole again, and detectors have yet to notice who is down.
    pub(crate) fn resume(
        config: &'c P::Config,
        scene: &Scene<'c>,
        snapshot: Snapshot<P>,
        rules: Rules,
    ) -> Self {
        let members = scene.members;
        let mut model = Self::empty(config, scene, rules);
        let expiries = model.rules.timers.expiries();
        let thaw = |(id, frozen): (NodeId, Frozen<P>)| {
            let requests = Requests(scene.requests_of(id));
            Local { requests, ..Local::thaw(id, frozen, expiries, &model.context) }
        };
        let locals = members.iter().zip(snapshot.members).map(thaw).collect();
        let position = |id: NodeId| members.position(id).map(|position| position as u8);
        let in_flight = |flight: world::Flight<P::Message>| {
            let world::Flight { from, to, message } = flight;
            Some(Flight { from: position(from)?, to: position(to)?, age: 0, start: 0, message })
        };
        let sends = snapshot.flights.into_iter().filter_map(in_flight).collect();
        model.start = model.assemble(Setup { locals, sends });
        model.first_term = model.term_at_the_start();
        model
    }

    fn empty(config: &'c P::Config, scene: &Scene<'c>, rules: Rules) -> Self {
        let members = scene.members;
        let count = members.len();
        assert!(count <= MAX_MEMBERS, "a check takes at most {MAX_MEMBERS} members");
        let about_leaderships = [Property::OneLeaderPerTerm, Property::LeasesRise];
        let clock = rules.timers.clock();
        let store = Store {
            locals: Interner::new(),
            flights: Interner::new(),
            timers: Interner::new(),
            histories: Interner::new(),
            transitions: FastSet::default(),
        };
        Self {
            context: Context {
                config,
                members,
                clock,
                tracks_vote_leases: rules.properties.contains(&Property::VoteLeasesKept),
                commands: local::commands(members, clock),
                guardians_confirm: rules.scope.is_none_or(Scope::guardians_confirm),
            },
            claims: rules.properties.iter().map(|property| property.claim()).collect(),
            tracks_leaderships: rules.properties.iter().any(|it| about_leaderships.contains(it)),
            most_overtaking: scene
                .most_overtaking
                .filter(|_| rules.properties.contains(&Property::BoundedBypass)),
            uses: Uses {
                leases: P::has_leases(config),
                detector: P::heeds_detector(config),
                order: rules.properties.contains(&Property::CausalOrder),
                tokens: rules.properties.contains(&Property::OneToken),
                deliveries: rules.properties.iter().any(|it| Property::DELIVERED.contains(it)),
            },
            lasting: rules.messages_last(),
            slots: count + further_processes::<P>(config, &rules),
            rules,
            start: Vec::new(),
            election_called: true,
            reductions: Reductions::default(),
            trust: Trust::default(),
            symmetry: Symmetry::default(),
            store: Mutex::new(store),
            observations: Mutex::new(Interner::new()),
            channels: (0..count).map(|_| AtomicU64::new(0)).collect(),
            first_term: Term::default(),
        }
    }

    /// Merges states and leaves out steps, as far as no property can tell the difference.
    pub(crate) fn reduce_states(&mut self) {
        // A loop of canonical forms is not always a loop, so endless runs must be found among whole states.
        let is_safety = self.rules.properties.iter().all(|property| property.is_safety());
        // Commands set what members remember of each other, which no canonical form leaves out.
        let has_commands = self.rules.budget.commands > 0;
        let config = self.context.config;
        self.reductions = Reductions {
            settled: true,
            canonical: is_safety && !has_commands && P::has_canonical_form(config),
            obsolete: is_safety && self.lasting,
            saturate: is_safety && self.lasting && P::has_sessions(self.context.config),
        };
        if is_safety && P::is_symmetric(config) && !P::heeds_detector(config) {
            self.symmetry = Symmetry::of(self.context.members);
        }
    }

    /// Stops taking steps at once and dropping messages; returns whether it did before.
    pub(crate) fn stop_saturating(&mut self) -> bool {
        let saturated = std::mem::take(&mut self.reductions.saturate);
        self.reductions.obsolete &= !saturated;
        saturated
    }

    fn term_at_the_start(&self) -> Term {
        let (locals, _) = self.take_apart(&self.start);
        let disks = locals.iter().filter_map(|local| local.disk.as_ref());
        disks.map(Durable::term).max().unwrap_or_default()
    }

    /// The bound on terms: every member campaigns twice, and twice more for every fault and for every member that is down
    /// at the start. Unbounded where nothing limits how often members campaign.
    fn highest_term(&self) -> u64 {
        let Timers::Bounded { .. } = self.rules.timers else { return u64::MAX };
        if P::has_leases(self.context.config) || self.rules.budget.campaigns == ANY {
            return u64::MAX;
        }
        let count = self.context.members.len() as u64;
        let faults = u64::from(self.rules.budget.total()) + count;
        self.first_term.0 + count * (2 + 2 * faults)
    }

    /// The events that set the scene, in order, and whether their effects count: nothing that a dead member sent does.
    pub(crate) fn opening(&self, scene: &Scene<'_>) -> Vec<(usize, Input<P>, bool)> {
        let members = self.context.members;
        let is_dead = |id: NodeId| scene.dead.contains(&id);
        let founding = Origin::Founding { leader: scene.leader };
        let mut opening = Vec::new();
        for (slot, id) in members.iter().enumerate() {
            opening.push((slot, Act::Start(founding), !is_dead(id)));
            if is_dead(id) {
                opening.push((slot, Act::Crash, true));
            }
        }
        for &dead in scene.dead.iter().filter(|_| scene.dead_known) {
            let Some(peer) = members.position(dead) else { continue };
            let live = members.iter().enumerate().filter(|&(_, id)| !is_dead(id));
            let report = |(slot, _)| (slot, Act::Report { peer: peer as u8, up: false }, true);
            opening.extend(live.map(report));
        }
        let initiators = scene.initiators.iter().filter_map(|&id| members.position(id));
        opening.extend(initiators.map(|slot| (slot, Act::Campaign, true)));
        opening
    }

    fn begin(&self, scene: &Scene<'_>) -> Vec<u32> {
        let unborn = |id| Local::unborn(id, self.rules.timers.expiries());
        let mut locals: Vec<Local<P>> = self.context.members.iter().map(unborn).collect();
        for local in &mut locals {
            local.requests = Requests(scene.requests_of(local.id));
        }
        let mut setup = Setup { locals, sends: Vec::new() };
        for (slot, input, counts) in self.opening(scene) {
            let sent = setup.sends.len();
            self.tell(&mut setup, slot, input);
            if !counts {
                setup.sends.truncate(sent);
            }
        }
        if P::has_sessions(self.context.config) {
            self.introduce(&mut setup);
        }
        // Detectors have had all the time that they need.
        let settled = self.context.detection();
        setup.locals.iter_mut().for_each(|local| local.settled = settled);
        self.assemble(setup)
    }

    /// All members meet and store that. It removes no run: a process that has not met the first process of a member can do
    /// what one can do that has met it and receives nothing from it. Nor does it keep another process out, because the
    /// first has the lowest incarnation of all.
    fn introduce(&self, setup: &mut Setup<P>) {
        let mut next = 0;
        while let Some(Flight { from, to, message, .. }) = setup.sends.get(next).cloned() {
            next += 1;
            let from = self.context.members.at(usize::from(from));
            let before = setup.sends.len();
            let received = Act::Receive { message: (from, message), again: false };
            self.tell(setup, usize::from(to), received);
            let new = setup.sends.split_off(before);
            for flight in new {
                if !setup.sends.contains(&flight) {
                    setup.sends.push(flight);
                }
            }
        }
    }

    fn tell(&self, setup: &mut Setup<P>, slot: usize, input: Input<P>) {
        let handled = local::handle(&self.context, &setup.locals[slot], input, 0);
        setup.sends.extend(self.flights_of(slot, &handled));
        setup.locals[slot] = handled.local;
    }

    fn assemble(&self, setup: Setup<P>) -> Vec<u32> {
        let mut store = self.lock();
        let leadership = |local: &Local<P>| {
            let view = local.state.as_ref().map(Protocol::view);
            Some((view.filter(leads_in_a_term)?.term, local.id, local.process))
        };
        let mut leaderships: Vec<Leadership> = match self.tracks_leaderships {
            true => setup.locals.iter().filter_map(leadership).collect(),
            false => Vec::new(),
        };
        leaderships.sort_unstable();
        let mut sections = Sections::new(self.most_overtaking);
        for local in setup.locals.iter().filter(|local| !local.section().is_outside()) {
            // Whatever is wrong by then was wrong before.
            sections.announce(local.id, Section::Waiting);
            sections.announce(local.id, local.section());
        }
        let history = store.histories.number(Past { led: leaderships, sections });
        let up: Vec<bool> = setup.locals.iter().map(Local::is_up).collect();
        let mut state: Vec<u32> =
            setup.locals.into_iter().map(|local| store.locals.number(local)).collect();
        state.resize_with(self.slots, || store.locals.number(Local::vacant()));
        state.extend(self.rules.budget.pack().words());
        state.push(history);
        let Budget { restarts, rejoins, .. } = self.rules.budget;
        let may_arrive =
            |flight: &Flight<P::Message>| up[usize::from(flight.to)] || restarts > 0 || rejoins > 0;
        let arriving = setup.sends.into_iter().filter(may_arrive);
        let mut flights: Vec<(u16, u32)> =
            arriving.map(|flight| (flight.channel(), store.flights.number(flight))).collect();
        match self.rules.fifo {
            true => flights.sort_by_key(|&(channel, _)| channel),
            false => flights.sort_unstable(),
        }
        if self.lasting {
            flights.dedup();
        }
        state.extend(flights.into_iter().map(|(_, number)| number));
        state
    }

    /// What a process sends, as messages in flight. `from` is the position of its member.
    fn flights_of(&self, from: usize, handled: &Handled<P>) -> Vec<Flight<P::Message>> {
        let flight = |effect: &Effect<P::Message, P::Timer, P::Durable>| match effect {
            Effect::Send { to, message } => {
                let to = self.context.members.position(*to)?;
                self.channels[from].fetch_or(1 << to, Ordering::Relaxed);
                let (start, message) = (handled.local.start(), message.clone());
                Some(Flight { from: from as u8, to: to as u8, age: 0, start, message })
            }
            _ => None,
        };
        handled.effects.iter().filter_map(flight).collect()
    }

    /// A worker that knows the start, and the start.
    fn start_and_worker(&self) -> (Vec<u32>, Worker<P>) {
        let mut worker = Worker::new();
        self.copy(&mut worker, &mut self.lock());
        let mut start = self.start.clone();
        if self.reductions.saturate {
            self.saturate_all(&mut worker, &mut start, None);
            let flights = start.split_off(self.slots + HEAD);
            let is_used = |&flight: &u32| !self.is_obsolete_in(&worker, &start, flight);
            let used: Vec<u32> = flights.into_iter().filter(is_used).collect();
            start.extend(used);
        }
        (start, worker)
    }

    fn lock(&self) -> MutexGuard<'_, Store<P>> {
        // A thread that panicked while it held the lock left numbers that are whole.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message with this number.
    pub(crate) fn flight(&self, number: u32) -> Arc<Flight<P::Message>> {
        Arc::clone(&self.lock().flights.since(number as usize)[0])
    }

    /// The timer with this number.
    pub(crate) fn timer(&self, number: u32) -> P::Timer {
        *self.lock().timers.since(number as usize)[0]
    }

    /// An act with the sender and message or the timer itself.
    pub(crate) fn input(&self, act: Act) -> Input<P> {
        let message = |number| {
            let flight = self.flight(number);
            (self.context.members.at(usize::from(flight.from)), flight.message.clone())
        };
        act.resolve(message, |number| self.timer(number))
    }

    /// Whether this slot belongs to no member.
    #[inline]
    fn is_further(&self, slot: usize) -> bool {
        slot >= self.context.members.len()
    }

    /// What claims see of each member, as its process in the member's own slot has it.
    pub(crate) fn seen(&self, worker: &Worker<P>, state: &[u32]) -> Seen {
        let locals = state[..self.context.members.len()].iter();
        let locals = || locals.clone().map(|&local| &worker.locals[local as usize].local);
        let delivered = locals().filter(|_| self.uses.deliveries);
        Seen {
            views: locals().map(|local| local.state.as_ref().map(Protocol::view)).collect(),
            delivered: delivered
                .filter_map(|local| Some((local.id, local.is_up(), local.deliveries()?.clone())))
                .collect(),
        }
    }

    /// The processes in a state, and the messages in flight.
    pub(crate) fn take_apart(&self, state: &[u32]) -> (Vec<Local<P>>, Vec<Flight<P::Message>>) {
        let (locals, rest) = state.split_at(self.slots);
        let store = self.lock();
        let local = |&number: &u32| Local::clone(&store.locals.since(number as usize)[0]);
        let flight = |&number: &u32| Flight::clone(&store.flights.since(number as usize)[0]);
        (locals.iter().map(local).collect(), rest[HEAD..].iter().map(flight).collect())
    }

    /// Whether a process may start in a state or later.
    pub(crate) fn may_start(&self, state: &[u32]) -> bool {
        BudgetLeft::read(&state[self.slots..]).allows_starts()
    }
}

/// How many processes there may be besides one a member.
fn further_processes<P: Explore>(config: &P::Config, rules: &Rules) -> usize {
    let Budget { replacements, clones, .. } = rules.budget;
    let counted = [replacements, clones].into_iter().filter(|&count| count != ANY);
    if P::has_sessions(config) { counted.map(usize::from).sum() } else { 0 }
}

/// Whether this is the view of a leader with a term. Algorithms without terms have term zero.
fn leads_in_a_term(view: &View) -> bool {
    view.role.leads() && view.term > Term::default()
}

/// A protocol that several threads can explore.
pub trait Explorable:
    Explore<Config: Sync, Message: Send + Sync, Timer: Send + Sync, Durable: Send + Sync> + Send + Sync
{
}

impl<P> Explorable for P where
    P: Explore<Config: Sync, Message: Send + Sync, Timer: Send + Sync, Durable: Send + Sync>
        + Send
        + Sync
{
}

impl<P: Explorable> Space for Model<'_, P> {
    type Worker = Worker<P>;
    type Step = Step;

    fn worker(&self) -> Worker<P> {
        self.start_and_worker().1
    }

    fn start(&self) -> Vec<u32> {
        self.start_and_worker().0
    }

    fn steps(
        &self,
        worker: &mut Worker<P>,
        state: &[u32],
        reduce: bool,
        out: &mut Successors<Step>,
    ) -> bool {
        out.clear();
        worker.changes.clear();
        self.catch_up(worker, state);
        let parts = self.parts(worker, state);
        self.add_all(worker, &parts, out);
        reduce && parts.budget_left.is_empty() && self.reduce(worker, state, out)
    }

    fn write(&self, worker: &Worker<P>, state: &[u32], change: u32, words: &mut Vec<u32>) {
        let (locals, rest) = state.split_at(self.slots);
        let change = &worker.changes[change as usize];
        self.write_changed(worker, (locals, &rest[HEAD..]), change, words);
    }

    fn fingerprint(&self, worker: &mut Worker<P>, state: &[u32]) -> u64 {
        self.canonical_fingerprint(worker, state)
    }

    fn is_sound(&self) -> bool {
        !self.reductions.canonical || self.verify_obsolete()
    }

    fn observation(&self, worker: &mut Worker<P>, state: &[u32]) -> u32 {
        let print = self.fingerprint_of_views(worker, state);
        if let Some(&observation) = worker.observations.get(&print) {
            return observation;
        }
        let seen = self.seen(worker, state);
        let mut observations = self.observations.lock().unwrap_or_else(PoisonError::into_inner);
        let observation = observations.number(seen);
        worker.observations.insert(print, observation);
        observation
    }

    fn claims(&self) -> &[Claim] {
        &self.claims
    }

    fn holds(&self, claim: usize, observation: u32) -> bool {
        let observations = self.observations.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = Arc::clone(&observations.since(observation as usize)[0]);
        let is_idle = |view: &View| {
            view.leader.is_none() && view.role == Role::Follower && view.section.is_outside()
        };
        if !self.election_called && seen.views.iter().flatten().all(is_idle) {
            return true;
        }
        self.rules.properties[claim].holds(self.context.members, &seen)
    }

    fn fairness(&self, step: Step) -> Option<Step> {
        let is_timed = self.context.clock.is_some();
        let is_fair = match step.act {
            Act::Receive { again, .. } => !again,
            Act::Report { .. } | Act::Exit => true,
            // With free timers a state in which only background timers are armed is at rest.
            Act::Expire { background, .. } => is_timed || !background,
            Act::Wait { .. } => return Some(Step::new(0, Act::Wait { ticks: 0 })),
            _ => false,
        };
        (is_fair && step.crash_after == 0).then_some(step)
    }
}
