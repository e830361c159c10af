//! What a step breaks: the rules of the [ledger], asked about the states of a model. A search wants to know which claim is
//! broken, a replay wants the facts as well; both ask here.

use doyen_core::explore::Explore;
use doyen_core::ledger::{self, Contradiction, Tenure, sections};
use doyen_core::protocol::{Durable, Flaw, Message as _, Protocol, Section, name_of};

use super::local::{Handled, Local, Ticks};
use super::step::{Act, Step};
use super::successors::Parts;
use super::worker::{Consequence, LocalFacts, Move};
use super::{Flight, Leadership, Model, Past, Worker};
use crate::property::{Fact, Property, longest_message};

/// A broken property, and the facts that contradict each other.
pub(crate) type Breach = (Property, Vec<Fact>);

/// What makes the cut inconsistent that this member has recorded.
fn flaw<P: Protocol>(state: &P) -> Option<Flaw> {
    state.recording()?.flaw
}

impl<P: Explore> Model<'_, P> {
    /// The number of the claim about a property, if it is checked.
    pub(super) fn claim_of(&self, property: Property) -> Option<usize> {
        self.rules.properties.iter().position(|&checked| checked == property)
    }

    fn if_checked(&self, contradiction: Contradiction) -> Option<Breach> {
        let Contradiction { invariant, facts } = contradiction;
        let property = Property::from(invariant);
        self.claim_of(property).map(|_| (property, facts))
    }

    /// What `step` breaks in `state`.
    pub(crate) fn breach(
        &self,
        worker: &mut Worker<P>,
        state: &[u32],
        step: Step,
    ) -> Option<Breach> {
        let parts = self.parts(worker, state);
        let Step { slot, act, crash_after } = step;
        let slot = usize::from(slot);
        let is_lost = matches!(act, Act::Lose { .. })
            || matches!(act, Act::Receive { .. }) && parts.up >> slot & 1 == 0;
        if is_lost || matches!(act, Act::Wait { .. }) {
            return None;
        }
        let (handled, flights) = self.handle(worker, parts.locals[slot], act, crash_after);
        let known = self.consequence(worker, parts.locals[slot], act, crash_after);
        let (local, leads) = (worker.consequences[known].local, worker.consequences[known].leads);
        let by_itself = self.breach_by_itself(&handled, &flights);
        let leads = leads.filter(|_| self.tracks_leaderships);
        let history = |worker: &Worker<P>| {
            let led = &worker.histories[parts.history as usize].past.led;
            let place = leads.and_then(|leads| Some((leads, led.binary_search(&leads).err()?)));
            place
                .and_then(|(leads, _)| self.breach_by_leading(worker, &parts, leads, (slot, local)))
        };
        let landed = act.received().filter(|_| !matches!(act, Act::Receive { again: true, .. }));
        let landed = landed.and_then(|it| parts.flights.iter().position(|&flight| flight == it));
        by_itself
            .or_else(|| history(worker))
            .or_else(|| self.enter(worker, parts.history, known).1)
            .or_else(|| self.breach_by_order(worker, &parts, known, slot))
            .or_else(|| self.breach_by_token(worker, &parts, known, slot, landed))
            .or_else(|| self.breach_by_lease(worker, &parts, (slot, local)))
    }

    /// What a process breaks whatever the others do: by what it stored, sent, or leads in.
    pub(super) fn breach_by_itself(
        &self,
        handled: &Handled<P>,
        flights: &[Flight<P::Message>],
    ) -> Option<Breach> {
        let mut contradictions = handled.contradictions.iter().cloned();
        contradictions.find_map(|contradiction| self.if_checked(contradiction)).or_else(|| {
            let id = handled.local.id;
            let most = longest_message(self.context.members);
            let too_long = |flight: &&Flight<P::Message>| flight.message.encoded_len() > most;
            if self.claim_of(Property::BoundedMessages).is_some()
                && let Some(Flight { to, message, .. }) = flights.iter().find(too_long)
            {
                let to = self.context.members.at(usize::from(*to));
                let (kind, bytes) = (name_of(message), message.encoded_len());
                let sends = Fact::new(id, format!("sends {kind} to {to}, {bytes} bytes long"));
                let bound = Fact::new(id, format!("needs no message longer than {most} bytes"));
                return Some((Property::BoundedMessages, vec![sends, bound]));
            }
            if self.claim_of(Property::ConsistentCut).is_some()
                && let Some(flaw) = handled.local.state.as_ref().and_then(flaw)
            {
                let noticed = Fact::new(id, flaw.to_string());
                return Some((Property::ConsistentCut, vec![noticed]));
            }
            let stored = handled.local.disk.as_ref().map_or(0, |disk| disk.term().0);
            let highest = self.highest_term();
            let is_checked = self.claim_of(Property::BoundedTerms).is_some();
            (is_checked && stored > highest).then(|| {
                let stores = Fact::new(id, format!("stores term {stored}"));
                let bound = Fact::new(id, format!("needs no higher term than {highest}"));
                (Property::BoundedTerms, vec![stores, bound])
            })
        })
    }

    /// The past after the moves of a consequence with respect to the critical section, and what they break.
    pub(super) fn enter(
        &self,
        worker: &Worker<P>,
        history: u32,
        known: usize,
    ) -> (Past, Option<Breach>) {
        let Consequence { local, moves, .. } = &worker.consequences[known];
        let member = worker.locals[*local as usize].local.id;
        let mut past = Past::clone(&worker.histories[history as usize].past);
        let mut found: Vec<Contradiction> = Vec::new();
        for step in moves {
            match *step {
                Move::To(section) => found.extend(past.sections.announce(member, section)),
                Move::Gone => past.sections.crash(member),
            }
        }
        (past, found.into_iter().find_map(|contradiction| self.if_checked(contradiction)))
    }

    /// Whether the process in `slot` enters before one whose request happened before its own.
    pub(super) fn breach_by_order(
        &self,
        worker: &Worker<P>,
        parts: &Parts<'_>,
        known: usize,
        slot: usize,
    ) -> Option<Breach> {
        if !self.uses.order {
            return None;
        }
        let Consequence { local, moves, .. } = &worker.consequences[known];
        let enters = |step: &Move| matches!(step, Move::To(section) if section.is_inside());
        let request =
            |number: u32| worker.locals[number as usize].local.state.as_ref()?.asked_after();
        let own = request(*local).filter(|_| moves.iter().any(enters))?;
        let others = parts.locals.iter().enumerate().filter(|&(place, _)| place != slot);
        let waiting = others.filter_map(|(_, &number)| {
            let facts = &worker.locals[number as usize];
            let waits = facts.section == Section::Waiting;
            Some((facts.local.id, request(number).filter(|_| waits)?.number))
        });
        let member = self.context.members.at(slot);
        let broken = sections::out_of_order(member, &own.after, waiting);
        broken.and_then(|contradiction| self.if_checked(contradiction))
    }

    /// Whether there are two tokens of one generation after a consequence for the process in `slot`; the message at place
    /// `landed` is no longer in flight then.
    pub(super) fn breach_by_token(
        &self,
        worker: &Worker<P>,
        parts: &Parts<'_>,
        known: usize,
        slot: usize,
        landed: Option<usize>,
    ) -> Option<Breach> {
        if !self.uses.tokens {
            return None;
        }
        let Consequence { local, sends, .. } = &worker.consequences[known];
        let in_slot = |place: usize| if place == slot { *local } else { parts.locals[place] };
        let held = (0..parts.locals.len()).filter_map(|place| {
            let facts = &worker.locals[in_slot(place) as usize];
            Some((Fact::new(facts.local.id, "holds a token"), facts.token?))
        });
        let left = parts.flights.iter().enumerate().filter(|&(place, _)| Some(place) != landed);
        let flights = left.map(|(_, flight)| flight).chain(sends);
        let under_way = flights.filter_map(|&flight| {
            let facts = &worker.flights[flight as usize];
            let [from, to] = [facts.from(), facts.to()].map(|it| self.context.members.at(it));
            Some((Fact::new(from, format!("has sent a token to {to}")), facts.token?))
        });
        let broken = sections::two_tokens(held.chain(under_way));
        broken.and_then(|contradiction| self.if_checked(contradiction))
    }

    /// What the process in `slot`, whose local state becomes `local`, breaks by leading. It has not led in this term.
    pub(super) fn breach_by_leading(
        &self,
        worker: &Worker<P>,
        parts: &Parts<'_>,
        leadership: Leadership,
        (slot, local): (usize, u32),
    ) -> Option<Breach> {
        let led = &worker.histories[parts.history as usize].past.led;
        let (term, leader, _) = leadership;
        let second = led.iter().find(|&&(other, ..)| other == term);
        if self.claim_of(Property::OneLeaderPerTerm).is_some()
            && let Some(&(_, other, _)) = second
        {
            let by = if other == leader { ", by another of its processes" } else { "" };
            let first = Fact::new(other, format!("has led in term {term}"));
            let second = Fact::new(leader, format!("leads in term {term} too{by}"));
            return Some((Property::OneLeaderPerTerm, vec![first, second]));
        }
        if !self.uses.leases {
            return None;
        }
        let last = led.last().map(|&(earlier, other, _)| (other, earlier));
        let has_voted = |&(place, &number): &(usize, &u32)| {
            let number = if place == slot { local } else { number };
            worker.locals[number as usize].local.may_have_voted(leader, term)
        };
        let votes = || parts.locals.iter().enumerate().filter(has_voted).count();
        let broken = ledger::rises(leader, term, last)
            .or_else(|| ledger::elected(leader, term, votes(), parts.locals.len()));
        broken.and_then(|contradiction| self.if_checked(contradiction))
    }

    /// What the process in `slot`, whose local state becomes `local`, breaks of leases: its own overlaps with one on which
    /// clients may still act, or a lease is left without a majority that is bound to its holder.
    pub(super) fn breach_by_lease(
        &self,
        worker: &Worker<P>,
        parts: &Parts<'_>,
        (slot, local): (usize, u32),
    ) -> Option<Breach> {
        if !self.uses.leases {
            return None;
        }
        let facts = |place: usize| {
            let number = if place == slot { local } else { parts.locals[place] };
            &worker.locals[number as usize]
        };
        let lease = |facts: &LocalFacts<P>| {
            let LocalFacts { published, lease_term: term, .. } = *facts;
            Tenure { term, until: Ticks(published) }
        };
        let slots = || 0..parts.locals.len();
        let holder: &Local<P> = &facts(slot).local;
        if facts(slot).leased && self.claim_of(Property::OneLeader).is_some() {
            let others = slots().filter(|&other| other != slot).map(facts);
            let others = others.map(|other| (other.local.id, lease(other)));
            let overlap = ledger::overlap(Ticks(0), holder.id, holder.lease_term, others);
            if let Some(breach) = overlap.and_then(|overlap| self.if_checked(overlap)) {
                return Some(breach);
            }
        }
        self.claim_of(Property::LeasesCovered)?;
        let holders = slots().map(facts).filter(|facts| facts.published > 0);
        let uncovered = holders.filter(|holder| {
            let covering = slots().filter(|&place| facts(place).bonds.covers(lease(holder)));
            covering.count() < ledger::majority(parts.locals.len())
        });
        uncovered.into_iter().find_map(|holder| {
            let bonds: Vec<_> = slots().map(facts).map(|it| (it.local.id, it.bonds)).collect();
            let gap = ledger::uncovered(holder.local.id, lease(holder), &bonds)?;
            self.if_checked(gap)
        })
    }
}
