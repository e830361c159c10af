//! The rules on which safety rests, and those that keep members from disturbing each other, each by name.
//!
//! A check that finds nothing proves little unless it finds a fault that is there. So a [`Quorum`] asks its [`Rules`] whether
//! a rule is in force, and tests remove rules one at a time: every check must notice. The rules are part of the
//! [settings](super::quorum::Settings), where no configuration file can reach them.
//!
//! [`Quorum`]: crate::algorithm::quorum::Quorum

use std::fmt;
use std::str::FromStr;

use crate::members::Term;

/// Lists every rule once: as a variant and in [`Rule::ALL`].
macro_rules! rules {
    ($(#[$about:meta])* pub enum Rule { $($(#[$doc:meta])* $name:ident,)* }) => {
        $(#[$about])*
        pub enum Rule {
            $($(#[$doc])* $name,)*
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

rules! {
/// A rule that can be removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// A majority of the configured members elects and renews, not half of them.
    Majority,
    /// A term is stored before anything is sent in it.
    TermIsStored,
    /// A vote is stored before it is sent.
    VoteIsStored,
    /// A member votes once per term.
    OneVotePerTerm,
    /// A vote counts only in the term in which it was given.
    VoteCountsInItsTerm,
    /// A member that steps down in a term has still voted in it.
    VoteOutlivesRole,
    /// A member that acknowledged a heartbeat votes for no other member for a while.
    VoteLease,
    /// A restarted member does not vote as long as a vote lease that it gave before may last.
    HoldDown,
    /// The hold-down is as long as the longest vote lease given, regardless of the present settings.
    HoldDownIsLongest,
    /// A vote lease is as long as the leader asks for, not as long as the follower is configured to.
    VoteLeaseAsRequested,
    /// A lease counts from the sending of the heartbeat that was acknowledged.
    LeaseFromSending,
    /// A lease is shorter than the vote leases that it rests on, by the possible error of clocks.
    DriftMargin,
    /// A vote is no acknowledgement: it gives no vote lease.
    VoteIsNoLease,
    /// An acknowledgement counts only in the term in which it was given.
    AckCountsInItsTerm,
    /// A heartbeat of an earlier term is not acknowledged.
    NoStaleHeartbeat,
    /// A leader gives up its lease before it transfers leadership.
    LeaseEndsBeforeTransfer,
    /// A RELEASE ends a vote lease of its own term, and of no later one.
    ReleaseIsForItsTerm,
    /// A leader that steps down is bound by its own lease until that has run out.
    LeaseBindsItsHolder,
    /// Leadership is transferred only after the work under the lease has stopped.
    RetiredFirst,
    /// The lease of a dead leader is released only after its work has been confirmed to be over.
    JobEndsBeforeRelease,
    /// The lease of a dead leader is released only after the last permit under it has ended.
    PermitEndsBeforeRelease,
    /// A witness never leads.
    WitnessNeverLeads,
    /// While elections are paused a member campaigns only as the successor of a leader that transferred leadership.
    PauseHolds,
    /// The pause or resume of the highest number counts, whichever message arrives last.
    LaterPauseWins,
    /// A member that lost its disk votes in no term in which it may have voted.
    RejoinVotesLater,
    /// A member that lost its disk waits until every other member has answered.
    RejoinAsksAll,
    /// A member that lost its disk waits for the longest vote lease of all members, not only its own.
    RejoinWaitsTheLongest,
    /// An answer to HELLO counts for the incarnation that asked, not for a later one.
    AnswerIsForItsIncarnation,
    /// A round whose timer has fired never counts again, not even the one with which a lease lapsed.
    LapsedRoundIsOver,
    /// A leader never shortens the vote lease that it asks for within a term.
    VoteLeaseNeverShrinks,
    /// The longest vote lease that is stored falls only when its whole time has passed, in one incarnation, without one
    /// that long: neither with a restart nor with a later term.
    LongestFallsLate,
    /// A disk is old if the member was seen in a later term than the disk held when it started.
    OldDiskByItsStart,
    /// Sessions: a session is met when it has answered a question that was never asked before.
    ProvenSession,
    /// Sessions: a message counts from the session that was met, for the present one.
    MetSessionOnly,
    /// Sessions: an earlier incarnation than one that was met is not met any more.
    IncarnationsRise,
    /// Sessions: the same incarnation is met again only in the same session.
    SameSessionOnly,
    /// Sessions: which incarnation was met, and its session, is stored before anything is sent in it.
    SessionIsStored,
    /// Sessions: a member that lost its disk takes over what the others have stored of all members.
    RejoinTakesOver,
    /// Sessions: a member that lost its disk does nothing until every other member has stored its new incarnation.
    RejoinIsConfirmed,
    /// Sessions, against recordings: answers to sessions that are not met are limited.
    AnswersAreLimited,
    /// Sessions, against recordings: each kind of letter has answers and open questions of its own.
    PromptersApart,
    /// Sessions, against recordings: messages go to another address only after a question that was sent there was
    /// answered from there.
    AddressIsProven,
    /// Sessions, against recordings: the answer to a question at another address counts for the session that asked.
    AnswerIsForItsSession,
    /// Not safety: a leader whose lease has lapsed tries to renew it in the same term.
    LapsedLeaderRetries,
    /// Not safety: a successor reaches a majority, as far as the leader knows.
    SuccessorReachesMajority,
    /// Not safety: an elected member that no majority confirms does not answer "higher".
    UnconfirmedLeaderYields,
    /// Not safety: a successor that is not elected penalizes itself.
    FailedSuccessorIsPenalized,
    /// Not safety: penalties double until the member has led for a whole tenure.
    PenaltiesGrow,
    /// Not safety: a member that is refused by members with a leader asks more and more rarely.
    RefusedBacksOff,
    /// Not safety: a member that asks to take over asks more and more rarely.
    TakeoverBacksOff,
    /// Not safety: a member waits for its turn and asks for pre-votes before it campaigns, and sends HELLO when it starts.
    /// Without this rule there are more runs of fewer messages, and all of them must be as safe (`without_pre_vote.rs`).
    PreVote,
}
}

impl fmt::Display for Rule {
    /// `vote-is-stored`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&hyphenated(&format!("{self:?}")))
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_named = |rule: &&Self| rule.to_string() == text;
        Self::ALL.iter().find(is_named).copied().ok_or_else(|| {
            let names: Vec<String> = Self::ALL.iter().map(Self::to_string).collect();
            format!("unknown rule `{text}`; there are {}", names.join(", "))
        })
    }
}

/// `VoteLease` as `vote-lease`.
pub(crate) fn hyphenated(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// The rules in force: all of them, unless a check removes one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rules {
    /// A bit for each rule that is removed.
    without: u64,
    /// The last term that a member opens. Only explorers set it, to make the state space finite.
    pub(crate) last_term: Term,
}

impl Default for Rules {
    fn default() -> Self {
        Self { without: 0, last_term: Term(u64::MAX) }
    }
}

impl Rules {
    /// The same without `rule`.
    #[must_use]
    pub fn without(self, rule: Rule) -> Self {
        Self { without: self.without | 1 << rule as u64, ..self }
    }

    /// The same with this last term.
    #[must_use]
    pub fn until(self, last_term: Term) -> Self {
        Self { last_term, ..self }
    }

    /// Whether `rule` is in force.
    #[inline]
    pub fn keeps(self, rule: Rule) -> bool {
        self.without & 1 << rule as u64 == 0
    }

    /// The size of a majority of `members`.
    pub(crate) fn majority(self, members: usize) -> usize {
        if self.keeps(Rule::Majority) { members / 2 + 1 } else { (members / 2).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_name_and_a_bit_of_its_own() {
        assert!(Rule::ALL.len() <= 64);
        for &rule in Rule::ALL {
            assert_eq!(rule.to_string().parse(), Ok(rule));
            let rules = Rules::default().without(rule);
            let missing = Rule::ALL.iter().filter(|&&other| !rules.keeps(other));
            assert_eq!(missing.collect::<Vec<_>>(), [&rule]);
        }
        assert_eq!(Rule::OneVotePerTerm.to_string(), "one-vote-per-term");
    }
}
