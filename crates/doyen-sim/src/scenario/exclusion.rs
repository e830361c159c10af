//! The keys of a scenario for mutual exclusion and for services, and the algorithms that they are for.

use doyen_core::config::Mode;
use doyen_core::config::exclusion::{Sets, Settings};
use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::AdminCommand;
use doyen_core::registry::{Algorithm, Purpose};
use doyen_core::time::{Delay, Span};

use super::parse::{Result, member};
use super::{Case, Initiators, Scenario, ScenarioError};
use crate::fault::{Action, Fault};
use crate::message::Change;
use crate::network::DelayModel;
use crate::world::Requests;

/// The most requests of a run: more entries than a person could look at.
const MOST_REQUESTS: u64 = 10_000_000;

impl Scenario {
    /// Rejects keys that mean nothing to `algorithm`: an election has no critical section, mutual exclusion has no
    /// leader, a service has neither.
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
            // Its leader is elected by a quorum, which has settings and faults of its own.
            Purpose::Excludes if algorithm.has_leases() => {
                let why =
                    "elects its leader by a quorum, which has nothing of the kind; leave this out";
                refuse(&of_elections[..4], format!("{algorithm} {why}"))?;
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

    /// Rejects keys of other algorithms of mutual exclusion.
    fn check_own_keys(&self, algorithm: Algorithm) -> Result<()> {
        let has_coordinator = matches!(
            algorithm,
            Algorithm::Centralised | Algorithm::LockService | Algorithm::Sequencer
        );
        let has_first = algorithm.elects() || algorithm.has_token() || has_coordinator;
        let (maekawa, raymond, voting, locks) = (
            algorithm == Algorithm::Maekawa,
            algorithm == Algorithm::Raymond,
            algorithm == Algorithm::Voting,
            algorithm == Algorithm::LockService,
        );
        let keys = [
            ("sets", self.sets.is_some() && !maekawa, "has no voting sets; maekawa has"),
            ("tree", self.tree.is_some() && !raymond, "has no tree; raymond has"),
            ("voters", self.voters.is_some() && !voting, "has no voters; voting has"),
            ("votes", self.votes.is_some() && !voting, "counts no votes; voting does"),
            ("ask_all", self.ask_all && !voting, "asks no voters; voting does"),
            ("back_off", self.back_off.is_some() && !voting, "does not back off; voting does"),
            (
                "grant",
                self.grant.is_some() && !locks,
                "has no grants that end by themselves; lock-service has",
            ),
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
        let is_of_election = |action: &Action| match action {
            Action::Campaign(_) => !algorithm.heeds_campaigns(),
            Action::Command { command, .. } => {
                !matches!(command, AdminCommand::Snapshot | AdminCommand::Tell { .. })
            }
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

    /// Whether members tell each other something. If so, they run an algorithm of mutual exclusion with no layer below
    /// it.
    pub(super) fn resolve_tells(&self, algorithm: Algorithm) -> Result<bool> {
        let Some(index) = self.fault.iter().position(Fault::is_tell) else { return Ok(false) };
        let is_alone = !self.reliable && self.detector.is_none() && !algorithm.has_leases();
        let takes_snapshot = self.fault.iter().any(Fault::is_snapshot);
        if algorithm.purpose() == Purpose::Excludes && is_alone && !takes_snapshot {
            return Ok(true);
        }
        let problem = "members tell each other something above an algorithm of mutual exclusion alone, without a link, a \
                       detector, a quorum or a snapshot; leave this out";
        Err(ScenarioError::new(format!("fault[{index}].tell"), problem))
    }

    /// The settings of mutual exclusion.
    pub(super) fn resolve_exclusion(
        &self,
        members: &Members,
        first: Option<NodeId>,
    ) -> Result<Settings> {
        let sets: Sets = self.sets.unwrap_or_default();
        sets.suits(members.len()).map_err(|problem| ScenarioError::new("sets", problem))?;
        let tree = self.tree.clone().unwrap_or_default();
        tree.suits(members).map_err(|problem| ScenarioError::new("tree", problem))?;
        if self.grant == Some(Span::ZERO) {
            return Err(ScenarioError::new("grant", "must be longer than 0"));
        }
        let settings = Settings {
            grant: self.grant,
            calls: None,
            first,
            sets,
            tree,
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

    /// The members that ask to enter, and how long they stay. By default the lowest live member asks once and stays for
    /// D.
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
                .enumerate()
                .map(|(index, request)| {
                    let key = format!("requests[{index}]");
                    let id = member(members, &key, request.member())?;
                    if dead.binary_search(&id).is_ok() {
                        let problem =
                            format!("{id} is dead from the beginning and cannot ask to enter");
                        return Err(ScenarioError::new(key, problem));
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

impl Case {
    /// Whether the algorithm of mutual exclusion, in this mode, claims to tolerate everything that goes wrong. A literal
    /// reading claims nothing, and neither does an algorithm on links that do not keep the order that it needs.
    pub fn is_tolerated(&self) -> bool {
        !matches!(self.mode(), Mode::Literal(_))
            && (self.network.fifo || !self.algorithm.needs_fifo())
            && self.tolerates_faults()
    }

    /// The same for its faults alone. All algorithms tolerate members that are slow.
    pub fn tolerates_faults(&self) -> bool {
        let network = &self.network;
        let tolerates_copies = self.reliable || self.config.hardened();
        let tolerates = |action: &Action| match *action {
            Action::Crash { member, .. } => self.tolerates_crash_of(member),
            // A detector considers a slow member to be down.
            Action::Pause { .. } => self.detector.is_none(),
            Action::Clock { .. } => self.detector.is_none() && !self.algorithm.has_leases(),
            Action::Campaign(_) => true,
            Action::Command { command: AdminCommand::Tell { .. }, .. } => true,
            _ => false,
        };
        let is_harmless = |change: &Change| match change {
            Change::Delay(_) => true,
            Change::Double(_) => tolerates_copies,
            Change::Drop => false,
        };
        self.chaos.is_none()
            && (network.loss == 0.0 || self.reliable)
            && (network.duplication == 0.0 || tolerates_copies)
            && network.links.is_empty()
            && self.dead.iter().all(|&id| self.tolerates_crash_of(id))
            && self.faults.iter().all(|fault| tolerates(&fault.what))
            && self.changes.iter().all(|change| is_harmless(&change.change))
            && self.leaves_enough()
    }

    /// Whether the others enter as before if this member crashes: it asks for nothing, and they do not need it.
    pub fn tolerates_crash_of(&self, member: NodeId) -> bool {
        let members = self.members();
        let settings = &self.config.exclusion;
        let asks = self.requests.iter().any(|it| it.who.iter().any(|(id, _)| id == member));
        match self.algorithm {
            _ if asks => false,
            Algorithm::Centralised => member != settings.first.unwrap_or_else(|| members.highest()),
            Algorithm::Voting => settings.ask_all,
            Algorithm::SuzukiKasami => member != settings.first.unwrap_or_else(|| members.at(0)),
            Algorithm::Raymond => {
                let at = members.position(member).unwrap_or_default();
                let others = (0..members.len()).filter(|&other| other != at);
                let mut hops = others.map(|other| settings.tree.next_hop(at, other, members));
                let first = hops.next();
                let is_leaf = hops.all(|hop| Some(hop) == first);
                is_leaf && member != settings.first.unwrap_or_else(|| members.at(0))
            }
            _ => false,
        }
    }

    /// Whether enough members stay up: a member, and voters for the votes that are needed.
    fn leaves_enough(&self) -> bool {
        let mut down = self.dead.clone();
        down.extend(self.faults.iter().filter_map(|fault| match fault.what {
            Action::Crash { member, .. } => Some(member),
            _ => None,
        }));
        let members = self.members();
        let settings = &self.config.exclusion;
        let is_up = |id: &NodeId| !down.contains(id);
        match self.algorithm {
            Algorithm::Voting => {
                let voters = settings.asked_voters(members).filter(is_up).count();
                voters >= settings.votes(members)
            }
            _ => members.iter().any(|id| is_up(&id)),
        }
    }
}
