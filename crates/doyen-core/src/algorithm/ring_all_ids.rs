//! The ring of all ids (os-textbook, first algorithm).
//!
//! A member that misses the coordinator sends ("elect me", its id) round the ring. Each member that receives it sends an
//! ELECT-ME of its own and then passes on the other. So the initiator gets the ids of all others and, last, its own. It elects
//! the highest and sends ("new coordinator", that member) round the ring.
//!
//! | rule | event | action |
//! |---|---|---|
//! | AI1 | start, no election | sends its own ELECT-ME, collects the others' |
//! | AI2 | ELECT-ME of another, no election | sends its own, *then* passes on the other |
//! | AI3 | ELECT-ME of another | collects it; passes it on |
//! | AI4 | its own ELECT-ME, as initiator | follows the highest that it has collected; sends NEW-COORDINATOR |
//! | AI5 | its own ELECT-ME, otherwise | removes it from the ring |
//! | AI6 | NEW-COORDINATOR of another initiator | follows; passes it on |
//! | AI7 | its own NEW-COORDINATOR | removes it from the ring |
//!
//! **Textbook mode.** Read literally, os-textbook has a process that receives an ELECT-ME send its own each time, which would
//! never end: here it sends one per election. Links must keep the order of messages ("all links in the ring are assumed to be
//! FIFO"). os-textbook does not say which member removes the others' ELECT-MEs from the ring. Here the sender does (AI5). If
//! the initiator does it, which is the variant `os-textbook-absorb`, it costs less, but two initiators starve each other: each keeps
//! the message that the other waits for. Several initiators each send their NEW-COORDINATOR. In os-textbook the "control part"
//! of a failed process forwards messages, so a message skips only members that the failure detector reports as down. A
//! member that has no other member left elects itself without a message.
//!
//! Cost: n² + n messages for one initiator, n more for each further one; `os-textbook-absorb`: n(n+1)/2 + n. Both are the "order of
//! n²" of os-textbook.
//!
//! os-textbook assumes "that failures do not occur during an election". If they do, an id whose owner has died circulates
//! forever, and the owner of a lost one waits forever.
//!
//! **Hardened mode** adds the rules of [`leader_tracker`](super::leader_tracker), [`ring`] and [`roll_call`]: HOP-ACK, a way
//! past members that are down, rounds, and every id once in a round. In addition:
//!
//! - AI4: members that are down are not elected;
//! - AI6: NEW-COORDINATOR is the winner's claim and followed by the order of claims, also by the winner, which leads from then
//!   on. A winner that the failure detector reports as down is not followed, although the message is passed on: the member
//!   goes on waiting, or starts an election if it takes part in none, and members that receive from the winner make it defer (AI9);
//! - AI7: NEW-COORDINATOR ends where the same claim has passed already. So the messages of several initiators go round once,
//!   and nothing circulates forever;
//! - AI8: a member that learns of no winner in time starts a new round (the initiator or the winner has died, or a message is
//!   lost). The initiator comes first, then its successor, … Each failure doubles the wait. A member that came too late for the
//!   initiator's count has its turn then;
//! - AI9: a member that leads, or follows a live leader, answers the ids of a lower initiator's round with ALIVE instead, and
//!   their owners defer (F8);
//! - AI10: an id in an older round than the member knows of is answered with NACK, and its owner's next round is higher.
//!
//! Without failures hardened mode sends the same messages for one initiator, and a HOP-ACK for each.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::leader_tracker::{Action, LeaderClaim, LeaderTracker, Upkeep, UpkeepTimer};
use super::ring::{self, Hop, HopNumber, Hops, Round};
use super::roll_call::{self, Entry, RollCall};
use crate::config::{Config, Timing, Variant};
use crate::explore::Explore;
use crate::members::{NodeId, Term};
use crate::protocol::{self, Boot, Effects, Event, Kind, Protocol, View, varint_len, write_term};

/// A member that runs the ring of all ids.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RingAllIds {
    tracker: LeaderTracker,
    /// The ids it has seen; the initiator elects from them.
    ids: RollCall,
    /// Hardened mode's hops.
    hops: Hops<Token>,
    /// Hardened: the largest claim that it has sent round or passed on.
    told: Option<Box<LeaderClaim>>,
}

/// The messages of the ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Something in transit round the ring, or its HOP-ACK.
    Hop(Hop<Token>),
    /// A message of hardened mode outside elections.
    Upkeep(Upkeep),
}

/// What goes round the ring.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Token {
    /// "Elect me."
    ElectMe {
        /// The election.
        round: Round,
        /// The member that sends it.
        member: NodeId,
    },
    /// "This one is the new coordinator."
    NewCoordinator {
        /// The election, whose initiator sends this.
        round: Round,
        /// The winner.
        leader: NodeId,
    },
}

/// What a member of the ring waits for, in hardened mode only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// `T_hop`: a HOP-ACK.
    Hop(HopNumber),
    /// `T_re`: the end of the round it takes part in.
    Round,
    /// A timer of hardened mode outside elections.
    Upkeep(UpkeepTimer),
}

impl Protocol for RingAllIds {
    type Config = Config;
    type Message = Message;
    type Timer = Timer;
    type Durable = Term;

    fn start(id: NodeId, config: &Config, boot: Boot<Term>, out: &mut Effects<Self>) -> Self {
        let (tracker, action) = LeaderTracker::start(id, config, &boot, out);
        let mut member = Self { tracker, ids: RollCall::new(id), hops: Hops::new(), told: None };
        member.apply(config, action, out);
        member
    }

    fn handle(&mut self, config: &Config, event: Event<Message, Timer>, out: &mut Effects<Self>) {
        let before = self.view();
        match event {
            Event::Message { from, message } => self.on_message(config, from, message, out),
            Event::Campaign => self.call_election(config, out),
            Event::Command(_) | Event::Retired | Event::Crashed => {}
            Event::Timer(timer) => self.on_timer(config, timer, out),
            Event::PeerDown(peer) => {
                let electing = self.participates();
                let action = self.tracker.on_peer_down(config, peer, electing, out);
                self.apply(config, action, out);
            }
            Event::PeerUp(peer) => self.tracker.on_peer_up(peer, out),
        }
        let after = self.view();
        if after != before {
            out.announce(after);
        }
    }

    fn view(&self) -> View {
        self.tracker.view(self.participates())
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

impl Explore for RingAllIds {}

impl RingAllIds {
    fn participates(&self) -> bool {
        self.tracker.participates()
    }

    /// Whether the election it takes part in is its own.
    fn initiated(&self) -> bool {
        self.participates() && self.ids.round().initiator == self.tracker.id()
    }

    fn on_message(
        &mut self,
        config: &Config,
        from: NodeId,
        message: Message,
        out: &mut Effects<Self>,
    ) {
        self.tracker.mark_alive(from);
        match message {
            Message::Hop(hop) => match self.hops.receive(from, hop, out) {
                Some(Token::ElectMe { round, member }) => {
                    self.on_elect_me(config, round, member, out);
                }
                Some(Token::NewCoordinator { round, leader })
                    if config.members.contains(leader) =>
                {
                    self.on_new_coordinator(config, round, leader, out);
                }
                _ => {}
            },
            Message::Upkeep(upkeep) => {
                let electing = self.participates();
                let action = self.tracker.on_upkeep(config, from, upkeep, electing, out);
                self.apply(config, action, out);
            }
        }
    }

    fn on_timer(&mut self, config: &Config, timer: Timer, out: &mut Effects<Self>) {
        match timer {
            Timer::Hop(number) => {
                let back = self.hops.on_timer(config, &self.tracker, number, out);
                self.take_back(config, back, out);
            }
            Timer::Round => {
                out.rule("AI8");
                self.tracker.set_participant(false);
                self.tracker.election_failed();
                self.call_election(config, out);
            }
            Timer::Upkeep(timer) => {
                let action = self.tracker.on_timer(config, timer, self.participates(), out);
                self.apply(config, action, out);
            }
        }
    }

    fn apply(&mut self, config: &Config, action: Action, out: &mut Effects<Self>) {
        match action {
            Action::Nothing => {}
            Action::EndElection => self.end_participation(config, out),
            Action::StartElection => self.call_election(config, out),
            Action::Defer(claim) => self.defer(config, claim, out),
        }
    }

    /// AI1: this member starts an election.
    fn call_election(&mut self, config: &Config, out: &mut Effects<Self>) {
        if self.participates() {
            return;
        }
        out.rule("AI1");
        out.election_started();
        let me = self.tracker.id();
        let term = self.tracker.open_term(out);
        self.ids.open(Round { term, initiator: me }, me);
        self.participate(config, out);
    }

    /// Sends its own ELECT-ME, and waits for the end of the election.
    fn participate(&mut self, config: &Config, out: &mut Effects<Self>) {
        self.tracker.set_participant(true);
        let round = self.ids.round();
        self.tracker.see_term(round.term, out);
        self.await_end(config, out);
        self.pass(config, Token::ElectMe { round, member: self.tracker.id() }, out);
    }

    fn await_end(&self, config: &Config, out: &mut Effects<Self>) {
        if config.hardened() {
            let wait = ring::re_initiation(config, self.ids.round(), self.tracker.id());
            out.set_timer(Timer::Round, Timing::back_off(wait, self.tracker.attempts()));
        }
    }

    fn on_elect_me(
        &mut self,
        config: &Config,
        round: Round,
        member: NodeId,
        out: &mut Effects<Self>,
    ) {
        let token = Token::ElectMe { round, member };
        match self.ids.enter(config, &self.tracker, round, member) {
            Entry::Own if self.initiated() => {
                out.rule("AI4");
                self.elect(config, out);
            }
            Entry::Own => out.rule("AI5"),
            Entry::First => {
                out.rule("AI2");
                self.participate(config, out);
                self.pass(config, token, out);
            }
            Entry::Further => {
                out.rule("AI3");
                if !(config.reads(Variant::Absorb) && self.initiated()) {
                    self.pass(config, token, out);
                }
            }
            Entry::Refused => {
                out.rule("AI9");
                self.tracker.vouch(config, member, round.term, out);
            }
            Entry::Late => {
                out.rule("AI10");
                let term = self.tracker.term();
                out.send(member, Upkeep::Nack { term }.into());
            }
            Entry::Known => {}
        }
    }

    /// AI4: the initiator has the ids of all members.
    fn elect(&mut self, config: &Config, out: &mut Effects<Self>) {
        let leader = self.ids.highest(config, &self.tracker);
        let term = self.tracker.term();
        let round = Round { term, ..self.ids.round() };
        self.end_participation(config, out);
        let claim = LeaderClaim { term, leader: config.members.key(leader) };
        self.tracker.on_claim(config, claim, false, out);
        self.tell(config, round, leader, out);
    }

    /// AI6, AI7.
    fn on_new_coordinator(
        &mut self,
        config: &Config,
        round: Round,
        leader: NodeId,
        out: &mut Effects<Self>,
    ) {
        let claim = LeaderClaim { term: round.term, leader: config.members.key(leader) };
        let told = self.told.as_ref().is_some_and(|told| claim <= **told);
        if round.initiator == self.tracker.id() || told {
            return out.rule("AI7");
        }
        out.rule("AI6");
        if !config.hardened() {
            self.end_participation(config, out);
            self.tracker.accept(config, claim, out);
            return self.tell(config, round, leader, out);
        }
        if self.tracker.is_down(leader) {
            self.tell(config, round, leader, out);
            return self.call_election(config, out);
        }
        let action = self.tracker.on_claim(config, claim, self.participates(), out);
        self.apply(config, action, out);
        if self.tracker.leader() == Some(leader) {
            self.tell(config, round, leader, out);
        }
    }

    fn tell(&mut self, config: &Config, round: Round, leader: NodeId, out: &mut Effects<Self>) {
        if config.hardened() {
            let leader = config.members.key(leader);
            self.told = Some(Box::new(LeaderClaim { term: round.term, leader }));
        }
        self.pass(config, Token::NewCoordinator { round, leader }, out);
    }

    /// H6: another member follows a leader that this one does not receive. It defers, and starts again later, less and
    /// less often.
    fn defer(&mut self, config: &Config, claim: LeaderClaim, out: &mut Effects<Self>) {
        if self.participates() && claim.leader > config.members.key(self.tracker.id()) {
            self.tracker.defer_to(claim.leader.id);
            self.await_end(config, out);
        }
    }

    fn end_participation(&mut self, config: &Config, out: &mut Effects<Self>) {
        if self.participates() && config.hardened() {
            out.cancel_timer(Timer::Round);
        }
        self.tracker.set_participant(false);
        self.ids.close(config);
    }

    fn pass(&mut self, config: &Config, token: Token, out: &mut Effects<Self>) {
        let back = roll_call::pass(&mut self.hops, config, &self.tracker, token, out);
        self.take_back(config, back, out);
    }

    /// A message has found no other live member. With its own ELECT-ME it has won; the others are lost like their
    /// owners.
    fn take_back(&mut self, config: &Config, token: Option<Token>, out: &mut Effects<Self>) {
        let (round, member) = (self.ids.round(), self.tracker.id());
        if token == Some(Token::ElectMe { round, member }) && self.participates() {
            out.rule("AI4");
            self.ids.open(Round { initiator: member, ..round }, member);
            self.elect(config, out);
        }
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
    Kind::election("ELECT-ME"),
    Kind::election("NEW-COORDINATOR"),
    Kind::link("HOP-ACK"),
    Kind::detector("ALIVE"),
    Kind::election("NACK"),
];

impl Message {
    /// Which of [`KINDS`] it is.
    fn index(&self) -> usize {
        match self {
            Self::Hop(Hop::Pass { token: Token::ElectMe { .. }, .. }) => 0,
            Self::Hop(Hop::Pass { token: Token::NewCoordinator { .. }, .. }) => 1,
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
            Self::Hop(hop) => hop.encoded_len(|token| {
                let (Token::ElectMe { round, member: id }
                | Token::NewCoordinator { round, leader: id }) = token;
                1 + round.encoded_len() + varint_len(u64::from(id.0))
            }),
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
        match self {
            Self::ElectMe { round, member } => {
                write!(f, "ELECT-ME {member}")?;
                write_term(f, round.term)
            }
            Self::NewCoordinator { round, leader } => write!(f, "NEW-COORDINATOR {leader} {round}"),
        }
    }
}
