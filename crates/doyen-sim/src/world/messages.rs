//! Messages: sent, in flight, delivered.

use doyen_core::members::NodeId;
use doyen_core::protocol::{Class, Effects, Event, Message, Protocol, name_of};
use doyen_core::time::Span;

use super::pause::Waiting;
use super::roster::{Member, Seat, Status};
use super::{Delivery, Item, World};
use crate::metrics::{Recorder, Sight};
use crate::network::Fate;
use crate::queue::Next;
use crate::time::Time;
use crate::trace::EventKind;

/// What the metrics need of a message.
#[derive(Clone, Copy)]
struct Sort {
    kind: usize,
    class: Class,
    bytes: usize,
}

impl Sort {
    #[inline(always)]
    fn of<P: Protocol>(config: &P::Config, message: &P::Message) -> Self {
        let (class, bytes) = (message.class(), message.encoded_len());
        Self { kind: P::kind_index(config, message), class, bytes }
    }

    /// `member`, which is alive, receives it.
    #[inline(always)]
    fn receive<P>(self, member: &mut Member<P>, metrics: &mut Recorder, now: Time, depth: u32) {
        if self.class == Class::Algorithm {
            member.received += 1;
            member.depth = member.depth.max(depth);
            metrics.received(now, depth);
        }
    }

    /// `member` sends it, without sessions. Its depth.
    #[inline(always)]
    fn send<P>(self, member: &mut Member<P>, metrics: &mut Recorder) -> u32 {
        metrics.sent(self.kind, self.bytes);
        if self.class != Class::Algorithm {
            return member.depth;
        }
        member.sent += 1;
        member.depth + 1
    }
}

impl<P: Protocol> World<'_, '_, P> {
    /// Delivers a message that its receiver only passes on, if there is no observer; returns any other event. The message
    /// stays in its slot.
    #[inline(always)]
    pub(super) fn pass_on(&mut self, next: Next) -> Option<Next> {
        let Item::Deliver(delivery) = self.queue.peek_mut(&next) else { return Some(next) };
        let me = delivery.to;
        let seat = self.members.seat(me);
        let member = &mut self.members[seat];
        if self.watched || !self.network.is_plain() || member.status != Status::Up {
            return Some(next);
        }
        let to = member.protocol.relay(self.configs.of(me), &delivery.message);
        let Some(to) = to.and_then(|to| self.setup.members.position(to)) else {
            return Some(next);
        };
        let sort = Sort::of::<P>(self.setup.config, &delivery.message);
        self.now = Time(next.at);
        sort.receive(member, &mut self.metrics, self.now, delivery.depth);
        self.metrics.witness(self.now, delivery.from.0, me, Sight::Received(sort.kind));
        let leaves = self.now + self.network.processing(&mut self.random);
        self.messages_sent += 1;
        delivery.depth = sort.send(member, &mut self.metrics);
        (delivery.from, delivery.to, delivery.id) =
            (member.id, to as u32, self.messages_sent as u32);
        let link = &mut member.last_link;
        let at = self.network.pass(leaves, me, to as u32, link, &mut self.random);
        self.queue.postpone(next, at.0, self.setup.ranks[sort.kind]);
        None
    }

    #[inline(always)]
    pub(super) fn deliver(&mut self, delivery: Delivery<P::Message>, out: &mut Effects<P>) {
        let Delivery { from, to, id, depth, message } = delivery;
        let seat = self.members.seat(to);
        if self.members[seat].status != Status::Up {
            return self.find_nobody_up(Delivery { from, to, id, depth, message });
        }
        let sort = Sort::of::<P>(self.setup.config, &message);
        let background = message.is_background();
        sort.receive(&mut self.members[seat], &mut self.metrics, self.now, depth);
        self.metrics.witness(self.now, from.0, to, Sight::Received(sort.kind));
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
            self.watch_receipt(id, from, to, sort.kind, out);
        }
        let lag = self.network.processing(&mut self.random);
        // A member that receives a message nearly always sends one: this case avoids a list. If faults wait for
        // messages, one may have crashed the member meanwhile.
        if !self.watched
            && let Some((next, message)) = out.take_lone_message()
        {
            self.send(to, seat, next, message, lag);
            self.publish_lease(to);
        } else {
            self.act(to, lag, out);
        }
    }

    /// A message is in flight.
    #[inline(always)]
    fn takes_off(&mut self, delivery: &Delivery<P::Message>) {
        match delivery.message.is_background() {
            false => self.work += 1,
            true => self.background += 1,
        }
    }

    /// A message is no longer in flight.
    #[inline]
    pub(super) fn landed(&mut self, background: bool) {
        match background {
            false => self.work -= 1,
            true => self.background -= 1,
        }
    }

    /// The receiver of a message is dead or paused.
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

    /// The control part of a dead member passes a message on along its out-edge (os-textbook). It knows the election's
    /// messages only: a heartbeat or an acknowledgement that it passed on would make the dead member look alive.
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
        let sort = Sort::of::<P>(self.setup.config, &message);
        let member = &mut self.members[seat];
        self.messages_sent += 1;
        let (id, depth) = (self.messages_sent as u32, sort.send(member, &mut self.metrics));
        let delivery = Delivery { from: member.id, to, id, depth, message };
        if self.network.is_plain() && !self.watched {
            let link = &mut member.last_link;
            let at = self.network.pass(leaves, from, to, link, &mut self.random);
            self.launch(at, sort.kind, delivery);
        } else {
            self.send_with_care(from, leaves, delivery, true);
        }
    }

    /// Sends through a network that does more than delay, or with observers. If no process `is_there`, the message is
    /// lost.
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
