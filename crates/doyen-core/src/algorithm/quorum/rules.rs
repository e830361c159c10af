//! The rules on which safety rests, and those that keep members from disturbing each other, each by name.
//!
//! A check that finds nothing proves little unless it finds something where something is wrong. So a [`Quorum`] asks
//! its [`Rules`] whether a rule stands, and tests take rules away one at a time: every check must notice. They are part of
//! the [settings](super::settings::Settings), where no configuration file can reach them.
//!
//! [`Quorum`]: super::Quorum

use std::fmt;
use std::str::FromStr;

use crate::members::Epoch;

/// Names every rule once: as a variant, in [`Rule::ALL`] and in words.
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
    /// The longest vote lease that is stored falls only when its whole time has passed, in one life, without one that
    /// long: neither with a restart nor with a later term.
    LongestFallsLate,
    /// A disk is old if the member was heard in a later term than the disk held when it started.
    OldDiskByItsStart,
    /// Sessions: a session is met when it has answered a question that was never asked before.
    ProvenSession,
    /// Sessions: a message counts from the session that was met, for the present one.
    MetSessionOnly,
    /// Sessions: an earlier incarnation than one that was met is not met any more.
    IncarnationsRise,
    /// Sessions: the same incarnation is met again only in the same session.
    SameSessionOnly,
    /// Sessions: which incarnation was met, and its session, is stored before anything is said in it.
    SessionIsStored,
    /// Sessions: a member that lost its disk takes over what the others have stored of everybody.
    RejoinTakesOver,
    /// Sessions: a member that lost its disk does nothing until every other member has stored its new incarnation.
    RejoinIsConfirmed,
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
}

impl fmt::Display for Rule {
    /// `vote-is-stored`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        f.pad(&name)
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_meant = |rule: &&Self| rule.to_string() == text;
        Self::ALL.iter().find(is_meant).copied().ok_or_else(|| {
            let names: Vec<String> = Self::ALL.iter().map(Self::to_string).collect();
            format!("unknown rule `{text}`; there are {}", names.join(", "))
        })
    }
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
        assert_eq!(Rule::OneVoteATerm.to_string(), "one-vote-a-term");
    }
}
