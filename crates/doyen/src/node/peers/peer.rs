//! What is kept of one peer. The rules are those at the head of [`peers`](super).

use std::net::SocketAddr;
use std::time::Duration;

use doyen_core::members::{Incarnation, NodeId};
use doyen_core::time::Span;

use super::Contact;
use crate::node::clock::Moment;
use crate::node::window::Window;
use crate::node::wire::{Challenge, Rejection, Session};

/// S7: after how long a question is repeated for the first time; twice as long each further time.
pub(super) const REPEAT: Span = Span::from_millis(100);

/// S7: the longest that a question waits to be repeated.
pub(super) const REPEAT_AT_MOST: Span = Span::from_millis(1_000);

/// S7: how long after an answer the next question is asked.
pub(super) const PING: Span = Span::from_millis(2_000);

/// S6: the least time between two answers to whom has not been met.
pub(super) const PROMPT: Span = Span::from_millis(20);

/// How long after the last word of a peer its name is resolved again: a ping and its first repetitions got no answer.
pub(super) const SILENCE: Span = Span::from_millis(3_000);

/// How long after the last time a name is resolved again.
pub(super) const RESOLVE: Span = Span::from_millis(5_000);

/// One other member.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) id: NodeId,
    /// The life of it that has been met last.
    pub(super) met: Option<Acquaintance>,
    /// The highest incarnation of those met before it.
    former: Incarnation,
    /// The highest incarnation of this node's that it has met in other sessions, once it has said so.
    pub(super) seen_of_me: Option<Incarnation>,
    /// Whether it was last heard to be configured otherwise.
    pub(super) configured_otherwise: bool,
    /// Where its configured name leads to, as last resolved.
    configured: Option<SocketAddr>,
    /// The counter of the last datagram sent to it.
    counter: u64,
    /// The question that stands open.
    asked: Option<Question>,
    /// When a Hello was last sent by S7.
    greeted: Option<Moment>,
    /// When the next one is due.
    hello_due: Moment,
    /// How many have been sent since the last answer.
    unanswered: u32,
    /// When S6 last let something pass.
    prompted: Option<Moment>,
    last_heard: Option<Moment>,
    round_trip: Option<Duration>,
    /// When its name may be resolved again.
    resolve_due: Moment,
}

/// A life of a peer that has answered.
#[derive(Debug)]
pub(super) struct Acquaintance {
    pub(super) session: Session,
    incarnation: Incarnation,
    window: Window,
    /// Where its newest datagram came from.
    pub(super) address: SocketAddr,
}

#[derive(Debug)]
struct Question {
    challenge: Challenge,
    at: Moment,
    /// Whether it was asked again: then nobody knows which time was answered, and how long that took.
    repeated: bool,
}

impl Peer {
    pub(super) fn new(id: NodeId, now: Moment) -> Self {
        Self {
            id,
            met: None,
            former: Incarnation::default(),
            seen_of_me: None,
            configured_otherwise: false,
            configured: None,
            counter: 0,
            asked: None,
            greeted: None,
            hello_due: now,
            unanswered: 0,
            prompted: None,
            last_heard: None,
            round_trip: None,
            resolve_due: now,
        }
    }

    pub(super) fn contact(&self) -> Contact {
        Contact {
            id: self.id,
            address: self.met.as_ref().map(|met| met.address),
            incarnation: self.met.as_ref().map(|met| met.incarnation),
            last_heard: self.last_heard,
            round_trip: self.round_trip,
            seen_of_me: self.seen_of_me,
            configured_otherwise: self.configured_otherwise,
        }
    }

    pub(super) fn has_met(&self, session: Session) -> bool {
        self.met.as_ref().is_some_and(|met| met.session == session)
    }

    /// S3: whether a life with this incarnation comes after all that were met.
    pub(super) fn may_meet(&self, incarnation: Incarnation) -> bool {
        let met = self.met.as_ref().map_or(Incarnation::default(), |met| met.incarnation);
        incarnation > met
    }

    /// S9: the highest incarnation met in another session than this one. To whom it is not known which session it is
    /// in, nothing can be said.
    pub(super) fn met_apart_from(&self, session: Option<Session>) -> Incarnation {
        match (&self.met, session) {
            (Some(met), Some(session)) if met.session != session => met.incarnation,
            (_, Some(_)) => self.former,
            (_, None) => Incarnation::default(),
        }
    }

    /// S1: this life has answered.
    pub(super) fn meet(&mut self, session: Session, incarnation: Incarnation, address: SocketAddr) {
        let met = Acquaintance { session, incarnation, window: Window::default(), address };
        if let Some(before) = self.met.replace(met) {
            self.former = before.incarnation;
        }
    }

    /// S2, S4: takes note of a datagram of the met session, unless it came before. The newest says where the peer is.
    pub(super) fn on_accepted(
        &mut self,
        now: Moment,
        source: SocketAddr,
        counter: u64,
    ) -> Result<(), Rejection> {
        let met = self.met.as_mut().ok_or(Rejection::Session)?;
        let newest = met.window.is_newest(counter);
        if !met.window.accept(counter) {
            return Err(Rejection::Replayed);
        }
        if newest {
            met.address = source;
        }
        self.last_heard = Some(now);
        self.configured_otherwise = false;
        Ok(())
    }

    /// Whether this is the question that stands open.
    pub(super) fn has_asked(&self, challenge: Challenge) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.challenge == challenge)
    }

    /// The question that stands open, or a new one.
    pub(super) fn ask(&mut self, now: Moment) -> Result<Challenge, getrandom::Error> {
        if let Some(asked) = &mut self.asked {
            asked.repeated = true;
            return Ok(asked.challenge);
        }
        let challenge = Challenge::draw()?;
        self.asked = Some(Question { challenge, at: now, repeated: false });
        // Should it get lost, it is repeated like any other.
        self.hello_due = self.hello_due.min(now.after(REPEAT));
        Ok(challenge)
    }

    /// The open question has been answered.
    pub(super) fn on_answer(&mut self, now: Moment) {
        let timed = self.asked.take().filter(|asked| !asked.repeated);
        if let Some(asked) = timed {
            self.round_trip = Some(smoothed(self.round_trip, now.since(asked.at)));
        }
        self.unanswered = 0;
        // Without a measurement yet there is no reason to wait.
        let wait = if self.round_trip.is_some() { PING } else { REPEAT };
        self.hello_due = now.after(wait);
    }

    pub(super) fn hello_due(&self) -> Moment {
        self.hello_due
    }

    /// Where a Hello goes: to both places a peer may be in, if it has not answered the last one.
    pub(super) fn targets(&self) -> [Option<SocketAddr>; 2] {
        let met = self.met.as_ref().map(|met| met.address);
        match (met, self.configured) {
            (Some(met), Some(configured)) if met != configured && self.unanswered > 0 => {
                [Some(met), Some(configured)]
            }
            (met, configured) => [met.or(configured), None],
        }
    }

    /// S7: a Hello has been sent; when is the next one?
    pub(super) fn on_hello_sent(&mut self, now: Moment) {
        let doubled = REPEAT * (1 << self.unanswered.min(8));
        self.unanswered = self.unanswered.saturating_add(1);
        self.greeted = Some(now);
        self.hello_due = now.after(doubled.min(REPEAT_AT_MOST));
    }

    /// S8: somebody wants to send it something.
    pub(super) fn hurry(&mut self, now: Moment) {
        let soon = self.greeted.map_or(now, |greeted| greeted.after(REPEAT));
        self.hello_due = self.hello_due.min(soon);
    }

    /// S6. If so, the next time is counted from now.
    pub(super) fn may_be_prompted(&mut self, now: Moment) -> bool {
        let may = self.prompted.is_none_or(|last| last.after(PROMPT) <= now);
        if may {
            self.prompted = Some(now);
        }
        may
    }

    /// Whether its name is to be resolved. If so, not again for a while.
    pub(super) fn wants_resolving(&mut self, now: Moment) -> bool {
        let wants = self.is_silent(now) && self.resolve_due <= now;
        if wants {
            self.resolve_due = now.after(RESOLVE);
        }
        wants
    }

    /// Its name leads here. If that is news of a silent peer, it is greeted there at once.
    pub(super) fn on_resolved(&mut self, now: Moment, address: SocketAddr) {
        if self.configured.replace(address) != Some(address) && self.is_silent(now) {
            self.hello_due = now;
        }
    }

    /// Whether it is here: where it was met, or where its configured name leads to.
    pub(super) fn is_at(&self, address: SocketAddr) -> bool {
        let met = self.met.as_ref().map(|met| met.address);
        [met, self.configured].contains(&Some(address))
    }

    fn is_silent(&self, now: Moment) -> bool {
        self.last_heard.is_none_or(|heard| heard.after(SILENCE) <= now)
    }

    /// The counter of the next datagram. Nobody sends so many that they run out.
    pub(super) fn next_counter(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }
}

/// The mean of all measurements, the latest counting an eighth, as TCP does it.
fn smoothed(before: Option<Duration>, measured: Duration) -> Duration {
    before.map_or(measured, |before| (before * 7 + measured) / 8)
}
