//! The layers below an algorithm: a link, a failure detector, the incarnation filter, sessions. The simulator and the
//! node both build them here, so the simulated layers are those that run.
//!
//! A quorum tolerates loss and monitors its leader itself. The other algorithms assume reliable channels and a failure
//! detector. On a network that loses messages, a link makes the channels reliable, at the cost of time: the `D` that an
//! algorithm above it knows includes two retransmissions.

mod stack;

use crate::config::{Timing, Variant};
use crate::detector::DetectorConfig;
use crate::hearsay::{self, HearsayConfig};
use crate::link::LinkConfig;
use crate::node::{NodeConfig, packet};
use crate::protocol::{Family, Kind};
use crate::registry::{Algorithm, AnyConfig};
use crate::session::{SessionConfig, letter};
use crate::snapshot::{self, SnapshotConfig};
use crate::time::Span;

pub use stack::{Stack, StackConfig, StackDurable, StackMessage, StackTimer};

/// How many consecutive lost heartbeats a detector tolerates on a network that loses messages.
const LOST_HEARTBEATS: u32 = 3;

/// The layers below an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layers {
    /// The bounds of the bare network, without retransmissions: those of the link and the detector.
    pub bare: Timing,
    /// Whether the network loses messages.
    pub lossy: bool,
    /// Whether there is a link.
    pub link: bool,
    /// How often the failure detector sends a heartbeat, if there is a detector.
    pub detector: Option<Span>,
}

impl Layers {
    /// The layers that a node has below `algorithm`, on a network that loses datagrams.
    pub fn of_node(algorithm: Algorithm, bare: Timing) -> Self {
        let bears_loss = algorithm.has_leases();
        let detector = (!bears_loss).then_some(bare.heartbeat);
        Self { bare, lossy: true, link: !bears_loss, detector }
    }

    /// The `D` that the algorithm above knows: two retransmissions and the delivery after them take up to
    /// `(2D + p) + 2(2D + p) + D`.
    pub fn transmission(&self) -> Span {
        match self.link && self.lossy {
            true => self.bare.transmission * 7 + self.bare.processing * 3,
            false => self.bare.transmission,
        }
    }

    /// A node that runs `above`. Incarnations are distinguished in hardened mode only.
    pub fn node(&self, above: AnyConfig) -> NodeConfig<AnyConfig> {
        NodeConfig {
            members: above.inner.members.clone(),
            filter: above.inner.hardened(),
            link: self.link_config(),
            detector: self.detector_config(),
            inner: above,
        }
    }

    /// The configuration of the link, if there is one.
    pub fn link_config(&self) -> Option<LinkConfig> {
        self.link.then(|| LinkConfig::for_round_trip(self.bare.reply()))
    }

    /// The configuration of the failure detector, if there is one.
    pub fn detector_config(&self) -> Option<DetectorConfig> {
        self.detector.map(|heartbeat| DetectorConfig {
            heartbeat,
            losses: if self.lossy { LOST_HEARTBEATS } else { 0 },
            ..DetectorConfig::for_timing(&self.bare)
        })
    }

    /// A process of a member that runs `above`.
    pub fn process(&self, above: AnyConfig) -> SessionConfig<NodeConfig<AnyConfig>> {
        let (members, rules) = (above.inner.members.clone(), above.inner.quorum.rules);
        let round_trip = self.bare.reply();
        SessionConfig { inner: self.node(above), members, round_trip, background: true, rules }
    }
}

/// A member of which a snapshot can be taken and that runs `above`. This layer is the highest: the link is below it, because
/// it needs channels that keep the order.
pub fn recordable(above: AnyConfig) -> SnapshotConfig<AnyConfig> {
    let (members, without) = (above.inner.members.clone(), above.inner.exclusion.without);
    SnapshotConfig { members, without, inner: above }
}

/// A member that may tell others something and that runs `above`.
pub fn telling(above: AnyConfig) -> HearsayConfig<AnyConfig> {
    let carries_clock = !above.inner.reads(Variant::UnstampedTells);
    HearsayConfig { members: above.inner.members.clone(), carries_clock, inner: above }
}

/// The kinds of messages between processes that run `algorithm`.
pub fn kinds(algorithm: Algorithm) -> Vec<Kind> {
    [algorithm.kinds(), &packet::ADDED, &letter::ADDED].concat()
}

/// The same where snapshots are taken, which processes with sessions do not support: a group of which a snapshot is taken
/// is closed.
pub fn kinds_with_snapshot(algorithm: Algorithm) -> Vec<Kind> {
    [algorithm.kinds(), &[snapshot::MARKER], &packet::ADDED].concat()
}

/// The same where members tell each other something, bare of layers.
pub fn kinds_with_tells(algorithm: Algorithm) -> Vec<Kind> {
    [algorithm.kinds(), &[hearsay::APP]].concat()
}

/// The family of the kind called `name`, which is the same in every algorithm and layer; `None` if no message is called so.
pub fn family_of(name: &str) -> Option<Family> {
    let above = [&snapshot::MARKER, &hearsay::APP];
    let layers = packet::ADDED.iter().chain(&letter::ADDED).chain(above);
    let mut kinds = Algorithm::ALL.into_iter().flat_map(Algorithm::kinds).chain(layers);
    kinds.find(|kind| kind.name == name).map(|kind| kind.family)
}
