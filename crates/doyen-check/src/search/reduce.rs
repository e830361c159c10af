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
//! With free timers the links are learnt: the search assumes that members send only to those to whom they have sent in the
//! search. If it finds another link it is repeated, so when it ends the assumption held throughout. With bounded timers a
//! link from every member to every other is assumed.

use std::sync::atomic::Ordering;

use super::space::{Space, Successors};
use crate::model::step::Step;
use crate::model::{Explorable, Model, Parts, Worker};
use crate::rules::Timers;

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
}
