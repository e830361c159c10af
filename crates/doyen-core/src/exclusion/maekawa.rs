//! Maekawa 1985: a member enters with the votes of a set of arbiters, and any two sets have an arbiter in common (cs425).
//!
//! Every member is an arbiter with one vote. Requests are ordered by Lamport's clock, then by id. An arbiter that has voted
//! for a later request inquires whether the member would give the vote back; it does, if it knows that it cannot win now.
//!
//! | rule | event | action |
//! |---|---|---|
//! | K1 | Request | counts its clock; REQUEST to its arbiters, itself among them |
//! | K2 | arbiter: REQUEST, its vote is free | GRANT |
//! | K3 | arbiter: REQUEST, an earlier one has the vote or waits | queues it; FAIL |
//! | K4 | arbiter: REQUEST that is the earliest of all | FAIL to the one that was first in the queue, if that preceded the holder of the vote; queues the request; INQUIRE to the holder, once |
//! | K5 | GRANT | all have voted for it: enters; otherwise K7 |
//! | K6 | FAIL or INQUIRE while it waits | notes it; K7 |
//! | K7 | it waits, and has both failed somewhere and been inquired | RELINQUISH to all that inquired |
//! | K8 | arbiter: RELINQUISH of the holder | queues it again; GRANT to the first in the queue |
//! | K9 | arbiter: RELEASE of the holder | GRANT to the first in the queue, or its vote is free |
//! | K10 | Exit | RELEASE to its arbiters |
//!
//! **Textbook mode** is the algorithm as mended by Sanders 1987. The paper has no FAIL in K4: a waiting request that is
//! overtaken is not told so, and the algorithm deadlocks. That is the variant `original`. The variant `cs425-plain` has one
//! vote and a queue in the order of arrival (K1, K2, K9, K10), and deadlocks as soon as three members vote for themselves.
//!
//! Links must keep the order of messages: an INQUIRE that overtakes the GRANT it is about lets two members in. Cost, where K
//! is the size of a set: 3(K−1) messages for each entry when idle, 4(K−1) in saturation, at most 6(K−1) on average; K−1 of
//! them at exit. cs425's √N counts K without its rounding. A dead arbiter blocks all members whose set it is in.
//! [`Sets`](crate::config::exclusion::Sets) has the constructions.

pub mod rules;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::member::{Clock, Exclusive, Member, Stamp, Turn};
use crate::config::exclusion::Reliance;
use crate::config::{Config, Variant};
use crate::members::{NodeId, PeerSet};
use crate::protocol::{AlgorithmMessage, Family, Kind, NoTimer};

/// A member that runs Maekawa's algorithm.
pub type Maekawa = Member<Arbiters>;

/// A member as one that asks, and as an arbiter of others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Arbiters {
    clock: Clock,
    /// Its arbiters.
    set: PeerSet,
    /// The time of its request; zero while it has none.
    asked: u64,
    votes: PeerSet,
    /// The arbiters that have voted for an earlier request.
    failed: PeerSet,
    /// The arbiters that have inquired and are not answered yet.
    inquired: PeerSet,
    arbiter: Arbiter,
}

/// One vote.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Arbiter {
    /// The request that has it.
    current: Option<Stamp>,
    /// Whether the holder has been asked to give it back.
    has_inquired: bool,
    /// Requests that wait for it, the first first.
    queue: Vec<Stamp>,
}

/// What a message says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table of the rules says what they mean")]
pub enum Word {
    Request,
    Grant,
    Fail,
    Inquire,
    Relinquish,
    Release,
}

/// A message about a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Message {
    /// What it says.
    pub word: Word,
    /// The time of the request.
    pub time: u64,
}

impl Exclusive for Arbiters {
    type Message = Message;
    type Timer = NoTimer;

    fn new(id: NodeId, _: bool, config: &Config) -> Self {
        let set = match config.exclusion.keeps(Reliance::SetsMeet) {
            true => config.exclusion.sets.of(id, &config.members),
            false => PeerSet::from_iter([id]),
        };
        Self {
            clock: Clock::default(),
            set,
            asked: 0,
            votes: PeerSet::new(),
            failed: PeerSet::new(),
            inquired: PeerSet::new(),
            arbiter: Arbiter::default(),
        }
    }

    fn request(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("K1");
        self.asked = self.clock.tick();
        self.forget();
        self.tell_arbiters(Word::Request, turn);
    }

    fn clock(&self) -> Option<&Clock> {
        Some(&self.clock)
    }

    fn clock_mut(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn exit(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("K10");
        self.tell_arbiters(Word::Release, turn);
        self.asked = 0;
        self.forget();
    }

    fn receive(
        &mut self,
        from: NodeId,
        Message { word, time }: Message,
        turn: &mut Turn<'_, Self>,
    ) {
        let request = Stamp { time, member: from };
        let is_mine = turn.is_waiting() && time == self.asked;
        match word {
            Word::Request => {
                self.clock.observe(time);
                self.arbiter.on_request(request, turn);
            }
            Word::Relinquish if self.arbiter.current == Some(request) => {
                turn.rule("K8");
                self.arbiter.queue_in_order(request);
                self.arbiter.vote_for_next(turn);
            }
            Word::Release if self.arbiter.current == Some(request) => {
                turn.rule("K9");
                self.arbiter.vote_for_next(turn);
            }
            Word::Grant if is_mine => {
                turn.rule("K5");
                self.votes.insert(from);
                self.failed.remove(from);
                if self.votes == self.set {
                    self.inquired.clear();
                    turn.enter();
                } else {
                    self.yield_votes(turn);
                }
            }
            Word::Fail if is_mine => {
                turn.rule("K6");
                self.failed.insert(from);
                self.yield_votes(turn);
            }
            Word::Inquire if is_mine => {
                turn.rule("K6");
                self.inquired.insert(from);
                self.yield_votes(turn);
            }
            // Of an earlier request, or it is inside: its RELEASE is the answer.
            Word::Grant | Word::Fail | Word::Inquire | Word::Relinquish | Word::Release => {}
        }
    }
}

impl Arbiters {
    fn forget(&mut self) {
        self.votes.clear();
        self.failed.clear();
        self.inquired.clear();
    }

    fn tell_arbiters(&self, word: Word, turn: &mut Turn<'_, Self>) {
        for arbiter in self.set.iter() {
            turn.send(arbiter, Message { word, time: self.asked });
        }
    }

    /// K7.
    fn yield_votes(&mut self, turn: &mut Turn<'_, Self>) {
        let yields = turn.config.exclusion.keeps(Reliance::LosersYield);
        if self.failed.is_empty() || self.inquired.is_empty() || !yields {
            return;
        }
        turn.rule("K7");
        for arbiter in std::mem::take(&mut self.inquired).iter() {
            self.votes.remove(arbiter);
            self.failed.insert(arbiter);
            turn.send(arbiter, Message { word: Word::Relinquish, time: self.asked });
        }
    }
}

impl Arbiter {
    fn on_request(&mut self, request: Stamp, turn: &mut Turn<'_, Arbiters>) {
        let Some(current) = self.current else {
            turn.rule("K2");
            self.current = Some(request);
            return tell(request, Word::Grant, turn);
        };
        if turn.config.reads(Variant::Plain) {
            return self.queue.push(request);
        }
        let first = self.queue.first().copied();
        if request > first.map_or(current, |first| first.min(current)) {
            turn.rule("K3");
            tell(request, Word::Fail, turn);
        } else {
            turn.rule("K4");
            let overtaken = first.filter(|&first| first < current);
            if let Some(first) = overtaken.filter(|_| !turn.config.reads(Variant::Original)) {
                tell(first, Word::Fail, turn);
            }
            if !std::mem::replace(&mut self.has_inquired, true) {
                tell(current, Word::Inquire, turn);
            }
        }
        self.queue_in_order(request);
    }

    fn queue_in_order(&mut self, request: Stamp) {
        let place = self.queue.partition_point(|waiting| *waiting < request);
        self.queue.insert(place, request);
    }

    fn vote_for_next(&mut self, turn: &mut Turn<'_, Arbiters>) {
        self.has_inquired = false;
        self.current = (!self.queue.is_empty()).then(|| self.queue.remove(0));
        if let Some(next) = self.current {
            tell(next, Word::Grant, turn);
        }
    }
}

fn tell(request: Stamp, word: Word, turn: &mut Turn<'_, Arbiters>) {
    turn.send(request.member, Message { word, time: request.time });
}

impl AlgorithmMessage for Message {
    kinds! {
        Self { word: Word::Request, .. } => Kind::own("REQUEST", Family::Ask, "asks an arbiter for its vote, and says when the sender asked"),
        Self { word: Word::Grant, .. } => Kind::own("GRANT", Family::HandOver, "gives the arbiter's vote"),
        Self { word: Word::Fail, .. } => Kind::own("FAIL", Family::Refuse, "says that an earlier request comes first"),
        Self { word: Word::Inquire, .. } => Kind::own("INQUIRE", Family::Ask, "asks whether the receiver would give the vote back"),
        Self { word: Word::Relinquish, .. } => Kind::own("RELINQUISH", Family::HandOver, "gives the vote back, and keeps waiting for it"),
        Self { word: Word::Release, .. } => Kind::own("RELEASE", Family::HandOver, "gives the vote back after leaving"),
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} time={}", Self::KINDS[self.index()].name, self.time)
    }
}
