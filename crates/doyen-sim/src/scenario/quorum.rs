//! The table `[quorum]` of a scenario: the settings of a quorum's members.
//!
//! All keys are optional. Without a profile everything follows from the network's bound and the heartbeat, so that a
//! quorum can be compared with the sources' algorithms on the same network; with one, the profile's values apply. The
//! settings are checked: an unsafe combination is rejected with the inequality that it violates.

use std::collections::BTreeMap;

use doyen_core::config::Timing;
use doyen_core::config::quorum::{Preemption, Profile, Settings};
use doyen_core::members::{Members, NodeId, PeerSet};
use doyen_core::time::Span;
use serde::{Deserialize, Serialize};

use super::parse::{Result, member, named};
use super::{Scenario, ScenarioError};
use crate::fault::PaceOverride;
use crate::text;

/// The settings of a quorum's members, as written.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuorumOptions {
    /// `fast`, `lan` or `wan`; without one everything follows from the network's bound and the heartbeat.
    #[serde(with = "text")]
    pub profile: Option<Profile>,
    /// `Λ_F`, the length of a vote lease: how long a follower votes for no other member.
    #[serde(with = "text")]
    pub vote_lease: Option<Span>,
    /// `ρ`: by how much any clock may be wrong, below 1.
    pub drift: Option<f64>,
    /// `J`, the random part of the wait before an election.
    #[serde(with = "text")]
    pub jitter: Option<Span>,
    /// How much longer a member waits for each higher-ranked one.
    #[serde(with = "text")]
    pub stagger: Option<Span>,
    /// `never`, `delayed` (default) or `immediate`: when a higher-ranked member takes over.
    #[serde(with = "text")]
    pub preemption: Option<Preemption>,
    /// By how much a member's attribute must be better for it to take over.
    pub margin: Option<u64>,
    /// How long a new leader is not replaced by a higher-ranked member.
    #[serde(with = "text")]
    pub tenure: Option<Span>,
    /// How long the penalty of a failure as leader lasts.
    #[serde(with = "text")]
    pub penalty_decay: Option<Span>,
    /// How often followers tell each other which members they reach.
    #[serde(with = "text")]
    pub probe: Option<Span>,
    /// The members that vote and never lead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<u32>,
    /// The members that could lead and never do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reluctant: Vec<u32>,
    /// How long a host takes to stop what runs under a retiring leader; no time by default.
    #[serde(with = "text")]
    pub retire: Option<Span>,
    /// The members with another timing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pace: BTreeMap<String, PaceOverride>,
}

impl Scenario {
    /// The requested profile.
    pub(super) fn profile(&self) -> Option<Profile> {
        self.quorum.as_ref().and_then(|options| options.profile)
    }

    /// The settings of the members on a network with this timing.
    pub(super) fn resolve_quorum(&self, timing: &Timing, members: &Members) -> Result<Settings> {
        let drift = self.quorum.as_ref().map_or(Ok(None), QuorumOptions::drift)?;
        let mut settings = match (self.profile(), drift) {
            (Some(profile), Some(drift)) => profile.settings_for(drift),
            (Some(profile), None) => profile.settings(),
            (None, Some(drift)) => Settings::for_clocks(timing, drift),
            (None, None) => Settings::for_timing(timing),
        };
        settings.pace.heartbeat = timing.heartbeat;
        let Some(entry) = &self.quorum else { return Ok(settings) };
        entry.apply(&mut settings, members)?;
        let wrong = |problem| ScenarioError::new("quorum", problem);
        settings.check(timing, members).map_err(|refusal| wrong(refusal.to_string()))?;
        Ok(settings)
    }
}

impl QuorumOptions {
    /// ρ in thousandths, if it is set.
    fn drift(&self) -> Result<Option<u32>> {
        let Some(drift) = self.drift else { return Ok(None) };
        if !(0.0..1.0).contains(&drift) {
            let problem = format!("{drift} is not at least 0 and below 1");
            return Err(ScenarioError::new("quorum.drift", problem));
        }
        Ok(Some((drift * 1000.0).round() as u32))
    }

    fn apply(&self, settings: &mut Settings, members: &Members) -> Result<()> {
        let pace = PaceOverride { heartbeat: None, vote_lease: self.vote_lease };
        settings.pace = pace.over(settings.pace);
        settings.jitter = self.jitter.unwrap_or(settings.jitter);
        settings.stagger = self.stagger.unwrap_or(settings.stagger);
        settings.tenure = self.tenure.unwrap_or(settings.tenure);
        settings.penalty_decay = self.penalty_decay.unwrap_or(settings.penalty_decay);
        settings.probe = self.probe.or(settings.probe);
        settings.margin = self.margin.unwrap_or(settings.margin);
        settings.preemption = self.preemption.unwrap_or(settings.preemption);
        settings.witnesses = set(members, "quorum.witnesses", &self.witnesses)?;
        settings.reluctant = set(members, "quorum.reluctant", &self.reluctant)?;
        for (id, pace) in &self.pace {
            let id = named(members, "quorum.pace", id)?;
            settings.paces.insert(id, pace.over(settings.pace));
        }
        Ok(())
    }
}

fn set(members: &Members, key: &str, ids: &[u32]) -> Result<PeerSet> {
    ids.iter()
        .map(|&id| member(members, key, id))
        .collect::<Result<Vec<NodeId>>>()
        .map(|ids| ids.into_iter().collect())
}
