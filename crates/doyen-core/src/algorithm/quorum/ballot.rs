//! The voting rules, alone: who may lead in which term.
//!
//! Two members can never win the same term, because a win takes the votes of a majority of the configured members, a
//! member votes once a term, and what it voted is on its disk before anybody learns of it. Nothing here knows of
//! leases, priorities or time. So this part can be explored alone and completely: [`Voter`](super::voter::Voter) is it
//! as a protocol of its own, and [`Quorum`](super::Quorum) is built on it.
//!
//! | rule | what it says |
//! |---|---|
//! | V1 | who stands opens the next term and votes for itself |
//! | V2 | a request of an earlier term gets no vote |
//! | V3 | one of a later term makes it the present one, in which nothing has been voted yet |
//! | V4 | the first who asks in a term gets the vote, and gets it again |
//! | V5 | a majority of the configured members wins; a vote counts in its own term only |

use serde::{Deserialize, Serialize};

use crate::members::{Epoch, NodeId, PeerSet};
use crate::protocol::{self, Effects, Protocol};
use crate::time::Span;

use super::rules::{Rule, Rules};

/// What a member of a quorum must not forget.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Stored {
    /// The latest term that it knows of.
    pub term: Epoch,
    /// For whom it voted in that term.
    pub voted: Option<NodeId>,
    /// The longest vote lease that it has given or asked for and that may still run, or that it is configured with: so long
    /// is its hold-down after a restart.
    pub longest: Span,
    /// Whether the operator has drained it, and for how long.
    pub drained: Option<Drain>,
}

/// How long a drained member stays so.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Drain {
    /// Until it is told otherwise.
    UntilUndone,
    /// So long; counted anew if it restarts.
    For(Span),
    /// Until it is told otherwise, and not even as a last resort: the machine must not lead at all.
    Never,
}

impl protocol::Durable for Stored {
    fn term(&self) -> Epoch {
        self.term
    }

    fn vote(&self) -> Option<NodeId> {
        self.voted
    }

    fn is_drained(&self) -> bool {
        self.drained.is_some()
    }
}

impl Stored {
    /// The same, if members had other names.
    pub(super) fn renamed(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
        Self { voted: self.voted.map(names), ..*self }
    }
}

/// A member's part in the vote.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Ballot {
    id: NodeId,
    stored: Stored,
    /// Who voted for it in the present term; empty unless it stands.
    votes: PeerSet,
    rules: Rules,
}

impl Ballot {
    pub(super) fn new(id: NodeId, stored: Stored, rules: Rules) -> Self {
        Self { id, stored, votes: PeerSet::new(), rules }
    }

    pub(super) fn term(&self) -> Epoch {
        self.stored.term
    }

    pub(super) fn stored(&self) -> &Stored {
        &self.stored
    }

    /// What else must not be forgotten.
    pub(super) fn stored_mut(&mut self) -> &mut Stored {
        &mut self.stored
    }

    /// V1. To be stored before anybody is asked. Not possible after the last of all terms.
    pub(super) fn stand(&mut self) -> bool {
        let next = self.stored.term.next();
        if next == self.stored.term || next > self.rules.last_term {
            return false;
        }
        self.stored.term = next;
        self.stored.voted = Some(self.id);
        self.votes = [self.id].into_iter().collect();
        true
    }

    /// V3: to be stored before anything of that term is answered. Says whether it is news.
    pub(super) fn adopt(&mut self, term: Epoch) -> bool {
        if term <= self.stored.term {
            return false;
        }
        self.stored.term = term;
        self.stored.voted = None;
        self.votes.clear();
        true
    }

    /// It does not stand any more. What it voted in this term it has voted.
    pub(super) fn withdraw(&mut self) {
        self.votes.clear();
        if !self.rules.keeps(Rule::VoteOutlivesOffice) {
            self.stored.voted = None;
        }
    }

    /// Who voted for it matters no longer.
    pub(super) fn forget_votes(&mut self) {
        self.votes.clear();
    }

    /// V4: whether `candidate` gets the vote of the present term; to be stored before it is told.
    pub(super) fn grant(&mut self, candidate: NodeId) -> bool {
        let free = self.stored.voted.is_none_or(|voted| voted == candidate);
        if free || !self.rules.keeps(Rule::OneVoteATerm) {
            self.stored.voted = Some(candidate);
            return true;
        }
        false
    }

    /// V5: counts a vote of `voter` in `term`.
    pub(super) fn count(&mut self, voter: NodeId, term: Epoch) {
        if term == self.stored.term || !self.rules.keeps(Rule::VoteCountsInItsTerm) {
            self.votes.insert(voter);
        }
    }

    /// V5: whether a majority of so many members has voted for it.
    pub(super) fn is_won(&self, members: usize) -> bool {
        self.votes.len() >= self.rules.majority(members)
    }

    /// Stores it, before anything that follows.
    pub(super) fn store<P: Protocol<Durable = Stored>>(&self, out: &mut Effects<P>) {
        let mut stored = self.stored;
        if !self.rules.keeps(Rule::VoteIsStored) {
            stored.voted = None;
        }
        if self.rules.keeps(Rule::TermIsStored) {
            out.persist(stored);
        }
    }

    pub(super) fn id(&self) -> NodeId {
        self.id
    }

    /// The same, if members had other names.
    pub(super) fn renamed(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
        Self {
            id: names(self.id),
            stored: self.stored.renamed(names),
            votes: self.votes.iter().map(names).collect(),
            rules: self.rules,
        }
    }
}
