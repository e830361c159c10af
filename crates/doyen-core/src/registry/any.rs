//! The closed enum of all protocols.
//!
//! Layered runs, the checker, the node and the replay of a node run [`AnyProtocol`], so that they are compiled once
//! and not once for each algorithm. Only simulations of bare members by the million, where one more call per message matters,
//! are compiled for their algorithm alone.
//!
//! On the wire and on the disk nothing says which algorithm it is: all members run the same one. So writing delegates to the
//! inner value, and reading gets the algorithm as an argument ([`Algorithm::read_packet`] and the like). Texts are those of
//! the inner value too, because traces and counterexamples name timers and messages by them.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Algorithm;
use crate::algorithm::quorum::message::earlier;
use crate::closed::{
    self, DurablePart, MessagePart, Part, StatePart, TimerPart, answered_inside, closed,
};
use crate::config::Config;
use crate::explore::{Explore, Giver, Serial};
use crate::members::{Incarnation, NodeId, Term};
use crate::node::Packet;
use crate::protocol::{
    AlgorithmMessage, AskedAfter, Bonds, Boot, Commitments, Deliveries, Durable, Effects, Event,
    Holding, Kind, Message, Protocol, Recording, View,
};
use crate::session::{Kept, Letter};

/// Calls a macro with the table of all algorithms behind its arguments.
macro_rules! with_algorithms {
    ([$($callback:tt)*] $($arguments:tt)*) => {
        $($callback)*! { $($arguments)*
            Bully: $crate::algorithm::bully::Bully,
            ModifiedBully: $crate::algorithm::modified_bully::ModifiedBully,
            RingList: $crate::algorithm::ring_list::RingList,
            RingActiveList: $crate::algorithm::ring_active_list::RingActiveList,
            RingAllIds: $crate::algorithm::ring_all_ids::RingAllIds,
            ChangRoberts: $crate::algorithm::chang_roberts::ChangRoberts,
            RingResilient: $crate::algorithm::ring_resilient::RingResilient,
            Quorum: $crate::algorithm::quorum::Quorum,
            Centralised: $crate::exclusion::centralised::Centralised,
            Voting: $crate::exclusion::voting::Voting,
            Lamport: $crate::exclusion::lamport::Lamport,
            RicartAgrawala: $crate::exclusion::ricart_agrawala::RicartAgrawala,
            TokenRing: $crate::exclusion::token_ring::TokenRing,
            Maekawa: $crate::exclusion::maekawa::Maekawa,
            Raymond: $crate::exclusion::raymond::Raymond,
            SuzukiKasami: $crate::exclusion::suzuki_kasami::SuzukiKasami,
            TokenRecovery: $crate::exclusion::token_recovery::TokenRecovery,
            LockService: $crate::exclusion::lock_service::LockService,
            Bank: $crate::algorithm::bank::Bank,
            Sequencer: $crate::algorithm::sequencer::Sequencer,
        }
    };
}

pub(super) use with_algorithms;

/// Evaluates an expression for the given algorithm: `dispatch!(algorithm, P => expression)`, where `P` is the type of the
/// protocol that is named.
macro_rules! dispatch {
    (@ $algorithm:expr, $P:ident, $body:expr; $($name:ident: $protocol:path,)*) => {
        match $algorithm {
            $(Algorithm::$name => {
                type $P = $protocol;
                $body
            })*
        }
    };
    ($algorithm:expr, $P:ident => $body:expr) => {
        with_algorithms!([dispatch] @ $algorithm, $P, $body;)
    };
}

/// A member of the algorithm that its configuration names.
pub type AnyProtocol = Any<StatePart>;
/// A message of any algorithm.
pub type AnyMessage = Any<MessagePart>;
/// What a member of any algorithm waits for.
pub type AnyTimer = Any<TimerPart>;
/// What a member of any algorithm stores.
pub type AnyDurable = Any<DurablePart>;

/// Which algorithm, and its configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnyConfig {
    /// Which algorithm.
    pub algorithm: Algorithm,
    /// Its configuration.
    pub inner: Config,
}

/// A protocol in the registry, which has its place in the closed enum.
trait Registered: Explore<Config = Config> {
    fn wrap<K: Part>(inner: K::Of<Self>) -> Any<K>;
}

/// Declares the closed enum by the table of all algorithms.
macro_rules! registered {
    ($($name:ident: $protocol:path,)*) => {
        closed! {
            /// Something of one of the algorithms.
            enum Any: AnyProtocol, AnyMessage, AnyTimer, AnyDurable;
            configured by AnyConfig, inside: inner;
            $(
                #[doc = concat!("Of [`Algorithm::", stringify!($name), "`].")]
                $name($protocol): AnyConfig { algorithm: Algorithm::$name, inner },
            )*
        }

        $(impl Registered for $protocol {
            fn wrap<K: Part>(inner: K::Of<Self>) -> Any<K> {
                Any::$name(inner)
            }
        })*
    };
}

with_algorithms!([registered]);

/// A message that is written as the release before this one wrote it.
#[derive(Clone, Debug)]
pub struct EarlierMessage(pub AnyMessage);

impl Serialize for EarlierMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            AnyMessage::Quorum(message) => {
                earlier::Message::from(message.clone()).serialize(serializer)
            }
            other => other.serialize(serializer),
        }
    }
}

type MessageOf<P> = <P as Protocol>::Message;
type DurableOf<P> = <P as Protocol>::Durable;

/// Data that does not contain the name of its algorithm is read as that of the one that all members run.
impl Algorithm {
    /// Reads a packet between nodes.
    pub fn read_packet<'de, D: Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<Packet<AnyMessage>, D::Error> {
        dispatch!(self, P => {
            Ok(Packet::<MessageOf<P>>::deserialize(from)?.map(P::wrap))
        })
    }

    /// Reads a packet as the release before this one wrote it.
    pub fn read_earlier_packet<'de, D: Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<Packet<AnyMessage>, D::Error> {
        match self {
            Self::Quorum => {
                let packet = Packet::<earlier::Message>::deserialize(from)?;
                Ok(packet.map(|message| AnyMessage::Quorum(message.into())))
            }
            other => other.read_packet(from),
        }
    }

    /// Reads a letter between processes.
    pub fn read_letter<'de, D: Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<Letter<Packet<AnyMessage>>, D::Error> {
        dispatch!(self, P => {
            let letter = Letter::<Packet<MessageOf<P>>>::deserialize(from)?;
            Ok(letter.map(|packet| packet.map(P::wrap)))
        })
    }

    /// Reads what a process has stored.
    pub fn read_kept<'de, D: Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<Kept<AnyDurable>, D::Error> {
        dispatch!(self, P => Ok(Kept::<DurableOf<P>>::deserialize(from)?.map(P::wrap)))
    }

    /// Reads what a process of the release before this one has stored.
    pub fn read_earlier_kept<'de, D: Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<Kept<AnyDurable>, D::Error> {
        match self {
            Self::Quorum => {
                let kept = Kept::<earlier::Stored>::deserialize(from)?;
                Ok(kept.map(|stored| AnyDurable::Quorum(stored.into())))
            }
            other => other.read_kept(from),
        }
    }

    /// Reads what a member of the release before this one has stored.
    pub fn read_earlier_durable<'de, D: Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<AnyDurable, D::Error> {
        match self {
            Self::Quorum => Ok(AnyDurable::Quorum(earlier::Stored::deserialize(from)?.into())),
            other => other.read_durable(from),
        }
    }

    /// Reads what a member has stored.
    pub fn read_durable<'de, D: Deserializer<'de>>(self, from: D) -> Result<AnyDurable, D::Error> {
        dispatch!(self, P => Ok(P::wrap(DurableOf::<P>::deserialize(from)?)))
    }

    /// The kinds of its messages, in the order in which those that arrive at the same instant are handled.
    pub fn kinds(self) -> &'static [Kind] {
        dispatch!(self, P => MessageOf::<P>::KINDS)
    }
}
