//! The status of a node: the snapshot that the loop publishes, and entries of the history.
//!
//! A [`Status`] is published at once when the view changes, and a few times a second for values that change all the time
//! (round-trip times, when a member was last seen).

mod detour;
mod sentences;
mod takeover;

use std::fmt;
use std::time::Duration;

use doyen_core::change::LeaderChange;
use doyen_core::members::{Incarnation, NodeId, PeerSet, Term};
use doyen_core::protocol::{Role, View};
use serde::{Deserialize, Serialize};

use super::inspect::Diagnostics;
use super::network::{Network, canonical};
use super::wire::Rejection;
use crate::clock::Moment;
use crate::config::Settings;

pub use detour::{Detour, still_reach};
pub(in crate::node) use sentences::CONFIGURATION_DIFFERS;
pub(crate) use sentences::seconds;
pub use takeover::PreemptionRules;

/// What a node knows about itself and the cluster. Clients also read the names that earlier versions used.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct Status {
    /// The name of the cluster.
    pub cluster: String,
    /// The name of the algorithm.
    pub algorithm: String,
    /// The version of the program.
    pub version: String,
    /// A number for its member list, its algorithm and the lease of its groups, the same on all members that can work together.
    #[serde(default)]
    pub configuration: String,
    /// The fingerprints of its keys: it seals with the first, and opens with all of them. Without a key file, that
    /// of the public key.
    #[serde(default)]
    pub keys: Vec<String>,
    /// The id of this member.
    #[cfg_attr(feature = "http", schema(value_type = u32))]
    pub id: NodeId,
    /// The name of this member.
    pub name: String,
    /// How many times this member has started.
    #[cfg_attr(feature = "http", schema(value_type = u32))]
    pub incarnation: Incarnation,
    /// Its role: `follower`, `candidate`, `leader`, or `retiring` while it transfers leadership.
    #[cfg_attr(feature = "http", schema(value_type = String))]
    pub role: Role,
    /// The leader that it follows; itself, if it leads.
    #[cfg_attr(feature = "http", schema(value_type = Option<u32>))]
    pub leader: Option<NodeId>,
    /// The leader that it knew last, while it knows none.
    #[serde(default)]
    pub last_leader: Option<LastLeader>,
    /// The term. A later leader has a higher term.
    #[cfg_attr(feature = "http", schema(value_type = u64))]
    pub term: Term,
    /// Its lease, if it leads under one.
    pub lease: Option<Lease>,
    /// How long something has run under its lease that a transfer of leadership waits for, in milliseconds: a command of
    /// `doyen run`, a hook, or the work of a program. Null if nothing does.
    #[serde(default)]
    pub work_ms: Option<u64>,
    /// How long it has been about to transfer leadership, in milliseconds: its role is `retiring`. Null if it is not.
    #[serde(default)]
    pub retiring_ms: Option<u64>,
    /// The member that it is about to transfer leadership to, if that was named; null where the highest-ranked will be chosen.
    #[serde(default)]
    #[cfg_attr(feature = "http", schema(value_type = Option<u32>))]
    pub named_successor: Option<NodeId>,
    /// Who told the leader to give up leadership, while it still leads. Null if nobody did, or this member was not told.
    #[serde(default)]
    pub moved_by: Option<String>,
    /// What it runs under its lease, and what fails of that; null of an older release.
    #[serde(default)]
    pub job: Option<Job>,
    /// Why its history cannot be written, as text; null if it can.
    #[serde(default)]
    pub history_problem: Option<String>,
    /// Why the leader leads, as text.
    pub why: Option<String>,
    /// Whether it has lost its state and waits for an answer from every other member.
    pub rejoining: bool,
    /// Whether an operator has drained it: it leads only if no other member can.
    pub drained: bool,
    /// How much longer it is drained, in milliseconds; null if it is not, or until `undrain`.
    pub drained_remaining_ms: Option<u64>,
    /// Whether it does not lead even if every other eligible member is drained.
    #[serde(default)]
    pub never_leads: bool,
    /// The member that an operator prefers as leader, if any.
    pub preference: Option<Preferred>,
    /// The pause of elections, if an operator has paused them: no member campaigns, except by a transfer.
    #[serde(default)]
    pub pause: Option<Paused>,
    /// By which rules a member that ranks above the leader takes over, as this member has them; null if it has none, and of
    /// an older release.
    #[serde(default)]
    pub preemption: Option<PreemptionRules>,
    /// A node that is not on this node's member list and has sent it something lately; null if there is none.
    #[serde(default)]
    pub stranger: Option<Stranger>,
    /// The next leader if the leader transferred leadership now, as far as this member knows: the first of the succession that
    /// it reaches and that reaches a majority without the leader. After a failure another one may be faster.
    #[cfg_attr(feature = "http", schema(value_type = Option<u32>))]
    pub next: Option<NodeId>,
    /// The eligible members by rank, the highest first, as this member sees them, whether reachable or not. It includes
    /// the leader.
    #[serde(alias = "line")]
    #[cfg_attr(feature = "http", schema(value_type = Vec<u32>))]
    pub succession: Vec<NodeId>,
    /// All members, by id.
    pub members: Vec<MemberStatus>,
    /// How long it takes until members have told each other that one is unreachable, in milliseconds; 0 if they do not report
    /// that, and of an older release.
    #[serde(default)]
    pub learns_within_ms: u64,
    /// When the loop published it, by this machine's clock. Clients do not get it.
    #[serde(skip)]
    pub taken_at: Moment,
}

/// A node that has the key of the cluster and is on no list of members here. What it sends is dropped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct Stranger {
    /// The id that it claims.
    #[cfg_attr(feature = "http", schema(value_type = u32))]
    pub id: NodeId,
    /// The address from which its last datagram came.
    pub address: String,
}

/// The leader that a node knew last.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct LastLeader {
    /// The leader; the node itself, if it led.
    #[cfg_attr(feature = "http", schema(value_type = u32))]
    pub member: NodeId,
    /// The term in which it led.
    #[cfg_attr(feature = "http", schema(value_type = u64))]
    pub term: Term,
    /// How long ago the node last received from it as the leader, or last led itself, in milliseconds.
    pub last_heard_ms: u64,
    /// What it did, as text, if it reported that it no longer leads, or its guardian did: `died and its guardian released
    /// the lease`. Null if it only became unreachable.
    #[serde(default)]
    pub lost: Option<String>,
}

/// A lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct Lease {
    /// Its deadline, in nanoseconds since this machine booted: comparable on this machine only. A transfer of leadership
    /// may end it sooner, so it is for display; a program that acts as the leader needs a permit of the library.
    pub until: u64,
    /// The time until the deadline when this was written, in milliseconds.
    pub remaining_ms: u64,
}

impl Lease {
    /// The lease with this deadline, as of `now`.
    pub(crate) fn new(deadline: Moment, now: Moment) -> Self {
        let remaining_ms = deadline.since(now).as_millis() as u64;
        Self { until: deadline.as_nanos(), remaining_ms }
    }
}

/// What `doyen run` and the hooks of a node do under its lease: for display, never for decisions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct Job {
    /// Whether a command runs while this member leads (`doyen run`).
    pub command: bool,
    /// The last failure, until what failed succeeds; a command has if it runs for ten seconds.
    pub failure: Option<JobFailure>,
}

/// A failure of what runs under the lease of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct JobFailure {
    /// What failed.
    pub of: JobPart,
    /// What went wrong, as text: with the exit code, if there is one.
    pub text: String,
    /// How many times in a row it has failed.
    pub times: u32,
}

/// A part of what runs under the lease of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub enum JobPart {
    /// `hooks.leader`, or the start of the command.
    Start,
    /// The command.
    Command,
    /// `hooks.not_leader`, for whose success a lease waits.
    NotLeader,
}

impl Job {
    /// Something has failed once more.
    pub fn fail(&mut self, of: JobPart, text: String) {
        let before =
            self.failure.as_ref().filter(|last| last.of == of).map_or(0, |last| last.times);
        self.failure = Some(JobFailure { of, text, times: before.saturating_add(1) });
    }

    /// Something has succeeded.
    pub fn succeed(&mut self, of: JobPart) {
        self.failure.take_if(|last| last.of == of);
    }
}

impl fmt::Display for JobFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.times {
            1 => f.write_str(&self.text),
            times => write!(f, "{}, {times} times in a row", self.text),
        }
    }
}

/// A preference of an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct Preferred {
    /// The preferred member.
    #[cfg_attr(feature = "http", schema(value_type = u32))]
    pub member: NodeId,
    /// How much longer it is preferred, in milliseconds.
    pub remaining_ms: u64,
}

/// A pause of elections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct Paused {
    /// Its number. A later pause, or its end, has a higher one.
    pub number: u64,
    /// The member that accepted the command.
    #[cfg_attr(feature = "http", schema(value_type = u32))]
    pub by: NodeId,
    /// How much longer it lasts, in milliseconds, if no operator ends it.
    pub remaining_ms: u64,
}

/// The role of a member, as far as a node knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub enum MemberRole {
    /// It leads.
    Leader,
    /// It follows the leader.
    Follower,
    /// It has no leader, and campaigns when it is its turn.
    Candidate,
    /// It votes and never leads.
    Witness,
    /// It leads only if no other member can.
    Drained,
    /// It is unreachable, and no member that this node reaches reports that it reaches it.
    Down,
    /// This node cannot tell: it reaches no other member, only others reach this one, or it rejects what this one sends.
    #[default]
    Unknown,
}

impl fmt::Display for MemberRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leader => "leader",
            Self::Follower => "follower",
            Self::Candidate => "candidate",
            Self::Witness => "witness",
            Self::Drained => "drained",
            Self::Down => "down",
            Self::Unknown => "unknown",
        })
    }
}

/// What a node knows about a member.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct MemberStatus {
    /// Its id.
    #[cfg_attr(feature = "http", schema(value_type = u32))]
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// Its configured address.
    pub address: String,
    /// The address that its datagrams come from, once one has arrived.
    #[serde(alias = "seen_at")]
    pub observed_address: Option<String>,
    /// Its role.
    #[serde(default)]
    pub role: MemberRole,
    /// Its attribute, as it last reported it: the highest leads.
    pub priority: i64,
    /// Whether it votes and never leads.
    pub witness: bool,
    /// Whether this node reaches it: it has sent something since this node started, its configuration matches, and it has
    /// not become silent. True for the node itself.
    #[serde(alias = "heard")]
    pub reachable: bool,
    /// Whether it is ignored because its member list, its algorithm or the lease of its groups differs from this node's.
    #[serde(alias = "configured_otherwise")]
    pub config_mismatch: bool,
    /// Why this node rejects the datagrams that arrive from its address, if that is why it is unreachable: `key`,
    /// `version`, `cluster` or `configuration`.
    #[serde(default)]
    pub rejected: Option<String>,
    /// How long this node has not reached it, in milliseconds; null if it reaches it.
    #[serde(default)]
    pub unreachable_ms: Option<u64>,
    /// Whether its datagrams still arrive although it is unreachable: it does not answer what this node sends.
    #[serde(default)]
    pub arrives: bool,
    /// How long ago its last datagram arrived, in milliseconds.
    #[serde(alias = "silent_ms")]
    pub last_seen_ms: Option<u64>,
    /// The smoothed round-trip time, in microseconds.
    pub rtt_us: Option<u64>,
    /// The members that it reports as unreachable; null if it is unreachable itself, or does not report that.
    #[serde(alias = "misses")]
    #[cfg_attr(feature = "http", schema(value_type = Option<Vec<u32>>))]
    pub unreachable: Option<Vec<NodeId>>,
    /// Whether it may lead, as far as this node knows: it is neither a witness nor drained.
    pub eligible: bool,
    /// Its penalty: how many recent failures as leader count against it. It ranks behind members with fewer, whatever
    /// its priority, until they decay.
    #[serde(alias = "losses")]
    pub recent_failures: u8,
    /// How much longer the latest of these failures counts, in milliseconds, as the leader counts it; null while it is only
    /// suspected.
    #[serde(default)]
    pub penalty_remaining_ms: Option<u64>,
    /// How long ago the last of these failures was, in milliseconds; null where that is not known.
    #[serde(default)]
    pub failed_ms_ago: Option<u64>,
    /// What an operator should know about it, as text. Of the node itself: that it rejoins, is drained, that elections are
    /// paused, that a transfer waits for its job, what fails of what it runs, and that its history cannot be written. Of
    /// another member: why this node rejects what arrives from it.
    #[serde(default)]
    pub notices: Vec<String>,
}

/// A change of leadership that this node took part in or learned of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct Entry {
    /// Its number; numbers rise by one.
    pub number: u64,
    /// When it happened, by this machine's wall clock, in milliseconds since 1970: for display, never for decisions.
    pub at_unix_ms: u64,
    /// When it happened, in microseconds since this machine booted: comparable on this machine only, and until it boots
    /// again.
    #[serde(default)]
    pub at_boot_us: u64,
    /// The change, for programs.
    #[cfg_attr(feature = "http", schema(value_type = Object))]
    pub change: LeaderChange,
    /// The change and its reason, as text.
    pub text: String,
    /// Which start of the member recorded it, as its incarnation.
    #[serde(default)]
    #[cfg_attr(feature = "http", schema(value_type = u32))]
    pub incarnation: Incarnation,
    /// How long no lease was valid before this one began, in microseconds, where this node knows it.
    #[serde(alias = "dead_air_us")]
    pub downtime_us: Option<u64>,
    /// How long this node campaigned until its first lease began, in microseconds, if it became leader.
    #[serde(default)]
    pub campaign_us: Option<u64>,
}

impl Status {
    /// What is known before anything has happened.
    pub(super) fn initial(settings: &Settings) -> Self {
        let members = settings.members.iter().map(|member| MemberStatus {
            id: member.id,
            name: member.name.clone(),
            address: member.address.clone(),
            observed_address: None,
            role: MemberRole::Unknown,
            priority: member.priority,
            witness: member.witness,
            reachable: member.id == settings.me,
            config_mismatch: false,
            rejected: None,
            unreachable_ms: None,
            arrives: false,
            last_seen_ms: None,
            rtt_us: None,
            unreachable: None,
            eligible: !member.witness,
            recent_failures: 0,
            penalty_remaining_ms: None,
            failed_ms_ago: None,
            notices: Vec::new(),
        });
        Self {
            cluster: settings.cluster.clone(),
            algorithm: settings.algorithm.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            configuration: format!("{:08x}", settings.configuration_id()),
            keys: Vec::new(),
            id: settings.me,
            name: settings.own().name.clone(),
            incarnation: Incarnation::default(),
            role: Role::Follower,
            leader: None,
            last_leader: None,
            term: Term::default(),
            lease: None,
            work_ms: None,
            retiring_ms: None,
            named_successor: None,
            moved_by: None,
            job: None,
            history_problem: None,
            why: None,
            rejoining: false,
            drained: false,
            drained_remaining_ms: None,
            never_leads: false,
            preference: None,
            pause: None,
            preemption: None,
            stranger: None,
            next: None,
            succession: Vec::new(),
            members: members.collect(),
            learns_within_ms: 0,
            taken_at: Moment::now(),
        }
    }

    /// The leader and the lease.
    pub(super) fn set_view(&mut self, view: View, lease_deadline: Option<Moment>) {
        (self.role, self.leader, self.term) = (view.role, view.leader, view.term);
        self.lease = lease_deadline.map(|deadline| Lease::new(deadline, Moment::now()));
    }

    /// What the algorithm knows.
    pub(super) fn set_diagnostics(&mut self, diagnostics: Diagnostics, reachable: &PeerSet) {
        let millis = |left: Duration| left.as_millis() as u64;
        self.drained = diagnostics.drained;
        self.never_leads = diagnostics.never_leads;
        self.drained_remaining_ms = diagnostics.drain_remaining.map(millis);
        self.preference = diagnostics
            .preference
            .map(|(member, left)| Preferred { member, remaining_ms: left.as_nanos() / 1_000_000 });
        self.pause = diagnostics.pause.map(|pause| Paused {
            number: pause.given.0,
            by: pause.given.1,
            remaining_ms: diagnostics.pause_remaining.map_or(0, millis),
        });
        self.preemption = diagnostics.preemption;
        self.learns_within_ms = millis(diagnostics.learns_within);
        self.next = diagnostics.next;
        self.named_successor = diagnostics.pending_transfer.and_then(|(_, successor)| successor);
        self.succession = diagnostics.succession;
        for member in &mut self.members {
            let Some(info) = diagnostics.members.get(&member.id) else { continue };
            member.priority = info.attribute;
            member.eligible = info.eligible;
            member.recent_failures = info.recent_failures;
            member.failed_ms_ago = info.penalty.and_then(|(ago, _)| ago).map(millis);
            member.penalty_remaining_ms = info.penalty.map(|(_, left)| millis(left));
            // What another member reports counts only while it is reachable itself.
            member.unreachable = info.unreachable.clone().filter(|_| reachable.contains(member.id));
        }
    }

    /// What the network knows. This node's own entry lists the members that it does not reach.
    pub(super) fn set_network(&mut self, network: &Network, reachable: &PeerSet) {
        let now = Moment::now();
        let ids = self.members.iter().map(|member| member.id);
        let unreachable: Vec<NodeId> = ids.filter(|&id| !reachable.contains(id)).collect();
        let stranger = network.stranger(now);
        self.stranger = stranger.map(|(id, address)| Stranger { id, address: canonical(address) });
        for member in &mut self.members {
            member.reachable = reachable.contains(member.id);
            if member.id == self.id {
                member.unreachable = Some(unreachable.clone());
            }
            let Some(peer) = network.peer(member.id) else { continue };
            member.observed_address = peer.observed_address().map(canonical);
            let rejected = peer.rejected(now).filter(|_| !member.reachable);
            member.config_mismatch = rejected == Some(Rejection::Configuration);
            member.rejected = rejected.map(|reason| reason.name().to_owned());
            member.last_seen_ms = peer.last_seen.map(|at| now.since(at).as_millis() as u64);
            member.rtt_us = peer.round_trip.map(|trip| trip.as_micros() as u64);
        }
    }

    /// Since when members are unreachable.
    pub(super) fn set_unreachable_since(
        &mut self,
        network: &Network,
        lost_at: impl Fn(NodeId) -> Option<Moment>,
    ) {
        let now = Moment::now();
        for member in self.members.iter_mut().filter(|member| !member.reachable) {
            let lost_at = lost_at(member.id);
            let lasting = lost_at.map(|at| now.since(at).as_millis() as u64);
            member.unreachable_ms = Some(lasting.unwrap_or_default());
            let peer = network.peer(member.id).filter(|_| member.rejected.is_none());
            member.arrives = peer.zip(lost_at).is_some_and(|(peer, at)| peer.arrives(at, now));
        }
    }

    /// Derives the role and the notices of every member from everything else.
    pub(crate) fn derive(&mut self) {
        let derived = |it: &MemberStatus| (self.role_of(it), self.notices_of(it));
        let derived: Vec<_> = self.members.iter().map(derived).collect();
        for (member, (role, notices)) in self.members.iter_mut().zip(derived) {
            (member.role, member.notices) = (role, notices);
        }
    }

    fn notices_of(&self, member: &MemberStatus) -> Vec<String> {
        if member.id != self.id {
            return member.rejection().map(str::to_owned).into_iter().collect();
        }
        let failure = self.job_failure().map(ToString::to_string);
        let retires = self.work().filter(|_| self.role == Role::Retiring);
        let history = self.history_problem.clone();
        let own = [self.rejoin(), self.drain(), self.paused(), retires, failure, history];
        own.into_iter().flatten().collect()
    }

    fn role_of(&self, member: &MemberStatus) -> MemberRole {
        let is_own = member.id == self.id;
        let mut others = self.members.iter().filter(|it| it.id != self.id && it.reachable);
        match member {
            _ if self.leader == Some(member.id) => MemberRole::Leader,
            _ if self.rejoining => MemberRole::Unknown,
            MemberStatus { reachable: false, rejected: Some(_), .. } => MemberRole::Unknown,
            MemberStatus { reachable: false, .. } => {
                // A node that reaches no other member may be the one that is cut off.
                let is_alone = others.clone().next().is_none();
                let is_reached = others.any(|other| self.reaches(other, member) == Some(true));
                if is_alone || is_reached { MemberRole::Unknown } else { MemberRole::Down }
            }
            MemberStatus { witness: true, .. } => MemberRole::Witness,
            MemberStatus { eligible: false, .. } => MemberRole::Drained,
            _ if is_own && self.drained => MemberRole::Drained,
            _ if is_own && self.leader.is_none() => MemberRole::Candidate,
            _ if self.leader.is_some() => {
                let leader = self.leader.and_then(|leader| self.member(leader));
                match leader.and_then(|leader| self.reaches(member, leader)) {
                    Some(false) => MemberRole::Candidate,
                    _ => MemberRole::Follower,
                }
            }
            _ => self.last_leader.as_ref().map_or(MemberRole::Unknown, |last| {
                let leader = self.member(last.member).filter(|leader| leader.id != self.id);
                match leader.and_then(|leader| self.reaches(member, leader)) {
                    // It is reachable, and not as the leader.
                    _ if last.member == member.id => MemberRole::Candidate,
                    Some(true) => MemberRole::Follower,
                    Some(false) => MemberRole::Candidate,
                    None => MemberRole::Unknown,
                }
            }),
        }
    }

    /// The status of a member; none if there is no such member.
    pub fn member(&self, id: NodeId) -> Option<&MemberStatus> {
        self.members.iter().find(|member| member.id == id)
    }

    /// The name of a member; its id, if there is no such member.
    pub fn name_of(&self, id: NodeId) -> String {
        self.member(id).map_or_else(|| id.to_string(), |member| member.name.clone())
    }

    /// Whether `one` reaches `other`, as far as this node knows: other members report it, while they are reachable.
    pub fn reaches(&self, one: &MemberStatus, other: &MemberStatus) -> Option<bool> {
        if one.id == self.id {
            return Some(other.reachable);
        }
        let reported = one.unreachable.as_ref().filter(|_| one.reachable);
        reported.map(|unreachable| !unreachable.contains(&other.id))
    }
}
