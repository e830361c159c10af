//! The modified ring, which survives crashes (cs425 "Modification to Ring Election", "Modified Ring Election").
//!
//! The list ring of [`ring_list`](super::ring_list) with its rules L1 to L5, and three additions. COORDINATOR collects the ids
//! of the members that it passes, as ELECTION collects their keys, so that the initiator sees whether the winner is still
//! alive. If it is not, the election is repeated. And if the initiator fails, its successors take over one after the other:
//! "have the initiator's successor wait a while, then reinitiate a new election. Do the same for this successor's successor,
//! and so on".
//!
//! | rule | event | action |
//! |---|---|---|
//! | L6 | own COORDINATOR returns, the winner not on its list | the winner has failed: L1 again |
//! | L7 | `T_re` | the round that it passed on has not ended: L1 |
//! | L8 | a token of an earlier round, or after 2N hops | an orphan: drops it |
//!
//! cs425 does not say how long "a while" is, or what becomes of a token whose initiator failed. So a round has a number, one
//! higher than any that its initiator knew of. A member that passed on its ELECTION waits `T_re`, which is longer the further it
//! is from the initiator (see [`ring`](super::ring)), and COORDINATOR ends the wait. The initiator waits too, as the zeroth of
//! its successors: its neighbour can fail while it holds the token. An orphan ends where a later round has passed, or after 2N
//! hops. Numbers are stored, even in textbook mode; otherwise a member that has just recovered would start with number one
//! again, and all members would take its token for an orphan. That makes the initiator's incarnation, which is part of the
//! name of a round in the specification, unnecessary.
//!
//! Members that start at the same time start rounds of the same number. In textbook mode all of these run to their ends, as in
//! cs677.
//!
//! Costs without failures are those of the list ring, 2n messages and 2n·D. A winner that fails after it has put itself on the
//! list costs n + (n−1) + 2(n−1), every further one about 2n more. The list proves that the winner was alive when COORDINATOR
//! passed: all members follow a winner that fails later (F18), until the failure detector reports it as down.
//!
//! **Hardened mode** is described in [`ring_list`](super::ring_list): hardened, the two are the same algorithm.

use super::elective::Elective;
use super::ring::Round;
use super::ring_list::{Circuit, ListRing, Reading, Token};
use crate::config::Config;
use crate::members::{Key, PeerSet, Term};
use crate::protocol::{Boot, Context, Origin};

/// A member that runs the modified ring of cs425.
pub type RingResilient = ListRing<Resilient>;

/// The textbook of cs425: rounds, a hop limit, repetition.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Resilient {}

impl Reading for Resilient {
    const RESILIENT: bool = true;
}

/// What a member remembers of the rounds on its ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Rounds {
    /// Textbook: the number of the latest round, durable. Hardened mode has it from the tracker.
    pub(super) term: Term,
    /// The circuit that it began or passed on last.
    pub(super) last: Option<Lap>,
    /// Whether its leader is known to be confirmed.
    pub(super) in_office: bool,
    /// The members to which it has vouched for its leader since it last received from it.
    pub(super) told: PeerSet,
}

impl Rounds {
    pub(super) fn new(boot: &Boot<Term>) -> Self {
        Self {
            term: boot.durable.unwrap_or_default(),
            last: None,
            in_office: matches!(boot.origin, Origin::Founding { leader: Some(_) }),
            told: PeerSet::new(),
        }
    }

    /// Its leader has sent a message.
    pub(super) fn confirm_leader(&mut self) {
        self.in_office = true;
        self.told.clear();
    }

    /// Its leader is not known to be confirmed.
    pub(super) fn set_unconfirmed(&mut self) {
        self.in_office = false;
        self.told.clear();
    }

    /// Textbook: takes note of a round's number, durably.
    pub(super) fn see_term<P: Elective>(&mut self, term: Term, cx: &mut Context<'_, P>) {
        if term > self.term {
            self.term = term;
            cx.persist(term);
        }
    }

    /// Textbook: the number of a new round, durably.
    pub(super) fn open_term<P: Elective>(&mut self, cx: &mut Context<'_, P>) -> Term {
        self.see_term(self.term.next(), cx);
        self.term
    }
}

/// One circuit of a round. Later rounds and circuits are greater; of rounds with the same number, that of the better
/// initiator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Lap {
    term: Term,
    initiator: Key,
    /// The second circuit, that of COORDINATOR.
    coordinator: bool,
}

impl Lap {
    pub(super) fn of(config: &Config, token: &Token) -> Self {
        Self {
            term: token.round.term,
            initiator: config.members.key(token.round.initiator),
            coordinator: matches!(token.circuit, Circuit::Coordinator { .. }),
        }
    }

    /// Whether it is a circuit of `round`.
    pub(super) fn is_of(&self, round: Round) -> bool {
        (self.term, self.initiator.id) == (round.term, round.initiator)
    }
}
