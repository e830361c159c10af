//! What the members of a quorum say to each other.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::members::{Epoch, Incarnation, NodeId, PeerSet};
use crate::protocol::{self, Kind, Pledge, varint_len};
use crate::story::{Cause, Why};
use crate::time::Span;

use super::standing::{Merit, Preference};

/// A heartbeat's number, which its acknowledgement repeats. Monotone within a term.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Round(pub u64);

impl fmt::Debug for Round {
    /// The number alone: it is read as part of a timer's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Round {
    /// That of the heartbeat with which a leader takes office.
    pub const FIRST: Self = Self(1);

    /// The one after it.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A message.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Message {
    /// The number of the sender's configuration: others ignore it.
    pub config: u32,
    /// The sender's term.
    pub term: Epoch,
    /// What it says.
    pub body: Body,
}

/// What a message says.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Body {
    /// "May I stand for election? Or take over?" Changes nothing at anybody.
    PreVote {
        /// Which question of the asker's.
        number: u32,
        /// How good it is.
        merit: Merit,
        /// It has let better members go first, in vain.
        force: bool,
        /// From whom it would take over, if that one leads.
        takeover: Option<NodeId>,
    },
    /// The answer.
    PreAnswer {
        /// Which question is answered.
        number: u32,
        /// What the answer is.
        answer: Answer,
    },
    /// "I stand in this term."
    Request {
        /// The term whose leader has released its followers from their promises.
        released: Option<Epoch>,
    },
    /// "You have my vote of this term."
    Vote,
    /// "I lead, and ask you to follow nobody else for a while."
    Heartbeat {
        /// Its number.
        round: Round,
        /// For how long.
        promise: Span,
        /// How good the leader is.
        merit: Merit,
        /// Whom the operator prefers.
        preference: Option<Preference>,
        /// Why it leads.
        why: Why,
        /// Whom it does not hear.
        misses: Misses,
    },
    /// "I promise."
    Ack {
        /// The number of the heartbeat.
        round: Round,
        /// How good the follower is.
        merit: Merit,
        /// Whom it does not hear.
        misses: Misses,
    },
    /// "There has been a later term."
    Nack,
    /// "I am better than you, and a majority knows."
    Preempt {
        /// How good it is.
        merit: Merit,
    },
    /// "I lead no longer. Stand now."
    TimeoutNow {
        /// Why.
        cause: Cause,
        /// Whom the operator prefers: the heir may not have heard of the last change.
        preference: Option<Preference>,
    },
    /// "I lead no longer, and release you from your promise."
    Release {
        /// Whom it has asked to stand.
        heir: Option<NodeId>,
    },
    /// "I have just come up."
    Hello {
        /// In which of its lives it asks.
        life: Incarnation,
        /// It has lost its disk and asks for everybody's term.
        rejoins: bool,
    },
    /// The answer.
    Welcome {
        /// In which of its lives the other asked.
        life: Incarnation,
        /// The latest term in which the other was heard.
        seen: Epoch,
        /// The longest promise that the answerer has given or asked for.
        longest: Span,
        /// How often the other has failed as a leader, as far as that counts against it: it may have forgotten.
        losses: u8,
    },
    /// "I am here, and do not hear these."
    Probe {
        /// How good it is.
        merit: Merit,
        /// Whom it does not hear.
        misses: Misses,
    },
    /// "The operator prefers this member": to a new leader, which does not know.
    Prefer {
        /// Whom, and for how much longer.
        preference: Preference,
    },
}

/// The answer to a question.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// "You may."
    Yes,
    /// "No: I have promised to follow another, or your term is too old."
    No,
    /// "I am better, and stand myself": the bully's OK.
    Higher,
}

/// Whom a member does not hear: nobody if that is not looked after.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Misses(pub Vec<NodeId>);

impl From<&PeerSet> for Misses {
    fn from(set: &PeerSet) -> Self {
        Self(set.iter().collect())
    }
}

/// The kinds, in the order in which those that arrive at the same instant are handled.
pub const KINDS: &[Kind] = &[
    Kind::election("PRE-VOTE"),
    Kind::election("PRE-ANSWER"),
    Kind::election("REQUEST"),
    Kind::election("VOTE"),
    Kind::election("COORDINATOR"),
    Kind::election("ACCEPT"),
    Kind::detector("HEARTBEAT"),
    Kind::detector("ACK"),
    Kind::election("NACK"),
    Kind::election("PREEMPT"),
    Kind::election("TIMEOUT-NOW"),
    Kind::election("RELEASE"),
    Kind::detector("HELLO"),
    Kind::detector("WELCOME"),
    Kind::detector("PROBE"),
    Kind::election("PREFER"),
];

impl Message {
    /// Which of [`KINDS`] it is.
    pub(super) fn index(&self) -> usize {
        match self.body {
            Body::PreVote { .. } => 0,
            Body::PreAnswer { .. } => 1,
            Body::Request { .. } => 2,
            Body::Vote => 3,
            Body::Heartbeat { round: Round::FIRST, .. } => 4,
            Body::Ack { round: Round::FIRST, .. } => 5,
            Body::Heartbeat { .. } => 6,
            Body::Ack { .. } => 7,
            Body::Nack => 8,
            Body::Preempt { .. } => 9,
            Body::TimeoutNow { .. } => 10,
            Body::Release { .. } => 11,
            Body::Hello { .. } => 12,
            Body::Welcome { .. } => 13,
            Body::Probe { .. } => 14,
            Body::Prefer { .. } => 15,
        }
    }
}

impl protocol::Message for Message {
    fn kind(&self) -> Kind {
        KINDS[self.index()]
    }

    fn pledge(&self) -> Option<Pledge> {
        let term = self.term;
        match self.body {
            Body::Request { .. } => Some(Pledge::Candidacy { term }),
            Body::Vote => Some(Pledge::Vote { term }),
            Body::Ack { .. } => Some(Pledge::Promise { term }),
            Body::TimeoutNow { .. } | Body::Release { .. } => Some(Pledge::Release { term }),
            _ => None,
        }
    }

    fn promise_asked(&self) -> Option<Span> {
        match self.body {
            Body::Heartbeat { promise, .. } => Some(promise),
            _ => None,
        }
    }

    fn promise_released(&self) -> Option<Epoch> {
        match self.body {
            Body::TimeoutNow { .. } | Body::Release { .. } => Some(self.term),
            Body::Request { released } => released,
            _ => None,
        }
    }

    fn encoded_len(&self) -> usize {
        varint_len(u64::from(self.config)) + varint_len(self.term.0) + 1 + self.body.fields_len()
    }
}

impl Body {
    fn fields_len(&self) -> usize {
        match self {
            Self::PreVote { number, merit, takeover, .. } => {
                number_len(*number) + merit.encoded_len() + 1 + id_len(*takeover)
            }
            Self::PreAnswer { number, .. } => number_len(*number) + 1,
            Self::Request { released } => 1 + released.map_or(0, |term| varint_len(term.0)),
            Self::Vote | Self::Nack => 0,
            Self::Heartbeat { round, promise, merit, preference, why, misses } => {
                varint_len(round.0)
                    + span_len(*promise)
                    + merit.encoded_len()
                    + preference_len(*preference)
                    + why.encoded_len()
                    + misses.encoded_len()
            }
            Self::Ack { round, merit, misses } => {
                varint_len(round.0) + merit.encoded_len() + misses.encoded_len()
            }
            Self::Preempt { merit } => merit.encoded_len(),
            Self::TimeoutNow { preference, .. } => 1 + preference_len(*preference),
            Self::Hello { life, .. } => number_len(life.0) + 1,
            Self::Release { heir } => id_len(*heir),
            Self::Welcome { life, seen, longest, .. } => {
                number_len(life.0) + varint_len(seen.0) + span_len(*longest) + 1
            }
            Self::Probe { merit, misses } => merit.encoded_len() + misses.encoded_len(),
            Self::Prefer { preference } => preference.encoded_len(),
        }
    }
}

impl Misses {
    fn encoded_len(&self) -> usize {
        let ids: usize = self.0.iter().map(|id| number_len(id.0)).sum();
        varint_len(self.0.len() as u64) + ids
    }
}

fn number_len(number: u32) -> usize {
    varint_len(u64::from(number))
}

/// The size of a member that may be named.
pub(super) fn id_len(id: Option<NodeId>) -> usize {
    1 + id.map_or(0, |id| number_len(id.0))
}

fn preference_len(preference: Option<Preference>) -> usize {
    1 + preference.map_or(0, Preference::encoded_len)
}

pub(super) fn span_len(span: Span) -> usize {
    varint_len(span.as_nanos())
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} term={}", protocol::name_of(self), self.term)?;
        match &self.body {
            Body::PreVote { merit, force, takeover, .. } => {
                write!(f, "{merit}")?;
                write_member(f, "from", *takeover)?;
                if *force { f.write_str(" force") } else { Ok(()) }
            }
            Body::PreAnswer { answer, .. } => write!(f, " {answer}"),
            Body::Request { released: Some(term) } => write!(f, " released={term}"),
            Body::Heartbeat { round, merit, preference, misses, .. } => {
                write!(f, " round={}{merit}", round.0)?;
                write_preference(f, *preference)?;
                misses.fmt(f)
            }
            Body::Ack { round, merit, misses } => write!(f, " round={}{merit}{misses}", round.0),
            Body::Release { heir } => write_member(f, "heir", *heir),
            Body::TimeoutNow { cause, preference } => {
                write!(f, " {cause}")?;
                write_preference(f, *preference)
            }
            Body::Hello { life, rejoins } => {
                write!(f, " life={}{}", life.0, if *rejoins { " rejoins" } else { "" })
            }
            Body::Welcome { life, seen, losses, .. } => {
                write!(f, " life={} seen={seen}", life.0)?;
                if *losses > 0 { write!(f, " losses={losses}") } else { Ok(()) }
            }
            Body::Preempt { merit } => merit.fmt(f),
            Body::Prefer { preference } => write_preference(f, Some(*preference)),
            Body::Probe { merit, misses } => write!(f, "{merit}{misses}"),
            Body::Request { released: None } | Body::Vote | Body::Nack => Ok(()),
        }
    }
}

impl fmt::Display for Misses {
    /// ` misses=1,2`, and nothing where nobody is missed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, id) in self.0.iter().enumerate() {
            write!(f, "{}{id}", if index == 0 { " misses=" } else { "," })?;
        }
        Ok(())
    }
}

fn write_preference(f: &mut fmt::Formatter<'_>, preference: Option<Preference>) -> fmt::Result {
    write_member(f, "prefer", preference.map(|preference| preference.member))
}

/// Writes ` name=3`, and nothing for nobody.
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
