//! A world that was stopped in the middle: what a checker needs to continue from there in every possible way.

use doyen_core::members::{Incarnation, NodeId};
use doyen_core::protocol::Protocol;
use doyen_core::time::Span;

use super::{Delivery, Item, World, found};
use crate::cut::Cut;
use crate::delivered::Delivered;
use crate::time::Time;

/// All members and all messages in flight, at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot<P: Protocol> {
    /// The members, by position.
    pub members: Vec<Frozen<P>>,
    /// The messages in flight, in the order in which they would arrive.
    pub flights: Vec<Flight<P::Message>>,
}

/// A member at one moment.
#[derive(Clone, Debug)]
pub struct Frozen<P: Protocol> {
    /// Its state; none if it is dead.
    pub state: Option<P>,
    /// What its disk holds.
    pub disk: Option<P::Durable>,
    /// The number of its present or last life.
    pub incarnation: Incarnation,
    /// Its armed timers, and how long each has still to wait.
    pub timers: Vec<(P::Timer, Span)>,
}

/// A message in flight.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flight<M> {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// Its content.
    pub message: M,
}

impl<P: Protocol> World<'_, '_, P> {
    /// Runs until everything that happens up to `at` has happened, and stops. Pauses end at that moment; messages that
    /// waited for a paused member are in flight.
    pub fn freeze(mut self, at: Time) -> Snapshot<P> {
        let mut out = self.effects();
        let mut pending = Vec::new();
        while let Some(next) = self.queue.next_ahead(|_| {}) {
            if next.at > at.0 {
                pending.push(self.queue.take(next));
                break;
            }
            self.happen(next, &mut out);
            if !self.due.is_empty() {
                self.catch_up(&mut out);
            }
        }
        while let Some((_, item)) = self.queue.pop() {
            pending.push(item);
        }
        let held_back = self.release_all();
        let members = (0..self.members.len()).map(|position| self.frozen(position, at)).collect();
        let under_way = pending.into_iter().filter_map(|item| match item {
            Item::Deliver(delivery) => Some(delivery),
            _ => None,
        });
        let flight = |delivery: Delivery<P::Message>| Flight {
            from: delivery.from,
            to: self.id(delivery.to),
            message: delivery.message,
        };
        Snapshot { members, flights: held_back.into_iter().chain(under_way).map(flight).collect() }
    }

    /// What members have recorded of a snapshot, if one of them has begun to.
    pub(super) fn recorded_cut(&self) -> Option<Cut> {
        let recording = |position: u32| {
            let member = &self.members[position];
            member.protocol.recording().filter(|_| member.is_alive())
        };
        let everybody = || 0..self.members.len();
        everybody().find_map(recording)?;
        let member = |position: u32| {
            let started: (P, _) = found(self.setup, self.id(position));
            (self.id(position), started.0.holding(), recording(position))
        };
        Some(Cut::new(everybody().map(member), self.metrics.markers()))
    }

    /// What the members have delivered, those that are down included, if the algorithm is a multicast.
    pub(super) fn delivered(&self) -> Option<Delivered> {
        let member = |position: u32| {
            let member = &self.members[position];
            Some((self.id(position), member.is_alive(), member.protocol.deliveries()?.clone()))
        };
        Delivered::new(&(0..self.members.len()).filter_map(member).collect::<Vec<_>>())
    }

    fn frozen(&self, position: u32, at: Time) -> Frozen<P> {
        let member = &self.members[position];
        let own = self.armed.iter().filter(|((owner, _), _)| *owner == position);
        let mut timers: Vec<(P::Timer, Span)> =
            own.map(|(&(_, timer), armed)| (timer, armed.due - at)).collect();
        timers.sort_by_key(|&(timer, _)| timer);
        Frozen {
            state: member.is_alive().then(|| member.protocol.clone()),
            disk: self.disks.get(&position).cloned(),
            incarnation: self.incarnations.get(&position).copied().unwrap_or(Incarnation(1)),
            timers,
        }
    }
}
