//! Obsolete messages: those that a search drops because they cannot matter to their receiver any more, and the proof that
//! they cannot.
//!
//! A protocol names *candidates* ([`Explore::is_obsolete`]). That is not taken for granted, because the rule under test may
//! be the one that makes it true. A search may drop a message only if these hold for every local state of its receiver and
//! every message to it that the search has met, together or not:
//!
//! 1. **It has no effect now.** Handled on a clone, an obsolete message leaves the canonical form and the armed timers
//!    unchanged, and the process sends and stores nothing.
//! 2. **It has no effect later.** A message that is obsolete stays obsolete: wherever the search has found a step from one
//!    local state to another, a message that is obsolete in the first is obsolete in the second. That includes crashes,
//!    restarts and the passing of time. For a process that is down, the state in which it would start counts.
//!
//! Then two states that differ only in obsolete messages have the same steps: an obsolete message changes nothing when it
//! arrives (1), and after any other step it is still obsolete (2). So one of the two is enough.
//!
//! This is verified after every level of a search. Where it fails, the kind of message is *distrusted*: it is never dropped
//! again, and the search starts over. A violation needs no such proof, because dropping messages does nothing that a
//! network could not do by losing them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use doyen_core::explore::Explore;
use doyen_core::members::NodeId;
use doyen_core::protocol::{Effect, Origin};

use super::local::{self, Local};
use super::step::Act;
use super::{Flight, Model, Store, Worker};

/// The kinds of messages that may be dropped, and what has been verified of that.
#[derive(Default)]
pub(super) struct Trust {
    /// A bit for each kind of message that the protocol was wrong about.
    distrusted: AtomicU64,
    /// Such a kind has serial numbers.
    distrusts_serials: AtomicBool,
    verified: Mutex<Verified>,
}

#[derive(Default)]
struct Verified {
    /// By the number of the local state.
    locals: Vec<Row>,
    /// The numbers of the messages to each member.
    flights: Vec<Vec<u32>>,
    /// The number of messages so far.
    met: usize,
}

/// The messages that are obsolete in one local state.
#[derive(Default)]
struct Row {
    /// The number of messages to the member that have been tried.
    tried: usize,
    /// A bit for each of them that is obsolete.
    obsolete: Vec<u64>,
}

impl Trust {
    /// Whether all serial numbers matter, even those that a protocol takes for past.
    pub(super) fn lacks_serials(&self) -> bool {
        self.distrusts_serials.load(Ordering::Relaxed)
    }

    fn lacks(&self, kind: usize) -> bool {
        self.distrusted.load(Ordering::Relaxed) >> kind & 1 == 1
    }

    /// Distrusts a kind of message; returns whether it was trusted.
    fn withdraw(&self, kind: usize, has_serial: bool) -> bool {
        if has_serial {
            self.distrusts_serials.store(true, Ordering::Relaxed);
        }
        let bit = 1 << kind;
        self.distrusted.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

impl Row {
    fn push(&mut self, is_obsolete: bool) {
        if self.tried.is_multiple_of(64) {
            self.obsolete.push(0);
        }
        self.obsolete[self.tried / 64] |= u64::from(is_obsolete) << (self.tried % 64);
        self.tried += 1;
    }

    /// The first message that is obsolete here and not there.
    fn beyond(&self, other: &Self) -> Option<usize> {
        let pairs = self.obsolete.iter().zip(&other.obsolete).enumerate();
        let mut lost = pairs.filter(|(_, (here, there))| *here & !*there != 0);
        let (word, (here, there)) = lost.next()?;
        Some(word * 64 + (here & !there).trailing_zeros() as usize)
    }
}

impl<P: Explore> Model<'_, P> {
    /// Whether a message cannot matter any more to a process in this local state, whatever happens to it.
    pub(super) fn is_obsolete(&self, worker: &Worker<P>, local: u32, flight: u32) -> bool {
        if !self.reductions.canonical {
            return false;
        }
        let mut known = worker.obsolete.borrow_mut();
        *known.entry((local, flight)).or_insert_with(|| {
            let local = &worker.locals[local as usize].local;
            let flight = &worker.flights[flight as usize].flight;
            match &local.state {
                Some(state) => self.seems_obsolete(state, flight),
                None => {
                    self.started(local).is_some_and(|state| self.seems_obsolete(&state, flight))
                }
            }
        })
    }

    fn seems_obsolete(&self, state: &P, flight: &Flight<P::Message>) -> bool {
        let Flight { from, message, .. } = flight;
        !self.trust.lacks(P::kind_index(self.context.config, message))
            && state.is_obsolete(self.context.config, self.name(*from), message)
    }

    /// Never drops a message of this kind again; returns whether one was dropped before.
    fn withdraw(&self, message: &P::Message) -> bool {
        let kind = P::kind_index(self.context.config, message);
        self.trust.withdraw(kind, P::serial(message).is_some())
    }

    fn name(&self, position: u8) -> NodeId {
        self.context.members.at(usize::from(position))
    }

    /// The state in which a process that is down would start.
    fn started(&self, local: &Local<P>) -> Option<P> {
        local::handle(&self.context, local, Act::Start(Origin::Joining), 0).local.state
    }

    /// Verifies the dropped messages, as far as that has not been done. If it fails, the search must start over, with less
    /// trust.
    pub(super) fn verify_obsolete(&self) -> bool {
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
        flights.resize(self.context.members.len(), Vec::new());
        for flight in store.flights.since(*met) {
            flights[usize::from(flight.to)].push(*met as u32);
            *met += 1;
        }
        let locals = store.locals.since(0);
        rows.resize_with(locals.len(), Row::default);
        let mut refuted = false;
        for (local, row) in locals.iter().zip(rows.iter_mut()) {
            let Some(place) = self.context.members.position(local.id) else { continue };
            refuted |= self.try_row(local, row, &flights[place], store);
        }
        let flight = |number: u32| &store.flights.since(number as usize)[0].message;
        for &(before, after) in &store.transitions {
            let place = self.context.members.position(locals[before as usize].id);
            let lost = rows[before as usize].beyond(&rows[after as usize]);
            if let (Some(place), Some(lost)) = (place, lost) {
                refuted |= self.withdraw(flight(flights[place][lost]));
            }
        }
        refuted
    }

    /// Tries the messages to a member that have not been tried in this local state; returns whether one was refuted.
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
            let is_obsolete = self.seems_obsolete(state, flight);
            if is_obsolete && local.is_up() && !self.does_nothing(local, flight) {
                refuted |= self.withdraw(&flight.message);
            }
            row.push(is_obsolete);
        }
        refuted
    }

    /// Whether a message has no effect on a process in this local state.
    fn does_nothing(&self, local: &Local<P>, flight: &Flight<P::Message>) -> bool {
        let (from, message) = (self.name(flight.from), flight.message.clone());
        let received = Act::Receive { message: (from, message), again: false };
        let handled = local::handle(&self.context, local, received, 0);
        let is_output = |effect: &Effect<P::Message, P::Timer, P::Durable>| {
            matches!(effect, Effect::Send { .. } | Effect::Persist(_))
        };
        let config = self.context.config;
        !handled.effects.iter().any(is_output)
            && (handled.local == *local
                || handled.local.canonical(config) == local.canonical(config))
    }
}
