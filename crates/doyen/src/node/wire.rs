//! What goes over the network: one sealed datagram a message.
//!
//! ```text
//!   magic 2 │ version 1 │ cluster tag 8 │ key id 4 │ nonce 24 │ sealed: envelope, content │ tag 16
//!   └────────────── in the clear, and part of what is authenticated ──┘
//! ```

use doyen_core::members::NodeId;

/// Why a datagram was dropped. Each is counted by its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rejection {
    /// It is shorter than any datagram of doyen's, or longer.
    Size,
    /// It does not begin as a datagram of doyen's does.
    Foreign,
    /// It is of another version of the protocol.
    Version,
    /// It is for another cluster.
    Cluster,
    /// It is sealed with a key that this node does not have.
    Key,
    /// It does not open: it was altered, or forged.
    Forged,
    /// It opens, and cannot be read.
    Malformed,
    /// Its sender is no member, or this node itself.
    Stranger,
    /// It is for another member.
    Misdirected,
    /// Its sender is configured otherwise: other members, or another algorithm.
    Configuration,
    /// It is from or for another life of the process.
    Session,
    /// It came before.
    Replayed,
}

impl Rejection {
    /// Every reason.
    pub const ALL: [Self; 12] = [
        Self::Size,
        Self::Foreign,
        Self::Version,
        Self::Cluster,
        Self::Key,
        Self::Forged,
        Self::Malformed,
        Self::Stranger,
        Self::Misdirected,
        Self::Configuration,
        Self::Session,
        Self::Replayed,
    ];

    /// Its name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Foreign => "foreign",
            Self::Version => "version",
            Self::Cluster => "cluster",
            Self::Key => "key",
            Self::Forged => "forged",
            Self::Malformed => "malformed",
            Self::Stranger => "stranger",
            Self::Misdirected => "misdirected",
            Self::Configuration => "configuration",
            Self::Session => "session",
            Self::Replayed => "replayed",
        }
    }
}

/// What stands with every content: who to whom, in which of their lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Who sent it.
    pub from: NodeId,
    /// To whom.
    pub to: NodeId,
}
