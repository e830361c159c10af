//! The space of every protocol: the shipped state machines, with everything that can happen to them.
//!
//! # States are numbers
//!
//! What a member does depends on its own [`Local`] state and on what happens to it, on nothing else. So each different
//! local state and each different message is kept once and has a number, and each pair of a local state and an event is
//! handed to the state machine once: what came out is remembered. A state of the whole is a short list of numbers, and
//! a step replaces a few of them:
//!
//! ```text
//!     local states, one a member │ what is left of the budget │ who led when │ messages under way
//! ```
//!
//! Where processes of a member are told apart ([`Protocol::has_sessions`]), more local states may follow those of the members:
//! processes that have been replaced and run on, or have been cloned. They stand in *slots* of their own, which are vacant
//! at first. What is sent to a member may arrive at any of its processes. See `machine/processes.rs`.
//!
//! Messages stand by receiver, then by sender; those of one link in the order of sending where links keep it.
//!
//! # What can happen
//!
//! - a message that is under way arrives (where links keep the order, the first of its link); it is lost or arrives
//!   twice, if the budget allows; at a member that is down it is lost;
//! - if any number of messages may be lost and doubled, links do not keep the order and nothing says how long a message
//!   takes, messages *last*: see below;
//! - an armed timer expires: at any moment where timers are *free*, which is the asynchronous model; where they are
//!   *bounded*, when it is due, and time goes on only when nothing that is due is left to do, which is the synchronous
//!   model: a message takes from nothing to a tick, which is `D`. A message that has taken a tick comes before a timer;
//! - a failure detector tells a member of a crash or of a recovery, at any moment after it; of a crash that did not
//!   happen, if the budget allows, and takes it back at any moment after that;
//! - a member crashes, also between two things that one event makes it send or store; restarts; calls an election; all
//!   if the budget allows.
//!
//! Nothing of this is left to luck but the fingerprints: every order is explored.
//!
//! # Messages that last
//!
//! Where a message may be lost, doubled, late for ever and overtaken, what is under way is kept as a *set* that only
//! grows: whatever has been sent may arrive at any moment from then on, as often as it likes, or never. That leaves out
//! no run and adds none. Whatever happens in a network of that kind happens here, by the same deliveries: a message
//! that is lost is one that does not arrive any more. And whatever happens here happens there: a message that is
//! going to arrive *k* times is doubled *k* times. What can be said of a state or a step is the same in both, but not what
//! can be said of the end of a run, for here there is always something under way.
//!
//! It makes states far fewer: two runs in which the same was said come to the same state, in whatever order, however
//! often, and whatever was heard of it by those who took no notice. A delivery that changes nothing is no step.

mod hand;
mod processes;
mod saturate;
mod spent;
mod steps;
mod symmetry;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doyen_core::explore::{Explore, Serial};
use doyen_core::members::{Members, NodeId, Term};
use doyen_core::protocol::{Durable, Effect, Event, Origin, Protocol, Role, View};

use super::budget::{ANY, Budget, Item, Purse};
use super::fingerprint::{fingerprint, mix};
use super::intern::Interner;
use super::local::{self, Handled, Local, Stimulus, Terms};
use super::property::Property;
use super::schedule::{Command, StepText};
use super::space::{Claim, Space, Successors};
use super::{Rules, Scene, Timers};
use doyen_sim::hash::FastSet;
use doyen_sim::world::{self, Frozen, Snapshot};

use hand::FlightFacts;
pub(crate) use hand::{Hand, is_elected, leads_in_a_term};
use spent::Trust;
pub(super) use steps::Parts;
use symmetry::Symmetry;

/// A message takes at most so many ticks where timers are bounded.
const MOST_TICKS: u8 = 1;

/// So many words of a state stand between its local states and its messages: what is left of the budget, and who led.
const HEAD: usize = 3;

/// What tells a serial number that is past from one that is counted from the first.
const PAST: u64 = 1 << 62;

/// The most members that a check takes.
pub const MOST_MEMBERS: usize = 32;

/// A message under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Flight<M> {
    pub(crate) from: u8,
    pub(crate) to: u8,
    /// How many ticks it has taken so far.
    pub(crate) age: u8,
    /// The start of the sender's process by which it was sent, where sessions are told apart; else zero.
    pub(crate) start: u16,
    pub(crate) message: M,
}

/// A step, by numbers. [`Machine::describe`] says it in words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Step {
    pub(crate) act: Act,
    /// The member crashes when it has sent and stored so many things; zero if it does not.
    pub(crate) crash_after: u8,
}

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Act {
    /// This message arrives.
    Deliver(u32),
    /// This message arrives, and will again.
    Double(u32),
    /// This message is lost.
    Lose(u32),
    /// This timer expires.
    Expire {
        member: u8,
        timer: u32,
        upkeep: bool,
    },
    /// A member is told the truth about a peer.
    Report {
        member: u8,
        peer: u8,
        up: bool,
    },
    /// A member is told that a peer is down, and it is not.
    Suspect {
        member: u8,
        peer: u8,
    },
    Campaign(u8),
    Crash(u8),
    Restart(u8),
    /// It comes up without its disk.
    Rejoin(u8),
    /// This message arrives at this process, which is not the one in its member's own slot, and will again.
    DoubleAt {
        flight: u32,
        slot: u8,
    },
    /// Another process of the member is started without its disk; the one before runs on.
    Replace(u8),
    /// Another process of the member is started from a copy of its disk; the one before runs on.
    Clone(u8),
    /// An operator tells a member what to do.
    Command {
        member: u8,
        command: Command,
    },
    /// So many ticks go by.
    Wait(u32),
}

impl Act {
    /// The message that it is about.
    fn message(self) -> Option<u32> {
        match self {
            Self::Lose(flight) => Some(flight),
            _ => self.hears(),
        }
    }

    /// The message that arrives.
    pub(super) fn hears(self) -> Option<u32> {
        match self {
            Self::Deliver(flight) | Self::Double(flight) | Self::DoubleAt { flight, .. } => {
                Some(flight)
            }
            _ => None,
        }
    }
}

/// What a check is about.
pub(crate) struct Machine<'c, P: Explore> {
    pub(super) terms: Terms<'c, P>,
    pub(super) rules: Rules,
    /// How many local states there are: one for each member, and those of further processes.
    pub(super) slots: usize,
    properties: Vec<Property>,
    claims: Vec<Claim>,
    start: Vec<u32>,
    /// Somebody led or had called an election when it began, or members call one of themselves: else nothing is owed
    /// until somebody does.
    called: bool,
    store: Mutex<Store<P>>,
    moods: Mutex<Interner<Vec<Option<View>>>>,
    /// Whether who led when is asked about.
    notes_reigns: bool,
    /// Whether states that differ in what does not matter any more are one.
    pub(super) canonical: bool,
    /// Whether whatever has been sent may arrive at any moment from then on, as often as it likes, or never.
    lasting: bool,
    /// Whether states are one that have the same [canonical form](Explore::canonical).
    essential: bool,
    /// Where messages last: whether those are left out that have no effect any more, and crashes that lose nothing but
    /// messages.
    frugal: bool,
    /// Where messages last: whether what changes nothing but that something is sent happens at once.
    saturating: bool,
    /// Which messages may be left out.
    trust: Trust,
    /// By what else members could be called, where they are alike.
    symmetry: Symmetry,
    /// To whom each member has ever sent, a bit for each position.
    pub(super) channels: Vec<AtomicU64>,
    /// The highest term that anybody had stored when it began.
    first_term: Term,
}

/// In which term a process of which member led.
type Reign = (Term, NodeId, u8);

/// Everything that is kept once.
struct Store<P: Explore> {
    locals: Interner<Local<P>>,
    flights: Interner<Flight<P::Message>>,
    timers: Interner<P::Timer>,
    /// Who led in which term.
    histories: Interner<Vec<Reign>>,
    /// From which local state to which other a step leads.
    transitions: FastSet<(u32, u32)>,
}

impl<'c, P: Explore> Machine<'c, P> {
    /// The space of `rules`, in which everything begins as `scene` says.
    pub(crate) fn new(config: &'c P::Config, scene: &Scene<'c>, rules: Rules) -> Self {
        let mut machine = Self::empty(config, scene.members, rules);
        machine.called =
            P::has_leases(config) || scene.leader.is_some() || !scene.initiators.is_empty();
        machine.start = machine.begin(scene);
        machine.first_term = machine.term_at_the_start();
        machine
    }

    /// The space of `rules`, in which everything begins in the middle of a simulation. Whatever was cut off there is
    /// not any more, and detectors have yet to notice who is dead.
    pub(crate) fn resume(
        config: &'c P::Config,
        members: &'c Members,
        snapshot: Snapshot<P>,
        rules: Rules,
    ) -> Self {
        let mut machine = Self::empty(config, members, rules);
        let expiries = machine.rules.timers.expiries();
        let thaw =
            |(id, frozen): (NodeId, Frozen<P>)| Local::thaw(id, frozen, expiries, &machine.terms);
        let locals = members.iter().zip(snapshot.members).map(thaw).collect();
        let position = |id: NodeId| members.position(id).map(|position| position as u8);
        let under_way = |flight: world::Flight<P::Message>| {
            let world::Flight { from, to, message } = flight;
            Some(Flight { from: position(from)?, to: position(to)?, age: 0, start: 0, message })
        };
        let sends = snapshot.flights.into_iter().filter_map(under_way).collect();
        machine.start = machine.assemble(Cast { locals, sends });
        machine.first_term = machine.term_at_the_start();
        machine
    }

    fn term_at_the_start(&self) -> Term {
        let store = self.lock();
        let locals = self.start.iter().take(self.slots);
        let disk =
            |&local: &u32| store.locals.since(local as usize)[0].disk.as_ref().map(Durable::term);
        locals.filter_map(disk).max().unwrap_or_default()
    }

    /// What no term rises beyond: every member runs twice, and twice more for everything that goes wrong and for
    /// everybody that is dead already. Nothing is said where nothing bounds how often members run.
    pub(super) fn highest_term(&self) -> u64 {
        let Timers::Bounded { .. } = self.rules.timers else { return u64::MAX };
        if P::has_leases(self.terms.config) || self.rules.budget.campaigns == ANY {
            return u64::MAX;
        }
        let count = self.terms.members.len() as u64;
        let faults = u64::from(self.rules.budget.total()) + count;
        self.first_term.0 + count * (2 + 2 * faults)
    }

    fn empty(config: &'c P::Config, members: &'c Members, rules: Rules) -> Self {
        let count = members.len();
        assert!(count <= MOST_MEMBERS, "a check takes at most {MOST_MEMBERS} members");
        let of_reigns = [Property::OneLeaderPerTerm, Property::LeasesRise];
        let store = Store {
            locals: Interner::new(),
            flights: Interner::new(),
            timers: Interner::new(),
            histories: Interner::new(),
            transitions: FastSet::default(),
        };
        Self {
            terms: Terms {
                config,
                members,
                pace: rules.timers.pace(),
                notes_promises: rules.properties.contains(&Property::VoteLeasesKept),
            },
            claims: rules.properties.iter().map(|property| property.claim()).collect(),
            properties: rules.properties.clone(),
            notes_reigns: rules.properties.iter().any(|it| of_reigns.contains(it)),
            lasting: rules.messages_last(),
            slots: count + further_processes::<P>(&rules),
            rules,
            start: Vec::new(),
            called: true,
            canonical: false,
            essential: false,
            frugal: false,
            saturating: false,
            trust: Trust::default(),
            symmetry: Symmetry::default(),
            store: Mutex::new(store),
            moods: Mutex::new(Interner::new()),
            channels: (0..count).map(|_| AtomicU64::new(0)).collect(),
            first_term: Term::default(),
        }
    }

    /// Takes states for one, and leaves steps out, where that makes no difference to what is claimed.
    pub(super) fn reduce_states(&mut self) {
        self.canonical = true;
        // A loop of essences is not always a loop, so what never ends must be told by whole states.
        let is_safety = self.properties.iter().all(|property| property.is_safety());
        // By commands an operator says what members remember of each other, which no essence leaves out.
        let is_plain = self.rules.budget.commands == 0;
        self.essential = is_safety && is_plain && P::has_canonical_form(self.terms.config);
        self.frugal = is_safety && self.lasting;
        if is_safety && P::is_symmetric(self.terms.config) && !P::heeds_detector(self.terms.config)
        {
            self.symmetry = Symmetry::of(self.terms.members);
        }
        self.saturating = is_safety && self.lasting && P::has_sessions();
    }

    /// The state in which everything begins, and a hand that knows it.
    fn start_and_hand(&self) -> (Vec<u32>, Hand<P>) {
        let mut hand = Hand::new();
        self.copy(&mut hand, &mut self.lock());
        let mut start = self.start.clone();
        if self.saturating {
            self.saturate_all(&mut hand, &mut start, None);
            let first = self.slots + HEAD;
            let used: Vec<u32> = start[first..]
                .iter()
                .copied()
                .filter(|&flight| !self.is_spent_in(&hand, &start, flight))
                .collect();
            start.truncate(first);
            start.extend(used);
        }
        (start, hand)
    }

    /// Does nothing at once any more, and leaves no message out; says whether it did.
    pub(super) fn stop_saturating(&mut self) -> bool {
        let saturating = std::mem::take(&mut self.saturating);
        self.frugal &= !saturating;
        saturating
    }

    /// Everybody starts, the dead die, and whoever has noticed already calls an election.
    fn begin(&self, scene: &Scene<'_>) -> Vec<u32> {
        let members = self.terms.members;
        let place = |&id: &NodeId| members.position(id);
        let mut cast = Cast { locals: Vec::new(), sends: Vec::new() };
        let founding = Origin::Founding { leader: scene.leader };
        for (position, id) in members.iter().enumerate() {
            cast.locals.push(Local::unborn(id, self.rules.timers.expiries()));
            self.tell(&mut cast, position, Stimulus::Start(founding));
        }
        for dead in scene.dead.iter().filter_map(place) {
            self.tell(&mut cast, dead, Stimulus::Crash);
            cast.sends.retain(|flight| usize::from(flight.from) != dead);
        }
        for &dead in scene.dead.iter().filter(|_| scene.dead_known) {
            for (position, _) in
                members.iter().enumerate().filter(|(_, id)| !scene.dead.contains(id))
            {
                self.tell(&mut cast, position, Stimulus::Event(Event::PeerDown(dead)));
            }
        }
        for initiator in scene.initiators.iter().filter_map(place) {
            self.tell(&mut cast, initiator, Stimulus::Event(Event::Campaign));
        }
        if P::has_sessions() {
            self.introduce(&mut cast);
        }
        // Detectors have had all the time they need.
        let calm = self.terms.detection();
        cast.locals.iter_mut().for_each(|local| local.calm = calm);
        self.assemble(cast)
    }

    /// Everybody meets everybody, and stores that. Nothing is left out by it: one that has not met the first process of a
    /// member does what one can do that has met it and to which nothing of it arrives. That it was met keeps no other
    /// process out, because the first has the lowest incarnation of all.
    fn introduce(&self, cast: &mut Cast<P>) {
        let mut next = 0;
        while let Some(Flight { from, to, message, .. }) = cast.sends.get(next).cloned() {
            next += 1;
            let from = self.terms.members.at(usize::from(from));
            let before = cast.sends.len();
            let heard = Stimulus::Event(Event::Message { from, message });
            self.tell(cast, usize::from(to), heard);
            let new = cast.sends.split_off(before);
            for flight in new {
                if !cast.sends.contains(&flight) {
                    cast.sends.push(flight);
                }
            }
        }
    }

    fn tell(&self, cast: &mut Cast<P>, position: usize, stimulus: Stimulus<P::Message, P::Timer>) {
        let handled = local::handle(&self.terms, &cast.locals[position], stimulus, None);
        cast.sends.extend(self.flights_of(position, &handled));
        cast.locals[position] = handled.local;
    }

    fn assemble(&self, cast: Cast<P>) -> Vec<u32> {
        let mut store = self.lock();
        let view = |local: &Local<P>| local.state.as_ref().map(Protocol::view);
        let reign = |local: &Local<P>| {
            Some((view(local).filter(leads_in_a_term)?.term, local.id, local.process))
        };
        let mut reigns: Vec<Reign> = cast.locals.iter().filter_map(reign).collect();
        reigns.sort_unstable();
        let history = match self.notes_reigns {
            true => store.histories.number(reigns),
            false => store.histories.number(Vec::new()),
        };
        let mut state: Vec<u32> = Vec::new();
        let up: Vec<bool> = cast.locals.iter().map(Local::is_up).collect();
        state.extend(cast.locals.into_iter().map(|local| store.locals.number(local)));
        state.resize_with(self.slots, || store.locals.number(Local::vacant()));
        state.extend(self.rules.budget.pack().words());
        state.push(history);
        let awaited = |flight: &Flight<P::Message>| {
            let Budget { restarts, rejoins, .. } = self.rules.budget;
            up[usize::from(flight.to)] || restarts > 0 || rejoins > 0
        };
        let mut flights: Vec<(u16, u32)> = cast
            .sends
            .into_iter()
            .filter(awaited)
            .map(|flight| (channel(&flight), store.flights.number(flight)))
            .collect();
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

    /// What a member sends, as messages under way.
    fn flights_of(&self, from: usize, handled: &Handled<P>) -> Vec<Flight<P::Message>> {
        let flight = |effect: &Effect<P::Message, P::Timer, P::Durable>| match effect {
            Effect::Send { to, message } => {
                let to = self.terms.members.position(*to)?;
                self.channels[from].fetch_or(1 << to, Ordering::Relaxed);
                let message = message.clone();
                let start = handled.local.start();
                Some(Flight { from: from as u8, to: to as u8, age: 0, start, message })
            }
            _ => None,
        };
        handled.effects.iter().filter_map(flight).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Store<P>> {
        // Whoever panicked while holding it left numbers that are whole.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many processes there may be beside one a member.
fn further_processes<P: Explore>(rules: &Rules) -> usize {
    let Budget { replacements, clones, .. } = rules.budget;
    let counted =
        [replacements, clones].map(|count| usize::from(if count == ANY { 0 } else { count }));
    if P::has_sessions() { counted.iter().sum() } else { 0 }
}

/// Everybody while the scene is set.
struct Cast<P: Explore> {
    locals: Vec<Local<P>>,
    sends: Vec<Flight<P::Message>>,
}

fn channel<M>(flight: &Flight<M>) -> u16 {
    u16::from(flight.to) << 8 | u16::from(flight.from)
}

/// What makes the place of a thing in a state count.
#[inline]
fn seat(place: usize) -> u64 {
    (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What tells a process in a slot of its own from one in its member's. Those slots are alike.
#[inline]
fn further(own: u64) -> u64 {
    mix(own, seat(62))
}

/// The part of a message in the fingerprint of a state.
#[inline]
fn print_of_flight(own: u64, serial: Option<u64>, seat: u64) -> u64 {
    mix(serial.map_or(own, |serial| mix(own, 2 * serial)), seat)
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

impl<P: Explorable> Space for Machine<'_, P> {
    type Hand = Hand<P>;
    type Step = Step;

    fn hand(&self) -> Hand<P> {
        self.start_and_hand().1
    }

    fn start(&self) -> Vec<u32> {
        self.start_and_hand().0
    }

    fn steps(
        &self,
        hand: &mut Hand<P>,
        state: &[u32],
        reduce: bool,
        out: &mut Successors<Step>,
    ) -> bool {
        out.clear();
        self.catch_up(hand, state);
        let parts = self.parts(hand, state);
        self.add_all(hand, &parts, out);
        reduce && parts.purse.is_empty() && self.reduce(hand, state, out)
    }

    fn fingerprint(&self, hand: &mut Hand<P>, state: &[u32]) -> u64 {
        let (locals, rest) = state.split_at(self.slots);
        let history = hand.histories[rest[HEAD - 1] as usize].print;
        let mut print = mix(history ^ Purse::read(rest).bits(), seat(63));
        let awaited = self.awaiting_news(hand, state);
        for (place, &local) in locals.iter().enumerate() {
            let facts = &hand.locals[local as usize];
            let own = if awaited >> place & 1 == 1 { facts.print } else { facts.calm_print };
            let own = mix(own, seat(facts.seat));
            print = print.wrapping_add(if self.is_further(place) { further(own) } else { own });
        }
        self.each_flight(hand, state, |facts, serial, seat| {
            print = print.wrapping_add(print_of_flight(facts.print, serial, seat));
        });
        match self.symmetry.renamings().is_empty() {
            true => print,
            false => mix(print, seat(0)).wrapping_add(self.print_renamed(hand, state)),
        }
    }

    fn is_sound(&self) -> bool {
        !self.essential || self.verify_spent()
    }

    fn mood(&self, hand: &mut Hand<P>, state: &[u32]) -> u32 {
        let locals = &state[..self.terms.members.len()];
        let view_print = |(place, &local): (usize, &u32)| {
            mix(hand.locals[local as usize].view_print, seat(place))
        };
        let print = locals.iter().enumerate().map(view_print).fold(0, u64::wrapping_add);
        if let Some(&mood) = hand.moods.get(&print) {
            return mood;
        }
        let mood = self
            .moods
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .number(self.views(hand, state));
        hand.moods.insert(print, mood);
        mood
    }

    fn claims(&self) -> &[Claim] {
        &self.claims
    }

    fn holds(&self, claim: usize, mood: u32) -> bool {
        let moods = self.moods.lock().unwrap_or_else(PoisonError::into_inner);
        let views = Arc::clone(&moods.since(mood as usize)[0]);
        let is_idle = |view: &View| view.leader.is_none() && view.role == Role::Follower;
        if !self.called && views.iter().flatten().all(is_idle) {
            return true;
        }
        self.properties[claim].holds(self.terms.members, &views)
    }

    fn duty(&self, step: Step) -> Option<Step> {
        let bounded = self.terms.pace.is_some();
        let act = match step.act {
            Act::Deliver(_) | Act::Report { .. } => step.act,
            // A state in which only upkeep is left is at rest where nothing makes timers expire.
            Act::Expire { upkeep, .. } if bounded || !upkeep => step.act,
            Act::Wait(_) => Act::Wait(0),
            _ => return None,
        };
        (step.crash_after == 0).then_some(Step { act, crash_after: 0 })
    }
}

impl<P: Explore> Machine<'_, P> {
    /// Whether this slot is of no member.
    #[inline]
    pub(super) fn is_further(&self, slot: usize) -> bool {
        slot >= self.terms.members.len()
    }

    /// What each live member believes, as far as the process in its own slot is concerned.
    pub(crate) fn views(&self, hand: &Hand<P>, state: &[u32]) -> Vec<Option<View>> {
        let locals = &state[..self.terms.members.len()];
        let view =
            |&local: &u32| hand.locals[local as usize].local.state.as_ref().map(Protocol::view);
        locals.iter().map(view).collect()
    }

    /// The serial number of a message, counted from the first that makes a difference to whoever gave it; zero if it makes
    /// none. A message back to whoever gave the number makes none if it is [spent](Self::is_spent).
    fn serial_in_essence(&self, hand: &Hand<P>, state: &[u32], flight: u32) -> u64 {
        let (locals, rest) = state.split_at(self.slots);
        let facts = &hand.flights[flight as usize];
        let Some((serial, giver)) = facts.serial else { return 0 };
        let first = hand.locals[locals[giver] as usize].first_serial;
        let counts =
            |first: &Serial| first.series == serial.series && first.number <= serial.number;
        let matters = || {
            let returns = giver == facts.to();
            self.trust.lacks_serials()
                || Purse::read(rest).left(Item::Rejoin) > 0
                || returns && !self.is_spent(hand, locals[giver], flight)
        };
        match first.filter(counts) {
            Some(first) => serial.number - first.number + 1,
            None if matters() => PAST | serial.number,
            None => 0,
        }
    }

    /// Names everything under way, the serial number that counts if it has one, and its seat.
    #[inline]
    fn each_flight(
        &self,
        hand: &Hand<P>,
        state: &[u32],
        mut then: impl FnMut(&FlightFacts<P::Message>, Option<u64>, u64),
    ) {
        let (mut before, mut place) = (u16::MAX, 0);
        for &flight in &state[self.slots + HEAD..] {
            let facts = &hand.flights[flight as usize];
            place = if self.rules.fifo && before == facts.channel { place + 1 } else { 0 };
            before = facts.channel;
            // Where essences do not count, no message has a serial number.
            let serial = match self.essential {
                true => facts.serial.map(|_| self.serial_in_essence(hand, state, flight)),
                false => None,
            };
            then(facts, serial, seat(64 + place));
        }
    }

    /// All fingerprints of a state by renamings that change something, in one.
    fn print_renamed(&self, hand: &mut Hand<P>, state: &[u32]) -> u64 {
        let (locals, rest) = state.split_at(self.slots);
        let mut sums = std::mem::take(&mut hand.sums);
        sums.clear();
        let histories = hand.histories[rest[HEAD - 1] as usize].renamed.iter();
        let purse = Purse::read(rest).bits();
        sums.extend(histories.map(|&own| mix(own ^ purse, seat(63))));
        for (place, &local) in locals.iter().enumerate() {
            let is_further = self.is_further(place);
            for (sum, &own) in sums.iter_mut().zip(&hand.locals[local as usize].renamed) {
                *sum = sum.wrapping_add(if is_further { further(own) } else { own });
            }
        }
        self.each_flight(hand, state, |facts, serial, seat| {
            for (sum, &own) in sums.iter_mut().zip(&facts.renamed) {
                *sum = sum.wrapping_add(print_of_flight(own, serial, seat));
            }
        });
        let print = sums.iter().map(|&sum| mix(sum, seat(0))).fold(0, u64::wrapping_add);
        hand.sums = sums;
        print
    }

    /// Those for whom it matters how long ago they crashed, started or were told a falsehood, a bit for each position:
    /// about whom somebody is mistaken, or who is mistaken, and those whom mail from the dead can make so.
    fn awaiting_news(&self, hand: &Hand<P>, state: &[u32]) -> u64 {
        let detection = self.terms.detection();
        let (locals, rest) = state.split_at(self.slots);
        let facts = |&local: &u32| &hand.locals[local as usize];
        if !self.canonical || locals.iter().all(|local| facts(local).calm >= detection) {
            return u64::MAX;
        }
        let bits = |bit: &dyn Fn(usize) -> bool| {
            (0..locals.len()).filter(|&place| bit(place)).fold(0, |all, place| all | 1_u64 << place)
        };
        let up = bits(&|place| facts(&locals[place]).up);
        let mut awaited = 0;
        for (place, facts) in locals.iter().map(facts).enumerate().filter(|(_, facts)| facts.up) {
            let others = ((1 << locals.len()) - 1) & !(1 << place);
            let mistaken = !(facts.reported ^ up) & others;
            awaited |= mistaken | u64::from(mistaken != 0) << place;
        }
        for facts in rest[HEAD..].iter().map(|&flight| &hand.flights[flight as usize]) {
            if up >> facts.from() & 1 == 0 {
                awaited |= 1 << facts.from() | 1 << facts.to();
            }
        }
        awaited
    }

    /// The message with this number.
    pub(super) fn flight(&self, number: u32) -> Arc<Flight<P::Message>> {
        Arc::clone(&self.lock().flights.since(number as usize)[0])
    }

    /// The timer with this number.
    pub(super) fn timer(&self, number: u32) -> P::Timer {
        *self.lock().timers.since(number as usize)[0]
    }

    /// A step in words, with its identity.
    pub(crate) fn describe(&self, hand: &Hand<P>, state: &[u32], step: Step) -> StepText {
        let id = |slot: u8| hand.locals[state[usize::from(slot)] as usize].local.id;
        let message = |verb: &str, flight: u32| {
            let flight = &hand.flights[flight as usize].flight;
            let start = match flight.start {
                0 => String::new(),
                start => format!("[{start:x}] "),
            };
            let (from, to) = (id(flight.from), id(flight.to));
            format!("{verb} {start}{} from {from} to {to}", flight.message)
        };
        let mut words = match step.act {
            Act::Deliver(flight) => message("deliver", flight),
            Act::Double(flight) | Act::DoubleAt { flight, .. } => message("double", flight),
            Act::Lose(flight) => message("lose", flight),
            Act::Expire { member, timer, .. } => {
                format!("expire {:?} at {}", self.timer(timer), id(member))
            }
            Act::Report { member, peer, up: true } => {
                format!("report {} up to {}", id(peer), id(member))
            }
            Act::Report { member, peer, .. } | Act::Suspect { member, peer } => {
                format!("report {} down to {}", id(peer), id(member))
            }
            Act::Campaign(member) => format!("campaign {}", id(member)),
            Act::Crash(member) => format!("crash {}", id(member)),
            Act::Restart(member) => format!("restart {}", id(member)),
            Act::Rejoin(member) => format!("rejoin {}", id(member)),
            Act::Replace(member) => format!("replace {}", id(member)),
            Act::Clone(member) => format!("clone {}", id(member)),
            Act::Command { member, command } => command.words(id(member)),
            Act::Wait(1) => "wait 1 tick".to_owned(),
            Act::Wait(ticks) => format!("wait {ticks} ticks"),
        };
        if let Act::DoubleAt { slot, .. }
        | Act::Expire { member: slot, .. }
        | Act::Campaign(slot)
        | Act::Crash(slot)
        | Act::Restart(slot)
        | Act::Rejoin(slot) = step.act
            && let Some(process) = usize::from(slot).checked_sub(self.terms.members.len())
        {
            words.push_str(&format!(", other process {}", process + 1));
        }
        if step.crash_after > 0 {
            words.push_str(&format!(", crash after {}", step.crash_after));
        }
        let print = |flight: u32| fingerprint(&*hand.flights[flight as usize].flight) as u32;
        StepText { words, identity: step.act.message().map(print) }
    }

    /// Everybody in a state, and what is under way.
    pub(super) fn taken_apart(&self, state: &[u32]) -> (Vec<Local<P>>, Vec<Flight<P::Message>>) {
        let (locals, rest) = state.split_at(self.slots);
        let store = self.lock();
        let local = |&number: &u32| Local::clone(&store.locals.since(number as usize)[0]);
        let flight = |&number: &u32| Flight::clone(&store.flights.since(number as usize)[0]);
        (locals.iter().map(local).collect(), rest[HEAD..].iter().map(flight).collect())
    }

    /// Whether a process may start in a state or later.
    pub(super) fn may_start(&self, state: &[u32]) -> bool {
        let purse = Purse::read(&state[self.slots..]);
        let starts = [Item::Restart, Item::Rejoin, Item::Replacement, Item::Clone];
        starts.into_iter().any(|item| purse.left(item) > 0)
    }
}
