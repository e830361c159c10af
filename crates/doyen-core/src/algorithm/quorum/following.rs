//! Following: the promise, its end, and the wish to take over.
//!
//! Who acknowledges a heartbeat promises to vote for nobody else for `Λ_F`, the length that the *leader* asks for:
//! that is what its lease rests on. The longest such promise is stored before the acknowledgement leaves, for a
//! restarted member must wait it out.
//!
//! A promise to the leader of a later term takes the place of an earlier one, even a longer one: once a later term has
//! a leader, no lease of an earlier one is running any more. For the same reason the first heartbeat that a member accepts
//! after a restart ends its hold-down. Either the heartbeat is of a later term than whatever it had promised; or it is of
//! the same leader, which never shortens the vote lease that it asks for within a term, so that the new promise covers the
//! one that was forgotten.
//!
//! **The longest vote lease falls again.** What is stored as the longest falls to what is given, asked for or configured
//! now, when its whole time has passed in one life without one that long ([`Timer::Longest`]): then none runs any more.

use crate::config::Config;
use crate::members::{Epoch, NodeId};
use crate::protocol::Notice;
use crate::story::{Change, Why};
use crate::time::Span;

use super::message::{Body, Misses, Round};
use super::rules::Rule;
use super::settings::{LONGEST_PROMISE, Preemption};
use super::standing::{Merit, Preference};
use super::{Duty, Out, Quorum, Timer, doubled, once_more};

/// What a member has promised.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Promise {
    /// To the leader of this term.
    pub(super) term: Epoch,
    /// For so long, from the last heartbeat.
    pub(super) length: Span,
}

impl Promise {
    pub(super) fn new(term: Epoch, length: Span) -> Self {
        Self { term, length }
    }
}

/// A heartbeat's fields.
pub(super) struct Beat<'a> {
    pub(super) round: Round,
    pub(super) promise: Span,
    pub(super) merit: Merit,
    pub(super) preference: Option<Preference>,
    pub(super) why: Why,
    pub(super) misses: &'a Misses,
}

impl Quorum {
    /// Q8: `from` leads.
    pub(super) fn on_heartbeat(
        &mut self,
        config: &Config,
        from: NodeId,
        term: Epoch,
        beat: &Beat<'_>,
        out: &mut Out,
    ) {
        if term < self.ballot.term() && config.quorum.keeps(Rule::NoStaleHeartbeat) {
            out.rule("Q8a");
            return self.refuse(config, from, out);
        }
        // In one term only one can lead; and no configuration that is checked at start asks for such a promise.
        if self.leads() && term == self.ballot.term() || beat.promise > LONGEST_PROMISE {
            return;
        }
        if self.has_not_answered(from) {
            return self.greet(from, out);
        }
        out.rule("Q8");
        let news = self.leader != Some(from) || term > self.ballot.term();
        let later = term > self.ballot.term();
        let resumes = self.lapsed == Some((from, term));
        self.step_down(config, term, from, out);
        self.drop_candidacy(out);
        if self.lingering.is_some() {
            return; // its own lease runs on, and it helps nobody else to one
        }
        self.standings.take_suspect();
        self.forget_the_search();
        self.admit_failure(config, out);
        if config.quorum.pace_of(from).heartbeat * beat.round.0 > config.quorum.tenure {
            self.standings.redeem(from);
        }
        self.leader = Some(from);
        if later && !config.quorum.keeps(Rule::LongestFallsLate) {
            self.ballot.stored_mut().longest = self.pace(config).promise;
            self.store(out);
        }
        self.make_promise(config, term, beat.promise, out);
        self.end_hold_down(out);
        let merit = self.merit(config);
        let misses = self.reach.misses();
        self.tell(from, Body::Ack { round: beat.round, merit, misses }, out);
        if news {
            let change = match resumes {
                true => Change::Resumed { leader: from, term },
                false => Change::Follows { leader: from, term, why: beat.why },
            };
            out.inform(Notice::Changed(change));
        }
        self.note_misses(config, from, beat.misses);
        self.standings.learn(config, from, beat.merit);
        let preferred = self.standings.preferred();
        let unknown = self.standings.heed(beat.preference, news);
        if let Some(preference) = unknown {
            self.tell(from, Body::Prefer { preference }, out);
        }
        // Patience with a leader goes on while it is the lower one, whatever is measured meanwhile.
        if news || self.standings.preferred() != preferred {
            self.give_up_takeover(out);
        }
        self.consider_takeover(config, out);
    }

    fn make_promise(&mut self, config: &Config, term: Epoch, asked: Span, out: &mut Out) {
        let asked = match config.quorum.keeps(Rule::PromiseIsTheLeaders) {
            true => asked,
            false => self.pace(config).promise,
        };
        let standing = self.promise.filter(|promise| promise.term == term);
        let length = standing.map_or(asked, |promise| promise.length.max(asked));
        if length > self.ballot.stored().longest {
            self.ballot.stored_mut().longest = length;
            self.store(out);
        }
        if config.quorum.keeps(Rule::Promise) {
            self.promise = Some(Promise { term, length });
            out.set_timer(Timer::Promise, length);
        }
        // After the vote lease's own timer: if both are due, the lease must be over before the longest can fall.
        if length == self.ballot.stored().longest {
            self.watch_longest(config, out);
        }
    }

    /// A vote lease as long as the longest may run from now on. When its time has passed without another one, the longest
    /// falls; it never falls below what is configured.
    pub(super) fn watch_longest(&mut self, config: &Config, out: &mut Out) {
        let longest = self.ballot.stored().longest;
        if longest > self.pace(config).promise {
            out.set_timer(Timer::Longest, longest);
        }
    }

    /// The whole time of the longest vote lease has passed without one that long.
    pub(super) fn on_longest_over(&mut self, config: &Config, out: &mut Out) {
        if self.rejoining.is_some() {
            return; // it has nothing yet that it may store
        }
        let given = self.promise.map_or(Span::ZERO, |promise| promise.length);
        self.ballot.stored_mut().longest = given.max(self.pace(config).promise);
        self.store(out);
        self.watch_longest(config, out);
    }

    /// Nothing is promised any more.
    pub(super) fn end_promise(&mut self, out: &mut Out) {
        if self.promise.take().is_some() {
            out.cancel_timer(Timer::Promise);
        }
        self.give_up_takeover(out);
    }

    /// The leader has fallen silent.
    pub(super) fn on_promise_over(&mut self, config: &Config, out: &mut Out) {
        out.rule("Q2");
        self.promise = None;
        self.give_up_takeover(out);
        if let Some(leader) = self.leader.take() {
            let change = Change::Silent { leader, term: self.ballot.term() };
            out.inform(Notice::Changed(change));
            self.lapsed = Some((leader, self.ballot.term()));
            self.on_silence(config, leader, out);
            if config.quorum.forgiveness > Span::ZERO {
                self.standings.suspect(leader);
            }
        }
        self.await_turn(config, out);
    }

    /// Q14: the leader of `term` has handed over to `heir`, and releases this member from its promise.
    pub(super) fn on_release(
        &mut self,
        config: &Config,
        from: NodeId,
        term: Epoch,
        heir: Option<NodeId>,
        out: &mut Out,
    ) {
        let own = self.ballot.term();
        let meant = term == own || term < own && !config.quorum.keeps(Rule::ReleaseIsForItsTerm);
        if self.leader == Some(from) && meant {
            out.rule("Q14");
            self.be_released(config, from, heir, out);
        }
    }

    /// `leader` has given up its lease and holds nobody to a promise. Its heir is to go first.
    pub(super) fn be_released(
        &mut self,
        config: &Config,
        leader: NodeId,
        heir: Option<NodeId>,
        out: &mut Out,
    ) {
        self.end_promise(out);
        self.leader = None;
        self.lapsed = Some((leader, self.ballot.term()));
        let wait = heir.map_or(Span::ZERO, |_| self.heir_first(config));
        self.await_turn_after(config, wait.into(), out);
    }

    /// Q12: whether it would be better than its leader. Then it waits to see whether that lasts.
    pub(super) fn consider_takeover(&mut self, config: &Config, out: &mut Out) {
        match self.better_leader(config) {
            None => self.give_up_takeover(out),
            Some(_) if self.impatient || self.is_asking_to_take_over() => {}
            Some(_) => {
                self.impatient = true;
                out.set_timer(Timer::Takeover, self.patience(config));
            }
        }
    }

    /// Its leader, if this member would be better and may say so.
    fn better_leader(&self, config: &Config) -> Option<NodeId> {
        let leader = self.leader.filter(|&leader| leader != self.id)?;
        let allowed = config.quorum.preemption != Preemption::Never
            || self.standings.preferred() == Some(self.id);
        let free = matches!(self.duty, Duty::Follow) && !self.quarantined;
        let fit = allowed && self.would_lead(config) && free;
        (fit && self.standings.surpasses(config, self.id, leader)).then_some(leader)
    }

    /// How long it bears a lower leader: the best waits least, and whom the operator prefers not at all. But a leader
    /// may take long to stop what runs there, or have a reason of its own not to give in. So one that asks at once asks
    /// again after twice as long each time, until it is as patient as others.
    fn patience(&self, config: &Config) -> Span {
        let before_it = self.standings.above(config, self.id).count() as u64;
        let usual = config.timing.preempt * (before_it + 1);
        let at_once = config.quorum.preemption == Preemption::Immediate
            || self.standings.preferred() == Some(self.id);
        let heartbeat = self.pace(config).heartbeat;
        match at_once {
            true if config.quorum.keeps(Rule::ClaimsRarely) => {
                (heartbeat * doubled(self.claims)).min(usual.max(heartbeat))
            }
            true => heartbeat,
            false => usual,
        }
    }

    fn is_asking_to_take_over(&self) -> bool {
        self.asking.as_ref().is_some_and(|asking| asking.takeover.is_some())
    }

    /// Its patience is over: it asks everybody whether it may take over.
    pub(super) fn on_takeover_due(&mut self, config: &Config, out: &mut Out) {
        self.impatient = false;
        if let Some(leader) = self.better_leader(config)
            && self.asking.is_none()
        {
            self.claims = once_more(self.claims);
            self.ask(config, Some(leader), out);
        }
    }

    /// Everybody has been asked. With a majority behind it, it tells the leader; and in any case tries again later,
    /// should nothing come of it.
    pub(super) fn claim_office(
        &mut self,
        config: &Config,
        leader: NodeId,
        backed: bool,
        out: &mut Out,
    ) {
        if backed && self.leader == Some(leader) {
            out.rule("Q12");
            let merit = self.merit(config);
            self.tell(leader, Body::Preempt { merit }, out);
        }
        self.consider_takeover(config, out);
    }

    pub(super) fn give_up_takeover(&mut self, out: &mut Out) {
        self.claims = 0;
        if std::mem::take(&mut self.impatient) {
            out.cancel_timer(Timer::Takeover);
        }
        if self.is_asking_to_take_over() {
            self.asking = None;
            out.cancel_timer(Timer::Collection);
        }
    }
}
