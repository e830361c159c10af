//! What a node says of itself and of the others: the snapshot that the loop publishes, the history, the counters.
//!
//! The loop owns the state; everybody else sees these. A [`Status`] is published at once when the view changes, and a
//! few times a second for what changes all the time (round trips, who was heard when).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use doyen_core::members::{Epoch, Incarnation, NodeId};
use doyen_core::protocol::Role;
use doyen_core::story::Change;
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
    /// Which life of this member: one more with every start.
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
    pub term: Epoch,
    /// Its lease, if it leads under one.
    pub lease: Option<Lease>,
    /// Why the leader leads, in words.
    pub why: Option<String>,
    /// Whether its operator does not want it to lead.
    pub drained: bool,
    /// Who the leader would rather have in its place, and for how long still.
    pub preference: Option<Preferred>,
    /// Who would lead next if the leader died now, as far as this member can tell.
    #[schema(value_type = Option<u32>)]
    pub next: Option<NodeId>,
    /// Who could lead, the best first, as this member sees it; the leader is in its place.
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

    /// Whether this node hears `member`: datagrams come from it, and the algorithm, which notices sooner, does not miss
    /// it. Itself it does.
    pub fn is_heard(&self, member: &MemberStatus) -> bool {
        let missed = self.member(self.id).is_some_and(|own| own.misses.contains(&member.id));
        member.heard && !missed
    }

    /// Whether `one` hears `other`, as far as this node knows: of the others it knows what they say, if they are heard
    /// themselves.
    pub fn hears(&self, one: &MemberStatus, other: &MemberStatus) -> Option<bool> {
        if one.id == self.id {
            Some(self.is_heard(other))
        } else {
            self.is_heard(one).then(|| !one.misses.contains(&other.id))
        }
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
    /// Whether it has been heard of late; true of the node itself.
    pub heard: bool,
    /// Whether it is ignored, for it is configured otherwise: with other members, or another algorithm.
    pub configured_otherwise: bool,
    /// How long ago it was last heard, in milliseconds.
    pub silent_ms: Option<u64>,
    /// The round-trip time, smoothed, in microseconds.
    pub rtt_us: Option<u64>,
    /// Whom this member says it does not hear.
    #[schema(value_type = Vec<u32>)]
    pub misses: Vec<NodeId>,
    /// Whether it may lead, as far as is known: no witness, not drained.
    pub eligible: bool,
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
    pub change: Change,
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
