//! Decentralised voting (Lin, Lian, Chen and Zhang 2004; cs677): a member enters with m of n votes, m > n/2.
//!
//! The highest n members are voters, each with one vote.
//!
//! | rule | event | action |
//! |---|---|---|
//! | V1 | Request | begins an attempt: REQUEST to m voters, or to all n |
//! | V2 | voter: REQUEST, its vote is free | VOTE |
//! | V3 | voter: REQUEST otherwise | DENY |
//! | V4 | all asked have answered, with m votes or more | enters |
//! | V5 | all asked have answered, with fewer votes | RELEASE to those that voted; waits for a random time |
//! | V6 | some do not answer in time (2D+p) | they count as a DENY, and get a RELEASE too |
//! | V7 | the time is over | V1 |
//! | V8 | Exit | RELEASE to those that voted |
//! | V9 | voter: RELEASE of the attempt that has its vote | its vote is free |
//!
//! V6 is not in cs677; without it a dead voter blocks all. A VOTE that arrives after its attempt is over is given back.
//!
//! Cost in k attempts, if m voters are asked: from 2mk+m to 3mk−(k−1) messages. cs677's 3mk is exact for k=1 only, because a
//! failed attempt has at most m−1 votes to give back. Asked at once, voters answer within 2D for each attempt; one after the
//! other (the variant `serial`), within 2mD, as cs677 has it. There is no queue, so a member may be overtaken any number of
//! times, and with equal waits after a failed attempt none may ever enter.
//!
//! cs677 names starvation as the problem. The worse one is that voters forget when they restart: m votes exclude others only
//! as long as fewer than 2m−n of them are given twice.

pub mod rules;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::member::{Exclusive, Member, Turn};
use crate::config::exclusion::Reliance;
use crate::config::{Config, Variant};
use crate::members::{NodeId, PeerSet};
use crate::protocol::{AlgorithmMessage, Family, Kind};

/// A member that asks for votes, and may be a voter.
pub type Voting = Member<Votes>;

/// Its attempt, and its vote as a voter.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Votes {
    attempt: u64,
    /// Who has not answered this attempt.
    open: PeerSet,
    /// Who has voted for it.
    won: PeerSet,
    /// Who has its vote, and in which attempt.
    vote: Option<(NodeId, u64)>,
}

/// What a message says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table of the rules says what they mean")]
pub enum Word {
    Request,
    Vote,
    Deny,
    Release,
}

/// A message about an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Message {
    /// What it says.
    pub word: Word,
    /// The attempt of the member that asks.
    pub attempt: u64,
}

/// What a member waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The answers of the voters.
    Reply,
    /// The next attempt.
    Retry,
}

impl Exclusive for Votes {
    type Message = Message;
    type Timer = Timer;

    fn new(_: NodeId, _: bool, _: &Config) -> Self {
        Self::default()
    }

    fn request(&mut self, turn: &mut Turn<'_, Self>) {
        self.begin(turn);
    }

    fn exit(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("V8");
        self.give_back(turn);
    }

    fn receive(&mut self, from: NodeId, message: Message, turn: &mut Turn<'_, Self>) {
        let Message { word, attempt } = message;
        match word {
            Word::Request
                if self.vote.is_none() || !turn.config.exclusion.keeps(Reliance::OneVote) =>
            {
                turn.rule("V2");
                self.vote = Some((from, attempt));
                turn.send(from, Message { word: Word::Vote, attempt });
            }
            Word::Request => {
                turn.rule("V3");
                turn.send(from, Message { word: Word::Deny, attempt });
            }
            Word::Release if self.vote == Some((from, attempt)) => {
                turn.rule("V9");
                self.vote = None;
            }
            Word::Vote | Word::Deny if attempt == self.attempt && self.open.remove(from) => {
                if word == Word::Vote {
                    self.won.insert(from);
                }
                self.continue_attempt(turn);
            }
            Word::Vote if attempt != self.attempt || !self.won.contains(from) => {
                turn.rule("V6");
                turn.send(from, Message { word: Word::Release, attempt });
            }
            Word::Vote | Word::Deny | Word::Release => {}
        }
    }

    fn expire(&mut self, timer: Timer, turn: &mut Turn<'_, Self>) {
        match timer {
            Timer::Reply => {
                turn.rule("V6");
                for late in std::mem::take(&mut self.open).iter() {
                    turn.send(late, Message { word: Word::Release, attempt: self.attempt });
                }
                self.decide(turn);
            }
            Timer::Retry => {
                turn.rule("V7");
                self.begin(turn);
            }
        }
    }
}

impl Votes {
    /// V1.
    fn begin(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("V1");
        self.attempt = self.attempt.saturating_add(1);
        self.won.clear();
        self.open = turn.config.exclusion.asked_voters(&turn.config.members).collect();
        turn.set_timer(Timer::Reply, turn.config.timing.reply());
        for voter in self.open.iter().take(at_once(turn.config)) {
            turn.send(voter, Message { word: Word::Request, attempt: self.attempt });
        }
    }

    /// A voter has answered.
    fn continue_attempt(&mut self, turn: &mut Turn<'_, Self>) {
        if self.open.is_empty() {
            turn.cancel_timer(Timer::Reply);
            self.decide(turn);
        } else if turn.config.reads(Variant::Serial)
            && let Some(next) = self.open.iter().next()
        {
            turn.rule("V1");
            turn.set_timer(Timer::Reply, turn.config.timing.reply());
            turn.send(next, Message { word: Word::Request, attempt: self.attempt });
        }
    }

    fn decide(&mut self, turn: &mut Turn<'_, Self>) {
        if self.won.len() >= turn.config.exclusion.votes(&turn.config.members) {
            turn.rule("V4");
            return turn.enter();
        }
        turn.rule("V5");
        self.give_back(turn);
        turn.set_timer(Timer::Retry, turn.config.exclusion.back_off(&turn.config.timing));
    }

    fn give_back(&mut self, turn: &mut Turn<'_, Self>) {
        for voter in std::mem::take(&mut self.won).iter() {
            turn.send(voter, Message { word: Word::Release, attempt: self.attempt });
        }
    }
}

/// How many voters are asked at once.
fn at_once(config: &Config) -> usize {
    if config.reads(Variant::Serial) { 1 } else { usize::MAX }
}

impl AlgorithmMessage for Message {
    kinds! {
        Self { word: Word::Request, .. } => Kind::own("REQUEST", Family::Ask, "asks a voter for its vote"),
        Self { word: Word::Vote, .. } => Kind::own("VOTE", Family::Answer, "gives the vote, until it is given back"),
        Self { word: Word::Deny, .. } => Kind::own("DENY", Family::Refuse, "says that another member has the vote"),
        Self { word: Word::Release, .. } => Kind::own("RELEASE", Family::HandOver, "gives the vote back"),
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} attempt={}", Self::KINDS[self.index()].name, self.attempt)
    }
}
