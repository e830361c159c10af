//! The ring with a circulating list (cs677 "Ring-based Election"; the example of the notes; Tanenbaum).
//!
//! A member that misses the coordinator sends ELECTION with its own key clockwise round the ring. Each member adds its key and
//! passes it on. When the list returns to the initiator it contains all live members; the initiator picks the highest and sends
//! its name round with COORDINATOR. Members that are down are skipped, see [`ring`](super::ring).
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
//! - L4a: a winner that is down is not followed, because no member will be told of its death again. The token goes on, and the
//!   member waits for another end of the election;
//! - L7: the wait doubles with every failure, with jitter;
//! - L8: rounds of the same number are ordered by their initiators' keys, and a member passes on each circuit of a round once.
//!   So one of several rounds survives, and one of the two copies of a token that a late HOP-ACK makes. That also ends every
//!   list on which a member finds itself (F16). By keys, not by ids: L2a ends the rounds of members below a leader, so if that
//!   leader asks too, its round must survive, or they end each other's forever. The initiator of a round whose number is too
//!   low is told the latest with NACK. A member that vouches adopts the asker's term nevertheless: when a leader has died and
//!   the members notice one after the other, the round of the last to notice must not be too old for the others.

use std::borrow::Cow;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use super::leader_tracker::{Action, LeaderClaim, LeaderTracker, Upkeep, UpkeepTimer, key_len};
use super::ring::{Hop, HopNumber, Hops, Round, hop_limit, re_initiation};
use super::ring_resilient::{Lap, Rounds};
use crate::config::{Config, Timing};
use crate::explore::Explore;
use crate::members::{Key, NodeId, Term};
use crate::protocol::{self, Boot, Effects, Event, Kind, Protocol, View, varint_len};

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
pub enum Circuit {
    /// "Who is alive?"
    Election {
        /// The members that it has passed.
        list: Vec<Key>,
    },
    /// "This one has won."
    Coordinator {
        /// The winner.
        leader: Key,
        /// The members that it has passed; left empty in the textbook of cs677.
        list: Vec<NodeId>,
    },
}

/// The messages of a list ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A token, or its HOP-ACK.
    Hop(Hop<Token>),
    /// A message of hardened mode outside elections.
    Upkeep(Upkeep),
}

/// What a member of a list ring waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// `T_hop`: the HOP-ACK of its successor.
    Hop(HopNumber),
    /// `T_re`: the end of a round.
    Round,
    /// A timer of hardened mode outside elections.
    Upkeep(UpkeepTimer),
}

impl<R: Reading> Protocol for ListRing<R> {
    type Config = Config;
    type Message = Message;
    type Timer = Timer;
    type Durable = Term;

    fn start(id: NodeId, config: &Config, boot: Boot<Term>, out: &mut Effects<Self>) -> Self {
        let (tracker, action) = LeaderTracker::start(id, config, &boot, out);
        let remembers = R::RESILIENT || config.hardened();
        let mut member = Self {
            tracker,
            hops: Hops::new(),
            electing: false,
            rounds: remembers.then(|| Box::new(Rounds::new(&boot))),
            reading: PhantomData,
        };
        member.apply(config, action, out);
        member
    }

    fn handle(&mut self, config: &Config, event: Event<Message, Timer>, out: &mut Effects<Self>) {
        let before = self.view();
        match event {
            Event::Campaign => self.apply(config, Action::StartElection, out),
            Event::Command(_) | Event::Retired | Event::Crashed => {}
            Event::PeerDown(peer) => {
                let electing = self.electing;
                let action = self.tracker.on_peer_down(config, peer, electing, out);
                self.apply(config, action, out);
            }
            Event::PeerUp(peer) => self.tracker.on_peer_up(peer, out),
            Event::Timer(timer) => self.on_timer(config, timer, out),
            Event::Message { from, message } => self.on_message(config, from, message, out),
        }
        let after = self.view();
        if after != before {
            out.announce(after);
        }
    }

    fn view(&self) -> View {
        self.tracker.view(self.electing)
    }

    fn kinds(_: &Config) -> Cow<'static, [Kind]> {
        KINDS.into()
    }

    fn kind_index(_: &Config, message: &Message) -> usize {
        message.index()
    }

    fn is_upkeep(timer: Timer) -> bool {
        matches!(timer, Timer::Upkeep(timer) if timer.is_upkeep())
    }
}

impl<R: Reading> Explore for ListRing<R> {}

impl<R: Reading> ListRing<R> {
    fn on_message(
        &mut self,
        config: &Config,
        from: NodeId,
        message: Message,
        out: &mut Effects<Self>,
    ) {
        self.tracker.mark_alive(from);
        match message {
            Message::Hop(hop) => {
                if let Some(token) = self.hops.receive(from, hop, out) {
                    self.on_token(config, token, out);
                }
            }
            Message::Upkeep(upkeep) => self.on_upkeep(config, from, upkeep, out),
        }
    }

    fn on_upkeep(
        &mut self,
        config: &Config,
        from: NodeId,
        upkeep: Upkeep,
        out: &mut Effects<Self>,
    ) {
        let action = self.tracker.on_upkeep(config, from, upkeep, self.electing, out);
        match upkeep {
            // A round of its own was too old (L8): the next one must not be.
            Upkeep::Nack { term } => self.tracker.see_term(term, out),
            Upkeep::Alive { claim } => {
                if let Some(rounds) = &mut self.rounds
                    && claim.leader.id == from
                    && self.tracker.leader() == Some(from)
                {
                    rounds.confirm_leader();
                }
            }
        }
        self.apply(config, action, out);
    }

    fn on_timer(&mut self, config: &Config, timer: Timer, out: &mut Effects<Self>) {
        match timer {
            Timer::Hop(number) => {
                let returned = self.hops.on_timer(config, &self.tracker, number, out);
                self.take_back(config, returned, out);
            }
            Timer::Round => {
                out.rule("L7");
                self.tracker.election_failed();
                self.call_election(config, out);
            }
            Timer::Upkeep(timer) => {
                let action = self.tracker.on_timer(config, timer, self.electing, out);
                self.apply(config, action, out);
            }
        }
    }

    fn apply(&mut self, config: &Config, action: Action, out: &mut Effects<Self>) {
        match action {
            Action::Nothing => {}
            Action::EndElection => self.end_election(out),
            Action::StartElection if self.electing => {}
            Action::StartElection => self.call_election(config, out),
            Action::Defer(claim) => self.defer(config, claim, out),
        }
    }

    /// L1: sends a list of itself round.
    fn call_election(&mut self, config: &Config, out: &mut Effects<Self>) {
        out.rule("L1");
        out.election_started();
        let me = config.members.key(self.tracker.id());
        let term = match &mut self.rounds {
            Some(_) if config.hardened() => self.tracker.open_term(out),
            Some(rounds) => rounds.open_term(out),
            None => Term::default(),
        };
        let round = Round { term, initiator: me.id };
        self.await_end(config, round, out);
        self.send(config, Token::first(round, Circuit::Election { list: vec![me] }), out);
    }

    /// A token is here: its own, back from a circuit, or another's.
    fn on_token(&mut self, config: &Config, token: Token, out: &mut Effects<Self>) {
        if !self.admit(config, &token, out) {
            return out.rule("L8");
        }
        let own = token.round.initiator == self.tracker.id();
        let Token { round, hops, circuit } = token;
        match circuit {
            Circuit::Election { list } if own => self.choose(config, round, &list, out),
            Circuit::Election { list } => self.on_election(config, round, hops, list, out),
            Circuit::Coordinator { leader, list } => {
                let claim = LeaderClaim { term: round.term, leader };
                if own {
                    self.on_confirmation(config, claim, &list, out);
                } else {
                    self.on_coordinator(config, round, hops, claim, list, out);
                }
            }
        }
    }

    /// L8: whether a token is to be handled. Without rounds, every one is.
    fn admit(&mut self, config: &Config, token: &Token, out: &mut Effects<Self>) -> bool {
        let Round { term, initiator } = token.round;
        let own = initiator == self.tracker.id();
        let winner = match token.circuit {
            Circuit::Election { .. } => initiator,
            Circuit::Coordinator { leader, .. } => leader.id,
        };
        if ![initiator, winner].iter().all(|&id| config.members.contains(id)) {
            return false;
        }
        let Some(rounds) = &mut self.rounds else { return true };
        if !own && token.hops >= hop_limit(config) {
            return false;
        }
        if !config.hardened() {
            let current = term >= rounds.term;
            rounds.see_term(term, out);
            return current;
        }
        let lap = Some(Lap::of(config, token));
        if own {
            return lap == rounds.last;
        }
        let latest = self.tracker.term();
        if lap > rounds.last {
            self.tracker.see_term(term, out);
            return true;
        }
        if term < latest {
            out.send(initiator, Upkeep::Nack { term: latest }.into());
        }
        false
    }

    /// L2: adds its key, unless it knows a leader that the asker is to follow (L2a).
    fn on_election(
        &mut self,
        config: &Config,
        round: Round,
        hops: u32,
        mut list: Vec<Key>,
        out: &mut Effects<Self>,
    ) {
        let asker = config.members.key(round.initiator);
        if let Some(rounds) = &mut self.rounds
            && (self.tracker.leader() == Some(asker.id) || rounds.told.contains(asker.id))
        {
            // A leader would not ask, and would have sent a message since the asker was told about it.
            rounds.set_unconfirmed();
        }
        let secure = self.confirmed_claim();
        if let Some(claim) = secure.filter(|claim| claim.leader > asker) {
            return self.vouch(config, asker.id, claim, out);
        }
        out.rule("L2");
        if let Some(rounds) = &self.rounds {
            let waits = self.electing && rounds.last.is_some_and(|lap| lap.is_of(round));
            let has_a_leader = secure.is_some() && !self.tracker.leads();
            if !waits && !has_a_leader {
                self.await_end(config, round, out);
            }
        }
        list.push(config.members.key(self.tracker.id()));
        self.send(config, Token { round, hops, circuit: Circuit::Election { list } }, out);
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
    fn vouch(
        &mut self,
        config: &Config,
        asker: NodeId,
        mut claim: LeaderClaim,
        out: &mut Effects<Self>,
    ) {
        out.rule("L2a");
        if self.tracker.leads() {
            self.tracker.lead(config, out);
            claim.term = self.tracker.term();
        } else if let Some(rounds) = &mut self.rounds {
            rounds.told.insert(asker);
        }
        out.send(asker, Upkeep::Alive { claim }.into());
    }

    /// L3: the list is complete, its highest member has won. Ids on it that are no members do not count.
    fn choose(&mut self, config: &Config, round: Round, list: &[Key], out: &mut Effects<Self>) {
        if config.hardened() && !self.electing {
            return out.rule("L8"); // a leader has sent a message in the meantime
        }
        out.rule("L3");
        let me = config.members.key(self.tracker.id());
        let eligible = list.iter().copied().filter(|key| config.members.contains(key.id));
        let leader = eligible.max().unwrap_or(me);
        let list = self.signed(Vec::new());
        let claim = LeaderClaim { term: round.term, leader };
        if config.hardened() && leader == me && !self.follow(config, claim, &list, out) {
            return;
        }
        self.send(config, Token::first(round, Circuit::Coordinator { leader, list }), out);
    }

    /// L4: follows the winner.
    fn on_coordinator(
        &mut self,
        config: &Config,
        round: Round,
        hops: u32,
        claim: LeaderClaim,
        list: Vec<NodeId>,
        out: &mut Effects<Self>,
    ) {
        let leader = claim.leader;
        let list = self.signed(list);
        if config.hardened() && self.tracker.is_down(leader.id) {
            out.rule("L4a");
            if !self.electing {
                self.await_end(config, round, out);
            }
        } else {
            out.rule("L4");
            if !self.follow(config, claim, &list, out) {
                return;
            }
        }
        let circuit = Circuit::Coordinator { leader, list };
        self.send(config, Token { round, hops, circuit }, out);
    }

    /// L5: the winner's name is back, the election is over. L6: unless the winner never saw it.
    fn on_confirmation(
        &mut self,
        config: &Config,
        claim: LeaderClaim,
        list: &[NodeId],
        out: &mut Effects<Self>,
    ) {
        if config.hardened() && !self.electing {
            return out.rule("L5"); // it won itself, or the winner has sent a message
        }
        let leader = claim.leader.id;
        let gone = config.hardened() && self.tracker.is_down(leader);
        if self.rounds.is_some() && (gone || !list.contains(&leader)) {
            out.rule("L6");
            self.tracker.election_failed();
            return self.call_election(config, out);
        }
        out.rule("L5");
        self.follow(config, claim, list, out);
    }

    /// Follows the winner, whose victory those on `list` have seen. Returns whether it does.
    fn follow(
        &mut self,
        config: &Config,
        claim: LeaderClaim,
        list: &[NodeId],
        out: &mut Effects<Self>,
    ) -> bool {
        let action = if config.hardened() {
            // This ends any election that it takes part in: L8 lets no earlier round pass.
            self.tracker.on_claim(config, claim, false, out)
        } else {
            self.tracker.accept(config, claim, out);
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
        self.apply(config, action, out);
        follows
    }

    /// H6: another member vouches for a leader that this one does not receive. It defers, and asks again later, less and
    /// less often.
    fn defer(&mut self, config: &Config, claim: LeaderClaim, out: &mut Effects<Self>) {
        let me = self.tracker.id();
        if self.electing && claim.leader > config.members.key(me) {
            self.tracker.defer_to(claim.leader.id);
            let round = Round { term: self.tracker.term(), initiator: me };
            self.await_end(config, round, out);
        }
    }

    /// It takes part in an election from now on. With rounds it does not wait for the end forever.
    fn await_end(&mut self, config: &Config, round: Round, out: &mut Effects<Self>) {
        self.electing = true;
        if self.rounds.is_some() {
            let wait = re_initiation(config, round, self.tracker.id());
            out.set_timer(Timer::Round, Timing::back_off(wait, self.tracker.attempts()));
        }
    }

    /// It knows the end of the election.
    fn end_election(&mut self, out: &mut Effects<Self>) {
        if self.electing && self.rounds.is_some() {
            out.cancel_timer(Timer::Round);
        }
        self.electing = false;
    }

    /// The list of a COORDINATOR, with this member added where COORDINATOR keeps one.
    fn signed(&self, mut list: Vec<NodeId>) -> Vec<NodeId> {
        if self.rounds.is_some() {
            list.push(self.tracker.id());
        }
        list
    }

    /// Passes a token on.
    fn send(&mut self, config: &Config, mut token: Token, out: &mut Effects<Self>) {
        if let Some(rounds) = &mut self.rounds {
            token.hops += 1;
            rounds.last = Some(Lap::of(config, &token));
        }
        let returned = self.hops.pass(config, &self.tracker, token, out);
        self.take_back(config, returned, out);
    }

    /// No other member is alive to take a token. One of its own has made its circuit; another's has lost its initiator.
    fn take_back(&mut self, config: &Config, returned: Option<Token>, out: &mut Effects<Self>) {
        match returned {
            None => {}
            Some(token) if token.round.initiator == self.tracker.id() => {
                self.on_token(config, token, out);
            }
            Some(_) => out.rule("L8"),
        }
    }
}

impl Token {
    /// A token that sets out.
    fn first(round: Round, circuit: Circuit) -> Self {
        Self { round, hops: 0, circuit }
    }

    fn encoded_len(&self) -> usize {
        let circuit = match &self.circuit {
            Circuit::Election { list } => {
                let keys: usize = list.iter().map(|&key| key_len(key)).sum();
                varint_len(list.len() as u64) + keys
            }
            Circuit::Coordinator { leader, list } => {
                let ids: usize = list.iter().map(|id| varint_len(u64::from(id.0))).sum();
                key_len(*leader) + varint_len(list.len() as u64) + ids
            }
        };
        self.round.encoded_len() + varint_len(u64::from(self.hops)) + 1 + circuit
    }
}

conversions! {
    Hop<Token> => Message::Hop,
    Upkeep => Message::Upkeep,
    HopNumber => Timer::Hop,
    UpkeepTimer => Timer::Upkeep,
}

/// The kinds, in the order in which those that arrive at the same instant are handled.
pub const KINDS: &[Kind] = &[
    Kind::election("ELECTION"),
    Kind::election("COORDINATOR"),
    Kind::link("HOP-ACK"),
    Kind::detector("ALIVE"),
    Kind::election("NACK"),
];

impl Message {
    /// Which of [`KINDS`] it is.
    fn index(&self) -> usize {
        match self {
            Self::Hop(Hop::Pass { token, .. }) => match token.circuit {
                Circuit::Election { .. } => 0,
                Circuit::Coordinator { .. } => 1,
            },
            Self::Hop(Hop::Ack { .. }) => 2,
            Self::Upkeep(Upkeep::Alive { .. }) => 3,
            Self::Upkeep(Upkeep::Nack { .. }) => 4,
        }
    }
}

impl protocol::Message for Message {
    fn kind(&self) -> Kind {
        KINDS[self.index()]
    }

    fn encoded_len(&self) -> usize {
        1 + match self {
            Self::Hop(hop) => hop.encoded_len(Token::encoded_len),
            Self::Upkeep(upkeep) => upkeep.encoded_len(),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hop(hop) => hop.fmt(f),
            Self::Upkeep(upkeep) => upkeep.fmt(f),
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
    use crate::config::Mode;
    use crate::members::Members;
    use crate::protocol::{Effect, Message as _, Origin};
    use crate::time::Span;

    fn member_of_two(config: &Config) -> RingList {
        let boot = Boot::new(Default::default(), None, Origin::Founding { leader: None });
        RingList::start(NodeId(1), config, boot, &mut Effects::new())
    }

    fn two_members() -> Config {
        let timing = Timing::for_transmission(Span::from_millis(1));
        Config::new(Members::range(1, 2).unwrap(), timing, Mode::Textbook)
    }

    fn election_of(initiator: u32) -> Event<Message, Timer> {
        let round = Round { term: Term::default(), initiator: NodeId(initiator) };
        let token = Token::first(round, Circuit::Election { list: Vec::new() });
        let number = Some(HopNumber(0));
        Event::Message { from: NodeId(2), message: Hop::Pass { number, token }.into() }
    }

    /// No script can show this: two live members never have more than 2N tokens on the ring.
    #[test]
    fn the_oldest_of_too_many_hops_is_given_up() {
        let config = two_members();
        let mut member = member_of_two(&config);
        let mut out = Effects::new();
        for _ in 0..4 {
            member.handle(&config, election_of(2), &mut out);
        }
        let cancelled = Effect::CancelTimer(Timer::Hop(HopNumber(0)));
        assert!(!out.list().contains(&cancelled));
        member.handle(&config, election_of(2), &mut out);
        assert!(out.list().contains(&cancelled));
    }

    #[test]
    fn a_token_of_a_stranger_is_dropped() {
        let config = two_members();
        let mut member = member_of_two(&config);
        let mut out = Effects::new();
        member.handle(&config, election_of(9), &mut out);
        assert_eq!(out.rules(), ["L8"]);
    }

    /// The leader of `member` after 2 has sent it `circuit`.
    fn leader_after(member: &mut RingList, config: &Config, circuit: Circuit) -> Option<NodeId> {
        let initiator = NodeId(2);
        let round = Round { term: Term::default(), initiator };
        let hop = Hop::unacknowledged(Token::first(round, circuit));
        let event = Event::Message { from: NodeId(2), message: hop.into() };
        member.handle(config, event, &mut Effects::new());
        member.view().leader
    }

    #[test]
    fn a_stranger_is_neither_chosen_nor_followed() {
        let config = two_members();
        let key = |id| Key { attr: i64::from(id), id: NodeId(id) };
        let mut member = member_of_two(&config);
        let coordinator = |id| Circuit::Coordinator { leader: key(id), list: vec![] };
        assert_eq!(leader_after(&mut member, &config, coordinator(9)), None);
        assert_eq!(leader_after(&mut member, &config, coordinator(2)), Some(NodeId(2)));

        let mut out = Effects::new();
        let round = Round { term: Term::default(), initiator: NodeId(1) };
        member.choose(&config, round, &[key(1), key(9), key(2)], &mut out);
        let sent = out.list().iter().find_map(|effect| match effect {
            Effect::Send { message: Message::Hop(Hop::Pass { token, .. }), .. } => {
                Some(token.circuit.clone())
            }
            _ => None,
        });
        assert_eq!(sent, Some(coordinator(2)));
    }

    #[test]
    fn a_message_is_as_long_as_it_says() {
        let round = Round { term: Term(300), initiator: NodeId(7) };
        let key = |id, attr| Key { attr, id: NodeId(id) };
        let election = Circuit::Election { list: vec![key(7, -1), key(200, 70)] };
        let coordinator = Circuit::Coordinator { leader: key(7, 7), list: vec![NodeId(200)] };
        let claim = LeaderClaim { term: Term(3), leader: key(7, 7) };
        let messages: [Message; 5] = [
            Hop::Pass { number: Some(HopNumber(1)), token: Token::first(round, election) }.into(),
            Hop::unacknowledged(Token::first(round, coordinator)).into(),
            Hop::Ack { number: HopNumber(500) }.into(),
            Upkeep::Alive { claim }.into(),
            Upkeep::Nack { term: Term(128) }.into(),
        ];
        for message in messages {
            assert_eq!(postcard::to_allocvec(&message).unwrap().len(), message.encoded_len());
        }
    }

    #[test]
    fn a_member_is_small() {
        assert!(size_of::<RingList>() <= 64);
    }
}
