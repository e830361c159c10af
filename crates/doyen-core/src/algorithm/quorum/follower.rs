//! The follower: its vote lease, and taking over from a lower-ranked leader.
//!
//! A member that acknowledges a heartbeat gives a vote lease: it votes for no other member for `Λ_F`, the length that the
//! *leader* asks for. The leader's lease rests on these vote leases. The longest vote lease is stored before the
//! acknowledgement is sent, because a restarted member must wait until it is over.
//!
//! A vote lease of a later term replaces an earlier one, even a longer one: once a later term has a leader, no lease of an
//! earlier term is running. For the same reason the first heartbeat that a member accepts after a restart ends its
//! hold-down. Either the heartbeat is of a later term than any vote lease that the member forgot; or it comes from the same
//! leader, which never shortens the vote lease within a term, so that the new vote lease covers the forgotten one.
//!
//! **The longest vote lease falls again.** The stored value falls to what is given, asked for or configured now when its
//! whole time has passed, in one incarnation, without a vote lease that long ([`Timer::LongestVoteLease`]): then none runs.

use crate::change::{LeaderChange, Loss};
use crate::config::Config;
use crate::members::{NodeId, Term};
use crate::protocol::Notice;
use crate::time::Span;

use super::candidate::{LostLeader, Poll};
use super::message::{Body, Heartbeat};
use super::{Cx, Quorum, Role, Timer, back_off, count_up};
use crate::config::quorum::{MAX_VOTE_LEASE, Preemption};
use crate::config::rules::Rule;

/// The data of a follower.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Follower {
    pub(super) leader: Option<NodeId>,
    /// [`Timer::VoteLease`] is armed.
    pub(super) vote_lease: Option<VoteLease>,
    /// It outranks its leader.
    pub(super) takeover: Option<Takeover>,
    /// How often it has asked to take over from this leader.
    pub(super) takeover_attempts: u8,
    /// It has just transferred leadership and does not campaign; [`Timer::Cooldown`] is armed.
    pub(super) cooling_down: bool,
}

/// A promise to vote for no member but the leader of a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct VoteLease {
    pub(super) term: Term,
    /// Counted from the last heartbeat.
    pub(super) length: Span,
}

/// A follower that is about to take over from its leader.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Takeover {
    /// Waits in case its higher rank does not last; [`Timer::Takeover`] is armed.
    Waiting,
    /// Asks all members whether they agree; [`Timer::PreVote`] is armed.
    Asking(Poll),
}

impl Quorum {
    pub(super) fn follower_mut(&mut self) -> Option<&mut Follower> {
        match &mut self.role {
            Role::Follower(follower) => Some(follower),
            _ => None,
        }
    }

    pub(super) fn vote_lease(&self) -> Option<VoteLease> {
        match &self.role {
            Role::Follower(follower) => follower.vote_lease,
            _ => None,
        }
    }

    /// Q8: `from` leads in `term`.
    pub(super) fn on_heartbeat(
        &mut self,
        from: NodeId,
        term: Term,
        heartbeat: &Heartbeat,
        cx: &mut Cx<'_>,
    ) {
        if term < self.ballot.term() && cx.config.quorum.keeps(Rule::NoStaleHeartbeat) {
            cx.rule("Q8a");
            return self.refuse(from, cx);
        }
        // A term has only one leader; and no configuration that is checked at start asks for such a vote lease.
        if self.leads() && term <= self.ballot.term() || heartbeat.vote_lease > MAX_VOTE_LEASE {
            return;
        }
        if self.has_not_answered(from) {
            return self.greet(from, cx);
        }
        cx.rule("Q8");
        let later = term > self.ballot.term();
        let is_new = self.leader() != Some(from) || later;
        let lost = self.search.last_leader;
        let resumes = lost.is_some_and(|lost| (lost.id, lost.term) == (from, term));
        let followed = self.leader().or(lost.map(|lost| lost.id));
        self.step_down(term, from, cx);
        self.stop_campaign(cx);
        if self.lingering_lease.is_some() {
            return; // its own lease still runs, so it must not help another leader to one
        }
        self.ranking.take_suspect();
        match &heartbeat.penalties {
            Some(penalties) => self.take_over_penalties(penalties, cx),
            None => self.count_penalties(from, heartbeat, followed.filter(|_| is_new), cx),
        }
        let search = std::mem::take(&mut self.search);
        if search.successor_of.is_some() && cx.config.quorum.keeps(Rule::FailedSuccessorIsPenalized)
        {
            cx.rule("Q15");
            self.penalize(self.id, term, cx);
        } else if let Some(lost_in) = search.lost_lease {
            cx.rule("Q15");
            self.penalize(self.id, lost_in, cx);
        }
        if later && !cx.config.quorum.keeps(Rule::LongestFallsLate) {
            self.ballot.stored_mut().longest = self.pace(cx.config).vote_lease;
            self.store(cx);
        }
        self.give_vote_lease(from, term, heartbeat.vote_lease, cx);
        self.end_hold_down(cx);
        let (rank, unreachable) = (self.rank(cx.config), self.reachability.unreachable());
        self.send(from, Body::Ack { round: heartbeat.round, rank, unreachable }, cx);
        if is_new {
            cx.inform(Notice::Changed(match resumes {
                true => LeaderChange::RegainedContact { leader: from, term },
                false => LeaderChange::Follows { leader: from, term, reason: heartbeat.reason },
            }));
        }
        self.note_unreachable(cx.config, from, &heartbeat.unreachable);
        self.learn_rank(from, heartbeat.rank, cx);
        let preferred = self.ranking.preferred();
        if let Some(preference) = self.ranking.hear(heartbeat.preference, is_new) {
            self.send(from, Body::Prefer { preference }, cx);
        }
        // Its wait under a lower-ranked leader continues, even if other attributes are measured in the meantime.
        if is_new || self.ranking.preferred() != preferred {
            self.stop_takeover(cx);
        }
        self.consider_takeover(cx);
    }

    fn give_vote_lease(&mut self, leader: NodeId, term: Term, asked: Span, cx: &mut Cx<'_>) {
        let asked = match cx.config.quorum.keeps(Rule::VoteLeaseAsRequested) {
            true => asked,
            false => self.pace(cx.config).vote_lease,
        };
        let current = self.vote_lease().filter(|lease| lease.term == term);
        let length = current.map_or(asked, |lease| lease.length.max(asked));
        if length > self.ballot.stored().longest {
            self.ballot.stored_mut().longest = length;
            self.store(cx);
        }
        let Some(follower) = self.follower_mut() else { return };
        follower.leader = Some(leader);
        if cx.config.quorum.keeps(Rule::VoteLease) {
            follower.vote_lease = Some(VoteLease { term, length });
            cx.set_timer(Timer::VoteLease, length);
        }
        // Armed after the vote lease's own timer: if both are due, the vote lease must end before the longest can fall.
        if length == self.ballot.stored().longest {
            self.watch_longest(cx);
        }
    }

    /// A vote lease as long as the longest may run from now on. When its time has passed without another one, the longest
    /// falls, but never below the configured length.
    pub(super) fn watch_longest(&mut self, cx: &mut Cx<'_>) {
        let longest = self.ballot.stored().longest;
        if longest > self.pace(cx.config).vote_lease {
            cx.set_timer(Timer::LongestVoteLease, longest);
        }
    }

    /// The whole time of the longest vote lease has passed without one that long.
    pub(super) fn on_longest_over(&mut self, cx: &mut Cx<'_>) {
        if self.recovery.is_rejoining() {
            return; // it has nothing yet that it may store
        }
        let given = self.vote_lease().map_or(Span::ZERO, |lease| lease.length);
        self.ballot.stored_mut().longest = given.max(self.pace(cx.config).vote_lease);
        self.store(cx);
        self.watch_longest(cx);
    }

    /// It follows no leader any more and is not bound by a vote lease.
    pub(super) fn stop_following(&mut self, cx: &mut Cx<'_>) {
        if let Some(follower) = self.follower_mut() {
            follower.leader = None;
            if follower.vote_lease.take().is_some() {
                cx.cancel_timer(Timer::VoteLease);
            }
        }
        self.stop_takeover(cx);
    }

    /// Its leader has not renewed the vote lease: it is unreachable.
    pub(super) fn on_vote_lease_over(&mut self, cx: &mut Cx<'_>) {
        cx.rule("Q2");
        let Some(follower) = self.follower_mut() else { return };
        follower.vote_lease = None;
        let leader = follower.leader.take();
        self.stop_takeover(cx);
        if let Some(leader) = leader {
            let term = self.ballot.term();
            cx.inform(Notice::Changed(LeaderChange::LostContact { leader, term }));
            self.search.last_leader = Some(LostLeader { id: leader, term, why: Loss::Unreachable });
            self.on_unreachable(leader, cx);
            self.suspect(leader, term, cx);
        }
        self.await_turn(cx);
    }

    /// Q14: the leader of `term` no longer leads and releases this member from its vote lease.
    pub(super) fn on_release(
        &mut self,
        from: NodeId,
        term: Term,
        (successor, why): (Option<NodeId>, Loss),
        cx: &mut Cx<'_>,
    ) {
        let own = self.ballot.term();
        let applies =
            term == own || term < own && !cx.config.quorum.keeps(Rule::ReleaseIsForItsTerm);
        if self.leader() == Some(from) && applies {
            cx.rule("Q14");
            self.search.last_leader = Some(LostLeader { id: from, term, why });
            // A successor soon reports itself. While elections are paused that of a dead leader does not: how the leader
            // was lost decides whether they hold it.
            if successor.is_none() || self.is_held(cx.config, None) {
                let change = LeaderChange::LeaderLeft { leader: from, term, reason: why };
                cx.inform(Notice::Changed(change));
            }
            self.release(from, (successor, why), cx);
        }
    }

    /// `leader` has given up its lease, so no vote lease binds this member. The successor campaigns first.
    pub(super) fn release(
        &mut self,
        leader: NodeId,
        (successor, why): (Option<NodeId>, Loss),
        cx: &mut Cx<'_>,
    ) {
        self.stop_following(cx);
        let term = self.ballot.term();
        self.search.last_leader = Some(LostLeader { id: leader, term, why });
        if matches!(why, Loss::Transferred(reason) if reason.is_failure()) {
            self.suspect(leader, term, cx);
        }
        self.note_death(leader, why, cx);
        let wait = successor.map_or(Span::ZERO, |_| self.successor_head_start(cx.config));
        self.await_turn_after(wait.into(), cx);
    }

    /// Q12: if it outranks its leader, waits to see whether that lasts.
    pub(super) fn consider_takeover(&mut self, cx: &mut Cx<'_>) {
        if self.outranked_leader(cx.config).is_none() {
            return self.stop_takeover(cx);
        }
        let Role::Follower(follower) = &self.role else { return };
        if follower.takeover.is_some() {
            return;
        }
        cx.set_timer(Timer::Takeover, self.patience(cx.config, follower.takeover_attempts));
        if let Some(follower) = self.follower_mut() {
            follower.takeover = Some(Takeover::Waiting);
        }
    }

    /// Its leader, if this member outranks it and may take over.
    fn outranked_leader(&self, config: &Config) -> Option<NodeId> {
        let Role::Follower(Follower { leader: Some(leader), .. }) = self.role else { return None };
        let is_allowed = config.quorum.preemption != Preemption::Never
            || self.ranking.preferred() == Some(self.id);
        let may_lead = is_allowed
            && self.would_lead(config)
            && !self.recovery.hold_down
            && !self.is_held(config, None);
        (may_lead && self.ranking.surpasses(config, self.id, leader)).then_some(leader)
    }

    /// How long it tolerates a lower-ranked leader: the highest-ranked member waits the shortest time, and a preferred
    /// member does not wait. But a leader may take long to stop its work, or have reasons not to give in. So a member that
    /// asks at once doubles its wait each time, up to that of the others.
    fn patience(&self, config: &Config, attempts: u8) -> Span {
        let higher = self.ranking.above(config, self.id).count() as u64;
        let usual = config.timing.preempt * (higher + 1);
        let at_once = config.quorum.preemption == Preemption::Immediate
            || self.ranking.preferred() == Some(self.id);
        let heartbeat = self.pace(config).heartbeat;
        match at_once {
            true if config.quorum.keeps(Rule::TakeoverBacksOff) => {
                (heartbeat * back_off(attempts)).min(usual.max(heartbeat))
            }
            true => heartbeat,
            false => usual,
        }
    }

    /// Its patience is over: it asks all members whether it may take over.
    pub(super) fn on_takeover_due(&mut self, cx: &mut Cx<'_>) {
        let leader = self.outranked_leader(cx.config);
        let Some(follower) = self.follower_mut() else { return };
        follower.takeover.take_if(|takeover| *takeover == Takeover::Waiting);
        if let Some(leader) = leader
            && follower.takeover.is_none()
        {
            follower.takeover_attempts = count_up(follower.takeover_attempts);
            cx.rule("Q12");
            self.ask(Some(leader), cx);
        }
    }

    /// The members have answered. With a majority it asks its leader for a transfer; in any case it tries again later, in
    /// case the leader stays.
    pub(super) fn request_takeover(&mut self, has_majority: bool, cx: &mut Cx<'_>) {
        if let Some(leader) = self.leader().filter(|_| has_majority) {
            cx.rule("Q12");
            self.send(leader, Body::Preempt { rank: self.rank(cx.config) }, cx);
        }
        self.consider_takeover(cx);
    }

    pub(super) fn stop_takeover(&mut self, cx: &mut Cx<'_>) {
        let Some(follower) = self.follower_mut() else { return };
        follower.takeover_attempts = 0;
        match follower.takeover.take() {
            Some(Takeover::Waiting) => cx.cancel_timer(Timer::Takeover),
            Some(Takeover::Asking(_)) => cx.cancel_timer(Timer::PreVote),
            None => {}
        }
    }

    pub(super) fn end_cooldown(&mut self) -> bool {
        self.follower_mut().is_some_and(|follower| std::mem::take(&mut follower.cooling_down))
    }
}
