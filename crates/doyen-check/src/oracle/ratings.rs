//! Who should lead in the end, where members are not as good as they were set up to be: attributes change while they
//! run, some are witnesses or never want to lead, and operators drain them.
//!
//! What an operator wanted counts from the moment when its member has heard of it: orders to the dead are lost. A new
//! attribute is forgotten in a crash. That a member is drained is on its disk, and read from there: a drain may have
//! been refused, or may have run out.

use doyen_core::config::quorum::{Preemption, Settings};
use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::View;

use doyen_sim::hash::FastMap;

/// How good members are.
#[derive(Clone, Debug, Default)]
pub(super) struct Ratings {
    /// The members that never lead.
    never: Vec<NodeId>,
    drained: Vec<NodeId>,
    attrs: FastMap<NodeId, i64>,
    /// A leader that can lead stays, even if another member is better.
    leader_stays: bool,
}

/// The rating of members that may not lead.
const LOWEST: i64 = i64::MIN;
/// The rating of a leader that stays.
const HIGHEST: i64 = i64::MAX;

impl Ratings {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            never: settings.witnesses.iter().chain(settings.reluctant.iter()).collect(),
            leader_stays: settings.preemption == Preemption::Never,
            ..Self::default()
        }
    }

    pub(super) fn change(&mut self, id: NodeId, attr: i64) {
        self.attrs.insert(id, attr);
    }

    /// `id` has come up again.
    pub(super) fn forget(&mut self, id: NodeId) {
        self.attrs.remove(&id);
    }

    pub(super) fn drain(&mut self, id: NodeId, drained: bool) {
        self.drained.retain(|&other| other != id);
        if drained {
            self.drained.push(id);
        }
    }

    /// The members as good as they are where `views` are what they believe; nothing if that is what they were set up
    /// to be.
    pub(super) fn apply(&self, members: &Members, views: &[Option<View>]) -> Option<Members> {
        let usual = self.never.is_empty() && self.drained.is_empty() && self.attrs.is_empty();
        if usual && !self.leader_stays {
            return None;
        }
        let leads = |id| views.iter().flatten().any(|view| view.leader == Some(id));
        let attr = |id| match () {
            () if self.never.contains(&id) || self.drained.contains(&id) => LOWEST,
            () if self.leader_stays && leads(id) => HIGHEST,
            () => self.attrs.get(&id).copied().unwrap_or(members.key(id).attr),
        };
        members.clone().with_attrs(members.iter().map(|id| (id, attr(id)))).ok()
    }
}
