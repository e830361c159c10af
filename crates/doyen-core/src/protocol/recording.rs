//! What a member has recorded of a snapshot of the whole group: its part of the cut.

use std::fmt;

use serde::Serialize;

use super::View;
use crate::members::NodeId;

/// A member's part of a snapshot: its state, and what was under way to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recording {
    /// What it believed when it recorded its state.
    pub view: View,
    /// What it held then, if the algorithm moves something that is conserved.
    pub holding: Option<Holding>,
    /// Every incoming channel, in the order of the senders.
    pub channels: Vec<Channel>,
    /// The first thing that makes the cut inconsistent, as far as this member can tell.
    pub flaw: Option<Flaw>,
}

impl Recording {
    /// Whether nothing more is recorded: the marker has come on every channel (D5).
    pub fn is_done(&self) -> bool {
        self.channels.iter().all(|channel| channel.closed)
    }
}

/// What was under way on one channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    /// The sender.
    pub from: NodeId,
    /// Whether the sender's marker has come, so that this is all.
    pub closed: bool,
    /// The messages, in the order in which they came.
    pub messages: Vec<String>,
    /// How much of what is conserved they carry.
    pub amount: u64,
}

/// How much a member has of something that is conserved, such as money: what members hold, what messages carry and what
/// has left the group is the same together, at any time and in every consistent cut.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Holding {
    /// What it holds.
    pub held: u64,
    /// What has left the group here.
    pub gone: u64,
}

/// Why a cut is inconsistent. None of this happens if channels lose nothing and keep the order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Flaw {
    /// A message is in the state of its receiver, but not in that of its sender: it was sent after the sender had
    /// recorded, and received before the receiver had. The cut contains an effect without its cause.
    Unsent { from: NodeId },
    /// A message is in the state of its sender, but neither in that of its receiver nor in that of the channel: it came
    /// after the marker.
    Missing { from: NodeId },
    /// A message is in the state of the channel, but not in that of its sender: it overtook the marker.
    Surplus { from: NodeId },
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsent { from } => {
                write!(f, "records the receipt of a message that {from} has not sent in its record")
            }
            Self::Missing { from } => {
                write!(
                    f,
                    "misses a message that {from} has sent in its record: it came after the marker"
                )
            }
            Self::Surplus { from } => {
                write!(f, "records a message under way that {from} has not sent in its record")
            }
        }
    }
}
