//! Who reaches whom: what keeps a half-connected member from being in the way.
//!
//! Members that follow say nothing to each other while all is well, so none of them would know, when the leader dies,
//! that it hears but is not heard. Where probing is switched on they tell each other now and then whom they miss, and
//! say it in heartbeats and acknowledgements too. So everybody knows, of everybody it hears, who hears whom.
//!
//! A member that, by what it knows, does not reach a majority both ways answers nobody with "higher": it could not
//! win, and would only make others wait. It may still ask, for what it believes may be outdated; but its turn is the
//! last, since those who are asked give way. Nor does a leader hand over to such a member. Nothing here decides a vote.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::members::{NodeId, PeerSet};
use crate::time::Span;

use super::message::{Body, Misses};
use super::standing::Merit;
use super::{Duty, Out, Quorum, Timer};

/// After how many probes' time a member counts as silent.
const PATIENCE: u64 = 3;

/// Who does not hear whom. Nobody is doubted before there is a reason to.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Reach {
    /// Whom this member does not hear; kept only where probing is switched on.
    silent: PeerSet,
    /// Whom the others do not hear, as they said last. Those that miss nobody are left out.
    reports: BTreeMap<NodeId, PeerSet>,
}

impl Reach {
    /// Whom it does not hear, to be told to others.
    pub(super) fn misses(&self) -> Misses {
        Misses::from(&self.silent)
    }
}

impl Quorum {
    fn silence(config: &Config) -> Option<Span> {
        config.quorum.probe.map(|probe| probe * PATIENCE)
    }

    /// Begins to watch.
    pub(super) fn watch_everybody(&mut self, config: &Config, out: &mut Out) {
        let (Some(probe), Some(silence)) = (config.quorum.probe, Self::silence(config)) else {
            return;
        };
        out.set_timer(Timer::Probe, probe);
        for peer in config.members.others(self.id) {
            out.set_timer(Timer::Silence(peer), silence);
        }
    }

    /// A message came from `peer`.
    pub(super) fn heard(&mut self, config: &Config, peer: NodeId, out: &mut Out) {
        if let Some(silence) = Self::silence(config) {
            self.reach.silent.remove(peer);
            out.set_timer(Timer::Silence(peer), silence);
        }
    }

    /// Nothing has come from `peer` for too long.
    pub(super) fn on_silence(&mut self, config: &Config, peer: NodeId, out: &mut Out) {
        if config.quorum.probe.is_none() {
            return;
        }
        self.reach.silent.insert(peer);
        // What it held against itself it cannot take back any more: it is forgiven here.
        let merit = self.standings.merit(config, peer);
        self.standings.learn(config, peer, Merit { losses: 0, ..merit });
        self.hold_against(config, peer, merit.losses, out);
    }

    /// `peer` says whom it does not hear.
    pub(super) fn note_misses(&mut self, config: &Config, peer: NodeId, misses: &Misses) {
        let reports = &mut self.reach.reports;
        if misses.0.is_empty() {
            reports.remove(&peer);
            return;
        }
        // It may say anything; only members are of interest.
        let members = misses.0.iter().copied().filter(|&id| config.members.contains(id));
        reports.insert(peer, members.collect());
    }

    /// Tells everybody to whom it says nothing otherwise: a leader and its followers talk all the time.
    pub(super) fn on_probe_due(&mut self, config: &Config, out: &mut Out) {
        let Some(probe) = config.quorum.probe else { return };
        out.set_timer(Timer::Probe, probe);
        if matches!(self.duty, Duty::Lead(_)) {
            return;
        }
        let (merit, misses) = (self.merit(config), self.reach.misses());
        for peer in config.members.others(self.id) {
            if self.leader != Some(peer) {
                self.tell(peer, Body::Probe { merit, misses: misses.clone() }, out);
            }
        }
    }

    /// Whether `one` hears `other`, as far as this member knows: that of others it knows from what they say.
    pub fn hears(&self, one: NodeId, other: NodeId) -> bool {
        let misses = match one == self.id {
            true => Some(&self.reach.silent),
            false => self.reach.reports.get(&one),
        };
        misses.is_none_or(|misses| !misses.contains(other))
    }

    /// Whether a majority hears `id` and is heard by it, as far as this member knows.
    pub fn reaches_majority(&self, config: &Config, id: NodeId) -> bool {
        let both_ways = |&other: &NodeId| self.hears(id, other) && self.hears(other, id);
        let reached = config.members.others(id).filter(both_ways).count() + 1;
        reached >= config.quorum.majority(config.members.len())
    }
}
