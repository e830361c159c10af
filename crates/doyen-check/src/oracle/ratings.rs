//! Which member should lead at the end, if ranks differ from the configuration: attributes change while members run,
//! some members are witnesses or reluctant, and operators drain members.
//!
//! A command counts from the moment when its member has received it: commands to dead members are lost. A new attribute
//! is lost in a crash. A drain is on the member's disk, and is read from there, because a drain may have been rejected,
//! or may have ended.

use doyen_core::config::quorum::{Preemption, Settings};
use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::View;

use doyen_sim::hash::FastMap;

/// The ranks of members.
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

    /// `id` has restarted.
    pub(super) fn forget(&mut self, id: NodeId) {
        self.attrs.remove(&id);
    }

    pub(super) fn drain(&mut self, id: NodeId, drained: bool) {
        self.drained.retain(|&other| other != id);
        if drained {
            self.drained.push(id);
        }
    }

    /// The members with their present ranks, if they have these `views`; nothing if the ranks are as configured.
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
