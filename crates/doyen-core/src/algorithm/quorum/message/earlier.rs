//! What the release before this one sent and stored, so that members can be upgraded one after the other.
//!
//! It knew neither pauses nor the reason of a RELEASE, sent no penalties with its heartbeats, and treated a shutdown like
//! a resignation. Its messages are read as if it knew nothing of these; messages to it leave them out. So a member that
//! has not been upgraded does not keep a pause, and its reports of its own failures do not count, because they name no
//! term.

use serde::{Deserialize, Serialize};

use crate::change::{self, Loss, TransferReason};
use crate::members::{Incarnation, NodeId, Term};
use crate::time::Span;

use super::{Answer, Round, Unreachable};
use crate::algorithm::quorum::{self, Drain, Preference};

/// A message of the release before.
#[derive(Serialize, Deserialize)]
pub(crate) struct Message {
    config: u32,
    term: Term,
    body: Body,
}

#[derive(Serialize, Deserialize)]
enum Body {
    PreVote { number: u32, rank: Rank, force: bool, takeover: Option<NodeId> },
    PreAnswer { number: u32, answer: Answer },
    Request { released: Option<Term> },
    Vote,
    Heartbeat(Heartbeat),
    Ack { round: Round, rank: Rank, unreachable: Unreachable },
    Nack,
    Preempt { rank: Rank },
    TimeoutNow { reason: TransferReason, preference: Option<Preference> },
    Release { successor: Option<NodeId> },
    Hello { incarnation: Incarnation, rejoins: bool },
    Welcome { incarnation: Incarnation, seen: Term, longest: Span, failures: u8 },
    Probe { rank: Rank, unreachable: Unreachable },
    Prefer { preference: Preference },
}

#[derive(Serialize, Deserialize)]
struct Heartbeat {
    round: Round,
    vote_lease: Span,
    rank: Rank,
    preference: Option<Preference>,
    reason: ElectionReason,
    unreachable: Unreachable,
}

#[derive(Serialize, Deserialize)]
struct Rank {
    eligible: bool,
    attr: i64,
    failures: u8,
    reserved: bool,
}

#[derive(Serialize, Deserialize)]
enum ElectionReason {
    Founded,
    Elected { after: Option<NodeId> },
    Transferred { by: NodeId, reason: TransferReason },
}

/// What a member of the release before stored.
#[derive(Serialize, Deserialize)]
pub(crate) struct Stored {
    term: Term,
    voted: Option<NodeId>,
    longest: Span,
    drained: Option<Drain>,
}

impl From<Stored> for quorum::Stored {
    fn from(Stored { term, voted, longest, drained }: Stored) -> Self {
        Self { term, voted, longest, drained, pause: None }
    }
}

impl From<Rank> for quorum::Rank {
    fn from(Rank { eligible, attr, .. }: Rank) -> Self {
        Self { eligible, attr, failures: 0, failed_in: Term::default() }
    }
}

impl From<quorum::Rank> for Rank {
    fn from(quorum::Rank { eligible, attr, failures, .. }: quorum::Rank) -> Self {
        Self { eligible, attr, failures, reserved: false }
    }
}

impl From<ElectionReason> for change::ElectionReason {
    fn from(reason: ElectionReason) -> Self {
        match reason {
            ElectionReason::Founded => Self::Founded,
            ElectionReason::Elected { after } => Self::Elected { after, cause: None },
            ElectionReason::Transferred { by, reason } => Self::Transferred { by, reason },
        }
    }
}

impl From<change::ElectionReason> for ElectionReason {
    fn from(reason: change::ElectionReason) -> Self {
        use change::ElectionReason as Now;
        match reason {
            Now::Founded => Self::Founded,
            Now::Elected { after, .. } => Self::Elected { after },
            Now::Transferred { by, reason } => Self::Transferred { by, reason: known(reason) },
        }
    }
}

/// The reason by a name that the release before knows.
fn known(reason: TransferReason) -> TransferReason {
    match reason {
        TransferReason::ShuttingDown => TransferReason::Resigned,
        other => other,
    }
}

impl From<Message> for quorum::Message {
    fn from(Message { config, term, body }: Message) -> Self {
        Self { config, term, pause: None, body: body.into() }
    }
}

impl From<quorum::Message> for Message {
    fn from(quorum::Message { config, term, body, .. }: quorum::Message) -> Self {
        Self { config, term, body: body.into() }
    }
}

impl From<Body> for quorum::Body {
    fn from(body: Body) -> Self {
        match body {
            Body::PreVote { number, rank, force, takeover } => {
                Self::PreVote { number, rank: rank.into(), force, takeover }
            }
            Body::PreAnswer { number, answer } => Self::PreAnswer { number, answer },
            Body::Request { released } => Self::Request { released },
            Body::Vote => Self::Vote,
            Body::Heartbeat(heartbeat) => Self::Heartbeat(quorum::Heartbeat {
                round: heartbeat.round,
                vote_lease: heartbeat.vote_lease,
                rank: heartbeat.rank.into(),
                preference: heartbeat.preference,
                reason: heartbeat.reason.into(),
                unreachable: heartbeat.unreachable,
                penalties: None,
            }),
            Body::Ack { round, rank, unreachable } => {
                Self::Ack { round, rank: rank.into(), unreachable }
            }
            Body::Nack => Self::Nack,
            Body::Preempt { rank } => Self::Preempt { rank: rank.into() },
            Body::TimeoutNow { reason, preference } => Self::TimeoutNow { reason, preference },
            // It released its followers for no other reason than a transfer, and did not say which.
            Body::Release { successor } => {
                Self::Release { successor, reason: Loss::Transferred(TransferReason::Resigned) }
            }
            Body::Hello { incarnation, rejoins } => Self::Hello { incarnation, rejoins },
            Body::Welcome { incarnation, seen, longest, failures } => {
                Self::Welcome { incarnation, seen, longest, failures }
            }
            Body::Probe { rank, unreachable } => Self::Probe { rank: rank.into(), unreachable },
            Body::Prefer { preference } => Self::Prefer { preference },
        }
    }
}

impl From<quorum::Body> for Body {
    fn from(body: quorum::Body) -> Self {
        use quorum::Body as Now;
        match body {
            Now::PreVote { number, rank, force, takeover } => {
                Self::PreVote { number, rank: rank.into(), force, takeover }
            }
            Now::PreAnswer { number, answer } => Self::PreAnswer { number, answer },
            Now::Request { released } => Self::Request { released },
            Now::Vote => Self::Vote,
            Now::Heartbeat(heartbeat) => Self::Heartbeat(Heartbeat {
                round: heartbeat.round,
                vote_lease: heartbeat.vote_lease,
                rank: heartbeat.rank.into(),
                preference: heartbeat.preference,
                reason: heartbeat.reason.into(),
                unreachable: heartbeat.unreachable,
            }),
            Now::Ack { round, rank, unreachable } => {
                Self::Ack { round, rank: rank.into(), unreachable }
            }
            Now::Nack => Self::Nack,
            Now::Preempt { rank } => Self::Preempt { rank: rank.into() },
            Now::TimeoutNow { reason, preference } => {
                Self::TimeoutNow { reason: known(reason), preference }
            }
            Now::Release { successor, .. } => Self::Release { successor },
            Now::Hello { incarnation, rejoins } => Self::Hello { incarnation, rejoins },
            Now::Welcome { incarnation, seen, longest, failures } => {
                Self::Welcome { incarnation, seen, longest, failures }
            }
            Now::Probe { rank, unreachable } => Self::Probe { rank: rank.into(), unreachable },
            Now::Prefer { preference } => Self::Prefer { preference },
        }
    }
}
