//! Campaigning: waiting for a turn, the pre-vote, and the vote.
//!
//! A member that nothing binds asks every member whether it *would* get their vote before it opens a term. The question
//! changes nothing at the members that are asked. They answer no while they are bound to a leader, so a member that merely
//! cannot reach the leader disturbs no other member. A higher-ranked member answers "higher" and campaigns itself, which is
//! the bully's OK. The asker then lets it go first, but only a few times: rank never vetoes an election.
//!
//! Members wait for their turn by rank, the highest first, so that there is normally one candidate. A member lets each
//! other member that asks go first at most once; otherwise a member that can never win could keep all others from trying.
//!
//! A member that is refused because it alone cannot reach the leader asks again, since the leader may be gone by then; from
//! the second time on it doubles its wait. L1 limits the wait: it may be the only member that can lead, and may have asked
//! for the last time just before the others became free
//! ([`Settings::longest_retry`](crate::config::quorum::Settings::longest_retry)).

use crate::change::{ElectionReason, Loss, StepDownReason, TransferReason};
use crate::config::Config;
use crate::members::{NodeId, PeerSet, Term};
use crate::protocol::Notice;
use crate::time::{Delay, Span};

use super::ballot::Drain;
use super::follower::{Follower, Takeover};
use super::message::{Answer, Body};
use super::rank::Rank;
use super::{Cx, Quorum, Role, Timer, back_off, count_up};
use crate::config::rules::Rule;

/// The data of a pre-candidate; [`Timer::PreVote`] is armed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct PreCandidate {
    poll: Poll,
}

/// The data of a candidate; [`Timer::Vote`] is armed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Candidate {
    reason: ElectionReason,
    pub(super) votes: PeerSet,
}

/// The answers to a pre-vote: may this member be elected, or take over from its leader?
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Poll {
    number: u32,
    /// It has let higher-ranked members go first often enough.
    force: bool,
    answered: PeerSet,
    yes: PeerSet,
    outranked: bool,
    /// A member is bound to a leader.
    refused: bool,
}

/// What a member remembers from the loss of one leader until it knows the next.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Search {
    /// The last leader.
    pub(super) last_leader: Option<LostLeader>,
    /// How often it has let a higher-ranked member go first that then did not win.
    deferrals: u8,
    /// The members that it has let go first.
    yielded: PeerSet,
    /// It has campaigned without success.
    failed: bool,
    /// How often in a row it was refused by members that have a leader.
    refusals: u8,
    /// The term whose leader chose it as successor, and released all others.
    pub(super) successor_of: Option<Term>,
    /// The term in which it led itself and lost its lease.
    pub(super) lost_lease: Option<Term>,
}

impl Search {
    /// The term whose leader has transferred leadership; one that has died transfers nothing.
    pub(super) fn transferred(&self) -> Option<Term> {
        let is_transfer = |lost: &LostLeader| matches!(lost.why, Loss::Transferred(reason) if reason != TransferReason::Crashed);
        self.last_leader.filter(is_transfer).map(|lost| lost.term)
    }
}

/// The leader that a member has lost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct LostLeader {
    pub(super) id: NodeId,
    pub(super) term: Term,
    pub(super) why: Loss,
}

impl LostLeader {
    /// Whether no answer is expected from it: it is unreachable, or lets others go first. One whose lease was not renewed
    /// campaigns like any other member.
    fn is_gone(&self) -> bool {
        !matches!(self.why, Loss::NotRenewed | Loss::NotConfirmed)
    }
}

impl Quorum {
    pub(super) fn would_lead(&self, config: &Config) -> bool {
        let witness = config.quorum.witnesses.contains(self.id);
        let eligible =
            self.rank(config).eligible || witness && !config.quorum.keeps(Rule::WitnessNeverLeads);
        eligible && !self.is_cooling_down()
    }

    /// Whether this member may be elected: it would lead, or it is a last resort.
    pub(super) fn may_campaign(&self, config: &Config) -> bool {
        self.would_lead(config) || self.is_last_resort(config) && !self.is_cooling_down()
    }

    fn is_cooling_down(&self) -> bool {
        matches!(&self.role, Role::Follower(follower) if follower.cooling_down)
    }

    /// Whether it is drained but may lead while every other eligible member is drained too. It asks after all others; any
    /// member that it reaches and that could lead answers "higher" and campaigns itself.
    fn is_last_resort(&self, config: &Config) -> bool {
        let drained = self.ballot.stored().drained;
        let spared = matches!(drained, Some(Drain::UntilUndone | Drain::For(_)));
        let quorum = &config.quorum;
        spared && !quorum.witnesses.contains(self.id) && !quorum.reluctant.contains(self.id)
    }

    /// Whether nothing keeps it from campaigning.
    pub(super) fn is_idle(&self) -> bool {
        let Role::Follower(follower) = &self.role else { return false };
        !matches!(follower.takeover, Some(Takeover::Asking(_))) && !self.is_bound(None)
    }

    /// Q2: nothing binds it. It waits for its turn.
    pub(super) fn await_turn(&mut self, cx: &mut Cx<'_>) {
        self.await_turn_after(Span::ZERO.into(), cx);
    }

    /// The same, `base` later.
    pub(super) fn await_turn_after(&mut self, base: Delay, cx: &mut Cx<'_>) {
        if !self.is_idle()
            || !self.may_campaign(cx.config)
            || self.is_held(cx.config, None)
            || !cx.config.quorum.keeps(Rule::PreVote)
        {
            return;
        }
        let turn = self.turn(cx.config);
        let after = Delay::between(base.min + turn, base.max + turn + cx.config.quorum.jitter);
        cx.set_timer(Timer::Election, after);
    }

    /// How long it lets higher-ranked members go first.
    fn turn(&self, config: &Config) -> Span {
        let stagger = config.quorum.stagger;
        if !self.would_lead(config) {
            return stagger * config.members.len() as u64 + self.successor_head_start(config);
        }
        let before = match self.reaches_majority(config, self.id) {
            true => self.higher_members(config).len(),
            // As far as it knows it cannot win. It may be wrong, so it asks; but last, because others let it go first.
            false => config.members.len(),
        };
        stagger * before as u64
    }

    /// The members of higher rank, except a last leader that is gone.
    fn higher_members(&self, config: &Config) -> Vec<NodeId> {
        let gone = self.search.last_leader.filter(LostLeader::is_gone).map(|lost| lost.id);
        self.ranking.above(config, self.id).filter(|&id| Some(id) != gone).collect()
    }

    /// Its turn has come, or a program on this machine asks for an election.
    pub(super) fn campaign(&mut self, cx: &mut Cx<'_>) {
        if self.is_idle() && self.may_campaign(cx.config) && !self.is_held(cx.config, None) {
            cx.election_started();
            match cx.config.quorum.keeps(Rule::PreVote) {
                true => {
                    cx.rule("Q2");
                    self.ask(None, cx);
                }
                false => self.campaign_without_pre_vote(None, cx),
            }
        }
    }

    /// Asks all members whether they would vote for it, or agree that it takes over from `takeover`.
    pub(super) fn ask(&mut self, takeover: Option<NodeId>, cx: &mut Cx<'_>) {
        cx.cancel_timer(Timer::Election);
        self.question = self.question.wrapping_add(1);
        let number = self.question;
        let force =
            self.search.deferrals >= cx.config.quorum.deferrals && self.would_lead(cx.config);
        let yes = [self.id].into_iter().collect();
        let answered = PeerSet::new();
        let poll = Poll { number, force, answered, yes, outranked: false, refused: false };
        match &mut self.role {
            Role::Follower(follower) if takeover.is_some() => {
                follower.takeover = Some(Takeover::Asking(poll));
            }
            role => *role = Role::PreCandidate(PreCandidate { poll }),
        }
        let rank = self.rank(cx.config);
        self.broadcast(&Body::PreVote { number, rank, force, takeover }, cx);
        cx.set_timer(Timer::PreVote, cx.config.timing.reply());
        self.tally_pre_votes(false, cx);
    }

    /// Q3: `from` asks. The answer changes nothing here; but an idle member of higher rank campaigns itself, the first time.
    pub(super) fn on_pre_vote(
        &mut self,
        from: NodeId,
        term: Term,
        (number, rank, force, takeover): (u32, Rank, bool, Option<NodeId>),
        cx: &mut Cx<'_>,
    ) {
        cx.rule("Q3");
        self.learn_rank(from, rank, cx);
        let is_higher = self.would_lead(cx.config)
            && self.reaches_majority(cx.config, self.id)
            && !self.is_unconfirmed(cx.config)
            && !self.is_held(cx.config, None)
            && self.ranking.outranks(cx.config, self.id, from);
        let answer = match takeover {
            Some(leader)
                if self.leader() == Some(leader)
                    && self.ranking.surpasses(cx.config, from, leader) =>
            {
                Answer::Yes
            }
            Some(_) => Answer::No,
            None if term < self.ballot.term() || self.is_bound(None) => Answer::No,
            None if is_higher && !force => Answer::Higher,
            None => Answer::Yes,
        };
        self.send(from, Body::PreAnswer { number, answer }, cx);
        match answer {
            Answer::Higher if !self.search.failed => self.campaign(cx),
            Answer::Yes if takeover.is_none() && self.search.yielded.insert(from) => {
                self.let_finish(cx);
            }
            _ => {}
        }
    }

    /// Lets another member finish its campaign before its own turn.
    fn let_finish(&mut self, cx: &mut Cx<'_>) {
        self.await_turn_after(self.successor_head_start(cx.config).into(), cx);
    }

    fn poll_mut(&mut self) -> Option<&mut Poll> {
        match &mut self.role {
            Role::PreCandidate(candidate) => Some(&mut candidate.poll),
            Role::Follower(Follower { takeover: Some(Takeover::Asking(poll)), .. }) => Some(poll),
            _ => None,
        }
    }

    /// An answer to its pre-vote. A pre-candidate learns of a later term from it.
    pub(super) fn on_pre_answer(
        &mut self,
        from: NodeId,
        term: Term,
        (number, answer): (u32, Answer),
        cx: &mut Cx<'_>,
    ) {
        let is_late = term > self.ballot.term();
        let Some(poll) = self.poll_mut().filter(|poll| poll.number == number) else { return };
        poll.answered.insert(from);
        match answer {
            Answer::Yes => {
                poll.yes.insert(from);
            }
            Answer::Higher => poll.outranked = true,
            // An answer of a later term may have no other reason than that.
            Answer::No => poll.refused |= !is_late,
        }
        if matches!(self.role, Role::PreCandidate(_)) && self.ballot.adopt(term) {
            self.store(cx);
            self.settle_suspicion(cx);
        }
        self.tally_pre_votes(false, cx);
    }

    /// Evaluates the answers once they suffice or the time is up: every higher-ranked member must have had the time to
    /// answer, except the last leader.
    pub(super) fn tally_pre_votes(&mut self, time_is_up: bool, cx: &mut Cx<'_>) {
        let takes_over = matches!(self.role, Role::Follower(_));
        let higher = if takes_over { vec![] } else { self.higher_members(cx.config) };
        let Some(poll) = self.poll_mut() else { return };
        let has_majority = poll.yes.len() >= cx.config.quorum.majority(cx.config.members.len());
        let (outranked, refused) = (poll.outranked && !poll.force, poll.refused);
        let all_answered = higher.into_iter().all(|id| poll.answered.contains(id));
        if !time_is_up && !(all_answered && (has_majority || outranked)) {
            return;
        }
        cx.cancel_timer(Timer::PreVote);
        if time_is_up {
            let answered = poll.answered.clone();
            // A member that has not answered HELLO was sent another HELLO instead.
            let was_asked = |id: &NodeId| !answered.contains(*id) && !self.has_not_answered(*id);
            self.note_silent(cx.config.members.others(self.id).filter(was_asked).collect(), cx);
        }
        if let Role::Follower(follower) = &mut self.role {
            follower.takeover = None;
            return self.request_takeover(has_majority, cx);
        }
        self.role = Role::Follower(Follower::default());
        if outranked {
            self.search.deferrals = self.search.deferrals.saturating_add(1);
            self.retry_later(cx);
        } else if has_majority {
            let lost = self.search.last_leader;
            let (after, cause) = (lost.map(|lost| lost.id), lost.map(|lost| lost.why));
            let reason = ElectionReason::Elected { after, cause };
            self.become_candidate(None, reason, cx);
        } else {
            self.search.refusals = if refused { count_up(self.search.refusals) } else { 0 };
            self.retry_later(cx);
        }
    }

    /// Q4: opens a term and requests votes. `released`: the term whose leader chose this member as its successor.
    pub(super) fn become_candidate(
        &mut self,
        released: Option<Term>,
        reason: ElectionReason,
        cx: &mut Cx<'_>,
    ) {
        // A successor that was not elected at once is still the successor.
        let released = released.or(self.search.successor_of);
        let is_free = !self.is_bound(released) && !self.is_held(cx.config, released);
        if !is_free || !self.may_campaign(cx.config) {
            return;
        }
        let Some(votes) = self.ballot.open_term() else {
            return cx.inform(Notice::OutOfTerms);
        };
        cx.rule("Q4");
        self.stop_campaign(cx);
        self.stop_following(cx);
        if cx.config.quorum.keeps(Rule::PreVote) {
            self.search.successor_of = released;
        }
        // While elections are paused, the others should know why there is one.
        let transferred = self.search.transferred().filter(|_| self.is_paused());
        let released = released.or(transferred);
        // If it wins, the vote lease that it asks for must be waited out even if it restarts: others may know of a lease.
        let vote_lease = self.pace(cx.config).vote_lease;
        let longest = &mut self.ballot.stored_mut().longest;
        *longest = vote_lease.max(*longest);
        self.store(cx);
        self.settle_suspicion(cx);
        self.role = Role::Candidate(Candidate { reason, votes });
        self.broadcast(&Body::Request { released }, cx);
        let wait = cx.config.timing.reply();
        cx.set_timer(Timer::Vote, Delay::between(wait, wait + cx.config.quorum.jitter));
        self.on_vote(self.id, self.ballot.term(), cx);
    }

    /// Q5: `from` requests a vote. A bound member does not even adopt its term.
    pub(super) fn on_request(
        &mut self,
        from: NodeId,
        term: Term,
        released: Option<Term>,
        cx: &mut Cx<'_>,
    ) {
        if term < self.ballot.term() {
            cx.rule("Q5");
            return self.refuse(from, cx);
        }
        if self.is_bound(released) {
            return cx.rule("Q5a");
        }
        cx.rule("Q5");
        if term > self.ballot.term() {
            self.stop_leading(StepDownReason::LaterTerm { term, from }, cx);
            self.stop_campaign(cx);
            self.ballot.adopt(term);
            self.settle_suspicion(cx);
        }
        // In a later term it always has a vote to give, so that term is stored here too.
        let is_free = matches!(self.role, Role::Follower(_) | Role::PreCandidate(_));
        if is_free && self.ballot.grant(from) {
            self.stop_campaign(cx);
            self.stop_following(cx);
            self.store(cx);
            self.send(from, Body::Vote, cx);
            self.let_finish(cx);
        }
    }

    /// Q6: `voter` voted for it in `term`.
    pub(super) fn on_vote(&mut self, voter: NodeId, term: Term, cx: &mut Cx<'_>) {
        let Role::Candidate(candidate) = &mut self.role else { return };
        let reason = candidate.reason;
        if self.ballot.count(&mut candidate.votes, voter, term, cx.config.members.len()) {
            self.become_leader(reason, cx);
        }
    }

    /// Too few members voted for it in time.
    pub(super) fn on_votes_overdue(&mut self, cx: &mut Cx<'_>) {
        if matches!(self.role, Role::Candidate(_)) {
            self.stop_campaign(cx);
            self.retry_later(cx);
        }
    }

    /// Its campaign failed. It tries again at a random time, and not because another member asks in the meantime: otherwise all
    /// higher-ranked members would campaign at the same moment and split the votes, again and again.
    fn retry_later(&mut self, cx: &mut Cx<'_>) {
        self.search.failed = true;
        let heartbeat = self.pace(cx.config).heartbeat;
        let mut wait = Delay::between(heartbeat, heartbeat * 2);
        if self.search.refusals > 1 && cx.config.quorum.keeps(Rule::RefusedBacksOff) {
            let longest =
                cx.config.quorum.longest_retry(&cx.config.timing, heartbeat, self.turn(cx.config));
            wait.max = (heartbeat * back_off(self.search.refusals)).min(longest);
            wait.min = Span::from_nanos(wait.max.as_nanos() / 2);
        }
        self.await_turn_after(wait, cx);
    }

    /// It no longer campaigns. A follower that asks to take over continues: see [`stop_takeover`](Self::stop_takeover).
    pub(super) fn stop_campaign(&mut self, cx: &mut Cx<'_>) {
        if matches!(self.role, Role::PreCandidate(_)) {
            cx.cancel_timer(Timer::PreVote);
        }
        cx.cancel_timer(Timer::Election);
        if matches!(self.role, Role::Candidate(_)) {
            cx.cancel_timer(Timer::Vote);
            self.ballot.withdraw();
        }
        if matches!(self.role, Role::PreCandidate(_) | Role::Candidate(_)) {
            self.role = Role::Follower(Follower::default());
        }
    }
}
