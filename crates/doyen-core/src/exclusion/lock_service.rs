//! The lock service over a quorum: centralised exclusion that tolerates crashes, lost messages and partitions.
//!
//! A member runs three state machines: the [quorum], which elects the leader and gives it a lease,
//! the [grantor], which acts while its member leads, and the [client] of the program
//! on this member. They are those that nodes and `doyen lock` run, with the rules G1 to G11 of [`lock`]. This file is
//! their host in a simulated group. It carries calls and answers between them:
//!
//! | event | action |
//! |---|---|
//! | the client calls | LOCK, KEEP or FREE to the leader that this member follows; without one, at the next |
//! | a member follows another leader | a client that waits or holds the lock calls at once, and shows what it has |
//! | the grantor answers | GRANT, QUEUED, GONE, FULL or NOT-LEADER to the member of the claim; nothing to FREE |
//! | NOT-LEADER | the client calls again after 2D + p |
//! | the lease of this member begins, ends or lapses | the grantor is told, and a new term begins with an empty table |
//!
//! What a member would send to itself is handled at once, as in the other exclusions. An entry of a member that is not the leader
//! costs LOCK, GRANT and FREE; one that waits is answered QUEUED, and calls again every third of a grant.
//!
//! Departures, and why:
//!
//! - **Clients are members.** With `doyen lock` they are programs anywhere, which find the leader by asking one node after the
//!   other. Here a client learns from its member who leads.
//! - **A claim is named by its member, incarnation and number,** not by random digits: the core draws none.
//! - **The founding leader does not settle** if all members start together under it: there is no earlier grant to wait for.
//!   A node cannot know that, and always settles.
//! - The literal readings `empty-table` and `some-claims` leave out what makes a failover safe (G7), to show what follows.

pub mod rules;
pub mod succession;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::algorithm::quorum::{self, Quorum};
use crate::config::{Config, Mode, Variant};
use crate::explore::Explore;
use crate::lock::client::{self, Client};
use crate::lock::grantor::{self, Caller, Grantor};
use crate::lock::{self, Answer, Call, ClaimId, LockName, Request, Round, Rule, Verdict};
use crate::members::{Incarnation, NodeId, Term};
use crate::protocol::{
    AlgorithmMessage, Bonds, Boot, Commitments, Effect, Effects, Event, Family, Kind, Origin,
    Protocol, Role, View,
};

/// The election below: a quorum, or in explorations a model of its guarantees ([`succession`]).
pub trait Election:
    Explore<Config = Config, Message = quorum::Message, Timer = quorum::Timer, Durable = quorum::Stored>
{
}

impl Election for Quorum {}

/// A member of a quorum whose leader grants a lock to the programs on the members.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LockService<E = Quorum> {
    id: NodeId,
    incarnation: Incarnation,
    election: E,
    grantor: Grantor,
    client: Client,
    /// How many claims its client has made.
    claims: u32,
}

/// Messages between the members.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Of the election below.
    Quorum(quorum::Message),
    /// From a client to the grantor.
    Call(Call),
    /// From the grantor to a client.
    Answer(Answer),
}

/// What a member waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// A timer of the election below.
    Quorum(quorum::Timer),
    /// The end of what an answer to this call can give its client.
    Hold(Round),
    /// Its client's next call.
    Keep,
    /// Another call, because the member that was called does not lead.
    Again,
    /// The end of what earlier leaders granted.
    Settle,
    /// The end of a claim whose client does not call.
    Expire(ClaimId),
}

/// The work of one event.
struct Turn<'a, E: Election> {
    config: &'a Config,
    lock: lock::Config,
    out: &'a mut Effects<LockService<E>>,
}

impl<'a, E: Election> Turn<'a, E> {
    fn new(config: &'a Config, out: &'a mut Effects<LockService<E>>) -> Self {
        Self { config, lock: lock_config(config), out }
    }
}

/// A grant lasts as long as this many vote leases, unless the configuration says otherwise: long enough for a holder to find
/// the next leader before its grant is over. (A grant of a node lasts 10 s.)
const GRANT_IN_VOTE_LEASES: u64 = 3;

/// What grantors and clients agree on.
pub fn lock_config(config: &Config) -> lock::Config {
    let pace = config.quorum.pace;
    let without = match config.mode {
        Mode::Literal(Variant::EmptyTable) => Some(Rule::Settle),
        Mode::Literal(Variant::SomeClaims) => Some(Rule::SettleToTheEnd),
        _ => None,
    };
    let lease = config.exclusion.grant.unwrap_or(pace.vote_lease * GRANT_IN_VOTE_LEASES);
    lock::Config { lease, without, ..lock::Config::new(pace.drift) }
}

/// The one lock there is.
fn section() -> LockName {
    "section".parse().expect("it is short and plain")
}

impl<E: Election> Protocol for LockService<E> {
    type Config = Config;
    type Message = Message;
    type Timer = Timer;
    type Durable = quorum::Stored;

    fn start(
        id: NodeId,
        config: &Config,
        boot: Boot<quorum::Stored>,
        out: &mut Effects<Self>,
    ) -> Self {
        let (incarnation, origin) = (boot.incarnation, boot.origin);
        let mut beneath = out.for_wrapped();
        let election = E::start(id, config, boot, &mut beneath);
        let grantor = match origin {
            Origin::Founding { leader } if leader == Some(id) => {
                Grantor::founding(election.view().term)
            }
            _ => Grantor::default(),
        };
        let client = Client::default();
        let member = Self { id, incarnation, election, grantor, client, claims: 0 };
        let turn = &mut Turn::new(config, out);
        member.pass_on(beneath, turn);
        member
    }

    fn handle(&mut self, config: &Config, event: Event<Message, Timer>, out: &mut Effects<Self>) {
        let turn = &mut Turn::new(config, out);
        match event {
            Event::Message { from, message: Message::Quorum(message) } => {
                self.elect(Event::Message { from, message }, turn);
            }
            Event::Message { from, message: Message::Call(call) } => self.on_call(from, call, turn),
            Event::Message { message: Message::Answer(answer), .. } => self.on_answer(answer, turn),
            Event::Timer(Timer::Quorum(timer)) => self.elect(Event::Timer(timer), turn),
            Event::Timer(timer) => self.on_timer(timer, turn),
            Event::Request => {
                turn.out.rule("G1");
                self.claims += 1;
                let claim = claim_of(self.id, self.incarnation, self.claims);
                self.act(client::Event::Request(claim), turn);
            }
            Event::Exit => {
                turn.out.rule("G6");
                self.act(client::Event::Exit, turn);
            }
            other => other.passed().into_iter().for_each(|event| self.elect(event, turn)),
        }
    }

    fn view(&self) -> View {
        View { section: self.client.section(), ..self.election.view() }
    }

    fn kinds(_: &Config) -> Cow<'static, [Kind]> {
        Message::KINDS.into()
    }

    fn kind_index(_: &Config, message: &Message) -> usize {
        message.index()
    }

    /// What keeps clients and grantors going sets nothing going by itself: while a member waits or is inside, a run is not quiet.
    fn is_background(timer: Timer) -> bool {
        match timer {
            Timer::Quorum(timer) => E::is_background(timer),
            Timer::Hold(_) | Timer::Keep | Timer::Again | Timer::Settle | Timer::Expire(_) => true,
        }
    }

    fn heeds_detector(config: &Config) -> bool {
        E::heeds_detector(config)
    }

    fn has_leases(config: &Config) -> bool {
        E::has_leases(config)
    }

    fn lease(&self) -> Option<Timer> {
        self.election.lease().map(Timer::Quorum)
    }

    fn hold(&self) -> Option<Timer> {
        self.client.hold().map(Timer::Hold)
    }

    fn is_lease(timer: Timer) -> bool {
        match timer {
            Timer::Quorum(timer) => E::is_lease(timer),
            Timer::Hold(_) => true,
            Timer::Keep | Timer::Again | Timer::Settle | Timer::Expire(_) => false,
        }
    }

    fn bonds(&self) -> Bonds<Timer> {
        self.election.bonds().map(Timer::Quorum)
    }
}

impl<E: Election> LockService<E> {
    /// The leader that this member follows, and its term.
    fn leader(&self) -> Option<(NodeId, Term)> {
        let View { leader, term, .. } = self.election.view();
        leader.map(|leader| (leader, term))
    }

    /// The term in which this member may grant: it leads, its lease is valid, because a host handles the end of a lease before
    /// anything else, and it is not about to give it up.
    fn granting_term(&self) -> Option<Term> {
        let View { term, role, .. } = self.election.view();
        (role == Role::Leader && self.election.lease().is_some()).then_some(term)
    }

    /// Something happens to the election.
    fn elect(&mut self, event: Event<quorum::Message, quorum::Timer>, turn: &mut Turn<'_, E>) {
        let (leader, term) = (self.leader(), self.granting_term());
        let mut beneath = turn.out.for_wrapped();
        self.election.handle(turn.config, event, &mut beneath);
        self.pass_on(beneath, turn);
        if self.granting_term() != term {
            if self.granting_term().is_some_and(|term| term > self.grantor.term()) {
                turn.out.rule("G7");
            }
            self.grant(grantor::Event::Lease, turn);
        }
        let waits_or_holds = !self.client.section().is_outside();
        if self.leader().is_some()
            && self.leader() != leader
            && waits_or_holds
            && self.may_call(turn)
        {
            turn.out.rule("G8");
            self.act(client::Event::Timer(client::Timer::Keep), turn);
        }
    }

    fn pass_on(&self, mut beneath: Effects<E>, turn: &mut Turn<'_, E>) {
        turn.out.take_notes(&beneath);
        for effect in beneath.drain() {
            match effect {
                Effect::Persist(stored) => turn.out.persist(stored),
                Effect::Send { to, message } => turn.out.send(to, Message::Quorum(message)),
                Effect::SetTimer { timer, after } => {
                    turn.out.set_timer(Timer::Quorum(timer), after);
                }
                Effect::CancelTimer(timer) => turn.out.cancel_timer(Timer::Quorum(timer)),
                Effect::Announce(view) => {
                    turn.out.announce(View { section: self.client.section(), ..view });
                }
                Effect::Inform(notice) => turn.out.inform(notice),
            }
        }
    }

    /// Whether its client may call again at once: in explorations calls are counted.
    fn may_call(&self, turn: &Turn<'_, E>) -> bool {
        turn.config.exclusion.calls.is_none_or(|most| self.client.round().0 < u64::from(most))
    }

    fn on_timer(&mut self, timer: Timer, turn: &mut Turn<'_, E>) {
        match timer {
            Timer::Quorum(_) => {}
            Timer::Hold(round) => {
                if self.client.hold() == Some(round) {
                    turn.out.rule("G5");
                }
                self.act(client::Event::Timer(client::Timer::Hold(round)), turn);
            }
            Timer::Keep | Timer::Again => {
                turn.out.rule("G4");
                self.act(client::Event::Timer(client::Timer::Keep), turn);
            }
            Timer::Settle => self.grant(grantor::Event::Timer(grantor::Timer::Settle), turn),
            Timer::Expire(claim) => {
                turn.out.rule("G6");
                let timer = grantor::Timer::Expire(section(), claim);
                self.grant(grantor::Event::Timer(timer), turn);
            }
        }
    }

    /// Something happens to its client.
    fn act(&mut self, event: client::Event, turn: &mut Turn<'_, E>) {
        let mut effects = Vec::new();
        self.client.handle(&turn.lock, event, &mut effects);
        let named = |timer| match timer {
            client::Timer::Hold(round) => Timer::Hold(round),
            client::Timer::Keep => Timer::Keep,
        };
        for effect in effects {
            match effect {
                client::Effect::Announce(section) => {
                    turn.out.announce(View { section, ..self.election.view() });
                }
                client::Effect::SetTimer { timer: client::Timer::Keep, .. }
                    if turn.config.exclusion.calls.is_some() => {}
                client::Effect::SetTimer { timer, after } => {
                    turn.out.set_timer(named(timer), after);
                }
                client::Effect::CancelTimer(timer) => turn.out.cancel_timer(named(timer)),
                client::Effect::Call(call) => match self.leader() {
                    Some((leader, _)) if leader == self.id => self.on_call(leader, call, turn),
                    Some((leader, _)) => turn.out.send(leader, Message::Call(call)),
                    // The next leader is called as soon as it is known.
                    None => {}
                },
            }
        }
    }

    fn on_answer(&mut self, answer: Answer, turn: &mut Turn<'_, E>) {
        let is_current = self.client.claim() == Some(answer.claim);
        if answer.verdict == Verdict::NotLeader && is_current && self.may_call(turn) {
            turn.out.set_timer(Timer::Again, turn.config.timing.reply());
        }
        let before = self.client.section();
        let is_late = answer.term < self.client.term();
        self.act(client::Event::Answer(answer), turn);
        match self.client.section() {
            _ if is_late => turn.out.rule("G8"),
            section if section.is_inside() && !before.is_inside() => turn.out.rule("G3"),
            section if section.is_outside() && before.is_inside() => turn.out.rule("G9"),
            _ => {}
        }
    }

    /// A client calls.
    fn on_call(&mut self, from: NodeId, call: Call, turn: &mut Turn<'_, E>) {
        turn.out.rule(match call.request {
            _ if self.granting_term().is_none() => "G10",
            Request::Acquire { .. } => "G2",
            Request::Keep { .. } if self.grantor.settles() => "G9",
            Request::Keep { .. } => "G4",
            Request::Release => "G6",
        });
        let by = Caller { origin: lock::Origin(u128::from(from.0)), owner: Arc::from("") };
        self.grant(grantor::Event::Call { lock: section(), call, by }, turn);
    }

    /// Something happens to its grantor.
    fn grant(&mut self, event: grantor::Event, turn: &mut Turn<'_, E>) {
        let mut effects = Vec::new();
        self.grantor.handle(&turn.lock, self.granting_term(), event, &mut effects);
        let named = |timer| match timer {
            grantor::Timer::Settle => Timer::Settle,
            grantor::Timer::Expire(_, claim) => Timer::Expire(claim),
        };
        for effect in effects {
            match effect {
                grantor::Effect::SetTimer { timer, after } => {
                    turn.out.set_timer(named(timer), after);
                }
                grantor::Effect::CancelTimer(timer) => turn.out.cancel_timer(named(timer)),
                // It tells the client nothing that it needs to know.
                grantor::Effect::Answer {
                    answer: Answer { verdict: Verdict::Released, .. },
                    ..
                } => {}
                grantor::Effect::Answer { answer, .. } => match member_of(answer.claim) {
                    to if to == self.id => self.on_answer(answer, turn),
                    to if turn.config.members.contains(to) => {
                        turn.out.send(to, Message::Answer(answer));
                    }
                    _ => {}
                },
            }
        }
    }
}

impl<E: Election> Explore for LockService<E> {
    fn ends_first(timer: Timer) -> bool {
        Self::is_lease(timer)
    }
}

/// The identity of a claim: no other claim of any start of any member has it.
fn claim_of(member: NodeId, incarnation: Incarnation, number: u32) -> ClaimId {
    let [member, incarnation, number] = [member.0, incarnation.0, number].map(u128::from);
    ClaimId(member << 64 | incarnation << 32 | number)
}

/// The member whose client has made a claim.
fn member_of(claim: ClaimId) -> NodeId {
    NodeId((claim.0 >> 64) as u32)
}

const OF_QUORUM: &[Kind] = <quorum::Message as AlgorithmMessage>::KINDS;

/// The kinds of calls and answers.
const OWN: [Kind; 8] = [
    Kind::own("LOCK", Family::Ask, "asks the leader for the lock, or for a place in its queue"),
    Kind::own(
        "KEEP",
        Family::Ask,
        "asks the leader for another lease of the lock, and shows its fence",
    ),
    Kind::own("FREE", Family::Announce, "gives the lock back, or the place in its queue"),
    Kind::own("GRANT", Family::HandOver, "grants the section to the receiver, for one lease"),
    Kind::own("QUEUED", Family::Answer, "tells the receiver its place in the queue"),
    Kind::own("GONE", Family::Refuse, "says that the receiver does not hold the lock any more"),
    Kind::own("FULL", Family::Refuse, "says that there is no room for another claim"),
    Kind::own("NOT-LEADER", Family::Refuse, "says that its sender does not lead, or has no lease"),
];

const ALL: [Kind; OF_QUORUM.len() + OWN.len()] = {
    let mut all = [OWN[0]; OF_QUORUM.len() + OWN.len()];
    let mut place = 0;
    while place < all.len() {
        let beneath = OF_QUORUM.len();
        all[place] = if place < beneath { OF_QUORUM[place] } else { OWN[place - beneath] };
        place += 1;
    }
    all
};

impl AlgorithmMessage for Message {
    const KINDS: &'static [Kind] = &ALL;

    fn index(&self) -> usize {
        let own = match self {
            Self::Quorum(message) => return message.index(),
            Self::Call(Call { request: Request::Acquire { .. }, .. }) => 0,
            Self::Call(Call { request: Request::Keep { .. }, .. }) => 1,
            Self::Call(Call { request: Request::Release, .. }) => 2,
            Self::Answer(Answer { verdict, .. }) => match verdict {
                Verdict::Held(_) => 3,
                Verdict::Waiting { .. } => 4,
                Verdict::Gone | Verdict::Released => 5,
                Verdict::Full(_) => 6,
                Verdict::NotLeader => 7,
            },
        };
        OF_QUORUM.len() + own
    }

    fn commitments(&self) -> Commitments {
        match self {
            Self::Quorum(message) => message.commitments(),
            Self::Call(_) | Self::Answer(_) => Commitments::default(),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::KINDS[self.index()].name;
        match self {
            Self::Quorum(message) => message.fmt(f),
            Self::Call(Call { request: Request::Acquire { ticket: Some(ticket) }, .. }) => {
                write!(f, "{name} ticket={ticket}")
            }
            Self::Call(Call { request: Request::Keep { fence }, .. }) => {
                write!(f, "{name} fence={fence}")
            }
            Self::Answer(Answer { term, verdict: Verdict::Held(fence), .. }) => {
                write!(f, "{name} term={term} fence={fence}")
            }
            Self::Answer(Answer {
                term, verdict: Verdict::Waiting { ticket, ahead, .. }, ..
            }) => {
                write!(f, "{name} term={term} ticket={ticket} ahead={ahead}")
            }
            Self::Answer(Answer { term, .. }) => write!(f, "{name} term={term}"),
            Self::Call(_) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests;
