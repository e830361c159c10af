//! Lamport 1978: all members keep the same queue of requests, ordered by Lamport's clock.
//!
//! | rule | event | action |
//! |---|---|---|
//! | L1 | Request | counts its clock, enters its request into the queue; REQUEST to all others |
//! | L2 | any message | raises its clock; if it waits and the message is later than its request, it has heard from the sender |
//! | L3 | REQUEST | enters it into the queue; counts its clock; REPLY |
//! | L4 | RELEASE | removes the sender's request |
//! | L5 | waits, its own request is first, and it has heard from all others | enters |
//! | L6 | Exit | removes its request; counts its clock; RELEASE to all others |
//!
//! Links must keep the order of messages: a REPLY that overtakes a REQUEST lets two members in. Cost: 3(N−1) messages for
//! each entry, N−1 of them at exit; a delay of 2D. Any crash blocks all. [`ricart_agrawala`](super::ricart_agrawala) does the
//! same with fewer messages, and on any links.
//!
//! The variant `saved-replies` is the remark at the end of the paper: no REPLY to a request if something later was sent
//! there already. That saves half of the REPLYs if all members ask once at the same time, and none in saturation, where each
//! newcomer has the latest request.

pub mod rules;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::member::{Clock, Exclusive, Member, Stamp, Turn};
use crate::config::exclusion::Reliance;
use crate::config::{Config, Variant};
use crate::map::SortedMap;
use crate::members::{NodeId, PeerSet};
use crate::protocol::{AlgorithmMessage, Family, Kind, NoTimer};

/// A member that runs Lamport's algorithm.
pub type Lamport = Member<Requests>;

/// The queue of requests, and the members from which it has received something later than its own.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Requests {
    clock: Clock,
    own: Option<Stamp>,
    queue: BTreeSet<Stamp>,
    heard: PeerSet,
    /// The latest time that was sent to each member; empty unless replies are saved.
    sent: SortedMap<NodeId, u64>,
}

/// What a message says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table of the rules says what they mean")]
pub enum Word {
    Request,
    Reply,
    Release,
}

/// A message, with the clock of its sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Message {
    /// What it says.
    pub word: Word,
    /// When it was sent.
    pub time: u64,
}

impl Exclusive for Requests {
    type Message = Message;
    type Timer = NoTimer;

    fn new(_: NodeId, _: bool, _: &Config) -> Self {
        Self::default()
    }

    fn request(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("L1");
        self.heard.clear();
        let time = self.tell_others(Word::Request, turn);
        let own = Stamp { time, member: turn.id };
        self.own = Some(own);
        self.queue.insert(own);
        self.enter_if_first(turn);
    }

    fn clock(&self) -> Option<&Clock> {
        Some(&self.clock)
    }

    fn clock_mut(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn exit(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("L6");
        if let Some(own) = self.own.take() {
            self.queue.remove(&own);
        }
        self.heard.clear();
        self.tell_others(Word::Release, turn);
    }

    fn receive(&mut self, from: NodeId, message: Message, turn: &mut Turn<'_, Self>) {
        let Message { word, time } = message;
        let stamp = Stamp { time, member: from };
        self.clock.observe(time);
        if turn.is_waiting() && self.own.is_some_and(|own| stamp > own) && self.heard.insert(from) {
            turn.rule("L2");
        }
        match word {
            Word::Request => {
                turn.rule("L3");
                self.queue.insert(stamp);
                self.reply(stamp, turn);
            }
            Word::Reply => {}
            Word::Release => {
                turn.rule("L4");
                // Its earliest one: on links without order its next request may have overtaken this.
                let released = self.queue.iter().find(|request| request.member == from).copied();
                released.map(|request| self.queue.remove(&request));
            }
        }
        self.enter_if_first(turn);
    }
}

impl Requests {
    /// Counts its clock, and tells all others.
    fn tell_others(&mut self, word: Word, turn: &mut Turn<'_, Self>) -> u64 {
        let time = self.clock.tick();
        turn.send_to_others(&Message { word, time });
        if turn.config.reads(Variant::SavedReplies) {
            self.sent = turn.config.members.others(turn.id).map(|to| (to, time)).collect();
        }
        time
    }

    fn reply(&mut self, request: Stamp, turn: &mut Turn<'_, Self>) {
        let to = request.member;
        let saves = turn.config.reads(Variant::SavedReplies);
        let last = self.sent.get(&to).map(|&time| Stamp { time, member: turn.id });
        if saves && last.is_some_and(|last| last > request) {
            return;
        }
        let time = self.clock.tick();
        turn.send(to, Message { word: Word::Reply, time });
        if saves {
            self.sent.insert(to, time);
        }
    }

    fn enter_if_first(&mut self, turn: &mut Turn<'_, Self>) {
        let keeps = |reliance| turn.config.exclusion.keeps(reliance);
        let is_first = self.own.is_some()
            && (self.queue.first() == self.own.as_ref() || !keeps(Reliance::FirstEnters));
        let has_heard = self.heard.len() + 1 == turn.config.members.len();
        if turn.is_waiting() && is_first && (has_heard || !keeps(Reliance::AllAreHeard)) {
            turn.rule("L5");
            turn.enter();
        }
    }
}

impl AlgorithmMessage for Message {
    kinds! {
        Self { word: Word::Request, .. } => Kind::own("REQUEST", Family::Ask, "asks to enter, and says when the sender asked"),
        Self { word: Word::Reply, .. } => Kind::own("REPLY", Family::Answer, "says that the request is in the sender's queue"),
        Self { word: Word::Release, .. } => Kind::own("RELEASE", Family::HandOver, "removes the sender's request from all queues"),
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} time={}", Self::KINDS[self.index()].name, self.time)
    }
}
