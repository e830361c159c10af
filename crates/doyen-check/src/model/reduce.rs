//! Partial-order reduction: leaves out orders of steps that make no difference.
//!
//! Two steps of different members commute: each changes its own member, takes from the links that lead to it and adds to
//! those that lead away. So if nothing that the *other* members can do ever gives member m a new step, it is enough to
//! explore m's steps now: the others can act later as well. m's steps are then an *ample set* (Peled 1993). That holds if
//!
//! - no fault is possible any more, because what is left of the budget is shared;
//! - with bounded timers, time waits for m: time is shared, and advances for all at once. m has a message, a timer or a
//!   report that has taken as long as it may, so there is no tick until m has acted. What the others send meanwhile is no
//!   older, and delays none of m's timers;
//! - while m does nothing the others give it no new step: none of them can send to m on a link that is empty. Behind a
//!   message that waits already a new one makes no new step, if links are FIFO. What the others can send is tried out: see
//!   [`Model::can_be_surprised`];
//! - m's steps change no view, so that no property of a state is missed;
//! - and, so that no step is put off forever, the search explores everything where a step of the set may close a loop:
//!   where it leads to a state that is no farther from the start.
//!
//! **Endless runs.** A run that is left out has the same steps as one that is explored, in another order, and each member's
//! own in the same order: both pass the same views in the same order. One is weakly fair if the other is: what makes a step
//! possible for a member is its own state and the first messages on its links, so a step that stays possible in one of them
//! without being taken stays possible in the other; and time is blocked forever in both or in neither. So a fair run that
//! never comes to rest is missed only together with one that is found.
//!
//! With free timers the links are learned: the search assumes that members send only to those to which they have sent in
//! the search. If it finds another link it is repeated, so when it ends the assumption held throughout. With bounded
//! timers a link from every member to every other is assumed.

use std::sync::atomic::Ordering;

use super::step::{Act, Step};
use super::{Consequence, Explorable, Model, Parts, Worker};
use crate::search::space::{Space, Successors};
use crate::timers::Timers;

/// With more local states than this to reach, what a member may send is not tried out.
const MAX_TRIED: usize = 64;

/// The messages in flight to a member: those on its links, in order, and behind them others that may be sent to it.
#[derive(Clone, Copy)]
struct InFlight<'a> {
    messages: &'a [u32],
    /// So many of them are on links already.
    waiting: usize,
}

impl<P: Explorable> Model<'_, P> {
    /// Keeps the steps of one member, if they stand for all. Called where no fault is possible any more.
    pub(crate) fn reduce(
        &self,
        worker: &mut Worker<P>,
        state: &[u32],
        out: &mut Successors<Step>,
    ) -> bool {
        let parts = self.parts(worker, state);
        let time_waits_for = match self.rules.timers {
            Timers::Free { .. } => u64::MAX,
            Timers::Bounded { .. } => self.late(worker, &parts),
            // Time does not wait for messages.
            Timers::Clocked { .. } => 0,
        };
        if out.list().len() < 2 || time_waits_for == 0 {
            return false;
        }
        let owners: Vec<usize> =
            out.list().iter().map(|next| usize::from(next.step.slot)).collect();
        let active = owners.iter().fold(0, |active, &owner| active | 1_u64 << owner);
        let mut candidates = active & time_waits_for;
        if active.count_ones() < 2 {
            return false;
        }
        let observation = self.observation(worker, state);
        while candidates != 0 {
            let member = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let mut own = out.list().iter().zip(&owners).filter(|&(_, &owner)| owner == member);
            let is_unseen = own.all(|(next, _)| {
                next.breaks.is_none() && self.observation(worker, out.state(next)) == observation
            });
            // Background timers alone must not stand for all: the state would be taken for one at rest.
            let own = || out.list().iter().zip(&owners).filter(|&(_, &owner)| owner == member);
            let is_owed = own().any(|(next, _)| self.fairness(next.step).is_some());
            if is_unseen && is_owed && !self.can_be_surprised(worker, &parts, member) {
                let mut owners = owners.iter();
                out.retain(|_| owners.next() == Some(&member));
                return true;
            }
        }
        false
    }

    /// The number of links: more than before if the search found a new one.
    pub(crate) fn links_known(&self) -> u32 {
        (0..self.channels.len()).map(|member| self.senders_to(member).count_ones()).sum()
    }

    /// The members that have a link to `member`, a bit for each position.
    fn senders_to(&self, member: usize) -> u64 {
        let has_link = |&other: &usize| match self.rules.timers {
            Timers::Free { .. } => self.channels[other].load(Ordering::Relaxed) >> member & 1 == 1,
            Timers::Bounded { .. } | Timers::Clocked { .. } => other != member,
        };
        (0..self.channels.len()).filter(has_link).fold(0, |senders, other| senders | 1 << other)
    }

    /// Whether the others can give `member` a new step while it does nothing. What they can do is tried out: each does
    /// what it has to do, in every order, and what it sends may arrive at the others at any moment, until nothing new
    /// is sent. If there is too much to try, the answer is yes.
    fn can_be_surprised(&self, worker: &mut Worker<P>, parts: &Parts<'_>, member: usize) -> bool {
        let count = parts.locals.len();
        let messages = parts.flights.iter().map(|&flight| &worker.flights[flight as usize]);
        let own = messages.filter(|facts| facts.to() == member);
        let busy = own.fold(0_u64, |busy, facts| busy | 1 << facts.from());
        let opens = self.senders_to(member) & if self.rules.fifo { !busy } else { u64::MAX };
        if opens == 0 {
            return false;
        }
        let mut arrivals: Vec<Vec<u32>> = vec![Vec::new(); count];
        let mut to_try: Vec<usize> = (0..count).filter(|&other| other != member).collect();
        while let Some(other) = to_try.pop() {
            let Some(prospects) = self.prospects(worker, parts, other, &arrivals[other]) else {
                return true;
            };
            for flight in prospects {
                let to = worker.flights[flight as usize].to();
                if to != member && !arrivals[to].contains(&flight) {
                    arrivals[to].push(flight);
                    to_try.extend((!to_try.contains(&to)).then_some(to));
                } else if to == member && opens >> other & 1 == 1 {
                    return true;
                }
            }
        }
        false
    }

    /// The messages that the process in `slot` may send by what it has to do now, in any order, if `more` may arrive
    /// besides; nothing if there are too many orders to try.
    fn prospects(
        &self,
        worker: &mut Worker<P>,
        parts: &Parts<'_>,
        slot: usize,
        more: &[u32],
    ) -> Option<Vec<u32>> {
        let mut prospects = Vec::new();
        if !parts.is_up(slot) {
            return Some(prospects);
        }
        let is_its = |&flight: &u32| worker.flights[flight as usize].to() == slot;
        let mut messages: Vec<u32> = parts.flights.iter().copied().filter(is_its).collect();
        let waiting = messages.len();
        messages.extend(more);
        if messages.len() > u32::BITS as usize {
            return None;
        }
        let in_flight = InFlight { messages: &messages, waiting };
        // Local states that it may reach, and which messages it has received by then.
        let mut tried = vec![(parts.locals[slot], 0_u32)];
        let mut next = 0;
        while let Some(&(local, received)) = tried.get(next) {
            next += 1;
            for (act, received) in self.acts(worker, parts, slot, (local, received), in_flight) {
                let known = self.consequence(worker, local, act, 0);
                let Consequence { local, sends, .. } = &worker.consequences[known];
                for &sent in sends {
                    if !prospects.contains(&sent) {
                        prospects.push(sent);
                    }
                }
                if !tried.contains(&(*local, received)) {
                    tried.push((*local, received));
                }
            }
            if tried.len() > MAX_TRIED {
                return None;
            }
        }
        Some(prospects)
    }

    /// What a process may have to do in this local state that has received these messages, and what it has received then.
    fn acts(
        &self,
        worker: &Worker<P>,
        parts: &Parts<'_>,
        slot: usize,
        (local, received): (u32, u32),
        in_flight: InFlight<'_>,
    ) -> Vec<(Act, u32)> {
        let InFlight { messages, waiting } = in_flight;
        let facts = &worker.locals[local as usize];
        let channel = |place: usize| worker.flights[messages[place] as usize].channel;
        let is_left = |place: &usize| received >> place & 1 == 0;
        // A message that waits on a link comes before one that is sent on it.
        let is_first = |&place: &usize| {
            let mut before = (0..place.min(waiting)).filter(is_left);
            !self.rules.fifo || !before.any(|before| channel(before) == channel(place))
        };
        let receive = (0..messages.len()).filter(is_left).filter(is_first).map(|place| {
            // A message that may be sent besides may be sent again.
            let used_up = if place < waiting { 1 << place } else { 0 };
            let act = Act::Receive { message: messages[place], again: false };
            (act, received | used_up)
        });
        let wrong = match P::heeds_detector(self.context.config) {
            true => !(facts.reported ^ parts.up) & ((1 << parts.locals.len()) - 1) & !(1 << slot),
            false => 0,
        };
        let peers = (0..parts.locals.len()).filter(|peer| wrong >> peer & 1 == 1);
        let reports = peers.map(|peer| Act::Report { peer: peer as u8, up: parts.is_up(peer) });
        let expiries = facts.ready.iter();
        let expiries = expiries.map(|&(timer, background)| Act::Expire { timer, background });
        let clients = [(facts.may_ask, Act::Request), (facts.section.is_inside(), Act::Exit)];
        let clients = clients.into_iter().filter(|&(may_happen, _)| may_happen).map(|(_, act)| act);
        let own = reports.chain(expiries).chain(clients);
        receive.chain(own.map(|act| (act, received))).collect()
    }
}
