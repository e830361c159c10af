//! Leaves out orders that make no difference: partial-order reduction.
//!
//! Two steps of different members commute: each changes its own member, takes from the links that lead to it and adds
//! to those that lead away. So if nothing that the *other* members can do ever gives member m a new step, it is enough
//! to explore m's steps now: whatever the others do can as well be done later. m's steps are then an *ample set*
//! (Peled 1993). That is so if
//!
//! - nothing goes wrong any more, for what is left of the budget is shared;
//! - where timers are bounded, time waits for m: time is shared, and it goes on for all at once. m has a message, a
//!   timer or news that has taken as long as it may, so until m has done something there is no tick. Whatever the others
//!   send meanwhile is no older than that, and holds up none of m's timers;
//! - while m does nothing the others give it no new step: none of them can send to m on a link that is empty. Behind a
//!   message that waits already a new one makes no new step, where links keep the order of messages. What the others
//!   can send is tried out: see [`Machine::can_be_surprised`];
//! - m's steps change no view, so that no property of a state is missed;
//! - and, lest a step be put off for ever, the search explores everything where a step of the set may close a loop:
//!   where it leads to a state that is no further from the start.
//!
//! **Endless runs.** A run that is left out has the same steps as one that is not, in another order, and each member's
//! own in the same: they come by the same views in the same order. One is weakly fair if the other is. What makes a step
//! possible for a member is its own state and what is first on its links, so a step that stays possible in one of them
//! without being taken stays possible in the other; and time, which is held up by what somebody has yet to do, is held
//! up for ever in both or in neither. So a fair run that never comes to rest is missed only with one that is found.
//!
//! Which members have a link is learnt where timers are free: it is assumed that members send only to those to whom they
//! have sent in the search. If the search finds another link it is done again, so when it ends the assumption held
//! throughout. Where timers are bounded everybody is taken to have a link to everybody, for nearly all have.

use std::sync::atomic::Ordering;

use doyen_core::explore::Explore;

use super::Timers;
use super::machine::{Act, Explorable, Hand, Machine, Parts, Step};
use super::space::{Space, Successors};

impl<P: Explorable> Machine<'_, P> {
    /// Keeps the steps of one member, if they stand for all. Called where nothing can go wrong any more.
    pub(super) fn reduce(
        &self,
        hand: &mut Hand<P>,
        state: &[u32],
        out: &mut Successors<Step>,
    ) -> bool {
        let parts = self.parts(hand, state);
        let time_waits_for = match self.rules.timers {
            Timers::Free { .. } => u64::MAX,
            Timers::Bounded { .. } => self.late(hand, &parts),
            // Time waits for nobody who has mail.
            Timers::Clocked { .. } => 0,
        };
        if out.list().len() < 2 || time_waits_for == 0 {
            return false;
        }
        let owners: Vec<usize> = out.list().iter().map(|next| owner(hand, next.step)).collect();
        let active = owners.iter().fold(0, |active, &owner| active | 1_u64 << owner);
        let mut candidates = active & time_waits_for;
        if active.count_ones() < 2 {
            return false;
        }
        let mood = self.mood(hand, state);
        while candidates != 0 {
            let member = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let mut own = out.list().iter().zip(&owners).filter(|&(_, &owner)| owner == member);
            let unseen = own
                .all(|(next, _)| next.breaks.is_none() && self.mood(hand, out.state(next)) == mood);
            // Upkeep alone must not stand for all: who looks at what is left would take the state for one at rest.
            let own = || out.list().iter().zip(&owners).filter(|&(_, &owner)| owner == member);
            let owes = own().any(|(next, _)| self.duty(next.step).is_some());
            if unseen && owes && !self.can_be_surprised(hand, &parts, member) {
                let mut owners = owners.iter();
                out.retain(|_| owners.next() == Some(&member));
                return true;
            }
        }
        false
    }

    /// How many links there are: more than before if the search found a new one.
    pub(super) fn links_known(&self) -> u32 {
        (0..self.channels.len()).map(|member| self.senders_to(member).count_ones()).sum()
    }

    /// Who has a link to `member`, a bit for each position.
    fn senders_to(&self, member: usize) -> u64 {
        let has_link = |&other: &usize| match self.rules.timers {
            Timers::Free { .. } => self.channels[other].load(Ordering::Relaxed) >> member & 1 == 1,
            Timers::Bounded { .. } | Timers::Clocked { .. } => other != member,
        };
        (0..self.channels.len()).filter(has_link).fold(0, |senders, other| senders | 1 << other)
    }

    /// Whether the others can give `member` a new step while it does nothing. What they can do is tried out: each does
    /// what it has to do, in every order, and what it sends may arrive at the others at any moment, until nothing new
    /// is sent. If that is too much to try, they can.
    fn can_be_surprised(&self, hand: &mut Hand<P>, parts: &Parts<'_>, member: usize) -> bool {
        let count = parts.locals.len();
        let mail = parts.flights.iter().map(|&flight| &hand.flights[flight as usize]);
        let own_mail = mail.filter(|facts| facts.to() == member);
        let busy = own_mail.fold(0_u64, |busy, facts| busy | 1 << facts.from());
        let opens = self.senders_to(member) & if self.rules.fifo { !busy } else { u64::MAX };
        if opens == 0 {
            return false;
        }
        let mut arrivals: Vec<Vec<u32>> = vec![Vec::new(); count];
        let mut to_try: Vec<usize> = (0..count).filter(|&other| other != member).collect();
        while let Some(other) = to_try.pop() {
            let Some(prospects) = self.prospects(hand, parts, other, &arrivals[other]) else {
                return true;
            };
            for flight in prospects {
                let to = hand.flights[flight as usize].to();
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

/// Whose step it is.
fn owner<P: Explore>(hand: &Hand<P>, step: Step) -> usize {
    match step.act {
        Act::Deliver(flight) | Act::Double(flight) | Act::Lose(flight) => {
            hand.flights[flight as usize].to()
        }
        Act::Expire { member, .. }
        | Act::Report { member, .. }
        | Act::Suspect { member, .. }
        | Act::Campaign(member)
        | Act::Crash(member)
        | Act::Restart(member)
        | Act::Rejoin(member)
        | Act::Replace(member)
        | Act::Clone(member)
        | Act::DoubleAt { slot: member, .. }
        | Act::Command { member, .. } => usize::from(member),
        Act::Wait(_) => unreachable!("time is not a member's"),
    }
}
