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
//! A leader whose lease runs out has lost its office and needs a new term. One that steps down for another reason
//! while its lease runs (it hears of a later term) acts no more, but those it told "until then" may: so its own lease
//! binds it like a promise until it has run out.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::members::{Epoch, NodeId};
use crate::protocol::Notice;
use crate::story::{Cause, Change, Loss, Why};
use crate::time::Span;

use super::message::{Body, Misses, Round};
use super::rules::Rule;
use super::settings::{Preemption, Settings};
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
    /// It has led as long as it may without being disturbed.
    pub(super) seasoned: bool,
    /// It is about to hand over.
    pub(super) retiring: Option<Retiring>,
}

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
            seasoned: false,
            retiring: None,
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
        let (round, why) = (office.newest, office.why);
        let length =
            if config.quorum.keeps(Rule::DriftMargin) { pace.lease() } else { pace.promise };
        out.set_timer(Timer::Lease(round), length);
        let (merit, preference) = (self.merit(config), self.standings.preference());
        let (promise, misses) = (pace.promise, self.reach.misses());
        self.tell_all(
            config,
            &Body::Heartbeat { round, promise, merit, preference, why, misses },
            out,
        );
        out.set_timer(Timer::Heartbeat, pace.heartbeat);
        self.renew(config, out);
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
        let first = office.lease.is_none();
        for older in office.armed().take_while(|&older| older < round) {
            out.cancel_timer(Timer::Lease(older));
        }
        office.oldest = round;
        office.lease = Some(round);
        if !config.quorum.keeps(Rule::LeaseFromSending) {
            out.set_timer(Timer::Lease(round), pace.lease());
        }
        if first {
            out.rule("Q9");
            out.cancel_timer(Timer::Confirmation);
            // A tenure protects a leader, and redeems one against whom something is held.
            let Settings { preemption, forgiveness, tenure, .. } = config.quorum;
            if preemption == Preemption::Delayed || forgiveness > Span::ZERO {
                out.set_timer(Timer::Tenure, tenure);
            }
            let change = Change::Took { term: self.ballot.term(), why: office.why };
            out.inform(Notice::Changed(change));
        }
    }

    /// The time of a round is over: perhaps that of its lease, or of one that it kept to itself.
    pub(super) fn on_lease_over(&mut self, config: &Config, round: Round, out: &mut Out) {
        if self.lingering == Some(round) {
            self.lingering = None;
            return self.await_turn(config, out);
        }
        let Duty::Lead(office) = &mut self.duty else { return };
        if office.lease == Some(round) {
            office.lease = None;
            out.rule("Q7");
            self.leave_office(config, Loss::NoMajority, out);
            self.await_turn(config, out);
        } else {
            office.oldest = office.oldest.max(round.next());
        }
    }

    /// Elected, but nobody confirms it.
    pub(super) fn on_unconfirmed(&mut self, config: &Config, out: &mut Out) {
        if matches!(&self.duty, Duty::Lead(office) if office.lease.is_none()) {
            out.rule("Q7");
            self.leave_office(config, Loss::NeverConfirmed, out);
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
    pub(super) fn refuse(&self, config: &Config, from: NodeId, out: &mut Out) {
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

    /// It has led as long as it may without being disturbed.
    pub(super) fn on_tenure_over(&mut self) {
        if let Duty::Lead(office) = &mut self.duty {
            office.seasoned = true;
            self.standings.redeem(self.id);
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
