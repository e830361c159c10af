//! What is kept of one other member while this process runs. The rules are those at the head of [`session`](super).

use std::net::SocketAddr;

use super::letter::{Challenge, Met, SessionId};
use super::window::Window;
use crate::time::Span;

/// S7: a wait is doubled so often at most: from the shortest first wait, that is up to the longest.
const MOST_DOUBLINGS: u8 = 8;

/// S7: the longest that a question waits to be repeated.
const REPEAT_AT_MOST: Span = Span::from_millis(1_000);

/// S7: how long after an answer the next question is asked.
pub(super) const PING: Span = Span::from_millis(2_000);

/// S6: for how long answers to sessions that have not been met are counted.
pub(super) const PROMPT: Span = Span::from_millis(20);

/// S6: so many of them are given in that time. One would do for one process: another of the same member must not be able
/// to take its turn each time.
const MOST_PROMPTS: u8 = 4;

/// One other member.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Peer {
    /// The session of it that was met last in this one.
    pub(super) encounter: Option<Encounter>,
    /// The question that stands open for a session that is not met yet.
    pub(super) question: Option<Challenge>,
    /// The question that stands open for the session that is met. It is another one: the met session must not answer in
    /// the place of a later one.
    pub(super) ping: Option<Challenge>,
    /// The counter of the last letter sent to it.
    counter: u64,
    /// How many greetings have been sent since the last answer, as far as that makes a difference.
    unanswered: u8,
    /// S8: something is to be sent to it, and the next greeting goes sooner.
    hurried: bool,
    /// S6: so much has been answered since a timer was armed.
    pub(super) prompts: u8,
}

/// A session of a peer that has answered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Encounter {
    pub(super) met: Met,
    window: Window,
    /// Where its newest letter came from.
    pub(super) address: Option<SocketAddr>,
}

impl Encounter {
    pub(super) fn new(met: Met, address: Option<SocketAddr>) -> Self {
        Self { met, window: Window::default(), address }
    }
}

impl Peer {
    pub(super) fn has_met(&self, session: SessionId) -> bool {
        self.encounter.as_ref().is_some_and(|encounter| encounter.met.session == session)
    }

    /// S2, S4: takes note of a letter of the met session; `false` if it came before. The newest says where the peer is.
    pub(super) fn accept(&mut self, at: Option<SocketAddr>, counter: u64) -> bool {
        let Some(encounter) = &mut self.encounter else { return false };
        let newest = encounter.window.is_newest(counter);
        if !encounter.window.accept(counter) {
            return false;
        }
        if newest {
            encounter.address = at;
        }
        true
    }

    /// How many letters of the met session have been accepted.
    pub(super) fn accepted(&self) -> u64 {
        self.encounter.as_ref().map_or(0, |encounter| encounter.window.accepted())
    }

    /// S7: a greeting has been sent. Returns when the next one is due, if the first repetition waits for `first`.
    pub(super) fn greeted(&mut self, first: Span) -> Span {
        let wait = (first * (1 << self.unanswered)).min(REPEAT_AT_MOST);
        self.unanswered = (self.unanswered + 1).min(MOST_DOUBLINGS);
        self.hurried = false;
        wait
    }

    /// Whether the last greeting has not been answered.
    pub(super) fn is_unanswered(&self) -> bool {
        self.unanswered > 0
    }

    /// The met session has answered.
    pub(super) fn answered(&mut self) {
        (self.ping, self.unanswered) = (None, 0);
    }

    /// S8: whether the next greeting is to go sooner than it would.
    pub(super) fn hurry(&mut self) -> bool {
        !std::mem::replace(&mut self.hurried, true)
    }

    /// S6: whether one more is answered.
    pub(super) fn may_be_prompted(&mut self) -> bool {
        let may = self.prompts < MOST_PROMPTS;
        self.prompts += u8::from(may);
        may
    }

    /// The counter of the next letter. Nobody sends so many that they run out.
    pub(super) fn next_counter(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_repeated_after_a_round_trip_and_then_ever_more_rarely() {
        let (mut peer, first) = (Peer::default(), Span::from_millis(5));
        let waits: Vec<u64> = (0..10).map(|_| peer.greeted(first).as_nanos() / 1_000_000).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]);
        peer.answered();
        assert_eq!(peer.greeted(first), first);
    }
}
