//! A quorum without pre-votes: what is explored of leases and vote leases.
//!
//! Pre-votes, turns, letting others go first and HELLO decide *when* a member campaigns; they cost most of the messages and
//! most of a member's memory. Without [`Rule::PreVote`] a member campaigns whenever it is told to, if nothing binds it, and
//! every member may learn at any moment that a term has been opened. Everything else is the shipped code: votes, leases, vote
//! leases, hold-down, and all their timers.
//!
//! **A reduced quorum can do everything that a quorum can do**, as far as terms, votes, leaderships, vote leases and
//! hold-downs are concerned; so what is safe in every run of reduced members is safe in every run of shipped ones. Step by
//! step:
//!
//! - A member that asks, answers, waits for its turn or lets another go first changes none of these: the reduced member does
//!   nothing.
//! - A member that has enough yes answers campaigns, and nothing binds it then: the reduced member is told to campaign at
//!   that moment.
//! - A pre-candidate that learns of a later term from an answer is not bound: some member opened that term and has told all
//!   members so. The reduced member receives that message now.
//! - A candidate or leader that is refused (NACK) learns of a later term: the reduced member learns of it from the member
//!   that opened the term. So no reduced member refuses anything.
//! - A leader that transfers leadership, because of a command, a drain, or a preferred or higher-ranked member, does so
//!   while it has a lease, and chooses a successor or none: the reduced member is told at that moment to transfer to that
//!   member, or to resign. Any member is accepted: whether it is fit, and how long others wait after that, is not a safety
//!   rule. The other contents of the messages (the successor's name, the reason) decide nothing else, and the reduced member
//!   leaves them out.
//! - HELLO and its answer change only the list of members that have answered, unless a disk was lost. Then the reduced
//!   member does what the shipped one does.
//! - Penalties, refusals and reachability decide which member goes first and which answers "higher", and so only when a
//!   member campaigns.
//!
//! All other steps are the same. Messages of reduced members may be lost, so that they send more of them does no harm.

use crate::change::ElectionReason;
use crate::config::Config;
use crate::members::Term;

use super::super::message::Body;
use super::super::{Cx, Quorum};
use crate::config::rules::Rule;

impl Quorum {
    /// Campaigns without a pre-vote, and tells every member that there is a new term. `released`: the term whose leader
    /// chose this member as its successor.
    pub(in super::super) fn campaign_without_pre_vote(
        &mut self,
        released: Option<Term>,
        cx: &mut Cx<'_>,
    ) {
        let before = self.ballot.term();
        self.become_candidate(released, ElectionReason::Elected { after: None, cause: None }, cx);
        if self.ballot.term() > before {
            self.broadcast(&Body::Nack, cx);
        }
    }

    /// Whether a follower adopts any later term that it learns of.
    pub(in super::super) fn follows_any_term(&self, config: &Config) -> bool {
        !config.quorum.keeps(Rule::PreVote) && !self.is_bound(None)
    }
}
