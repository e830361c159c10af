//! What a node says of itself and of the others: the snapshot that the loop publishes, the history, the counters.
//!
//! The loop owns the state; everybody else sees these. A [`Status`] is published at once when the view changes, and a
//! few times a second for what changes all the time (round trips, who was heard when).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doyen_core::change::LeaderChange;
use doyen_core::members::{Incarnation, NodeId, Term};
use doyen_core::protocol::Role;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a node believes and knows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The cluster's name.
    pub cluster: String,
    /// The algorithm's name.
    pub algorithm: String,
    /// The version of the program.
    pub version: String,
    /// Which member this is.
    #[schema(value_type = u32)]
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// How often this member has started.
    #[schema(value_type = u32)]
    pub incarnation: Incarnation,
    /// What it does.
    #[schema(value_type = String)]
    pub role: Role,
    /// Whom it follows; itself, if it leads.
    #[schema(value_type = Option<u32>)]
    pub leader: Option<NodeId>,
    /// The term: later leaders have higher ones.
    #[schema(value_type = u64)]
    pub term: Term,
    /// Its lease, if it leads under one.
    pub lease: Option<Lease>,
    /// Why the leader leads, in words.
    pub why: Option<String>,
    /// Whether it has lost its state and takes no part before every other member has answered.
    pub rejoining: bool,
    /// Whether its operator does not want it to lead.
    pub drained: bool,
    /// For how much longer it is drained, in milliseconds; null if it is not, or until that is undone.
    pub drained_remaining_ms: Option<u64>,
    /// Whether it is drained for good: it does not even lead if every member that could is drained. Earlier programs do
    /// not say, since there such a drain is not known.
    #[serde(default)]
    pub never_leads: bool,
    /// Who the leader would rather have in its place, and for how long still.
    pub preference: Option<Preferred>,
    /// Who would lead next if the leader died now, as far as this member can tell: the first in line that it hears, and
    /// that reaches a majority without the leader.
    #[schema(value_type = Option<u32>)]
    pub next: Option<NodeId>,
    /// Who would lead, the best first, as this member sees it, whether heard or not; the leader is in its place.
    #[schema(value_type = Vec<u32>)]
    pub line: Vec<NodeId>,
    /// Everybody, in the order of their ids.
    pub members: Vec<MemberStatus>,
}

impl Status {
    /// What is known of a member; nothing if it is none.
    pub fn member(&self, id: NodeId) -> Option<&MemberStatus> {
        self.members.iter().find(|member| member.id == id)
    }

    /// What people call a member.
    pub fn name_of(&self, id: NodeId) -> String {
        self.member(id).map_or_else(|| id.to_string(), |member| member.name.clone())
    }

    /// That this node is drained and for how much longer, in words, if it is.
    pub fn drain(&self) -> Option<String> {
        let lasting = match self.drained_remaining_ms {
            // Rounded up: what is not over yet is not "0s".
            Some(left) => {
                let left = Duration::from_secs(left.div_ceil(1000));
                format!("for another {}", humantime::format_duration(left))
            }
            None => "until that is undone".to_owned(),
        };
        let so = match self.role {
            _ if self.never_leads => "it never leads",
            Role::Leader | Role::Retiring => "it leads because no other member can",
            Role::Follower | Role::Candidate => "it leads only if no other member can",
        };
        self.drained.then(|| format!("is drained {lasting}: {so}"))
    }

    /// That this node rejoins and for whom it waits, in words, if it does.
    pub fn rejoin(&self) -> Option<String> {
        let silent = self.members.iter().filter(|member| !member.heard);
        let names: Vec<&str> = silent.map(|member| &*member.name).collect();
        self.rejoining.then(|| {
            let names = names.join(", ");
            format!("has lost its state and rejoins: it waits for an answer from {names}")
        })
    }

    /// Whether `one` hears `other`, as far as this node knows: of the others it knows what they say, if they are heard
    /// themselves.
    pub fn hears(&self, one: &MemberStatus, other: &MemberStatus) -> Option<bool> {
        if one.id == self.id {
            return Some(other.heard);
        }
        one.misses.as_ref().filter(|_| one.heard).map(|misses| !misses.contains(&other.id))
    }
}

/// A lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    /// Its end, in nanoseconds since this machine booted: comparable on this machine only. A hand-over may end it
    /// sooner: it is for looking at, and a token of the library is for acting on.
    pub until: u64,
    /// How long it still ran when this was written, in milliseconds.
    pub remaining_ms: u64,
}

/// A preference of the operator's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Preferred {
    /// Who.
    #[schema(value_type = u32)]
    pub member: NodeId,
    /// For how long still, in milliseconds.
    pub remaining_ms: u64,
}

/// What a node knows of a member.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MemberStatus {
    /// Its id.
    #[schema(value_type = u32)]
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// Where it is configured to be.
    pub address: String,
    /// Where its datagrams come from, once it has been heard.
    pub seen_at: Option<String>,
    /// Its attribute, as last told: the highest leads.
    pub priority: i64,
    /// Whether it votes and never leads.
    pub witness: bool,
    /// Whether this node hears it: something has come from it since this node started, it is not configured otherwise,
    /// and it has not fallen silent. True of the node itself.
    pub heard: bool,
    /// Whether it is ignored, for it is configured otherwise: with other members, or another algorithm.
    pub configured_otherwise: bool,
    /// How long ago it was last heard, in milliseconds.
    pub silent_ms: Option<u64>,
    /// The round-trip time, smoothed, in microseconds.
    pub rtt_us: Option<u64>,
    /// Whom this member says it does not hear; null if it is not heard itself, or says nothing of that.
    #[schema(value_type = Option<Vec<u32>>)]
    pub misses: Option<Vec<NodeId>>,
    /// Whether it may lead, as far as is known: no witness, not drained.
    pub eligible: bool,
    /// How often it has lost its office of late without wanting to, as this node saw it: it ranks behind those with
    /// fewer losses, whatever its priority, until they are forgiven.
    pub losses: u8,
}

impl MemberStatus {
    /// What is held against it, in words, if anything is.
    pub fn penalty(&self) -> Option<String> {
        match self.losses {
            0 => None,
            1 => Some("lost its office once lately".to_owned()),
            2 => Some("lost its office twice lately".to_owned()),
            losses => Some(format!("lost its office {losses} times lately")),
        }
    }
}

/// A change that this node took part in or learnt of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Entry {
    /// Its number; they rise by one.
    pub number: u64,
    /// When, by this machine's wall clock, in milliseconds since 1970: for people, never for decisions.
    pub at_unix_ms: u64,
    /// What, as a machine reads it.
    #[schema(value_type = Object)]
    pub change: LeaderChange,
    /// What and why, in words.
    pub text: String,
    /// For how long nobody held a lease before this one began, in microseconds, where this node can tell.
    pub dead_air_us: Option<u64>,
}

/// What is counted. Every count only ever rises.
#[derive(Debug, Default)]
pub struct Counters {
    /// Datagrams sent.
    pub sent: AtomicU64,
    /// Bytes sent.
    pub sent_bytes: AtomicU64,
    /// Datagrams received, whatever they were.
    pub received: AtomicU64,
    /// Bytes received.
    pub received_bytes: AtomicU64,
    /// Datagrams that could not be sent.
    pub unsent: AtomicU64,
    /// Datagrams dropped, by reason, in the order of [`Rejection::ALL`](super::wire::Rejection::ALL).
    pub rejected: [AtomicU64; super::wire::Rejection::ALL.len()],
    /// Times that this node stored something.
    pub stored: AtomicU64,
    /// How long that took altogether, in microseconds.
    pub stored_us: AtomicU64,
    /// Times that this node began to lead.
    pub took_office: AtomicU64,
    /// Elections that this node began.
    pub elections: AtomicU64,
    /// Events handled.
    pub events: AtomicU64,
}

impl Counters {
    /// Raises one.
    pub fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }

    /// Reads one.
    pub fn read(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }

    /// How many datagrams were dropped, by the reason's name; reasons that did not occur are left out.
    pub fn rejections(&self) -> BTreeMap<&'static str, u64> {
        let counts = self.rejected.iter().map(Self::read);
        let named = super::wire::Rejection::ALL.iter().map(|reason| reason.name()).zip(counts);
        named.filter(|(_, count)| *count > 0).collect()
    }
}
