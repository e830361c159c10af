//! Penalties: a member that failed as leader ranks behind members with fewer failures, for a while.
//!
//! A penalty lowers the rank and forbids nothing, but it outweighs a preference; an operator who insists can still transfer
//! leadership to the member. It decays: one failure after the other no longer counts.
//!
//! **What is a failure.** In one term a member fails at most once, so the term of a failure is its identity: however many
//! members notice it, it counts once.
//!
//! - A member whose vote lease ran out suspects its leader, and ranks it as if it had failed. There is a failure as soon as
//!   there is a later term. If the leader resumes in the same term, there was only a gap.
//! - A leader that says goodbye because it crashed or because what it runs keeps failing has failed. So has one with three
//!   gaps in one tenure, and one that was elected and that no majority confirmed.
//! - A member that was chosen as successor and never led has failed too. No member followed it, so it reports the failure
//!   itself when another member leads. (A member that lost an ordinary election is not penalized: it may not have had the
//!   votes.)
//! - **A leader that lost its lease** because no majority renewed it cannot know why: perhaps its own messages got lost,
//!   perhaps its followers were stopped. Who leads next shows it. If another member is elected, a majority was up without
//!   this leader, and it has failed. If it is elected again itself, then because no majority was there before it was: its
//!   followers, or the network, had failed and not the leader. So it does not judge itself when it steps down, but when
//!   it follows another leader. That the others may not elect another too hastily, it tells those that it still reaches that
//!   it steps down (RELEASE): they neither suspect it nor leave it out when they let higher-ranked members go first.
//!   Followers that were restarted remember nothing of it, and suspect it not.
//!
//! **The leader counts.** Its heartbeats carry all penalties, each with the time that is left, and every follower takes them
//! over in place of its own: all members rank and show the same. What a follower knows of its own failures and the leader
//! does not is in the rank that it reports, with the term of the failure; the leader adds it if that is later than the last
//! failure that it knows. What other members have counted and the leader has not is dropped: a member that was only cut off
//! from a leader that kept leading has seen no failure. A restarted member is told its penalty when it is welcomed.
//!
//! **Time.** A timer ends each penalty. It is armed again with every heartbeat, for the time that the leader says is left.
//! The leader subtracts the heartbeat interval from that at every heartbeat, so it needs no clock. Without a leader every
//! member subtracts the time between two of its probes, and its timers continue. A new leader goes on with the time that it
//! has then, and arms its timers for that: what it shows is what it tells.
//!
//! **Streaks.** Each penalty lasts twice as long as the one before, up to 64 times as long, until the member has led for a
//! whole tenure; even if the earlier penalty has decayed. So a member that can win but cannot lead, because its heartbeats
//! alone get lost, becomes leader more and more rarely.

use serde::{Deserialize, Serialize};

use crate::change::ElectionReason;
use crate::config::Config;
use crate::config::rules::Rule;
use crate::members::{NodeId, Term};
use crate::time::Span;

use super::message::Heartbeat;
use super::rank::Rank;
use super::{Cx, Quorum, Timer};

/// A member's failures as leader.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Penalty {
    /// The failures that have not decayed.
    pub failures: u8,
    /// The failures, decayed or not, since it last led for a whole tenure.
    pub streak: u8,
    /// The term of the last failure.
    pub failed_in: Term,
    /// How much longer the latest failure that has not decayed counts.
    pub left: Span,
    /// How long ago the last failure was counted.
    pub ago: Span,
}

/// More failures count no more than this many: 64 times the first penalty.
pub(super) const MAX_FAILURES: u8 = 7;

/// How long the penalty of the latest of `failures` lasts.
fn penalty_length(config: &Config, failures: u8) -> Span {
    config.quorum.penalty_decay * (1 << (failures.clamp(1, MAX_FAILURES) - 1))
}

impl Penalty {
    /// One failure more, of which at least `reported` count.
    fn add(&mut self, config: &Config, term: Term, reported: u8) {
        self.failures = (self.failures + 1).max(reported).min(MAX_FAILURES);
        self.streak = (self.streak + 1).min(MAX_FAILURES);
        self.failed_in = term;
        self.left = penalty_length(config, self.failures.max(self.streak));
        self.ago = Span::ZERO;
    }

    /// The latest failure no longer counts.
    fn decay(&mut self, config: &Config) {
        self.failures = self.failures.saturating_sub(1);
        self.left = match self.failures {
            0 => Span::ZERO,
            left => penalty_length(config, left),
        };
    }

    /// Some time has passed. The timer ends the penalty, so it is never over before.
    pub(super) fn spend(&mut self, time: Span) {
        if self.left > time {
            self.left = Span::from_nanos(self.left.as_nanos() - time.as_nanos());
        }
        self.ago = self.ago + time;
    }

    /// The same within what can be, whatever another member says.
    fn limited(self, config: &Config) -> Self {
        let (failures, streak) = (self.failures.min(MAX_FAILURES), self.streak.min(MAX_FAILURES));
        let left = match failures {
            0 => Span::ZERO,
            _ => self.left.min(penalty_length(config, MAX_FAILURES)),
        };
        Self { failures, streak, left, ..self }
    }
}

impl Quorum {
    /// The vote lease of `leader` ran out here in `term`, or it says that it failed.
    pub(super) fn suspect(&mut self, leader: NodeId, term: Term, cx: &mut Cx<'_>) {
        if cx.config.quorum.penalty_decay > Span::ZERO {
            self.ranking.suspect(leader, term);
        }
    }

    /// `id` failed as leader in `term`: its rank is lower for a while.
    pub(super) fn penalize(&mut self, id: NodeId, term: Term, cx: &mut Cx<'_>) {
        self.add_failure(id, (term, 0), cx);
    }

    /// `from` reports its rank, and with it its last failure.
    pub(super) fn learn_rank(&mut self, from: NodeId, rank: Rank, cx: &mut Cx<'_>) {
        self.ranking.learn(cx.config, from, rank);
        if rank.failures > 0 {
            self.add_failure(from, (rank.failed_in, rank.failures), cx);
        }
    }

    /// Counts a failure of `id` in `term`, unless that is counted already.
    fn add_failure(&mut self, id: NodeId, (term, reported): (Term, u8), cx: &mut Cx<'_>) {
        let mut penalty = self.ranking.penalty(id);
        if cx.config.quorum.penalty_decay == Span::ZERO || term <= penalty.failed_in {
            return;
        }
        penalty.add(cx.config, term, reported);
        if !cx.config.quorum.keeps(Rule::PenaltiesGrow) {
            penalty.streak = 0;
        }
        self.set_penalty(id, penalty, cx);
    }

    /// Another member knows of this many recent failures of this member. They count here too.
    pub(super) fn raise_penalty(&mut self, failures: u8, cx: &mut Cx<'_>) {
        let mut penalty = self.ranking.penalty(self.id);
        if cx.config.quorum.penalty_decay > Span::ZERO && failures > penalty.failures {
            penalty.failures = failures.min(MAX_FAILURES);
            penalty.left = penalty_length(cx.config, failures);
            self.set_penalty(self.id, penalty, cx);
        }
    }

    /// This member counts from now on, as the leader.
    pub(super) fn begin_to_count(&mut self, cx: &mut Cx<'_>) {
        for (id, penalty) in self.ranking.penalties() {
            self.set_penalty(id, penalty, cx);
        }
    }

    /// One failure of `id` no longer counts.
    pub(super) fn decay_penalty(&mut self, id: NodeId, cx: &mut Cx<'_>) {
        let mut penalty = self.ranking.penalty(id);
        penalty.decay(cx.config);
        self.set_penalty(id, penalty, cx);
        self.consider_takeover(cx);
    }

    /// The leader has counted these failures.
    pub(super) fn take_over_penalties(&mut self, counted: &[(NodeId, Penalty)], cx: &mut Cx<'_>) {
        if cx.config.quorum.penalty_decay == Span::ZERO {
            return;
        }
        for id in cx.config.members.iter() {
            let of_member = counted.iter().find(|(member, _)| *member == id);
            let mut penalty =
                of_member.map_or_else(Penalty::default, |(_, penalty)| penalty.limited(cx.config));
            let known = self.ranking.penalty(id);
            if id == self.id && known.failures > 0 && known.failed_in > penalty.failed_in {
                continue; // the leader does not know of it yet: every acknowledgement reports it until it does
            }
            // What has decayed is no longer listed, and must not count again.
            penalty.failed_in = penalty.failed_in.max(known.failed_in);
            if penalty != known {
                self.set_penalty(id, penalty, cx);
            }
        }
    }

    /// The leader `from` runs an earlier release and tells no penalties: this member counts by itself. `lost`: the
    /// leader that it followed until now.
    pub(super) fn count_penalties(
        &mut self,
        from: NodeId,
        heartbeat: &Heartbeat,
        lost: Option<NodeId>,
        cx: &mut Cx<'_>,
    ) {
        let interval = cx.config.quorum.pace_of(from).heartbeat;
        self.ranking.spend_penalties(interval);
        if interval * heartbeat.round.0 > cx.config.quorum.tenure {
            self.ranking.end_streak(from);
        }
        if let ElectionReason::Transferred { by, reason } = heartbeat.reason
            && reason.is_failure()
            && lost == Some(by)
        {
            let term = Term(self.ballot.term().0.saturating_sub(1));
            self.penalize(by, term, cx);
        }
    }

    fn set_penalty(&mut self, id: NodeId, penalty: Penalty, cx: &mut Cx<'_>) {
        let had_one = self.ranking.penalty(id).failures > 0;
        self.ranking.set_penalty(id, penalty);
        match penalty.failures {
            0 if had_one => cx.cancel_timer(Timer::Penalty(id)),
            0 => {}
            _ => cx.set_timer(Timer::Penalty(id), penalty.left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Mode, Timing};
    use crate::members::Members;

    fn config() -> Config {
        let timing = Timing::for_transmission(Span::from_millis(1));
        let mut config = Config::new(Members::range(1, 3).unwrap(), timing, Mode::Hardened);
        config.quorum.penalty_decay = Span::from_millis(60);
        config
    }

    /// Each penalty decays before the next failure; only a tenure ends the streak.
    #[test]
    fn each_failure_of_a_streak_doubles_the_penalty_until_a_tenure_is_served() {
        let (config, mut penalty) = (config(), Penalty::default());
        let fail = |penalty: &mut Penalty| {
            penalty.add(&config, Term(penalty.failed_in.0 + 1), 0);
            let left = penalty.left.as_nanos() / 60_000_000;
            assert_eq!(penalty.failures, 1);
            penalty.decay(&config);
            assert_eq!((penalty.failures, penalty.left), (0, Span::ZERO));
            left
        };
        assert_eq!([(); 8].map(|()| fail(&mut penalty)), [1, 2, 4, 8, 16, 32, 64, 64]);
        penalty.streak = 0;
        assert_eq!(fail(&mut penalty), 1);
    }

    #[test]
    fn what_another_member_says_is_limited() {
        let config = config();
        let absurd = Penalty {
            failures: 200,
            streak: 200,
            failed_in: Term(u64::MAX),
            left: Span::from_nanos(u64::MAX),
            ago: Span::from_nanos(u64::MAX),
        };
        let mut limited = absurd.limited(&config);
        assert_eq!((limited.failures, limited.streak), (MAX_FAILURES, MAX_FAILURES));
        assert_eq!(limited.left, Span::from_millis(60 * 64));
        limited.spend(Span::from_millis(1));
        assert_eq!(limited.ago, Span::from_nanos(u64::MAX), "it does not wrap");
        let decayed = Penalty { failures: 0, ..absurd }.limited(&config);
        assert_eq!(decayed.left, Span::ZERO, "nothing counts, so nothing is left");
    }
}
