//! Packets that the loop carries between members for other parts of the program, in sealed datagrams.
//!
//! The loop neither reads nor repeats them, except those that the commander sends: it seals, opens, and drops what is not
//! between the present processes of two members. They wait in a bounded queue for the part of the program that reads them,
//! and what finds no place there is lost. So nothing that arrives grows memory or delays an election. What must arrive,
//! must be executed once, or is too long for a datagram, is a concern of the layer above.

use doyen_core::members::{NodeId, SessionId};

use super::CommandError;

/// How many packets may wait.
pub(super) const WAITING: usize = 256;

/// A packet that has arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relayed {
    /// The member that sent it.
    pub from: NodeId,
    /// The process of that member: a new one has forgotten what the one before has sent.
    pub session: SessionId,
    /// The packet.
    pub bytes: Vec<u8>,
}

/// Why a packet cannot be sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RelayError {
    /// No process of that member has been met since this node started.
    #[error("it has not been reached since this node started")]
    Unmet,
    /// The process that it is for has ended.
    #[error("it has restarted")]
    Restarted,
    /// That member's process cannot read it.
    #[error("it runs an older version")]
    OlderVersion,
    /// It does not fit into a datagram.
    #[error("the packet is too long")]
    TooLong,
    /// This node does not do anything any more, or is busy.
    #[error(transparent)]
    Node(CommandError),
}
