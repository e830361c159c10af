//! Transfer of leadership, and the operator's commands.
//!
//! A transfer has two steps. First the leader's view becomes *retiring*: no new work may start under its lease, and
//! heartbeats continue. Its host stops the running work, waits until every permit is over and reports
//! [`Retired`](crate::protocol::Event::Retired). Only then the leader gives up the lease, tells its successor to campaign at
//! once and releases the other members from their vote leases. So downtime is as short as possible, and there is no overlap.
//!
//! A successor must be fit: it would lead, it has acknowledged one of the last heartbeats, and as far as the leader knows
//! it reaches a majority both ways (`reachability.rs`). An unfit successor would not win, and all others would wait for it.
//! If no member is fit, the leader releases all of them and they elect a leader by their turns.
//!
//! **A crash** need not cost a lease. While a leader lives, its host keeps ready what the leader would send if it
//! transferred leadership now. If the process dies and the host lives, the host ends what ran under the lease, waits until
//! every permit is over, and sends it (Q16, `handover.rs`). All members count the crash as a failure: the successor, because
//! it is told why it is the successor, and the others, because its heartbeats carry the penalties (`penalty.rs`).
//!
//! A drained leader transfers leadership as soon as a member that is not drained is fit. It leads only while every eligible
//! member that it reaches is drained too (`candidate.rs`): a cluster whose members are all drained still has a leader.
//!
//! A command that cannot be carried out is rejected with a reason and changes nothing.

use crate::change::{ElectionReason, LeaderChange, Loss, StepDownReason, TransferReason};
use crate::config::Config;
use crate::members::{NodeId, Term};
use crate::protocol::{AdminCommand, Notice, Refusal};
use crate::time::Span;

use super::ballot::Drain;
use super::candidate::LostLeader;
use super::message::Body;
use super::rank::{Preference, Rank};
use super::{Cx, Quorum, Role, Timer};
use crate::config::quorum::Preemption;
use crate::config::rules::Rule;

/// A transfer in progress.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Transfer {
    /// Chosen when the transfer is finished, if none is named here.
    pub(super) successor: Option<NodeId>,
    pub(super) reason: TransferReason,
}

impl Quorum {
    pub(super) fn on_command(&mut self, command: AdminCommand, cx: &mut Cx<'_>) {
        let done = match command {
            AdminCommand::Resign => self.begin_transfer(None, TransferReason::Resigned, cx),
            AdminCommand::ShutDown => self.begin_transfer(None, TransferReason::ShuttingDown, cx),
            AdminCommand::GiveUp => self.begin_transfer(None, TransferReason::Failed, cx),
            AdminCommand::Transfer { to } => {
                self.begin_transfer(Some(to), TransferReason::Requested, cx)
            }
            AdminCommand::Drain { never: true, .. } => self.drain(Drain::Never, cx),
            AdminCommand::Drain { lasting, .. } => {
                self.drain(lasting.map_or(Drain::UntilUndone, Drain::For), cx)
            }
            AdminCommand::Undrain => {
                self.undrain(cx);
                Ok(())
            }
            AdminCommand::Prefer { member, lasting } => self.prefer(member, lasting, cx),
            AdminCommand::Attribute(attr) => {
                self.amend_rank(cx.config, |rank| rank.attr = attr);
                self.consider_takeover(cx);
                Ok(())
            }
            AdminCommand::Pause { lasting } => self.pause(lasting, cx),
            AdminCommand::Resume => self.pause(Span::ZERO, cx),
            // For the layer that takes snapshots.
            AdminCommand::Snapshot | AdminCommand::Tell { .. } => Ok(()),
        };
        if let Err(refusal) = done {
            cx.inform(Notice::Refused(refusal));
        }
    }

    /// Whether `id` could lead, as the leader sees it.
    pub(super) fn is_fit(&self, config: &Config, id: NodeId) -> bool {
        let Role::Leader(leader) = &self.role else { return false };
        if !config.members.contains(id) {
            return false;
        }
        if !config.quorum.keeps(Rule::PreVote) {
            return true; // the choice of a successor is not a safety rule
        }
        self.ranking.rank(config, id).eligible
            && leader.is_reachable(id)
            && (self.reaches_majority(config, id)
                || !config.quorum.keeps(Rule::SuccessorReachesMajority))
    }

    /// The fit member of the highest rank.
    fn best_successor(&self, config: &Config) -> Option<NodeId> {
        if !config.quorum.keeps(Rule::PreVote) {
            return None; // the operator names one, or all members are released
        }
        let fit = config.members.others(self.id).filter(|&id| self.is_fit(config, id));
        fit.max_by_key(|&id| self.ranking.key(config, id))
    }

    /// Q13, first step: it leads on until its host has stopped the running work.
    fn begin_transfer(
        &mut self,
        successor: Option<NodeId>,
        reason: TransferReason,
        cx: &mut Cx<'_>,
    ) -> Result<(), Refusal> {
        if !self.is_leased() {
            return Err(Refusal::NotLeading);
        }
        if let Some(unfit) = successor.filter(|&id| !self.is_fit(cx.config, id)) {
            return Err(Refusal::Unfit(unfit));
        }
        let Role::Leader(leader) = &mut self.role else { return Err(Refusal::NotLeading) };
        cx.rule("Q13");
        leader.transfer = Some(Transfer { successor, reason });
        if !cx.config.quorum.keeps(Rule::RetiredFirst) {
            self.finish_transfer(cx);
        }
        Ok(())
    }

    /// Q13, second step: no work that depends on the lease runs here any more.
    pub(super) fn finish_transfer(&mut self, cx: &mut Cx<'_>) {
        let Role::Leader(leader) = &self.role else { return };
        let Some(Transfer { successor, reason }) = leader.transfer else { return };
        cx.rule("Q13");
        // A member that was fit when it was named may not be any more.
        let still_fit = successor.filter(|&id| self.is_fit(cx.config, id));
        let successor = still_fit.or_else(|| self.best_successor(cx.config));
        let term = self.ballot.term();
        if cx.config.quorum.keeps(Rule::LeaseEndsBeforeTransfer) {
            self.stop_leading(StepDownReason::Transferred { to: successor, reason }, cx);
            let why = Loss::Transferred(reason);
            self.search.last_leader = Some(LostLeader { id: self.id, term, why });
            self.cool_down(successor, cx);
        }
        debug_assert_eq!(term, self.ballot.term(), "a transfer opens no term");
        let announced = successor.filter(|_| cx.config.quorum.keeps(Rule::PreVote));
        for peer in cx.config.members.others(self.id) {
            let body = match successor == Some(peer) {
                true => Body::TimeoutNow { reason, preference: self.ranking.preference() },
                false => Body::Release { successor: announced, reason: Loss::Transferred(reason) },
            };
            self.send(peer, body, cx);
        }
    }

    /// Q16: what this leader would send if it transferred leadership now. It has died, and its host has confirmed that
    /// nothing relies on its lease any more: the messages are sent in its name.
    pub(super) fn hand_over_after_crash(&mut self, cx: &mut Cx<'_>) {
        let Role::Leader(leader) = &mut self.role else { return };
        cx.rule("Q16");
        let successor = leader.transfer.and_then(|transfer| transfer.successor);
        leader.transfer = Some(Transfer { successor, reason: TransferReason::Crashed });
        self.finish_transfer(cx);
    }

    /// Lets others go first, a little longer than they wait for the successor: if the successor fails, they should campaign
    /// before it does.
    fn cool_down(&mut self, successor: Option<NodeId>, cx: &mut Cx<'_>) {
        if !cx.config.quorum.keeps(Rule::PreVote) {
            return;
        }
        let head_start = successor.map_or(Span::ZERO, |_| self.successor_head_start(cx.config));
        cx.set_timer(Timer::Cooldown, head_start + self.pace(cx.config).heartbeat * 2);
        if let Some(follower) = self.follower_mut() {
            follower.cooling_down = true;
        }
    }

    /// How long all others wait for a successor.
    pub(super) fn successor_head_start(&self, config: &Config) -> Span {
        config.timing.reply() + self.pace(config).heartbeat * 2
    }

    /// Q14: the leader of this term has chosen it as successor. If it cannot campaign, it is at least released.
    pub(super) fn on_timeout_now(
        &mut self,
        from: NodeId,
        term: Term,
        (reason, preference): (TransferReason, Option<Preference>),
        cx: &mut Cx<'_>,
    ) {
        let campaigns_or_leads = matches!(self.role, Role::Candidate(_) | Role::Leader(_));
        if term != self.ballot.term() || campaigns_or_leads {
            return;
        }
        cx.rule("Q14");
        let why = Loss::Transferred(reason);
        self.search.last_leader = Some(LostLeader { id: from, term, why });
        if reason.is_failure() {
            self.suspect(from, term, cx);
        }
        self.note_death(from, why, cx);
        self.ranking.hear(preference, false);
        if self.end_cooldown() {
            cx.cancel_timer(Timer::Cooldown);
        }
        // A leader that has died transfers nothing: while elections are paused, there is none until the pause is over.
        self.hold(cx);
        if !cx.config.quorum.keeps(Rule::PreVote) {
            self.campaign_without_pre_vote(Some(term), cx);
        } else if self.would_lead(cx.config) && !self.is_held(cx.config, None) {
            let reason = ElectionReason::Transferred { by: from, reason };
            self.become_candidate(Some(term), reason, cx);
        }
        if !matches!(self.role, Role::Candidate(_) | Role::Leader(_)) {
            if self.leader() == Some(from) && self.is_held(cx.config, None) {
                let change = LeaderChange::LeaderLeft { leader: from, term, reason: why };
                cx.inform(Notice::Changed(change));
            }
            self.release(from, (None, why), cx);
        }
    }

    /// Q12: a member of higher rank asks to take over, and a majority agrees. If the leader's tenure is over, it transfers
    /// leadership to the highest-ranked of the fit members that have outranked it for a while, whichever member asked: the
    /// highest may not ask itself. The member that asked has waited.
    pub(super) fn on_preempt(&mut self, from: NodeId, rank: Rank, cx: &mut Cx<'_>) {
        self.learn_rank(from, rank, cx);
        let Role::Leader(leader) = &self.role else { return };
        if leader.transfer.is_some() || self.is_held(cx.config, None) {
            return;
        }
        let (patience, heartbeat) = (cx.config.timing.preempt, self.pace(cx.config).heartbeat);
        let preferred = self.ranking.preferred();
        let is_due = |id: NodeId| match cx.config.quorum.preemption {
            _ if preferred == Some(id) => true,
            Preemption::Never => false,
            Preemption::Delayed => {
                let has_waited = id == from || leader.is_outranked_for(id, patience, heartbeat);
                leader.tenure_over && has_waited
            }
            Preemption::Immediate => true,
        };
        let higher = cx.config.members.others(self.id).filter(|&id| {
            is_due(id)
                && self.is_fit(cx.config, id)
                && self.ranking.surpasses(cx.config, id, self.id)
        });
        if let Some(successor) = higher.max_by_key(|&id| self.ranking.key(cx.config, id)) {
            let reason = match preferred == Some(successor) {
                true => TransferReason::Preferred,
                false => TransferReason::Outranked,
            };
            // Rejected only if it has no lease, and then there is nothing to transfer.
            let _ = self.begin_transfer(Some(successor), reason, cx);
        }
    }

    fn drain(&mut self, how: Drain, cx: &mut Cx<'_>) -> Result<(), Refusal> {
        if self.recovery.is_rejoining() {
            // It would store that it has never voted.
            return Err(Refusal::Rejoining);
        }
        let eligible = |id| self.ranking.rank(cx.config, id).eligible;
        let has_replacement = match self.leads() {
            true => self.best_successor(cx.config).is_some(),
            false => cx.config.members.others(self.id).any(eligible),
        };
        if !has_replacement && how != Drain::Never {
            return Err(Refusal::NoOtherCandidate);
        }
        self.ballot.stored_mut().drained = Some(how);
        self.store(cx);
        self.apply_drain(cx);
        self.stop_takeover(cx);
        self.stop_campaign(cx);
        self.await_turn(cx);
        self.leave_if_drained(cx);
        Ok(())
    }

    /// A drained leader transfers leadership as soon as it has a lease to give up and another member is fit; one that must
    /// not lead at all does not wait for a fit member. Until then the drain can be undone.
    pub(super) fn leave_if_drained(&mut self, cx: &mut Cx<'_>) {
        let Role::Leader(leader) = &self.role else { return };
        let leaves = match self.ballot.stored().drained {
            None => false,
            Some(Drain::Never) => true,
            Some(Drain::For(_) | Drain::UntilUndone) => self.best_successor(cx.config).is_some(),
        };
        if leaves && leader.transfer.is_none() {
            // Rejected only if it has no lease yet: then the next acknowledgement tries again.
            let _ = self.begin_transfer(None, TransferReason::Drained, cx);
        }
    }

    /// It is drained: it reports itself as ineligible until the drain is undone or its time is over.
    pub(super) fn apply_drain(&mut self, cx: &mut Cx<'_>) {
        self.amend_rank(cx.config, |rank| rank.eligible = false);
        match self.ballot.stored().drained {
            Some(Drain::For(span)) => cx.set_timer(Timer::Drain, span),
            _ => cx.cancel_timer(Timer::Drain),
        }
    }

    pub(super) fn undrain(&mut self, cx: &mut Cx<'_>) {
        if self.ballot.stored_mut().drained.take().is_none() {
            return;
        }
        self.store(cx);
        cx.cancel_timer(Timer::Drain);
        let reluctant = cx.config.quorum.reluctant.contains(self.id);
        self.amend_rank(cx.config, |rank| rank.eligible = !reluctant);
        self.consider_takeover(cx);
        self.await_turn(cx);
    }

    fn prefer(&mut self, member: NodeId, lasting: Span, cx: &mut Cx<'_>) -> Result<(), Refusal> {
        if !self.is_leased() {
            return Err(Refusal::NotLeading);
        }
        let eligible =
            cx.config.members.contains(member) && self.ranking.rank(cx.config, member).eligible;
        // A preference can be withdrawn regardless of the state of the member.
        if !eligible && lasting > Span::ZERO {
            return Err(Refusal::Unfit(member));
        }
        self.ranking.prefer(self.ballot.term(), member, lasting);
        self.send_heartbeat_if_acknowledged(cx);
        Ok(())
    }

    /// Sends a heartbeat now, so that the others know what has changed even if leadership moves before the next one. But
    /// if the last heartbeat is not yet acknowledged, one more would make followers seem unreachable too soon.
    pub(super) fn send_heartbeat_if_acknowledged(&mut self, cx: &mut Cx<'_>) {
        if matches!(&self.role, Role::Leader(leader) if leader.lease == Some(leader.newest)) {
            self.send_heartbeat(cx);
        }
    }
}
