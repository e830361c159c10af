//! The ring with a circulating list (cs677 "Ring-based Election"; the example of the notes; Tanenbaum).
//!
//! A member that misses the coordinator sends ELECTION with its own key clockwise round the ring. Each member adds its key and
//! passes it on. When the list returns to the initiator it contains all live members; the initiator picks the highest and sends
//! its name round with COORDINATOR. Members that are down are skipped, see [`ring`].
//!
//! | rule | event | action |
//! |---|---|---|
//! | L1 | start | sends ELECTION with a list of itself |
//! | L2 | ELECTION of another | adds its key, passes it on |
//! | L3 | own ELECTION returns | the highest of the list has won: sends COORDINATOR |
//! | L4 | COORDINATOR of another | follows the winner, passes it on |
//! | L5 | own COORDINATOR returns | follows the winner, removes the token from the ring |
//!
//! **Textbook mode** is these five rules and no memory: "multiple elections can be in progress" (cs677), "ok to have two
//! elections at once" (notes), each with its own list and its own two circuits. A member holds one of its own at a time. The
//! text of the notes describes another algorithm than its example, [`ring_active_list`](super::ring_active_list). A member
//! whose token finds no other live member gets it back at once, and so wins alone; a token of *another* member that finds no
//! other live member is dropped, because it would circulate inside one member.
//!
//! Cost without further failures: 2n messages and 2n·D for an initiator, 2mn messages for m of them. Every dead member costs
//! one unanswered probe and `T_hop` in each circuit, unless the failure detector has reported it as down.
//!
//! The flaws show: a list whose initiator dies grows forever (F16), and "does no harm" (cs677) is false when the winner of one
//! of two elections dies between its two circuits (F17).
//!
//! **Hardened mode** is the algorithm of [`ring_resilient`](super::ring_resilient), which is this one made to survive failures:
//! numbered rounds, a hop limit, re-initiation (F16) and repetition (F17). Both are therefore one machine, [`ListRing`], and
//! differ in textbook mode only. To its rules L6 to L8 and to those of [`leader_tracker`](super::leader_tracker), hardened mode
//! adds:
//!
//! - L2a: a member that leads, or knows that its leader is alive and confirmed, answers the ELECTION of a member below that
//!   leader with ALIVE, and the token ends there: the asker follows or defers (F8). The token of a member above the leader goes
//!   on. Its followers do not wait for the end of that election, because they have a leader; but the leader does, and sends no
//!   ALIVE until then. The list of COORDINATOR shows whether a leader is confirmed. No member vouches for a winner that has not
//!   signed the list, or the repetition after a winner that died would be silenced; nor for a leader that asks itself; nor
//!   twice to the same asker without a message of the leader in between: otherwise a member that no longer leads, and whose
//!   own rounds do not get through, would be vouched for as long as it lives;
//! - L3: a winner that is its own initiator becomes leader before it tells any other member; every other winner learns that it
//!   leads from the token, as all members do. A winner below a member that was skipped is tolerated, then contested (H4);
//! - L4a: a winner that is down is not followed, because no member will be told of its death again. The token moves on, and
//!   the member waits for another end of the election;
//! - L7: the wait doubles with every failure, with jitter;
//! - L8: rounds of the same number are ordered by their initiators' keys, and a member passes on each circuit of a round once.
//!   So one of several rounds survives, and one of the two copies of a token that a late HOP-ACK makes. That also ends every
//!   list on which a member finds itself (F16). By keys, not by ids: L2a ends the rounds of members below a leader, so if that
//!   leader asks too, its round must survive, or they end each other's forever. The initiator of a round whose number is too
//!   low is told the latest with NACK. A member that vouches adopts the asker's term nevertheless: when a leader has died and
//!   the members notice one after the other, the round of the last to notice must not be too old for the others.

pub mod rules;

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use super::elective::Elective;
use super::leader_tracker::{ALIVE, Action, Background, LeaderClaim, LeaderTracker, NACK};
use super::ring::{self, HOP_ACK, Hops, Round, Timer, hop_limit, re_initiation};
use super::ring_resilient::{Lap, Rounds};
use crate::config::{Config, Timing};
use crate::members::{Key, NodeId, Term};
use crate::protocol::{Boot, Context, Family, Kind};

/// A member that runs the list ring of cs677 and notes.
pub type RingList = ListRing<Plain>;

/// The textbook of cs677 and notes: no rounds, no hop limit, no repetition.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Plain {}

impl Reading for Plain {
    const RESILIENT: bool = false;
}

/// Which source's list ring a member runs in textbook mode.
pub trait Reading: Clone + Eq + Hash + fmt::Debug {
    /// Whether its textbook survives failures during the election.
    const RESILIENT: bool;
}

/// A member that runs a list ring: [`RingList`] or [`RingResilient`](super::ring_resilient::RingResilient).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ListRing<R> {
    tracker: LeaderTracker,
    hops: Hops<Token>,
    /// Its own token is on the ring; or, with rounds, it waits for the end of one and [`Timer::Round`] is armed.
    electing: bool,
    /// What it remembers of the rounds; nothing in the textbook of cs677.
    rounds: Option<Box<Rounds>>,
    reading: PhantomData<R>,
}

/// What goes round the ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    /// The identity of the election.
    pub round: Round,
    /// How many hops it has made in this circuit; not counted in the textbook of cs677.
    pub hops: u32,
    /// The purpose of the circuit.
    pub circuit: Circuit,
}

/// The two circuits of an election.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Circuit {
    /// "Who is alive?"
    Election { list: Vec<Key> },
    /// "This one has won."
    Coordinator {
        leader: Key,
        /// The members that it has passed; left empty in the textbook of cs677.
        list: Vec<NodeId>,
    },
}

/// The messages of a list ring.
pub type Message = ring::Message<Token>;

impl<R: Reading> Elective for ListRing<R> {
    type Message = Message;
    type Timer = Timer;

    fn new(tracker: LeaderTracker, config: &Config, boot: &Boot<Term>) -> Self {
        let remembers = R::RESILIENT || config.hardened();
        Self {
            tracker,
            hops: Hops::new(),
            electing: false,
            rounds: remembers.then(|| Box::new(Rounds::new(boot))),
            reading: PhantomData,
        }
    }

    fn tracker(&self) -> &LeaderTracker {
        &self.tracker
    }

    fn tracker_mut(&mut self) -> &mut LeaderTracker {
        &mut self.tracker
    }

    fn electing(&self) -> bool {
        self.electing
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Hop(hop) => {
                if let Some(token) = self.hops.receive(from, hop, cx) {
                    self.on_token(token, cx);
                }
            }
            Message::Background(message) => self.on_background(from, message, cx),
        }
    }

    fn on_background(&mut self, from: NodeId, message: Background, cx: &mut Context<'_, Self>) {
        let action = self.tracker.on_background(from, message, self.electing, cx);
        match message {
            // A round of its own was too old (L8): the next one must not be.
            Background::Nack { term } => self.tracker.see_term(term, cx),
            Background::Alive { claim } => {
                if let Some(rounds) = &mut self.rounds
                    && claim.leader.id == from
                    && self.tracker.leader() == Some(from)
                {
                    rounds.confirm_leader();
                }
            }
        }
        self.apply(action, cx);
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Hop(number) => {
                let returned = self.hops.on_timer(&self.tracker, number, cx);
                self.take_back(returned, cx);
            }
            Timer::Round => {
                cx.rule("L7");
                self.tracker.election_failed();
                self.call_election(cx);
            }
            Timer::Background(timer) => self.on_background_timer(timer, cx),
        }
    }

    /// L1: sends a list of itself round.
    fn call_election(&mut self, cx: &mut Context<'_, Self>) {
        cx.rule("L1");
        cx.election_started();
        let me = cx.config.members.key(self.tracker.id());
        let term = match &mut self.rounds {
            Some(_) if cx.config.hardened() => self.tracker.open_term(cx),
            Some(rounds) => rounds.open_term(cx),
            None => Term::default(),
        };
        let round = Round { term, initiator: me.id };
        self.await_end_of(round, cx);
        self.send(Token::first(round, Circuit::Election { list: vec![me] }), cx);
    }

    fn end_election(&mut self, cx: &mut Context<'_, Self>) {
        if self.electing && self.rounds.is_some() {
            cx.cancel_timer(Timer::Round);
        }
        self.electing = false;
    }

    fn await_end(&mut self, cx: &mut Context<'_, Self>) {
        let round = Round { term: self.tracker.term(), initiator: self.tracker.id() };
        self.await_end_of(round, cx);
    }
}

impl<R: Reading> ListRing<R> {
    /// A token is here: its own, back from a circuit, or another's.
    fn on_token(&mut self, token: Token, cx: &mut Context<'_, Self>) {
        if !self.admit(&token, cx) {
            return cx.rule("L8");
        }
        let own = token.round.initiator == self.tracker.id();
        let Token { round, hops, circuit } = token;
        match circuit {
            Circuit::Election { list } if own => self.choose(round, &list, cx),
            Circuit::Election { list } => self.on_election(round, hops, list, cx),
            Circuit::Coordinator { leader, list } => {
                let claim = LeaderClaim { term: round.term, leader };
                if own {
                    self.on_confirmation(claim, &list, cx);
                } else {
                    self.on_coordinator(round, hops, claim, list, cx);
                }
            }
        }
    }

    /// L8: whether a token is to be handled. Without rounds, every one is.
    fn admit(&mut self, token: &Token, cx: &mut Context<'_, Self>) -> bool {
        let Round { term, initiator } = token.round;
        let own = initiator == self.tracker.id();
        let winner = match token.circuit {
            Circuit::Election { .. } => initiator,
            Circuit::Coordinator { leader, .. } => leader.id,
        };
        if ![initiator, winner].iter().all(|&id| cx.config.members.contains(id)) {
            return false;
        }
        let Some(rounds) = &mut self.rounds else { return true };
        if !own && token.hops >= hop_limit(cx.config) {
            return false;
        }
        if !cx.config.hardened() {
            let current = term >= rounds.term;
            rounds.see_term(term, cx);
            return current;
        }
        let lap = Some(Lap::of(cx.config, token));
        if own {
            return lap == rounds.last;
        }
        let latest = self.tracker.term();
        if lap > rounds.last {
            self.tracker.see_term(term, cx);
            return true;
        }
        if term < latest {
            cx.send(initiator, Background::Nack { term: latest });
        }
        false
    }

    /// L2: adds its key, unless it knows a leader that the asker is to follow (L2a).
    fn on_election(
        &mut self,
        round: Round,
        hops: u32,
        mut list: Vec<Key>,
        cx: &mut Context<'_, Self>,
    ) {
        let asker = cx.config.members.key(round.initiator);
        if let Some(rounds) = &mut self.rounds
            && (self.tracker.leader() == Some(asker.id) || rounds.told.contains(asker.id))
        {
            // A leader would not ask, and would have sent a message since the asker was told about it.
            rounds.set_unconfirmed();
        }
        let secure = self.confirmed_claim();
        if let Some(claim) = secure.filter(|claim| claim.leader > asker) {
            return self.vouch(asker.id, claim, cx);
        }
        cx.rule("L2");
        if let Some(rounds) = &self.rounds {
            let waits = self.electing && rounds.last.is_some_and(|lap| lap.is_of(round));
            let has_a_leader = secure.is_some() && !self.tracker.leads();
            if !waits && !has_a_leader {
                self.await_end_of(round, cx);
            }
        }
        list.push(cx.config.members.key(self.tracker.id()));
        self.send(Token { round, hops, circuit: Circuit::Election { list } }, cx);
    }

    /// Hardened: the claim of this member if it leads, or of a leader that it knows to be alive and confirmed.
    fn confirmed_claim(&self) -> Option<LeaderClaim> {
        let in_office = self.rounds.as_ref().is_some_and(|rounds| rounds.in_office);
        match self.tracker.leads() {
            _ if self.electing => None,
            true => self.tracker.claim(),
            false => self.tracker.live_claim().filter(|_| in_office),
        }
    }

    /// L2a: tells `asker` of the leader. A leader first makes the asker's term its own, so that its claim is not older
    /// than the question.
    fn vouch(&mut self, asker: NodeId, mut claim: LeaderClaim, cx: &mut Context<'_, Self>) {
        cx.rule("L2a");
        if self.tracker.leads() {
            self.tracker.lead(cx);
            claim.term = self.tracker.term();
        } else if let Some(rounds) = &mut self.rounds {
            rounds.told.insert(asker);
        }
        cx.send(asker, Background::Alive { claim });
    }

    /// L3: the list is complete, its highest member has won. Ids on it that are no members do not count.
    fn choose(&mut self, round: Round, list: &[Key], cx: &mut Context<'_, Self>) {
        if cx.config.hardened() && !self.electing {
            return cx.rule("L8"); // a leader has sent a message in the meantime
        }
        cx.rule("L3");
        let me = cx.config.members.key(self.tracker.id());
        let eligible = list.iter().copied().filter(|key| cx.config.members.contains(key.id));
        let leader = eligible.max().unwrap_or(me);
        let list = self.signed(Vec::new());
        let claim = LeaderClaim { term: round.term, leader };
        if cx.config.hardened() && leader == me && !self.follow(claim, &list, cx) {
            return;
        }
        self.send(Token::first(round, Circuit::Coordinator { leader, list }), cx);
    }

    /// L4: follows the winner.
    fn on_coordinator(
        &mut self,
        round: Round,
        hops: u32,
        claim: LeaderClaim,
        list: Vec<NodeId>,
        cx: &mut Context<'_, Self>,
    ) {
        let leader = claim.leader;
        let list = self.signed(list);
        if cx.config.hardened() && self.tracker.is_down(leader.id) {
            cx.rule("L4a");
            if !self.electing {
                self.await_end_of(round, cx);
            }
        } else {
            cx.rule("L4");
            if !self.follow(claim, &list, cx) {
                return;
            }
        }
        let circuit = Circuit::Coordinator { leader, list };
        self.send(Token { round, hops, circuit }, cx);
    }

    /// L5: the winner's name is back, the election is over. L6: unless the winner never saw it.
    fn on_confirmation(&mut self, claim: LeaderClaim, list: &[NodeId], cx: &mut Context<'_, Self>) {
        if cx.config.hardened() && !self.electing {
            return cx.rule("L5"); // it won itself, or the winner has sent a message
        }
        let leader = claim.leader.id;
        let gone = cx.config.hardened() && self.tracker.is_down(leader);
        if self.rounds.is_some() && (gone || !list.contains(&leader)) {
            cx.rule("L6");
            self.tracker.election_failed();
            return self.call_election(cx);
        }
        cx.rule("L5");
        self.follow(claim, list, cx);
    }

    /// Follows the winner, whose victory those on `list` have seen. Returns whether it does.
    fn follow(&mut self, claim: LeaderClaim, list: &[NodeId], cx: &mut Context<'_, Self>) -> bool {
        let action = if cx.config.hardened() {
            // This ends any election that it takes part in: L8 lets no earlier round pass.
            self.tracker.on_claim(claim, false, cx)
        } else {
            self.tracker.accept(claim, cx);
            Action::EndElection
        };
        let follows = action == Action::EndElection;
        if let Some(rounds) = &mut self.rounds
            && follows
        {
            match list.contains(&claim.leader.id) {
                true => rounds.confirm_leader(),
                false => rounds.set_unconfirmed(),
            }
        }
        self.apply(action, cx);
        follows
    }

    /// It takes part in an election from now on. With rounds it does not wait for the end forever.
    fn await_end_of(&mut self, round: Round, cx: &mut Context<'_, Self>) {
        self.electing = true;
        if self.rounds.is_some() {
            let wait = re_initiation(cx.config, round, self.tracker.id());
            cx.set_timer(Timer::Round, Timing::back_off(wait, self.tracker.attempts()));
        }
    }

    /// The list of a COORDINATOR, with this member added where COORDINATOR keeps one.
    fn signed(&self, mut list: Vec<NodeId>) -> Vec<NodeId> {
        if self.rounds.is_some() {
            list.push(self.tracker.id());
        }
        list
    }

    fn send(&mut self, mut token: Token, cx: &mut Context<'_, Self>) {
        if let Some(rounds) = &mut self.rounds {
            token.hops += 1;
            rounds.last = Some(Lap::of(cx.config, &token));
        }
        let returned = self.hops.pass(&self.tracker, token, cx);
        self.take_back(returned, cx);
    }

    /// No other member is alive to take a token. One of its own has made its circuit; another's has lost its initiator.
    fn take_back(&mut self, returned: Option<Token>, cx: &mut Context<'_, Self>) {
        match returned {
            None => {}
            Some(token) if token.round.initiator == self.tracker.id() => {
                self.on_token(token, cx);
            }
            Some(_) => cx.rule("L8"),
        }
    }
}

impl Token {
    /// A token that sets out.
    fn first(round: Round, circuit: Circuit) -> Self {
        Self { round, hops: 0, circuit }
    }
}

impl ring::Token for Token {
    const KINDS: &'static [Kind] = &[
        Kind::own(
            "ELECTION",
            Family::Ask,
            "collects the members that are up, on its way round the ring",
        ),
        Kind::own("COORDINATOR", Family::Announce, "tells every member on the ring who has won"),
        HOP_ACK,
        ALIVE,
        NACK,
    ];

    fn index(&self) -> usize {
        match self.circuit {
            Circuit::Election { .. } => 0,
            Circuit::Coordinator { .. } => 1,
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.circuit {
            Circuit::Election { list } => {
                write!(f, "ELECTION {}", self.round)?;
                write_list(f, list)
            }
            Circuit::Coordinator { leader, list } => {
                write!(f, "COORDINATOR {} leader={leader}", self.round)?;
                write_list(f, list)
            }
        }
    }
}

/// Writes ` list=3,1,2`, and nothing for an empty list.
fn write_list(f: &mut fmt::Formatter<'_>, list: &[impl fmt::Display]) -> fmt::Result {
    for (place, entry) in list.iter().enumerate() {
        write!(f, "{}{entry}", if place == 0 { " list=" } else { "," })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::ring::{Hop, HopNumber};
    use crate::algorithm::testing::{config, started, told};
    use crate::config::Mode;
    use crate::protocol::{Effect, Effects, Protocol};

    /// Member 1 of two, and its configuration.
    fn one_of_two() -> (RingList, Config) {
        let config = config(2, Mode::Textbook);
        (started(1, &config), config)
    }

    fn round(initiator: u32) -> Round {
        Round { term: Term::default(), initiator: NodeId(initiator) }
    }

    fn election_of(initiator: u32) -> Hop<Token> {
        let token = Token::first(round(initiator), Circuit::Election { list: Vec::new() });
        Hop::Pass { number: Some(HopNumber(0)), token }
    }

    /// No script can show this: two live members never have more than 2N tokens on the ring.
    #[test]
    fn the_oldest_of_too_many_hops_is_given_up() {
        let (mut member, config) = one_of_two();
        let cancelled = Effect::CancelTimer(Timer::Hop(HopNumber(0)));
        for _ in 0..4 {
            let out = told(&mut member, &config, 2, election_of(2));
            assert!(!out.list().contains(&cancelled));
        }
        assert!(told(&mut member, &config, 2, election_of(2)).list().contains(&cancelled));
    }

    #[test]
    fn a_token_of_a_stranger_is_dropped() {
        let (mut member, config) = one_of_two();
        assert_eq!(told(&mut member, &config, 2, election_of(9)).rules(), ["L8"]);
    }

    #[test]
    fn a_stranger_is_neither_chosen_nor_followed() {
        let (mut member, config) = one_of_two();
        let key = |id| Key { attr: i64::from(id), id: NodeId(id) };
        let coordinator = |id| Circuit::Coordinator { leader: key(id), list: vec![] };
        for (winner, followed) in [(9, None), (2, Some(NodeId(2)))] {
            let token = Token::first(round(2), coordinator(winner));
            told(&mut member, &config, 2, Hop::unacknowledged(token));
            assert_eq!(member.view().leader, followed);
        }

        let out = &mut Effects::new();
        let list = [key(1), key(9), key(2)];
        member.choose(round(1), &list, &mut Context { config: &config, out });
        let sent = out.list().iter().find_map(|effect| match effect {
            Effect::Send { message: Message::Hop(Hop::Pass { token, .. }), .. } => {
                Some(token.circuit.clone())
            }
            _ => None,
        });
        assert_eq!(sent, Some(coordinator(2)));
    }

    #[test]
    fn a_member_is_small() {
        assert!(size_of::<RingList>() <= 64);
    }
}
