//! The token ring with the recovery of a lost token: what the os-textbook names as a function of a coordinator.
//!
//! Every token has a generation, and so has every search for it. A member is *probed* for the latest generation that it has
//! heard of; a token that is older is *pinned*: its holder may finish, but neither enter with it nor pass it on.
//!
//! | rule | event | action |
//! |---|---|---|
//! | T1–T4 | | as in the [ring](super::token_ring), past members that are reported down |
//! | P1 | a member is reported down, or it is told that the token is lost | the next generation g; PROBE{g} to all |
//! | P2 | PROBE{g}, g not earlier than what it is probed for | probed for g; HAVE{g, whether it holds a token} |
//! | P3 | TOKEN older than what it is probed for | drop it |
//! | P4 | all live members have answered, one holds it | ADOPT{g} to that one; g is used up |
//! | P5 | all live members have answered, none holds it | make TOKEN{g}; g is used up |
//! | P6 | ADOPT{g}, probed for g, holding a token | its token becomes one of g, and is no longer pinned |
//! | P7 | a member is reported up during a search for g | what its earlier process has answered does not count; PROBE{g} to it |
//!
//! So there is at most one token of a generation, and never two members are inside; a search without need loses nothing.
//! *All* live members must answer: a token may be under way to the one that has not, and time-outs do not help. That a
//! member which does not answer is dead must be certain. If it is only silent, one can wait out the longest stay inside, have
//! the resource refuse older generations, or not recover.
//!
//! Departures, and why:
//!
//! - **Who searches**: the lowest member that is not reported down, and any that is told to
//!   ([`Event::Campaign`](crate::protocol::Event)). An elected leader is not needed for safety: generations are dealt out to
//!   the members in turn, so no two members ever use the same, and of two searches the later one wins.
//! - **When**: a member that waits for too long reports that in the specification. Without a bound on stays inside, a lost
//!   token cannot be told from a long stay, so here a scenario says when. That includes a token which a member that has not
//!   heard of a crash yet passes to the crashed one. A search by that member when it learns of the crash would not be
//!   enough: the token may still reach the crashed member's next process.
//! - **The literal reading `raises-token`** has no P6: a first draft of the specification let the holder raise its token by
//!   itself, which makes two tokens of a generation if it passes the token on and crashes before its HAVE arrives.
//! - Messages are not repeated; a link does that. A member that restarts has forgotten what it was probed for, and takes no
//!   token until it is probed again.

pub mod rules;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::member::{Exclusive, Member, Turn};
use crate::config::exclusion::Reliance;
use crate::config::{Config, Variant};
use crate::map::SortedMap;
use crate::members::{NodeId, PeerSet, Term};
use crate::protocol::{AlgorithmMessage, Family, Kind, NoTimer, Section};

/// A member of a ring whose token is recovered when it is lost.
pub type TokenRecovery = Member<Recovery>;

/// What a member knows of the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Recovery {
    begins: bool,
    /// The latest generation that it knows; none after a restart.
    probed: Option<Term>,
    /// The generation of the token that it holds.
    token: Option<Term>,
    search: Option<Search>,
    /// The last generation for which it has searched.
    searched: Term,
    down: PeerSet,
}

/// A search for the token, and who has answered that it holds one, or that it does not.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Search {
    generation: Term,
    answers: SortedMap<NodeId, bool>,
}

/// Messages between the members.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table says what they are")]
pub enum Message {
    Token { generation: Term },
    Probe { generation: Term },
    Have { generation: Term, holds: bool },
    Adopt { generation: Term },
}

fn keeps(config: &Config, reliance: Reliance) -> bool {
    let raises = reliance == Reliance::OnlyAdoptRaises && config.reads(Variant::RaisesToken);
    config.exclusion.keeps(reliance) && !raises
}

impl Exclusive for Recovery {
    type Message = Message;
    type Timer = NoTimer;

    fn new(id: NodeId, founding: bool, config: &Config) -> Self {
        let first = config.exclusion.first.or_else(|| config.members.ring().next());
        Self {
            begins: founding && first == Some(id),
            probed: founding.then_some(Term(0)),
            token: None,
            search: None,
            searched: Term(0),
            down: PeerSet::new(),
        }
    }

    fn start(&mut self, turn: &mut Turn<'_, Self>) {
        if std::mem::take(&mut self.begins) {
            turn.rule("T1");
            self.token = Some(Term(0));
            self.pass_on(turn);
        }
    }

    /// It waits for the token, unless it is alone and has kept it.
    fn request(&mut self, turn: &mut Turn<'_, Self>) {
        if self.may_use_token(turn.config) {
            turn.rule("T2");
            turn.enter();
        }
    }

    fn exit(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("T4");
        self.pass_on(turn);
    }

    fn receive(&mut self, from: NodeId, message: Message, turn: &mut Turn<'_, Self>) {
        match message {
            Message::Token { generation } => self.on_token(generation, turn),
            Message::Probe { generation } => self.on_probe(from, generation, turn),
            Message::Have { generation, holds } => {
                let search = self.search.as_mut().filter(|it| it.generation == generation);
                if let Some(search) = search {
                    search.answers.insert(from, holds);
                    self.finish_search(turn);
                }
            }
            Message::Adopt { generation } => {
                if self.probed == Some(generation) && self.token.is_some() {
                    turn.rule("P6");
                    self.token = Some(generation);
                    self.go_on(turn);
                }
            }
        }
    }

    fn heeds_detector(_: &Config) -> bool {
        true
    }

    fn token(&self, _: NodeId, _: Section) -> Option<Term> {
        self.token
    }

    fn token_in(message: &Message) -> Option<Term> {
        match *message {
            Message::Token { generation } => Some(generation),
            Message::Probe { .. } | Message::Have { .. } | Message::Adopt { .. } => None,
        }
    }

    fn peer_down(&mut self, peer: NodeId, turn: &mut Turn<'_, Self>) {
        self.down.insert(peer);
        let lowest = turn.config.members.iter().find(|&id| !self.down.contains(id));
        if lowest == Some(turn.id) {
            self.look_for_token(turn);
        } else {
            self.finish_search(turn);
        }
    }

    fn peer_up(&mut self, peer: NodeId, turn: &mut Turn<'_, Self>) {
        self.down.remove(peer);
        if let Some(Search { generation, answers }) = &mut self.search {
            turn.rule("P7");
            answers.remove(&peer);
            turn.send(peer, Message::Probe { generation: *generation });
        }
    }

    fn campaign(&mut self, turn: &mut Turn<'_, Self>) {
        self.look_for_token(turn);
    }
}

impl Recovery {
    /// Whether it holds a token that is not pinned.
    fn may_use_token(&self, config: &Config) -> bool {
        self.token.is_some() && (self.token >= self.probed || !keeps(config, Reliance::PinnedStays))
    }

    fn pass_on(&mut self, turn: &mut Turn<'_, Self>) {
        if !self.may_use_token(turn.config) {
            return;
        }
        let members = &turn.config.members;
        let next = members.clockwise(turn.id).find(|&id| id != turn.id && !self.down.contains(id));
        // Alone on the ring, it keeps the token.
        if let (Some(next), Some(generation)) = (next, self.token) {
            self.token = None;
            turn.send(next, Message::Token { generation });
        }
    }

    /// It has a token that it may use.
    fn go_on(&mut self, turn: &mut Turn<'_, Self>) {
        if turn.is_waiting() {
            turn.rule("T2");
            turn.enter();
        } else if !turn.is_inside() {
            turn.rule("T3");
            self.pass_on(turn);
        }
    }

    fn on_token(&mut self, generation: Term, turn: &mut Turn<'_, Self>) {
        let is_old = self.probed.is_none_or(|probed| generation < probed);
        if is_old && keeps(turn.config, Reliance::OldTokenIsDropped) {
            turn.rule("P3");
            return;
        }
        self.token = self.token.max(Some(generation));
        if self.may_use_token(turn.config) {
            self.go_on(turn);
        }
    }

    /// P1.
    fn look_for_token(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("P1");
        let last = self.probed.unwrap_or_default().max(self.searched);
        let generation = match keeps(turn.config, Reliance::GenerationsDiffer) {
            true => turn.config.members.next_term_of(turn.id, last),
            false => last.next(),
        };
        self.searched = generation;
        self.search = Some(Search { generation, answers: SortedMap::new() });
        turn.send_to_others(&Message::Probe { generation });
        turn.send(turn.id, Message::Probe { generation });
    }

    fn on_probe(&mut self, from: NodeId, generation: Term, turn: &mut Turn<'_, Self>) {
        if Some(generation) < self.probed {
            return;
        }
        turn.rule("P2");
        self.probed = Some(generation);
        let holds = self.token.is_some() && keeps(turn.config, Reliance::HolderAnswers);
        turn.send(from, Message::Have { generation, holds });
        if self.token.is_some() && !keeps(turn.config, Reliance::OnlyAdoptRaises) {
            self.token = Some(generation);
            self.go_on(turn);
        }
    }

    /// P4, P5.
    fn finish_search(&mut self, turn: &mut Turn<'_, Self>) {
        let Some(Search { generation, answers }) = &self.search else { return };
        let generation = *generation;
        let members = &turn.config.members;
        let is_enough = match keeps(turn.config, Reliance::AllAnswer) {
            true => members.iter().all(|id| self.down.contains(id) || answers.contains_key(&id)),
            false => answers.len() > members.len() / 2,
        };
        if !is_enough {
            return;
        }
        let holder = answers.iter().find(|&(&id, &holds)| holds && !self.down.contains(id));
        let holder = holder.map(|(&id, _)| id);
        self.search = None;
        match holder {
            Some(holder) => {
                turn.rule("P4");
                turn.send(holder, Message::Adopt { generation });
            }
            None => {
                turn.rule("P5");
                turn.send(turn.id, Message::Token { generation });
            }
        }
    }
}

impl AlgorithmMessage for Message {
    kinds! {
        Self::Token { .. } => Kind::own("TOKEN", Family::HandOver, "lets its holder enter"),
        Self::Probe { .. } => Kind::own("PROBE", Family::Upkeep, "asks whether the receiver holds the token"),
        Self::Have { .. } => Kind::own("HAVE", Family::Answer, "says whether its sender holds the token"),
        Self::Adopt { .. } => Kind::own("ADOPT", Family::HandOver, "makes the receiver's token one of a later generation"),
    }

    /// The token goes round whether any member wants to enter or not.
    fn is_background(&self) -> bool {
        matches!(self, Self::Token { .. })
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token { generation } => write!(f, "TOKEN {generation}"),
            Self::Probe { generation } => write!(f, "PROBE {generation}"),
            Self::Have { generation, holds: true } => write!(f, "HAVE {generation} holds"),
            Self::Have { generation, holds: false } => write!(f, "HAVE {generation} none"),
            Self::Adopt { generation } => write!(f, "ADOPT {generation}"),
        }
    }
}

#[cfg(test)]
mod tests;
