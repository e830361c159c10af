//! The `[quorum]` of a scenario: what a quorum's members are set to.
//!
//! Nothing of it needs to be said. Without a profile everything follows from the network's bound and the heartbeat, so
//! that a quorum can be compared with the seeds' algorithms on the same network; with one, the profile's values hold.
//! What is said is checked: an unsafe combination is refused with the inequality that it breaks.

use std::collections::BTreeMap;

use doyen_core::algorithm::quorum::settings::{Pace, Preemption, Profile, Settings};
use doyen_core::config::Timing;
use doyen_core::members::{Members, NodeId, PeerSet};
use doyen_core::time::Span;
use serde::{Deserialize, Serialize};

use super::parse::{Result, member, parse, parse_id, span};
use super::{Scenario, ScenarioError};

/// What a quorum's members are set to, as it is written.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuorumEntry {
    /// `fast`, `lan` or `wan`; without one everything follows from the network's bound and the heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// `Λ_F`: how long followers promise to follow nobody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<String>,
    /// `ρ`: by how much any clock may be wrong, below 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<f64>,
    /// `J`: how much chance there is in the wait before an election.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// How much longer a member waits for each better one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stagger: Option<String>,
    /// `never`, `delayed` (default) or `immediate`: when a better member takes over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption: Option<String>,
    /// By how much a member's attribute must be better for it to take over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<u64>,
    /// How long a leader stays before a better one may take over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenure: Option<String>,
    /// For how long an involuntary loss of office counts against a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forgiveness: Option<String>,
    /// How often followers tell each other whom they hear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
    /// Who votes and never leads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<u32>,
    /// Who could lead and never wants to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reluctant: Vec<u32>,
    /// How long a host takes to stop what runs under a retiring leader; no time by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retire: Option<String>,
    /// Members that go at another pace.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pace: BTreeMap<String, PaceEntry>,
}

/// The pace of one member.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PaceEntry {
    /// `h`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<String>,
    /// `Λ_F`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<String>,
}

impl Scenario {
    /// The profile that is asked for.
    pub(super) fn profile(&self) -> Result<Option<Profile>> {
        let entry = self.quorum.as_ref();
        parse(&entry.and_then(|entry| entry.profile.clone()), "quorum.profile")
    }

    /// How long it takes to stop what runs under the lease of a retiring leader.
    pub(super) fn resolve_retire(&self) -> Result<Span> {
        let retire = self.quorum.as_ref().and_then(|entry| entry.retire.as_ref());
        Ok(span(retire, "quorum.retire")?.unwrap_or_default())
    }

    /// What the members are set to on a network with this timing.
    pub(super) fn resolve_quorum(&self, timing: &Timing, members: &Members) -> Result<Settings> {
        let drift = self.quorum.as_ref().map_or(Ok(None), QuorumEntry::drift)?;
        let mut settings = match (self.profile()?, drift) {
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

impl QuorumEntry {
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
        let spans = [
            ("promise", &self.promise, &mut settings.pace.vote_lease),
            ("jitter", &self.jitter, &mut settings.jitter),
            ("stagger", &self.stagger, &mut settings.stagger),
            ("tenure", &self.tenure, &mut settings.tenure),
            ("forgiveness", &self.forgiveness, &mut settings.penalty_decay),
        ];
        for (name, text, setting) in spans {
            if let Some(given) = span(text.as_ref(), &format!("quorum.{name}"))? {
                *setting = given;
            }
        }
        if let Some(probe) = span(self.probe.as_ref(), "quorum.probe")? {
            settings.probe = Some(probe);
        }
        if let Some(margin) = self.margin {
            settings.margin = margin;
        }
        if let Some(preemption) = parse::<Preemption>(&self.preemption, "quorum.preemption")? {
            settings.preemption = preemption;
        }
        settings.witnesses = set(members, "quorum.witnesses", &self.witnesses)?;
        settings.reluctant = set(members, "quorum.reluctant", &self.reluctant)?;
        for (id, entry) in &self.pace {
            let id = member(members, "quorum.pace", parse_id("quorum.pace", id)?)?;
            let pace = entry.resolve(&format!("quorum.pace.{id}"), settings.pace)?;
            settings.paces.insert(id, pace);
        }
        Ok(())
    }
}

impl PaceEntry {
    fn resolve(&self, key: &str, usual: Pace) -> Result<Pace> {
        let heartbeat = span(self.heartbeat.as_ref(), &format!("{key}.heartbeat"))?;
        let promise = span(self.promise.as_ref(), &format!("{key}.promise"))?;
        Ok(Pace {
            heartbeat: heartbeat.unwrap_or(usual.heartbeat),
            vote_lease: promise.unwrap_or(usual.vote_lease),
            ..usual
        })
    }

    /// The pace with which member `id` comes up, if that is safe.
    pub(super) fn resolve_for(
        &self,
        id: NodeId,
        key: &str,
        settings: &Settings,
        timing: &Timing,
        members: &Members,
    ) -> Result<Pace> {
        let pace = self.resolve(key, settings.pace)?;
        let mut changed = settings.clone();
        changed.paces.insert(id, pace);
        let wrong = |problem: String| ScenarioError::new(key, problem);
        changed.check(timing, members).map_err(|refusal| wrong(refusal.to_string()))?;
        Ok(pace)
    }
}

fn set(members: &Members, key: &str, ids: &[u32]) -> Result<PeerSet> {
    ids.iter()
        .map(|&id| member(members, key, id))
        .collect::<Result<Vec<NodeId>>>()
        .map(|ids| ids.into_iter().collect())
}
