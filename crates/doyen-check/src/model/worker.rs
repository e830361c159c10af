//! What one thread keeps to itself: copies of what it needs of the store, and the consequences that it knows.

use std::cell::RefCell;
use std::sync::Arc;

use doyen_core::explore::{Explore, Giver, Serial};
use doyen_core::members::Term;
use doyen_core::protocol::{Bonds, Origin, Protocol};
use doyen_sim::hash::FastMap;

use super::canonical::at_place;
use super::intern::Interner;
use super::local::{self, Handled, Local, Ticks};
use super::step::Act;
use super::{Flight, HEAD, Leadership, Model, Store, leads_in_a_term};
use crate::fingerprint::{fingerprint, mix};
use crate::timers::Timers;

/// The place of a vacant slot in fingerprints.
const VACANT: usize = 61;

/// What consequences are memoised by: a local state, the act, and after how many outputs the process crashes, or zero.
type Cause = (u32, Act, u8);

/// The private data of one thread.
pub(crate) struct Worker<P: Explore> {
    pub(crate) locals: Vec<LocalFacts<P>>,
    pub(crate) flights: Vec<FlightFacts<P::Message>>,
    pub(super) histories: Vec<History>,
    known: FastMap<Cause, u32>,
    pub(crate) consequences: Vec<Consequence>,
    pub(super) observations: FastMap<u64, u32>,
    /// Room for the fingerprints of one state under every renaming.
    pub(super) sums: Vec<u64>,
    /// Whether a message is obsolete for a local state.
    pub(super) obsolete: RefCell<FastMap<(u32, u32), bool>>,
}

/// The leaderships of a state.
pub(crate) struct History {
    pub(super) led: Arc<Vec<Leadership>>,
    pub(super) print: u64,
    /// Its fingerprints under every other renaming of the members.
    pub(super) renamed: Box<[u64]>,
}

/// What is often asked about a local state.
pub(crate) struct LocalFacts<P: Explore> {
    pub(super) local: Arc<Local<P>>,
    /// The position of its member; none if the slot is vacant.
    pub(super) member: Option<usize>,
    /// Its place in fingerprints.
    pub(super) place: usize,
    pub(super) print: u64,
    /// Its share in the fingerprint of a state under every other renaming of the members.
    pub(super) renamed: Box<[u64]>,
    /// Its fingerprint if detectors had had all the time that they need.
    pub(super) settled_print: u64,
    pub(super) view_print: u64,
    /// The first of its serial numbers that makes a difference to it.
    pub(super) first_serial: Option<Serial>,
    /// It has a lease.
    pub(super) leased: bool,
    /// For how many ticks clients may act on its lease, and the term of that lease.
    pub(super) published: u32,
    pub(super) lease_term: Term,
    pub(super) bonds: Bonds<Ticks>,
    pub(super) up: bool,
    pub(crate) reported: u64,
    pub(super) settled: u8,
    /// Timers that may expire now, and whether they are background timers.
    pub(crate) ready: Vec<(u32, bool)>,
    /// The ticks that may pass before a timer must expire, and before one may that may not yet; `u32::MAX` without such a
    /// timer.
    pub(super) latest: u32,
    pub(super) earliest: u32,
    /// A timer other than a background timer is armed, but no timer may expire any more.
    pub(super) stranded: bool,
}

pub(crate) struct FlightFacts<M> {
    pub(super) flight: Arc<Flight<M>>,
    pub(super) print: u64,
    /// Its fingerprints under every other renaming of the members.
    pub(super) renamed: Box<[u64]>,
    /// Its serial number, which is then not in its fingerprint, and the position of the member that gave it.
    pub(super) serial: Option<(Serial, usize)>,
    pub(crate) channel: u16,
    pub(super) age: u8,
    /// The number of the same message a tick later, once it is known.
    older: Option<u32>,
}

impl<M> FlightFacts<M> {
    #[inline]
    pub(crate) fn to(&self) -> usize {
        usize::from(self.channel >> 8)
    }

    #[inline]
    pub(crate) fn from(&self) -> usize {
        usize::from(self.channel & 0xff)
    }
}

/// What an act makes of a local state.
pub(crate) struct Consequence {
    pub(crate) local: u32,
    pub(crate) sends: Box<[u32]>,
    /// The last of its outputs before which a crash makes a difference, counted from one.
    pub(super) crash_points: u8,
    /// The claim that it breaks by itself.
    pub(super) breaks: Option<usize>,
    /// The process leads now, in this term.
    pub(super) leads: Option<Leadership>,
}

impl<P: Explore> Worker<P> {
    pub(super) fn new() -> Self {
        Self {
            locals: Vec::new(),
            flights: Vec::new(),
            histories: Vec::new(),
            known: FastMap::default(),
            consequences: Vec::new(),
            observations: FastMap::default(),
            sums: Vec::new(),
            obsolete: RefCell::default(),
        }
    }
}

impl<P: Explore> Model<'_, P> {
    /// Copies what others have added to the store, if `state` refers to any of it.
    pub(super) fn catch_up(&self, worker: &mut Worker<P>, state: &[u32]) {
        let (locals, rest) = state.split_at(self.slots);
        let lacks =
            |known: usize, numbers: &[u32]| numbers.iter().any(|&number| number as usize >= known);
        let lacks_something = lacks(worker.locals.len(), locals)
            || lacks(worker.histories.len(), &rest[HEAD - 1..HEAD])
            || lacks(worker.flights.len(), &rest[HEAD..]);
        if lacks_something {
            let mut store = self.lock();
            self.copy(worker, &mut store);
        }
    }

    pub(super) fn copy(&self, worker: &mut Worker<P>, store: &mut Store<P>) {
        let Store { locals, flights, timers, histories, .. } = store;
        for led in histories.since(worker.histories.len()) {
            let renamed = self.symmetry.each(|renaming| {
                let mut led: Vec<Leadership> = led
                    .iter()
                    .map(|&(term, leader, process)| (term, renaming.name(leader), process))
                    .collect();
                led.sort_unstable();
                fingerprint(&led)
            });
            let print = fingerprint(&**led);
            worker.histories.push(History { led: Arc::clone(led), print, renamed });
        }
        for local in locals.since(worker.locals.len()) {
            worker.locals.push(self.facts_of(local, timers));
        }
        for flight in flights.since(worker.flights.len()) {
            worker.flights.push(self.facts_of_flight(flight));
        }
    }

    fn facts_of_flight(&self, flight: &Arc<Flight<P::Message>>) -> FlightFacts<P::Message> {
        let Flight { from, to, message, age, .. } = &**flight;
        let serial = P::serial(message).filter(|_| self.reductions.canonical);
        let serial = serial.map(|(serial, giver)| {
            let giver = if giver == Giver::Sender { *from } else { *to };
            (serial, usize::from(giver))
        });
        let print_of = |from: u8, to: u8| match serial {
            Some(_) => fingerprint(&(from, to, age, P::without_serial(message))),
            None => fingerprint(&(from, to, age, message)),
        };
        FlightFacts {
            print: print_of(*from, *to),
            renamed: self
                .symmetry
                .each(|renaming| print_of(renaming.place(*from), renaming.place(*to))),
            serial,
            channel: flight.channel(),
            age: *age,
            older: None,
            flight: Arc::clone(flight),
        }
    }

    fn facts_of(&self, local: &Arc<Local<P>>, timers: &mut Interner<P::Timer>) -> LocalFacts<P> {
        let may_expire = self.context.clock.is_some() || local.expiries > 0;
        let ready = local.timers.iter().filter(|armed| may_expire && armed.earliest == 0);
        let waiting =
            local.timers.iter().map(|armed| armed.earliest).filter(|&earliest| earliest > 0);
        let state = local.state.as_ref();
        let canonical = match self.reductions.canonical {
            true => local.canonical(self.context.config),
            false => Local::clone(local),
        };
        let print = fingerprint(&canonical);
        let member = self.context.members.position(local.id);
        let detection = self.context.detection();
        LocalFacts {
            member,
            place: member.unwrap_or(VACANT),
            print,
            renamed: self.symmetry.each(|renaming| {
                let renamed = canonical.renamed(&|id| renaming.name(id));
                let place = member.map_or(VACANT, |place| renaming.place(place as u8).into());
                mix(fingerprint(&renamed), at_place(place))
            }),
            settled_print: match local.settled < detection {
                true => fingerprint(&Local { settled: detection, ..canonical }),
                false => print,
            },
            first_serial: state.and_then(|state| state.first_live_serial(self.context.config)),
            leased: state.is_some_and(|state| state.lease().is_some()),
            published: local.published,
            lease_term: local.lease_term,
            bonds: match P::has_leases(self.context.config) && member.is_some() {
                true => local.bonds(&self.context),
                false => Bonds::NONE,
            },
            view_print: fingerprint(&state.map(Protocol::view)),
            up: local.is_up(),
            reported: local.reported,
            settled: local.settled,
            ready: ready
                .map(|armed| (timers.number(armed.timer), P::is_background(armed.timer)))
                .collect(),
            latest: local.timers.iter().map(|armed| armed.latest).min().unwrap_or(u32::MAX),
            earliest: waiting.min().unwrap_or(u32::MAX),
            stranded: !may_expire
                && local.timers.iter().any(|armed| !P::is_background(armed.timer)),
            local: Arc::clone(local),
        }
    }

    /// The number of the consequence of `act` for a process in this local state. The state machine is asked once.
    pub(crate) fn consequence(
        &self,
        worker: &mut Worker<P>,
        local: u32,
        act: Act,
        crash_after: u8,
    ) -> usize {
        // Whether the message stays in flight makes no difference to its receiver.
        let act = match act {
            Act::Receive { message, .. } => Act::Receive { message, again: false },
            act => act,
        };
        let cause = (local, act, crash_after);
        if let Some(&known) = worker.known.get(&cause) {
            return known as usize;
        }
        let consequence = self.work_out(worker, cause);
        worker.consequences.push(consequence);
        let number = worker.consequences.len() - 1;
        worker.known.insert(cause, number as u32);
        number
    }

    /// What the state machine makes of an act.
    pub(super) fn handle(
        &self,
        worker: &Worker<P>,
        local: u32,
        act: Act,
        crash_after: u8,
    ) -> (Handled<P>, Vec<Flight<P::Message>>) {
        let before = &worker.locals[local as usize];
        let handled = local::handle(&self.context, &before.local, self.input(act), crash_after);
        let flights = self.flights_of(before.member.unwrap_or_default(), &handled);
        (handled, flights)
    }

    #[cold]
    fn work_out(&self, worker: &mut Worker<P>, cause: Cause) -> Consequence {
        let (before, act, crash_after) = cause;
        let (handled, flights) = self.handle(worker, before, act, crash_after);
        let breach = self.breach_by_itself(&handled, &flights);
        let breaks = breach.and_then(|(property, _)| self.claim_of(property));
        let Local { id, process, .. } = handled.local;
        let view = handled.local.state.as_ref().map(Protocol::view);
        let leads = view.filter(leads_in_a_term).map(|view| (view.term, id, process));
        let crash_points =
            if self.reductions.obsolete { handled.last_write } else { handled.outputs };
        let mut store = self.lock();
        let local = store.locals.number(handled.local);
        // A lost disk may make any message count again, unless sessions distinguish messages to the process before.
        let loses_disk = act == Act::Start(Origin::Rejoining) && !P::has_sessions();
        if self.reductions.canonical && before != local && !loses_disk {
            store.transitions.insert((before, local));
        }
        let sends = flights.into_iter().map(|flight| store.flights.number(flight)).collect();
        self.copy(worker, &mut store);
        Consequence { local, sends, crash_points: crash_points.min(250) as u8, breaks, leads }
    }

    /// The same message, a tick later.
    pub(super) fn older(&self, worker: &mut Worker<P>, flight: u32) -> u32 {
        if matches!(self.rules.timers, Timers::Clocked { .. }) {
            return flight; // however long it takes
        }
        let facts = &worker.flights[flight as usize];
        if let Some(older) = facts.older {
            return older;
        }
        let younger = Flight::clone(&facts.flight);
        let mut store = self.lock();
        let older = store.flights.number(Flight { age: younger.age + 1, ..younger });
        self.copy(worker, &mut store);
        worker.flights[flight as usize].older = Some(older);
        older
    }
}
