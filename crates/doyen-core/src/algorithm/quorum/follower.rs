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

use crate::change::{ElectionReason, LeaderChange, TransferReason};
use crate::config::Config;
use crate::members::{NodeId, Term};
use crate::protocol::Notice;
use crate::time::Span;

use super::candidate::Poll;
use super::message::{Body, Heartbeat};
use super::rules::Rule;
use super::settings::{MAX_VOTE_LEASE, Preemption};
use super::{Out, Quorum, Role, Timer, back_off, count_up};

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
        config: &Config,
        from: NodeId,
        term: Term,
        heartbeat: &Heartbeat,
        out: &mut Out,
    ) {
        if term < self.ballot.term() && config.quorum.keeps(Rule::NoStaleHeartbeat) {
            out.rule("Q8a");
            return self.refuse(config, from, out);
        }
        // A term has only one leader; and no configuration that is checked at start asks for such a vote lease.
        if self.leads() && term <= self.ballot.term() || heartbeat.vote_lease > MAX_VOTE_LEASE {
            return;
        }
        if self.has_not_answered(from) {
            return self.greet(from, out);
        }
        out.rule("Q8");
        let later = term > self.ballot.term();
        let is_new = self.leader() != Some(from) || later;
        let resumes = self.search.last_leader == Some((from, term));
        self.step_down(config, term, from, out);
        self.stop_campaign(out);
        if self.lingering_lease.is_some() {
            return; // its own lease still runs, so it must not help another leader to one
        }
        self.ranking.take_suspect();
        if let ElectionReason::Transferred { by, reason: TransferReason::Crashed } =
            heartbeat.reason
            && is_new
            && !resumes
        {
            self.penalize(config, by, out);
        }
        let search = std::mem::take(&mut self.search);
        if search.is_successor && config.quorum.keeps(Rule::FailedSuccessorIsPenalized) {
            out.rule("Q15");
            self.penalize(config, self.id, out);
        }
        if config.quorum.pace_of(from).heartbeat * heartbeat.round.0 > config.quorum.tenure {
            self.ranking.end_streak(from);
        }
        if later && !config.quorum.keeps(Rule::LongestFallsLate) {
            self.ballot.stored_mut().longest = self.pace(config).vote_lease;
            self.store(out);
        }
        self.give_vote_lease(config, from, term, heartbeat.vote_lease, out);
        self.end_hold_down(out);
        let (rank, unreachable) = (self.rank(config), self.reachability.unreachable());
        self.send(from, Body::Ack { round: heartbeat.round, rank, unreachable }, out);
        if is_new {
            out.inform(Notice::Changed(match resumes {
                true => LeaderChange::LeaseResumed { leader: from, term },
                false => LeaderChange::Follows { leader: from, term, reason: heartbeat.reason },
            }));
        }
        self.note_unreachable(config, from, &heartbeat.unreachable);
        self.ranking.learn(config, from, heartbeat.rank);
        let preferred = self.ranking.preferred();
        if let Some(preference) = self.ranking.hear(heartbeat.preference, is_new) {
            self.send(from, Body::Prefer { preference }, out);
        }
        // Its patience with a lower-ranked leader goes on, even if other attributes are measured in the meantime.
        if is_new || self.ranking.preferred() != preferred {
            self.stop_takeover(out);
        }
        self.consider_takeover(config, out);
    }

    fn give_vote_lease(
        &mut self,
        config: &Config,
        leader: NodeId,
        term: Term,
        asked: Span,
        out: &mut Out,
    ) {
        let asked = match config.quorum.keeps(Rule::VoteLeaseAsRequested) {
            true => asked,
            false => self.pace(config).vote_lease,
        };
        let current = self.vote_lease().filter(|lease| lease.term == term);
        let length = current.map_or(asked, |lease| lease.length.max(asked));
        if length > self.ballot.stored().longest {
            self.ballot.stored_mut().longest = length;
            self.store(out);
        }
        let Some(follower) = self.follower_mut() else { return };
        follower.leader = Some(leader);
        if config.quorum.keeps(Rule::VoteLease) {
            follower.vote_lease = Some(VoteLease { term, length });
            out.set_timer(Timer::VoteLease, length);
        }
        // Armed after the vote lease's own timer: if both are due, the vote lease must end before the longest can fall.
        if length == self.ballot.stored().longest {
            self.watch_longest(config, out);
        }
    }

    /// A vote lease as long as the longest may run from now on. When its time has passed without another one, the longest
    /// falls, but never below the configured length.
    pub(super) fn watch_longest(&mut self, config: &Config, out: &mut Out) {
        let longest = self.ballot.stored().longest;
        if longest > self.pace(config).vote_lease {
            out.set_timer(Timer::LongestVoteLease, longest);
        }
    }

    /// The whole time of the longest vote lease has passed without one that long.
    pub(super) fn on_longest_over(&mut self, config: &Config, out: &mut Out) {
        if self.recovery.is_rejoining() {
            return; // it has nothing yet that it may store
        }
        let given = self.vote_lease().map_or(Span::ZERO, |lease| lease.length);
        self.ballot.stored_mut().longest = given.max(self.pace(config).vote_lease);
        self.store(out);
        self.watch_longest(config, out);
    }

    /// It follows no leader any more and is not bound by a vote lease.
    pub(super) fn stop_following(&mut self, out: &mut Out) {
        if let Some(follower) = self.follower_mut() {
            follower.leader = None;
            if follower.vote_lease.take().is_some() {
                out.cancel_timer(Timer::VoteLease);
            }
        }
        self.stop_takeover(out);
    }

    /// Its leader has not renewed the vote lease: it is unreachable.
    pub(super) fn on_vote_lease_over(&mut self, config: &Config, out: &mut Out) {
        out.rule("Q2");
        let Some(follower) = self.follower_mut() else { return };
        follower.vote_lease = None;
        let leader = follower.leader.take();
        self.stop_takeover(out);
        if let Some(leader) = leader {
            let term = self.ballot.term();
            out.inform(Notice::Changed(LeaderChange::LostContact { leader, term }));
            self.search.last_leader = Some((leader, term));
            self.on_unreachable(config, leader, out);
            if config.quorum.penalty_decay > Span::ZERO {
                self.ranking.suspect(leader);
            }
        }
        self.await_turn(config, out);
    }

    /// Q14: the leader of `term` has transferred leadership and releases this member from its vote lease.
    pub(super) fn on_release(
        &mut self,
        config: &Config,
        from: NodeId,
        term: Term,
        successor: Option<NodeId>,
        out: &mut Out,
    ) {
        let own = self.ballot.term();
        let applies = term == own || term < own && !config.quorum.keeps(Rule::ReleaseIsForItsTerm);
        if self.leader() == Some(from) && applies {
            out.rule("Q14");
            self.release(config, from, successor, out);
        }
    }

    /// `leader` has given up its lease, so no vote lease binds this member. The successor campaigns first.
    pub(super) fn release(
        &mut self,
        config: &Config,
        leader: NodeId,
        successor: Option<NodeId>,
        out: &mut Out,
    ) {
        self.stop_following(out);
        self.search.last_leader = Some((leader, self.ballot.term()));
        let wait = successor.map_or(Span::ZERO, |_| self.successor_head_start(config));
        self.await_turn_after(config, wait.into(), out);
    }

    /// Q12: if it outranks its leader, waits to see whether that lasts.
    pub(super) fn consider_takeover(&mut self, config: &Config, out: &mut Out) {
        if self.outranked_leader(config).is_none() {
            return self.stop_takeover(out);
        }
        let Role::Follower(follower) = &self.role else { return };
        if follower.takeover.is_some() {
            return;
        }
        out.set_timer(Timer::Takeover, self.patience(config, follower.takeover_attempts));
        if let Some(follower) = self.follower_mut() {
            follower.takeover = Some(Takeover::Waiting);
        }
    }

    /// Its leader, if this member outranks it and may take over.
    fn outranked_leader(&self, config: &Config) -> Option<NodeId> {
        let Role::Follower(Follower { leader: Some(leader), .. }) = self.role else { return None };
        let is_allowed = config.quorum.preemption != Preemption::Never
            || self.ranking.preferred() == Some(self.id);
        let may_lead = is_allowed && self.would_lead(config) && !self.recovery.hold_down;
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
    pub(super) fn on_takeover_due(&mut self, config: &Config, out: &mut Out) {
        let leader = self.outranked_leader(config);
        let Some(follower) = self.follower_mut() else { return };
        follower.takeover.take_if(|takeover| *takeover == Takeover::Waiting);
        if let Some(leader) = leader
            && follower.takeover.is_none()
        {
            follower.takeover_attempts = count_up(follower.takeover_attempts);
            out.rule("Q12");
            self.ask(config, Some(leader), out);
        }
    }

    /// The members have answered. With a majority it asks its leader for a transfer; in any case it tries again later, in
    /// case the leader stays.
    pub(super) fn request_takeover(&mut self, config: &Config, has_majority: bool, out: &mut Out) {
        if let Some(leader) = self.leader().filter(|_| has_majority) {
            out.rule("Q12");
            self.send(leader, Body::Preempt { rank: self.rank(config) }, out);
        }
        self.consider_takeover(config, out);
    }

    pub(super) fn stop_takeover(&mut self, out: &mut Out) {
        let Some(follower) = self.follower_mut() else { return };
        follower.takeover_attempts = 0;
        match follower.takeover.take() {
            Some(Takeover::Waiting) => out.cancel_timer(Timer::Takeover),
            Some(Takeover::Asking(_)) => out.cancel_timer(Timer::PreVote),
            None => {}
        }
    }

    pub(super) fn end_cooldown(&mut self) -> bool {
        self.follower_mut().is_some_and(|follower| std::mem::take(&mut follower.cooling_down))
    }
}
