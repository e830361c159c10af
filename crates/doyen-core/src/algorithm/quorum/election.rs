//! Standing for election: whose turn it is, the question before, and the vote.
//!
//! A member whose bonds have all ended asks everybody whether it *may* stand before it opens a term. Nothing changes
//! at those who are asked. They say no if they are bound to a leader, so one that merely cannot hear the leader
//! disturbs nobody; and a better one says "higher" and stands itself, which is the bully's OK. The asker then lets it
//! go first, but only so often: priority is a courtesy here, never a veto.
//!
//! Members wait for their turn by rank, the best first, so that one candidate is the rule. A member gives way once to
//! each that asks before its turn: a second time would let one that can never win keep all others from trying.
//!
//! Who is refused by those who are bound, because it alone cannot hear the leader, asks again, for its leader may have
//! gone meanwhile; from the second time on it waits twice as long each time. How long at most follows from L1: it may
//! be the only one that can lead, and have asked for the last time just before the others were free
//! ([`Settings::longest_retry`](super::settings::Settings::longest_retry)).

use crate::config::Config;
use crate::members::{Epoch, NodeId, PeerSet};
use crate::protocol::Notice;
use crate::story::{Loss, Why};
use crate::time::{Delay, Span};

use super::ballot::Drain;
use super::message::{Answer, Body};
use super::rules::Rule;
use super::standing::Merit;
use super::{Duty, Out, Quorum, Timer, doubled, once_more};

/// A question that a member has put to all others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Asking {
    number: u32,
    /// From whom it would take over; it wants to be elected if from nobody.
    pub(super) takeover: Option<NodeId>,
    force: bool,
    answered: PeerSet,
    yes: PeerSet,
    outranked: bool,
    /// Somebody is bound to a leader.
    refused: bool,
}

impl Quorum {
    /// Whether this member would lead.
    pub(super) fn would_lead(&self, config: &Config) -> bool {
        let witness = config.quorum.witnesses.contains(self.id);
        let eligible =
            self.merit(config).eligible || witness && !config.quorum.keeps(Rule::WitnessNeverLeads);
        eligible && !self.refrains
    }

    /// Whether this member may be elected: it would lead, or it is a last resort.
    pub(super) fn may_stand(&self, config: &Config) -> bool {
        self.would_lead(config) || self.is_last_resort(config) && !self.refrains
    }

    /// Whether it is drained, but may lead while every other member that could is drained too. It asks after everybody's
    /// turn; any member that it reaches and that could lead answers "higher" and stands itself.
    fn is_last_resort(&self, config: &Config) -> bool {
        let drained = self.ballot.stored().drained;
        let spared = matches!(drained, Some(Drain::UntilUndone | Drain::For(_)));
        let quorum = &config.quorum;
        spared && !quorum.witnesses.contains(self.id) && !quorum.reluctant.contains(self.id)
    }

    /// Whether nothing keeps it from asking.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.duty, Duty::Follow) && self.asking.is_none() && !self.bound(None)
    }

    /// Q2: nothing binds it any more. It waits for its turn.
    pub(super) fn await_turn(&mut self, config: &Config, out: &mut Out) {
        self.await_turn_after(config, Span::ZERO.into(), out);
    }

    /// The same, `base` later.
    pub(super) fn await_turn_after(&mut self, config: &Config, base: Delay, out: &mut Out) {
        if !self.is_idle() || !self.may_stand(config) || !config.quorum.keeps(Rule::Courtesy) {
            return;
        }
        let turn = self.turn(config);
        let after = Delay::between(base.min + turn, base.max + turn + config.quorum.jitter);
        out.set_timer(Timer::Election, after);
    }

    /// How long it lets those go first that are better.
    fn turn(&self, config: &Config) -> Span {
        if !self.would_lead(config) {
            return config.quorum.stagger * config.members.len() as u64 + self.heir_first(config);
        }
        let before = match self.reaches_majority(config, self.id) {
            true => self.better_ones(config).len(),
            // It could not win, as far as it knows. It may be wrong, so it asks; but last, for others would give way.
            false => config.members.len(),
        };
        config.quorum.stagger * before as u64
    }

    /// Who would lead better, except the one that has fallen silent.
    fn better_ones(&self, config: &Config) -> Vec<NodeId> {
        let gone = self.gone();
        self.standings.above(config, self.id).filter(|&id| Some(id) != gone).collect()
    }

    /// Who led last, and is not expected to answer.
    fn gone(&self) -> Option<NodeId> {
        self.lapsed.map(|(leader, _)| leader)
    }

    /// Its turn has come, or somebody on this machine misses the leader.
    pub(super) fn campaign(&mut self, config: &Config, out: &mut Out) {
        if self.is_idle() && self.may_stand(config) {
            out.election_started();
            match config.quorum.keeps(Rule::Courtesy) {
                true => self.ask(config, None, out),
                false => self.stand_boldly(config, None, out),
            }
        }
    }

    /// Asks everybody: "May I stand?", or "May I take over from `takeover`?"
    pub(super) fn ask(&mut self, config: &Config, takeover: Option<NodeId>, out: &mut Out) {
        out.rule(if takeover.is_some() { "Q12" } else { "Q2" });
        out.cancel_timer(Timer::Election);
        self.question = self.question.wrapping_add(1);
        let number = self.question;
        let force = self.deferrals >= config.quorum.deferrals && self.would_lead(config);
        let yes = [self.id].into_iter().collect();
        let answered = PeerSet::new();
        let (outranked, refused) = (false, false);
        self.asking = Some(Asking { number, takeover, force, answered, yes, outranked, refused });
        let merit = self.merit(config);
        self.tell_all(config, &Body::PreVote { number, merit, force, takeover }, out);
        out.set_timer(Timer::Collection, config.timing.reply());
        self.weigh(config, false, out);
    }

    /// Q3: `from` asks. The answer changes nothing here; but a better member that is idle stands itself, the first time.
    pub(super) fn on_pre_vote(
        &mut self,
        config: &Config,
        from: NodeId,
        term: Epoch,
        question: (u32, Merit, bool, Option<NodeId>),
        out: &mut Out,
    ) {
        out.rule("Q3");
        let (number, merit, force, takeover) = question;
        self.standings.learn(config, from, merit);
        let better = self.would_lead(config)
            && self.reaches_majority(config, self.id)
            && !self.is_unheard(config)
            && self.standings.outranks(config, self.id, from);
        let answer = match takeover {
            Some(leader)
                if self.leader == Some(leader)
                    && self.standings.surpasses(config, from, leader) =>
            {
                Answer::Yes
            }
            Some(_) => Answer::No,
            None if term < self.ballot.term() || self.bound(None) => Answer::No,
            None if better && !force => Answer::Higher,
            None => Answer::Yes,
        };
        self.tell(from, Body::PreAnswer { number, answer }, out);
        match answer {
            Answer::Higher if !self.tried => self.campaign(config, out),
            Answer::Yes if takeover.is_none() && self.yielded.insert(from) => {
                self.give_way(config, out);
            }
            _ => {}
        }
    }

    /// Lets another finish what it has begun before it is its own turn.
    fn give_way(&mut self, config: &Config, out: &mut Out) {
        let time = config.timing.reply() + self.pace(config).heartbeat * 2;
        self.await_turn_after(config, time.into(), out);
    }

    /// An answer has come. One that wants to be elected learns from it of a later term.
    pub(super) fn on_pre_answer(
        &mut self,
        config: &Config,
        from: NodeId,
        term: Epoch,
        (number, answer): (u32, Answer),
        out: &mut Out,
    ) {
        let Some(asking) = self.asking.as_mut().filter(|asking| asking.number == number) else {
            return;
        };
        asking.answered.insert(from);
        match answer {
            Answer::Yes => {
                asking.yes.insert(from);
            }
            Answer::Higher => asking.outranked = true,
            // Or it speaks in a later term, and that is all that is wrong.
            Answer::No => asking.refused |= term <= self.ballot.term(),
        }
        if asking.takeover.is_none() && self.ballot.adopt(term) {
            self.store(out);
            self.settle_suspicion(config, out);
        }
        self.weigh(config, false, out);
    }

    /// Weighs the answers, if there are enough of them or the time is up: every better member must have had the time to
    /// say so, but the one that has fallen silent is not waited for.
    pub(super) fn weigh(&mut self, config: &Config, time_is_up: bool, out: &mut Out) {
        let Some(asking) = &self.asking else { return };
        let won = asking.yes.len() >= config.quorum.majority(config.members.len());
        let outranked = asking.outranked && !asking.force;
        let mut better = self.better_ones(config).into_iter();
        let heard_out = asking.takeover.is_some() || better.all(|id| asking.answered.contains(id));
        if !time_is_up && !(heard_out && (won || outranked)) {
            return;
        }
        let (takeover, refused) = (asking.takeover, asking.refused);
        self.asking = None;
        out.cancel_timer(Timer::Collection);
        match takeover {
            Some(leader) => self.claim_office(config, leader, won, out),
            None if outranked => {
                self.deferrals = self.deferrals.saturating_add(1);
                self.try_later(config, out);
            }
            None if won => self.stand(config, None, Why::Elected { after: self.gone() }, out),
            None => {
                self.refusals = if refused { once_more(self.refusals) } else { 0 };
                self.try_later(config, out);
            }
        }
    }

    /// Q4: opens a term and asks for votes. `released`: the term whose leader has asked it to.
    pub(super) fn stand(
        &mut self,
        config: &Config,
        released: Option<Epoch>,
        why: Why,
        out: &mut Out,
    ) {
        if self.bound(released) || !self.may_stand(config) {
            return;
        }
        if !self.ballot.stand() {
            return out.inform(Notice::OutOfTerms);
        }
        out.rule("Q4");
        self.drop_candidacy(out);
        self.end_promise(out);
        self.leader = None;
        self.heir |= released.is_some() && config.quorum.keeps(Rule::Courtesy);
        // Should it win, what it then asks for must be waited out even if it restarts: a lease may be known to others.
        let promise = self.pace(config).promise;
        let longest = &mut self.ballot.stored_mut().longest;
        *longest = promise.max(*longest);
        self.store(out);
        self.settle_suspicion(config, out);
        self.duty = Duty::Stand(why);
        self.tell_all(config, &Body::Request { released }, out);
        let wait = config.timing.reply();
        out.set_timer(Timer::Candidacy, Delay::between(wait, wait + config.quorum.jitter));
        if self.ballot.is_won(config.members.len()) {
            self.take_office(config, why, out);
        }
    }

    /// Q5: `from` stands. Who is bound does not even adopt its term.
    pub(super) fn on_request(
        &mut self,
        config: &Config,
        from: NodeId,
        term: Epoch,
        released: Option<Epoch>,
        out: &mut Out,
    ) {
        if term < self.ballot.term() {
            out.rule("Q5");
            return self.refuse(config, from, out);
        }
        if self.bound(released) {
            return out.rule("Q5a");
        }
        out.rule("Q5");
        if term > self.ballot.term() {
            self.leave_office(config, Loss::LaterTerm { term, from }, out);
            self.drop_candidacy(out);
            self.ballot.adopt(term);
            self.settle_suspicion(config, out);
        }
        // In a later term it always has a vote to give, so that term is stored here too.
        if matches!(self.duty, Duty::Follow) && self.ballot.grant(from) {
            self.drop_candidacy(out);
            self.end_promise(out);
            self.leader = None;
            self.store(out);
            self.tell(from, Body::Vote, out);
            self.give_way(config, out);
        }
    }

    /// Q6: `from` votes for it.
    pub(super) fn on_vote(&mut self, config: &Config, from: NodeId, term: Epoch, out: &mut Out) {
        let Duty::Stand(why) = self.duty else { return };
        self.ballot.count(from, term);
        if self.ballot.is_won(config.members.len()) {
            self.take_office(config, why, out);
        }
    }

    /// Too few have voted for it in time.
    pub(super) fn on_candidacy_over(&mut self, config: &Config, out: &mut Out) {
        if matches!(self.duty, Duty::Stand(_)) {
            self.drop_candidacy(out);
            self.try_later(config, out);
        }
    }

    /// It has tried in vain. When it tries again is for chance to decide, and for nobody who asks meanwhile: that would
    /// let all better ones stand at the same moment, and split the votes, again and again.
    fn try_later(&mut self, config: &Config, out: &mut Out) {
        self.tried = true;
        let heartbeat = self.pace(config).heartbeat;
        let mut wait = Delay::between(heartbeat, heartbeat * 2);
        if self.refusals > 1 && config.quorum.keeps(Rule::RefusedAsksRarely) {
            let longest = config.quorum.longest_retry(&config.timing, heartbeat, self.turn(config));
            let grown = heartbeat * doubled(self.refusals);
            wait.max = grown.min(longest);
            wait.min = Span::from_nanos(wait.max.as_nanos() / 2);
        }
        self.await_turn_after(config, wait, out);
    }

    /// It asks no longer to be elected and stands no longer. Whether it may take over it can ask while it follows: see
    /// [`give_up_takeover`](Self::give_up_takeover).
    pub(super) fn drop_candidacy(&mut self, out: &mut Out) {
        if self.asking.take_if(|asking| asking.takeover.is_none()).is_some() {
            out.cancel_timer(Timer::Collection);
        }
        out.cancel_timer(Timer::Election);
        if matches!(self.duty, Duty::Stand(_)) {
            out.cancel_timer(Timer::Candidacy);
            self.ballot.withdraw();
            self.duty = Duty::Follow;
        }
    }

    /// A leader is known: what was remembered while one was sought is not needed any more.
    pub(super) fn forget_the_search(&mut self) {
        self.lapsed = None;
        self.deferrals = 0;
        self.tried = false;
        self.refusals = 0;
        self.yielded.clear();
    }
}
