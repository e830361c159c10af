//! What a process keeps about one other member while it runs. The rules are those in [`session`](super).

use std::net::SocketAddr;

use super::letter::{Challenge, LAST_COUNTER, Met};
use super::places::{Places, Prompts};
use super::window::Window;
use crate::members::SessionId;
use crate::time::Span;

/// S7: the maximum number of doublings of a wait: from the shortest first wait, these reach the longest.
const MOST_DOUBLINGS: u8 = 8;

/// S7: the longest wait before a question is repeated.
const REPEAT_AT_MOST: Span = Span::from_millis(1_000);

/// S7: how long after an answer the next question is asked.
pub(super) const PING: Span = Span::from_millis(2_000);

/// What a letter of the met session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// It was received before, or is too old to tell.
    Replayed,
    /// It counts.
    Fresh,
    /// It counts and is the newest, and came from another address than the peer's (S10).
    FromElsewhere,
}

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
    /// S6: the answers that have been given since the timer was armed.
    pub(super) prompts: Prompts,
    /// S10: the open questions to other addresses.
    pub(super) places: Places,
}

/// A session of a peer that has answered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Encounter {
    pub(super) met: Met,
    window: Window,
    /// S10: where it has answered; none: at the address of its configured name.
    pub(super) address: Option<SocketAddr>,
}

impl Encounter {
    pub(super) fn new(met: Met) -> Self {
        Self { met, window: Window::default(), address: None }
    }
}

impl Peer {
    pub(super) fn has_met(&self, session: SessionId) -> bool {
        self.encounter.as_ref().is_some_and(|encounter| encounter.met.session == session)
    }

    /// S2, S4: records a letter of the met session. The newest letter shows where the peer is: if that is where its
    /// messages go, questions to other addresses are void.
    pub(super) fn accept(&mut self, at: Option<SocketAddr>, counter: u64) -> Arrival {
        let Some(encounter) = &mut self.encounter else { return Arrival::Replayed };
        let newest = encounter.window.is_newest(counter);
        if !encounter.window.accept(counter) {
            return Arrival::Replayed;
        }
        // The last letter of a dead process comes from another socket.
        if !newest || counter == LAST_COUNTER {
            return Arrival::Fresh;
        }
        if encounter.address != at {
            return Arrival::FromElsewhere;
        }
        self.places.forget(encounter.met.session);
        Arrival::Fresh
    }

    /// S10: from now on, messages to the met session go to `at`.
    pub(super) fn move_to(&mut self, at: Option<SocketAddr>) {
        if let Some(encounter) = &mut self.encounter {
            encounter.address = at;
        }
    }

    /// Whether its messages go to `at`, or would if it were met there.
    pub(super) fn is_expected_at(&self, at: Option<SocketAddr>) -> bool {
        at.is_none() || self.encounter.as_ref().is_some_and(|encounter| encounter.address == at)
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
