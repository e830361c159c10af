//! S6 and S10: how many answers and open questions each kind of letter may cause. The rules are those in
//! [`session`](super).

use std::net::SocketAddr;

use super::letter::Challenge;
use crate::members::SessionId;
use crate::time::Span;

/// S6: the period for which answers to sessions that have not been met are counted.
pub(super) const PROMPT: Span = Span::from_millis(20);

/// S6: how many of them are given in that period to each [`Prompter`]. One would be enough for one process, but another
/// process of the same member must not be able to use it up each time.
const MOST_PROMPTS: u8 = 4;

/// S10: how many questions to new addresses may be open for each [`Prompter`].
const MOST_PLACES: usize = 4;

/// S6: what a letter that prompts an answer or a question looks like. Each kind has answers and open questions of its
/// own, so that a flood of replayed letters cannot use up those of the process that is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Prompter {
    /// From a session that may be met, at an address where the member is expected. An attacker who forges that address
    /// only makes the answer go where it should.
    Expected,
    /// From another address, where the answer may be of use to an attacker alone.
    Elsewhere,
    /// From a process that has lost its state, where the member is expected: nothing tells it from an earlier process
    /// that had.
    Stateless,
    /// The same from another address.
    StatelessElsewhere,
    /// From a session that S3 forbids to meet, as nearly all replayed letters are; or from a session that is not known,
    /// with nothing to show that S3 allows to meet it.
    Obsolete,
    /// The newest letter of the met session, from an address to which its messages do not go (S10). It has never been
    /// received before, so no recording is one.
    Roaming,
}

/// The number of kinds.
const KINDS: usize = 6;

/// S6: how many answers each [`Prompter`] has been given in this period.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Prompts([u8; KINDS]);

impl Prompts {
    /// Takes one of the answers that are left.
    pub(super) fn take(&mut self, by: Prompter) -> bool {
        let given = &mut self.0[by as usize];
        let may = *given < MOST_PROMPTS;
        *given += u8::from(may);
        may
    }

    /// Whether no period has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.0 == [0; KINDS]
    }
}

/// S10: an open question to a session at an address where its messages do not go yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Place {
    by: Prompter,
    at: Option<SocketAddr>,
    session: SessionId,
    question: Challenge,
    /// It was open when the last period began.
    is_old: bool,
}

impl Place {
    fn is(&self, session: SessionId, at: Option<SocketAddr>) -> bool {
        (self.session, self.at) == (session, at)
    }
}

/// S10: the open questions to other addresses of a peer. None of them gives way to another one: each stays open for a
/// whole period, in which it can be answered.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Places(Vec<Place>);

impl Places {
    /// The open question to `session` at `at`. If there is none, `new` numbers one; none if no other may be open.
    pub(super) fn question(
        &mut self,
        by: Prompter,
        session: SessionId,
        at: Option<SocketAddr>,
        new: impl FnOnce() -> Challenge,
    ) -> Option<Challenge> {
        if let Some(place) = self.0.iter().find(|place| place.is(session, at)) {
            return Some(place.question);
        }
        let open = self.0.iter().filter(|place| place.by == by).count();
        if by == Prompter::Obsolete || open == MOST_PLACES {
            return None;
        }
        let question = new();
        self.0.push(Place { by, at, session, question, is_old: false });
        Some(question)
    }

    /// Whether `answer` repeats the question to `session` at `at`. If so, the question is closed.
    pub(super) fn close(
        &mut self,
        session: SessionId,
        at: Option<SocketAddr>,
        answer: Option<Challenge>,
    ) -> bool {
        let open = self.0.len();
        self.0.retain(|place| !(place.is(session, at) && answer == Some(place.question)));
        self.0.len() < open
    }

    /// The questions to `session` are void.
    pub(super) fn forget(&mut self, session: SessionId) {
        self.0.retain(|place| place.session != session);
    }

    /// A period has passed: what was open when it began is closed.
    pub(super) fn age(&mut self) {
        self.0.retain(|place| !place.is_old);
        self.0.iter_mut().for_each(|place| place.is_old = true);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    const ALL: [Prompter; KINDS] = [
        Prompter::Expected,
        Prompter::Elsewhere,
        Prompter::Stateless,
        Prompter::StatelessElsewhere,
        Prompter::Obsolete,
        Prompter::Roaming,
    ];

    fn at(port: u16) -> Option<SocketAddr> {
        Some(SocketAddr::from(([192, 0, 2, 1], port)))
    }

    fn session(number: u64) -> SessionId {
        SessionId::from_random(number)
    }

    fn challenge(number: u16) -> Challenge {
        Challenge(NonZeroU64::new(number.into()).unwrap())
    }

    /// Asks session 1 at this port, with a question of the same number.
    fn ask(places: &mut Places, by: Prompter, port: u16) -> Option<Challenge> {
        places.question(by, session(1), at(port), || challenge(port))
    }

    #[test]
    fn no_kind_uses_up_the_answers_of_another() {
        let mut prompts = Prompts::default();
        assert!(prompts.is_empty());
        for by in ALL {
            let given = (0..100).filter(|_| prompts.take(by)).count();
            assert_eq!(given, MOST_PROMPTS.into(), "{by:?}");
        }
        assert!(!prompts.is_empty());
    }

    #[test]
    fn no_question_takes_the_place_of_an_open_one_of_its_kind_or_another() {
        let mut places = Places::default();
        let opened: Vec<(Prompter, u16)> = ALL
            .into_iter()
            .flat_map(|by| (1..=20).map(move |port| (by, by as u16 * 100 + port)))
            .filter(|&(by, port)| ask(&mut places, by, port).is_some())
            .collect();
        for by in ALL {
            let expected = if by == Prompter::Obsolete { 0 } else { MOST_PLACES };
            assert_eq!(opened.iter().filter(|(of, _)| *of == by).count(), expected, "{by:?}");
        }
        for (_, port) in opened {
            assert!(places.close(session(1), at(port), Some(challenge(port))), "port {port}");
        }
        assert!(places.is_empty());
    }

    #[test]
    fn an_obsolete_letter_opens_no_question_and_repeats_an_open_one() {
        let mut places = Places::default();
        assert_eq!(ask(&mut places, Prompter::Obsolete, 1), None);
        assert_eq!(ask(&mut places, Prompter::Elsewhere, 1), Some(challenge(1)));
        assert_eq!(ask(&mut places, Prompter::Obsolete, 1), Some(challenge(1)));
    }

    #[test]
    fn only_its_session_closes_a_question_and_only_from_where_it_was_sent() {
        let mut places = Places::default();
        ask(&mut places, Prompter::Elsewhere, 1);
        ask(&mut places, Prompter::Elsewhere, 2);
        assert!(!places.close(session(2), at(1), Some(challenge(1))), "another session");
        assert!(!places.close(session(1), at(3), Some(challenge(1))), "another address");
        assert!(!places.close(session(1), at(1), Some(challenge(2))), "the question elsewhere");
        assert!(!places.close(session(1), None, Some(challenge(1))), "the configured address");
        assert!(!places.close(session(1), at(1), None), "no answer");
        assert!(places.close(session(1), at(1), Some(challenge(1))));
        assert!(!places.close(session(1), at(1), Some(challenge(1))), "again");
    }

    #[test]
    fn a_question_stays_open_for_one_whole_period_and_at_most_two() {
        let mut places = Places::default();
        ask(&mut places, Prompter::Roaming, 1);
        places.age();
        ask(&mut places, Prompter::Roaming, 2);
        assert_eq!(ask(&mut places, Prompter::Roaming, 1), Some(challenge(1)), "still open");
        places.age();
        assert!(!places.close(session(1), at(1), Some(challenge(1))), "two periods");
        assert!(places.close(session(1), at(2), Some(challenge(2))), "one and a half");
    }
}
