//! Ricart and Agrawala 1981: a member enters when every other member has replied (cs677, cs425).
//!
//! A member that wants to enter asks all others, with the time of its request by Lamport's clock. A member that is inside, or
//! whose own request comes first, defers its REPLY until it leaves.
//!
//! | rule | event | action |
//! |---|---|---|
//! | A1 | Request | counts its clock and takes that as the time of its request; REQUEST to all others |
//! | A2 | REQUEST, and it is inside, or waits with an earlier request | raises its clock; defers the REPLY |
//! | A3 | REQUEST otherwise | raises its clock; REPLY |
//! | A4 | REPLY while it waits | the last one: enters |
//! | A5 | Exit | REPLY to all that it deferred |
//!
//! Cost: 2(N−1) messages for each entry, contended or not, and a delay of 2D. cs425 adds N−1 messages at exit: those are
//! deferred REPLYs, which 2(N−1) counts already. cs677's delay of 2(N−1) is that of a medium which carries one message at a
//! time. Entries are in the order of the requests' times; links need not keep the order of messages.
//!
//! Every member is a single point of failure: while one does not reply, no other member enters.
//!
//! **Hardened mode** numbers each REPLY with the time of the request that it answers, so that one which arrives twice does
//! not count for a later request. That is all: a crash still blocks all others, and what tolerates that is a lock service.
//!
//! The variant `down-replies` counts a failure report as the REPLY of the member that is reported down, so that a crash
//! blocks no other member. A report may be wrong, and a member that is down may be inside: then two members enter.

pub mod rules;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::member::{Clock, Exclusive, Member, Stamp, Turn};
use crate::config::exclusion::Reliance;
use crate::config::{Config, Variant};
use crate::map::SortedMap;
use crate::members::{NodeId, PeerSet};
use crate::protocol::{AlgorithmMessage, Family, Kind, NoTimer};

/// A member that runs the algorithm of Ricart and Agrawala.
pub type RicartAgrawala = Member<Replies>;

/// Who has still to reply, and who waits for a reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Replies {
    clock: Clock,
    /// The time of its request; zero while it has none.
    asked: u64,
    missing: PeerSet,
    /// Who waits for its reply, each with the time of the request.
    deferred: SortedMap<NodeId, u64>,
}

/// The messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table of the rules says what they mean")]
pub enum Message {
    Request {
        time: u64,
    },
    /// Zero in textbook mode, which does not look at it.
    Reply {
        to: u64,
    },
}

impl Exclusive for Replies {
    type Message = Message;
    type Timer = NoTimer;

    fn new(_: NodeId, _: bool, _: &Config) -> Self {
        Self::default()
    }

    fn request(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("A1");
        self.asked = self.clock.tick();
        self.missing = turn.config.members.others(turn.id).collect();
        turn.send_to_others(&Message::Request { time: self.asked });
        if self.missing.is_empty() {
            turn.enter();
        }
    }

    fn clock(&self) -> Option<&Clock> {
        Some(&self.clock)
    }

    fn clock_mut(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn exit(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("A5");
        self.asked = 0;
        for (member, time) in std::mem::take(&mut self.deferred) {
            reply(Stamp { time, member }, turn);
        }
    }

    fn receive(&mut self, from: NodeId, message: Message, turn: &mut Turn<'_, Self>) {
        match message {
            Message::Request { time } => {
                let keeps = |reliance| turn.config.exclusion.keeps(reliance);
                if keeps(Reliance::RequestsRaiseTheClock) {
                    self.clock.observe(time);
                }
                let request = Stamp { time, member: from };
                let own = Stamp { time: self.asked, member: turn.id };
                let is_first = match (own.time == time, own < request) {
                    (true, _) if !keeps(Reliance::IdsBreakTies) => false,
                    (_, is_earlier) => is_earlier == keeps(Reliance::EarlierGoesFirst),
                };
                let defers_inside = turn.is_inside() && keeps(Reliance::InsideDefers);
                if defers_inside || turn.is_waiting() && is_first {
                    turn.rule("A2");
                    // An old REQUEST that arrives again is answered already.
                    let deferred = self.deferred.get_or_insert_with(from, || time);
                    *deferred = time.max(*deferred);
                } else {
                    turn.rule("A3");
                    reply(request, turn);
                }
            }
            Message::Reply { to } => {
                let counts = !turn.config.hardened() || to == self.asked;
                if turn.is_waiting() && counts && self.missing.remove(from) {
                    turn.rule("A4");
                    self.enter_if_all_replied(turn);
                }
            }
        }
    }

    fn heeds_detector(config: &Config) -> bool {
        config.reads(Variant::DownReplies)
    }

    /// Only in the variant: the failure report counts as the reply.
    fn peer_down(&mut self, peer: NodeId, turn: &mut Turn<'_, Self>) {
        if turn.config.reads(Variant::DownReplies) && turn.is_waiting() && self.missing.remove(peer)
        {
            turn.rule("A4");
            self.enter_if_all_replied(turn);
        }
    }
}

impl Replies {
    fn enter_if_all_replied(&mut self, turn: &mut Turn<'_, Self>) {
        let needless = usize::from(!turn.config.exclusion.keeps(Reliance::AllReply));
        if self.missing.len() <= needless {
            turn.enter();
        }
    }
}

fn reply(Stamp { time, member }: Stamp, turn: &mut Turn<'_, Replies>) {
    let to = if turn.config.hardened() { time } else { 0 };
    turn.send(member, Message::Reply { to });
}

impl AlgorithmMessage for Message {
    kinds! {
        Self::Request { .. } => Kind::own("REQUEST", Family::Ask, "asks to enter, and says when the sender asked"),
        Self::Reply { .. } => Kind::own("REPLY", Family::Answer, "lets the receiver enter, as far as the sender is concerned"),
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { time } => write!(f, "REQUEST time={time}"),
            Self::Reply { to: 0 } => f.write_str("REPLY"),
            Self::Reply { to } => write!(f, "REPLY to={to}"),
        }
    }
}
