//! The packets between nodes: an algorithm's message in an envelope, an acknowledgement or a heartbeat.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::link::Numbered;
use crate::members::Incarnation;
use crate::protocol::{Commitments, Kind, Message};

/// A packet from one node to another.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Packet<M> {
    /// The sender's incarnation; zero where incarnations are not distinguished.
    pub from: Incarnation,
    /// The receiver's incarnation, as far as the sender knows it; zero if it does not.
    pub to: Incarnation,
    /// The content.
    pub body: Body<M>,
}

/// The content of a packet.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Body<M> {
    /// A message where there is no link.
    Plain(M),
    /// A message on a link, for the first time.
    First(Numbered<M>),
    /// A message on a link, retransmitted.
    Again(Numbered<M>),
    /// "Every message below this number has come."
    Ack {
        /// The number that is due next. Zero acknowledges nothing and only shows the sender's incarnation.
        below: u64,
    },
    /// A heartbeat: whether messages from the receiver arrive at the sender.
    Heartbeat { reachable: bool },
}

/// The kinds that a node adds to those of its algorithm. A retransmission is counted for the link, not for the
/// election, whose messages are counted once.
pub(crate) const ADDED: [Kind; 3] = [
    Kind::link("RETRANSMIT", "sends again what was not acknowledged"),
    Kind::link("ACK", "acknowledges what has arrived on the link"),
    Kind::detector(
        "HEARTBEAT",
        "says that the sender is up, and whether it receives from the receiver",
    ),
];

impl<M: Message> Message for Packet<M> {
    fn kind(&self) -> Kind {
        let [again, ack, heartbeat] = ADDED;
        match &self.body {
            Body::Plain(message) => message.kind(),
            Body::First(numbered) => numbered.message.kind(),
            Body::Again(_) => again,
            Body::Ack { .. } => ack,
            Body::Heartbeat { .. } => heartbeat,
        }
    }

    fn is_background(&self) -> bool {
        match &self.body {
            Body::Plain(message) => message.is_background(),
            Body::First(numbered) => numbered.message.is_background(),
            Body::Again(_) | Body::Ack { .. } | Body::Heartbeat { .. } => true,
        }
    }

    fn commitments(&self) -> Commitments {
        match &self.body {
            Body::Plain(message) => message.commitments(),
            // A retransmission commits its sender to nothing new.
            Body::First(numbered) => numbered.message.commitments(),
            Body::Again(_) | Body::Ack { .. } | Body::Heartbeat { .. } => Commitments::default(),
        }
    }
}

impl<M> Packet<M> {
    /// The same packet with another form of its message.
    pub fn map<N>(self, change: impl FnOnce(M) -> N) -> Packet<N> {
        let Self { from, to, body } = self;
        let body = match body {
            Body::Plain(message) => Body::Plain(change(message)),
            Body::First(numbered) => Body::First(numbered.map(change)),
            Body::Again(numbered) => Body::Again(numbered.map(change)),
            Body::Ack { below } => Body::Ack { below },
            Body::Heartbeat { reachable } => Body::Heartbeat { reachable },
        };
        Packet { from, to, body }
    }
}

impl<M: fmt::Display> fmt::Display for Packet<M> {
    /// A message is written as its algorithm writes it, with its number after it where it has one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.body {
            Body::Plain(message) => message.fmt(f),
            Body::First(numbered) => numbered.fmt(f),
            Body::Again(numbered) => write!(f, "RETRANSMIT {numbered}"),
            Body::Ack { below } => write!(f, "ACK below={below}"),
            Body::Heartbeat { reachable: true } => f.write_str("HEARTBEAT"),
            Body::Heartbeat { reachable: false } => f.write_str("HEARTBEAT unreachable"),
        }
    }
}
