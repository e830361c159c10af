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
//!
//! What the two do when a member's own number has returned is their [`Reading`]; the rest is [`RollCallRing`].

use std::fmt::Debug;
use std::hash::Hash;

use super::elective::Elective;
use super::leader_tracker::{Background, LeaderTracker};
use super::ring::{self, Hop, Hops, Message, Round, Timer, Token};
use crate::config::{Config, Timing};
use crate::members::{NodeId, PeerSet, Term};
use crate::protocol::{Boot, Context};

/// Which source's roll call a member runs, with the data that only this one needs.
pub trait Reading: Clone + Eq + Hash + Debug + Default {
    /// What goes round its ring.
    type Token: Token + Copy;
    /// The names of the rules that both have.
    const IDS: RuleIds;

    /// The token that carries the number of `member`.
    fn number(round: Round, member: NodeId) -> Self::Token;

    /// A token has come.
    fn on_token(
        ring: &mut RollCallRing<Self>,
        token: Self::Token,
        cx: &mut Context<'_, RollCallRing<Self>>,
    );

    /// Its own number has returned: the roll is complete.
    fn on_complete(ring: &mut RollCallRing<Self>, cx: &mut Context<'_, RollCallRing<Self>>);

    /// Its own number has found no other live member.
    fn on_alone(ring: &mut RollCallRing<Self>, cx: &mut Context<'_, RollCallRing<Self>>);

    /// Whether this member passes on another member's number.
    fn passes_on(_: &RollCallRing<Self>, _: &Config) -> bool {
        true
    }
}

/// The names of rules in the table of a source.
#[derive(Clone, Copy, Debug)]
pub struct RuleIds {
    /// It starts an election.
    pub start: &'static str,
    /// The first number of an election has come.
    pub first: &'static str,
    /// A further one has come.
    pub further: &'static str,
    /// It learns of no winner in time.
    pub overdue: &'static str,
    /// There is a better leader than the initiator.
    pub refused: &'static str,
    /// There has been a later round.
    pub late: &'static str,
}

/// A member that runs a roll call: [`RingActiveList`](super::ring_active_list::RingActiveList) or
/// [`RingAllIds`](super::ring_all_ids::RingAllIds).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RollCallRing<R: Reading> {
    pub(super) tracker: LeaderTracker,
    pub(super) roll: RollCall,
    /// Hardened mode's hops.
    hops: Hops<R::Token>,
    pub(super) reading: R,
}

impl<R: Reading> Elective for RollCallRing<R> {
    type Message = Message<R::Token>;
    type Timer = Timer;

    fn new(tracker: LeaderTracker, _: &Config, _: &Boot<Term>) -> Self {
        let roll = RollCall::new(tracker.id());
        Self { tracker, roll, hops: Hops::new(), reading: R::default() }
    }

    fn tracker(&self) -> &LeaderTracker {
        &self.tracker
    }

    fn tracker_mut(&mut self) -> &mut LeaderTracker {
        &mut self.tracker
    }

    fn electing(&self) -> bool {
        self.tracker.participates()
    }

    fn on_message(&mut self, from: NodeId, message: Self::Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Hop(hop) => {
                if let Some(token) = self.hops.receive(from, hop, cx) {
                    R::on_token(self, token, cx);
                }
            }
            Message::Background(message) => self.on_background(from, message, cx),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Hop(number) => {
                let back = self.hops.on_timer(&self.tracker, number, cx);
                self.take_back(back, cx);
            }
            Timer::Round => {
                cx.rule(R::IDS.overdue);
                self.tracker.election_failed();
                self.call_election(cx);
            }
            Timer::Background(timer) => self.on_background_timer(timer, cx),
        }
    }

    fn call_election(&mut self, cx: &mut Context<'_, Self>) {
        cx.rule(R::IDS.start);
        cx.election_started();
        let me = self.tracker.id();
        let term = self.tracker.open_term(cx);
        self.roll.open(Round { term, initiator: me }, me);
        self.participate(cx);
    }

    fn end_election(&mut self, cx: &mut Context<'_, Self>) {
        if self.electing() && cx.config.hardened() {
            cx.cancel_timer(Timer::Round);
        }
        self.tracker.set_participant(false);
        self.roll.close(cx.config);
    }

    fn await_end(&mut self, cx: &mut Context<'_, Self>) {
        if cx.config.hardened() {
            let wait = ring::re_initiation(cx.config, self.roll.round(), self.tracker.id());
            cx.set_timer(Timer::Round, Timing::back_off(wait, self.tracker.attempts()));
        }
    }
}

impl<R: Reading> RollCallRing<R> {
    /// Sends its own number, and waits for the end of the election.
    fn participate(&mut self, cx: &mut Context<'_, Self>) {
        self.tracker.set_participant(true);
        let round = self.roll.round();
        self.tracker.see_term(round.term, cx);
        self.await_end(cx);
        self.pass(R::number(round, self.tracker.id()), cx);
    }

    pub(super) fn on_number(&mut self, round: Round, member: NodeId, cx: &mut Context<'_, Self>) {
        let token = R::number(round, member);
        match self.roll.enter(cx.config, &self.tracker, round, member) {
            Entry::Own => R::on_complete(self, cx),
            Entry::First => {
                cx.rule(R::IDS.first);
                self.participate(cx);
                self.pass(token, cx);
            }
            Entry::Further => {
                cx.rule(R::IDS.further);
                if R::passes_on(self, cx.config) {
                    self.pass(token, cx);
                }
            }
            Entry::Refused => {
                cx.rule(R::IDS.refused);
                self.tracker.vouch(member, round.term, cx);
            }
            Entry::Late => {
                cx.rule(R::IDS.late);
                cx.send(member, Background::Nack { term: self.tracker.term() });
            }
            Entry::Known => {}
        }
    }

    /// Hands a token to the neighbour, in hardened mode past members that are down.
    pub(super) fn pass(&mut self, token: R::Token, cx: &mut Context<'_, Self>) {
        let neighbour = ring::successor(cx.config, &self.tracker, self.tracker.id());
        let back = if cx.config.hardened() {
            self.hops.pass(&self.tracker, token, cx)
        } else if neighbour == self.tracker.id() {
            Some(token)
        } else {
            cx.send(neighbour, Hop::unacknowledged(token));
            None
        };
        self.take_back(back, cx);
    }

    /// A token has found no other live member. With its own number it has won; the others are lost like their owners.
    fn take_back(&mut self, token: Option<R::Token>, cx: &mut Context<'_, Self>) {
        let own = R::number(self.roll.round(), self.tracker.id());
        if token == Some(own) && self.electing() {
            R::on_alone(self, cx);
        }
    }
}

/// A member's roll.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct RollCall {
    round: Round,
    /// Its own number and those it has passed on. Textbook: empty when there is no election.
    numbers: PeerSet,
}

/// What a number is to the member that it has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entry {
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
    fn new(id: NodeId) -> Self {
        let round = Round { term: Term::default(), initiator: id };
        Self { round, numbers: PeerSet::new() }
    }

    /// The round whose numbers it holds.
    pub(super) fn round(&self) -> Round {
        self.round
    }

    /// Begins a roll with the member's own number.
    pub(super) fn open(&mut self, round: Round, id: NodeId) {
        self.round = round;
        self.numbers = PeerSet::from_iter([id]);
    }

    /// Textbook: the election is over, and what comes next belongs to another one. Hardened rolls are kept: they tell
    /// what has been passed on.
    fn close(&mut self, config: &Config) {
        if !config.hardened() {
            self.numbers.clear();
        }
    }

    /// A number has come. If it is to be passed on it is on the roll now.
    fn enter(
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
    pub(super) fn highest(&self, config: &Config, tracker: &LeaderTracker) -> NodeId {
        let eligible = |id: &NodeId| !config.hardened() || !tracker.is_down(*id);
        let best = self.numbers.iter().filter(eligible).max_by_key(|&id| config.members.rank(id));
        best.unwrap_or(tracker.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::ring_active_list::RingActiveList;
    use crate::algorithm::testing::{config, started};
    use crate::config::Mode;

    #[test]
    fn the_numbers_of_strangers_are_not_called() {
        for mode in [Mode::Textbook, Mode::Hardened] {
            let config = config(3, mode);
            let RingActiveList { tracker, mut roll, .. } = started(2, &config);
            let round = |initiator| Round { term: Term(1), initiator: NodeId(initiator) };
            let mut enter = |round, number| roll.enter(&config, &tracker, round, NodeId(number));
            assert_eq!(enter(round(1), 9), Entry::Known);
            assert_eq!(enter(round(9), 1), Entry::Known);
            assert_eq!(enter(round(1), 1), Entry::First);
        }
    }
}
