//! Which member reaches which: what keeps a partly connected member from delaying others.
//!
//! Followers send each other nothing in normal operation, so when the leader dies a follower would not know that it
//! receives messages but that its own are lost. Where probing is on, members tell each other from time to time which
//! members are unreachable for them, in heartbeats and acknowledgements too. So every member knows, of every member that it
//! receives from, which members that one receives from.
//!
//! A member that, as far as it knows, does not reach a majority both ways never answers "higher": it could not win, and would
//! only make others wait. It may still ask, because what it knows may be outdated; but it has the last turn, since members
//! that are asked let the asker go first. Nor does a leader transfer leadership to such a member. No vote depends on any of
//! this.

use crate::change::{Loss, TransferReason};
use crate::config::Config;
use crate::map::SortedMap;
use crate::members::{NodeId, PeerSet};
use crate::time::Span;

use super::message::{Body, Unreachable};
use super::{Cx, Quorum, Role, Timer};

/// A member counts as unreachable after this many probe intervals without a message.
pub const MISSED_PROBES: u64 = 3;

/// Which members are unreachable for which. A member is reachable until there is evidence against it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Reachability {
    /// The members from which this one receives nothing; kept only where probing is on.
    own: PeerSet,
    /// What the others reported last; members that receive from all others are left out.
    reports: SortedMap<NodeId, PeerSet>,
    /// The members that did not answer when they were last asked, and have sent nothing since. A lost message looks the
    /// same, so they are shown as silent, and no rule reads this. Kept only where probing is on.
    silent: PeerSet,
}

impl Reachability {
    /// The members from which this one receives nothing, to be sent to others.
    pub(super) fn unreachable(&self) -> Unreachable {
        Unreachable::from(&self.own)
    }
}

fn timeout(config: &Config) -> Option<Span> {
    config.quorum.probe.map(|probe| probe * MISSED_PROBES)
}

impl Quorum {
    /// Starts to monitor all members.
    pub(super) fn monitor_members(&mut self, cx: &mut Cx<'_>) {
        let (Some(probe), Some(timeout)) = (cx.config.quorum.probe, timeout(cx.config)) else {
            return;
        };
        cx.set_timer(Timer::Probe, probe);
        for peer in cx.config.members.others(self.id) {
            cx.set_timer(Timer::Unreachable(peer), timeout);
        }
    }

    /// A message came from `peer`.
    pub(super) fn mark_reachable(&mut self, peer: NodeId, cx: &mut Cx<'_>) {
        if let Some(timeout) = timeout(cx.config) {
            self.reachability.own.remove(peer);
            self.reachability.silent.remove(peer);
            cx.set_timer(Timer::Unreachable(peer), timeout);
        }
    }

    /// No message came from `peer` for too long.
    pub(super) fn on_unreachable(&mut self, peer: NodeId, cx: &mut Cx<'_>) {
        if cx.config.quorum.probe.is_none() {
            return;
        }
        self.reachability.own.insert(peer);
    }

    /// How the leader was lost: one whose guardian released its lease has died, so nothing more comes from it.
    pub(super) fn note_death(&mut self, leader: NodeId, why: Loss, cx: &mut Cx<'_>) {
        if why == Loss::Transferred(TransferReason::Crashed) {
            self.on_unreachable(leader, cx);
        }
    }

    /// `peers` did not answer in time.
    pub(super) fn note_silent(&mut self, peers: Vec<NodeId>, cx: &mut Cx<'_>) {
        if cx.config.quorum.probe.is_some() {
            for peer in peers {
                self.reachability.silent.insert(peer);
            }
        }
    }

    /// Whether `peer` does not answer now: the last three heartbeats, or what it was asked last. This is known sooner than
    /// that it is [unreachable](Self::receives), and less certain.
    pub fn is_silent(&self, peer: NodeId) -> bool {
        let misses_heartbeats = matches!(&self.role, Role::Leader(leader) if leader.misses(peer));
        peer != self.id && (misses_heartbeats || self.reachability.silent.contains(peer))
    }

    /// `peer` reports which members are unreachable for it.
    pub(super) fn note_unreachable(
        &mut self,
        config: &Config,
        peer: NodeId,
        unreachable: &Unreachable,
    ) {
        let reports = &mut self.reachability.reports;
        if unreachable.0.is_empty() {
            reports.remove(&peer);
            return;
        }
        // A report may contain anything; only members matter.
        let members = unreachable.0.iter().copied().filter(|&id| config.members.contains(id));
        reports.insert(peer, members.collect());
    }

    /// Probes the members to which it sends nothing else: a leader and its followers exchange heartbeats.
    pub(super) fn on_probe_due(&mut self, cx: &mut Cx<'_>) {
        let Some(probe) = cx.config.quorum.probe else { return };
        cx.set_timer(Timer::Probe, probe);
        if self.leads() {
            return;
        }
        if self.leader().is_none() {
            self.ranking.spend_penalties(probe);
        }
        let probe = self.probe(cx.config);
        for peer in cx.config.members.others(self.id) {
            if self.leader() != Some(peer) {
                self.send(peer, probe.clone(), cx);
            }
        }
    }

    pub(super) fn probe(&self, config: &Config) -> Body {
        Body::Probe { rank: self.rank(config), unreachable: self.reachability.unreachable() }
    }

    /// Whether `one` receives from `other`, as far as this member knows from its own timers and the reports of the others.
    pub fn receives(&self, one: NodeId, other: NodeId) -> bool {
        let unreachable = match one == self.id {
            true => Some(&self.reachability.own),
            false => self.reachability.reports.get(&one),
        };
        unreachable.is_none_or(|unreachable| !unreachable.contains(other))
    }

    /// Whether messages pass in both directions between `id` and a majority, as far as this member knows.
    pub fn reaches_majority(&self, config: &Config, id: NodeId) -> bool {
        let both_ways = |&other: &NodeId| self.receives(id, other) && self.receives(other, id);
        let reached = config.members.others(id).filter(both_ways).count() + 1;
        reached >= config.quorum.majority(config.members.len())
    }
}
