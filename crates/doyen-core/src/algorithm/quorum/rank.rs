//! Ranks: which member should lead, as a member sees it.
//!
//! Every member reports its own rank ([`Rank`]) in the messages that it sends anyway: attributes change while members run,
//! and a drained member is not eligible. The others add what they know of it: the operator's preference, and recent failures
//! as leader. **No safety rule reads any of this**: ranks decide which member campaigns first and which member may take over,
//! never which votes count.
//!
//! - **Preference**: `prefer n3 for 2h` puts a member before all others. The leader keeps it and tells the others in every
//!   heartbeat how much of it is left: it subtracts the heartbeat interval at every heartbeat, so it needs no clock, and the
//!   preference lasts at least as long as asked. Preferences are ordered by the term and a number within the term, so a later
//!   one wins wherever it was given. A change is sent at once, and to a successor again, so that a preference that was
//!   withdrawn does not return with the next leader. Without a leader no time is subtracted.
//! - **Penalty**: a member that failed as leader ranks behind members with fewer failures, for a while (`penalty.rs`).
//! - **Drain**: durable at the drained member, which reports that it is not eligible until the drain is undone or its time is
//!   over.

use std::cmp::Reverse;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::map::SortedMap;
use crate::members::{NodeId, Term};
use crate::time::Span;

use super::penalty::{MAX_FAILURES, Penalty};

/// The rank of a member, as it reports it itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Rank {
    /// Whether it would lead at all.
    pub eligible: bool,
    /// Its current attribute.
    pub attr: i64,
    /// Its recent failures as leader, as it knows them itself.
    pub failures: u8,
    /// The term of the last of them.
    pub failed_in: Term,
}

impl fmt::Display for Rank {
    /// ` attr=3 failures=1`, or ` ineligible`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.eligible {
            return f.write_str(" ineligible");
        }
        write!(f, " attr={}", self.attr)?;
        if self.failures > 0 {
            write!(f, " failures={}", self.failures)?;
        }
        Ok(())
    }
}

/// The operator's preference for a member, as the leader sends it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Preference {
    /// The term in which it was given, and its number within the term: later ones win.
    pub given: (Term, u32),
    /// The preferred member.
    pub member: NodeId,
    /// The time that is left.
    pub left: Span,
}

/// The rank of a member as another member sees it: the greater, the higher.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct RankKey {
    failures: Reverse<u8>,
    preferred: bool,
    attr: i64,
    id: NodeId,
}

/// How often a follower tells a leader that is new to it of a later preference than the leader's.
const RETELLINGS: u8 = 3;

/// What a member knows of all ranks, its own included. Only what differs from the configuration is kept.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Ranking {
    ranks: SortedMap<NodeId, Rank>,
    penalties: SortedMap<NodeId, Penalty>,
    preference: Option<Preference>,
    /// The latest preference that is known to be over: withdrawn or expired.
    over: Option<(Term, u32)>,
    /// The number of the last preference that was given here.
    number: u32,
    /// How many more heartbeats of a leader that this member has just begun to follow it answers with a preference that is
    /// later than the leader's.
    retellings: u8,
    /// The leader whose vote lease ran out here, and its term. It ranks as if it had failed. There is a failure as soon as
    /// there is a later term, and there was only a gap if it resumes in the same term.
    suspect: Option<(NodeId, Term)>,
}

impl Ranking {
    /// The rank of `id`, as it last reported it.
    pub(super) fn rank(&self, config: &Config, id: NodeId) -> Rank {
        self.ranks.get(&id).copied().unwrap_or_else(|| configured(config, id))
    }

    /// `id` reports its rank.
    pub(super) fn learn(&mut self, config: &Config, id: NodeId, rank: Rank) {
        // Its report does not change that: a witness is one by configuration. Failures are counted apart.
        let eligible = rank.eligible && !config.quorum.witnesses.contains(id);
        let rank = Rank { eligible, attr: rank.attr, ..configured(config, id) };
        if rank == configured(config, id) {
            self.ranks.remove(&id);
        } else {
            self.ranks.insert(id, rank);
        }
    }

    /// The rank of `id` as this member sees it; nothing if it is not eligible.
    pub(super) fn key(&self, config: &Config, id: NodeId) -> Option<RankKey> {
        let rank = self.rank(config, id);
        rank.eligible.then(|| RankKey {
            failures: Reverse(self.failures(id)),
            preferred: self.preferred() == Some(id),
            attr: rank.attr,
            id,
        })
    }

    /// The recent failures of `id`, and one more if it is suspected.
    pub(super) fn failures(&self, id: NodeId) -> u8 {
        let suspected = self.suspect.is_some_and(|(suspect, _)| suspect == id);
        (self.penalty(id).failures + u8::from(suspected)).min(MAX_FAILURES)
    }

    /// The vote lease of `leader` ran out here in `term`, or it says that it failed.
    pub(super) fn suspect(&mut self, leader: NodeId, term: Term) {
        self.suspect = Some((leader, term));
    }

    /// Whether the suspect failed is decided, one way or the other.
    pub(super) fn take_suspect(&mut self) -> Option<(NodeId, Term)> {
        self.suspect.take()
    }

    /// The penalty of `id`.
    pub(super) fn penalty(&self, id: NodeId) -> Penalty {
        self.penalties.get(&id).copied().unwrap_or_default()
    }

    /// All penalties, for a heartbeat. A failure that has decayed and is part of no streak is not told.
    pub(super) fn penalties(&self) -> Vec<(NodeId, Penalty)> {
        let counts = |penalty: &Penalty| penalty.failures > 0 || penalty.streak > 0;
        let penalties = self.penalties.iter().map(|(&id, &penalty)| (id, penalty));
        penalties.filter(|(_, penalty)| counts(penalty)).collect()
    }

    /// Whether `one` has a higher rank than `other`.
    pub(super) fn outranks(&self, config: &Config, one: NodeId, other: NodeId) -> bool {
        self.key(config, one) > self.key(config, other)
    }

    /// Whether `one` outranks `other` by enough to take over from it: by the margin, where only attributes and ids differ.
    pub(super) fn surpasses(&self, config: &Config, one: NodeId, other: NodeId) -> bool {
        let (one, other) = (self.key(config, one), self.key(config, other));
        if let (Some(one), Some(other), margin @ 1..) = (one, other, config.quorum.margin)
            && (one.failures, one.preferred) == (other.failures, other.preferred)
        {
            return i128::from(one.attr) - i128::from(other.attr) >= i128::from(margin);
        }
        one > other
    }

    /// The members that outrank `id`.
    pub(super) fn above<'a>(
        &'a self,
        config: &'a Config,
        id: NodeId,
    ) -> impl Iterator<Item = NodeId> + 'a {
        config.members.others(id).filter(move |&other| self.outranks(config, other, id))
    }

    pub(super) fn preference(&self) -> Option<Preference> {
        self.preference
    }

    pub(super) fn preferred(&self) -> Option<NodeId> {
        self.preference.map(|preference| preference.member)
    }

    /// The operator gives a preference to the leader of `term`; without time it withdraws the last one.
    pub(super) fn prefer(&mut self, term: Term, member: NodeId, left: Span) {
        let known = self.preference.map_or(0, |preference| preference.given.1);
        self.number = self.number.max(known).wrapping_add(1);
        self.replace(Some(Preference { given: (term, self.number), member, left }));
    }

    /// A leader sends the preference that it knows. A leader that this member has just begun to follow (`new`) may not know
    /// of a later one that this member knows: it is returned, to be sent to the leader. Messages get lost, so that is
    /// repeated a few times. After that the leader's word counts: it knows that the preference is over.
    pub(super) fn hear(&mut self, said: Option<Preference>, new: bool) -> Option<Preference> {
        let known = self.preference;
        let is_later = known.map(|known| known.given) > said.map(|said| said.given);
        if new {
            self.retellings = if is_later { RETELLINGS } else { 0 };
        }
        if is_later && self.retellings > 0 {
            self.retellings -= 1;
            return known;
        }
        self.retellings = 0;
        self.replace(said);
        None
    }

    /// A follower tells its leader of a preference. It counts if it is later than the known one and not over.
    pub(super) fn learn_preference(&mut self, told: Preference) {
        let known = self.preference.map(|known| known.given);
        if Some(told.given) > known.max(self.over) {
            self.number = self.number.max(told.given.1);
            self.replace(Some(told));
        }
    }

    fn replace(&mut self, preference: Option<Preference>) {
        let lasting = preference.filter(|preference| preference.left > Span::ZERO);
        if lasting.is_none() {
            let over = preference.or(self.preference).map(|preference| preference.given);
            self.over = self.over.max(over);
        }
        self.preference = lasting;
    }

    /// One heartbeat interval of the preference and of the penalties has passed at the leader.
    pub(super) fn spend(&mut self, heartbeat: Span) {
        self.spend_penalties(heartbeat);
        let Some(mut preference) = self.preference else { return };
        let left = preference.left.as_nanos().saturating_sub(heartbeat.as_nanos());
        preference.left = Span::from_nanos(left);
        self.replace(Some(preference));
    }

    /// `id` has led for a whole tenure.
    pub(super) fn end_streak(&mut self, id: NodeId) {
        self.set_penalty(id, Penalty { streak: 0, ..self.penalty(id) });
    }

    pub(super) fn set_penalty(&mut self, id: NodeId, penalty: Penalty) {
        match penalty == Penalty::default() {
            true => self.penalties.remove(&id),
            false => self.penalties.insert(id, penalty),
        };
    }

    /// Some of the time of every penalty has passed.
    pub(super) fn spend_penalties(&mut self, time: Span) {
        self.penalties.values_mut().for_each(|penalty| penalty.spend(time));
    }
}

fn configured(config: &Config, id: NodeId) -> Rank {
    let quorum = &config.quorum;
    let eligible = !quorum.witnesses.contains(id) && !quorum.reluctant.contains(id);
    Rank { eligible, attr: config.members.key(id).attr, failures: 0, failed_in: Term::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The margin counts between attributes; a penalty needs none, and without a margin an id is enough.
    #[test]
    fn a_takeover_needs_a_higher_rank_by_the_margin() {
        let members = crate::members::Members::range(1, 3).unwrap();
        let attrs = [(NodeId(1), 100), (NodeId(2), 109), (NodeId(3), 110)];
        let timing = crate::config::Timing::for_transmission(Span::from_millis(1));
        let members = members.with_attrs(attrs).unwrap();
        let mut config = Config::new(members, timing, crate::config::Mode::Hardened);
        config.quorum.margin = 10;
        let mut ranking = Ranking::default();
        let surpasses = |ranking: &Ranking, config: &Config, one, other| {
            ranking.surpasses(config, NodeId(one), NodeId(other))
        };
        assert!(surpasses(&ranking, &config, 3, 1));
        assert!(!surpasses(&ranking, &config, 2, 1), "nine are not ten");
        ranking.suspect(NodeId(3), Term(1));
        assert!(surpasses(&ranking, &config, 2, 3), "a failure counts whatever the margin is");
        config.quorum.margin = 0;
        assert!(surpasses(&ranking, &config, 2, 1));
    }
}
