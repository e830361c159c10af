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
//! **Textbook mode.** Read literally, os-textbook has a process that receives an ELECT-ME send its own each time, which
//! would never end: here it sends one per election. Links must keep the order of messages ("all links in the ring are
//! assumed to be FIFO"). os-textbook does not say which member removes the others' ELECT-MEs from the ring. Here the sender
//! does (AI5). If the initiator does it, which is the variant `os-textbook-absorb`, it costs less, but two initiators starve
//! each other: each keeps the message that the other waits for. Several initiators each send their NEW-COORDINATOR. In
//! os-textbook the "control part" of a failed process forwards messages, so a message skips only members that the failure
//! detector reports as down. A member that has no other member left elects itself without a message.
//!
//! Cost: n² + n messages for one initiator, n more for each further one; `os-textbook-absorb`: n(n+1)/2 + n. Both are the
//! "order of n²" of os-textbook.
//!
//! os-textbook assumes "that failures do not occur during an election". If they do, an id whose owner has died circulates
//! forever, and the owner of a lost one waits forever.
//!
//! **Hardened mode** adds the rules of [`leader_tracker`](super::leader_tracker), [`ring`] and
//! [`roll_call`](super::roll_call): HOP-ACK, a way past members that are down, rounds, and every id once in a round. In
//! addition:
//!
//! - AI4: members that are down are not elected;
//! - AI6: NEW-COORDINATOR is the winner's claim and followed by the order of claims, also by the winner, which leads from
//!   then on. A winner that the failure detector reports as down is not followed, although the message is passed on: the
//!   member continues to wait, or starts an election if it takes part in none, and members that receive from the winner make
//!   it defer (AI9);
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

pub mod rules;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::elective::Elective;
use super::leader_tracker::{ALIVE, LeaderClaim, NACK};
use super::ring::{self, HOP_ACK, Round};
use super::roll_call::{Reading, RollCallRing, RuleIds};
use crate::config::{Config, Variant};
use crate::members::NodeId;
use crate::protocol::{Context, Family, Kind, write_term};

/// A member that runs the ring of all ids; its roll is the ids it has seen, from which the initiator elects.
pub type RingAllIds = RollCallRing<AllIds>;

/// The messages of the ring.
pub type Message = ring::Message<Token>;

/// The reading of os-textbook: the initiator decides, and tells all.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct AllIds {
    /// Hardened: the largest claim that it has sent round or passed on.
    told: Option<Box<LeaderClaim>>,
}

/// What goes round the ring.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Token {
    /// "Elect me."
    ElectMe { round: Round, member: NodeId },
    /// "This one is the new coordinator", from the initiator of the round.
    NewCoordinator { round: Round, leader: NodeId },
}

impl Reading for AllIds {
    type Token = Token;

    const IDS: RuleIds = RuleIds {
        start: "AI1",
        first: "AI2",
        further: "AI3",
        overdue: "AI8",
        refused: "AI9",
        late: "AI10",
    };

    fn number(round: Round, member: NodeId) -> Token {
        Token::ElectMe { round, member }
    }

    fn on_token(ring: &mut RingAllIds, token: Token, cx: &mut Context<'_, RingAllIds>) {
        match token {
            Token::ElectMe { round, member } => ring.on_number(round, member, cx),
            Token::NewCoordinator { round, leader } if cx.config.members.contains(leader) => {
                ring.on_new_coordinator(round, leader, cx);
            }
            Token::NewCoordinator { .. } => {}
        }
    }

    /// AI4, AI5.
    fn on_complete(ring: &mut RingAllIds, cx: &mut Context<'_, RingAllIds>) {
        if !ring.initiated() {
            return cx.rule("AI5");
        }
        cx.rule("AI4");
        ring.elect(cx);
    }

    fn on_alone(ring: &mut RingAllIds, cx: &mut Context<'_, RingAllIds>) {
        cx.rule("AI4");
        let me = ring.tracker.id();
        ring.roll.open(Round { initiator: me, ..ring.roll.round() }, me);
        ring.elect(cx);
    }

    fn passes_on(ring: &RingAllIds, config: &Config) -> bool {
        !(config.reads(Variant::Absorb) && ring.initiated())
    }
}

impl RingAllIds {
    /// Whether the election it takes part in is its own.
    fn initiated(&self) -> bool {
        self.electing() && self.roll.round().initiator == self.tracker.id()
    }

    /// AI4: the initiator has the ids of all members.
    fn elect(&mut self, cx: &mut Context<'_, Self>) {
        let leader = self.roll.highest(cx.config, &self.tracker);
        let term = self.tracker.term();
        let round = Round { term, ..self.roll.round() };
        self.end_election(cx);
        let claim = LeaderClaim { term, leader: cx.config.members.key(leader) };
        self.tracker.on_claim(claim, false, cx);
        self.tell(round, leader, cx);
    }

    /// AI6, AI7.
    fn on_new_coordinator(&mut self, round: Round, leader: NodeId, cx: &mut Context<'_, Self>) {
        let claim = LeaderClaim { term: round.term, leader: cx.config.members.key(leader) };
        let told = self.reading.told.as_ref().is_some_and(|told| claim <= **told);
        if round.initiator == self.tracker.id() || told {
            return cx.rule("AI7");
        }
        cx.rule("AI6");
        if !cx.config.hardened() {
            self.end_election(cx);
            self.tracker.accept(claim, cx);
            return self.tell(round, leader, cx);
        }
        if self.tracker.is_down(leader) {
            self.tell(round, leader, cx);
            return self.start_election(cx);
        }
        self.on_claim(claim, cx);
        if self.tracker.leader() == Some(leader) {
            self.tell(round, leader, cx);
        }
    }

    fn tell(&mut self, round: Round, leader: NodeId, cx: &mut Context<'_, Self>) {
        if cx.config.hardened() {
            let leader = cx.config.members.key(leader);
            self.reading.told = Some(Box::new(LeaderClaim { term: round.term, leader }));
        }
        self.pass(Token::NewCoordinator { round, leader }, cx);
    }
}

impl ring::Token for Token {
    const KINDS: &'static [Kind] = &[
        Kind::own("ELECT-ME", Family::Ask, "asks to be elected, round the whole ring"),
        Kind::own(
            "NEW-COORDINATOR",
            Family::Announce,
            "tells every member on the ring who was elected",
        ),
        HOP_ACK,
        ALIVE,
        NACK,
    ];

    fn index(&self) -> usize {
        match self {
            Self::ElectMe { .. } => 0,
            Self::NewCoordinator { .. } => 1,
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
