//! Handing over, and what an operator can ask for.
//!
//! A leader that is to go retires in two steps. First it says so: its view becomes *retiring*, no new work may begin
//! under its lease, and heartbeats go on. Its host stops what runs there, waits for whoever was told "until then", and
//! says [`Retired`](crate::protocol::Event::Retired). Only then it gives the lease up, tells its heir to stand at once
//! and releases the others from their promises. So there is no moment without somebody responsible that could be
//! avoided, and none with two.
//!
//! An heir must be fit: it would lead, it has acknowledged one of the last heartbeats, and as far as the leader
//! knows it reaches a majority both ways (`reach.rs`). One that is not would win nothing, and everybody would wait for it.
//! Nobody is better than somebody who cannot: if none is fit, the others are released and elect by their turns.
//!
//! A drained member hands over as soon as one that is not drained is fit. It leads only while every member that it reaches
//! and that could lead is drained too (`election.rs`): a cluster whose members were all drained at one moment still has a
//! leader.
//!
//! What cannot be done is refused, with a reason, and changes nothing.

use crate::config::Config;
use crate::members::{Epoch, NodeId};
use crate::protocol::{Notice, Order, Refusal};
use crate::story::{Cause, Loss, Why};
use crate::time::Span;

use super::ballot::Drain;
use super::message::Body;
use super::office::Retiring;
use super::rules::Rule;
use super::settings::Preemption;
use super::standing::{Merit, Preference};
use super::{Duty, Out, Quorum, Timer};

impl Quorum {
    /// The operator wants something.
    pub(super) fn on_order(&mut self, config: &Config, order: Order, out: &mut Out) {
        let done = match order {
            Order::Resign => self.retire(config, None, Cause::Resigned, out),
            Order::Transfer { to } => self.retire(config, Some(to), Cause::Transferred, out),
            Order::Drain { never: true, .. } => self.drain(config, Drain::Never, out),
            Order::Drain { lasting, .. } => {
                self.drain(config, lasting.map_or(Drain::UntilUndone, Drain::For), out)
            }
            Order::Undrain => {
                self.undrain(config, out);
                Ok(())
            }
            Order::Prefer { member, lasting } => self.prefer(config, member, lasting, out),
            Order::Attribute(attr) => {
                self.amend(config, |merit| merit.attr = attr);
                self.consider_takeover(config, out);
                Ok(())
            }
        };
        if let Err(refusal) = done {
            out.inform(Notice::Refused(refusal));
        }
    }

    /// Whether `id` could lead, as the leader sees it.
    pub(super) fn is_fit(&self, config: &Config, id: NodeId) -> bool {
        let Duty::Lead(office) = &self.duty else { return false };
        if !config.members.contains(id) {
            return false;
        }
        if !config.quorum.keeps(Rule::Courtesy) {
            return true; // who gets the office is courtesy
        }
        self.standings.merit(config, id).eligible
            && office.hears_from(id)
            && (self.reaches_majority(config, id)
                || !config.quorum.keeps(Rule::HeirReachesMajority))
    }

    /// The best member that could lead in its place.
    fn best_heir(&self, config: &Config) -> Option<NodeId> {
        if !config.quorum.keeps(Rule::Courtesy) {
            return None; // an operator names one, or everybody is released
        }
        let fit = config.members.others(self.id).filter(|&id| self.is_fit(config, id));
        fit.max_by_key(|&id| self.standings.precedence(config, id))
    }

    /// Q13, first step: it leads on until its host has stopped what runs there.
    fn retire(
        &mut self,
        config: &Config,
        heir: Option<NodeId>,
        cause: Cause,
        out: &mut Out,
    ) -> Result<(), Refusal> {
        if !self.is_leased() {
            return Err(Refusal::NotLeading);
        }
        if let Some(unfit) = heir.filter(|&heir| !self.is_fit(config, heir)) {
            return Err(Refusal::Unfit(unfit));
        }
        let Duty::Lead(office) = &mut self.duty else { return Err(Refusal::NotLeading) };
        out.rule("Q13");
        office.retiring = Some(Retiring { heir, cause });
        if !config.quorum.keeps(Rule::RetiredFirst) {
            self.abdicate(config, out);
        }
        Ok(())
    }

    /// Q13, second step: nothing runs here any more that depends on the lease.
    pub(super) fn abdicate(&mut self, config: &Config, out: &mut Out) {
        let Duty::Lead(office) = &self.duty else { return };
        let Some(Retiring { heir, cause }) = office.retiring else { return };
        out.rule("Q13");
        // Whoever was fit when it was named may not be any more.
        let heir =
            heir.filter(|&heir| self.is_fit(config, heir)).or_else(|| self.best_heir(config));
        let term = self.ballot.term();
        if config.quorum.keeps(Rule::LeaseEndsBeforeHandOver) {
            self.leave_office(config, Loss::HandedOver { to: heir, cause }, out);
            self.refrain(config, heir, out);
        }
        debug_assert_eq!(term, self.ballot.term(), "handing over opens no term");
        for peer in config.members.others(self.id) {
            let body = match heir == Some(peer) {
                true => Body::TimeoutNow { cause, preference: self.standings.preference() },
                false => {
                    Body::Release { heir: heir.filter(|_| config.quorum.keeps(Rule::Courtesy)) }
                }
            };
            self.tell(peer, body, out);
        }
    }

    /// Lets others go first, as long as they wait for its heir and a little longer: it was to go, so they are first should
    /// nothing come of that.
    fn refrain(&mut self, config: &Config, heir: Option<NodeId>, out: &mut Out) {
        if config.quorum.keeps(Rule::Courtesy) {
            self.refrains = true;
            let heir_first = heir.map_or(Span::ZERO, |_| self.heir_first(config));
            out.set_timer(Timer::Refrain, heir_first + self.pace(config).heartbeat * 2);
        }
    }

    /// So long everybody else waits for an heir.
    pub(super) fn heir_first(&self, config: &Config) -> Span {
        config.timing.reply() + self.pace(config).heartbeat * 2
    }

    /// Q14: the leader of this term has asked it to stand. If it cannot, it is free of its promise at least.
    pub(super) fn on_timeout_now(
        &mut self,
        config: &Config,
        from: NodeId,
        term: Epoch,
        (cause, preference): (Cause, Option<Preference>),
        out: &mut Out,
    ) {
        if term != self.ballot.term() || !matches!(self.duty, Duty::Follow) {
            return;
        }
        out.rule("Q14");
        self.standings.heed(preference, false);
        if std::mem::take(&mut self.refrains) {
            out.cancel_timer(Timer::Refrain);
        }
        if !config.quorum.keeps(Rule::Courtesy) {
            self.stand_boldly(config, Some(term), out);
        } else if self.would_lead(config) {
            self.stand(config, Some(term), Why::HandedOver { by: from, cause }, out);
        }
        if matches!(self.duty, Duty::Follow) {
            self.be_released(config, from, None, out);
        }
    }

    /// Q12: a better member asks for the office, with the word of a majority that the leader is to go. If the leader has
    /// led for a while, it hands over to the best of those that could lead and have been better than it for a while,
    /// whoever asked: the best may not ask itself. The one that asked has been patient.
    pub(super) fn on_preempt(
        &mut self,
        config: &Config,
        from: NodeId,
        merit: Merit,
        out: &mut Out,
    ) {
        self.standings.learn(config, from, merit);
        let Duty::Lead(office) = &self.duty else { return };
        if office.retiring.is_some() {
            return;
        }
        let (patience, heartbeat) = (config.timing.preempt, self.pace(config).heartbeat);
        let preferred = self.standings.preferred();
        let is_due = |id: NodeId| match config.quorum.preemption {
            _ if preferred == Some(id) => true,
            Preemption::Never => false,
            Preemption::Delayed => {
                let has_waited = id == from || office.is_long_better(id, patience, heartbeat);
                office.seasoned && has_waited
            }
            Preemption::Immediate => true,
        };
        let better = config.members.others(self.id).filter(|&id| {
            is_due(id) && self.is_fit(config, id) && self.standings.surpasses(config, id, self.id)
        });
        if let Some(heir) = better.max_by_key(|&id| self.standings.precedence(config, id)) {
            let cause = if preferred == Some(heir) { Cause::Preferred } else { Cause::Outranked };
            // Refused only if it has no lease, and then there is nothing to hand over.
            let _ = self.retire(config, Some(heir), cause, out);
        }
    }

    fn drain(&mut self, config: &Config, how: Drain, out: &mut Out) -> Result<(), Refusal> {
        if self.rejoining.is_some() {
            // It would store that it has never voted.
            return Err(Refusal::Rejoining);
        }
        let eligible = |id| self.standings.merit(config, id).eligible;
        let somebody = match self.leads() {
            true => self.best_heir(config).is_some(),
            false => config.members.others(self.id).any(eligible),
        };
        if !somebody && how != Drain::Never {
            return Err(Refusal::NobodyElse);
        }
        self.ballot.stored_mut().drained = Some(how);
        self.store(out);
        self.stand_back(config, out);
        self.give_up_takeover(out);
        self.drop_candidacy(out);
        self.await_turn(config, out);
        self.leave_if_drained(config, out);
        Ok(())
    }

    /// A drained leader transfers leadership as soon as it has a lease to give up and another member is fit; one that must
    /// not lead at all does not wait for a fit member. Until then the drain can be taken back.
    pub(super) fn leave_if_drained(&mut self, config: &Config, out: &mut Out) {
        let Duty::Lead(office) = &self.duty else { return };
        let leaves = match self.ballot.stored().drained {
            None => false,
            Some(Drain::Never) => true,
            Some(Drain::For(_) | Drain::UntilUndone) => self.best_heir(config).is_some(),
        };
        if leaves && office.retiring.is_none() {
            // Refused only if it has no lease yet: then the next acknowledgement tries again.
            let _ = self.retire(config, None, Cause::Drained, out);
        }
    }

    /// It is drained: it says that it would not lead, until it is told otherwise or the time is over.
    pub(super) fn stand_back(&mut self, config: &Config, out: &mut Out) {
        self.amend(config, |merit| merit.eligible = false);
        match self.ballot.stored().drained {
            Some(Drain::For(span)) => out.set_timer(Timer::Drain, span),
            _ => out.cancel_timer(Timer::Drain),
        }
    }

    pub(super) fn undrain(&mut self, config: &Config, out: &mut Out) {
        if self.ballot.stored_mut().drained.take().is_none() {
            return;
        }
        self.store(out);
        out.cancel_timer(Timer::Drain);
        let reluctant = config.quorum.reluctant.contains(self.id);
        self.amend(config, |merit| merit.eligible = !reluctant);
        self.consider_takeover(config, out);
        self.await_turn(config, out);
    }

    fn prefer(
        &mut self,
        config: &Config,
        member: NodeId,
        lasting: Span,
        out: &mut Out,
    ) -> Result<(), Refusal> {
        if !self.is_leased() {
            return Err(Refusal::NotLeading);
        }
        let eligible =
            config.members.contains(member) && self.standings.merit(config, member).eligible;
        // What was given can be taken back, whatever has become of the member.
        if !eligible && lasting > Span::ZERO {
            return Err(Refusal::Unfit(member));
        }
        self.standings.prefer(self.ballot.term(), member, lasting);
        // Should it hand over before its next heartbeat, the others know already. But who has not answered the last one yet
        // would seem not to be heard if the next ones came too soon.
        if matches!(&self.duty, Duty::Lead(office) if office.lease == Some(office.newest)) {
            self.beat(config, out);
        }
        Ok(())
    }
}
