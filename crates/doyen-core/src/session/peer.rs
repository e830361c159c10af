//! What a process keeps about one other member while it runs. The rules are those in [`session`](super).

use std::net::SocketAddr;

use super::letter::{Challenge, LAST_COUNTER, Met};
use super::window::Window;
use crate::members::SessionId;
use crate::time::Span;

/// S7: the maximum number of doublings of a wait: from the shortest first wait, these reach the longest.
const MOST_DOUBLINGS: u8 = 8;

/// S7: the longest wait before a question is repeated.
const REPEAT_AT_MOST: Span = Span::from_millis(1_000);

/// S7: how long after an answer the next question is asked.
pub(super) const PING: Span = Span::from_millis(2_000);

/// S6: the period for which answers to sessions that have not been met are counted.
pub(super) const PROMPT: Span = Span::from_millis(20);

/// S6: how many of them are given in that period. One would be enough for one process, but another process of the same
/// member must not be able to use it up each time.
const MOST_PROMPTS: u8 = 4;

/// One other member.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Peer {
    /// The session of this member that was met last.
    pub(super) encounter: Option<Encounter>,
    /// The open question to a session that is not met yet.
    pub(super) question: Option<Challenge>,
    /// The open question to the session that is met. It is a different one: the met session must not answer in the
    /// place of a later one.
    pub(super) ping: Option<Challenge>,
    /// The counter of the last letter sent to it.
    counter: u64,
    /// How many greetings have been sent since the last answer, up to the number that makes a difference.
    unanswered: u8,
    /// S8: a message is to be sent to it, so the next greeting goes sooner.
    hurried: bool,
    /// S6: how many answers have been given since the timer was armed.
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

    /// S2, S4: records a letter of the met session; `false` if it was received before. The newest letter determines the
    /// peer's address.
    pub(super) fn accept(&mut self, at: Option<SocketAddr>, counter: u64) -> bool {
        let Some(encounter) = &mut self.encounter else { return false };
        let newest = encounter.window.is_newest(counter);
        if !encounter.window.accept(counter) {
            return false;
        }
        // The last letter of a dead process comes from another socket.
        if newest && counter != LAST_COUNTER {
            encounter.address = at;
        }
        true
    }

    pub(super) fn accepted(&self) -> u64 {
        self.encounter.as_ref().map_or(0, |encounter| encounter.window.accepted())
    }

    /// S7: a greeting has been sent. Returns the wait before the next one, if the first repetition waits for `first`.
    pub(super) fn greeted(&mut self, first: Span) -> Span {
        let wait = (first * (1 << self.unanswered)).min(REPEAT_AT_MOST);
        self.unanswered = (self.unanswered + 1).min(MOST_DOUBLINGS);
        self.hurried = false;
        wait
    }

    pub(super) fn is_unanswered(&self) -> bool {
        self.unanswered > 0
    }

    /// The met session has answered.
    pub(super) fn answered(&mut self) {
        (self.ping, self.unanswered) = (None, 0);
    }

    /// S8: requests the next greeting sooner; returns whether that changes anything.
    pub(super) fn hurry(&mut self) -> bool {
        !std::mem::replace(&mut self.hurried, true)
    }

    /// S6: whether one more answer is allowed.
    pub(super) fn may_be_prompted(&mut self) -> bool {
        let may = self.prompts < MOST_PROMPTS;
        self.prompts += u8::from(may);
        may
    }

    /// The next letter is the last of this session.
    pub(super) fn skip_to_last_counter(&mut self) {
        self.counter = LAST_COUNTER - 1;
    }

    /// The counter of the next letter. No process sends so many that it overflows.
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
