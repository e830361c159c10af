//! What a scenario says about mutual exclusion and about services, and which keys suit which algorithm.

use doyen_core::config::exclusion::{Sets, Settings};
use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::AdminCommand;
use doyen_core::registry::{Algorithm, Purpose};
use doyen_core::time::{Delay, Span};

use super::parse::{Result, member};
use super::{Initiators, Scenario, ScenarioError};
use crate::fault::Action;
use crate::network::DelayModel;
use crate::world::Requests;

/// The most requests of a run: more entries than a person could look at.
const MOST_REQUESTS: u64 = 10_000_000;

impl Scenario {
    /// Refuses what means nothing to `algorithm`: an election has no critical section, an exclusion no leader, a service
    /// neither.
    pub(super) fn check_purpose(&self, algorithm: Algorithm) -> Result<()> {
        let of_sections = [
            ("requests", self.requests.is_some()),
            ("hold", self.hold.is_some()),
            ("repeat", self.repeat.is_some()),
            ("think", self.think.is_some()),
        ];
        let of_elections = [
            ("initiators", self.initiators.is_some()),
            ("announce", self.announce.is_some()),
            ("convention", self.convention.is_some()),
            ("window", self.window.is_some()),
            ("heartbeat", self.heartbeat.is_some()),
            ("preempt", self.preempt.is_some()),
            ("sessions", self.sessions),
            ("quorum", self.quorum.is_some()),
        ];
        let refuse = |keys: &[(&str, bool)], why: String| match keys.iter().find(|(_, is)| *is) {
            Some((key, _)) => Err(ScenarioError::new(*key, why)),
            None => Ok(()),
        };
        match algorithm.purpose() {
            Purpose::Elects => {
                let why = "elects a leader and has no critical section; leave this out, or use an algorithm that excludes, \
                           for example ricart-agrawala";
                refuse(&of_sections, format!("{algorithm} {why}"))?;
            }
            Purpose::Excludes => {
                let why = "lets members into a critical section and elects no leader; leave this out, or use an election, for \
                           example bully";
                refuse(&of_elections, format!("{algorithm} {why}"))?;
                self.check_faults_of_exclusion(algorithm)?;
            }
            Purpose::Records | Purpose::Serves => {
                let why = "has neither an election nor a critical section; leave this out";
                refuse(&of_elections, format!("{algorithm} {why}"))?;
                refuse(&of_sections[1..], format!("{algorithm} {why}"))?;
                self.check_faults_of_exclusion(algorithm)?;
            }
        }
        self.check_own_keys(algorithm)
    }

    /// Refuses what only another algorithm of mutual exclusion has.
    fn check_own_keys(&self, algorithm: Algorithm) -> Result<()> {
        let has_first = algorithm.elects()
            || matches!(
                algorithm,
                Algorithm::Centralised
                    | Algorithm::TokenRing
                    | Algorithm::TokenRecovery
                    | Algorithm::Sequencer
                    | Algorithm::Raymond
                    | Algorithm::SuzukiKasami
            );
        let (maekawa, raymond, voting) = (
            algorithm == Algorithm::Maekawa,
            algorithm == Algorithm::Raymond,
            algorithm == Algorithm::Voting,
        );
        let keys = [
            ("sets", self.sets.is_some() && !maekawa, "has no voting sets; maekawa has"),
            ("tree", self.tree.is_some() && !raymond, "has no tree; raymond has"),
            ("voters", self.voters.is_some() && !voting, "has no voters; voting has"),
            ("votes", self.votes.is_some() && !voting, "counts no votes; voting does"),
            ("ask_all", self.ask_all && !voting, "asks no voters; voting does"),
            ("back_off", self.back_off.is_some() && !voting, "does not back off; voting does"),
            (
                "leader",
                self.leader.is_some() && !has_first,
                "has neither a coordinator nor a token, so there is nothing to begin at this member; leave it out",
            ),
        ];
        match keys.into_iter().find(|(_, is, _)| *is) {
            Some((key, _, why)) => Err(ScenarioError::new(key, format!("{algorithm} {why}"))),
            None => Ok(()),
        }
    }

    fn check_faults_of_exclusion(&self, algorithm: Algorithm) -> Result<()> {
        let has_coordinator = matches!(algorithm, Algorithm::TokenRecovery | Algorithm::Sequencer);
        let is_of_election = |action: &Action| match action {
            Action::Campaign(_) => !has_coordinator,
            Action::Command { command, .. } => *command != AdminCommand::Snapshot,
            Action::Attributes { .. } | Action::Replace { .. } => true,
            _ => false,
        };
        match self.fault.iter().position(|fault| is_of_election(&fault.what)) {
            Some(index) => {
                let problem = format!("{algorithm} elects no leader, and this is about elections");
                Err(ScenarioError::new(format!("fault[{index}]"), problem))
            }
            None => Ok(()),
        }
    }

    /// The settings of mutual exclusion.
    pub(super) fn resolve_exclusion(
        &self,
        members: &Members,
        first: Option<NodeId>,
    ) -> Result<Settings> {
        let sets: Sets = self.sets.unwrap_or_default();
        sets.suits(members.len()).map_err(|problem| ScenarioError::new("sets", problem))?;
        let settings = Settings {
            first,
            sets,
            tree: self.tree.unwrap_or_default(),
            voters: self.voters,
            votes: self.votes,
            ask_all: self.ask_all,
            without: None,
            back_off: self.back_off.map(|model| {
                let range = model.range();
                Delay::between(Span::from_nanos(*range.start()), Span::from_nanos(*range.end()))
            }),
        };
        let voters = self.voters.map_or(members.len(), |voters| voters as usize);
        if voters == 0 || voters > members.len() {
            let problem = format!("{voters} of {} members cannot vote", members.len());
            return Err(ScenarioError::new("voters", problem));
        }
        let votes = settings.votes(members);
        if votes > voters || 2 * votes <= voters {
            let problem = format!(
                "{votes} of {voters} votes; use more than half of them, or two members could enter at once"
            );
            return Err(ScenarioError::new("votes", problem));
        }
        Ok(settings)
    }

    /// Who asks to enter, and how long it stays. By default the lowest live member asks once and stays for D.
    pub(super) fn resolve_requests(
        &self,
        members: &Members,
        dead: &[NodeId],
        bound: Span,
    ) -> Result<Requests> {
        let live = || members.iter().filter(|id| dead.binary_search(id).is_err());
        let who = match &self.requests {
            None => live().take(1).map(|id| (id, Span::ZERO)).collect(),
            Some(Initiators::None) => Vec::new(),
            Some(Initiators::All) => live().map(|id| (id, Span::ZERO)).collect(),
            Some(Initiators::Listed(listed)) => listed
                .iter()
                .map(|request| {
                    let id = member(members, "requests", request.member())?;
                    if dead.binary_search(&id).is_ok() {
                        let problem =
                            format!("{id} is dead from the beginning and cannot ask to enter");
                        return Err(ScenarioError::new("requests", problem));
                    }
                    Ok((id, request.at()))
                })
                .collect::<Result<Vec<_>>>()?,
        };
        let requests = Requests {
            who: who.into_iter().map(|(id, at)| (id, crate::time::Time::ZERO + at)).collect(),
            hold: self.hold.unwrap_or(DelayModel::Fixed(bound.as_nanos())),
            repeat: self.repeat.unwrap_or(1),
            think: self.think.unwrap_or(DelayModel::Fixed(0)),
        };
        if requests.repeat == 0 {
            return Err(ScenarioError::new(
                "repeat",
                "must be at least 1: so often each member asks",
            ));
        }
        if requests.count() > MOST_REQUESTS {
            let problem =
                format!("{} requests are too many; use at most {MOST_REQUESTS}", requests.count());
            return Err(ScenarioError::new("repeat", problem));
        }
        Ok(requests)
    }
}
