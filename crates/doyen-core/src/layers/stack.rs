//! The closed enum of all combinations of layers that simulations and explorations use, so that both are compiled once. Only
//! a simulation of bare members that counts millions of messages is compiled for its algorithm alone.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

use serde::{Serialize, Serializer};

use crate::algorithm::quorum::voter::Voter;
use crate::closed::{
    self, DurablePart, MessagePart, Part, StatePart, TimerPart, answered_inside, closed,
};
use crate::config::Config;
use crate::exclusion::lock_service::LockService;
use crate::exclusion::lock_service::succession::Succession;
use crate::explore::{Explore, Giver, Serial};
use crate::hearsay::{Hearsay, HearsayConfig};
use crate::members::{Incarnation, NodeId, Term};
use crate::node::{Node, NodeConfig};
use crate::protocol::{
    AskedAfter, Bonds, Boot, Commitments, Deliveries, Durable, Effects, Event, Holding, Kind,
    Message, Protocol, Recording, View,
};
use crate::registry::{AnyConfig, AnyProtocol};
use crate::session::{Session, SessionConfig};
use crate::snapshot::{Snapshot, SnapshotConfig};

/// A member with the layers that its configuration names.
pub type Stack = Layered<StatePart>;
/// A message between such members.
pub type StackMessage = Layered<MessagePart>;
/// What such a member waits for.
pub type StackTimer = Layered<TimerPart>;
/// What such a member stores.
pub type StackDurable = Layered<DurablePart>;

/// Which layers there are, and their configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StackConfig {
    /// None: the algorithm alone.
    Bare(AnyConfig),
    /// A link, a failure detector, an incarnation filter, or some of them.
    Node(NodeConfig<AnyConfig>),
    /// The same, and below them the sessions of processes.
    Process(SessionConfig<NodeConfig<AnyConfig>>),
    /// The layer that takes snapshots.
    Recordable(SnapshotConfig<AnyConfig>),
    /// The same, and the layers of a node below it.
    RecordableNode(NodeConfig<SnapshotConfig<AnyConfig>>),
    /// The layer in which members tell each other something.
    Telling(HearsayConfig<AnyConfig>),
    /// The lock service, whose leaders succeed each other as a quorum promises.
    Locks(Config),
    /// Of the quorum, the voting rules alone.
    Voter(Config),
    /// The same, and the sessions of processes below them.
    VoterProcess(SessionConfig<Config>),
}

impl StackConfig {
    /// The configuration of the algorithm.
    pub fn algorithm_mut(&mut self) -> &mut Config {
        match self {
            Self::Bare(config) => &mut config.inner,
            Self::Node(config) => &mut config.inner.inner,
            Self::Process(config) => &mut config.inner.inner.inner,
            Self::Recordable(config) => &mut config.inner.inner,
            Self::RecordableNode(config) => &mut config.inner.inner.inner,
            Self::Telling(config) => &mut config.inner.inner,
            Self::Locks(config) | Self::Voter(config) => config,
            Self::VoterProcess(config) => &mut config.inner,
        }
    }
}

closed! {
    /// Something of a member with one of the combinations of layers, which [`StackConfig`] explains.
    enum Layered: Stack, StackMessage, StackTimer, StackDurable;
    configured by StackConfig, inside: config;
    Bare(AnyProtocol): StackConfig::Bare(config),
    Node(Node<AnyProtocol>): StackConfig::Node(config),
    Process(Session<Node<AnyProtocol>>): StackConfig::Process(config),
    Recordable(Snapshot<AnyProtocol>): StackConfig::Recordable(config),
    RecordableNode(Node<Snapshot<AnyProtocol>>): StackConfig::RecordableNode(config),
    Telling(Hearsay<AnyProtocol>): StackConfig::Telling(config),
    Locks(LockService<Succession>): StackConfig::Locks(config),
    Voter(Voter): StackConfig::Voter(config),
    VoterProcess(Session<Voter>): StackConfig::VoterProcess(config),
}
