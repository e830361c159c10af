//! Who would lead best, as a member sees it.
//!
//! Every member says of itself how good it is ([`Merit`]), in what it sends anyway: attributes change while members
//! run, and a drained member stands back. What others know of it is added to that: whom the operator prefers, and who
//! has lost its office lately without wanting to. **No rule of safety reads any of this**: it decides who stands first
//! and whom a leader lets take over, never whose vote counts.
//!
//! - **Preference**: `prefer n3 for 2h` puts a member before all others. The leader holds it and tells the others with
//!   every heartbeat how much of it is left: it takes off a heartbeat's length at every heartbeat, so that it needs no
//!   clock, and lasts at least as long as asked. Preferences are ordered by the term and a number within the term, so
//!   that a later one wins wherever it was given. A change is told at once, and to an heir again, so that what was taken
//!   back does not come back with the next leader. Without a leader it stands still.
//! - **Flap penalty**: a member that saw a leader lose its office involuntarily (its vote lease ran out, and there was a
//!   later term) puts that leader behind those that it has nothing against, for a while. So does the leader itself, as long
//!   as it runs, and it says so, so that others agree. The worse of the two counts. A leader that goes on in the same term
//!   after a gap has lost nothing. A penalty lowers the rank and forbids nothing, but weighs more than a preference: an
//!   operator who insists can have it handed over. A restart forgets what a member held against itself; the others tell it when
//!   it comes up, as far as they know by then.
//! - **Heirs that fail**: who was handed an office and never led has lost it too. Nobody followed it, so it says it of
//!   itself when another leads. (Who lost an ordinary election is not blamed: it may not have had the votes.)
//! - **Losses in a row**: each penalty is twice as long as the one before, up to 64-fold, as long as the member has not
//!   led for a whole tenure in between; even if it was forgiven meanwhile. So one that can win but cannot lead, because
//!   its heartbeats alone get lost, is given the office ever more rarely.
//! - **Drain**: durable at its member, which says that it is not eligible, until it is undone or its time is over.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::members::{Epoch, NodeId};
use crate::protocol::varint_len;
use crate::time::Span;

use super::message::span_len;

/// How good a member is, as it says itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(from = "WireMerit", into = "WireMerit")]
pub struct Merit {
    /// Whether it would lead at all.
    pub eligible: bool,
    /// Its attribute now.
    pub attr: i64,
    /// How often it has lost its office involuntarily, as far as that counts against it.
    pub losses: u8,
}

/// A merit as it is sent. Version 1 had one more field, which nobody needs any more.
#[derive(Serialize, Deserialize)]
struct WireMerit {
    eligible: bool,
    attr: i64,
    losses: u8,
    reserved: bool,
}

impl From<WireMerit> for Merit {
    fn from(WireMerit { eligible, attr, losses, .. }: WireMerit) -> Self {
        Self { eligible, attr, losses }
    }
}

impl From<Merit> for WireMerit {
    fn from(Merit { eligible, attr, losses }: Merit) -> Self {
        Self { eligible, attr, losses, reserved: false }
    }
}

impl Merit {
    pub(super) fn encoded_len(self) -> usize {
        let zigzag = ((self.attr << 1) ^ (self.attr >> 63)) as u64;
        3 + varint_len(zigzag)
    }
}

impl fmt::Display for Merit {
    /// The attribute and what is against it, unless it would not lead anyway.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.eligible {
            return f.write_str(" ineligible");
        }
        write!(f, " attr={}", self.attr)?;
        if self.losses > 0 {
            write!(f, " losses={}", self.losses)?;
        }
        Ok(())
    }
}

/// Whom the operator prefers, as the leader says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Preference {
    /// In which term it was given, and as the how manyth: later ones win.
    pub given: (Epoch, u32),
    /// Who is preferred.
    pub member: NodeId,
    /// How much longer.
    pub left: Span,
}

impl Preference {
    pub(super) fn encoded_len(self) -> usize {
        let (term, number) = self.given;
        let given = varint_len(term.0) + varint_len(u64::from(number));
        given + varint_len(u64::from(self.member.0)) + span_len(self.left)
    }
}

/// How good a member is in the eyes of another: the greater, the better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Precedence {
    losses: Reverse<u8>,
    preferred: bool,
    attr: i64,
    id: NodeId,
}

/// How often a follower tells a leader that is new to it of a later preference than the leader's.
const RETELLINGS: u8 = 3;

/// What a member knows of everybody's standing, its own included. Only what differs from the configuration is kept.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Standings {
    merits: BTreeMap<NodeId, Merit>,
    losses: BTreeMap<NodeId, Losses>,
    preference: Option<Preference>,
    /// The latest preference that is known to be over: taken back, or run out.
    over: Option<(Epoch, u32)>,
    /// The number of the last preference that was given here.
    number: u32,
    /// How many more heartbeats of a leader that this member has just begun to follow it answers with a preference that is
    /// later than the leader's.
    retellings: u8,
    /// The leader whose vote lease ran out here. That counts against it as a loss does; it is one as soon as there is a
    /// later term, and was only a gap if it leads on in the same.
    suspect: Option<NodeId>,
}

/// How often a member has lost its office involuntarily.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Losses {
    /// And has not been forgiven.
    held: u8,
    /// And has not led for a whole tenure since, forgiven or not.
    in_a_row: u8,
}

impl Standings {
    /// How good `id` is, as far as it has said.
    pub(super) fn merit(&self, config: &Config, id: NodeId) -> Merit {
        self.merits.get(&id).copied().unwrap_or_else(|| configured(config, id))
    }

    /// `id` says how good it is. Says whether that is news.
    pub(super) fn learn(&mut self, config: &Config, id: NodeId, merit: Merit) -> bool {
        // Whatever it says: a witness is one by configuration, and there is a limit to what counts.
        let eligible = merit.eligible && may_lead(config, id);
        let merit = Merit { eligible, losses: merit.losses.min(MOST_LOSSES), ..merit };
        let news = self.merit(config, id) != merit;
        if merit == configured(config, id) {
            self.merits.remove(&id);
        } else {
            self.merits.insert(id, merit);
        }
        news
    }

    /// How good `id` is in the eyes of this member; nothing if it would not lead.
    pub(super) fn precedence(&self, config: &Config, id: NodeId) -> Option<Precedence> {
        let merit = self.merit(config, id);
        merit.eligible.then(|| Precedence {
            losses: Reverse(self.losses(config, id)),
            preferred: self.preferred() == Some(id),
            attr: merit.attr,
            id,
        })
    }

    /// How often `id` has lost its office, as far as that counts against it: here, or by its own word.
    pub(super) fn losses(&self, config: &Config, id: NodeId) -> u8 {
        let here = self.held(id) + u8::from(self.suspect == Some(id));
        here.min(MOST_LOSSES).max(self.merit(config, id).losses)
    }

    /// The vote lease of `leader` has run out here.
    pub(super) fn suspect(&mut self, leader: NodeId) {
        self.suspect = Some(leader);
    }

    /// What was suspected is decided, one way or the other.
    pub(super) fn take_suspect(&mut self) -> Option<NodeId> {
        self.suspect.take()
    }

    /// How often `id` has lost its office, as far as this member holds that against it.
    pub(super) fn held(&self, id: NodeId) -> u8 {
        self.losses.get(&id).map_or(0, |losses| losses.held)
    }

    /// Whether `one` is better than `other`.
    pub(super) fn outranks(&self, config: &Config, one: NodeId, other: NodeId) -> bool {
        self.precedence(config, one) > self.precedence(config, other)
    }

    /// Whether `one` is so much better than `other` that it should lead in its place: by the margin, where nothing but
    /// their attributes and ids tells them apart.
    pub(super) fn surpasses(&self, config: &Config, one: NodeId, other: NodeId) -> bool {
        let (one, other) = (self.precedence(config, one), self.precedence(config, other));
        if let (Some(one), Some(other), margin @ 1..) = (one, other, config.quorum.margin)
            && (one.losses, one.preferred) == (other.losses, other.preferred)
        {
            return i128::from(one.attr) - i128::from(other.attr) >= i128::from(margin);
        }
        one > other
    }

    /// Those that are better than `id`.
    pub(super) fn above<'a>(
        &'a self,
        config: &'a Config,
        id: NodeId,
    ) -> impl Iterator<Item = NodeId> + 'a {
        config.members.others(id).filter(move |&other| self.outranks(config, other, id))
    }

    /// Whom the operator prefers.
    pub(super) fn preferred(&self) -> Option<NodeId> {
        self.preference.map(|preference| preference.member)
    }

    /// The operator prefers `member` for so long; nobody any more, if for no time. At the leader of `term`.
    pub(super) fn prefer(&mut self, term: Epoch, member: NodeId, left: Span) {
        let known = self.preference.map_or(0, |preference| preference.given.1);
        self.number = self.number.max(known).wrapping_add(1);
        self.replace(Some(Preference { given: (term, self.number), member, left }));
    }

    /// What a leader says of whom the operator prefers. A leader that this member has just begun to follow (`news`) may
    /// not know of a later preference that this member knows, and is told: returns what to tell. Messages get lost, so
    /// that is repeated a few times. After that the leader's word counts: it knows that the preference is over.
    pub(super) fn heed(&mut self, said: Option<Preference>, news: bool) -> Option<Preference> {
        let known = self.preference;
        let is_later = known.map(|known| known.given) > said.map(|said| said.given);
        if news {
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

    /// A follower tells its leader of a preference. It counts if it is later than what is known, and is not over.
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

    /// A heartbeat's length has gone by at the leader.
    pub(super) fn spend(&mut self, heartbeat: Span) {
        let Some(preference) = &mut self.preference else { return };
        let left = preference.left.as_nanos().saturating_sub(heartbeat.as_nanos());
        preference.left = Span::from_nanos(left);
        let preference = self.preference;
        self.replace(preference);
    }

    pub(super) fn preference(&self) -> Option<Preference> {
        self.preference
    }

    /// `id` lost its office and did not want to. Says as the how manyth loss that counts.
    pub(super) fn blame(&mut self, id: NodeId) -> u8 {
        let losses = self.losses.entry(id).or_default();
        losses.held = (losses.held + 1).min(MOST_LOSSES);
        losses.in_a_row = (losses.in_a_row + 1).min(MOST_LOSSES);
        losses.held.max(losses.in_a_row)
    }

    /// Holds at least so many losses against `id`. Says whether that is more than before.
    pub(super) fn hold(&mut self, id: NodeId, losses: u8) -> bool {
        let losses = losses.min(MOST_LOSSES);
        let more = losses > self.held(id);
        if more {
            self.losses.entry(id).or_default().held = losses;
        }
        more
    }

    /// A while has gone by. Says how often is left.
    pub(super) fn forgive(&mut self, id: NodeId) -> u8 {
        self.amend(id, |losses| losses.held = losses.held.saturating_sub(1))
    }

    /// `id` has led for a whole tenure.
    pub(super) fn redeem(&mut self, id: NodeId) {
        self.amend(id, |losses| losses.in_a_row = 0);
    }

    /// Changes what is known of the losses of `id`, if any are. Says how often counts against it still.
    fn amend(&mut self, id: NodeId, change: impl FnOnce(&mut Losses)) -> u8 {
        let Some(losses) = self.losses.get_mut(&id) else { return 0 };
        change(losses);
        let held = losses.held;
        if *losses == Losses::default() {
            self.losses.remove(&id);
        }
        held
    }
}

/// More losses than this count no more than this many: sixty-four times the first penalty.
const MOST_LOSSES: u8 = 7;

/// How long the `losses`-th loss counts.
pub(super) fn penalty(config: &Config, losses: u8) -> Span {
    config.quorum.forgiveness * (1 << (losses.clamp(1, MOST_LOSSES) - 1))
}

fn may_lead(config: &Config, id: NodeId) -> bool {
    !config.quorum.witnesses.contains(id)
}

fn configured(config: &Config, id: NodeId) -> Merit {
    Merit {
        eligible: may_lead(config, id) && !config.quorum.reluctant.contains(id),
        attr: config.members.key(id).attr,
        losses: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is forgiven before the next; only the tenure in between ends the row.
    #[test]
    fn losses_in_a_row_count_ever_longer_until_a_tenure_is_served() {
        let (mut standings, id) = (Standings::default(), NodeId(3));
        let lose = |standings: &mut Standings| {
            let losses = standings.blame(id);
            assert_eq!((standings.held(id), standings.forgive(id)), (1, 0));
            losses
        };
        assert_eq!([(); 9].map(|()| lose(&mut standings)), [1, 2, 3, 4, 5, 6, 7, 7, 7]);
        standings.redeem(id);
        assert_eq!(standings, Standings::default());
        assert_eq!(lose(&mut standings), 1);
    }

    /// One that was taken back in between does not count as the newer of the two.
    #[test]
    fn a_preference_that_comes_late_does_not_win() {
        let (mut leader, mut follower) = (Standings::default(), Standings::default());
        let mut give = |member, left| {
            leader.prefer(Epoch(5), NodeId(member), Span::from_millis(left));
            leader.preference()
        };
        let [first, _, second] = [give(1, 10), give(1, 0), give(2, 10)];
        assert_eq!(follower.heed(second, true), None);
        assert_eq!(follower.heed(first, true), second, "a new leader is told of the later one");
        for _ in 1..RETELLINGS {
            assert_eq!(follower.heed(None, false), second, "the message may have been lost");
        }
        assert_eq!(follower.preferred(), Some(NodeId(2)));
        assert_eq!(follower.heed(None, false), None, "it has been told, and knows better");
        assert_eq!(follower.preferred(), None);
    }

    /// A new leader learns of a preference from a follower, but not of one that it knows to be over.
    #[test]
    fn a_preference_that_is_over_does_not_come_back() {
        let (mut leader, mut follower) = (Standings::default(), Standings::default());
        leader.prefer(Epoch(5), NodeId(1), Span::from_millis(10));
        follower.heed(leader.preference(), false);
        let told = follower.preference().unwrap();
        let mut next = Standings::default();
        next.learn_preference(told);
        assert_eq!(next.preferred(), Some(NodeId(1)));
        leader.prefer(Epoch(5), NodeId(1), Span::ZERO);
        leader.learn_preference(told);
        assert_eq!(leader.preferred(), None, "it was taken back");
        next.spend(Span::from_millis(10));
        next.learn_preference(told);
        assert_eq!(next.preferred(), None, "it has run out");
    }

    /// The margin counts between attributes; a penalty needs none, and without a margin an id is enough.
    #[test]
    fn who_is_to_take_over_is_better_by_the_margin() {
        let members = crate::members::Members::range(1, 3).unwrap();
        let attrs = [(NodeId(1), 100), (NodeId(2), 109), (NodeId(3), 110)];
        let timing = crate::config::Timing::for_transmission(Span::from_millis(1));
        let members = members.with_attrs(attrs).unwrap();
        let mut config = Config::new(members, timing, crate::config::Mode::Hardened);
        config.quorum.margin = 10;
        let mut standings = Standings::default();
        let surpasses = |standings: &Standings, config: &Config, one, other| {
            standings.surpasses(config, NodeId(one), NodeId(other))
        };
        assert!(surpasses(&standings, &config, 3, 1));
        assert!(!surpasses(&standings, &config, 2, 1), "nine are not ten");
        standings.suspect(NodeId(3));
        assert!(surpasses(&standings, &config, 2, 3), "a failure counts whatever the margin is");
        config.quorum.margin = 0;
        assert!(surpasses(&standings, &config, 2, 1));
    }
}
