//! Messages: sent, under way, delivered.

use doyen_core::members::NodeId;
use doyen_core::protocol::{Class, Effects, Event, Message, Protocol, name_of};
use doyen_core::time::Span;

use super::pause::Waiting;
use super::roster::{Seat, Status};
use super::{Delivery, Item, World};
use crate::metrics::Sight;
use crate::network::Fate;
use crate::queue::Next;
use crate::time::Time;
use crate::trace::EventKind;

impl<P: Protocol> World<'_, '_, P> {
    /// Delivers a message that its receiver only passes on, where nobody watches; gives back any other event. The one
    /// message takes the slot of the other.
    #[inline(always)]
    pub(super) fn pass_on(&mut self, next: Next) -> Option<Next> {
        let &Item::Deliver(Delivery { from, to: me, depth, ref message, .. }) =
            self.queue.peek(&next)
        else {
            return Some(next);
        };
        let seat = self.members.seat(me);
        let member = &self.members[seat];
        if self.watched || !self.network.is_plain() || member.status != Status::Up {
            return Some(next);
        }
        let Some((to, sent)) = member.protocol.relay(self.configs.of(me), message) else {
            return Some(next);
        };
        let Some(to) = self.setup.members.position(to) else { return Some(next) };
        let (kind, class) = (P::kind_index(self.setup.config, message), message.class());
        let background = message.is_background();
        self.now = Time(next.at);
        self.count_receipt(from, me, seat, (kind, class), depth);
        self.landed(background);
        let leaves = self.now + self.network.processing(&mut self.random);
        let (kind, delivery) = self.depart(seat, to as u32, sent);
        let at = self.arrival(me, seat, leaves, &delivery);
        self.takes_off(&delivery);
        self.queue.replace(next, at.0, self.setup.ranks[kind], Item::Deliver(delivery));
        None
    }

    /// A live member receives a message.
    #[inline(always)]
    fn count_receipt(
        &mut self,
        from: NodeId,
        to: u32,
        seat: Seat,
        (kind, class): (usize, Class),
        depth: u32,
    ) {
        if class == Class::Algorithm {
            let member = &mut self.members[seat];
            member.received += 1;
            member.depth = member.depth.max(depth);
            self.metrics.received(self.now, depth);
        }
        self.metrics.witness(self.now, from.0, to, Sight::Received(kind));
    }

    #[inline(always)]
    pub(super) fn deliver(&mut self, delivery: Delivery<P::Message>, out: &mut Effects<P>) {
        let Delivery { from, to, id, depth, message } = delivery;
        let seat = self.members.seat(to);
        if self.members[seat].status != Status::Up {
            return self.find_nobody_up(Delivery { from, to, id, depth, message });
        }
        let (kind, class) = (P::kind_index(self.setup.config, &message), message.class());
        let background = message.is_background();
        self.count_receipt(from, to, seat, (kind, class), depth);
        if self.watched
            && let Some(monitor) = &mut self.monitor
        {
            let says = message.commitments();
            monitor.received(to, says.requested, says.released);
        }
        let member = &mut self.members[seat].protocol;
        member.handle(self.configs.of(to), Event::Message { from, message }, out);
        self.landed(background);
        if self.watched {
            self.watch_receipt(id, from, to, kind, out);
        }
        let lag = self.network.processing(&mut self.random);
        // Nearly always a member that was told something tells one other: worth a way without a list. Where the script
        // watches, it may have crashed the member meanwhile.
        if !self.watched
            && let Some((next, message)) = out.take_lone_message()
        {
            self.send(to, seat, next, message, lag);
            self.publish_lease(to);
        } else {
            self.act(to, lag, out);
        }
    }

    /// A message is under way.
    #[inline(always)]
    fn takes_off(&mut self, delivery: &Delivery<P::Message>) {
        match delivery.message.is_background() {
            false => self.work += 1,
            true => self.background += 1,
        }
    }

    /// A message is no longer under way.
    #[inline]
    pub(super) fn landed(&mut self, background: bool) {
        match background {
            false => self.work -= 1,
            true => self.background -= 1,
        }
    }

    /// The receiver of a message is dead, or does nothing for a while.
    #[cold]
    pub(super) fn find_nobody_up(&mut self, delivery: Delivery<P::Message>) {
        let status = self.members[delivery.to].status;
        if status == Status::Paused {
            return self.wait(delivery.to, Waiting::Message(delivery));
        }
        let class = delivery.message.class();
        self.landed(delivery.message.is_background());
        if status == Status::Forwarding && class == Class::Algorithm {
            self.forward(delivery);
        } else {
            self.miss(&delivery);
        }
    }

    pub(super) fn miss(&mut self, delivery: &Delivery<P::Message>) {
        let &Delivery { from, to, id, ref message, .. } = delivery;
        let index = P::kind_index(self.setup.config, message);
        self.metrics.witness(self.now, from.0, to, Sight::Missed(index));
        let kind = message.kind();
        if kind.class == Class::Algorithm {
            self.metrics.to_dead += 1;
        }
        if self.observer.is_some() {
            let (to, kind) = (self.id(to), kind.name.to_owned());
            self.record(EventKind::Missed { id, from, to, kind });
        }
    }

    /// The control part of a dead member passes a message on along its out-edge (os-textbook). It knows the election's messages
    /// only: a heartbeat or an acknowledgement that went on would vouch for the dead.
    pub(super) fn forward(&mut self, delivery: Delivery<P::Message>) {
        let Delivery { from, to: at, id, depth, message } = delivery;
        let index = P::kind_index(self.setup.config, &message);
        self.metrics.witness(self.now, from.0, at, Sight::Forwarded(index));
        let me = self.id(at);
        self.members[at].depth = depth;
        if self.observer.is_some() {
            let kind = name_of(&message).to_owned();
            let rules = vec!["forwards".to_owned()];
            self.record(EventKind::Received { id, from, to: me, kind, rules });
        }
        let next = self.setup.members.next_clockwise(me);
        let lag = self.network.processing(&mut self.random);
        self.send(at, self.members.seat(at), next, message, lag);
    }

    // Always inlined, down to the queue: a message then goes from the member to its slot without a copy on the way.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        from: u32,
        seat: Seat,
        to: NodeId,
        message: P::Message,
        lag: Span,
    ) {
        let Some(to) = self.setup.members.position(to) else {
            debug_assert!(false, "{to} is not a member");
            return;
        };
        let to = to as u32;
        if P::has_sessions(self.setup.config) {
            return self.post(from, to, message, lag);
        }
        let leaves = self.now + lag;
        let (kind, delivery) = self.depart(seat, to, message);
        if self.network.is_plain() && !self.watched {
            let at = self.arrival(from, seat, leaves, &delivery);
            self.launch(at, kind, delivery);
        } else {
            self.send_with_care(from, leaves, delivery, true);
        }
    }

    /// Counts a message that is sent by the member on `seat`, without sessions.
    #[inline(always)]
    fn depart(
        &mut self,
        seat: Seat,
        to: u32,
        message: P::Message,
    ) -> (usize, Delivery<P::Message>) {
        let kind = P::kind_index(self.setup.config, &message);
        self.metrics.sent(kind, message.encoded_len());
        self.messages_sent += 1;
        // Only those who watch read the number; who watches four billion messages sees some numbers twice.
        let id = self.messages_sent as u32;
        let member = &mut self.members[seat];
        let mut depth = member.depth;
        if message.class() == Class::Algorithm {
            member.sent += 1;
            depth += 1;
        }
        (kind, Delivery { from: member.id, to, id, depth, message })
    }

    /// When a message arrives, if the network is plain.
    #[inline(always)]
    fn arrival(
        &mut self,
        from: u32,
        seat: Seat,
        leaves: Time,
        delivery: &Delivery<P::Message>,
    ) -> Time {
        let link = &mut self.members[seat].last_link;
        self.network.pass(leaves, from, delivery.to, link, &mut self.random)
    }

    /// Sends through a network that does more than delay, or before the eyes of those who watch. Where nobody `is_there`,
    /// it is lost.
    #[inline(never)]
    pub(super) fn send_with_care(
        &mut self,
        from: u32,
        leaves: Time,
        delivery: Delivery<P::Message>,
        is_there: bool,
    ) {
        let kind = P::kind_index(self.setup.config, &delivery.message);
        let class = delivery.message.class();
        let change = self.change_of(&delivery);
        let link = &mut self.members[from].last_link;
        let fate = match is_there {
            true => {
                let to = delivery.to;
                self.network.send(leaves, from, to, kind, change, link, &mut self.random)
            }
            false => Fate::Lost,
        };
        if self.observer.is_some() {
            self.record_sending(&delivery, fate, change);
        }
        if self.monitor.is_some() {
            self.judge_sending(from, &delivery);
        }
        match fate {
            Fate::Lost => self.metrics.lost += u64::from(class == Class::Algorithm),
            Fate::Arrives { at, again } => {
                if let Some(again) = again {
                    self.launch(again, kind, delivery.clone());
                }
                self.launch(at, kind, delivery);
            }
        }
        self.count(from, true, kind);
    }

    #[inline(always)]
    pub(super) fn launch(&mut self, at: Time, kind: usize, delivery: Delivery<P::Message>) {
        self.takes_off(&delivery);
        self.queue.push(at.0, self.setup.ranks[kind], Item::Deliver(delivery));
    }
}
