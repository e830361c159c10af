//! Leaves out orders that make no difference: partial-order reduction.
//!
//! Two steps of different members commute: each changes its own member, takes from the links that lead to it and adds
//! to those that lead away. So if nothing that the *other* members can do ever gives member m a new step, it is enough
//! to explore m's steps now: whatever the others do can as well be done later. m's steps are then an *ample set*
//! (Peled 1993). That is so if
//!
//! - nothing goes wrong any more, for what is left of the budget is shared, and timers are free, for time is shared;
//! - no member that can do something before m does, directly or by way of others, has a link to m that is empty, and
//!   links keep the order of messages: behind a message that waits already, a new one makes no new step;
//! - m's steps change no view, so that no property of a state is missed;
//! - and, lest a step be put off for ever, the search explores everything where a step of the set may close a loop:
//!   where it leads to a state that is no further from the start.
//!
//! Which members have a link is learnt: it is assumed that members send only to those to whom some member in the search
//! has sent. If the search finds another link it is done again, so when it ends the assumption held throughout.

use std::sync::atomic::Ordering;

use doyen_core::protocol::Protocol;

use super::Timers;
use super::machine::{Act, Explorable, Hand, Machine, Step};
use super::space::{Space, Successors};

impl<P: Explorable> Machine<'_, P> {
    /// Keeps the steps of one member, if they stand for all. Called where nothing can go wrong any more.
    pub(super) fn reduce(
        &self,
        hand: &mut Hand<P>,
        state: &[u32],
        out: &mut Successors<Step>,
    ) -> bool {
        if matches!(self.rules.timers, Timers::Bounded { .. }) || out.list().len() < 2 {
            return false;
        }
        let count = self.terms.members.len();
        let links: Vec<u64> = self.channels.iter().map(|to| to.load(Ordering::Relaxed)).collect();
        // Who has mail, by sender, and who can do something.
        let mut mail = vec![0_u64; count];
        for &flight in &state[count + 2..] {
            let facts = &hand.flights[flight as usize];
            mail[facts.to()] |= 1 << facts.from();
        }
        let owners: Vec<usize> = out.list().iter().map(|next| owner(hand, next.step)).collect();
        let active = owners.iter().fold(0, |active, &owner| active | 1_u64 << owner);
        let mood = self.mood(hand, state);
        let ample = (0..count).filter(|member| active >> member & 1 == 1).find(|&member| {
            let others = reachable(active & !(1 << member), member, &links);
            let could_surprise = |other: usize| {
                let empty = !self.rules.fifo || mail[member] >> other & 1 == 0;
                others >> other & 1 == 1 && links[other] >> member & 1 == 1 && empty
            };
            let own = || out.list().iter().zip(&owners).filter(|&(_, &owner)| owner == member);
            !(0..count).any(could_surprise)
                && own().all(|(next, _)| {
                    next.breaks.is_none() && self.mood(hand, out.state(next)) == mood
                })
        });
        let Some(member) = ample else { return false };
        let before = out.list().len();
        let mut owners = owners.into_iter();
        out.retain(|_| owners.next() == Some(member));
        out.list().len() < before
    }

    /// To how many members somebody has ever sent: more than before if the search found a new link.
    pub(super) fn links_known(&self) -> u32 {
        self.channels.iter().map(|to| to.load(Ordering::Relaxed).count_ones()).sum()
    }
}

/// Whose step it is.
fn owner<P: Protocol>(hand: &Hand<P>, step: Step) -> usize {
    match step.act {
        Act::Deliver(flight) | Act::Double(flight) | Act::Lose(flight) => {
            hand.flights[flight as usize].to()
        }
        Act::Expire { member, .. }
        | Act::Report { member, .. }
        | Act::Suspect { member, .. }
        | Act::Campaign(member)
        | Act::Crash(member)
        | Act::Restart(member) => usize::from(member),
        Act::Wait(_) => unreachable!("time is not a member's"),
    }
}

/// Who can do something while `but` does nothing: those who can now, and those to whom they have links.
fn reachable(active: u64, but: usize, links: &[u64]) -> u64 {
    let mut reached = active;
    loop {
        let sent_to = (0..links.len()).filter(|member| reached >> member & 1 == 1);
        let more = sent_to.fold(reached, |all, member| all | links[member]) & !(1 << but);
        if more == reached {
            return reached;
        }
        reached = more;
    }
}
