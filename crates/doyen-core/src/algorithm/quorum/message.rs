//! The messages of a quorum.

pub(crate) mod earlier;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::change::{ElectionReason, Loss, TransferReason};
use crate::members::{Incarnation, NodeId, PeerSet, Term};
use crate::protocol::{self, AlgorithmMessage, Commitments, Family, Kind, Pledge};
use crate::time::Span;

use super::pause::Pause;
use super::penalty::Penalty;
use super::rank::{Preference, Rank};

/// The number of a heartbeat, which its acknowledgement repeats. It rises within a term.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Round(pub u64);

impl fmt::Debug for Round {
    /// The number alone: it is part of a timer's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Round {
    /// The round of a new leader's first heartbeat.
    pub const FIRST: Self = Self(1);

    /// The next round.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A message.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Message {
    /// The identifier of the sender's configuration: members with another ignore the message.
    pub config: u32,
    /// The sender's term.
    pub term: Term,
    /// The latest pause of elections that the sender knows of, over or not.
    pub pause: Option<Pause>,
    /// What it says.
    pub body: Body,
}

/// What a message says.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Body {
    /// "Would you vote for me, or agree that I take over?" Changes nothing at the receiver.
    PreVote {
        number: u32,
        rank: Rank,
        /// The sender has let higher-ranked members go first often enough.
        force: bool,
        /// The leader that the sender would take over from, if it asks for that.
        takeover: Option<NodeId>,
    },
    /// The answer to PRE-VOTE.
    PreAnswer { number: u32, answer: Answer },
    /// "I am a candidate in this term."
    Request {
        /// The term whose leader has released its followers from their vote leases.
        released: Option<Term>,
    },
    /// "You have my vote in this term."
    Vote,
    /// "I lead. Vote for no other member for a while."
    Heartbeat(Heartbeat),
    /// "I give you a vote lease."
    Ack { round: Round, rank: Rank, unreachable: Unreachable },
    /// "There is a later term."
    Nack,
    /// "I outrank you, and a majority agrees: transfer leadership."
    Preempt { rank: Rank },
    /// "I no longer lead. Campaign at once."
    TimeoutNow {
        reason: TransferReason,
        /// The operator's preference: the successor may not know the last change.
        preference: Option<Preference>,
    },
    /// "I no longer lead, and release you from your vote lease. I have told `successor` to campaign."
    Release { successor: Option<NodeId>, reason: Loss },
    /// "I have just started."
    Hello {
        incarnation: Incarnation,
        /// It has lost its disk and asks for every member's term.
        rejoins: bool,
    },
    /// The answer to HELLO.
    Welcome {
        incarnation: Incarnation,
        /// The latest term in which the other member was seen.
        seen: Term,
        /// The longest vote lease that the sender has given or asked for.
        longest: Span,
        /// The other member's recent failures as leader, which it may have forgotten.
        failures: u8,
    },
    /// A probe: shows that the sender is alive.
    Probe { rank: Rank, unreachable: Unreachable },
    /// "The operator prefers this member": to a new leader, which does not know.
    Prefer { preference: Preference },
}

/// The fields of a heartbeat.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Its number within the term.
    pub round: Round,
    /// The length of the vote lease that the leader asks for.
    pub vote_lease: Span,
    /// The leader's rank.
    pub rank: Rank,
    /// The operator's preference.
    pub preference: Option<Preference>,
    /// Why the leader leads.
    pub reason: ElectionReason,
    /// The members from which the leader receives nothing.
    pub unreachable: Unreachable,
    /// The penalties of all members; none if the leader runs an earlier release, which does not tell them.
    pub penalties: Option<Vec<(NodeId, Penalty)>>,
}

/// The answer to a pre-vote.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// "Yes."
    Yes,
    /// "No: I am bound, or your term is too old."
    No,
    /// "I have a higher rank, and campaign myself": the bully's OK.
    Higher,
}

/// The members from which a member receives nothing: none where probing is off.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Unreachable(pub Vec<NodeId>);

impl From<&PeerSet> for Unreachable {
    fn from(set: &PeerSet) -> Self {
        Self(set.iter().collect())
    }
}

impl AlgorithmMessage for Message {
    kinds! {
        Self { body: Body::PreVote { .. }, .. } => Kind::own("PRE-VOTE", Family::Ask, "asks whether the receiver would vote for the sender"),
        Self { body: Body::PreAnswer { .. }, .. } => Kind::own("PRE-ANSWER", Family::Answer, "answers a pre-vote: yes, no, or that a higher-ranked member campaigns"),
        Self { body: Body::Request { .. }, .. } => Kind::own("REQUEST", Family::Ask, "asks for the vote of a new term"),
        Self { body: Body::Vote, .. } => Kind::own("VOTE", Family::Answer, "gives the one vote of the term"),
        Self { body: Body::Heartbeat(Heartbeat { round: Round::FIRST, .. }), .. } => {
            Kind::own("COORDINATOR", Family::Announce, "announces the elected leader: its first heartbeat")
        },
        Self { body: Body::Ack { round: Round::FIRST, .. }, .. } => Kind::own("ACCEPT", Family::Answer, "acknowledges the first heartbeat and gives a vote lease"),
        Self { body: Body::Heartbeat { .. }, .. } => Kind::detector("HEARTBEAT", "says that the leader is up, and asks for a vote lease"),
        Self { body: Body::Ack { .. }, .. } => Kind::detector("ACK", "acknowledges a heartbeat and gives a vote lease"),
        Self { body: Body::Nack, .. } => Kind::own("NACK", Family::Refuse, "refuses what is of an earlier term, and names the later one"),
        Self { body: Body::Preempt { .. }, .. } => Kind::own("PREEMPT", Family::HandOver, "asks the leader for a transfer to the sender, which ranks higher"),
        Self { body: Body::TimeoutNow { .. }, .. } => Kind::own("TIMEOUT-NOW", Family::HandOver, "tells the successor to campaign at once"),
        Self { body: Body::Release { .. }, .. } => Kind::own("RELEASE", Family::HandOver, "releases a follower from its vote lease"),
        Self { body: Body::Hello { .. }, .. } => Kind::detector("HELLO", "says that the sender has started, and asks what is known of it"),
        Self { body: Body::Welcome { .. }, .. } => Kind::detector("WELCOME", "answers a HELLO with the latest term in which the member was seen"),
        Self { body: Body::Probe { .. }, .. } => Kind::detector("PROBE", "says that the sender is up, and which members it does not reach"),
        Self { body: Body::Prefer { .. }, .. } => Kind::own("PREFER", Family::HandOver, "tells a new leader which member the operator prefers"),
    }

    fn commitments(&self) -> Commitments {
        let term = self.term;
        let pledge = match self.body {
            Body::Request { released } => {
                Some(Pledge::Candidacy { term, succeeds: released.is_some() })
            }
            Body::Vote => Some(Pledge::Vote { term }),
            Body::Ack { .. } => Some(Pledge::VoteLease { term }),
            Body::TimeoutNow { .. } | Body::Release { .. } => Some(Pledge::Release { term }),
            _ => None,
        };
        let requested = match self.body {
            Body::Heartbeat(Heartbeat { vote_lease, .. }) => Some(vote_lease),
            _ => None,
        };
        let released = match self.body {
            Body::TimeoutNow { .. } | Body::Release { .. } => Some(term),
            Body::Request { released } => released,
            _ => None,
        };
        Commitments { pledge, requested, released }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} term={}", protocol::name_of(self), self.term)?;
        if let Some(Pause { left, .. }) = self.pause.filter(|pause| pause.left > Span::ZERO) {
            write!(f, " paused={left}")?;
        }
        match &self.body {
            Body::PreVote { rank, force, takeover, .. } => {
                write!(f, "{rank}")?;
                write_member(f, "from", *takeover)?;
                if *force { f.write_str(" force") } else { Ok(()) }
            }
            Body::PreAnswer { answer, .. } => write!(f, " {answer}"),
            Body::Request { released: Some(term) } => write!(f, " released={term}"),
            Body::Heartbeat(Heartbeat { round, rank, preference, unreachable, .. }) => {
                write!(f, " round={}{rank}", round.0)?;
                write_preference(f, *preference)?;
                unreachable.fmt(f)
            }
            Body::Ack { round, rank, unreachable } => {
                write!(f, " round={}{rank}{unreachable}", round.0)
            }
            Body::Release { successor, .. } => write_member(f, "successor", *successor),
            Body::TimeoutNow { reason, preference } => {
                write!(f, " {reason}")?;
                write_preference(f, *preference)
            }
            Body::Hello { incarnation, rejoins } => {
                let rejoins = if *rejoins { " rejoins" } else { "" };
                write!(f, " incarnation={}{rejoins}", incarnation.0)
            }
            Body::Welcome { incarnation, seen, failures, .. } => {
                write!(f, " incarnation={} seen={seen}", incarnation.0)?;
                if *failures > 0 { write!(f, " failures={failures}") } else { Ok(()) }
            }
            Body::Preempt { rank } => rank.fmt(f),
            Body::Prefer { preference } => write_preference(f, Some(*preference)),
            Body::Probe { rank, unreachable } => write!(f, "{rank}{unreachable}"),
            Body::Request { released: None } | Body::Vote | Body::Nack => Ok(()),
        }
    }
}

impl fmt::Display for Unreachable {
    /// ` unreachable=1,2`, or nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, id) in self.0.iter().enumerate() {
            write!(f, "{}{id}", if index == 0 { " unreachable=" } else { "," })?;
        }
        Ok(())
    }
}

fn write_preference(f: &mut fmt::Formatter<'_>, preference: Option<Preference>) -> fmt::Result {
    write_member(f, "prefer", preference.map(|preference| preference.member))
}

/// Writes ` name=3`, or nothing.
fn write_member(f: &mut fmt::Formatter<'_>, name: &str, id: Option<NodeId>) -> fmt::Result {
    id.map_or(Ok(()), |id| write!(f, " {name}={id}"))
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Higher => "higher",
        })
    }
}
