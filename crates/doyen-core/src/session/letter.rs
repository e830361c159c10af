//! The letters between processes: a message of the layers above in an envelope, a greeting, or a roster.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::members::{Incarnation, NodeId, SessionId};
use crate::protocol::{Commitments, Kind, Message};
use crate::wire;

/// The counter of the last letter of a session, which is sent when its process is dead. No process sends so many letters
/// that it comes near: once the last letter has arrived, whatever of the dead process is still on its way is too old.
pub(super) const LAST_COUNTER: u64 = u64::MAX;

/// A question that this session has not asked before. Together with the session, which is random, it is a value that no
/// replayed letter can contain and no process can guess.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Challenge(pub NonZeroU64);

/// An incarnation of a member, and the session in which it was met.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Met {
    /// The incarnation that was met.
    pub incarnation: Incarnation,
    /// The session in which it was met.
    pub session: SessionId,
}

/// For each other member the highest incarnation that was ever met, in ascending order of the members.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Roster(Vec<(NodeId, Met)>);

impl Roster {
    /// The entry of `member`.
    pub fn get(&self, member: NodeId) -> Option<Met> {
        self.0.iter().find(|(id, _)| *id == member).map(|(_, met)| *met)
    }

    pub(super) fn insert(&mut self, member: NodeId, met: Met) {
        match self.0.binary_search_by_key(&member, |(id, _)| *id) {
            Ok(place) => self.0[place].1 = met,
            Err(place) => self.0.insert(place, (member, met)),
        }
    }

    /// The entries, in ascending order of the members.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (NodeId, Met)> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<(NodeId, Met)> for Roster {
    /// The last entry of a member counts.
    fn from_iter<I: IntoIterator<Item = (NodeId, Met)>>(entries: I) -> Self {
        let mut roster = Self::default();
        for (member, met) in entries {
            roster.insert(member, met);
        }
        roster
    }
}

/// A letter from one process to another.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Letter<M> {
    /// Not sent: the address from which it came, or to which it goes. `None`: the address of the sender's or the
    /// receiver's configured name.
    pub at: Option<SocketAddr>,
    /// The sender's session.
    pub session: SessionId,
    /// The receiver's session, if the sender knows it.
    pub known: Option<SessionId>,
    /// Rises with every letter to this receiver in this session, starting with one; zero where letters are not counted.
    pub counter: u64,
    /// The content.
    pub content: Content<M>,
}

/// The content of a letter.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Content<M> {
    /// A question, an answer, or both.
    Greeting(Greeting),
    /// What the sender has stored about every other member.
    Roster(Roster),
    /// A message of the layers above.
    Inner(M),
}

/// A question, an answer to one, and what the sender states about itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Greeting {
    /// A question, which the receiver is to repeat.
    pub ask: Option<Challenge>,
    /// The receiver's question, repeated.
    pub answer: Option<Challenge>,
    /// The sender's incarnation; zero while it is unknown.
    pub incarnation: Incarnation,
    /// The highest incarnation of the receiver that the sender has met in a session other than the one that the letter
    /// is for; zero if there was none.
    pub seen: Incarnation,
    /// Whether the sender is rejoining, and asks for the receiver's roster.
    pub wants_roster: bool,
}

pub(crate) const ADDED: [Kind; 2] = [
    Kind::link("GREETING", "asks which process of a member counts, and answers"),
    Kind::link("ROSTER", "tells a rejoining process what the sender has stored of all members"),
];

impl<M: Message> Message for Letter<M> {
    fn kind(&self) -> Kind {
        let [greeting, roster] = ADDED;
        match &self.content {
            Content::Inner(message) => message.kind(),
            Content::Greeting(_) => greeting,
            Content::Roster(_) => roster,
        }
    }

    fn encoded_len(&self) -> usize {
        // Both sessions, the counter and the kind; see the wire format of the node.
        let envelope = 8 + 8 + 8 + 1;
        let content = match &self.content {
            Content::Greeting(_) => 8 + 8 + 4 + 4 + 1,
            Content::Roster(roster) => wire::encoded_len(roster),
            Content::Inner(message) => message.encoded_len(),
        };
        envelope + content
    }

    fn is_background(&self) -> bool {
        self.inner().is_none_or(Message::is_background)
    }

    fn commitments(&self) -> Commitments {
        self.inner().map(Message::commitments).unwrap_or_default()
    }

    fn destination(&self) -> Option<SocketAddr> {
        self.at
    }

    fn posted_from(self, address: Option<SocketAddr>) -> Self {
        Self { at: address, ..self }
    }
}

impl<M> Letter<M> {
    /// The same letter with another form of its message.
    pub fn map<N>(self, change: impl FnOnce(M) -> N) -> Letter<N> {
        let Self { at, session, known, counter, content } = self;
        let content = match content {
            Content::Greeting(greeting) => Content::Greeting(greeting),
            Content::Roster(roster) => Content::Roster(roster),
            Content::Inner(message) => Content::Inner(change(message)),
        };
        Letter { at, session, known, counter, content }
    }

    pub(super) fn inner(&self) -> Option<&M> {
        match &self.content {
            Content::Inner(message) => Some(message),
            _ => None,
        }
    }
}

impl<M: fmt::Display> fmt::Display for Letter<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Inner(message) => message.fmt(f),
            Content::Greeting(greeting) => {
                write!(f, "GREETING incarnation={}", greeting.incarnation.0)?;
                if greeting.seen > Incarnation::default() {
                    write!(f, " seen={}", greeting.seen.0)?;
                }
                let asks = greeting.ask.map_or("", |_| " asks");
                let answers = greeting.answer.map_or("", |_| " answers");
                let rejoins = if greeting.wants_roster { " rejoins" } else { "" };
                write!(f, "{asks}{answers}{rejoins}")
            }
            Content::Roster(roster) => {
                f.write_str("ROSTER")?;
                let mut entries = roster.iter();
                entries.try_for_each(|(id, met)| write!(f, " {id}={}", met.incarnation.0))
            }
        }
    }
}
