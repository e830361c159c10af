//! The token ring: a token goes round, and its holder may enter (cs677).
//!
//! | rule | event | action |
//! |---|---|---|
//! | T1 | start, first member | has the token, and passes it on |
//! | T2 | TOKEN while it waits | enters |
//! | T3 | TOKEN otherwise | TOKEN to its successor on the ring |
//! | T4 | Exit | TOKEN to its successor, even if it wants to enter again |
//!
//! T4 makes it one entry for each visit of the token; otherwise one member could keep all others out. The first member is
//! the one that the configuration names, by default the first on the ring.
//!
//! Cost: 1 message for each entry if all members want to enter, N if one always does, and one message in each message time
//! without end if none does: the token never rests. A member waits for less than N hops; cs677's upper end of N−1 is too
//! low, because a member may ask just after it has passed the token on. If a member crashes, the token is lost when it comes
//! by at the latest.

pub mod rules;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::member::{Exclusive, Member, Turn};
use crate::config::Config;
use crate::config::exclusion::Reliance;
use crate::members::{NodeId, Term};
use crate::protocol::{AlgorithmMessage, Family, Kind, NoTimer, Section};

/// A member of a ring with a token.
pub type TokenRing = Member<Ring>;

/// Whether the member starts with the token. It holds it only while it is inside, and then its section says so.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ring {
    begins: bool,
}

/// The token.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Token;

impl Exclusive for Ring {
    type Message = Token;
    type Timer = NoTimer;

    fn new(id: NodeId, founding: bool, config: &Config) -> Self {
        let first = config.exclusion.first.or_else(|| config.members.ring().next());
        let is_first = first == Some(id) || !config.exclusion.keeps(Reliance::OneBegins);
        Self { begins: founding && is_first }
    }

    fn start(&mut self, turn: &mut Turn<'_, Self>) {
        if std::mem::take(&mut self.begins) {
            turn.rule("T1");
            pass_on(turn);
        }
    }

    /// It waits for the token.
    fn request(&mut self, turn: &mut Turn<'_, Self>) {
        // Alone on the ring, it has the token already.
        if turn.config.members.len() == 1 {
            turn.rule("T2");
            turn.enter();
        }
    }

    fn exit(&mut self, turn: &mut Turn<'_, Self>) {
        turn.rule("T4");
        if turn.config.exclusion.keeps(Reliance::LeavingPassesOn) {
            pass_on(turn);
        }
    }

    fn token(&self, _: NodeId, section: Section) -> Option<Term> {
        section.is_inside().then_some(Term(0))
    }

    fn token_in(_: &Token) -> Option<Term> {
        Some(Term(0))
    }

    fn receive(&mut self, _: NodeId, Token: Token, turn: &mut Turn<'_, Self>) {
        if turn.is_waiting() {
            turn.rule("T2");
            turn.enter();
            if !turn.config.exclusion.keeps(Reliance::InsideKeepsTheToken) {
                pass_on(turn);
            }
        } else {
            turn.rule("T3");
            pass_on(turn);
        }
    }
}

/// Alone on the ring, it keeps the token.
fn pass_on(turn: &mut Turn<'_, Ring>) {
    let next = turn.config.members.next_clockwise(turn.id);
    if next != turn.id {
        turn.send(next, Token);
    }
}

impl AlgorithmMessage for Token {
    kinds! {
        Self => Kind::own("TOKEN", Family::HandOver, "lets its holder enter"),
    }

    /// It goes round whether any member wants to enter or not.
    fn is_background(&self) -> bool {
        true
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TOKEN")
    }
}
