//! The voting rules as a protocol of their own, for explorers: nothing but `ballot.rs`. A voter campaigns when
//! [`Event::Campaign`] tells it to.
//!
//! Leases, vote leases and ranks decide *when* a member campaigns and *whether* it answers; they remove runs and never add
//! one. A quorum's members also learn of later terms without voting in them (NACK, heartbeats); a voter that votes in such a
//! term and whose vote is lost does the same and more. So what holds for every run of voters holds for every run of a
//! quorum: at most one leader per term, at most one vote per term. With a [last term](crate::config::rules::Rules::until)
//! the state space is finite, and is explored completely.
//!
//! A voter that lost its disk asks all others which term they have stored, adopts the latest and has no vote left in it, as a
//! quorum's member does (`recovery.rs`). What WELCOME carries there in addition, the term in which the member was seen last, only
//! makes that term later. It asks again whenever it is told to campaign.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::explore::Explore;
use crate::members::{NodeId, PeerSet, Term};
use crate::protocol::{
    self, AlgorithmMessage, Boot, Commitments, Context, Effects, Event, Family, Kind, Origin,
    Pledge, Protocol, Role, View,
};
use crate::time::Span;

use super::super::ballot::{Ballot, Stored};
use crate::config::rules::Rule;

/// A member that votes, and campaigns when told to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Voter {
    ballot: Ballot,
    role: Role,
    /// The votes for it in the current term; empty unless it campaigned in it.
    votes: PeerSet,
    rejoining: Option<Rejoining>,
}

/// What a voter that lost its disk has learned so far.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Rejoining {
    /// The latest term that any member knows of.
    latest: Term,
    answered: PeerSet,
}

/// The messages of voters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Message {
    /// "I am a candidate in this term."
    Request { term: Term },
    /// "You have my vote in this term."
    Vote { term: Term },
    /// "I lost my disk. Which term is it?"
    Hello,
    /// "This one, as far as I know."
    Welcome { term: Term },
}

/// What a voter waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The end of its campaign or of its leadership: it steps down, and the term stays.
    Term,
}

impl Protocol for Voter {
    type Config = Config;
    type Message = Message;
    type Timer = Timer;
    type Durable = Stored;

    fn start(id: NodeId, config: &Config, boot: Boot<Stored>, out: &mut Effects<Self>) -> Self {
        let stored = boot.durable.unwrap_or_default();
        let nobody = Rejoining { latest: Term::default(), answered: PeerSet::new() };
        let voter = Self {
            ballot: Ballot::new(id, stored, config.quorum.rules),
            role: Role::Follower,
            votes: PeerSet::new(),
            rejoining: (boot.origin == Origin::Rejoining).then_some(nobody),
        };
        voter.say_hello(&mut Context { config, out });
        voter
    }

    fn handle(&mut self, config: &Config, event: Event<Message, Timer>, out: &mut Effects<Self>) {
        let before = self.view();
        let cx = &mut Context { config, out };
        match event {
            // Again, to the members that are there now.
            Event::Campaign if self.rejoining.is_some() => self.say_hello(cx),
            Event::Campaign => self.campaign(cx),
            Event::Timer(Timer::Term) => self.step_down(cx),
            Event::Message { from, message } => self.on_message(from, message, cx),
            _ => {}
        }
        let after = self.view();
        if after != before {
            cx.announce(after);
        }
    }

    fn view(&self) -> View {
        let leader = (self.role == Role::Leader).then(|| self.ballot.id());
        View::new(leader, self.ballot.term(), self.role)
    }

    fn kinds(_: &Config) -> Cow<'static, [Kind]> {
        Message::KINDS.into()
    }

    fn heeds_detector(_: &Config) -> bool {
        false
    }

    fn kind_index(_: &Config, message: &Message) -> usize {
        message.index()
    }

    fn is_background(_: Timer) -> bool {
        true
    }
}

impl Explore for Voter {
    fn heeds_incarnation(_: &Config) -> bool {
        false
    }

    fn canonical(&self, _: &Config) -> Self {
        let mut canonical = self.clone();
        if self.role != Role::Candidate {
            canonical.votes.clear();
        }
        canonical
    }

    fn is_obsolete(&self, _: &Config, from: NodeId, message: &Message) -> bool {
        let Stored { term: known, voted, .. } = *self.ballot.stored();
        if self.rejoining.is_some() {
            return false;
        }
        match *message {
            Message::Request { term } => {
                term < known || term == known && voted.is_some_and(|voted| voted != from)
            }
            Message::Vote { term } => term < known || term == known && self.role != Role::Candidate,
            Message::Hello => false,
            Message::Welcome { .. } => true,
        }
    }

    fn is_symmetric(_: &Config) -> bool {
        true
    }

    fn renamed(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
        let rejoining = self.rejoining.as_ref().map(|rejoining| Rejoining {
            latest: rejoining.latest,
            answered: rejoining.answered.iter().map(names).collect(),
        });
        let votes = self.votes.iter().map(names).collect();
        Self { ballot: self.ballot.renamed(names), role: self.role, votes, rejoining }
    }

    fn renamed_durable(durable: &Stored, names: &dyn Fn(NodeId) -> NodeId) -> Stored {
        durable.renamed(names)
    }
}

impl Voter {
    /// V1.
    fn campaign(&mut self, cx: &mut Context<'_, Self>) {
        if self.ballot.term() >= cx.config.quorum.rules.last_term {
            return;
        }
        self.step_down(cx);
        let Some(votes) = self.ballot.open_term() else { return };
        self.votes = votes;
        cx.rule("V1");
        self.ballot.store(cx);
        self.role = Role::Candidate;
        cx.set_timer(Timer::Term, Span::ZERO);
        let term = self.ballot.term();
        for peer in cx.config.members.others(self.ballot.id()) {
            cx.send(peer, Message::Request { term });
        }
        self.on_vote(cx.config, self.ballot.id(), term);
    }

    /// V5.
    fn on_vote(&mut self, config: &Config, voter: NodeId, term: Term) {
        let won = self.ballot.count(&mut self.votes, voter, term, config.members.len());
        if won && self.role == Role::Candidate {
            self.role = Role::Leader;
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        let known = self.ballot.term();
        if self.rejoining.is_some() {
            if let Message::Welcome { term } = message {
                self.on_welcome(from, term, cx);
            }
            return;
        }
        match message {
            Message::Hello => cx.send(from, Message::Welcome { term: known }),
            Message::Welcome { .. } => {}
            Message::Request { term } if term < known => cx.rule("V2"),
            Message::Request { term } => self.on_request(from, term, cx),
            Message::Vote { term } if term <= known => {
                cx.rule("V5");
                self.on_vote(cx.config, from, term);
            }
            // No member votes for a candidate in a term that the candidate has not opened.
            Message::Vote { .. } => {}
        }
    }

    /// V3, V4.
    fn on_request(&mut self, from: NodeId, term: Term, cx: &mut Context<'_, Self>) {
        let later = term > self.ballot.term();
        if later {
            self.step_down(cx);
            self.votes.clear();
            self.ballot.adopt(term);
        }
        let granted = self.role == Role::Follower && self.ballot.grant(from);
        if granted || later {
            cx.rule("V4");
            self.ballot.store(cx);
        }
        if granted {
            cx.send(from, Message::Vote { term });
        }
    }

    fn say_hello(&self, cx: &mut Context<'_, Self>) {
        let Some(rejoining) = &self.rejoining else { return };
        for peer in cx.config.members.others(self.ballot.id()) {
            if !rejoining.answered.contains(peer) {
                cx.send(peer, Message::Hello);
            }
        }
    }

    fn on_welcome(&mut self, from: NodeId, term: Term, cx: &mut Context<'_, Self>) {
        let Some(rejoining) = &mut self.rejoining else { return };
        rejoining.answered.insert(from);
        rejoining.latest = rejoining.latest.max(term);
        let others = cx.config.members.len() - 1;
        let needed = match cx.config.quorum.rules.keeps(Rule::RejoinAsksAll) {
            true => others,
            false => others / 2,
        };
        if rejoining.answered.len() < needed {
            return;
        }
        cx.rule("Q1a");
        let latest = rejoining.latest;
        self.rejoining = None;
        if cx.config.quorum.rules.keeps(Rule::RejoinVotesLater) {
            self.ballot.adopt(latest);
            // A vote for itself in a term in which it is not a candidate: no vote is left for any other member.
            self.ballot.stored_mut().voted = Some(self.ballot.id());
        }
        self.ballot.store(cx);
    }

    fn step_down(&mut self, cx: &mut Context<'_, Self>) {
        if self.role != Role::Follower {
            cx.cancel_timer(Timer::Term);
            self.role = Role::Follower;
            self.votes.clear();
            self.ballot.withdraw();
        }
    }
}

impl AlgorithmMessage for Message {
    kinds! {
        Self::Request { .. } => Kind::own("REQUEST", Family::Ask, "asks for the vote of a new term"),
        Self::Vote { .. } => Kind::own("VOTE", Family::Answer, "gives the one vote of the term"),
        Self::Hello => Kind::own("HELLO", Family::Upkeep, "says that the sender has started"),
        Self::Welcome { .. } => Kind::own("WELCOME", Family::Upkeep, "answers a HELLO"),
    }

    fn commitments(&self) -> Commitments {
        let pledge = match *self {
            Self::Request { term } => Some(Pledge::Candidacy { term, succeeds: false }),
            Self::Vote { term } => Some(Pledge::Vote { term }),
            Self::Hello | Self::Welcome { .. } => None,
        };
        Commitments { pledge, ..Commitments::default() }
    }
}

impl Message {
    fn term(self) -> Option<Term> {
        match self {
            Self::Request { term } | Self::Vote { term } | Self::Welcome { term } => Some(term),
            Self::Hello => None,
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(protocol::name_of(self))?;
        self.term().map_or(Ok(()), |term| write!(f, " term={term}"))
    }
}
