//! A roll call: every member's number goes once round the ring. The two n² rings share it: the active list of the notes and
//! the "elect me" messages of os-textbook.
//!
//! The first number that a member sends or receives in an election is its cue: it sends its own, and *then* passes on the
//! other. So on FIFO links a member's own number follows those of all others; when it returns the roll is complete. The sender
//! of a number removes it from the ring.
//!
//! In textbook mode the roll is closed when the election is over, and every number is passed on whenever it arrives: one whose
//! owner has died circulates forever.
//!
//! In hardened mode a roll call has a [`Round`]. All members that start in the same term share one. A number is passed on once
//! in a round, so that neither an orphan nor a copy goes round twice, and never in a round that is over or older than the
//! member knows of. A member that leads or follows a live leader refuses the roll call of a lower initiator. It adopts its
//! term: when a leader has died and its followers notice one after the other, the last one starts a roll call that all others
//! answer.

use super::leader_tracker::LeaderTracker;
use super::ring::{self, Circular, Hop, Hops, Round};
use crate::config::Config;
use crate::members::{NodeId, PeerSet, Term};
use crate::protocol::Effects;

/// A member's roll.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RollCall {
    round: Round,
    /// Its own number and those it has passed on. Textbook: empty when there is no election.
    numbers: PeerSet,
}

/// What a number is to the member that it has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    /// Its own, and the roll is complete.
    Own,
    /// The first of an election, the cue to send its own.
    First,
    /// Another one, to be passed on.
    Further,
    /// Not to be passed on: it has been here, or no member waits for it any more.
    Known,
    /// Not to be passed on: there has been a later round than this.
    Late,
    /// Not to be passed on: there is a better leader than its initiator.
    Refused,
}

impl RollCall {
    /// No election so far.
    pub(crate) fn new(id: NodeId) -> Self {
        let round = Round { term: Term::default(), initiator: id };
        Self { round, numbers: PeerSet::new() }
    }

    /// The round whose numbers it holds.
    pub(crate) fn round(&self) -> Round {
        self.round
    }

    /// Begins a roll with the member's own number.
    pub(crate) fn open(&mut self, round: Round, id: NodeId) {
        self.round = round;
        self.numbers = PeerSet::from_iter([id]);
    }

    /// Textbook: the election is over, and what comes next belongs to another one. Hardened rolls are kept: they tell
    /// what has been passed on.
    pub(crate) fn close(&mut self, config: &Config) {
        if !config.hardened() {
            self.numbers.clear();
        }
    }

    /// A number has come. If it is to be passed on it is on the roll now.
    pub(crate) fn enter(
        &mut self,
        config: &Config,
        tracker: &LeaderTracker,
        round: Round,
        number: NodeId,
    ) -> Entry {
        if !config.members.contains(number) || !config.members.contains(round.initiator) {
            return Entry::Known;
        }
        let entry = match config.hardened() {
            true => self.classify_hardened(config, tracker, round, number),
            false => self.classify(tracker, number),
        };
        if entry == Entry::First {
            self.open(round, tracker.id());
        }
        if matches!(entry, Entry::First | Entry::Further) {
            self.numbers.insert(number);
        }
        entry
    }

    fn classify(&self, tracker: &LeaderTracker, number: NodeId) -> Entry {
        match (self.numbers.is_empty(), number == tracker.id()) {
            (true, false) => Entry::First,
            (false, false) => Entry::Further,
            (false, true) => Entry::Own,
            // Left over from an election that ended without it.
            (true, true) => Entry::Known,
        }
    }

    fn classify_hardened(
        &self,
        config: &Config,
        tracker: &LeaderTracker,
        round: Round,
        number: NodeId,
    ) -> Entry {
        if number == tracker.id() {
            let complete = tracker.participates() && round.term == self.round.term;
            return if complete { Entry::Own } else { Entry::Known };
        }
        if round.term == self.round.term && !self.numbers.is_empty() {
            let known = self.numbers.contains(number);
            return if known { Entry::Known } else { Entry::Further };
        }
        let initiator = config.members.key(round.initiator);
        if tracker.current_claim().is_some_and(|claim| claim.leader > initiator) {
            return Entry::Refused;
        }
        let decided = tracker.claim().is_some_and(|claim| round.term <= claim.term);
        let late = decided || round.term < tracker.term();
        if late { Entry::Late } else { Entry::First }
    }

    /// The best member on the roll; in hardened mode the best of those that are not down.
    pub(crate) fn highest(&self, config: &Config, tracker: &LeaderTracker) -> NodeId {
        let eligible = |id: &NodeId| !config.hardened() || !tracker.is_down(*id);
        let best = self.numbers.iter().filter(eligible).max_by_key(|&id| config.members.rank(id));
        best.unwrap_or(tracker.id())
    }
}

/// Hands `token` to the neighbour, in hardened mode past members that are down; gives it back if there is no other member.
#[must_use = "a token that is given back is this member's to handle"]
pub(crate) fn pass<T: Clone, P: Circular<T>>(
    hops: &mut Hops<T>,
    config: &Config,
    tracker: &LeaderTracker,
    token: T,
    out: &mut Effects<P>,
) -> Option<T> {
    if config.hardened() {
        return hops.pass(config, tracker, token, out);
    }
    let neighbour = ring::successor(config, tracker, tracker.id());
    if neighbour == tracker.id() {
        return Some(token);
    }
    out.send(neighbour, Hop::unacknowledged(token).into());
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::ring_active_list::RingActiveList;
    use crate::config::{Mode, Timing};
    use crate::members::{Incarnation, Members};
    use crate::protocol::{Boot, Origin};
    use crate::time::Span;

    #[test]
    fn the_numbers_of_strangers_are_not_called() {
        for mode in [Mode::Textbook, Mode::Hardened] {
            let timing = Timing::for_transmission(Span::from_millis(1));
            let config = Config::new(Members::range(1, 3).unwrap(), timing, mode);
            let origin = Origin::Founding { leader: None };
            let boot = Boot::new(Incarnation(1), None, origin);
            let mut out = Effects::<RingActiveList>::new();
            let (tracker, _) = LeaderTracker::start(NodeId(2), &config, &boot, &mut out);
            let mut roll = RollCall::new(NodeId(2));
            let round = |initiator| Round { term: Term(1), initiator: NodeId(initiator) };
            let mut enter = |round, number| roll.enter(&config, &tracker, round, NodeId(number));
            assert_eq!(enter(round(1), 9), Entry::Known);
            assert_eq!(enter(round(9), 1), Entry::Known);
            assert_eq!(enter(round(1), 1), Entry::First);
        }
    }
}
