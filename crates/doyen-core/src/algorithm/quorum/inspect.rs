//! What a member knows, for status pages, tools and tests. Nothing here changes the member.
//!
//! The leader is in the [view](crate::protocol::Protocol::view), and the history consists of the
//! [changes](crate::change::LeaderChange) that a host has kept. Here is the rest: the succession, and what ranks the members.
//! [`Quorum::receives`] says for every pair of members whether one receives from the other.

use crate::change::{ElectionReason, Loss, TransferReason};
use crate::config::Config;
use crate::members::{NodeId, PeerSet};

use super::ballot::Drain;
use super::pause::Pause;
use super::penalty::Penalty;
use super::rank::{Preference, Rank};
use super::{Quorum, Role};

impl Quorum {
    /// The eligible members by rank, the highest first, as this member sees it. It includes members that do not
    /// [reach a majority](Self::reaches_majority), and the leader in its place: if the leader is not the first, the first
    /// takes over if the policy allows it.
    pub fn succession(&self, config: &Config) -> Vec<NodeId> {
        let key = |id: NodeId| self.ranking.key(config, id);
        let mut members: Vec<NodeId> =
            config.members.iter().filter(|&id| key(id).is_some()).collect();
        members.sort_by_key(|&id| std::cmp::Reverse(key(id)));
        members
    }

    /// Which member leads next if the leader dies now: the first of the succession that reaches this member and a majority
    /// of all, both ways, without the leader. The caller says which member receives from which:
    /// [`receives`](Self::receives), or what a host knows in addition.
    pub fn next_leader(
        &self,
        config: &Config,
        receives: impl Fn(NodeId, NodeId) -> bool,
    ) -> Option<NodeId> {
        let is_left = |id: &NodeId| self.leader() != Some(*id);
        let is_fit = |&id: &NodeId| {
            let both_ways = |&other: &NodeId| receives(id, other) && receives(other, id);
            let reached = config.members.others(id).filter(is_left).filter(both_ways).count() + 1;
            let is_reachable = id == self.id || receives(self.id, id);
            is_reachable && reached >= config.quorum.majority(config.members.len())
        };
        self.succession(config).into_iter().filter(is_left).find(is_fit)
    }

    /// The rank of `id`, as it reported it last.
    pub fn rank_of(&self, config: &Config, id: NodeId) -> Rank {
        self.ranking.rank(config, id)
    }

    /// How many recent failures as leader count against `id`.
    pub fn failures_of(&self, id: NodeId) -> u8 {
        self.ranking.failures(id)
    }

    /// The penalty of `id`, as the leader counts it.
    pub fn penalty_of(&self, id: NodeId) -> Penalty {
        self.ranking.penalty(id)
    }

    /// The pause of elections, if they are paused.
    pub fn pause_in_force(&self) -> Option<Pause> {
        self.latest_pause().filter(|_| self.is_paused())
    }

    /// The operator's preference, with the time that is left of it.
    pub fn preference(&self) -> Option<Preference> {
        self.ranking.preference()
    }

    /// Why this member leads, if it does.
    pub fn reason(&self) -> Option<ElectionReason> {
        match &self.role {
            Role::Leader(leader) => Some(leader.reason),
            _ => None,
        }
    }

    /// The transfer of leadership that has begun, while it leads: why, and to whom if that was named.
    pub fn pending_transfer(&self) -> Option<(TransferReason, Option<NodeId>)> {
        match &self.role {
            Role::Leader(leader) => {
                leader.transfer.map(|pending| (pending.reason, pending.successor))
            }
            _ => None,
        }
    }

    /// The leader that it lost last, and how, until it knows the next.
    pub fn lost_leader(&self) -> Option<(NodeId, Loss)> {
        self.search.last_leader.map(|lost| (lost.id, lost.why))
    }

    /// While it rejoins: the members that have not answered yet.
    pub fn awaited(&self) -> Option<PeerSet> {
        self.recovery.is_rejoining().then(|| self.recovery.unanswered.clone())
    }

    /// Whether its operator has drained it.
    pub fn is_drained(&self) -> bool {
        self.ballot.stored().drained.is_some()
    }

    /// Whether it must not lead even if every other eligible member is drained.
    pub fn never_leads(&self) -> bool {
        self.ballot.stored().drained == Some(Drain::Never)
    }

    /// Whether it must never act again: its disk is an old copy, or was lost where no other member can restore it.
    #[cfg(test)]
    pub(crate) fn is_halted(&self) -> bool {
        matches!(self.role, Role::Halted)
    }
}
