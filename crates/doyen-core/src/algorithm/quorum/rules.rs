//! The rules on which safety rests, and those that keep members from disturbing each other, each by name.
//!
//! A check that finds nothing proves little unless it finds something where something is wrong. So a [`Quorum`] asks
//! its [`Rules`] whether a rule stands, and tests take rules away one at a time: every check must notice. They are part of
//! the [settings](super::settings::Settings), where no configuration file can reach them.
//!
//! [`Quorum`]: super::Quorum

use crate::members::Epoch;

/// A rule that can be taken away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// A majority of the configured members elects and renews, not half of them.
    Majority,
    /// A term is stored before anything is said in it.
    TermIsStored,
    /// A vote is stored before it is given.
    VoteIsStored,
    /// A member votes once a term.
    OneVoteATerm,
    /// A vote counts in the term that it was given in.
    VoteCountsInItsTerm,
    /// Who steps down in a term has still voted in it.
    VoteOutlivesOffice,
    /// Who has acknowledged a heartbeat votes for nobody else for a while.
    Promise,
    /// Who restarts keeps still as long as a promise of its former life may last.
    Quarantine,
    /// That is as long as the longest promise given, whatever this life's settings are.
    QuarantineIsLongest,
    /// A promise is as long as the leader asks for, not as the follower would.
    PromiseIsTheLeaders,
    /// A lease counts from the sending of the heartbeat that was acknowledged.
    LeaseFromSending,
    /// A lease is shorter than the promises that it rests on, by what clocks may be wrong.
    DriftMargin,
    /// A vote is no acknowledgement: it promises nothing.
    VoteIsNoLease,
    /// An acknowledgement counts in the term that it was given in.
    AckCountsInItsTerm,
    /// A heartbeat of an earlier term is not acknowledged.
    NoStaleHeartbeat,
    /// Who hands over has given up its lease first.
    LeaseEndsBeforeHandOver,
    /// A RELEASE frees a member of what it promised in the term of that RELEASE, and of nothing later.
    ReleaseIsForItsTerm,
    /// A leader that steps down keeps its own lease as a promise until it has run out.
    LeaseBindsItsHolder,
    /// Only what has been retired on its machine is handed over.
    RetiredFirst,
    /// A witness never leads.
    WitnessNeverLeads,
    /// Who lost its disk votes in no term that it may have voted in.
    RejoinVotesLater,
    /// Who lost its disk waits until every other member has answered.
    RejoinAsksAll,
    /// Who lost its disk waits out the longest promise of all members, not only its own.
    RejoinWaitsTheLongest,
    /// An answer to HELLO counts for the life that asked, not for a later one.
    AnswerIsForItsLife,
    /// A round whose timer has fired never counts again, not even the one with which a lease lapsed.
    LapsedRoundIsOver,
    /// A leader never shortens the vote lease that it asks for within a term.
    VoteLeaseNeverShrinks,
    /// The longest vote lease that is stored falls only when its whole time has passed without one that long.
    LongestFallsLate,
    /// A disk is old if the member was heard in a later term than the disk held when it started.
    OldDiskByItsStart,
    /// No safety: a leader whose lease has lapsed asks on in the same term.
    LapsedAsksOn,
    /// No safety: an office is handed to nobody of whom it is known that it reaches no majority.
    HeirReachesMajority,
    /// No safety: who was elected and is not heard says "higher" to nobody.
    UnheardIsNobodysBetter,
    /// No safety: an heir that is not elected holds that against itself.
    FailedHeirIsBlamed,
    /// No safety: penalties double as long as no tenure has been served in between.
    PenaltiesGrow,
    /// No safety: who is refused by those who have a leader asks more rarely.
    RefusedAsksRarely,
    /// No safety: who asks for the office in vain asks more rarely.
    ClaimsRarely,
    /// Who wants to lead waits for its turn and asks everybody first; who comes up says HELLO. **No safety rests on
    /// this one**: without it there are more runs of fewer messages, and all of them must be as safe. See
    /// `quorum/bold.rs`.
    Courtesy,
}

/// Which rules stand. All of them, unless a check takes one away.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rules {
    /// A bit for each rule that does not stand.
    without: u64,
    /// The last term that anybody opens. Only explorers know one: with it there is an end to what can happen.
    pub(super) last_term: Epoch,
}

impl Default for Rules {
    fn default() -> Self {
        Self { without: 0, last_term: Epoch(u64::MAX) }
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
    pub fn until(self, last_term: Epoch) -> Self {
        Self { last_term, ..self }
    }

    /// Whether `rule` stands.
    #[inline]
    pub fn keeps(self, rule: Rule) -> bool {
        self.without & 1 << rule as u64 == 0
    }

    /// How many of `members` are a majority.
    pub(super) fn majority(self, members: usize) -> usize {
        if self.keeps(Rule::Majority) { members / 2 + 1 } else { (members / 2).max(1) }
    }
}
