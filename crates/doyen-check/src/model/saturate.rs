//! Saturation: with lasting messages, a step that only sends something is taken at once.
//!
//! A message arrives or a timer expires, and the process stays as it was but sends something, such as the answer to a
//! greeting. With lasting messages a state in which more has been sent can do everything that one can do in which less has
//! been sent, and no property forbids a message. So taking such a step as soon as it is possible loses no violation, and
//! adds none, because the step is possible. The state machine is asked what each message does: no rule is assumed.
//!
//! A counterexample names those of these steps on which another depends: see [`Model::saturate_all`].

use doyen_core::explore::Explore;

use super::step::{Act, Step};
use super::worker::Consequence;
use super::{HEAD, Model, Worker};
use crate::budget::{ANY, BudgetLeft, Item};

/// A step that was taken at once, and the messages that it sent for the first time.
pub(crate) type Taken = (Step, Vec<u32>);

impl<P: Explore> Model<'_, P> {
    /// Takes the steps that have become possible since a process of `member` changed.
    pub(super) fn saturate(
        &self,
        worker: &mut Worker<P>,
        state: &mut Vec<u32>,
        member: Option<usize>,
    ) {
        let concerns = |flight: &u32| {
            let facts = &worker.flights[*flight as usize];
            Some(facts.from()) == member || Some(facts.to()) == member
        };
        let flights = state[self.slots + HEAD..].iter().copied();
        let mut open: Vec<u32> = flights.filter(concerns).collect();
        if let Some(member) = member {
            self.act_at_once(worker, state, member, &mut open, &mut None);
        }
        self.receive_at_once(worker, state, open, &mut None);
    }

    /// Takes every such step, and adds it to `taken`.
    pub(crate) fn saturate_all(
        &self,
        worker: &mut Worker<P>,
        state: &mut Vec<u32>,
        mut taken: Option<&mut Vec<Taken>>,
    ) {
        let mut open: Vec<u32> = state[self.slots + HEAD..].to_vec();
        for member in 0..self.context.members.len() {
            self.act_at_once(worker, state, member, &mut open, &mut taken);
        }
        self.receive_at_once(worker, state, open, &mut taken);
    }

    /// Timers of a member's processes expire and its processes campaign, if that only sends something.
    fn act_at_once(
        &self,
        worker: &mut Worker<P>,
        state: &mut Vec<u32>,
        member: usize,
        open: &mut Vec<u32>,
        taken: &mut Option<&mut Vec<Taken>>,
    ) {
        for slot in self.processes_of(worker, state, member) {
            let campaigns = BudgetLeft::read(&state[self.slots..]).left(Item::Campaign);
            if campaigns == u32::from(ANY) {
                let campaign = Step::new(slot, Act::Campaign);
                self.take_at_once(worker, state, campaign, open, taken);
            }
            for (timer, background) in worker.locals[state[slot] as usize].ready.clone() {
                let expire = Step::new(slot, Act::Expire { timer, background });
                self.take_at_once(worker, state, expire, open, taken);
            }
        }
    }

    /// Messages arrive if that only sends something, and so do the messages that are sent.
    fn receive_at_once(
        &self,
        worker: &mut Worker<P>,
        state: &mut Vec<u32>,
        mut open: Vec<u32>,
        taken: &mut Option<&mut Vec<Taken>>,
    ) {
        while let Some(message) = open.pop() {
            let to = worker.flights[message as usize].to();
            for slot in self.processes_of(worker, state, to) {
                let receive = Step::new(slot, Act::Receive { message, again: true });
                self.take_at_once(worker, state, receive, &mut open, taken);
            }
        }
    }

    fn take_at_once(
        &self,
        worker: &mut Worker<P>,
        state: &mut Vec<u32>,
        step: Step,
        open: &mut Vec<u32>,
        taken: &mut Option<&mut Vec<Taken>>,
    ) {
        let local = state[usize::from(step.slot)];
        if !worker.locals[local as usize].up {
            return;
        }
        let known = self.consequence(worker, local, step.act, 0);
        let Consequence { local: after, sends, breaks, .. } = &worker.consequences[known];
        if *after != local || breaks.is_some() || sends.is_empty() {
            return;
        }
        let first = self.slots + HEAD;
        let mut sent = Vec::new();
        for &flight in sends {
            let place = first + self.place_of(worker, flight, &state[first..]);
            let is_known = place > first && state[place - 1] == flight;
            let is_useless =
                is_known || self.reductions.obsolete && self.is_obsolete_in(worker, state, flight);
            if !is_useless {
                state.insert(place, flight);
                open.push(flight);
                sent.push(flight);
            }
        }
        if let (Some(taken), false) = (taken, sent.is_empty()) {
            taken.push((step, sent));
        }
    }

    /// Whether a message is obsolete for every process of its receiver.
    pub(super) fn is_obsolete_in(&self, worker: &Worker<P>, state: &[u32], flight: u32) -> bool {
        let to = worker.flights[flight as usize].to();
        let mut slots = self.processes_of(worker, state, to);
        slots.all(|slot| self.is_obsolete(worker, state[slot], flight))
    }
}
