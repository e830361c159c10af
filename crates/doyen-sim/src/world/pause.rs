//! Pauses: a member that does nothing for a while, and everything that waits for it.
//!
//! What reaches a paused member waits in its backlog. When it resumes, it handles the backlog before anything else of
//! that instant: messages, news and calls for an election in the order in which they came, so that links stay FIFO.
//! Timers that became due meanwhile follow the messages of that instant, as the contract of a host requires. A crash
//! ends the backlog with the member: its messages count as having found their receiver dead.

use std::collections::VecDeque;

use doyen_core::protocol::{Effects, Event, Message, Protocol};
use doyen_core::time::Span;

use super::roster::Status;
use super::{Delivery, Item, OVERDUE_RANK, RESUME_RANK, World};
use crate::time::Time;
use crate::trace::EventKind;

/// One member's pause.
pub(super) struct Pause<M, T> {
    until: Time,
    backlog: VecDeque<Waiting<M, T>>,
}

/// Something that waits for a paused member.
pub(super) enum Waiting<M, T> {
    Message(Delivery<M>),
    Timer {
        arming: u32,
        timer: T,
    },
    News(Event<M, T>),
    Campaign,
    /// Its client is to ask so often.
    Ask(u32),
    /// Its client is done inside.
    Leave(u64),
}

impl<P: Protocol> World<'_, '_, P> {
    /// A live member does nothing for `span`. A pause within a pause can only make it longer.
    pub(super) fn pause(&mut self, position: u32, span: u64) {
        let member = &mut self.members[position];
        if !member.is_alive() {
            return;
        }
        let until = self.now + Span::from_nanos(span);
        if member.status == Status::Paused
            && self.pauses.get(&position).is_some_and(|pause| pause.until >= until)
        {
            return;
        }
        member.status = Status::Paused;
        self.interrupt_write(position);
        // The member may be in the middle of a backlog: the rest of it keeps waiting.
        let pause = (self.pauses.entry(position))
            .or_insert_with(|| Pause { until, backlog: VecDeque::new() });
        pause.until = until;
        self.work += 1;
        self.queue.push(until.0, RESUME_RANK, Item::Resume(position));
        self.record_of(position, EventKind::Paused { member: self.id(position), until });
    }

    /// Something happens to a paused member: it waits until the member resumes.
    #[cold]
    pub(super) fn wait(&mut self, position: u32, waiting: Waiting<P::Message, P::Timer>) {
        if let Some(pause) = self.pauses.get_mut(&position) {
            pause.backlog.push_back(waiting);
        }
    }

    /// A pause is over, unless it was made longer or the member crashed meanwhile.
    pub(super) fn resume(&mut self, position: u32, out: &mut Effects<P>) {
        if self.pauses.get(&position).is_none_or(|pause| pause.until > self.now) {
            return;
        }
        self.members[position].status = Status::Up;
        self.resume_write(position);
        self.end_overdue_leases(position, out);
        // What it handles may pause or crash it again; a crash takes the backlog away.
        while self.members[position].status == Status::Up
            && let Some(pause) = self.pauses.get_mut(&position)
        {
            let Some(waiting) = pause.backlog.pop_front() else {
                self.pauses.remove(&position);
                return;
            };
            self.make_up_for(position, waiting, out);
            self.catch_up(out);
        }
    }

    /// Leases that ran out in the pause end before anything else is handled.
    fn end_overdue_leases(&mut self, position: u32, out: &mut Effects<P>) {
        let Some(pause) = self.pauses.get_mut(&position) else { return };
        let is_lease = |waiting: &Waiting<P::Message, P::Timer>| matches!(*waiting, Waiting::Timer { timer, .. } if P::is_lease(timer));
        let (leases, rest) = std::mem::take(&mut pause.backlog).into_iter().partition(is_lease);
        pause.backlog = rest;
        let leases: VecDeque<Waiting<P::Message, P::Timer>> = leases;
        for lease in leases {
            if let Waiting::Timer { arming, timer } = lease {
                self.fire(self.now, position, arming, timer, out);
            }
        }
    }

    fn make_up_for(
        &mut self,
        position: u32,
        waiting: Waiting<P::Message, P::Timer>,
        out: &mut Effects<P>,
    ) {
        match waiting {
            Waiting::Message(delivery) => self.deliver(delivery, out),
            Waiting::News(event) => self.tell(position, event, out),
            Waiting::Campaign => self.campaign(position, out),
            Waiting::Ask(times) => self.ask(position, times, out),
            Waiting::Leave(stay) => self.leave(position, stay, out),
            Waiting::Timer { arming, timer } => {
                let item = Item::Timer { member: position, arming, timer };
                self.queue.push(self.now.0, OVERDUE_RANK, item);
            }
        }
    }

    /// Ends every pause; returns the messages that waited.
    pub(super) fn release_all(&mut self) -> Vec<Delivery<P::Message>> {
        let mut pauses: Vec<_> = self.pauses.drain().collect();
        pauses.sort_by_key(|&(position, _)| position);
        let held_back = pauses.into_iter().flat_map(|(_, pause)| pause.backlog);
        let message = |waiting| match waiting {
            Waiting::Message(delivery) => Some(delivery),
            Waiting::Timer { .. }
            | Waiting::News(_)
            | Waiting::Campaign
            | Waiting::Ask(_)
            | Waiting::Leave(_) => None,
        };
        held_back.filter_map(message).collect()
    }

    /// A member has crashed: the messages that waited for it have found it dead.
    pub(super) fn drop_backlog(&mut self, position: u32) {
        let Some(pause) = self.pauses.remove(&position) else { return };
        for waiting in pause.backlog {
            if let Waiting::Message(delivery) = waiting {
                self.landed(delivery.message.is_background());
                self.miss(&delivery);
            }
        }
    }
}
