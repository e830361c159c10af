//! Suzuki and Kasami 1985: a member that wants the token asks all others for it.
//!
//! Each member counts the requests of every other (`RN`). The token carries the number of each member's last request that was
//! served (`LN`), and a queue.
//!
//! | rule | event | action |
//! |---|---|---|
//! | S1 | Request, the token is here | enters |
//! | S2 | Request otherwise | numbers its request; REQUEST to all others |
//! | S3 | REQUEST | notes the number; the token is here and idle, and the request is not served yet: TOKEN to the sender |
//! | S4 | TOKEN | enters |
//! | S5 | Exit | notes on the token that its request is served; appends all members with one that is not, from its own place on; TOKEN to the first in the queue |
//!
//! Cost: N messages for each entry, or none where the token is; a delay of 2D or 0. A REQUEST that is late or arrives twice is
//! recognised by its number. A TOKEN that arrives twice lets two members in, and one that is lost blocks all. The token
//! begins at the member that the configuration names, by default the lowest. Not in the sources; it stands beside
//! [`raymond`](super::raymond), which saves the broadcast.

pub mod rules;

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::member::{Exclusive, Member, Turn};
use crate::config::Config;
use crate::config::exclusion::Reliance;
use crate::members::{Members, NodeId, Term};
use crate::protocol::{AlgorithmMessage, Family, Kind, NoTimer, Section};

/// A member that runs the algorithm of Suzuki and Kasami.
pub type SuzukiKasami = Member<Broadcast>;

/// The numbers of the latest requests, and the token, if it is here.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Broadcast {
    asked: Numbers,
    token: Option<Token>,
}

/// A number for each member, by position.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Numbers(Vec<u64>);

impl Numbers {
    fn of(&self, member: NodeId, members: &Members) -> u64 {
        let place = members.position(member);
        place.and_then(|place| self.0.get(place)).copied().unwrap_or_default()
    }

    fn set(&mut self, member: NodeId, members: &Members, number: u64) {
        self.0.resize(members.len(), 0);
        if let Some(place) = members.position(member) {
            self.0[place] = number;
        }
    }
}

/// The token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Token {
    /// The number of each member's last request that was served.
    pub served: Numbers,
    /// Who gets the token next.
    pub queue: VecDeque<NodeId>,
}

/// The messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table of the rules says what they mean")]
pub enum Message {
    Request { number: u64 },
    Token(Token),
}

impl Exclusive for Broadcast {
    type Message = Message;
    type Timer = NoTimer;

    fn new(id: NodeId, founding: bool, config: &Config) -> Self {
        let first = config.exclusion.first.unwrap_or_else(|| config.members.at(0));
        let token = (founding && first == id).then(Token::default);
        Self { asked: Numbers::default(), token }
    }

    fn request(&mut self, turn: &mut Turn<'_, Self>) {
        let members = &turn.config.members;
        let number = self.asked.of(turn.id, members).saturating_add(1);
        self.asked.set(turn.id, members, number);
        if self.token.is_some() {
            turn.rule("S1");
            turn.enter();
        } else {
            turn.rule("S2");
            turn.send_to_others(&Message::Request { number });
        }
    }

    fn exit(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("S5");
        let Some(mut token) = self.token.take() else { return };
        let members = &turn.config.members;
        token.served.set(turn.id, members, self.asked.of(turn.id, members));
        let place = members.position(turn.id).map_or(0, |position| position + 1);
        for offset in 0..members.len() - 1 {
            let member = members.at((place + offset) % members.len());
            if !token.queue.contains(&member) && self.is_open(member, &token, members) {
                token.queue.push_back(member);
            }
        }
        match token.queue.pop_front() {
            Some(next) => turn.send(next, Message::Token(token)),
            None => self.token = Some(token),
        }
    }

    fn token(&self, _: NodeId, _: Section) -> Option<Term> {
        self.token.as_ref().map(|_| Term(0))
    }

    fn token_in(message: &Message) -> Option<Term> {
        matches!(message, Message::Token(_)).then_some(Term(0))
    }

    fn receive(&mut self, from: NodeId, message: Message, turn: &mut Turn<'_, Self>) {
        match message {
            Message::Request { number } => {
                turn.rule("S3");
                let members = &turn.config.members;
                let latest = match turn.config.exclusion.keeps(Reliance::NumbersRise) {
                    true => self.asked.of(from, members).max(number),
                    false => number,
                };
                self.asked.set(from, members, latest);
                let is_idle = !turn.is_inside();
                if let Some(token) = self.token.take() {
                    if is_idle && self.is_open(from, &token, members) {
                        turn.send(from, Message::Token(token));
                    } else {
                        self.token = Some(token);
                    }
                }
            }
            Message::Token(mut token) => {
                turn.rule("S4");
                token.queue.retain(|&id| turn.config.members.contains(id));
                self.token = Some(token);
                if turn.is_waiting() {
                    turn.enter();
                }
            }
        }
    }
}

impl Broadcast {
    /// Whether `member` has a request that is not served yet.
    fn is_open(&self, member: NodeId, token: &Token, members: &Members) -> bool {
        self.asked.of(member, members) == token.served.of(member, members).saturating_add(1)
    }
}

impl AlgorithmMessage for Message {
    kinds! {
        Self::Request { .. } => Kind::own("REQUEST", Family::Ask, "asks for the token, with the number of the request"),
        Self::Token(_) => Kind::own("TOKEN", Family::HandOver, "lets its holder enter, and says whose requests were served"),
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { number } => write!(f, "REQUEST number={number}"),
            Self::Token(token) => {
                f.write_str("TOKEN")?;
                let queue: Vec<String> = token.queue.iter().map(ToString::to_string).collect();
                if queue.is_empty() { Ok(()) } else { write!(f, " queue={}", queue.join(",")) }
            }
        }
    }
}
