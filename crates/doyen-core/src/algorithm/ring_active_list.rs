//! The ring with an active list at every member (notes, "Algorithm"; Silberschatz).
//!
//! A member that misses the coordinator starts a list of the live members, its *active list*, and sends its own number round
//! the ring with ELECT. Each member that receives it does the same, and enters the numbers that pass into its own list. A
//! member whose own number returns knows all the others, and picks the highest. There is no announcement: each member decides
//! for itself, and all reach the same decision.
//!
//! | rule | notes | event | action |
//! |---|---|---|---|
//! | AL1 | | start, no list | starts a list with itself; sends ELECT with its own number |
//! | AL2 | (ii) | ELECT of another, no list | starts a list with both; sends its own number, *then* the other |
//! | AL3 | (i) | ELECT of another | enters it; passes it on |
//! | AL4 | (iii) | its own ELECT | its list is complete: follows the highest on it, removes the message from the ring |
//!
//! **Textbook mode.** The notes have lost the subscripts of their numbers; the rules above are restored from their three
//! cases. Their example is another algorithm, in which one list circulates: [`ring_list`](super::ring_list). The order in AL2
//! matters, and links must keep it: a member's own number follows all others, and returns last. The notes do not say when a
//! list is forgotten: it is when its owner has decided, so that the next election starts a new one. As in all rings of the
//! kind of os-textbook, a message skips only members that the failure detector reports as down. A member that has no other
//! member left elects itself without a message.
//!
//! Cost: n² messages, however many members start. The last member decides after at most 2n−1 hops.
//!
//! A number whose owner has died circulates forever, and the owner of a lost one waits forever.
//!
//! **Hardened mode** adds the rules of [`leader_tracker`](super::leader_tracker), [`ring`] and
//! [`roll_call`](super::roll_call): HOP-ACK, a way past members that are down, rounds, and every number once in a round. In
//! addition:
//!
//! - AL4: each member decides for itself, as in the notes, but when a member dies during the election the lists differ, and so
//!   would the decisions. Therefore only one of them counts, the winner's. It sends ALIVE to all members at once, and the others
//!   follow it then, by the order of claims. Their own decision is only the reason why they wait;
//! - AL5: a member that learns of no winner in time starts a new round (the winner has died, or a number is lost). The
//!   initiator comes first, then its successor, … Each failure doubles the wait;
//! - AL6: a member that leads, or follows a live leader, answers the numbers of a lower initiator's round with ALIVE instead,
//!   and their owners defer (F8);
//! - AL7: a number in an older round than the member knows of is answered with NACK, and its owner's next round is higher.
//!
//! Without failures hardened mode sends the same messages, a HOP-ACK for each, and the winner's n−1 ALIVEs.

pub mod rules;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::elective::Elective;
use super::leader_tracker::{ALIVE, BackgroundTimer, LeaderClaim, NACK};
use super::ring::{self, HOP_ACK, Round, Timer};
use super::roll_call::{Reading, RollCallRing, RuleIds};
use crate::members::{NodeId, Term};
use crate::protocol::{Context, Family, Kind, write_term};

/// A member that runs the ring with active lists; its roll is its active list.
pub type RingActiveList = RollCallRing<ActiveList>;

/// The messages of the ring.
pub type Message = ring::Message<Token>;

/// The reading of the notes: each member decides for itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ActiveList;

/// What goes round the ring: ELECT, "this one is alive".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    /// In which election; textbook mode does not look at it.
    pub round: Round,
    /// The number.
    pub member: NodeId,
}

impl Reading for ActiveList {
    type Token = Token;

    const IDS: RuleIds = RuleIds {
        start: "AL1",
        first: "AL2",
        further: "AL3",
        overdue: "AL5",
        refused: "AL6",
        late: "AL7",
    };

    fn number(round: Round, member: NodeId) -> Token {
        Token { round, member }
    }

    fn on_token(ring: &mut RingActiveList, token: Token, cx: &mut Context<'_, RingActiveList>) {
        ring.on_number(token.round, token.member, cx);
    }

    /// AL4. In hardened mode the winner alone acts on its list.
    fn on_complete(ring: &mut RingActiveList, cx: &mut Context<'_, RingActiveList>) {
        cx.rule("AL4");
        let winner = ring.roll.highest(cx.config, &ring.tracker);
        if !cx.config.hardened() {
            ring.end_election(cx);
            let leader = cx.config.members.key(winner);
            ring.tracker.accept(LeaderClaim { term: Term::default(), leader }, cx);
        } else if winner == ring.tracker.id() {
            ring.lead(cx);
        }
    }

    fn on_alone(ring: &mut RingActiveList, cx: &mut Context<'_, RingActiveList>) {
        if !cx.config.hardened() {
            return Self::on_complete(ring, cx);
        }
        cx.rule("AL4");
        ring.lead(cx);
    }
}

impl RingActiveList {
    /// Hardened: leads, and the first ALIVE goes out at once.
    fn lead(&mut self, cx: &mut Context<'_, Self>) {
        self.end_election(cx);
        self.tracker.lead(cx);
        self.on_timer(Timer::Background(BackgroundTimer::Heartbeat), cx);
    }
}

impl ring::Token for Token {
    const KINDS: &'static [Kind] = &[
        Kind::own("ELECT", Family::Ask, "carries the number of one member round the ring"),
        HOP_ACK,
        ALIVE,
        NACK,
    ];

    fn index(&self) -> usize {
        0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ELECT {}", self.member)?;
        write_term(f, self.round.term)
    }
}
