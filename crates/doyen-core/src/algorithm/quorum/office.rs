//! Leading: the lease, its rounds, and how it ends.
//!
//! Before a leader sends heartbeat round *r* it arms the timer `Lease(r)`. When a majority, itself included, has
//! acknowledged round *r* or a later one, that timer is its lease: it leads until the timer fires. So a lease counts
//! from the time of *sending*, by construction and without a clock, and the host publishes that timer's deadline. An
//! acknowledgement for a round whose timer has fired gives nothing.
//!
//! One that is elected and has no lease when it sends its second heartbeat is perhaps not heard. It goes on for two
//! promises' time, but keeps nobody from asking: it says "higher" no more.
//!
//! **A lapse is not a change.** A leader whose lease lapses holds none, acts no more and votes freely. But it goes on
//! asking in the same term, for two heartbeats and a round trip at most, until it hears of a later term: a stall of the
//! machine or a few lost datagrams then cost a *gap*, not an election. This departs from rules 7 and 9 of the
//! specification (5.3), as its amendment 7.3 wants it. It is safe, since nothing in the proof needs a lease to be without
//! gaps: a resumed lease rests on a round that was sent after the lapsed one and that a majority acknowledged, each of
//! which had stored no later term then and votes for nobody else until its vote lease is over. A majority that elected
//! another leader meanwhile would share a member with it, which refuses the earlier term. The leader itself is no
//! exception: once it has voted in a later term it leads no longer in this one. Two things must hold for that. A round
//! whose timer has fired never counts again, the lapsed one included; and those who act on the lease compare its deadline
//! with the clock. The third gap within one tenure ends the leadership as a loss: a leader that keeps lapsing should not
//! lead.
//!
//! A leader that steps down for another reason while its lease runs (it hears of a later term) acts no more, but those it
//! told "until then" may: so its own lease binds it like a vote lease until it has run out, and until then it acknowledges
//! no other leader.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::members::{Epoch, NodeId};
use crate::protocol::Notice;
use crate::story::{Cause, Change, Loss, Why};
use crate::time::Span;

use super::message::{Body, Misses, Round};
use super::rules::Rule;
use super::settings::Preemption;
use super::standing::{Merit, penalty};
use super::{Duty, Out, Quorum, Timer};

/// What a leader keeps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Office {
    pub(super) why: Why,
    /// The last heartbeat.
    pub(super) newest: Round,
    /// The oldest whose lease timer may still count.
    pub(super) oldest: Round,
    /// The last heartbeat that each follower acknowledged.
    pub(super) acks: BTreeMap<NodeId, Round>,
    /// The one on which the lease rests.
    pub(super) lease: Option<Round>,
    /// The longest vote lease that it has asked for in this term. It never asks for a shorter one again: a follower that
    /// restarted and forgot the longer one is bound by the next heartbeat alone.
    asked: Span,
    /// How often the lease has lapsed within this tenure.
    pub(super) gaps: u8,
    /// It has led as long as it may without being disturbed.
    pub(super) seasoned: bool,
    /// It is about to hand over.
    pub(super) retiring: Option<Retiring>,
    /// Who could lead and is better by the margin, and since which round without a break.
    better: BTreeMap<NodeId, Round>,
}

/// The gap that ends a leadership.
const LAST_GAP: u8 = 3;

/// A leader on its way out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Retiring {
    pub(super) heir: Option<NodeId>,
    pub(super) cause: Cause,
}

impl Office {
    fn new(why: Why) -> Self {
        Self {
            why,
            newest: Round::default(),
            oldest: Round::FIRST,
            acks: BTreeMap::new(),
            lease: None,
            asked: Span::ZERO,
            gaps: 0,
            seasoned: false,
            retiring: None,
            better: BTreeMap::new(),
        }
    }

    /// The latest round that `majority` members have acknowledged, the leader's own among them.
    fn agreed(&self, majority: usize) -> Option<Round> {
        let mut rounds: Vec<Round> = self.acks.values().copied().collect();
        rounds.push(self.newest);
        rounds.sort_unstable_by(|a, b| b.cmp(a));
        rounds.get(majority - 1).copied()
    }

    /// Whether `id` has acknowledged one of the last three heartbeats.
    pub(super) fn hears_from(&self, id: NodeId) -> bool {
        self.acks.get(&id).is_some_and(|round| round.0 + 2 >= self.newest.0)
    }

    /// Whether `id` could lead and has been better for `span`, counted in heartbeats of this length.
    pub(super) fn is_long_better(&self, id: NodeId, span: Span, heartbeat: Span) -> bool {
        let rounds = |since: &Round| self.newest.0 - since.0;
        self.better.get(&id).is_some_and(|since| heartbeat * rounds(since) >= span)
    }

    /// The rounds whose lease timers are armed.
    fn armed(&self) -> impl Iterator<Item = Round> + use<> {
        (self.oldest.0..=self.newest.0).map(Round)
    }
}

impl Quorum {
    /// Q6: a majority has voted for it. It has no lease yet.
    pub(super) fn take_office(&mut self, config: &Config, why: Why, out: &mut Out) {
        out.rule("Q6");
        out.cancel_timer(Timer::Candidacy);
        self.leader = Some(self.id);
        self.forget_the_search();
        self.heir = false;
        self.duty = Duty::Lead(Box::new(Office::new(why)));
        out.set_timer(Timer::Confirmation, self.pace(config).promise * 2);
        self.beat(config, out);
        if !config.quorum.keeps(Rule::VoteIsNoLease) {
            self.hold(config, Round::FIRST, out);
        }
    }

    /// Q7: asks everybody to renew its lease. The lease counts from here.
    pub(super) fn beat(&mut self, config: &Config, out: &mut Out) {
        let pace = self.pace(config);
        let Duty::Lead(office) = &mut self.duty else { return };
        office.newest = office.newest.next();
        office.asked = pace.promise.max(office.asked);
        let (round, why, mut promise) = (office.newest, office.why, office.asked);
        let mut length =
            if config.quorum.keeps(Rule::DriftMargin) { pace.lease() } else { pace.promise };
        if !config.quorum.keeps(Rule::VoteLeaseNeverShrinks) && office.lease.is_some() {
            [promise, length] = [promise, length].map(|span| Span::from_nanos(span.as_nanos() / 4));
        }
        out.set_timer(Timer::Lease(round), length);
        let (merit, preference) = (self.merit(config), self.standings.preference());
        let misses = self.reach.misses();
        self.tell_all(
            config,
            &Body::Heartbeat { round, promise, merit, preference, why, misses },
            out,
        );
        out.set_timer(Timer::Heartbeat, pace.heartbeat);
        self.note_better(config);
        self.renew(config, out);
    }

    /// Takes note of who could lead in its place and has been better since when, where that is waited for.
    fn note_better(&mut self, config: &Config) {
        if config.quorum.preemption != Preemption::Delayed {
            return;
        }
        let is_better = |id: &NodeId| {
            self.is_fit(config, *id) && self.standings.surpasses(config, *id, self.id)
        };
        let better: Vec<NodeId> = config.members.others(self.id).filter(is_better).collect();
        let Duty::Lead(office) = &mut self.duty else { return };
        let since = |id: NodeId| office.better.get(&id).copied().unwrap_or(office.newest);
        office.better = better.into_iter().map(|id| (id, since(id))).collect();
    }

    /// Q9: a follower has promised.
    pub(super) fn on_ack(
        &mut self,
        config: &Config,
        from: NodeId,
        (round, merit, misses): (Round, Merit, &Misses),
        out: &mut Out,
    ) {
        self.standings.learn(config, from, merit);
        self.note_misses(config, from, misses);
        let Duty::Lead(office) = &mut self.duty else { return };
        if round > office.newest {
            return; // nobody acknowledges what has not been said
        }
        let last = office.acks.entry(from).or_default();
        *last = round.max(*last);
        self.renew(config, out);
        self.leave_if_drained(config, out);
    }

    /// The lease moves on to the latest round that a majority has acknowledged.
    fn renew(&mut self, config: &Config, out: &mut Out) {
        let Duty::Lead(office) = &self.duty else { return };
        let Some(round) = office.agreed(config.quorum.majority(config.members.len())) else {
            return;
        };
        if round >= office.oldest && Some(round) > office.lease {
            self.hold(config, round, out);
        }
    }

    /// From now on the lease rests on `round`.
    fn hold(&mut self, config: &Config, round: Round, out: &mut Out) {
        let pace = self.pace(config);
        let Duty::Lead(office) = &mut self.duty else { return };
        let begins = office.lease.is_none();
        let is_oldest = office.oldest == round;
        for older in office.armed().take_while(|&older| older < round) {
            out.cancel_timer(Timer::Lease(older));
        }
        office.oldest = round;
        office.lease = Some(round);
        // Its timer has fired, so without this rule it would be armed once more.
        let lapsed = begins && office.gaps > 0 && is_oldest;
        let taken_again = lapsed && !config.quorum.keeps(Rule::LapsedRoundIsOver);
        if !config.quorum.keeps(Rule::LeaseFromSending) || taken_again {
            out.set_timer(Timer::Lease(round), pace.lease());
        }
        if !begins {
            return;
        }
        out.rule("Q9");
        out.cancel_timer(Timer::Confirmation);
        let term = self.ballot.term();
        let change = if office.gaps > 0 {
            Change::Resumed { leader: self.id, term }
        } else {
            // A tenure protects a leader, and redeems one against whom something is held.
            if config.quorum.counts_tenures() {
                out.set_timer(Timer::Tenure, config.quorum.tenure);
            }
            Change::Took { term, why: office.why }
        };
        out.inform(Notice::Changed(change));
    }

    /// The time of a round is over: perhaps that of its lease, or of one that it kept to itself.
    pub(super) fn on_lease_over(&mut self, config: &Config, round: Round, out: &mut Out) {
        if self.lingering == Some(round) {
            self.lingering = None;
            return self.await_turn(config, out);
        }
        let Duty::Lead(office) = &mut self.duty else { return };
        if office.lease != Some(round) {
            office.oldest = office.oldest.max(round.next());
            return;
        }
        out.rule("Q7");
        office.lease = None;
        // How many gaps are too many is courtesy: a bold leader may go on after any number of them.
        let counted = if config.quorum.keeps(Rule::Courtesy) { LAST_GAP } else { 1 };
        office.gaps = (office.gaps + 1).min(counted);
        if config.quorum.keeps(Rule::LapsedRoundIsOver) {
            office.oldest = round.next();
        }
        if office.gaps >= LAST_GAP || !config.quorum.keeps(Rule::LapsedAsksOn) {
            self.leave_office(config, Loss::NoMajority, out);
            return self.await_turn(config, out);
        }
        if office.gaps == 1 && (office.seasoned || !config.quorum.counts_tenures()) {
            // Gaps are counted within one tenure.
            out.set_timer(Timer::Tenure, config.quorum.tenure);
        }
        let heartbeat = self.pace(config).heartbeat;
        let patience = config.quorum.patience_with_a_gap(&config.timing, heartbeat);
        out.set_timer(Timer::Confirmation, patience);
        out.inform(Notice::Changed(Change::Lapsed { term: self.ballot.term() }));
    }

    /// Elected, but nobody confirms it; or its lease has lapsed and does not come back.
    pub(super) fn on_unconfirmed(&mut self, config: &Config, out: &mut Out) {
        let Duty::Lead(office) = &self.duty else { return };
        if office.lease.is_none() {
            out.rule("Q7");
            let loss = if office.gaps > 0 { Loss::NoMajority } else { Loss::NeverConfirmed };
            self.leave_office(config, loss, out);
            self.await_turn(config, out);
        }
    }

    /// Q10: an answer to what it said as a candidate or a leader shows that there is a later term. One that follows is
    /// not concerned: it would only refuse its leader's next heartbeat.
    pub(super) fn on_later_term(
        &mut self,
        config: &Config,
        from: NodeId,
        term: Epoch,
        out: &mut Out,
    ) {
        let concerned =
            matches!(self.duty, Duty::Stand(_) | Duty::Lead(_)) || self.is_bold_and_free(config);
        if concerned && term > self.ballot.term() {
            self.step_down(config, term, from, out);
            self.await_turn(config, out);
        }
    }

    /// `from` said something in an earlier term, and learns of this one.
    pub(super) fn refuse(&mut self, config: &Config, from: NodeId, out: &mut Out) {
        if config.quorum.keeps(Rule::Courtesy) {
            self.tell(from, Body::Nack, out);
        }
    }

    /// Q10: `from` knows of a later term. Whatever this member was, it follows now.
    pub(super) fn step_down(&mut self, config: &Config, term: Epoch, from: NodeId, out: &mut Out) {
        if term <= self.ballot.term() {
            return;
        }
        out.rule("Q10");
        self.leave_office(config, Loss::LaterTerm { term, from }, out);
        self.drop_candidacy(out);
        self.ballot.adopt(term);
        self.store(out);
        self.settle_suspicion(config, out);
    }

    /// There is a later term than that of the leader whose vote lease ran out here: it was no gap.
    pub(super) fn settle_suspicion(&mut self, config: &Config, out: &mut Out) {
        if let Some(leader) = self.standings.take_suspect() {
            self.blame(config, leader, out);
        }
    }

    /// It leads no longer. Its lease, if one runs, binds it on; unless it hands over, when there is nothing left that
    /// anybody could act on.
    pub(super) fn leave_office(&mut self, config: &Config, loss: Loss, out: &mut Out) {
        let Duty::Lead(office) = &self.duty else { return };
        let hands_over = matches!(loss, Loss::HandedOver { .. });
        let binds = !hands_over && config.quorum.keeps(Rule::LeaseBindsItsHolder);
        let kept = office.lease.filter(|_| binds);
        for round in office.armed().filter(|&round| Some(round) != kept) {
            out.cancel_timer(Timer::Lease(round));
        }
        for timer in [Timer::Heartbeat, Timer::Confirmation, Timer::Tenure] {
            out.cancel_timer(timer);
        }
        self.lingering = kept;
        self.leader = None;
        self.duty = Duty::Follow;
        self.ballot.withdraw();
        out.inform(Notice::Changed(Change::Lost { term: self.ballot.term(), loss }));
        if !hands_over {
            self.blame(config, self.id, out);
        }
    }

    /// Q15: another leads. If this member was the last leader's heir, it could not win.
    pub(super) fn admit_failure(&mut self, config: &Config, out: &mut Out) {
        if std::mem::take(&mut self.heir) && config.quorum.keeps(Rule::FailedHeirIsBlamed) {
            out.rule("Q15");
            self.blame(config, self.id, out);
        }
    }

    /// It has led as long as it may without being disturbed, or as long since a gap.
    pub(super) fn on_tenure_over(&mut self, config: &Config, out: &mut Out) {
        let Duty::Lead(office) = &mut self.duty else { return };
        office.seasoned = true;
        // The gap that it is in is the first of the next tenure.
        let in_gap = office.gaps > 0 && office.lease.is_none();
        office.gaps = u8::from(in_gap);
        self.standings.redeem(self.id);
        if in_gap {
            out.set_timer(Timer::Tenure, config.quorum.tenure);
        }
    }

    /// `id` has lost its office and did not want to: that counts against it for a while.
    pub(super) fn blame(&mut self, config: &Config, id: NodeId, out: &mut Out) {
        if config.quorum.forgiveness == Span::ZERO {
            return;
        }
        let losses = self.standings.blame(id);
        if !config.quorum.keeps(Rule::PenaltiesGrow) {
            self.standings.redeem(id);
        }
        out.set_timer(Timer::Forgive(id), penalty(config, losses));
    }

    /// Others know of so many losses of `id` that count. They do here too, for as long as the last of them.
    pub(super) fn hold_against(&mut self, config: &Config, id: NodeId, losses: u8, out: &mut Out) {
        if config.quorum.forgiveness > Span::ZERO && self.standings.hold(id, losses) {
            out.set_timer(Timer::Forgive(id), penalty(config, losses));
        }
    }

    /// A while has gone by.
    pub(super) fn forgive(&mut self, config: &Config, id: NodeId, out: &mut Out) {
        let left = self.standings.forgive(id);
        if left > 0 {
            out.set_timer(Timer::Forgive(id), penalty(config, left));
        }
        self.consider_takeover(config, out);
    }

    /// Whether it was elected and seems not to be heard: its first heartbeat had time enough to be acknowledged, and it
    /// has no lease. Somebody who asks to be elected then should not be kept from it.
    pub(super) fn is_unheard(&self, config: &Config) -> bool {
        let unheard = |office: &Office| office.lease.is_none() && office.newest > Round::FIRST;
        let sees_it = config.quorum.keeps(Rule::UnheardIsNobodysBetter);
        sees_it && matches!(&self.duty, Duty::Lead(office) if unheard(office))
    }

    /// Whether this member's lease is running.
    pub(super) fn is_leased(&self) -> bool {
        matches!(&self.duty, Duty::Lead(office) if office.lease.is_some())
    }
}
