//! The leader: its lease, its heartbeat rounds, and how leadership ends.
//!
//! Before a leader sends heartbeat round *r* it arms the timer `Lease(r)`. When a majority, itself included, has
//! acknowledged round *r* or a later one, that timer is its lease: it leads until the timer fires. So a lease counts from
//! the time of *sending*, by construction and without a clock, and the host publishes the timer's deadline. An
//! acknowledgement of a round whose timer has fired has no effect.
//!
//! An elected member that has no lease when it sends its second heartbeat may be unreachable for the others. It continues
//! for the time of two vote leases, but no longer answers "higher", so that it keeps no other member from campaigning.
//!
//! **A lapse is not a change of leader.** A leader whose lease lapses must not act and may vote. But it continues to ask for
//! a lease in the same term, for two heartbeats and a round trip at most, until it learns of a later term: a stall of the
//! machine or a few lost datagrams then cost a *gap*, not an election. This departs from rules 7 and 9 of the specification
//! (5.3), as its amendment 7.3 demands. It is safe, because the proof does not need a lease to be without gaps. A resumed
//! lease rests on a round that was sent after the lapsed one and that a majority acknowledged; each of these members had
//! stored no later term by then, and votes for no other member until its vote lease is over. A majority that elected another
//! leader in the meantime would share a member with it, and that member refuses the earlier term. The same holds for the
//! leader itself: once it has voted in a later term it no longer leads in this one. Two conditions must hold. A round whose
//! timer has fired never counts again, the lapsed one included; and programs that act under the lease compare its deadline
//! with the clock. The third gap within one tenure ends the leadership and counts as a failure.
//!
//! A leader that gives up, because no majority renewed its lease or confirmed it, says so to the followers that it still
//! reaches (RELEASE). It has no lease and gets none in this term, so their vote leases protect nothing any more; and they
//! know that it has not died.
//!
//! A leader that steps down for another reason while its lease runs (it learns of a later term) stops acting, but programs
//! that read the deadline may not. So its own lease binds it like a vote lease until it has run out, and until then it
//! acknowledges no other leader.

use crate::change::{ElectionReason, LeaderChange, Loss, StepDownReason};
use crate::config::Config;
use crate::map::SortedMap;
use crate::members::{NodeId, Term};
use crate::protocol::Notice;
use crate::time::Span;

use super::candidate::{LostLeader, Search};
use super::follower::Follower;
use super::message::{Body, Heartbeat, Round, Unreachable};
use super::rank::Rank;
use super::transfer::Transfer;
use super::{Cx, Quorum, Role, Timer};
use crate::config::quorum::Preemption;
use crate::config::rules::Rule;

/// The data of a leader; [`Timer::Heartbeat`] is armed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Leader {
    pub(super) reason: ElectionReason,
    /// The last heartbeat round.
    pub(super) newest: Round,
    /// The oldest round whose lease timer may still count.
    pub(super) oldest: Round,
    /// The last round that each follower acknowledged.
    pub(super) acks: SortedMap<NodeId, Round>,
    /// The round on which the lease rests; [`Timer::Confirmation`] is armed while there is none.
    pub(super) lease: Option<Round>,
    /// The longest vote lease that it has asked for in this term. It never asks for a shorter one: a follower that restarted
    /// and forgot the longer one is bound only by the next heartbeat.
    vote_lease: Span,
    /// How often the lease has lapsed within this tenure.
    pub(super) gaps: u8,
    /// Its tenure is over: a higher-ranked member may take over.
    pub(super) tenure_over: bool,
    /// It is about to transfer leadership.
    pub(super) transfer: Option<Transfer>,
    /// The eligible members that outrank it by the margin, and since which round without a break.
    higher: SortedMap<NodeId, Round>,
}

/// The gap that ends a leadership.
const LAST_GAP: u8 = 3;

impl Leader {
    fn new(reason: ElectionReason) -> Self {
        Self {
            reason,
            newest: Round::default(),
            oldest: Round::FIRST,
            acks: SortedMap::new(),
            lease: None,
            vote_lease: Span::ZERO,
            gaps: 0,
            tenure_over: false,
            transfer: None,
            higher: SortedMap::new(),
        }
    }

    /// The latest round that `majority` members have acknowledged, the leader itself included.
    fn agreed(&self, majority: usize) -> Option<Round> {
        let mut rounds: Vec<Round> = self.acks.values().copied().collect();
        rounds.push(self.newest);
        rounds.sort_unstable_by(|a, b| b.cmp(a));
        rounds.get(majority - 1).copied()
    }

    /// Whether `id` has acknowledged one of the last three heartbeats.
    pub(super) fn is_reachable(&self, id: NodeId) -> bool {
        self.acks.get(&id).is_some_and(|round| round.0 + 2 >= self.newest.0)
    }

    /// Whether `id` has acknowledged none of the last three heartbeats.
    pub(super) fn misses(&self, id: NodeId) -> bool {
        self.newest.0 > 3 && !self.is_reachable(id)
    }

    /// Whether `id` has outranked the leader for `span`, counted in heartbeats.
    pub(super) fn is_outranked_for(&self, id: NodeId, span: Span, heartbeat: Span) -> bool {
        self.higher.get(&id).is_some_and(|since| heartbeat * (self.newest.0 - since.0) >= span)
    }

    /// The rounds whose lease timers are armed.
    fn armed(&self) -> impl Iterator<Item = Round> + use<> {
        (self.oldest.0..=self.newest.0).map(Round)
    }
}

impl Quorum {
    pub(super) fn is_leased(&self) -> bool {
        matches!(&self.role, Role::Leader(leader) if leader.lease.is_some())
    }

    /// Q6: a majority has voted for it. It has no lease yet.
    pub(super) fn become_leader(&mut self, reason: ElectionReason, cx: &mut Cx<'_>) {
        cx.rule("Q6");
        cx.cancel_timer(Timer::Vote);
        self.search = Search::default();
        self.role = Role::Leader(Box::new(Leader::new(reason)));
        cx.set_timer(Timer::Confirmation, self.pace(cx.config).vote_lease * 2);
        self.begin_to_count(cx);
        self.send_heartbeat(cx);
        if !cx.config.quorum.keeps(Rule::VoteIsNoLease) {
            self.set_lease(Round::FIRST, cx);
        }
    }

    /// Q7: asks all members to renew its lease. The lease counts from here.
    pub(super) fn send_heartbeat(&mut self, cx: &mut Cx<'_>) {
        let pace = self.pace(cx.config);
        let Role::Leader(leader) = &mut self.role else { return };
        leader.newest = leader.newest.next();
        leader.vote_lease = pace.vote_lease.max(leader.vote_lease);
        let (round, reason, mut vote_lease) = (leader.newest, leader.reason, leader.vote_lease);
        let mut length =
            if cx.config.quorum.keeps(Rule::DriftMargin) { pace.lease() } else { pace.vote_lease };
        if !cx.config.quorum.keeps(Rule::VoteLeaseNeverShrinks) && leader.lease.is_some() {
            let quarter = |span: Span| Span::from_nanos(span.as_nanos() / 4);
            [vote_lease, length] = [vote_lease, length].map(quarter);
        }
        cx.set_timer(Timer::Lease(round), length);
        let (rank, preference) = (self.rank(cx.config), self.ranking.preference());
        let (unreachable, penalties) =
            (self.reachability.unreachable(), Some(self.ranking.penalties()));
        let heartbeat =
            Heartbeat { round, vote_lease, rank, preference, reason, unreachable, penalties };
        self.broadcast(&Body::Heartbeat(heartbeat), cx);
        cx.set_timer(Timer::Heartbeat, pace.heartbeat);
        self.note_higher_members(cx.config);
        self.renew_lease(cx);
    }

    /// Updates which eligible members outrank it, and since when, where a takeover is delayed.
    fn note_higher_members(&mut self, config: &Config) {
        if config.quorum.preemption != Preemption::Delayed {
            return;
        }
        let is_higher =
            |id: &NodeId| self.is_fit(config, *id) && self.ranking.surpasses(config, *id, self.id);
        let higher: Vec<NodeId> = config.members.others(self.id).filter(is_higher).collect();
        let Role::Leader(leader) = &mut self.role else { return };
        let since = |id: NodeId| leader.higher.get(&id).copied().unwrap_or(leader.newest);
        leader.higher = higher.into_iter().map(|id| (id, since(id))).collect();
    }

    /// Whether an acknowledgement of `term` counts now.
    pub(super) fn counts_ack(&self, config: &Config, term: Term) -> bool {
        let own = self.ballot.term();
        term == own || term < own && !config.quorum.keeps(Rule::AckCountsInItsTerm)
    }

    /// Q9: a follower has acknowledged a round.
    pub(super) fn on_ack(
        &mut self,
        from: NodeId,
        (round, rank, unreachable): (Round, Rank, &Unreachable),
        cx: &mut Cx<'_>,
    ) {
        self.learn_rank(from, rank, cx);
        self.note_unreachable(cx.config, from, unreachable);
        let Role::Leader(leader) = &mut self.role else { return };
        if round > leader.newest {
            return; // this round was never sent
        }
        let last = leader.acks.get_or_default(from);
        *last = round.max(*last);
        self.renew_lease(cx);
        self.leave_if_drained(cx);
    }

    /// Moves the lease on to the latest round that a majority has acknowledged.
    fn renew_lease(&mut self, cx: &mut Cx<'_>) {
        let Role::Leader(leader) = &self.role else { return };
        let Some(round) = leader.agreed(cx.config.quorum.majority(cx.config.members.len())) else {
            return;
        };
        if round >= leader.oldest && Some(round) > leader.lease {
            self.set_lease(round, cx);
        }
    }

    /// From now on the lease rests on `round`.
    fn set_lease(&mut self, round: Round, cx: &mut Cx<'_>) {
        let pace = self.pace(cx.config);
        let Role::Leader(leader) = &mut self.role else { return };
        let begins = leader.lease.is_none();
        let is_oldest = leader.oldest == round;
        for older in leader.armed().take_while(|&older| older < round) {
            cx.cancel_timer(Timer::Lease(older));
        }
        leader.oldest = round;
        leader.lease = Some(round);
        // Only without this rule: the timer of the lapsed round has fired, so it is armed again.
        let lapsed = begins && leader.gaps > 0 && is_oldest;
        let rearms = lapsed && !cx.config.quorum.keeps(Rule::LapsedRoundIsOver);
        if !cx.config.quorum.keeps(Rule::LeaseFromSending) || rearms {
            cx.set_timer(Timer::Lease(round), pace.lease());
        }
        if !begins {
            return;
        }
        cx.rule("Q9");
        cx.cancel_timer(Timer::Confirmation);
        let term = self.ballot.term();
        let change = if leader.gaps > 0 {
            LeaderChange::LeaseResumed { leader: self.id, term }
        } else {
            if cx.config.quorum.counts_tenures() {
                cx.set_timer(Timer::Tenure, cx.config.quorum.tenure);
            }
            LeaderChange::BecameLeader { term, reason: leader.reason }
        };
        cx.inform(Notice::Changed(change));
    }

    /// The timer of a round has fired: perhaps that of its lease, or of one that outlived its leadership.
    pub(super) fn on_lease_over(&mut self, round: Round, cx: &mut Cx<'_>) {
        if self.lingering_lease == Some(round) {
            self.lingering_lease = None;
            return self.await_turn(cx);
        }
        let Role::Leader(leader) = &mut self.role else { return };
        if leader.lease != Some(round) {
            leader.oldest = leader.oldest.max(round.next());
            return;
        }
        cx.rule("Q7");
        leader.lease = None;
        // The limit of gaps is not a safety rule: without pre-votes a leader may continue after any number of them.
        let counted = if cx.config.quorum.keeps(Rule::PreVote) { LAST_GAP } else { 1 };
        leader.gaps = (leader.gaps + 1).min(counted);
        if cx.config.quorum.keeps(Rule::LapsedRoundIsOver) {
            leader.oldest = round.next();
        }
        let flaps = leader.gaps >= LAST_GAP && !self.is_irreplaceable(cx.config);
        if flaps || !cx.config.quorum.keeps(Rule::LapsedLeaderRetries) {
            return self.leave(StepDownReason::NoMajority, Loss::NotRenewed, cx);
        }
        let Role::Leader(leader) = &self.role else { return };
        if leader.gaps == 1 && (leader.tenure_over || !cx.config.quorum.counts_tenures()) {
            // Gaps are counted within one tenure.
            cx.set_timer(Timer::Tenure, cx.config.quorum.tenure);
        }
        self.await_confirmation(cx);
        cx.inform(Notice::Changed(LeaderChange::LeaseLapsed { term: self.ballot.term() }));
    }

    /// Its lease has lapsed. Other members should campaign if it is not renewed soon.
    fn await_confirmation(&self, cx: &mut Cx<'_>) {
        let heartbeat = self.pace(cx.config).heartbeat;
        let patience = cx.config.quorum.gap_limit(&cx.config.timing, heartbeat);
        cx.set_timer(Timer::Confirmation, patience);
    }

    /// It was elected and no majority confirmed it in time; or its lease lapsed and was not renewed.
    pub(super) fn on_unconfirmed(&mut self, cx: &mut Cx<'_>) {
        let Role::Leader(leader) = &self.role else { return };
        if leader.lease.is_none() {
            if leader.gaps > 0 && self.is_irreplaceable(cx.config) {
                return self.await_confirmation(cx);
            }
            cx.rule("Q7");
            match leader.gaps {
                0 => self.leave(StepDownReason::NeverConfirmed, Loss::NotConfirmed, cx),
                _ => self.leave(StepDownReason::NoMajority, Loss::NotRenewed, cx),
            }
        }
    }

    /// It has no lease and will not get one in this term. It steps down and tells the followers that it still reaches:
    /// they need not wait until their vote leases are over, and know that it has not died.
    fn leave(&mut self, reason: StepDownReason, why: Loss, cx: &mut Cx<'_>) {
        self.stop_leading(reason, cx);
        let term = self.ballot.term();
        self.search.last_leader = Some(LostLeader { id: self.id, term, why });
        self.broadcast(&Body::Release { successor: None, reason: why }, cx);
        self.await_turn(cx);
    }

    /// Whether it was elected and seems to be unreachable: its first heartbeat had time to be acknowledged, and it has no
    /// lease. It should not keep another member from campaigning.
    pub(super) fn is_unconfirmed(&self, config: &Config) -> bool {
        let Role::Leader(leader) = &self.role else { return false };
        let unconfirmed = leader.lease.is_none() && leader.newest > Round::FIRST;
        unconfirmed && config.quorum.keeps(Rule::UnconfirmedLeaderYields)
    }

    /// Q10: an answer to what it sent as candidate or leader shows a later term. A follower ignores it: with the later term
    /// it would only refuse its leader's next heartbeat.
    pub(super) fn on_later_term(&mut self, from: NodeId, term: Term, cx: &mut Cx<'_>) {
        let applies = match &self.role {
            Role::Candidate(_) | Role::Leader(_) => true,
            Role::Follower(_) => self.follows_any_term(cx.config),
            Role::PreCandidate(_) | Role::Halted => false,
        };
        if applies && term > self.ballot.term() {
            self.step_down(term, from, cx);
            self.await_turn(cx);
        }
    }

    /// `from` sent something in an earlier term, and learns of this one.
    pub(super) fn refuse(&mut self, from: NodeId, cx: &mut Cx<'_>) {
        if cx.config.quorum.keeps(Rule::PreVote) {
            self.send(from, Body::Nack, cx);
        }
    }

    /// Q10: `from` knows of a later term. In any role, it becomes a follower.
    pub(super) fn step_down(&mut self, term: Term, from: NodeId, cx: &mut Cx<'_>) {
        if term <= self.ballot.term() {
            return;
        }
        cx.rule("Q10");
        self.stop_leading(StepDownReason::LaterTerm { term, from }, cx);
        self.stop_campaign(cx);
        self.ballot.adopt(term);
        self.store(cx);
        self.settle_suspicion(cx);
    }

    /// A later term exists than that of the leader whose vote lease ran out here: it was not a gap.
    pub(super) fn settle_suspicion(&mut self, cx: &mut Cx<'_>) {
        if let Some((leader, term)) = self.ranking.take_suspect() {
            self.penalize(leader, term, cx);
        }
    }

    /// It is no longer leader. If its lease still runs, it stays bound by it; unless it transfers leadership, when no program
    /// can act on the lease any more.
    pub(super) fn stop_leading(&mut self, reason: StepDownReason, cx: &mut Cx<'_>) {
        let Role::Leader(leader) = &self.role else { return };
        let transfers = matches!(reason, StepDownReason::Transferred { .. });
        let binds = !transfers && cx.config.quorum.keeps(Rule::LeaseBindsItsHolder);
        let kept = leader.lease.filter(|_| binds);
        for round in leader.armed().filter(|&round| Some(round) != kept) {
            cx.cancel_timer(Timer::Lease(round));
        }
        for timer in [Timer::Heartbeat, Timer::Confirmation, Timer::Tenure] {
            cx.cancel_timer(timer);
        }
        let flaps = leader.gaps >= LAST_GAP;
        self.lingering_lease = kept;
        let silent = cx.config.members.others(self.id).filter(|&id| leader.misses(id)).collect();
        self.role = Role::Follower(Follower::default());
        self.note_silent(silent, cx);
        self.ballot.withdraw();
        let term = self.ballot.term();
        cx.inform(Notice::Changed(LeaderChange::SteppedDown { term, reason }));
        match reason {
            StepDownReason::Transferred { reason, .. } if !reason.is_failure() => {}
            StepDownReason::NoMajority if !flaps => self.note_lost_lease(term, cx.config),
            StepDownReason::LaterTerm { .. } => self.note_lost_lease(term, cx.config),
            _ => self.penalize(self.id, term, cx),
        }
    }

    /// It lost its lease in `term`. That is a failure if another member leads next (`rank.rs`).
    fn note_lost_lease(&mut self, term: Term, config: &Config) {
        if config.quorum.penalty_decay > Span::ZERO {
            self.search.lost_lease = Some(term);
        }
    }

    /// Its tenure is over, or as much time has passed since a gap.
    pub(super) fn on_tenure_over(&mut self, cx: &mut Cx<'_>) {
        let Role::Leader(leader) = &mut self.role else { return };
        leader.tenure_over = true;
        // A gap that is still open is the first of the next tenure.
        let in_gap = leader.gaps > 0 && leader.lease.is_none();
        leader.gaps = u8::from(in_gap);
        self.ranking.end_streak(self.id);
        if in_gap {
            // A tenure may be of no length: the gap must not end it again and again at the same instant.
            let heartbeat = self.pace(cx.config).heartbeat;
            cx.set_timer(Timer::Tenure, cx.config.quorum.tenure.max(heartbeat));
        }
    }
}
