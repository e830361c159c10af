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
//! Messages stand by receiver, then by sender; those of one link in the order of sending where links keep it.
//!
//! # What can happen
//!
//! - a message that is under way arrives (where links keep the order, the first of its link); it is lost or arrives
//!   twice, if the budget allows; at a member that is down it is lost;
//! - an armed timer expires: at any moment where timers are *free*, which is the asynchronous model; where they are
//!   *bounded*, when it is due, and time goes on only when nothing that is due is left to do, which is the synchronous
//!   model: a message takes from nothing to a tick, which is `D`. A message that has taken a tick comes before a timer;
//! - a failure detector tells a member of a crash or of a recovery, at any moment after it; of a crash that did not
//!   happen, if the budget allows, and takes it back at any moment after that;
//! - a member crashes, also between two things that one event makes it send or store; restarts; calls an election; all
//!   if the budget allows.
//!
//! Nothing of this is left to luck but the fingerprints: every order is explored.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doyen_core::members::{Epoch, NodeId};
use doyen_core::protocol::{Effect, Event, Message, Origin, Protocol, Role, View};

use super::budget::{Item, Purse};
use super::fingerprint::{fingerprint, mix};
use super::intern::Interner;
use super::local::{self, Handled, Local, Stimulus, Terms};
use super::property::Property;
use super::schedule::{Happening as Words, Mail, Move};
use super::space::{Claim, Space, Successors};
use super::{Rules, Scene, Timers};
use crate::hash::FastMap;

/// A message takes at most so many ticks where timers are bounded.
const MOST_TICKS: u8 = 1;

/// The most members that a check takes.
pub const MOST_MEMBERS: usize = 32;

/// A message under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Flight<M> {
    pub(crate) from: u8,
    pub(crate) to: u8,
    /// How many ticks it has taken so far.
    pub(crate) age: u8,
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
    /// So many ticks go by.
    Wait(u32),
}

/// What happens to one member, as the key under which its consequences are remembered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Input {
    Hear(u32),
    Expire(u32),
    Report { peer: u8, up: bool },
    Suspect(u8),
    Campaign,
    Crash,
    Restart,
    Wait(u32),
}

/// What a check is about.
pub(crate) struct Machine<'c, P: Protocol> {
    pub(super) terms: Terms<'c, P>,
    pub(super) rules: Rules,
    properties: Vec<Property>,
    claims: Vec<Claim>,
    start: Vec<u32>,
    store: Mutex<Store<P>>,
    moods: Mutex<Interner<Vec<Option<View>>>>,
    /// To whom each member has ever sent, a bit for each position.
    pub(super) channels: Vec<AtomicU64>,
}

/// Everything that is kept once.
struct Store<P: Protocol> {
    locals: Interner<Local<P>>,
    flights: Interner<Flight<P::Message>>,
    timers: Interner<P::Timer>,
    /// Who led in which term.
    histories: Interner<Vec<(Epoch, NodeId)>>,
}

/// What one thread keeps to itself: copies of what it needs of the store, and the consequences it knows.
pub(crate) struct Hand<P: Protocol> {
    pub(super) locals: Vec<LocalFacts<P>>,
    pub(super) flights: Vec<FlightFacts<P::Message>>,
    /// The fingerprints of histories.
    histories: Vec<u64>,
    known: FastMap<(u32, Input, u8), u32>,
    consequences: Vec<Consequence>,
    moods: FastMap<u64, u32>,
}

/// What is often asked about a local state.
pub(super) struct LocalFacts<P: Protocol> {
    local: Arc<Local<P>>,
    print: u64,
    view_print: u64,
    pub(super) up: bool,
    reported: u64,
    calm: u8,
    /// Timers that may expire now, and whether they are upkeep.
    ready: Vec<(u32, bool)>,
    /// How many ticks may go by before a timer must expire, and before one may that may not yet; `u32::MAX` without
    /// such a timer.
    latest: u32,
    earliest: u32,
    /// Something other than upkeep is awaited, but no timer may expire any more.
    stranded: bool,
}

pub(super) struct FlightFacts<M> {
    flight: Arc<Flight<M>>,
    print: u64,
    /// Receiver and sender: what messages are sorted by.
    pub(super) channel: u16,
    age: u8,
}

impl<M> FlightFacts<M> {
    #[inline]
    pub(super) fn to(&self) -> usize {
        usize::from(self.channel >> 8)
    }

    #[inline]
    pub(super) fn from(&self) -> usize {
        usize::from(self.channel & 0xff)
    }
}

/// What an input makes of a local state.
struct Consequence {
    local: u32,
    sends: Box<[u32]>,
    /// How many things it sends and stores.
    acts: u8,
    breaks: Option<usize>,
    /// It leads now, in this term.
    leads: Option<(Epoch, NodeId)>,
}

/// Where the parts of a state begin.
struct Parts<'s> {
    locals: &'s [u32],
    purse: Purse,
    history: u32,
    flights: &'s [u32],
    /// Who is up, a bit for each position.
    up: u64,
}

/// How a state changes.
#[derive(Clone, Copy)]
struct Change<'a> {
    /// This member's local state becomes this one.
    member: usize,
    local: u32,
    /// The flight at this place is gone.
    landed: Option<usize>,
    /// These are under way.
    sends: &'a [u32],
    purse: Purse,
    history: u32,
}

impl<'c, P: Protocol> Machine<'c, P> {
    /// The space of `rules`, in which everything begins as `scene` says.
    pub(crate) fn new(config: &'c P::Config, scene: &Scene<'c>, rules: Rules) -> Self {
        let terms = Terms { config, members: scene.members, pace: rules.timers.pace() };
        let count = terms.members.len();
        assert!(count <= MOST_MEMBERS, "a check takes at most {MOST_MEMBERS} members");
        let store = Store {
            locals: Interner::new(),
            flights: Interner::new(),
            timers: Interner::new(),
            histories: Interner::new(),
        };
        let mut machine = Self {
            terms,
            claims: rules.properties.iter().map(|property| property.claim()).collect(),
            properties: rules.properties.clone(),
            rules,
            start: Vec::new(),
            store: Mutex::new(store),
            moods: Mutex::new(Interner::new()),
            channels: (0..count).map(|_| AtomicU64::new(0)).collect(),
        };
        machine.start = machine.begin(scene);
        machine
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
        // Detectors have had all the time they need.
        let calm = self.terms.detection();
        cast.locals.iter_mut().for_each(|local| local.calm = calm);
        self.assemble(cast)
    }

    fn tell(&self, cast: &mut Cast<P>, position: usize, stimulus: Stimulus<P::Message, P::Timer>) {
        let handled = local::handle(&self.terms, &cast.locals[position], stimulus, None);
        cast.sends.extend(self.flights_of(position, &handled));
        cast.locals[position] = handled.local;
    }

    fn assemble(&self, cast: Cast<P>) -> Vec<u32> {
        let mut store = self.lock();
        let empty = store.histories.number(Vec::new());
        let mut state: Vec<u32> = Vec::new();
        let up: Vec<bool> = cast.locals.iter().map(Local::is_up).collect();
        state.extend(cast.locals.into_iter().map(|local| store.locals.number(local)));
        state.push(self.rules.budget.pack().0);
        state.push(empty);
        let awaited = |flight: &Flight<P::Message>| {
            up[usize::from(flight.to)] || self.rules.budget.restarts > 0
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
                Some(Flight { from: from as u8, to: to as u8, age: 0, message })
            }
            _ => None,
        };
        handled.effects.iter().filter_map(flight).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Store<P>> {
        // Whoever panicked while holding it left numbers that are whole.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parts<'s>(&self, hand: &Hand<P>, state: &'s [u32]) -> Parts<'s> {
        let (locals, rest) = state.split_at(self.terms.members.len());
        let is_up = |(position, &local): (usize, &u32)| {
            u64::from(hand.locals[local as usize].up) << position
        };
        let up = locals.iter().enumerate().map(is_up).fold(0, |up, bit| up | bit);
        Parts { locals, purse: Purse(rest[0]), history: rest[1], flights: &rest[2..], up }
    }

    /// Copies what others have added to the store since, if `state` has any of it.
    fn catch_up(&self, hand: &mut Hand<P>, state: &[u32]) {
        let (locals, rest) = state.split_at(self.terms.members.len());
        let lacks =
            |known: usize, numbers: &[u32]| numbers.iter().any(|&number| number as usize >= known);
        let lacks_something = lacks(hand.locals.len(), locals)
            || lacks(hand.histories.len(), &rest[1..2])
            || lacks(hand.flights.len(), &rest[2..]);
        if lacks_something {
            let mut store = self.lock();
            self.copy(hand, &mut store);
        }
    }

    fn copy(&self, hand: &mut Hand<P>, store: &mut Store<P>) {
        let Store { locals, flights, timers, histories } = store;
        let prints = histories.since(hand.histories.len()).iter().map(|led| fingerprint(&**led));
        hand.histories.extend(prints);
        for local in locals.since(hand.locals.len()) {
            hand.locals.push(self.facts_of(local, timers));
        }
        for flight in flights.since(hand.flights.len()) {
            let Flight { from, to, message, age } = &**flight;
            hand.flights.push(FlightFacts {
                print: fingerprint(&(from, to, age, message)),
                channel: channel(flight),
                age: *age,
                flight: Arc::clone(flight),
            });
        }
    }

    fn facts_of(&self, local: &Arc<Local<P>>, timers: &mut Interner<P::Timer>) -> LocalFacts<P> {
        let bounded = matches!(self.rules.timers, Timers::Bounded { .. });
        let may_expire = bounded || local.expiries > 0;
        let is_ready = |earliest: u32| may_expire && earliest == 0;
        let ready = local.timers.iter().filter(|armed| is_ready(armed.earliest));
        let waiting =
            local.timers.iter().map(|armed| armed.earliest).filter(|&earliest| earliest > 0);
        let view = local.state.as_ref().map(Protocol::view);
        LocalFacts {
            print: fingerprint(&**local),
            view_print: fingerprint(&view),
            up: local.is_up(),
            reported: local.reported,
            calm: local.calm,
            ready: ready
                .map(|armed| (timers.number(armed.timer), P::is_upkeep(armed.timer)))
                .collect(),
            latest: local.timers.iter().map(|armed| armed.latest).min().unwrap_or(u32::MAX),
            earliest: waiting.min().unwrap_or(u32::MAX),
            stranded: !may_expire && local.timers.iter().any(|armed| !P::is_upkeep(armed.timer)),
            local: Arc::clone(local),
        }
    }

    /// What `input` makes of a member in this local state: asked of the state machine once.
    fn consequence(
        &self,
        hand: &mut Hand<P>,
        member: usize,
        local: u32,
        input: Input,
        crash_after: u8,
    ) -> usize {
        let key = (local, input, crash_after);
        if let Some(&known) = hand.known.get(&key) {
            return known as usize;
        }
        let consequence = self.work_out(hand, member, local, input, crash_after);
        hand.consequences.push(consequence);
        let number = hand.consequences.len() - 1;
        hand.known.insert(key, number as u32);
        number
    }

    #[cold]
    fn work_out(
        &self,
        hand: &mut Hand<P>,
        member: usize,
        local: u32,
        input: Input,
        crash_after: u8,
    ) -> Consequence {
        let before = Arc::clone(&hand.locals[local as usize].local);
        let stimulus = self.stimulus(hand, input);
        let id = self.terms.members.at(member);
        let crash_after = (crash_after > 0).then_some(u32::from(crash_after));
        let handled = local::handle(&self.terms, &before, stimulus, crash_after);
        let flights = self.flights_of(member, &handled);
        let leading = |view: View| (view.role == Role::Leader).then_some((view.epoch, id));
        let leads = handled.local.state.as_ref().map(Protocol::view).and_then(leading);
        let breaks = self.breaks(&handled, &flights);
        let mut store = self.lock();
        let local = store.locals.number(handled.local);
        let sends = flights.into_iter().map(|flight| store.flights.number(flight)).collect();
        self.copy(hand, &mut store);
        Consequence { local, sends, acts: handled.acts.min(250) as u8, breaks, leads }
    }

    fn stimulus(&self, hand: &Hand<P>, input: Input) -> Stimulus<P::Message, P::Timer> {
        let id = |position: u8| self.terms.members.at(usize::from(position));
        Stimulus::Event(match input {
            Input::Hear(flight) => {
                let flight = &hand.flights[flight as usize].flight;
                Event::Message { from: id(flight.from), message: flight.message.clone() }
            }
            Input::Expire(timer) => Event::Timer(*self.lock().timers.since(timer as usize)[0]),
            Input::Report { peer, up: true } => Event::PeerUp(id(peer)),
            Input::Report { peer, up: false } => Event::PeerDown(id(peer)),
            Input::Campaign => Event::Campaign,
            Input::Suspect(peer) => return Stimulus::Suspect(id(peer)),
            Input::Crash => return Stimulus::Crash,
            Input::Restart => return Stimulus::Start(Origin::Joining),
            Input::Wait(ticks) => return Stimulus::Wait(ticks),
        })
    }

    /// Which claim about steps and messages this breaks.
    fn breaks(&self, handled: &Handled<P>, flights: &[Flight<P::Message>]) -> Option<usize> {
        // Two circuits of everybody's key, as a varint each of the longest kind, and the rest.
        let most = 64 + 2 * self.terms.members.len() * 15;
        let claimed = |wanted| self.properties.iter().position(|&property| property == wanted);
        let too_long = || flights.iter().any(|flight| flight.message.encoded_len() > most);
        let fell = claimed(Property::TermsNeverFall).filter(|_| handled.term_fell);
        fell.or_else(|| claimed(Property::BoundedMessages).filter(|_| too_long()))
    }

    /// Notes who leads, where that is claimed about: the new history, and the claim it breaks.
    fn note(&self, history: u32, leads: Option<(Epoch, NodeId)>) -> (u32, Option<usize>) {
        let claim = self.properties.iter().position(|&it| it == Property::OneLeaderPerTerm);
        let (Some(claim), Some((term, leader))) = (claim, leads) else { return (history, None) };
        let mut store = self.lock();
        let mut led = Vec::clone(&store.histories.since(history as usize)[0]);
        match led.binary_search(&(term, leader)) {
            Ok(_) => (history, None),
            Err(place) => {
                let usurped = led.iter().any(|&(other, _)| other == term);
                led.insert(place, (term, leader));
                (store.histories.number(led), usurped.then_some(claim))
            }
        }
    }

    /// Writes the state that a change makes of another.
    #[inline]
    fn write(&self, hand: &Hand<P>, parts: &Parts<'_>, change: Change<'_>, words: &mut Vec<u32>) {
        let start = words.len();
        words.extend_from_slice(parts.locals);
        words[start + change.member] = change.local;
        words.extend([change.purse.0, change.history]);
        let first = words.len();
        let bit = 1 << change.member;
        let up = match hand.locals[change.local as usize].up {
            true => parts.up | bit,
            false => parts.up & !bit,
        };
        // Nobody will ever know what became of a message to a member that is down for good.
        let all_matter = change.purse.left(Item::Restart) > 0;
        let matters = |flight: u32| all_matter || up >> hand.flights[flight as usize].to() & 1 == 1;
        for (place, &flight) in parts.flights.iter().enumerate() {
            if Some(place) != change.landed && matters(flight) {
                words.push(flight);
            }
        }
        for &flight in change.sends {
            if matters(flight) {
                let place = self.place_of(hand, flight, &words[first..]);
                words.insert(first + place, flight);
            }
        }
    }

    /// Where a new message belongs among those under way.
    #[inline]
    fn place_of(&self, hand: &Hand<P>, flight: u32, flights: &[u32]) -> usize {
        let rank = |flight: u32| {
            let channel = hand.flights[flight as usize].channel;
            (channel, if self.rules.fifo { 0 } else { flight })
        };
        let own = rank(flight);
        let behind = flights.iter().rev().take_while(|&&other| rank(other) > own).count();
        flights.len() - behind
    }

    /// Adds the step in which `input` happens to `member`, and those in which it crashes on the way.
    #[inline]
    fn happen(
        &self,
        hand: &mut Hand<P>,
        parts: &Parts<'_>,
        happening: Happening,
        out: &mut Successors<Step>,
    ) {
        let acts = self.happen_once(hand, parts, happening, 0, out);
        if parts.purse.left(Item::Crash) > 0 && happening.can_be_cut_short() {
            for crash_after in 1..acts {
                self.happen_once(hand, parts, happening, crash_after, out);
            }
        }
    }

    /// Adds one step; says how many things it sends and stores.
    #[inline]
    fn happen_once(
        &self,
        hand: &mut Hand<P>,
        parts: &Parts<'_>,
        happening: Happening,
        crash_after: u8,
        out: &mut Successors<Step>,
    ) -> u8 {
        let Happening { member, input, act, landed, purse } = happening;
        let purse = if crash_after > 0 { purse.spend(Item::Crash) } else { purse };
        let known = self.consequence(hand, member, parts.locals[member], input, crash_after);
        let &Consequence { local, ref sends, acts, breaks, leads } = &hand.consequences[known];
        let (history, usurps) = match leads {
            Some(_) => self.note(parts.history, leads),
            None => (parts.history, None),
        };
        let change = Change { member, local, landed, sends, purse, history };
        out.add(Step { act, crash_after }, breaks.or(usurps), |words| {
            self.write(hand, parts, change, words);
        });
        acts
    }

    fn add_deliveries(&self, hand: &mut Hand<P>, parts: &Parts<'_>, out: &mut Successors<Step>) {
        let mut before = None;
        for (place, &flight) in parts.flights.iter().enumerate() {
            let facts = &hand.flights[flight as usize];
            // Only the first of a link arrives where links keep the order; else the same message twice is one.
            let same = if self.rules.fifo { u32::from(facts.channel) } else { flight };
            if before.replace(same) == Some(same) {
                continue;
            }
            let member = facts.to();
            let alive = parts.up >> member & 1 == 1;
            let (deliver, lose) = (Act::Deliver(flight), Act::Lose(flight));
            if alive {
                let hear = Happening {
                    member,
                    input: Input::Hear(flight),
                    act: deliver,
                    landed: Some(place),
                    purse: parts.purse,
                };
                self.happen(hand, parts, hear, out);
                if parts.purse.left(Item::Duplication) > 0 {
                    let purse = parts.purse.spend(Item::Duplication);
                    let again = Happening { act: Act::Double(flight), landed: None, purse, ..hear };
                    self.happen(hand, parts, again, out);
                }
            } else {
                self.drop_flight(hand, parts, place, deliver, parts.purse, out);
            }
            if alive && parts.purse.left(Item::Loss) > 0 {
                let purse = parts.purse.spend(Item::Loss);
                self.drop_flight(hand, parts, place, lose, purse, out);
            }
        }
    }

    /// Adds the step in which a message goes nowhere.
    fn drop_flight(
        &self,
        hand: &Hand<P>,
        parts: &Parts<'_>,
        place: usize,
        act: Act,
        purse: Purse,
        out: &mut Successors<Step>,
    ) {
        let (local, history) = (parts.locals[0], parts.history);
        let change = Change { member: 0, local, landed: Some(place), sends: &[], purse, history };
        out.add(Step { act, crash_after: 0 }, None, |words| self.write(hand, parts, change, words));
    }

    /// Adds what else can happen to a live member.
    fn add_own_steps(
        &self,
        hand: &mut Hand<P>,
        parts: &Parts<'_>,
        member: usize,
        out: &mut Successors<Step>,
    ) {
        let plain = |input, act| Happening { member, input, act, landed: None, purse: parts.purse };
        let name = member as u8;
        let facts = &hand.locals[parts.locals[member] as usize];
        let (reported, up) = (facts.reported, parts.up);
        if !self.has_overdue_mail(hand, parts, member) {
            let ready = facts.ready.clone();
            for (timer, upkeep) in ready {
                let act = Act::Expire { member: name, timer, upkeep };
                self.happen(hand, parts, plain(Input::Expire(timer), act), out);
            }
        }
        for peer in (0..parts.locals.len()).filter(|&peer| peer != member) {
            let (held_for_dead, alive) = (reported >> peer & 1 == 1, up >> peer & 1 == 1);
            let peer = peer as u8;
            if held_for_dead == alive {
                let input = Input::Report { peer, up: alive };
                let act = Act::Report { member: name, peer, up: alive };
                self.happen(hand, parts, plain(input, act), out);
            } else if alive && parts.purse.left(Item::Suspicion) > 0 {
                let purse = parts.purse.spend(Item::Suspicion);
                let (input, act) = (Input::Suspect(peer), Act::Suspect { member: name, peer });
                self.happen(hand, parts, Happening { purse, ..plain(input, act) }, out);
            }
        }
        for (item, input, act) in [
            (Item::Campaign, Input::Campaign, Act::Campaign(name)),
            (Item::Crash, Input::Crash, Act::Crash(name)),
        ] {
            if parts.purse.left(item) > 0 {
                let purse = parts.purse.spend(item);
                self.happen(hand, parts, Happening { purse, ..plain(input, act) }, out);
            }
        }
    }

    /// Whether a message for `member` has taken as long as it may: it comes before a timer.
    fn has_overdue_mail(&self, hand: &Hand<P>, parts: &Parts<'_>, member: usize) -> bool {
        let overdue = |&flight: &u32| {
            let facts = &hand.flights[flight as usize];
            facts.age >= MOST_TICKS && facts.to() == member
        };
        parts.flights.iter().any(overdue)
    }

    /// Whether some detector has had all the time it needs to notice something and has not.
    fn has_overdue_news(&self, hand: &Hand<P>, parts: &Parts<'_>) -> bool {
        let Some(pace) = self.terms.pace else { return false };
        let facts = |member: usize| &hand.locals[parts.locals[member] as usize];
        let is_calm = |&member: &usize| facts(member).calm >= pace.detection;
        let calm =
            (0..parts.locals.len()).filter(is_calm).fold(0, |calm, member| calm | 1_u64 << member);
        let unaware = |member: usize| {
            let wrong = (facts(member).reported ^ !parts.up) & calm & !(1 << member);
            facts(member).up && calm >> member & 1 == 1 && wrong != 0
        };
        (0..parts.locals.len()).any(unaware)
    }

    /// Adds the step in which time goes by, if nothing is due: to the next moment at which something can happen, if
    /// nothing can happen now.
    fn add_wait(&self, hand: &mut Hand<P>, parts: &Parts<'_>, out: &mut Successors<Step>) {
        let of_timers = |pick: fn(&LocalFacts<P>) -> u32| {
            parts
                .locals
                .iter()
                .map(|&local| pick(&hand.locals[local as usize]))
                .min()
                .unwrap_or(u32::MAX)
        };
        let (latest, earliest) =
            (of_timers(|facts| facts.latest), of_timers(|facts| facts.earliest));
        let overdue =
            parts.flights.iter().any(|&flight| hand.flights[flight as usize].age >= MOST_TICKS);
        let nothing_awaited = latest == u32::MAX && parts.flights.is_empty();
        if latest == 0 || overdue || nothing_awaited || self.has_overdue_news(hand, parts) {
            return;
        }
        let ticks = if out.list().is_empty() { earliest } else { 1 };
        let locals: Vec<u32> = (0..parts.locals.len())
            .map(|member| {
                let known =
                    self.consequence(hand, member, parts.locals[member], Input::Wait(ticks), 0);
                hand.consequences[known].local
            })
            .collect();
        let mut flights: Vec<u32> =
            parts.flights.iter().map(|&flight| self.older(hand, flight)).collect();
        if !self.rules.fifo {
            flights.sort_unstable_by_key(|&flight| (hand.flights[flight as usize].channel, flight));
        }
        out.add(Step { act: Act::Wait(ticks), crash_after: 0 }, None, |words| {
            words.extend(locals);
            words.extend([parts.purse.0, parts.history]);
            words.extend(flights);
        });
    }

    /// The same message, a tick later.
    fn older(&self, hand: &mut Hand<P>, flight: u32) -> u32 {
        let flight = Flight::clone(&hand.flights[flight as usize].flight);
        let mut store = self.lock();
        let older = store.flights.number(Flight { age: flight.age + 1, ..flight });
        self.copy(hand, &mut store);
        older
    }

    /// Every step from `state`.
    fn add_all(&self, hand: &mut Hand<P>, parts: &Parts<'_>, out: &mut Successors<Step>) {
        self.add_deliveries(hand, parts, out);
        for member in 0..parts.locals.len() {
            if parts.up >> member & 1 == 1 {
                self.add_own_steps(hand, parts, member, out);
            } else if parts.purse.left(Item::Restart) > 0 {
                let purse = parts.purse.spend(Item::Restart);
                let act = Act::Restart(member as u8);
                let restart = Happening { member, input: Input::Restart, act, landed: None, purse };
                self.happen(hand, parts, restart, out);
            }
        }
        if matches!(self.rules.timers, Timers::Bounded { .. }) {
            self.add_wait(hand, parts, out);
        }
        let is_stranded = |&local: &u32| hand.locals[local as usize].stranded;
        out.set_stranded(parts.locals.iter().any(is_stranded));
    }
}

/// Something that happens to one member.
#[derive(Clone, Copy)]
struct Happening {
    member: usize,
    input: Input,
    act: Act,
    landed: Option<usize>,
    purse: Purse,
}

impl Happening {
    /// Whether the member may crash while it deals with it: it must be alive before.
    fn can_be_cut_short(&self) -> bool {
        self.input != Input::Crash && self.purse.left(Item::Crash) > 0
    }
}

/// Everybody while the scene is set.
struct Cast<P: Protocol> {
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

/// A protocol that several threads can explore.
pub trait Explorable:
    Protocol<Config: Sync, Message: Send + Sync, Timer: Send + Sync, Durable: Send + Sync> + Send + Sync
{
}

impl<P> Explorable for P where
    P: Protocol<Config: Sync, Message: Send + Sync, Timer: Send + Sync, Durable: Send + Sync>
        + Send
        + Sync
{
}

impl<P: Explorable> Space for Machine<'_, P> {
    type Hand = Hand<P>;
    type Step = Step;

    fn hand(&self) -> Hand<P> {
        Hand {
            locals: Vec::new(),
            flights: Vec::new(),
            histories: Vec::new(),
            known: FastMap::default(),
            consequences: Vec::new(),
            moods: FastMap::default(),
        }
    }

    fn start(&self) -> Vec<u32> {
        self.start.clone()
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
        self.catch_up(hand, state);
        let (locals, rest) = state.split_at(self.terms.members.len());
        let mut print = mix(hand.histories[rest[1] as usize] ^ u64::from(rest[0]), seat(63));
        for (place, &local) in locals.iter().enumerate() {
            print = print.wrapping_add(mix(hand.locals[local as usize].print, seat(place)));
        }
        let (mut before, mut place) = (u16::MAX, 0);
        for &flight in &rest[2..] {
            let facts = &hand.flights[flight as usize];
            place = if self.rules.fifo && before == facts.channel { place + 1 } else { 0 };
            before = facts.channel;
            print = print.wrapping_add(mix(facts.print, seat(64 + place)));
        }
        print
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
        self.properties[claim].holds(self.terms.members, &views)
    }

    fn duty(&self, step: Step) -> Option<Step> {
        let bounded = matches!(self.rules.timers, Timers::Bounded { .. });
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

impl<P: Protocol> Machine<'_, P> {
    /// What each live member believes.
    pub(crate) fn views(&self, hand: &Hand<P>, state: &[u32]) -> Vec<Option<View>> {
        let locals = &state[..self.terms.members.len()];
        let view =
            |&local: &u32| hand.locals[local as usize].local.state.as_ref().map(Protocol::view);
        locals.iter().map(view).collect()
    }

    /// A step in words.
    pub(crate) fn describe(&self, hand: &Hand<P>, step: Step) -> Move {
        let id = |position: u8| self.terms.members.at(usize::from(position));
        let mail = |flight: u32| {
            let flight = &hand.flights[flight as usize].flight;
            Mail { text: flight.message.to_string(), from: id(flight.from), to: id(flight.to) }
        };
        let what = match step.act {
            Act::Deliver(flight) => Words::Deliver(mail(flight)),
            Act::Double(flight) => Words::Double(mail(flight)),
            Act::Lose(flight) => Words::Lose(mail(flight)),
            Act::Expire { member, timer, .. } => {
                let timer = *self.lock().timers.since(timer as usize)[0];
                Words::Expire { member: id(member), timer: format!("{timer:?}") }
            }
            Act::Report { member, peer, up } => {
                Words::Report { member: id(member), peer: id(peer), up }
            }
            Act::Suspect { member, peer } => {
                Words::Report { member: id(member), peer: id(peer), up: false }
            }
            Act::Campaign(member) => Words::Campaign(id(member)),
            Act::Crash(member) => Words::Crash(id(member)),
            Act::Restart(member) => Words::Restart(id(member)),
            Act::Wait(ticks) => Words::Wait(ticks),
        };
        Move { what, crash_after: (step.crash_after > 0).then_some(step.crash_after) }
    }
}
