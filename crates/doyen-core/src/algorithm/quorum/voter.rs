//! The voting rules as a protocol of their own, for the explorer: nothing but `quorum/ballot.rs`, told to stand
//! by [`Event::Campaign`].
//!
//! Leases, promises and priorities decide *when* a member stands and *whether* it answers; they take away runs, and
//! never add one. A quorum's members also learn of later terms without voting in them (NACK, heartbeats); a voter that
//! votes in such a term and whose vote is never heard does the same and more. So what holds for every run of voters
//! holds for every run of a quorum: at most one leader a term, at most one vote a term. With a
//! [last term](super::rules::Rules::until) the state space is finite, and is explored completely.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::members::{Epoch, NodeId};
use crate::protocol::{self, Boot, Effects, Event, Kind, Pledge, Protocol, Role, View, varint_len};
use crate::time::Span;

use super::ballot::{Ballot, Stored};

/// A member that votes, and stands when told to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Voter {
    ballot: Ballot,
    role: Role,
}

/// What voters say to each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// "I stand in this term."
    Request {
        /// Which.
        term: Epoch,
    },
    /// "You have my vote of this term."
    Vote {
        /// Which.
        term: Epoch,
    },
}

/// What a voter waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The end of its patience as a candidate, or of its term as a leader: it stands down, and the term stays.
    Term,
}

impl Protocol for Voter {
    type Config = Config;
    type Message = Message;
    type Timer = Timer;
    type Durable = Stored;

    const HEEDS_DETECTOR: bool = false;
    const HEEDS_INCARNATION: bool = false;

    fn start(id: NodeId, config: &Config, boot: Boot<Stored>, _: &mut Effects<Self>) -> Self {
        let stored = boot.durable.unwrap_or_default();
        Self { ballot: Ballot::new(id, stored, config.quorum.rules), role: Role::Follower }
    }

    fn handle(&mut self, config: &Config, event: Event<Message, Timer>, out: &mut Effects<Self>) {
        let before = self.view();
        match event {
            Event::Campaign => self.stand(config, out),
            Event::Timer(Timer::Term) => self.step_down(out),
            Event::Message { from, message } => self.on_message(config, from, message, out),
            _ => {}
        }
        let after = self.view();
        if after != before {
            out.announce(after);
        }
    }

    fn view(&self) -> View {
        let leader = (self.role == Role::Leader).then(|| self.ballot.id());
        View { leader, epoch: self.ballot.term(), role: self.role }
    }

    fn is_symmetric(_: &Config) -> bool {
        true
    }

    fn renamed(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
        Self { ballot: self.ballot.renamed(names), role: self.role }
    }

    fn is_upkeep(_: Timer) -> bool {
        true
    }
}

impl Voter {
    /// V1.
    fn stand(&mut self, config: &Config, out: &mut Effects<Self>) {
        if self.ballot.term() >= config.quorum.rules.last_term {
            return;
        }
        self.step_down(out);
        if !self.ballot.stand() {
            return;
        }
        out.rule("V1");
        self.ballot.store(out);
        self.role = Role::Candidate;
        out.set_timer(Timer::Term, Span::ZERO);
        let term = self.ballot.term();
        for peer in config.members.others(self.ballot.id()) {
            out.send(peer, Message::Request { term });
        }
        self.count_votes(config);
    }

    fn count_votes(&mut self, config: &Config) {
        if self.role == Role::Candidate && self.ballot.is_won(config.members.len()) {
            self.role = Role::Leader;
        }
    }

    fn on_message(
        &mut self,
        config: &Config,
        from: NodeId,
        message: Message,
        out: &mut Effects<Self>,
    ) {
        let known = self.ballot.term();
        match message {
            Message::Request { term } if term < known => out.rule("V2"),
            Message::Request { term } => self.on_request(from, term, out),
            Message::Vote { term } if term <= known => {
                out.rule("V5");
                self.ballot.count(from, term);
                self.count_votes(config);
            }
            // Nobody votes for a candidate in a term that the candidate has not opened.
            Message::Vote { .. } => {}
        }
    }

    /// V3, V4.
    fn on_request(&mut self, from: NodeId, term: Epoch, out: &mut Effects<Self>) {
        let later = term > self.ballot.term();
        if later {
            self.step_down(out);
            self.ballot.adopt(term);
        }
        let granted = self.role == Role::Follower && self.ballot.grant(from);
        if granted || later {
            out.rule("V4");
            self.ballot.store(out);
        }
        if granted {
            out.send(from, Message::Vote { term });
        }
    }

    fn step_down(&mut self, out: &mut Effects<Self>) {
        if self.role != Role::Follower {
            out.cancel_timer(Timer::Term);
            self.role = Role::Follower;
            self.ballot.withdraw();
        }
    }
}

impl protocol::Message for Message {
    const KINDS: &'static [Kind] = &[Kind::election("REQUEST"), Kind::election("VOTE")];

    fn kind(&self) -> usize {
        match self {
            Self::Request { .. } => 0,
            Self::Vote { .. } => 1,
        }
    }

    fn pledge(&self) -> Option<Pledge> {
        match *self {
            Self::Request { term } => Some(Pledge::Candidacy { term }),
            Self::Vote { term } => Some(Pledge::Vote { term }),
        }
    }

    fn encoded_len(&self) -> usize {
        let (Self::Request { term } | Self::Vote { term }) = self;
        1 + varint_len(term.0)
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Request { term } | Self::Vote { term }) = self;
        write!(f, "{} term={term}", protocol::name_of(self))
    }
}
