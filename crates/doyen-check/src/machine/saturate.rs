//! Saturation: where messages last, what changes nothing but that something is sent happens at once.
//!
//! A message arrives, or a timer expires, and the process that it happens to is left as it was, but sends something: it
//! answers a greeting. Where messages last, a state in which more has been sent can do everything that one can do in which
//! less has been sent, and nothing that is claimed asks for something not to be sent. So a search loses no violation if such
//! a step is taken as soon as it is possible; and it finds none that is not there, because the step is possible. What
//! each message does is asked of the state machine, so this assumes nothing of any rule.
//!
//! A violation is told with those of these steps that something depends on: see [`Machine::saturate_all`].

use doyen_core::explore::Explore;

use super::hand::{Consequence, Hand, Input};
use super::{Act, HEAD, Machine, Step};
use crate::budget::{ANY, Item, Purse};

/// A step that was taken at once, and what was sent by it that had not been sent before.
pub(crate) type Taken = (Step, Vec<u32>);

impl<P: Explore> Machine<'_, P> {
    /// Takes the steps that are possible since a process of `member` changed.
    pub(super) fn saturate(&self, hand: &mut Hand<P>, state: &mut Vec<u32>, member: Option<usize>) {
        let first = self.slots + HEAD;
        let is_for = |flight: &u32| Some(hand.flights[*flight as usize].to()) == member;
        let by_member =
            |flight: &u32| Some(hand.flights[*flight as usize].from()) == member || is_for(flight);
        let mut open: Vec<u32> = state[first..].iter().copied().filter(by_member).collect();
        if let Some(member) = member {
            self.act_at_once(hand, state, member, &mut open, &mut None);
        }
        self.hear_at_once(hand, state, open, &mut None);
    }

    /// Takes every such step, and notes them in `taken`.
    pub(crate) fn saturate_all(
        &self,
        hand: &mut Hand<P>,
        state: &mut Vec<u32>,
        mut taken: Option<&mut Vec<Taken>>,
    ) {
        let mut open: Vec<u32> = state[self.slots + HEAD..].to_vec();
        for member in 0..self.terms.members.len() {
            self.act_at_once(hand, state, member, &mut open, &mut taken);
        }
        self.hear_at_once(hand, state, open, &mut taken);
    }

    /// Timers of a member's processes that change nothing expire, and it is told to stand if that changes nothing.
    fn act_at_once(
        &self,
        hand: &mut Hand<P>,
        state: &mut Vec<u32>,
        member: usize,
        open: &mut Vec<u32>,
        taken: &mut Option<&mut Vec<Taken>>,
    ) {
        for slot in self.processes_of(hand, state, member) {
            if Purse::read(&state[self.slots..]).left(Item::Campaign) == u32::from(ANY) {
                let called = (Input::Campaign, Act::Campaign(slot as u8));
                self.take_at_once(hand, state, slot, called, open, taken);
            }
            for (timer, upkeep) in hand.locals[state[slot] as usize].ready.clone() {
                let act = Act::Expire { member: slot as u8, timer, upkeep };
                self.take_at_once(hand, state, slot, (Input::Expire(timer), act), open, taken);
            }
        }
    }

    /// Messages that change nothing arrive, and those that are sent because of that.
    fn hear_at_once(
        &self,
        hand: &mut Hand<P>,
        state: &mut Vec<u32>,
        mut open: Vec<u32>,
        taken: &mut Option<&mut Vec<Taken>>,
    ) {
        while let Some(flight) = open.pop() {
            let to = hand.flights[flight as usize].to();
            for slot in self.processes_of(hand, state, to) {
                let heard = (Input::Hear(flight), self.act_of_hearing(flight, slot));
                self.take_at_once(hand, state, slot, heard, &mut open, taken);
            }
        }
    }

    fn take_at_once(
        &self,
        hand: &mut Hand<P>,
        state: &mut Vec<u32>,
        slot: usize,
        (input, act): (Input, Act),
        open: &mut Vec<u32>,
        taken: &mut Option<&mut Vec<Taken>>,
    ) {
        let local = state[slot];
        if !hand.locals[local as usize].up {
            return;
        }
        let known = self.consequence(hand, local, input, 0);
        let Consequence { local: after, sends, breaks, .. } = &hand.consequences[known];
        if *after != local || breaks.is_some() || sends.is_empty() {
            return;
        }
        let first = self.slots + HEAD;
        let mut sent = Vec::new();
        for &flight in sends {
            let place = first + self.place_of(hand, flight, &state[first..]);
            let is_known = place > first && state[place - 1] == flight;
            let is_useless = is_known || self.frugal && self.is_spent_in(hand, state, flight);
            if !is_useless {
                state.insert(place, flight);
                open.push(flight);
                sent.push(flight);
            }
        }
        if let (Some(taken), false) = (taken, sent.is_empty()) {
            taken.push((Step { act, crash_after: 0 }, sent));
        }
    }

    /// Whether no process of its receiver has any use for a message any more.
    pub(super) fn is_spent_in(&self, hand: &Hand<P>, state: &[u32], flight: u32) -> bool {
        let to = hand.flights[flight as usize].to();
        let mut slots = self.processes_of(hand, state, to);
        slots.all(|slot| self.is_spent(hand, state[slot], flight))
    }
}
