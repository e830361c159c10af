//! What one thread keeps to itself: copies of what it needs of the store, and the consequences that it knows.

use std::cell::RefCell;
use std::sync::Arc;

use doyen_core::explore::{Explore, Giver, Serial};
use doyen_core::ledger::{self, Entry, Stored};
use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::{Durable, Event, Message as _, Origin, Protocol, View};

use super::{Flight, HEAD, Machine, Reign, Store, channel, seat};
use crate::Timers;
use crate::fingerprint::{fingerprint, mix};
use crate::intern::Interner;
use crate::local::{self, Handled, Local, Stimulus};
use crate::property::{Property, longest_message};
use crate::schedule::Command;
use doyen_sim::hash::FastMap;

/// What happens to one member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Input {
    Hear(u32),
    Expire(u32),
    Report {
        peer: u8,
        up: bool,
    },
    Suspect(u8),
    Campaign,
    Crash,
    Restart,
    Rejoin,
    /// Another process of its member is started, without a disk: this is its number.
    Replace(u8),
    /// The same, from a copy of the disk.
    Clone(u8),
    Command(Command),
    Wait(u32),
}

/// The seat of who is no process of anybody.
const NOBODY: usize = 61;

/// What consequences are remembered under: a local state, what happens to the member, and after how many acts it
/// crashes, or zero.
type Cause = (u32, Input, u8);

/// What one thread keeps to itself: copies of what it needs of the store, and the consequences it knows.
pub(crate) struct Hand<P: Explore> {
    pub(crate) locals: Vec<LocalFacts<P>>,
    pub(crate) flights: Vec<FlightFacts<P::Message>>,
    pub(super) histories: Vec<History>,
    known: FastMap<Cause, u32>,
    pub(super) consequences: Vec<Consequence>,
    pub(super) moods: FastMap<u64, u32>,
    /// Room for the fingerprints of one state by every renaming.
    pub(super) sums: Vec<u64>,
    /// Whether a member in this local state has no use for this message.
    pub(super) spent: RefCell<FastMap<(u32, u32), bool>>,
}

/// Who led in which term.
pub(crate) struct History {
    pub(super) led: Arc<Vec<Reign>>,
    pub(super) print: u64,
    /// Its fingerprints by every other renaming of the members.
    pub(super) renamed: Box<[u64]>,
}

/// What is often asked about a local state.
pub(crate) struct LocalFacts<P: Explore> {
    pub(super) local: Arc<Local<P>>,
    /// The position of its member; none if it is no process of anybody.
    pub(super) member: Option<usize>,
    /// The seat that goes with that.
    pub(super) seat: usize,
    pub(super) print: u64,
    /// Its part in the fingerprint of a state, by every other renaming of the members.
    pub(super) renamed: Box<[u64]>,
    /// Its fingerprint had detectors had all the time they need.
    pub(super) calm_print: u64,
    pub(super) view_print: u64,
    /// The first of its serial numbers that makes a difference to it.
    pub(super) first_serial: Option<Serial>,
    /// It has a lease.
    pub(super) leased: bool,
    /// For how many ticks somebody may act on its lease.
    pub(super) published: u32,
    /// The term of that lease.
    pub(super) lease_term: Term,
    /// It is down, and observes hold-down when it comes up.
    pub(super) held_down: bool,
    pub(crate) up: bool,
    pub(super) reported: u64,
    pub(super) calm: u8,
    /// Timers that may expire now, and whether they are upkeep.
    pub(super) ready: Vec<(u32, bool)>,
    /// How many ticks may go by before a timer must expire, and before one may that may not yet; `u32::MAX` without
    /// such a timer.
    pub(super) latest: u32,
    pub(super) earliest: u32,
    /// Something other than upkeep is awaited, but no timer may expire any more.
    pub(super) stranded: bool,
}

pub(crate) struct FlightFacts<M> {
    pub(super) flight: Arc<Flight<M>>,
    pub(super) print: u64,
    /// Its fingerprints by every other renaming of the members.
    pub(super) renamed: Box<[u64]>,
    /// Its serial number, which is not in its fingerprint then, and who has given it.
    pub(super) serial: Option<(Serial, usize)>,
    /// Receiver and sender: what messages are sorted by.
    pub(crate) channel: u16,
    pub(super) age: u8,
    /// The number of the same message a tick later, once somebody has asked.
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

/// What an input makes of a local state.
pub(super) struct Consequence {
    pub(super) local: u32,
    pub(super) sends: Box<[u32]>,
    /// Before which of the things that it sends and stores a crash makes a difference at the latest, counted from one.
    pub(super) cuts: u8,
    pub(super) breaks: Option<usize>,
    /// It leads now, in this term.
    pub(super) leads: Option<Reign>,
}

impl<P: Explore> Hand<P> {
    pub(super) fn new() -> Self {
        Self {
            locals: Vec::new(),
            flights: Vec::new(),
            histories: Vec::new(),
            known: FastMap::default(),
            consequences: Vec::new(),
            moods: FastMap::default(),
            sums: Vec::new(),
            spent: RefCell::default(),
        }
    }
}

impl<P: Explore> Machine<'_, P> {
    /// Copies what others have added to the store since, if `state` has any of it.
    pub(super) fn catch_up(&self, hand: &mut Hand<P>, state: &[u32]) {
        let (locals, rest) = state.split_at(self.slots);
        let lacks =
            |known: usize, numbers: &[u32]| numbers.iter().any(|&number| number as usize >= known);
        let lacks_something = lacks(hand.locals.len(), locals)
            || lacks(hand.histories.len(), &rest[HEAD - 1..HEAD])
            || lacks(hand.flights.len(), &rest[HEAD..]);
        if lacks_something {
            let mut store = self.lock();
            self.copy(hand, &mut store);
        }
    }

    pub(super) fn copy(&self, hand: &mut Hand<P>, store: &mut Store<P>) {
        let Store { locals, flights, timers, histories, .. } = store;
        for led in histories.since(hand.histories.len()) {
            let renamed = self.symmetry.each(|renaming| {
                let name =
                    |&(term, leader, process): &Reign| (term, renaming.name(leader), process);
                let mut led: Vec<Reign> = led.iter().map(name).collect();
                led.sort_unstable();
                fingerprint(&led)
            });
            let print = fingerprint(&**led);
            hand.histories.push(History { led: Arc::clone(led), print, renamed });
        }
        for local in locals.since(hand.locals.len()) {
            hand.locals.push(self.facts_of(local, timers));
        }
        for flight in flights.since(hand.flights.len()) {
            let Flight { from, to, message, age, .. } = &**flight;
            let serial = P::serial(message).filter(|_| self.essential).map(|(serial, giver)| {
                let giver = if giver == Giver::Sender { *from } else { *to };
                (serial, usize::from(giver))
            });
            let print_of = |from: u8, to: u8| match serial {
                Some(_) => fingerprint(&(from, to, age, P::without_serial(message))),
                None => fingerprint(&(from, to, age, message)),
            };
            hand.flights.push(FlightFacts {
                print: print_of(*from, *to),
                renamed: self
                    .symmetry
                    .each(|renaming| print_of(renaming.place(*from), renaming.place(*to))),
                serial,
                channel: channel(flight),
                age: *age,
                older: None,
                flight: Arc::clone(flight),
            });
        }
    }

    fn facts_of(&self, local: &Arc<Local<P>>, timers: &mut Interner<P::Timer>) -> LocalFacts<P> {
        let ticks = self.terms.pace.is_some();
        let may_expire = ticks || local.expiries > 0;
        let is_ready = |earliest: u32| may_expire && earliest == 0;
        let ready = local.timers.iter().filter(|armed| is_ready(armed.earliest));
        let waiting =
            local.timers.iter().map(|armed| armed.earliest).filter(|&earliest| earliest > 0);
        let state = local.state.as_ref();
        let view = state.map(Protocol::view);
        let essence =
            if self.essential { local.essence(self.terms.config) } else { Local::clone(local) };
        let print = fingerprint(&essence);
        let member = self.terms.members.position(local.id);
        LocalFacts {
            member,
            seat: member.unwrap_or(NOBODY),
            print,
            renamed: self.symmetry.each(|renaming| {
                let renamed = essence.renamed(&|id| renaming.name(id));
                let place = member.map_or(NOBODY, |place| renaming.place(place as u8).into());
                mix(fingerprint(&renamed), seat(place))
            }),
            calm_print: match local.calm < self.terms.detection() {
                true => fingerprint(&Local { calm: self.terms.detection(), ..essence }),
                false => print,
            },
            first_serial: state.and_then(|state| state.first_live_serial(self.terms.config)),
            leased: state.is_some_and(|state| state.lease().is_some()),
            published: local.published,
            lease_term: local.lease_term,
            held_down: P::has_leases(self.terms.config)
                && state.is_none()
                && local.covers(&self.terms, Term::default()),
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
    pub(super) fn consequence(
        &self,
        hand: &mut Hand<P>,
        local: u32,
        input: Input,
        crash_after: u8,
    ) -> usize {
        let cause = (local, input, crash_after);
        if let Some(&known) = hand.known.get(&cause) {
            return known as usize;
        }
        let consequence = self.work_out(hand, cause);
        hand.consequences.push(consequence);
        let number = hand.consequences.len() - 1;
        hand.known.insert(cause, number as u32);
        number
    }

    #[cold]
    fn work_out(&self, hand: &mut Hand<P>, cause: Cause) -> Consequence {
        let (local, input, crash_after) = cause;
        let before = Arc::clone(&hand.locals[local as usize].local);
        let stimulus = self.stimulus(hand, &before, input);
        let (id, process) = (before.id, before.process);
        let member = self.terms.members.position(id).unwrap_or_default();
        let crash_after = (crash_after > 0).then_some(u32::from(crash_after));
        let handled = local::handle(&self.terms, &before, stimulus, crash_after);
        let flights = self.flights_of(member, &handled);
        let leading = |view: View| leads_in_a_term(&view).then_some((view.term, id, process));
        let leads = handled.local.state.as_ref().map(Protocol::view).and_then(leading);
        let breaks = self.breaks(&handled, &flights);
        let cuts = if self.frugal { handled.last_write } else { handled.acts };
        let mut store = self.lock();
        let before = local;
        let local = store.locals.number(handled.local);
        // Nothing is left out as long as a disk can be lost, unless sessions tell what was said to the process before.
        let loses_disk = input == Input::Rejoin && !P::has_sessions();
        if self.essential && before != local && !loses_disk {
            store.transitions.insert((before, local));
        }
        let sends = flights.into_iter().map(|flight| store.flights.number(flight)).collect();
        self.copy(hand, &mut store);
        Consequence { local, sends, cuts: cuts.min(250) as u8, breaks, leads }
    }

    fn stimulus(
        &self,
        hand: &Hand<P>,
        local: &Local<P>,
        input: Input,
    ) -> Stimulus<P::Message, P::Timer> {
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
            Input::Restart => return Stimulus::Start(local.origin()),
            Input::Replace(process) => return Stimulus::Replace(process),
            Input::Clone(process) => return Stimulus::Clone(process),
            Input::Rejoin => return Stimulus::Start(Origin::Rejoining),
            Input::Command(command) => Event::Command(command.order(self.terms.preference())),
            Input::Wait(ticks) => return Stimulus::Wait(ticks),
        })
    }

    /// Which claim about steps and messages this breaks.
    fn breaks(&self, handled: &Handled<P>, flights: &[Flight<P::Message>]) -> Option<usize> {
        let most = longest_message(self.terms.members);
        let claimed = |wanted| self.properties.iter().position(|&property| property == wanted);
        let too_long = || flights.iter().any(|flight| flight.message.encoded_len() > most);
        let mut missteps = handled.missteps.iter().map(|misstep| misstep.invariant.into());
        let misstep = missteps.find_map(claimed);
        let term = handled.local.disk.as_ref().map_or_else(Term::default, Durable::term);
        let too_high = || term.0 > self.highest_term();
        misstep
            .or_else(|| claimed(Property::BoundedMessages).filter(|_| too_long()))
            .or_else(|| claimed(Property::BoundedTerms).filter(|_| too_high()))
    }

    /// Notes that somebody leads: the new history, and the claim it breaks. `locals`: everybody before that; the leader is
    /// `member`, and comes to `local`.
    pub(super) fn note(
        &self,
        hand: &mut Hand<P>,
        history: u32,
        reign: Reign,
        locals: &[u32],
        (member, local): (usize, u32),
    ) -> (u32, Option<usize>) {
        let led = &hand.histories[history as usize].led;
        let Err(place) = led.binary_search(&reign) else { return (history, None) };
        let (term, leader, _) = reign;
        let usurped = led.iter().any(|&(other, ..)| other == term);
        let before = led.last().map(|&(earlier, other, _)| (other, earlier));
        let fallen = ledger::rises(leader, term, before).is_some();
        let mut led = Vec::clone(led);
        led.insert(place, reign);
        let voter = |(place, &other): (usize, &u32)| {
            let number = if place == member { local } else { other };
            &*hand.locals[number as usize].local
        };
        let unelected = P::has_leases(self.terms.config)
            && !is_elected(leader, term, locals.iter().enumerate().map(voter));
        let mut store = self.lock();
        let history = store.histories.number(led);
        self.copy(hand, &mut store);
        let broken = |&property: &Property| match property {
            Property::OneLeaderPerTerm => usurped,
            Property::LeasesRise => P::has_leases(self.terms.config) && fallen || unelected,
            _ => false,
        };
        (history, self.properties.iter().position(broken))
    }

    /// The same message, a tick later.
    pub(super) fn older(&self, hand: &mut Hand<P>, flight: u32) -> u32 {
        if matches!(self.rules.timers, Timers::Clocked { .. }) {
            return flight; // however long it takes
        }
        let facts = &hand.flights[flight as usize];
        if let Some(older) = facts.older {
            return older;
        }
        let younger = Flight::clone(&facts.flight);
        let mut store = self.lock();
        let older = store.flights.number(Flight { age: younger.age + 1, ..younger });
        self.copy(hand, &mut store);
        hand.flights[flight as usize].older = Some(older);
        older
    }
}

/// Whether a majority has voted for `leader` in `term`, as far as that is still known of everybody: of who has stored a
/// later term it is not. What was lost with a disk counts.
pub(crate) fn is_elected<'l, P: Explore + 'l>(
    leader: NodeId,
    term: Term,
    voters: impl ExactSizeIterator<Item = &'l Local<P>>,
) -> bool {
    let members = voters.len();
    let may_have_voted = |voter: &&Local<P>| {
        let lost =
            |(term, vote)| Entry { stored: Stored { term, vote: Some(vote) }, ..voter.entry() };
        let before = voter.forgotten.map(lost);
        let mut entries = std::iter::once(voter.entry()).chain(before);
        entries.any(|entry| entry.may_have_voted(leader, term))
    };
    ledger::elected(leader, term, voters.filter(may_have_voted).count(), members).is_none()
}

/// Whether this is the view of a leader whose term counts: term zero means that the algorithm knows none.
pub(crate) fn leads_in_a_term(view: &View) -> bool {
    view.role.leads() && view.term > Term::default()
}
