//! What only the algorithm knows of the group, for the status.

use std::collections::BTreeMap;

use doyen_core::algorithm::bully::Bully;
use doyen_core::algorithm::chang_roberts::ChangRoberts;
use doyen_core::algorithm::modified_bully::ModifiedBully;
use doyen_core::algorithm::quorum::{Merit, Quorum};
use doyen_core::algorithm::ring_active_list::RingActiveList;
use doyen_core::algorithm::ring_all_ids::RingAllIds;
use doyen_core::algorithm::ring_list::RingList;
use doyen_core::algorithm::ring_resilient::RingResilient;
use doyen_core::config::Config;
use doyen_core::members::NodeId;
use doyen_core::protocol::Protocol;
use doyen_core::time::Span;

/// What a member's state machine can tell beyond its view. A seed's algorithm can tell nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Insight {
    /// Who would lead next if the leader died now.
    pub(super) next: Option<NodeId>,
    /// Who could lead, the best first.
    pub(super) line: Vec<NodeId>,
    /// Whether this member is drained.
    pub(super) drained: bool,
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
    /// Whom it says it does not hear.
    pub(super) misses: Vec<NodeId>,
}

/// An algorithm that may have something to tell.
pub(super) trait Tells: Protocol {
    /// What it can tell. The seeds' algorithms can tell nothing.
    fn insight(&self, _config: &Self::Config) -> Insight {
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
    fn insight(&self, config: &Config) -> Insight {
        let known = |id: NodeId| {
            let Merit { eligible, attr, .. } = self.merit_of(config, id);
            let misses = config.members.others(id).filter(|&other| !self.hears(id, other));
            (id, Known { attribute: attr, eligible, misses: misses.collect() })
        };
        Insight {
            next: self.next_in_line(config),
            line: self.in_line(config),
            drained: self.is_drained(),
            preference: self.preference().map(|preference| (preference.member, preference.left)),
            members: config.members.iter().map(known).collect(),
        }
    }
}
