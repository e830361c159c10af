//! What the ring algorithms share: how a token gets from a member to the next live one, and how hardened rings number their
//! rounds.
//!
//! **Hops.** cs677: send "to closest downstream node that is alive; sequentially poll each successor until a live node is
//! found". A member sends its token to its clockwise neighbour and waits `T_hop` = 2D + p for HOP-ACK; if none arrives it tries
//! the next neighbour, and so on round the ring.
//!
//! - Members that the failure detector reports as down are not tried. A member remembers nothing else about dead ones: the
//!   next token tries them again, which is why f dead members cost 2f unanswered probes in a list ring's two circuits. A memory
//!   of its own would exclude a member that was slow once, because it sends nothing on the ring afterwards.
//! - When the search returns to the searcher, no other member is alive and it gets the token back, without a message. So a
//!   single member elects itself.
//! - A hop is named by the lowest number that none of the sender's other hops has, so that numbers, timers and states stay
//!   few. A HOP-ACK later than `T_hop` can therefore be taken for that of a later hop to the same member. If that member has
//!   died in the meantime, the token is lost, as any token can be: rounds are made for that.
//! - A HOP-ACK that is late or lost makes two copies of a token, one for each of two successors. Textbook rings assume that
//!   this cannot happen. Hardened rings must pass on only one of them.
//! - The two circuits of every live member are at most 2N tokens; a member waits for no more hops than that and gives up the
//!   oldest.
//!
//! **Rounds.** No member removes a token whose initiator has died (F15, F16), and no member misses a token that is lost (F14).
//! So a token carries its [`Round`] and its hops. It is dropped after 2N hops, or by a member that has seen a later round. And a
//! member that has passed it on starts a round of its own when `T_re(k) = 2N(D+p) + N·T_hop + k·N(D+p)` has passed without an
//! end, k being its distance from the initiator: in cs425, "have the initiator's successor wait a while, then reinitiate a new
//! election. Do the same for this successor's successor, and so on".

use std::fmt;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use super::elective::Elective;
use super::leader_tracker::{Background, BackgroundTimer, LeaderTracker};
use crate::config::Config;
use crate::members::{NodeId, Term};
use crate::protocol::{self, AlgorithmMessage, Context, Kind};
use crate::time::Span;

/// What goes over one edge of the ring: a token, or its HOP-ACK.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Hop<T> {
    /// The token, clockwise.
    Pass {
        /// The hop's number, for its HOP-ACK; none if no member waits for one.
        number: Option<HopNumber>,
        token: T,
    },
    /// "Your token is here", anticlockwise.
    Ack { number: HopNumber },
}

/// What tells apart the hops whose HOP-ACK a member waits for; also the tag of the timer that ends the wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HopNumber(pub u32);

impl<T> Hop<T> {
    /// A token without HOP-ACK: that of os-textbook, where no member is skipped.
    pub(crate) const fn unacknowledged(token: T) -> Self {
        Self::Pass { number: None, token }
    }
}

impl fmt::Debug for HopNumber {
    /// The bare number: the timer of a hop reads `Hop(2)` in a trace.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Hop<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass { token, .. } => token.fmt(f),
            Self::Ack { .. } => f.write_str("HOP-ACK"),
        }
    }
}

/// The messages of a ring whose only messages in an election are tokens.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message<T> {
    /// A token in transit round the ring, or its HOP-ACK.
    Hop(Hop<T>),
    /// A message of hardened mode outside elections.
    Background(Background),
}

/// What goes round a ring.
pub trait Token: Clone + Eq + Hash + fmt::Debug + fmt::Display + Serialize {
    /// The kinds of its messages: those of its tokens, then [`HOP_ACK`], `ALIVE` and `NACK`.
    const KINDS: &'static [Kind];

    /// Which of them it is.
    fn index(&self) -> usize;
}

/// The kind of a HOP-ACK.
pub const HOP_ACK: Kind = Kind::link("HOP-ACK", "confirms that a message on the ring has arrived");

impl<T: Token> AlgorithmMessage for Message<T> {
    const KINDS: &'static [Kind] = T::KINDS;

    fn index(&self) -> usize {
        match self {
            Self::Hop(Hop::Pass { token, .. }) => token.index(),
            Self::Hop(Hop::Ack { .. }) => T::KINDS.len() - 3,
            Self::Background(message) => T::KINDS.len() - 2 + message.index(),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Message<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hop(hop) => hop.fmt(f),
            Self::Background(message) => message.fmt(f),
        }
    }
}

impl<T> From<Hop<T>> for Message<T> {
    fn from(hop: Hop<T>) -> Self {
        Self::Hop(hop)
    }
}

impl<T> From<Background> for Message<T> {
    fn from(message: Background) -> Self {
        Self::Background(message)
    }
}

/// What a member of a ring waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// `T_hop`: the HOP-ACK of its successor.
    Hop(HopNumber),
    /// `T_re`: the end of the round that it takes part in.
    Round,
    /// A timer of hardened mode outside elections.
    Background(BackgroundTimer),
}

conversions! {
    HopNumber => Timer::Hop,
    BackgroundTimer => Timer::Background,
}

/// An algorithm whose members pass a token of type `T` round the ring.
pub(crate) trait Circular<T>: Elective<Message: From<Hop<T>>, Timer = Timer> {}

impl<A: Elective<Message: From<Hop<T>>, Timer = Timer>, T> Circular<T> for A {}

/// The tokens that a member has sent and whose HOP-ACK it waits for. One word when there are none.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(clippy::box_collection, reason = "one word instead of three, a million times")]
pub(crate) struct Hops<T>(Option<Box<Vec<Pending<T>>>>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Pending<T> {
    number: HopNumber,
    /// Whose HOP-ACK is awaited.
    to: NodeId,
    token: T,
}

impl<T: Clone> Hops<T> {
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    /// Hands `token` to the next live successor; gives it back if there is none.
    #[must_use = "a token that is given back is this member's to handle"]
    pub(crate) fn pass<P: Circular<T>>(
        &mut self,
        tracker: &LeaderTracker,
        token: T,
        cx: &mut Context<'_, P>,
    ) -> Option<T> {
        let to = successor(cx.config, tracker, tracker.id());
        if to == tracker.id() {
            return Some(token);
        }
        let pending = self.0.get_or_insert_default();
        if pending.len() >= 2 * cx.config.members.len() {
            cx.cancel_timer(pending.remove(0).number);
        }
        let taken = |number| pending.iter().any(|hop| hop.number == number);
        let number = (0..).map(HopNumber).find(|&number| !taken(number));
        let number = number.expect("some number is free: fewer hops than numbers are pending");
        pending.push(Pending { number, to, token: token.clone() });
        send(number, to, token, cx);
        None
    }

    /// Takes what came over an edge of the ring. A token is acknowledged and returned; a HOP-ACK ends a wait.
    pub(crate) fn receive<P: Circular<T>>(
        &mut self,
        from: NodeId,
        hop: Hop<T>,
        cx: &mut Context<'_, P>,
    ) -> Option<T> {
        match hop {
            Hop::Pass { number, token } => {
                if let Some(number) = number {
                    cx.send(from, Hop::Ack { number });
                }
                Some(token)
            }
            Hop::Ack { number } => {
                if self.take(|hop| hop.number == number && hop.to == from).is_some() {
                    cx.cancel_timer(number);
                }
                None
            }
        }
    }

    /// `T_hop` has gone by without HOP-ACK: polls the next successor. Returns the token if the search has come round.
    #[must_use = "a token that is given back is this member's to handle"]
    pub(crate) fn on_timer<P: Circular<T>>(
        &mut self,
        tracker: &LeaderTracker,
        number: HopNumber,
        cx: &mut Context<'_, P>,
    ) -> Option<T> {
        let hop = self.0.as_mut()?.iter_mut().find(|hop| hop.number == number)?;
        hop.to = successor(cx.config, tracker, hop.to);
        if hop.to == tracker.id() {
            return self.take(|hop| hop.number == number).map(|hop| hop.token);
        }
        send(number, hop.to, hop.token.clone(), cx);
        None
    }

    fn take(&mut self, is_it: impl Fn(&Pending<T>) -> bool) -> Option<Pending<T>> {
        let pending = self.0.as_mut()?;
        let place = pending.iter().position(is_it)?;
        let hop = pending.remove(place);
        if pending.is_empty() {
            self.0 = None;
        }
        Some(hop)
    }
}

fn send<T, P: Circular<T>>(number: HopNumber, to: NodeId, token: T, cx: &mut Context<'_, P>) {
    cx.send(to, Hop::Pass { number: Some(number), token });
    cx.set_timer(number, cx.config.timing.reply());
}

/// The first member clockwise of `after` that is not down; the asking member itself if the search reaches it.
#[inline(always)]
pub(crate) fn successor(config: &Config, tracker: &LeaderTracker, after: NodeId) -> NodeId {
    let next = config.members.next_clockwise(after);
    if tracker.is_down(next) { successor_past(config, tracker, next) } else { next }
}

/// The same where the neighbour of the one that is asked about is `down`.
#[cold]
fn successor_past(config: &Config, tracker: &LeaderTracker, down: NodeId) -> NodeId {
    let mut next = down;
    while next != tracker.id() && tracker.is_down(next) {
        next = config.members.next_clockwise(next);
    }
    next
}

/// The identity of an election on a ring: its number, and its initiator where two began at once.
/// Ordered by number first. The specification's third part, the initiator's incarnation, is not needed: its terms are durable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Round {
    /// The election's number; zero where rounds are not numbered.
    pub term: Term,
    /// The member that started it.
    pub initiator: NodeId,
}

impl fmt::Display for Round {
    /// `init=2`, and ` term=3` where rounds are numbered.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "init={}", self.initiator)?;
        protocol::write_term(f, self.term)
    }
}

/// 2N: a token that has gone further than two circuits has lost the member that would remove it.
pub(crate) fn hop_limit(config: &Config) -> u32 {
    u32::try_from(2 * config.members.len()).unwrap_or(u32::MAX)
}

/// `T_re`: how long `member` waits for the end of `round` before it begins one of its own. Two circuits of the live members
/// and the unanswered hops to dead members take no longer than the first two terms. The third lets the members come one
/// after the other, the initiator (k = 0) first, then its successor (k = 1), …
pub(crate) fn re_initiation(config: &Config, round: Round, member: NodeId) -> Span {
    let n = config.members.len() as u64;
    let k = config.members.ring_distance(round.initiator, member) as u64;
    let circuit = (config.timing.transmission + config.timing.processing) * n;
    circuit * 2 + config.timing.reply() * n + circuit * k
}
