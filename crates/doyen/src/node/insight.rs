//! What only the algorithm knows of the group, for the status.

use std::collections::BTreeMap;
use std::time::Duration;

use doyen_core::algorithm::bully::Bully;
use doyen_core::algorithm::chang_roberts::ChangRoberts;
use doyen_core::algorithm::modified_bully::ModifiedBully;
use doyen_core::algorithm::quorum::{Quorum, Rank, Timer};
use doyen_core::algorithm::ring_active_list::RingActiveList;
use doyen_core::algorithm::ring_all_ids::RingAllIds;
use doyen_core::algorithm::ring_list::RingList;
use doyen_core::algorithm::ring_resilient::RingResilient;
use doyen_core::config::Config;
use doyen_core::members::{NodeId, PeerSet};
use doyen_core::protocol::Protocol;
use doyen_core::time::Span;

/// What a member's state machine can tell beyond its view. A seed's algorithm can tell nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Insight {
    /// Who would lead next if the leader died now.
    pub(super) next: Option<NodeId>,
    /// Who would lead, the best first.
    pub(super) line: Vec<NodeId>,
    /// Whether this member is drained.
    pub(super) drained: bool,
    /// Whether it does not even lead if every member that could is drained.
    pub(super) never_leads: bool,
    /// For how much longer, if that ends by itself.
    pub(super) drained_for: Option<Duration>,
    /// Whom the operator prefers, and for how long when that was last told.
    pub(super) preference: Option<(NodeId, Span)>,
    /// What is known of the others, and of this member.
    pub(super) members: BTreeMap<NodeId, Known>,
}

/// What is known of a member.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Known {
    /// Its attribute, as last told.
    pub(super) attribute: i64,
    /// Whether it may lead.
    pub(super) eligible: bool,
    /// How often it has lost its office involuntarily, as far as that counts against it still.
    pub(super) losses: u8,
    /// Whom it says it does not hear; nothing where members do not say so.
    pub(super) misses: Option<Vec<NodeId>>,
}

/// What the host knows and the algorithm does not.
pub(super) struct Outside<'a, T> {
    /// Which member this is.
    pub(super) me: NodeId,
    /// Whom this node hears.
    pub(super) heard: &'a PeerSet,
    /// How much longer a timer runs, if it does.
    pub(super) left: &'a dyn Fn(T) -> Option<Duration>,
}

/// An algorithm that may have something to tell.
pub(super) trait Tells: Protocol {
    /// Whether `me`, the member itself, hears `peer`: said only by an algorithm that watches over that. A peer of which
    /// nothing has come yet is given the benefit of the doubt for a while.
    fn hears(&self, _config: &Self::Config, _me: NodeId, _peer: NodeId) -> Option<bool> {
        None
    }

    /// While it has lost its disk and asks around: who has not answered yet.
    fn awaited(&self) -> Option<PeerSet> {
        None
    }

    /// What it can tell. The seeds' algorithms can tell nothing.
    fn insight(&self, _config: &Self::Config, _outside: &Outside<'_, Self::Timer>) -> Insight {
        Insight::default()
    }
}

impl Tells for Bully {}
impl Tells for ModifiedBully {}
impl Tells for RingList {}
impl Tells for RingResilient {}
impl Tells for RingActiveList {}
impl Tells for RingAllIds {}
impl Tells for ChangRoberts {}

impl Tells for Quorum {
    fn hears(&self, config: &Config, me: NodeId, peer: NodeId) -> Option<bool> {
        watches(config).then(|| Self::hears(self, me, peer))
    }

    fn awaited(&self) -> Option<PeerSet> {
        Self::awaited(self)
    }

    fn insight(&self, config: &Config, outside: &Outside<'_, Timer>) -> Insight {
        let &Outside { me, heard, left } = outside;
        let hears = |one: NodeId, other: NodeId| match one == me {
            true => heard.contains(other),
            false => Self::hears(self, one, other),
        };
        let known = |id: NodeId| {
            let Rank { eligible, attr, .. } = self.rank_of(config, id);
            let misses = || config.members.others(id).filter(|&other| !hears(id, other)).collect();
            let losses = self.failures_of(config, id);
            let misses = watches(config).then(misses);
            (id, Known { attribute: attr, eligible, losses, misses })
        };
        Insight {
            next: self.next_leader(config, hears),
            line: self.succession(config),
            drained: self.is_drained(),
            never_leads: self.never_leads(),
            drained_for: left(Timer::Drain).filter(|_| self.is_drained()),
            preference: self.preference().map(|preference| (preference.member, preference.left)),
            members: config.members.iter().map(known).collect(),
        }
    }
}

/// Whether members notice who falls silent, and tell each other.
fn watches(config: &Config) -> bool {
    config.quorum.probe.is_some()
}
