//! The voting rules: which member may lead in which term.
//!
//! No two members win the same term: a win takes the votes of a majority of the configured members, a member votes once
//! per term, and its vote is on disk before any other member learns of it. These rules know nothing of leases, ranks or
//! time, so they can be explored alone and completely: [`Voter`](super::voter::Voter) is a protocol made of nothing else, and
//! [`Quorum`](super::Quorum) builds on them.
//!
//! | rule | what it says |
//! |---|---|
//! | V1 | a candidate opens the next term and votes for itself |
//! | V2 | a request of an earlier term gets no vote |
//! | V3 | a request of a later term makes that the current term, with no vote given yet |
//! | V4 | the first candidate of a term that asks gets the vote, and gets it again if it asks again |
//! | V5 | a majority of the configured members wins; a vote counts only in its own term |

use serde::{Deserialize, Serialize};

use crate::members::{NodeId, PeerSet, Term};
use crate::protocol::{self, Context, Protocol};
use crate::time::Span;

use super::pause::Pause;
use crate::config::rules::{Rule, Rules};

/// The durable state of a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Stored {
    /// The latest term that it knows of.
    pub term: Term,
    /// Its vote in that term.
    pub voted: Option<NodeId>,
    /// The length of its hold-down after a restart: the longest vote lease that it has given or asked for and that may still
    /// run, or the one that it is configured with.
    pub longest: Span,
    /// Whether the operator has drained it, and for how long.
    pub drained: Option<Drain>,
    /// The latest pause of elections that it knows of, over or not.
    pub pause: Option<Pause>,
}

/// How long a member stays drained.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Drain {
    /// Until the operator undoes it.
    UntilUndone,
    /// For this time, which starts again after a restart.
    For(Span),
    /// Until the operator undoes it, and not even as a last resort: this member must not lead at all.
    Never,
}

impl protocol::Durable for Stored {
    fn term(&self) -> Term {
        self.term
    }

    fn vote(&self) -> Option<NodeId> {
        self.voted
    }

    fn is_drained(&self) -> bool {
        self.drained.is_some()
    }

    fn is_paused(&self) -> bool {
        self.pause.is_some_and(|pause| pause.left > Span::ZERO)
    }
}

impl Stored {
    pub(super) fn renamed(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
        let pause = self.pause.map(|pause| {
            let (number, member) = pause.given;
            Pause { given: (number, names(member)), ..pause }
        });
        Self { voted: self.voted.map(names), pause, ..*self }
    }
}

/// A member's term and vote. Candidates keep the votes that they receive.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Ballot {
    id: NodeId,
    stored: Stored,
    rules: Rules,
}

impl Ballot {
    pub(super) fn new(id: NodeId, stored: Stored, rules: Rules) -> Self {
        Self { id, stored, rules }
    }

    pub(super) fn id(&self) -> NodeId {
        self.id
    }

    pub(super) fn term(&self) -> Term {
        self.stored.term
    }

    pub(super) fn stored(&self) -> &Stored {
        &self.stored
    }

    pub(super) fn stored_mut(&mut self) -> &mut Stored {
        &mut self.stored
    }

    /// V1: opens the next term; to be stored before the request is sent. Returns the votes of the new candidate, or nothing
    /// after the last of all terms.
    pub(super) fn open_term(&mut self) -> Option<PeerSet> {
        let next = self.stored.term.next();
        if next == self.stored.term || next > self.rules.last_term {
            return None;
        }
        self.stored.term = next;
        self.stored.voted = Some(self.id);
        Some([self.id].into_iter().collect())
    }

    /// V3: adopts a later term; to be stored before anything is sent in it. Returns whether the term is later.
    pub(super) fn adopt(&mut self, term: Term) -> bool {
        if term <= self.stored.term {
            return false;
        }
        self.stored.term = term;
        self.stored.voted = None;
        true
    }

    /// It is no longer candidate or leader. Its vote in this term remains.
    pub(super) fn withdraw(&mut self) {
        if !self.rules.keeps(Rule::VoteOutlivesRole) {
            self.stored.voted = None;
        }
    }

    /// V4: whether `candidate` gets the vote of the current term; to be stored before it is sent.
    pub(super) fn grant(&mut self, candidate: NodeId) -> bool {
        let free = self.stored.voted.is_none_or(|voted| voted == candidate);
        if free || !self.rules.keeps(Rule::OneVotePerTerm) {
            self.stored.voted = Some(candidate);
            return true;
        }
        false
    }

    /// V5: counts a vote of `voter` that was given in `term`, and returns whether `votes` are a majority of `members`.
    pub(super) fn count(
        &self,
        votes: &mut PeerSet,
        voter: NodeId,
        term: Term,
        members: usize,
    ) -> bool {
        if term == self.stored.term || !self.rules.keeps(Rule::VoteCountsInItsTerm) {
            votes.insert(voter);
        }
        votes.len() >= self.rules.majority(members)
    }

    /// Stores it before any effect that follows.
    pub(super) fn store<P: Protocol<Durable = Stored>>(&self, cx: &mut Context<'_, P>) {
        let mut stored = self.stored;
        if !self.rules.keeps(Rule::VoteIsStored) {
            stored.voted = None;
        }
        if self.rules.keeps(Rule::TermIsStored) {
            cx.persist(stored);
        }
    }

    pub(super) fn renamed(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
        Self { id: names(self.id), stored: self.stored.renamed(names), rules: self.rules }
    }
}
