//! What a member knows, for those who show it: a host's status page, a tool, a test. Nothing here changes anything.
//!
//! Who follows whom is in the [view](crate::protocol::Protocol::view), what happened in the
//! [changes](crate::story::Change) that its host has kept. Here is the rest: who would lead next and why not the
//! others. Who hears whom is said by [`Quorum::hears`], for every pair of members.

use crate::config::Config;
use crate::members::{NodeId, PeerSet};
use crate::story::Why;

use super::ballot::Drain;
use super::standing::{Merit, Preference};
use super::{Duty, Quorum};

impl Quorum {
    /// Who would lead best, the best first, as this member sees it. Witnesses and those who stand back are not among
    /// them; those who [reach no majority](Self::reaches_majority) are. The leader is in its place: if it is not the
    /// first, the first will take over, should the policy let it.
    pub fn in_line(&self, config: &Config) -> Vec<NodeId> {
        let standing = |id: &NodeId| self.standings.precedence(config, *id).is_some();
        let mut line: Vec<NodeId> = config.members.iter().filter(standing).collect();
        line.sort_by_key(|&id| std::cmp::Reverse(self.standings.precedence(config, id)));
        line
    }

    /// Who leads next, should the leader die now: the first in line that this member hears and that reaches a majority
    /// of all, both ways, without the leader. Who hears whom is up to the caller: [`hears`](Self::hears), or what a
    /// host knows besides.
    pub fn next_in_line(
        &self,
        config: &Config,
        hears: impl Fn(NodeId, NodeId) -> bool,
    ) -> Option<NodeId> {
        let is_left = |id: &NodeId| self.leader != Some(*id);
        let is_fit = |&id: &NodeId| {
            let both_ways = |&other: &NodeId| hears(id, other) && hears(other, id);
            let reached = config.members.others(id).filter(is_left).filter(both_ways).count() + 1;
            let is_heard = id == self.id || hears(self.id, id);
            is_heard && reached >= config.quorum.majority(config.members.len())
        };
        self.in_line(config).into_iter().filter(is_left).find(is_fit)
    }

    /// How good `id` is, as it said last.
    pub fn merit_of(&self, config: &Config, id: NodeId) -> Merit {
        self.standings.merit(config, id)
    }

    /// How often `id` has lost its office involuntarily, as far as that counts against it still.
    pub fn losses_of(&self, config: &Config, id: NodeId) -> u8 {
        self.standings.losses(config, id)
    }

    /// Whom the operator prefers, and for how much longer.
    pub fn preference(&self) -> Option<Preference> {
        self.standings.preference()
    }

    /// Why this member leads, if it does.
    pub fn why(&self) -> Option<Why> {
        match &self.duty {
            Duty::Lead(office) => Some(office.why),
            _ => None,
        }
    }

    /// While it has lost its disk and asks around: who has not answered yet.
    pub fn awaited(&self) -> Option<PeerSet> {
        self.rejoining.is_some().then(|| self.unanswered.clone())
    }

    /// Whether its operator does not want it to lead.
    pub fn is_drained(&self) -> bool {
        self.ballot.stored().drained.is_some()
    }

    /// Whether its operator does not want it to lead even if every other member that could is drained.
    pub fn never_leads(&self) -> bool {
        self.ballot.stored().drained == Some(Drain::Never)
    }

    /// Whether it must never act again: its disk is an old copy, or was lost where nobody can make it good.
    pub fn is_halted(&self) -> bool {
        matches!(self.duty, Duty::Halted)
    }
}
