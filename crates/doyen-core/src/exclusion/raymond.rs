//! Raymond 1989: the token moves along the edges of a tree (cs425).
//!
//! Each member knows in which direction the token is (`holder`: itself or a neighbour), and keeps a queue of the neighbours,
//! and itself, that want it.
//!
//! | rule | event | action |
//! |---|---|---|
//! | Y1 | Request | queues itself; Y5 |
//! | Y2 | REQUEST | queues the neighbour; Y5 |
//! | Y3 | TOKEN | the token is here; Y5 |
//! | Y4 | Exit | Y5 |
//! | Y5 | the token is here and idle, and the queue is not empty | takes the first: itself enters, a neighbour gets TOKEN. Then, if the token is elsewhere, the queue is not empty and it has not asked: REQUEST towards the token |
//!
//! Cost: d REQUESTs and d TOKENs for a token d hops away, a delay of 2dD, and nothing at exit; cs425's D messages at exit
//! belong to the next entry. In saturation 4(N−1)/N messages for each entry, on any tree: a round of N entries crosses each
//! edge twice. If an inner member crashes, the tree falls apart.
//!
//! The trees are a star (the lowest member is its centre), a line, and a full binary tree, all in the order of the ids. The
//! token begins at the member that the configuration names, by default the lowest.

pub mod rules;

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::member::{Exclusive, Member, Turn};
use crate::config::Config;
use crate::config::exclusion::Reliance;
use crate::members::{NodeId, Term};
use crate::protocol::{AlgorithmMessage, Family, Kind, NoTimer, Section};

/// A member that runs Raymond's algorithm.
pub type Raymond = Member<TreeNode>;

/// Where the token is, and who wants it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TreeNode {
    /// Itself, or the neighbour in whose direction the token is.
    holder: NodeId,
    asked: bool,
    queue: VecDeque<NodeId>,
}

/// The messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table of the rules says what they mean")]
pub enum Message {
    Request,
    Token,
}

impl Exclusive for TreeNode {
    type Message = Message;
    type Timer = NoTimer;

    /// A member that comes back does not know where the token is, and takes the direction of the beginning. It has none
    /// itself, unless it is alone.
    fn new(id: NodeId, founding: bool, config: &Config) -> Self {
        let members = &config.members;
        let first = config.exclusion.first.unwrap_or_else(|| members.at(0));
        let position = |id| members.position(id).unwrap_or_default();
        let towards = config.exclusion.tree.next_hop(position(id), position(first), members);
        let other = (0..members.len()).find(|&at| at != position(id));
        let holder = match (towards == position(id), founding, other) {
            (true, false, Some(other)) => {
                config.exclusion.tree.next_hop(position(id), other, members)
            }
            _ => towards,
        };
        Self { holder: members.at(holder), asked: false, queue: VecDeque::new() }
    }

    fn request(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("Y1");
        self.queue.push_back(turn.id);
        self.serve(turn);
    }

    fn exit(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("Y4");
        self.serve(turn);
    }

    fn token(&self, id: NodeId, _: Section) -> Option<Term> {
        (self.holder == id).then_some(Term(0))
    }

    fn token_in(message: &Message) -> Option<Term> {
        (*message == Message::Token).then_some(Term(0))
    }

    fn receive(&mut self, from: NodeId, message: Message, turn: &mut Turn<'_, Self>) {
        match message {
            Message::Request => {
                turn.rule("Y2");
                self.queue.push_back(from);
            }
            Message::Token => {
                turn.rule("Y3");
                (self.holder, self.asked) = (turn.id, self.asked_on(turn));
            }
        }
        self.serve(turn);
    }
}

impl TreeNode {
    /// Whether it counts as having asked once the token has come or gone: its request is answered.
    fn asked_on(&self, turn: &Turn<'_, Self>) -> bool {
        self.asked && !turn.config.exclusion.keeps(Reliance::AsksAgain)
    }

    /// Y5.
    fn serve(&mut self, turn: &mut Turn<'_, Self>) {
        if self.holder == turn.id
            && !turn.is_inside()
            && let Some(next) = self.queue.pop_front()
        {
            turn.rule("Y5");
            if next == turn.id {
                turn.enter();
            } else {
                turn.send(next, Message::Token);
                (self.holder, self.asked) = (next, self.asked_on(turn));
            }
        }
        if self.holder != turn.id && !self.queue.is_empty() && !self.asked {
            turn.send(self.holder, Message::Request);
            self.asked = true;
        }
    }
}

impl AlgorithmMessage for Message {
    kinds! {
        Self::Request => Kind::own("REQUEST", Family::Ask, "asks for the token, for the sender or a member behind it"),
        Self::Token => Kind::own("TOKEN", Family::HandOver, "lets its holder enter"),
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::KINDS[self.index()].name)
    }
}
