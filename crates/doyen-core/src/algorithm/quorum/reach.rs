//! Who reaches whom: what keeps a half-connected member from being in the way.
//!
//! Members that follow say nothing to each other while all is well, so none of them would know, when the leader dies,
//! that it hears but is not heard. Where probing is switched on they tell each other now and then whom they miss.
//! A member that, by what it knows, does not reach a majority both ways answers nobody with "higher": it could not
//! win, and would only make others wait. It may still ask, for what it believes may be outdated; but its turn is the
//! last, since those who are asked give way. Nothing here decides a vote.

use crate::config::Config;
use crate::members::{NodeId, PeerSet};
use crate::time::Span;

use super::ballot::majority;
use super::message::{Body, Misses};
use super::rules::Rulebook;
use super::{Duty, Out, Quorum, Timer};

/// After how many probes' time a member counts as silent.
const PATIENCE: u64 = 3;

/// Whom a member does not hear, and who does not hear it. Nobody is doubted before there is a reason to.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Reach {
    /// Who is silent; kept only where probing is switched on.
    silent: PeerSet,
    /// Who says that it does not hear this member.
    deaf: PeerSet,
}

impl Reach {
    /// Whom it does not hear, to be told to others.
    pub(super) fn misses(&self) -> Misses {
        Misses::from(&self.silent)
    }
}

impl<R: Rulebook> Quorum<R> {
    fn silence(config: &Config) -> Option<Span> {
        config.quorum.probe.map(|probe| probe * PATIENCE)
    }

    /// Begins to watch.
    pub(super) fn watch_everybody(&mut self, config: &Config, out: &mut Out<R>) {
        let (Some(probe), Some(silence)) = (config.quorum.probe, Self::silence(config)) else {
            return;
        };
        out.set_timer(Timer::Probe, probe);
        for peer in config.members.others(self.id) {
            out.set_timer(Timer::Silence(peer), silence);
        }
    }

    /// A message came from `peer`.
    pub(super) fn heard(&mut self, config: &Config, peer: NodeId, out: &mut Out<R>) {
        if let Some(silence) = Self::silence(config) {
            self.reach.silent.remove(peer);
            out.set_timer(Timer::Silence(peer), silence);
        }
    }

    /// Nothing has come from `peer` for too long.
    pub(super) fn on_silence(&mut self, config: &Config, peer: NodeId) {
        if config.quorum.probe.is_some() {
            self.reach.silent.insert(peer);
        }
    }

    /// `peer` says whom it does not hear.
    pub(super) fn note_misses(&mut self, peer: NodeId, misses: &Misses) {
        if misses.0.contains(&self.id) {
            self.reach.deaf.insert(peer);
        } else {
            self.reach.deaf.remove(peer);
        }
    }

    /// Tells everybody to whom it says nothing otherwise: a leader and its followers talk all the time.
    pub(super) fn on_probe_due(&mut self, config: &Config, out: &mut Out<R>) {
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

    /// Whether, as far as it knows, a majority hears it and is heard by it.
    pub(super) fn reaches_majority(&self, config: &Config) -> bool {
        let Reach { silent, deaf } = &self.reach;
        let out_of_reach =
            config.members.others(self.id).filter(|&id| silent.contains(id) || deaf.contains(id));
        config.members.len() - out_of_reach.count() >= majority::<R>(config.members.len())
    }
}
