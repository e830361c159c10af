//! Centralised exclusion: a coordinator grants the section to one member after the other (cs677).
//!
//! | rule | event | action |
//! |---|---|---|
//! | C1 | Request | REQUEST to the coordinator |
//! | C2 | coordinator: REQUEST | the section is free: GRANT; otherwise it queues the request |
//! | C3 | GRANT while it waits | enters |
//! | C4 | Exit | RELEASE to the coordinator |
//! | C5 | coordinator: RELEASE of the holder | GRANT to the first in the queue, or the section is free |
//!
//! A REQUEST of the holder itself is queued like any other: on links that do not keep the order of messages it overtakes the
//! holder's RELEASE. The coordinator is the member that the configuration names, by default the highest.
//!
//! Cost: 3 messages for each entry, queued or not, and none where the coordinator itself enters; a delay of 2D. Members enter
//! in the order in which their requests reach the coordinator. If the coordinator or the holder crashes, all block.
//!
//! The variant `deny` answers a request that is queued with DENY: 4 messages for a member that waits.

pub mod rules;

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::member::{Exclusive, Member, Turn};
use crate::config::exclusion::Reliance;
use crate::config::{Config, Variant};
use crate::members::NodeId;
use crate::protocol::{AlgorithmMessage, Family, Kind, NoTimer};

/// A member that asks a coordinator, or is it.
pub type Centralised = Member<Grants>;

/// What the coordinator knows; empty at the others.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Grants {
    holder: Option<NodeId>,
    queue: VecDeque<NodeId>,
}

/// The messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table of the rules says what they mean")]
pub enum Message {
    Request,
    Grant,
    Deny,
    Release,
}

impl Exclusive for Grants {
    type Message = Message;
    type Timer = NoTimer;

    fn new(_: NodeId, _: bool, _: &Config) -> Self {
        Self::default()
    }

    fn request(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("C1");
        turn.send(coordinator(turn.config), Message::Request);
    }

    fn exit(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("C4");
        turn.send(coordinator(turn.config), Message::Release);
    }

    fn receive(&mut self, from: NodeId, message: Message, turn: &mut Turn<'_, Self>) {
        match message {
            Message::Request => {
                turn.rule("C2");
                if self.holder.is_none() {
                    self.grant(Some(from), turn);
                } else if self.holder != Some(from)
                    || turn.config.exclusion.keeps(Reliance::HolderIsQueued)
                {
                    self.queue.push_back(from);
                    if turn.config.reads(Variant::Deny) {
                        turn.send(from, Message::Deny);
                    }
                }
            }
            Message::Grant if turn.is_waiting() => {
                turn.rule("C3");
                turn.enter();
            }
            Message::Release if self.holder == Some(from) => {
                turn.rule("C5");
                let next = self.queue.pop_front();
                self.grant(next, turn);
            }
            Message::Grant | Message::Deny | Message::Release => {}
        }
    }
}

impl Grants {
    fn grant(&mut self, next: Option<NodeId>, turn: &mut Turn<'_, Self>) {
        self.holder = next;
        if let Some(next) = next {
            turn.send(next, Message::Grant);
        }
    }
}

fn coordinator(config: &Config) -> NodeId {
    config.exclusion.first.unwrap_or_else(|| config.members.highest())
}

impl AlgorithmMessage for Message {
    kinds! {
        Self::Request => Kind::own("REQUEST", Family::Ask, "asks the coordinator for the section"),
        Self::Grant => Kind::own("GRANT", Family::HandOver, "grants the section to the receiver"),
        Self::Deny => Kind::own("DENY", Family::Refuse, "says that the section is taken and the request is queued"),
        Self::Release => Kind::own("RELEASE", Family::HandOver, "gives the section back"),
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::KINDS[self.index()].name)
    }
}
