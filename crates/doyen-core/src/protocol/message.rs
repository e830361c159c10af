//! What every message says about itself, whichever algorithm or layer sends it.

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::members::Term;
use crate::time::Span;
use crate::wire;

/// A message between members.
///
/// `Display` writes the source's upper-case word and the fields that matter, for traces and golden scripts.
pub trait Message: Clone + Eq + Hash + Debug + fmt::Display + Serialize {
    /// The kind, for metrics and link overrides.
    fn kind(&self) -> Kind;

    /// The class of its kind, in which it is counted.
    #[inline]
    fn class(&self) -> Class {
        self.kind().class
    }

    /// Its size on the wire in bytes. Computed without encoding, because the simulator counts every message.
    #[inline]
    fn encoded_len(&self) -> usize {
        wire::encoded_len(self)
    }

    /// What it says about votes and leases, for the checks of the safety rules.
    fn commitments(&self) -> Commitments {
        Commitments::default()
    }

    /// How much it carries of what the algorithm conserves ([`Protocol::holding`](super::Protocol::holding)).
    fn amount(&self) -> u64 {
        0
    }

    /// Whether it is background traffic, which continues even if nothing is to be done. A run is quiet when only such
    /// messages are under way.
    #[inline]
    fn is_background(&self) -> bool {
        self.class() != Class::Algorithm
    }

    // Addresses: only the layer that meets the network directly knows them.

    /// Its destination. `None` if the protocol does not know addresses, or leaves it to the host to resolve the
    /// receiver's configured name.
    fn destination(&self) -> Option<SocketAddr> {
        None
    }

    /// The same message as it arrives from `address`, if the protocol knows addresses; `None` is the address of the
    /// sender's configured name.
    #[must_use]
    fn posted_from(self, _address: Option<SocketAddr>) -> Self {
        self
    }
}

/// A message of an algorithm, which has a table of its kinds.
pub trait AlgorithmMessage: Clone + Eq + Hash + Debug + fmt::Display + Serialize {
    /// The kinds, in the order in which those that arrive at the same instant are handled.
    const KINDS: &'static [Kind];

    /// Which of [`KINDS`](Self::KINDS) it is.
    fn index(&self) -> usize;

    /// The class of its kind.
    #[inline]
    fn class(&self) -> Class {
        Self::KINDS[self.index()].class
    }

    /// Its size on the wire in bytes.
    #[inline]
    fn encoded_len(&self) -> usize {
        wire::encoded_len(self)
    }

    /// Whether it is under way even if nothing is to be done, such as the token of a ring.
    #[inline]
    fn is_background(&self) -> bool {
        self.class() != Class::Algorithm
    }

    /// What it says about votes and leases. An algorithm without leases keeps this default.
    fn commitments(&self) -> Commitments {
        Commitments::default()
    }

    /// How much it carries of what the algorithm conserves, if it conserves something.
    fn amount(&self) -> u64 {
        0
    }
}

impl<M: AlgorithmMessage> Message for M {
    #[inline(always)]
    fn kind(&self) -> Kind {
        Self::KINDS[self.index()]
    }

    #[inline(always)]
    fn class(&self) -> Class {
        AlgorithmMessage::class(self)
    }

    #[inline(always)]
    fn encoded_len(&self) -> usize {
        AlgorithmMessage::encoded_len(self)
    }

    #[inline]
    fn is_background(&self) -> bool {
        AlgorithmMessage::is_background(self)
    }

    fn commitments(&self) -> Commitments {
        AlgorithmMessage::commitments(self)
    }

    fn amount(&self) -> u64 {
        AlgorithmMessage::amount(self)
    }
}

/// What a message says about votes and leases.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Commitments {
    /// What its sender commits itself to by sending it.
    pub pledge: Option<Pledge>,
    /// The length of the vote lease that it requests from its receiver.
    pub requested: Option<Span>,
    /// The term whose leader releases its followers from their vote leases, as the receiver learns from it.
    pub released: Option<Term>,
}

/// What a message commits its sender to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Pledge {
    /// It campaigns in this term, and has voted for itself; to succeed a leader that transferred leadership, or
    /// for another reason.
    Candidacy { term: Term, succeeds: bool },
    /// Its one vote of this term, for the receiver.
    Vote { term: Term },
    /// A vote lease, as long as requested, for the receiver, which leads in this term.
    VoteLease { term: Term },
    /// It no longer leads in this term, and releases all vote leases.
    Release { term: Term },
}

/// A kind of message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// The word the sources use, in upper case.
    pub name: &'static str,
    /// The class in which its messages are counted.
    pub class: Class,
    /// What such a message does, the same for every algorithm.
    pub family: Family,
    /// What it says, in a few words that begin with a verb.
    pub meaning: &'static str,
}

impl Kind {
    /// A message of the algorithm itself.
    pub const fn own(name: &'static str, family: Family, meaning: &'static str) -> Self {
        Self { name, class: Class::Algorithm, family, meaning }
    }

    /// An acknowledgement or retransmission.
    pub const fn link(name: &'static str, meaning: &'static str) -> Self {
        Self { name, class: Class::Link, family: Family::Upkeep, meaning }
    }

    /// A heartbeat.
    pub const fn detector(name: &'static str, meaning: &'static str) -> Self {
        Self { name, class: Class::Detector, family: Family::Upkeep, meaning }
    }
}

/// What a message does, whichever algorithm sends it. Pictures give each family a colour and a shape.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Asks: for an election, for a vote.
    Ask,
    /// Answers yes: is up, would vote, votes.
    Answer,
    /// Announces a leader.
    Announce,
    /// Moves leadership to a certain member.
    HandOver,
    /// Refuses, or tells to stop.
    Refuse,
    /// Keeps a leadership, a link or a failure detector going.
    Upkeep,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Ask, Self::Answer, Self::Announce, Self::HandOver, Self::Refuse, Self::Upkeep];

    /// Its name, one lower-case word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Answer => "answer",
            Self::Announce => "announce",
            Self::HandOver => "handover",
            Self::Refuse => "refuse",
            Self::Upkeep => "upkeep",
        }
    }
}

/// The class in which a message is counted. The literature counts [`Class::Algorithm`] alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The algorithm's own messages. Traces call them as they did when elections were all there was.
    #[serde(rename = "election")]
    Algorithm,
    /// Acknowledgements and retransmissions.
    Link,
    /// Heartbeats.
    Detector,
    /// Markers of a snapshot. It is taken of a run, and is no part of what the algorithm does.
    Marker,
    /// Messages of the application, of which the algorithm knows nothing.
    Client,
}

/// The name of a message's kind.
pub fn name_of<M: Message>(message: &M) -> &'static str {
    message.kind().name
}
