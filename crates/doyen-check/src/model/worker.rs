//! What one thread keeps to itself: copies of what it needs of the store, and the consequences that it knows.

use std::cell::RefCell;
use std::sync::Arc;

use doyen_core::explore::{Explore, Giver, Serial};
use doyen_core::ledger::sections::Sections;
use doyen_core::members::Term;
use doyen_core::protocol::{Bonds, Effect, Origin, Protocol, Section};
use doyen_sim::hash::FastMap;

use super::canonical::at_place;
use super::intern::Interner;
use super::local::{self, Armed, Handled, Local, Ticks};
use super::step::Act;
use super::successors::Change;
use super::{Flight, HEAD, Leadership, Model, Past, Store, leads_in_a_term};
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
    /// The same for messages that arrive at a process that does not crash: most acts are this, and its key is short.
    received: FastMap<u64, u32>,
    pub(crate) consequences: Vec<Consequence>,
    pub(super) observations: FastMap<u64, u32>,
    /// By a past and a consequence with moves: the past after it, and the claim that it breaks.
    pub(super) entered: FastMap<(u32, u32), (u32, Option<usize>)>,
    /// Room for the fingerprints of one state under every renaming.
    pub(super) sums: Vec<u64>,
    /// Whether a message is obsolete for a local state.
    pub(super) obsolete: RefCell<FastMap<(u32, u32), bool>>,
    /// How the steps change the state that were found last, as far as the states that they lead to were not written.
    pub(super) changes: Vec<Change>,
}

/// The past of a state.
pub(crate) struct History {
    pub(super) past: Arc<Past>,
    pub(super) print: u64,
    /// Its fingerprints under every other renaming of the members.
    pub(super) renamed: Box<[u64]>,
}

/// What is often asked about a local state.
pub(crate) struct LocalFacts<P: Explore> {
    pub(super) local: Arc<Local<P>>,
    /// The position of its member; none if the slot is vacant.
    pub(super) member: Option<usize>,
    /// Its share in the fingerprint of a state.
    pub(super) share: u64,
    /// The same if detectors had had all the time that they need.
    pub(super) settled_share: u64,
    /// Its share under every other renaming of the members.
    pub(super) renamed: Box<[u64]>,
    /// Its share in what claims see of a state.
    pub(super) view_share: u64,
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
    /// It has something to do without messages, faults and reports.
    pub(super) acts: bool,
    /// Timers that may expire now, and whether they are background timers.
    pub(crate) ready: Vec<(u32, bool)>,
    /// Of these, those that [end first](Explore::ends_first) and may not wait any longer.
    pub(super) urgent: Vec<(u32, bool)>,
    /// The ticks that may pass before a timer must expire, and before one may that may not yet; `u32::MAX` without such a
    /// timer.
    pub(super) latest: u32,
    pub(super) earliest: u32,
    /// A timer other than a background timer is armed, but no timer may expire any more.
    pub(super) stranded: bool,
    /// Where it is with respect to the critical section, and whether its client may ask to enter.
    pub(super) section: Section,
    pub(super) may_ask: bool,
    /// The generation of the token that it holds.
    pub(super) token: Option<Term>,
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
    /// The generation of the token that it carries.
    pub(super) token: Option<Term>,
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
    /// How the process moves with respect to the critical section, in order.
    pub(super) moves: Box<[Move]>,
}

/// How a process moves with respect to the critical section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Move {
    To(Section),
    /// The process is gone.
    Gone,
}

impl<P: Explore> Worker<P> {
    pub(super) fn new() -> Self {
        Self {
            locals: Vec::new(),
            flights: Vec::new(),
            histories: Vec::new(),
            known: FastMap::default(),
            received: FastMap::default(),
            consequences: Vec::new(),
            observations: FastMap::default(),
            entered: FastMap::default(),
            sums: Vec::new(),
            obsolete: RefCell::default(),
            changes: Vec::new(),
        }
    }

    /// The messages that are sent in a change.
    #[inline]
    pub(super) fn sends_of(&self, change: &Change) -> &[u32] {
        change.cause.map_or(&[], |known| &self.consequences[known as usize].sends)
    }
}

impl<P: Explore> Model<'_, P> {
    /// Copies what others have added to the store, if `state` refers to any of it.
    pub(super) fn catch_up(&self, worker: &mut Worker<P>, state: &[u32]) {
        let (locals, rest) = state.split_at(self.slots);
        // The highest number is found without a branch for each.
        let lacks = |known: usize, numbers: &[u32]| {
            numbers.iter().fold(0, |needed, &number| needed.max(number + 1)) as usize > known
        };
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
        for past in histories.since(worker.histories.len()) {
            // No algorithm of mutual exclusion has members that differ only in their names.
            let renamed = self.symmetry.each(|renaming| {
                let mut led: Vec<Leadership> = past
                    .led
                    .iter()
                    .map(|&(term, leader, process)| (term, renaming.name(leader), process))
                    .collect();
                led.sort_unstable();
                fingerprint(&led)
            });
            let print = match past.sections == Sections::default() {
                true => fingerprint(&past.led),
                false => fingerprint(&**past),
            };
            worker.histories.push(History { past: Arc::clone(past), print, renamed });
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
            token: P::token_in(message),
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
        let member = self.context.members.position(local.id);
        let place = at_place(member.unwrap_or(VACANT));
        let share = mix(fingerprint(&canonical), place);
        let detection = self.context.detection();
        let may_ask = local.is_up() && local.requests.0 > 0 && local.section().is_outside();
        let is_urgent = |armed: &Armed<P::Timer>| {
            armed.latest == 0 && self.context.clock.is_some() && P::ends_first(armed.timer)
        };
        let (mut urgent, mut all_ready) = (Vec::new(), Vec::new());
        for armed in ready {
            let timer = (timers.number(armed.timer), P::is_background(armed.timer));
            all_ready.push(timer);
            urgent.extend(is_urgent(armed).then_some(timer));
        }
        LocalFacts {
            member,
            share,
            renamed: self.symmetry.each(|renaming| {
                let renamed = canonical.renamed(&|id| renaming.name(id));
                let place = member.map_or(VACANT, |place| renaming.place(place as u8).into());
                mix(fingerprint(&renamed), at_place(place))
            }),
            settled_share: match local.settled < detection {
                true => mix(fingerprint(&Local { settled: detection, ..canonical }), place),
                false => share,
            },
            first_serial: state.and_then(|state| state.first_live_serial(self.context.config)),
            leased: state.is_some_and(|state| state.lease().is_some()),
            published: local.published,
            lease_term: local.lease_term,
            bonds: match P::has_leases(self.context.config) && member.is_some() {
                true => local.bonds(&self.context),
                false => Bonds::NONE,
            },
            view_share: {
                let view = fingerprint(&state.map(Protocol::view));
                let delivered = local.deliveries().filter(|_| self.uses.deliveries);
                mix(delivered.map_or(view, |it| mix(view, fingerprint(it))), place)
            },
            up: local.is_up(),
            reported: local.reported,
            settled: local.settled,
            acts: !all_ready.is_empty() || may_ask || local.section().is_inside(),
            ready: all_ready,
            urgent,
            latest: local.timers.iter().map(|armed| armed.latest).min().unwrap_or(u32::MAX),
            earliest: waiting.min().unwrap_or(u32::MAX),
            stranded: !may_expire
                && local.timers.iter().any(|armed| !P::is_background(armed.timer)),
            section: local.section(),
            may_ask,
            token: state.and_then(Explore::token),
            local: Arc::clone(local),
        }
    }

    /// The number of the consequence of `act` for a process in this local state. The state machine is asked once.
    #[inline]
    pub(crate) fn consequence(
        &self,
        worker: &mut Worker<P>,
        local: u32,
        act: Act,
        crash_after: u8,
    ) -> usize {
        // Whether the message stays in flight makes no difference to its receiver.
        let (act, receipt) = match act {
            Act::Receive { message, .. } => {
                let receipt = u64::from(local) << 32 | u64::from(message);
                (Act::Receive { message, again: false }, Some(receipt).filter(|_| crash_after == 0))
            }
            act => (act, None),
        };
        let cause = (local, act, crash_after);
        let known = match receipt {
            Some(receipt) => worker.received.get(&receipt),
            None => worker.known.get(&cause),
        };
        if let Some(&known) = known {
            return known as usize;
        }
        let number = self.work_out(worker, cause);
        match receipt {
            Some(receipt) => worker.received.insert(receipt, number),
            None => worker.known.insert(cause, number),
        };
        number as usize
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

    /// Works out a consequence, and returns its number.
    #[cold]
    fn work_out(&self, worker: &mut Worker<P>, cause: Cause) -> u32 {
        let (before, act, crash_after) = cause;
        let (handled, flights) = self.handle(worker, before, act, crash_after);
        let breach = self.breach_by_itself(&handled, &flights);
        let breaks = breach.and_then(|(property, _)| self.claim_of(property));
        let Local { id, process, .. } = handled.local;
        let view = handled.local.state.as_ref().map(Protocol::view);
        let leads = view.filter(leads_in_a_term).map(|view| (view.term, id, process));
        let crash_points =
            if self.reductions.obsolete { handled.last_write } else { handled.outputs };
        let moves = moves_of(worker.locals[before as usize].section, &handled);
        let mut store = self.lock();
        let local = store.locals.number(handled.local);
        // A lost disk may make any message count again, unless sessions distinguish messages to the process before.
        let loses_disk =
            act == Act::Start(Origin::Rejoining) && !P::has_sessions(self.context.config);
        if self.reductions.canonical && before != local && !loses_disk {
            store.transitions.insert((before, local));
        }
        let sends = flights.into_iter().map(|flight| store.flights.number(flight)).collect();
        self.copy(worker, &mut store);
        let crash_points = crash_points.min(250) as u8;
        let number = worker.consequences.len() as u32;
        worker.consequences.push(Consequence { local, sends, crash_points, breaks, leads, moves });
        number
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

/// How a process that was at `before` moves with respect to the critical section by what it handles.
fn moves_of<P: Explore>(before: Section, handled: &Handled<P>) -> Box<[Move]> {
    let announced = handled.effects.iter().filter_map(|effect| match effect {
        Effect::Announce(view) => Some(view.section),
        _ => None,
    });
    let mut at = before;
    let mut moves: Vec<Move> = Vec::new();
    for section in announced {
        if std::mem::replace(&mut at, section) != section {
            moves.push(Move::To(section));
        }
    }
    if !handled.local.is_up() && !at.is_outside() {
        moves.push(Move::Gone);
    }
    moves.into()
}
