//! Quorum: priority election by majority, with leases. It has at most one leader at any time, partitions included.
//!
//! The bully elects the highest member that can be reached, so each side of a partition elects a leader of its own. Here
//! a leader needs the votes of a majority of the *configured* members. A member votes once per term and stores its vote
//! before it sends it, so no term has two leaders (`ballot.rs`). A leader may act only while it holds a lease. Members of
//! a majority grant the lease by giving the leader a **vote lease** each: a commitment to vote for no other member for a given
//! time. The vote leases outlast the lease that rests on them, so two leases never overlap (`leader.rs`, `follower.rs`).
//!
//! **Roles.** A member is a follower, a pre-candidate, a candidate or a leader, and each role holds its own data. A
//! follower whose vote lease runs out waits for its turn, which is earlier for members of higher rank. It then becomes a
//! pre-candidate: it asks every member whether it would get their vote (PRE-VOTE), which changes nothing at the members it
//! asks. With a majority of yes answers it becomes a candidate: it opens a new term, votes for itself and requests votes.
//! With a majority of votes it becomes leader and sends heartbeats. The followers acknowledge them, and the
//! acknowledgements of a majority renew the lease (`candidate.rs`, `leader.rs`).
//!
//! **Rank** is what remains of the bully. The highest-ranked member asks first; a higher-ranked member that is asked
//! campaigns itself; and a leader transfers leadership to a higher-ranked member that has come back (`rank.rs`,
//! `transfer.rs`). Ranks decide when a member campaigns. No safety rule reads them.
//!
//! **Restarts.** A restarted member has forgotten its vote lease, so it enters **hold-down**: it does not vote until every
//! vote lease that it may have given is over. A member that lost its disk asks all other members which terms they have
//! seen before it votes again (`recovery.rs`).
//!
//! | rule | event | action |
//! |---|---|---|
//! | Q1 | start | after a restart, enters hold-down until its old vote leases are over (`recovery.rs`) |
//! | Q2 | nothing binds it | waits for its turn, then asks all members for a pre-vote (PRE-VOTE) |
//! | Q3 | PRE-VOTE | answers no if bound; "higher" if it has the higher rank, and campaigns itself; else yes |
//! | Q4 | a majority of pre-votes | opens a term, votes for itself, stores both, sends REQUEST |
//! | Q5 | REQUEST | ignores it if bound; else votes for the first candidate of that term (VOTE) |
//! | Q6 | a majority of votes | becomes leader, without a lease yet; sends its first heartbeat (COORDINATOR) |
//! | Q7 | every `h` | sends HEARTBEAT; a lease that is not renewed in time lapses, and resumes soon or ends the leadership |
//! | Q8 | HEARTBEAT | gives its sender a vote lease of `Λ_F` and acknowledges (ACCEPT the first time, then ACK) |
//! | Q9 | a majority of ACKs for a round or later ones | holds a lease, counted from the sending of that round |
//! | Q10 | a later term | steps down as candidate or leader |
//! | Q12 | outranks its leader for a while | asks all members, then asks the leader for a transfer (PREEMPT) |
//! | Q13 | the leader is to go | stops its work, gives up the lease, then sends TIMEOUT-NOW and RELEASE |
//! | Q14 | TIMEOUT-NOW, RELEASE | campaigns at once; or is released from its vote lease |
//! | Q15 | follows another leader although it was the successor, or lost its lease | penalizes itself (`penalty.rs`) |
//! | Q16 | its process died as leader | its host sends TIMEOUT-NOW and RELEASE, once nothing relies on the lease any more (`handover.rs`) |
//! | Q17 | the operator pauses elections | stores that, tells all, and campaigns only after a transfer until it is over (`pause.rs`) |
//!
//! A member is *bound* while it is in hold-down, while its vote lease runs, and while its own lease runs. A bound member
//! does not vote.
//!
//! **Cost.** 2(N−1) messages every `h` in normal operation. A failover with one candidate takes 2(N−1) pre-votes and
//! answers, 2(N−1) requests and votes, and 2(N−1) messages for the first heartbeat: 6(N−1) in all. It takes the rest of the
//! vote lease, one turn and three round trips. A transfer needs no pre-vote.
//!
//! **Beyond the specification** (section 5 and its amendments): [witnesses](crate::config::quorum::Settings::witnesses) and
//! members that never lead, ranks that change, preferences and penalties (`rank.rs`), partial connectivity
//! (`reachability.rs`), reasons ([`change`](crate::change)), rejoining (`recovery.rs`), and these decisions:
//!
//! - The leader chooses the length of a vote lease. A vote lease of a later term replaces a longer one of an earlier term.
//! - A leader that steps down while its own lease runs stays bound by it, unless it transfers leadership: programs that
//!   read the deadline may still act on it. The specification lets it vote at once.
//! - A member lets each other member go first at most once before its own turn.
//! - An initial leader starts in term one with every member's vote, so that runs can start as those of the sources do.
//!
//! **Limits.** Two members have no failover, because a majority of two is two: add a witness. If a clock is off by more
//! than ρ (a paused virtual machine), two leases may overlap, but a term still has only one leader. A program that acts for
//! the leader should therefore present the term as a fencing token, and the resource should reject tokens lower than the
//! highest it has seen. The lease gives efficiency; the token gives safety.

mod ballot;
mod candidate;
pub mod explore;
mod follower;
mod inspect;
mod leader;
pub(crate) mod message;
mod pause;
mod penalty;
mod rank;
mod reachability;
mod recovery;
pub mod rules;
mod transfer;

use std::borrow::Cow;

use crate::config::Config;
use crate::config::quorum::Pace;
use crate::map::SortedMap;
use crate::members::{Incarnation, NodeId, Term};
use crate::protocol::{
    self, AlgorithmMessage, Bonds, Boot, Context, Effects, Event, Kind, Notice, Protocol, View,
};

use ballot::Ballot;
use candidate::{Candidate, PreCandidate, Search};
use follower::Follower;
use leader::Leader;
use rank::Ranking;
use reachability::Reachability;
use recovery::{MAX_HELLOS, Recovery};

pub use ballot::{Drain, Stored};
pub use explore::voter;
pub use message::{Answer, Body, Heartbeat, Message, Round, Unreachable};
pub use pause::Pause;
pub use penalty::Penalty;
pub use rank::{Preference, Rank};
pub use reachability::MISSED_PROBES;

/// A member of a quorum: its role, and what it keeps in every role.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Quorum {
    id: NodeId,
    incarnation: Incarnation,
    /// The identifier of its configuration: it ignores messages that carry another.
    configuration: u32,
    /// Its term and vote.
    ballot: Ballot,
    role: Role,
    recovery: Recovery,
    /// Its own lease, which outlived its leadership and still binds it; [`Timer::Lease`] is armed.
    lingering_lease: Option<Round>,
    /// The number of its last pre-vote question.
    question: u32,
    /// What it remembers while no leader is known.
    search: Search,
    ranking: Ranking,
    reachability: Reachability,
    /// The latest term in which each other member was seen: what it tells a member that restarts.
    seen: SortedMap<NodeId, Term>,
}

/// A member's role, with the data that exists only in that role.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Role {
    Follower(Follower),
    /// Asks for pre-votes.
    PreCandidate(PreCandidate),
    /// Asks for votes.
    Candidate(Candidate),
    /// Was elected; holds a lease, or asks for one.
    Leader(Box<Leader>),
    /// Must never act again.
    Halted,
}

/// What a member of a quorum waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The end of the lease that this heartbeat round can give.
    Lease(Round),
    /// The end of its vote lease.
    VoteLease,
    /// The end of its hold-down.
    HoldDown,
    /// Its turn to campaign.
    Election,
    /// The answers to its pre-vote.
    PreVote,
    /// The votes.
    Vote,
    /// The first lease, or the return of a lapsed one.
    Confirmation,
    /// Its next heartbeat as leader.
    Heartbeat,
    /// The time for which a new leader is not replaced by a higher-ranked member.
    Tenure,
    /// The end of its patience with a lower-ranked leader.
    Takeover,
    /// The time in which it does not campaign after a transfer.
    Cooldown,
    /// The decay of a member's penalty.
    Penalty(NodeId),
    /// The end of a drain.
    Drain,
    /// A step of the countdown of a pause.
    Pause,
    /// The time of the longest vote lease that may run.
    LongestVoteLease,
    /// Its next HELLO.
    Hello,
    /// Its next PROBE.
    Probe,
    /// A message from this member, which counts as unreachable when the timer fires.
    Unreachable(NodeId),
}

type Cx<'a> = Context<'a, Quorum>;

impl Protocol for Quorum {
    type Config = Config;
    type Message = Message;
    type Timer = Timer;
    type Durable = Stored;

    fn start(id: NodeId, config: &Config, boot: Boot<Stored>, out: &mut Effects<Self>) -> Self {
        let mut member = Self {
            id,
            incarnation: boot.incarnation,
            configuration: config.quorum.config_id(&config.members),
            ballot: Ballot::new(id, boot.durable.unwrap_or_default(), config.quorum.rules),
            role: Role::Follower(Follower::default()),
            recovery: Recovery::new(boot.durable),
            lingering_lease: None,
            question: 0,
            search: Search::default(),
            ranking: Ranking::default(),
            reachability: Reachability::default(),
            seen: SortedMap::new(),
        };
        member.recover(boot.origin, &mut Context { config, out });
        member
    }

    fn handle(&mut self, config: &Config, event: Event<Message, Timer>, out: &mut Effects<Self>) {
        if matches!(self.role, Role::Halted) {
            return;
        }
        let (before, begun) = (self.view(), out.list().len());
        let cx = &mut Context { config, out };
        match event {
            Event::Message { from, message } => self.on_message(from, message, cx),
            Event::Timer(timer) => self.on_timer(timer, cx),
            Event::Campaign => self.campaign(cx),
            Event::Command(command) => self.on_command(command, cx),
            Event::Retired => self.finish_transfer(cx),
            Event::Crashed => self.hand_over_after_crash(cx),
            // It monitors its leader itself, and has no critical section.
            Event::PeerDown(_) | Event::PeerUp(_) | Event::Request | Event::Exit => {}
        }
        let after = self.view();
        if before.role.leads() && !after.role.leads() {
            // Its own machine must know before any other member can act on it.
            cx.out.announce_before(begun, after);
        } else if after != before {
            cx.announce(after);
        }
    }

    fn view(&self) -> View {
        let (leader, role) = match &self.role {
            Role::Leader(leader) if leader.lease.is_none() => (None, protocol::Role::Candidate),
            Role::Leader(leader) if leader.transfer.is_some() => {
                (Some(self.id), protocol::Role::Retiring)
            }
            Role::Leader(_) => (Some(self.id), protocol::Role::Leader),
            Role::PreCandidate(_) | Role::Candidate(_) => (None, protocol::Role::Candidate),
            Role::Follower(follower) => (follower.leader, protocol::Role::Follower),
            Role::Halted => (None, protocol::Role::Follower),
        };
        View::new(leader, self.ballot.term(), role)
    }

    fn kinds(_: &Config) -> Cow<'static, [Kind]> {
        Message::KINDS.into()
    }

    fn kind_index(_: &Config, message: &Message) -> usize {
        message.index()
    }

    fn heeds_detector(_: &Config) -> bool {
        false
    }

    fn has_leases(_: &Config) -> bool {
        true
    }

    fn lease(&self) -> Option<Timer> {
        match &self.role {
            Role::Leader(leader) => leader.lease.map(Timer::Lease),
            _ => None,
        }
    }

    fn bonds(&self) -> Bonds<Timer> {
        Bonds {
            vote_lease: self.vote_lease().map(|lease| (lease.term, Timer::VoteLease)),
            hold_down: self.recovery.hold_down.then_some(Timer::HoldDown),
            own_lease: self.lease().or(self.lingering_lease.map(Timer::Lease)),
            silenced: self.recovery.is_rejoining() || matches!(self.role, Role::Halted),
        }
    }

    fn is_lease(timer: Timer) -> bool {
        matches!(timer, Timer::Lease(_))
    }

    fn is_background(timer: Timer) -> bool {
        matches!(
            timer,
            Timer::Lease(_)
                | Timer::VoteLease
                | Timer::Heartbeat
                | Timer::LongestVoteLease
                | Timer::Tenure
                | Timer::Probe
                | Timer::Unreachable(_)
        )
    }
}

impl Quorum {
    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Cx<'_>) {
        let Message { config: theirs, term, pause, body } = message;
        if theirs != self.configuration {
            return cx.inform(Notice::ForeignConfiguration(from));
        }
        self.mark_reachable(from, cx);
        self.hear_pause(pause, cx);
        if self.has_not_answered(from) && self.recovery.hellos >= MAX_HELLOS {
            self.greet(from, cx);
        }
        if self.recovery.is_rejoining() && !matches!(body, Body::Welcome { .. }) {
            return; // it must not answer yet
        }
        // A restarted member is told what was received from it before its restart. HELLO and WELCOME do not count: it answers
        // HELLO before it is answered itself, perhaps in a term that it learned after the restart.
        if cx.config.quorum.remembers && !matches!(body, Body::Hello { .. } | Body::Welcome { .. })
        {
            let seen = self.seen.get_or_default(from);
            *seen = term.max(*seen);
        }
        match body {
            Body::PreVote { number, rank, force, takeover } => {
                self.on_pre_vote(from, term, (number, rank, force, takeover), cx);
            }
            Body::PreAnswer { number, answer } => {
                self.on_pre_answer(from, term, (number, answer), cx);
            }
            Body::Request { released } => self.on_request(from, term, released, cx),
            Body::Heartbeat(heartbeat) => self.on_heartbeat(from, term, &heartbeat, cx),
            Body::Vote if term <= self.ballot.term() => self.on_vote(from, term, cx),
            Body::Ack { round, rank, unreachable } if self.counts_ack(cx.config, term) => {
                self.on_ack(from, (round, rank, &unreachable), cx);
            }
            Body::Vote | Body::Ack { .. } | Body::Nack => {
                self.on_later_term(from, term, cx);
            }
            Body::Preempt { rank } => self.on_preempt(from, rank, cx),
            Body::TimeoutNow { reason, preference } => {
                self.on_timeout_now(from, term, (reason, preference), cx);
            }
            Body::Release { successor, reason } => {
                self.on_release(from, term, (successor, reason), cx);
            }
            Body::Welcome { incarnation, seen, longest, failures } => {
                self.on_welcome(from, term, (incarnation, seen, longest, failures), cx);
            }
            Body::Prefer { preference } => {
                if self.leads() && cx.config.members.contains(preference.member) {
                    self.ranking.learn_preference(preference);
                }
            }
            Body::Probe { rank, unreachable } => {
                self.learn_rank(from, rank, cx);
                self.note_unreachable(cx.config, from, &unreachable);
            }
            Body::Hello { incarnation, .. } => self.on_hello(from, incarnation, cx),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Cx<'_>) {
        match timer {
            Timer::Lease(round) => self.on_lease_over(round, cx),
            Timer::VoteLease => self.on_vote_lease_over(cx),
            Timer::HoldDown => {
                self.recovery.hold_down = false;
                self.consider_takeover(cx);
                self.await_turn(cx);
            }
            Timer::Election => self.campaign(cx),
            Timer::PreVote => self.tally_pre_votes(true, cx),
            Timer::Vote => self.on_votes_overdue(cx),
            Timer::Confirmation => self.on_unconfirmed(cx),
            Timer::Heartbeat => {
                self.ranking.spend(self.pace(cx.config).heartbeat);
                self.send_heartbeat(cx);
            }
            Timer::Tenure => self.on_tenure_over(cx),
            Timer::Takeover => self.on_takeover_due(cx),
            Timer::Cooldown => {
                self.end_cooldown();
                self.consider_takeover(cx);
                self.await_turn(cx);
            }
            Timer::Penalty(id) => self.decay_penalty(id, cx),
            Timer::Drain => self.undrain(cx),
            Timer::Pause => self.on_pause_step(cx),
            Timer::LongestVoteLease => self.on_longest_over(cx),
            Timer::Hello => self.say_hello(cx),
            Timer::Probe => self.on_probe_due(cx),
            Timer::Unreachable(peer) => self.on_unreachable(peer, cx),
        }
    }

    /// Whether something keeps it from voting. `released`: the term whose leader has released its followers.
    fn is_bound(&self, released: Option<Term>) -> bool {
        self.recovery.hold_down
            || self.recovery.is_rejoining()
            || self.lingering_lease.is_some()
            || self.is_leased()
            || self.vote_lease().is_some_and(|lease| released != Some(lease.term))
    }

    /// The leader that it follows; itself, once elected.
    fn leader(&self) -> Option<NodeId> {
        match &self.role {
            Role::Follower(follower) => follower.leader,
            Role::Leader(_) => Some(self.id),
            _ => None,
        }
    }

    fn leads(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    fn pace(&self, config: &Config) -> Pace {
        config.quorum.pace_of(self.id)
    }

    /// Its rank, as it tells the others.
    fn rank(&self, config: &Config) -> Rank {
        let Penalty { failures, failed_in, .. } = self.ranking.penalty(self.id);
        Rank { failures, failed_in, ..self.ranking.rank(config, self.id) }
    }

    fn amend_rank(&mut self, config: &Config, change: impl FnOnce(&mut Rank)) {
        let mut rank = self.ranking.rank(config, self.id);
        change(&mut rank);
        self.ranking.learn(config, self.id, rank);
    }

    /// Sends a message. A member that has not answered HELLO gets another HELLO instead: its answer must not be about what
    /// this incarnation sends.
    fn send(&self, to: NodeId, body: Body, cx: &mut Cx<'_>) {
        let (config, term, pause) = (self.configuration, self.ballot.term(), self.latest_pause());
        let is_greeting = matches!(body, Body::Hello { .. } | Body::Welcome { .. });
        let body = if is_greeting || !self.has_not_answered(to) { body } else { self.hello() };
        cx.send(to, Message { config, term, pause, body });
    }

    fn broadcast(&self, body: &Body, cx: &mut Cx<'_>) {
        for peer in cx.config.members.others(self.id) {
            self.send(peer, body.clone(), cx);
        }
    }

    /// Stores its term and vote before any effect that follows.
    fn store(&self, cx: &mut Cx<'_>) {
        self.ballot.store(cx);
    }
}

/// A wait is doubled at most this often, so that the counters stay small.
const MAX_DOUBLINGS: u8 = 10;

fn count_up(times: u8) -> u8 {
    (times + 1).min(MAX_DOUBLINGS)
}

/// The factor of a wait that was doubled this often.
fn back_off(times: u8) -> u64 {
    1 << times.min(MAX_DOUBLINGS)
}

#[cfg(test)]
mod tests;
