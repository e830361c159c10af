//! Spent messages: those that a search leaves out because they cannot matter to their receiver any more, and the proof
//! that they cannot.
//!
//! A protocol names *candidates* ([`Explore::is_obsolete`]). What it says is not taken for granted: the rule under test may
//! be the very one that makes it true. A search may leave a message out only if these hold for every local state of its
//! receiver and every message to it that the search has met, together or not:
//!
//! 1. **It does nothing now.** Handled on a clone, a spent message leaves the canonical form and the armed timers as they
//!    were, and the member sends and stores nothing.
//! 2. **It does nothing later.** Whatever happens to the member, a message that was spent is spent: wherever the search
//!    has found a step from one local state to another, what is spent in the first is spent in the second. That
//!    includes crashes, restarts and the passing of time. A member that is down has no use for what it has no use for
//!    when it comes up.
//!
//! Then two states that differ in spent messages alone can do the same things: a spent message changes nothing when it
//! arrives (1), and what remains of it after any other step is spent as well (2). So one of the two is enough.
//!
//! This is verified after every level of a search. Where it fails, the kind of message at fault is *distrusted*: it is
//! never left out again, and the search begins again. A violation needs no such proof, because a search that leaves
//! messages out does nothing that a network could not do by losing them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use doyen_core::explore::Explore;
use doyen_core::members::NodeId;
use doyen_core::protocol::{Effect, Event};

use super::hand::Hand;
use super::{Flight, Machine, Store};
use crate::local::{self, Local, Stimulus};

/// Which kinds of messages may be left out, and what has been verified of that.
#[derive(Default)]
pub(super) struct Trust {
    /// A bit for each kind of message of which the protocol was wrong.
    distrusted: AtomicU64,
    /// Such a kind has serial numbers.
    of_serials: AtomicBool,
    verified: Mutex<Verified>,
}

#[derive(Default)]
struct Verified {
    /// Of each local state, by number.
    locals: Vec<Row>,
    /// The messages to each member, by number.
    flights: Vec<Vec<u32>>,
    /// How many messages there were.
    met: usize,
}

/// What a member in one local state has no use for.
#[derive(Default)]
struct Row {
    /// How many of the messages to the member have been tried.
    tried: usize,
    /// A bit for each of them that is spent.
    spent: Vec<u64>,
}

impl Trust {
    /// Whether all serial numbers matter, also those that a protocol takes for past.
    pub(super) fn lacks_serials(&self) -> bool {
        self.of_serials.load(Ordering::Relaxed)
    }

    fn lacks(&self, kind: usize) -> bool {
        self.distrusted.load(Ordering::Relaxed) >> kind & 1 == 1
    }

    /// Says whether that is news.
    fn withdraw(&self, kind: usize, has_serial: bool) -> bool {
        if has_serial {
            self.of_serials.store(true, Ordering::Relaxed);
        }
        let bit = 1 << kind;
        self.distrusted.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

impl Row {
    fn push(&mut self, spent: bool) {
        if self.tried.is_multiple_of(64) {
            self.spent.push(0);
        }
        self.spent[self.tried / 64] |= u64::from(spent) << (self.tried % 64);
        self.tried += 1;
    }

    /// The first that is spent here and not there.
    fn beyond(&self, other: &Self) -> Option<usize> {
        let pairs = self.spent.iter().zip(&other.spent).enumerate();
        let mut lost = pairs.filter(|(_, (here, there))| *here & !*there != 0);
        let (word, (here, there)) = lost.next()?;
        Some(word * 64 + (here & !there).trailing_zeros() as usize)
    }
}

impl<P: Explore> Machine<'_, P> {
    /// Whether a member in this local state has no use any more for a message, whatever happens to it.
    pub(super) fn is_spent(&self, hand: &Hand<P>, local: u32, flight: u32) -> bool {
        if !self.essential {
            return false;
        }
        let mut known = hand.spent.borrow_mut();
        *known.entry((local, flight)).or_insert_with(|| {
            let local = &hand.locals[local as usize].local;
            let flight = &hand.flights[flight as usize].flight;
            match &local.state {
                Some(state) => self.seems_spent(state, flight),
                None => self.started(local).is_some_and(|state| self.seems_spent(&state, flight)),
            }
        })
    }

    fn seems_spent(&self, state: &P, flight: &Flight<P::Message>) -> bool {
        let Flight { from, message, .. } = flight;
        !self.trust.lacks(P::kind_index(self.terms.config, message))
            && state.is_obsolete(self.terms.config, self.name(*from), message)
    }

    /// Leaves out no message like this one any more. Says whether that is news.
    fn withdraw(&self, message: &P::Message) -> bool {
        let kind = P::kind_index(self.terms.config, message);
        self.trust.withdraw(kind, P::serial(message).is_some())
    }

    fn name(&self, position: u8) -> NodeId {
        self.terms.members.at(usize::from(position))
    }

    /// A member that is down, had it just come up.
    fn started(&self, local: &Local<P>) -> Option<P> {
        local::handle(&self.terms, local, Stimulus::Start(local.origin()), None).local.state
    }

    /// Verifies what has been left out, as far as that is new. If something was left out that may matter, the search must
    /// be made again, with less trust.
    pub(super) fn verify_spent(&self) -> bool {
        let mut verified = self.trust.verified.lock().unwrap_or_else(PoisonError::into_inner);
        let store = self.lock();
        let refuted = self.try_all(&mut verified, &store);
        if refuted {
            *verified = Verified::default();
        }
        !refuted
    }

    fn try_all(&self, verified: &mut Verified, store: &Store<P>) -> bool {
        let Verified { locals: rows, flights, met } = verified;
        flights.resize(self.terms.members.len(), Vec::new());
        for flight in store.flights.since(*met) {
            flights[usize::from(flight.to)].push(*met as u32);
            *met += 1;
        }
        let locals = store.locals.since(0);
        rows.resize_with(locals.len(), Row::default);
        let mut refuted = false;
        for (local, row) in locals.iter().zip(rows.iter_mut()) {
            let Some(place) = self.terms.members.position(local.id) else { continue };
            refuted |= self.try_row(local, row, &flights[place], store);
        }
        let flight = |number: u32| &store.flights.since(number as usize)[0].message;
        for &(before, after) in &store.transitions {
            let place = self.terms.members.position(locals[before as usize].id);
            let lost = rows[before as usize].beyond(&rows[after as usize]);
            if let (Some(place), Some(lost)) = (place, lost) {
                refuted |= self.withdraw(flight(flights[place][lost]));
            }
        }
        refuted
    }

    /// Tries the messages to a member that have not been tried in this local state.
    fn try_row(
        &self,
        local: &Arc<Local<P>>,
        row: &mut Row,
        flights: &[u32],
        store: &Store<P>,
    ) -> bool {
        let mut refuted = false;
        if row.tried == flights.len() {
            return refuted;
        }
        let started = if local.is_up() { None } else { self.started(local) };
        let Some(state) = local.state.as_ref().or(started.as_ref()) else { return refuted };
        for &number in &flights[row.tried..] {
            let flight = &store.flights.since(number as usize)[0];
            let spent = self.seems_spent(state, flight);
            if spent && local.is_up() && !self.does_nothing(local, flight) {
                refuted |= self.withdraw(&flight.message);
            }
            row.push(spent);
        }
        refuted
    }

    /// Whether a message changes nothing at a member in this local state, and nothing comes of it.
    fn does_nothing(&self, local: &Local<P>, flight: &Flight<P::Message>) -> bool {
        let (from, message) = (self.name(flight.from), flight.message.clone());
        let event = Stimulus::Event(Event::Message { from, message });
        let handled = local::handle(&self.terms, local, event, None);
        let is_act = |effect: &Effect<P::Message, P::Timer, P::Durable>| {
            matches!(effect, Effect::Send { .. } | Effect::Persist(_))
        };
        let config = self.terms.config;
        !handled.effects.iter().any(is_act)
            && (handled.local == *local || handled.local.essence(config) == local.essence(config))
    }
}
