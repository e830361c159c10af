//! Quorum: an election by priority that survives partitions (specification, section 5 with its amendments).
//!
//! The bully elects the best of those that hear each other, so both sides of a partition elect one. Here a leader needs
//! the votes of a majority of the *configured* members, each of which votes once a term and stores its vote before it
//! gives it: two leaders of one term cannot be (`quorum/ballot.rs`). It acts only under a lease, which a majority renews
//! by promising to vote for nobody else for a while: two leases cannot run at once (`quorum/office.rs`,
//! `quorum/following.rs`). Priority is what is left of the bully: the best asks first, a better one that is asked stands
//! itself, and a leader hands over to a better one that has come back (`quorum/election.rs`, `quorum/orders.rs`). No rule
//! of safety reads a priority.
//!
//! | rule | event | what it does |
//! |---|---|---|
//! | Q1 | start | after a restart votes for nobody until its old promises are over (`quorum/arrival.rs`) |
//! | Q2 | nothing binds it any more | waits for its turn, then asks all: may I stand? (PRE-VOTE) |
//! | Q3 | PRE-VOTE | no, if bound; "higher", if better, and stands itself; else yes |
//! | Q4 | a majority said yes | opens a term, votes for itself, stores that, sends REQUEST |
//! | Q5 | REQUEST | ignores it if bound; else votes for the first that asks in that term (VOTE) |
//! | Q6 | a majority of votes | leads, without a lease yet; first heartbeat (COORDINATOR) |
//! | Q7 | every `h` | sends HEARTBEAT; a lease that is not renewed in time lapses, and comes back soon or ends the office |
//! | Q8 | HEARTBEAT | promises `Λ_F` to its sender, and says so (ACCEPT the first time, then ACK) |
//! | Q9 | a majority of ACKs for a round or later ones | has a lease, counted from the sending of that round |
//! | Q10 | a later term | leads and stands no longer |
//! | Q12 | better than its leader for a while | asks all, then the leader: let me (PREEMPT) |
//! | Q13 | the leader is to go | stops what runs, gives up the lease, then TIMEOUT-NOW and RELEASE |
//! | Q14 | TIMEOUT-NOW, RELEASE | stands at once; or is free of its promise |
//! | Q15 | another leads than itself, the heir | holds that against itself (`quorum/standing.rs`) |
//!
//! *Bound* is a member in hold-down after a restart, one that has promised, and one whose own lease is still running.
//!
//! **Costs.** In calm 2(N−1) messages every `h`. A failover with one candidate: 2(N−1) questions and answers, 2(N−1)
//! requests and votes, 2(N−1) for the first heartbeat, 6(N−1) together; it takes the rest of the promise, a turn's
//! wait and three round trips. A hand-over needs no question.
//!
//! **Beyond the specification**: [witnesses](settings::Settings::witnesses) and members that never lead, merits that
//! change, preferences and penalties (`quorum/standing.rs`), half-connected members (`quorum/reach.rs`), reasons
//! ([`story`](crate::story)), rejoining (`quorum/arrival.rs`), and these decisions:
//!
//! - a promise is as long as the leader asks for; a heartbeat of a later term replaces a longer one of an earlier;
//! - a leader that steps down keeps its own running lease as a promise, unless it hands over: those it told "until
//!   then" may still act on it. The specification lets it vote at once;
//! - a member gives way only once to each that asks before its turn;
//! - a founding leader begins in term one with everybody's vote, so that runs can begin as the seeds' do.
//!
//! **What it does not do.** Two members have no failover: a majority of two is two; add a witness. If clocks are more
//! wrong than ρ says (a paused virtual machine), two leases may overlap, but never two leaders of a term: so whoever
//! acts for a leader should show the term as a token, and whatever it acts on should refuse smaller ones than it has
//! seen. The lease is for efficiency, the token for safety.

mod arrival;
mod ballot;
mod bold;
mod election;
mod essence;
mod following;
mod insight;
mod message;
mod office;
mod orders;
mod reach;
pub mod rules;
pub mod settings;
mod standing;
pub mod voter;

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::config::Config;
use crate::members::{Epoch, Incarnation, NodeId, PeerSet};
use crate::protocol::{Bonds, Boot, Effects, Event, Kind, Notice, Protocol, Role, View};
use crate::story::Why;

use arrival::{MOST_HELLOS, Rejoining};
use ballot::Ballot;
use election::Asking;
use following::{Beat, Promise};
use office::Office;
use reach::Reach;
use rules::Rule;
use settings::Pace;
use standing::Standings;

pub use ballot::{Drain, Stored};
pub use message::{Answer, Body, KINDS, Message, Misses, Round};
pub use standing::{Merit, Preference};

/// A member of a quorum.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Quorum {
    id: NodeId,
    /// Which of its lives this is.
    life: Incarnation,
    /// The number of its configuration, which everything that it says and heeds bears.
    configuration: u32,
    ballot: Ballot,
    duty: Duty,
    /// Whom it follows; itself, from its election on.
    leader: Option<NodeId>,
    /// [`Timer::Promise`] is armed.
    promise: Option<Promise>,
    /// It may have promised something in a former life; [`Timer::Quarantine`] is armed.
    quarantined: bool,
    /// It has lost its disk and has not heard from everybody yet.
    rejoining: Option<Rejoining>,
    /// The term that its disk held when it started.
    booted: Epoch,
    /// Who has not answered its HELLO yet.
    unanswered: PeerSet,
    /// How often it has said HELLO to all of them.
    hellos: u8,
    /// A lease of its own that it has no use for any more, but others may; its timer is armed.
    lingering: Option<Round>,
    /// What it has asked everybody.
    asking: Option<Asking>,
    /// The number of its last question.
    question: u32,
    /// How often it has let a better member go first that then did not.
    deferrals: u8,
    /// To whom it has given way since it last had a leader.
    yielded: PeerSet,
    /// It has tried to be elected since then, in vain.
    tried: bool,
    /// How often in a row those who have a leader have refused it.
    refusals: u8,
    /// Who led last, in which term, and has fallen silent or gone: nobody waits for its answer.
    lapsed: Option<(NodeId, Epoch)>,
    /// It stood at the last leader's wish, and has not been elected.
    heir: bool,
    /// It has just handed over, and stands back; [`Timer::Refrain`] is armed.
    refrains: bool,
    /// It would be better than its leader; [`Timer::Takeover`] is armed.
    impatient: bool,
    /// How often it has asked to take over from its leader.
    claims: u8,
    standings: Standings,
    reach: Reach,
    /// The latest term in which it heard each member: what it tells one that comes up.
    seen: BTreeMap<NodeId, Epoch>,
}

/// What a member does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Duty {
    Follow,
    /// Asks for votes.
    Stand(Why),
    /// Has been elected.
    Lead(Box<Office>),
    /// Must never act again.
    Halted,
}

/// What a member of a quorum waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The end of the lease that this heartbeat can give.
    Lease(Round),
    /// The end of its promise.
    Promise,
    /// The end of what it may have promised in a former life.
    Quarantine,
    /// Its turn to ask.
    Election,
    /// The answers.
    Collection,
    /// The votes.
    Candidacy,
    /// The first promises of a majority.
    Confirmation,
    /// Its next heartbeat as a leader.
    Heartbeat,
    /// The time for which a leader is left alone.
    Tenure,
    /// The end of its patience with a lower leader.
    Takeover,
    /// The time in which it does not stand after handing over.
    Refrain,
    /// The end of a penalty.
    Forgive(NodeId),
    /// The end of its being drained.
    Drain,
    /// The time of the longest vote lease that may run.
    Longest,
    /// The next HELLO.
    Hello,
    /// The next PROBE.
    Probe,
    /// A word of this member.
    Silence(NodeId),
}

type Out = Effects<Quorum>;

impl Protocol for Quorum {
    type Config = Config;
    type Message = Message;
    type Timer = Timer;
    type Durable = Stored;

    fn start(id: NodeId, config: &Config, boot: Boot<Stored>, out: &mut Out) -> Self {
        let mut member = Self {
            id,
            life: boot.incarnation,
            configuration: config.quorum.config_id(&config.members),
            booted: boot.durable.map_or(Epoch::default(), |stored| stored.term),
            unanswered: PeerSet::new(),
            hellos: 0,
            ballot: Ballot::new(id, boot.durable.unwrap_or_default(), config.quorum.rules),
            duty: Duty::Follow,
            leader: None,
            promise: None,
            quarantined: false,
            rejoining: None,
            lingering: None,
            asking: None,
            question: 0,
            deferrals: 0,
            yielded: PeerSet::new(),
            tried: false,
            refusals: 0,
            lapsed: None,
            heir: false,
            refrains: false,
            impatient: false,
            claims: 0,
            standings: Standings::default(),
            reach: Reach::default(),
            seen: BTreeMap::new(),
        };
        member.arrive(config, &boot, out);
        member
    }

    fn handle(&mut self, config: &Config, event: Event<Message, Timer>, out: &mut Out) {
        if matches!(self.duty, Duty::Halted) {
            return;
        }
        let (before, begun) = (self.view(), out.list().len());
        match event {
            Event::Message { from, message } => self.on_message(config, from, message, out),
            Event::Timer(timer) => self.on_timer(config, timer, out),
            Event::Campaign => self.campaign(config, out),
            Event::Order(order) => self.on_order(config, order, out),
            Event::Retired => self.abdicate(config, out),
            // It watches over its leader itself.
            Event::PeerDown(_) | Event::PeerUp(_) => {}
        }
        let after = self.view();
        if before.role.leads() && !after.role.leads() {
            // Its own machine must know before anybody else can act on it.
            out.announce_before(begun, after);
        } else if after != before {
            out.announce(after);
        }
    }

    fn view(&self) -> View {
        let (leader, role) = match &self.duty {
            Duty::Lead(office) if office.lease.is_none() => (None, Role::Candidate),
            Duty::Lead(office) if office.retiring.is_some() => (self.leader, Role::Retiring),
            Duty::Lead(_) => (self.leader, Role::Leader),
            Duty::Stand(_) => (self.leader, Role::Candidate),
            Duty::Follow if self.leader.is_none() && self.asking.is_some() => {
                (None, Role::Candidate)
            }
            Duty::Follow | Duty::Halted => (self.leader, Role::Follower),
        };
        View { leader, epoch: self.ballot.term(), role }
    }

    fn kinds(_: &Config) -> Cow<'static, [Kind]> {
        KINDS.into()
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
        match &self.duty {
            Duty::Lead(office) => office.lease.map(Timer::Lease),
            _ => None,
        }
    }

    fn bonds(&self) -> Bonds<Timer> {
        Bonds {
            vote_lease: self.promise.map(|promise| (promise.term, Timer::Promise)),
            hold_down: self.quarantined.then_some(Timer::Quarantine),
            own_lease: self.lease().or(self.lingering.map(Timer::Lease)),
            silenced: self.rejoining.is_some() || matches!(self.duty, Duty::Halted),
        }
    }

    fn is_lease(timer: Timer) -> bool {
        matches!(timer, Timer::Lease(_))
    }

    fn is_upkeep(timer: Timer) -> bool {
        matches!(
            timer,
            Timer::Lease(_)
                | Timer::Promise
                | Timer::Heartbeat
                | Timer::Longest
                | Timer::Tenure
                | Timer::Probe
                | Timer::Silence(_)
        )
    }
}

impl Quorum {
    fn on_message(&mut self, config: &Config, from: NodeId, message: Message, out: &mut Out) {
        let Message { config: theirs, term, body } = message;
        if theirs != self.configuration {
            return out.inform(Notice::ForeignConfiguration(from));
        }
        self.heard(config, from, out);
        if self.has_not_answered(from) && self.hellos >= MOST_HELLOS {
            self.greet(from, out);
        }
        if self.rejoining.is_some() && !matches!(body, Body::Welcome { .. }) {
            return; // it may not say anything yet
        }
        // What it has said before is what counts for one that has just come up; and that one answers HELLO before it is
        // answered itself, perhaps in a term that it has learned in this life.
        if !matches!(body, Body::Hello { .. } | Body::Welcome { .. }) {
            self.note_term(config, from, term);
        }
        match body {
            Body::PreVote { number, merit, force, takeover } => {
                self.on_pre_vote(config, from, term, (number, merit, force, takeover), out);
            }
            Body::PreAnswer { number, answer } => {
                self.on_pre_answer(config, from, term, (number, answer), out);
            }
            Body::Request { released } => self.on_request(config, from, term, released, out),
            Body::Heartbeat { round, promise, merit, preference, why, misses } => {
                let beat = Beat { round, promise, merit, preference, why, misses: &misses };
                self.on_heartbeat(config, from, term, &beat, out);
            }
            Body::Vote if term <= self.ballot.term() => self.on_vote(config, from, term, out),
            Body::Ack { round, merit, misses } if self.counts(config, term) => {
                self.on_ack(config, from, (round, merit, &misses), out);
            }
            Body::Vote | Body::Ack { .. } | Body::Nack => {
                self.on_later_term(config, from, term, out);
            }
            Body::Preempt { merit } => self.on_preempt(config, from, merit, out),
            Body::TimeoutNow { cause, preference } => {
                self.on_timeout_now(config, from, term, (cause, preference), out);
            }
            Body::Release { heir } => self.on_release(config, from, term, heir, out),
            Body::Welcome { life, seen, longest, losses } => {
                self.on_welcome(config, from, term, (life, seen, longest, losses), out);
            }
            Body::Prefer { preference } => {
                if self.leads() && config.members.contains(preference.member) {
                    self.standings.learn_preference(preference);
                }
            }
            Body::Probe { merit, misses } => {
                self.standings.learn(config, from, merit);
                self.note_misses(config, from, &misses);
            }
            Body::Hello { life, .. } => self.on_hello(config, from, life, out),
        }
    }

    /// Whether an acknowledgement of `term` counts now.
    fn counts(&self, config: &Config, term: Epoch) -> bool {
        let own = self.ballot.term();
        term == own || term < own && !config.quorum.keeps(Rule::AckCountsInItsTerm)
    }

    fn on_timer(&mut self, config: &Config, timer: Timer, out: &mut Out) {
        match timer {
            Timer::Lease(round) => self.on_lease_over(config, round, out),
            Timer::Promise => self.on_promise_over(config, out),
            Timer::Quarantine => self.on_quarantine_over(config, out),
            Timer::Election => self.campaign(config, out),
            Timer::Collection => self.weigh(config, true, out),
            Timer::Candidacy => self.on_candidacy_over(config, out),
            Timer::Confirmation => self.on_unconfirmed(config, out),
            Timer::Heartbeat => {
                self.standings.spend(self.pace(config).heartbeat);
                self.beat(config, out);
            }
            Timer::Tenure => self.on_tenure_over(config, out),
            Timer::Takeover => self.on_takeover_due(config, out),
            Timer::Refrain => {
                self.refrains = false;
                self.consider_takeover(config, out);
                self.await_turn(config, out);
            }
            Timer::Forgive(id) => self.forgive(config, id, out),
            Timer::Drain => self.undrain(config, out),
            Timer::Longest => self.on_longest_over(config, out),
            Timer::Hello => self.say_hello(config, out),
            Timer::Probe => self.on_probe_due(config, out),
            Timer::Silence(peer) => self.on_silence(config, peer, out),
        }
    }

    /// Whether something keeps it from voting. `released`: the term whose leader has released its followers.
    fn bound(&self, released: Option<Epoch>) -> bool {
        let promised = self.promise.is_some_and(|promise| released != Some(promise.term));
        self.quarantined
            || self.rejoining.is_some()
            || self.lingering.is_some()
            || self.is_leased()
            || promised
    }

    fn leads(&self) -> bool {
        matches!(self.duty, Duty::Lead(_))
    }

    fn pace(&self, config: &Config) -> Pace {
        config.quorum.pace_of(self.id)
    }

    /// How good it is, as it tells the others.
    fn merit(&self, config: &Config) -> Merit {
        Merit { losses: self.standings.held(self.id), ..self.standings.merit(config, self.id) }
    }

    /// Changes how good it is.
    fn amend(&mut self, config: &Config, change: impl FnOnce(&mut Merit)) {
        let mut merit = self.standings.merit(config, self.id);
        change(&mut merit);
        self.standings.learn(config, self.id, merit);
    }

    /// `from` speaks in `term`: it must never come up with less.
    fn note_term(&mut self, config: &Config, from: NodeId, term: Epoch) {
        if config.quorum.remembers {
            let seen = self.seen.entry(from).or_default();
            *seen = term.max(*seen);
        }
    }

    /// Says something to a member; HELLO instead, if that one has not answered yet: its answer must not be about what this
    /// life says.
    fn tell(&mut self, to: NodeId, body: Body, out: &mut Out) {
        let (config, term) = (self.configuration, self.ballot.term());
        let is_greeting = matches!(body, Body::Hello { .. } | Body::Welcome { .. });
        let body = if is_greeting || !self.has_not_answered(to) { body } else { self.hello() };
        out.send(to, Message { config, term, body });
    }

    fn tell_all(&mut self, config: &Config, body: &Body, out: &mut Out) {
        for peer in config.members.others(self.id) {
            self.tell(peer, body.clone(), out);
        }
    }

    /// Stores what must not be forgotten, before anything that follows.
    fn store(&self, out: &mut Out) {
        self.ballot.store(out);
    }
}

/// No wait is doubled more often: what is counted for it stays small.
const MOST_DOUBLINGS: u8 = 10;

/// One more, as far as waits are doubled.
fn once_more(times: u8) -> u8 {
    (times + 1).min(MOST_DOUBLINGS)
}

/// How many times as long a wait is that is doubled so often.
fn doubled(times: u8) -> u64 {
    1 << times.min(MOST_DOUBLINGS)
}

#[cfg(test)]
mod tests;
