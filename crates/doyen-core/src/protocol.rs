//! The contract between an election algorithm and whatever runs it.
//!
//! One algorithm is one state machine that is told of [`Event`]s and answers with [`Effect`]s. It has no clock, no
//! randomness and no I/O, so the simulator, the checker and a real node run the very same code. The host's side of
//! the contract is the numbered list at the head of this crate.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::change::LeaderChange;
use crate::members::{Incarnation, NodeId, Term};
use crate::session::SessionId;
use crate::time::{Delay, Span};

/// An election algorithm: events in, effects out.
pub trait Protocol: Sized + Clone + Eq + Hash + Debug {
    /// What every member is configured with. Shared, never part of the state.
    type Config;
    /// What members send each other.
    type Message: Message;
    /// The name of a timer: a tag, never a time. At most one timer of a tag is armed at once.
    type Timer: Copy + Eq + Ord + Hash + Debug;
    /// What must survive a crash.
    type Durable: Durable;

    /// Builds the state of member `id` and begins.
    fn start(
        id: NodeId,
        config: &Self::Config,
        boot: Boot<Self::Durable>,
        out: &mut Effects<Self>,
    ) -> Self;

    /// Handles one event.
    fn handle(
        &mut self,
        config: &Self::Config,
        event: Event<Self::Message, Self::Timer>,
        out: &mut Effects<Self>,
    );

    /// What this member believes now.
    fn view(&self) -> View;

    /// The kinds of its messages, in the order in which kinds that arrive at the same instant are handled.
    fn kinds(config: &Self::Config) -> Cow<'static, [Kind]>;

    /// Which of [`kinds`](Self::kinds) a message is.
    fn kind_index(config: &Self::Config, message: &Self::Message) -> usize;

    /// Whether `timer` belongs to upkeep that goes on for ever, such as a heartbeat. A run is quiet when only such
    /// timers are left.
    fn is_upkeep(timer: Self::Timer) -> bool;

    /// Whether it heeds `PeerDown` and `PeerUp`. Where it does not, nobody needs to tell it.
    fn heeds_detector(_config: &Self::Config) -> bool {
        true
    }

    /// Whether it finds out by itself which incarnation to take when the disk is lost. Where it does not, the host takes
    /// one that no start can have had.
    fn has_sessions() -> bool {
        false
    }

    // Leases: an algorithm without them leaves these as they are. Hosts publish the lease; the safety rules are checked
    // by what each member says of its lease and of its bonds, and by what its messages pledge (see `Message`).

    /// Whether its leaders have leases. Where they have none, nothing is asked about them.
    fn has_leases(_config: &Self::Config) -> bool {
        false
    }

    /// Whether it can talk to `peer`. Only where processes of a member are told apart must they meet before.
    fn has_met(&self, _peer: NodeId) -> bool {
        true
    }

    /// The armed timer whose firing ends this member's lease, while it leads under one. The host knows when that will
    /// be, and tells those who act for the leader.
    fn lease(&self) -> Option<Self::Timer> {
        None
    }

    /// Whether `timer` may end a lease: those come first when several are due.
    fn is_lease(_timer: Self::Timer) -> bool {
        false
    }

    /// What keeps this member from voting.
    fn bonds(&self) -> Bonds<Self::Timer> {
        Bonds::NONE
    }
}

/// What keeps a member from voting, each with the armed timer whose firing ends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bonds<T> {
    /// Its vote lease, and of which term's leader it is.
    pub vote_lease: Option<(Term, T)>,
    /// Its hold-down after a restart.
    pub hold_down: Option<T>,
    /// Its own lease, on which others may still act, whether it leads or not.
    pub own_lease: Option<T>,
    /// It votes in no case before its hold-down begins, because it has lost its disk and has not heard from every other
    /// member yet; or it never votes again.
    pub silenced: bool,
}

impl<T> Bonds<T> {
    /// Nothing keeps it from voting.
    pub const NONE: Self =
        Self { vote_lease: None, hold_down: None, own_lease: None, silenced: false };

    /// A member that is down does not vote; what keeps it from voting when it comes up is judged then.
    pub const DOWN: Self =
        Self { vote_lease: None, hold_down: None, own_lease: None, silenced: true };

    /// The same where timers have other names.
    pub fn map<U>(self, name: impl Fn(T) -> U) -> Bonds<U> {
        Bonds {
            vote_lease: self.vote_lease.map(|(term, timer)| (term, name(timer))),
            hold_down: self.hold_down.map(&name),
            own_lease: self.own_lease.map(&name),
            silenced: self.silenced,
        }
    }
}

/// What a member stores.
pub trait Durable: Clone + Eq + Hash + Debug + Serialize {
    /// The highest term that the member knows of. It never falls.
    fn term(&self) -> Term;

    /// For whom it has voted in that term. That never changes within a term.
    fn vote(&self) -> Option<NodeId> {
        None
    }

    /// Whether its operator does not want it to lead.
    fn is_drained(&self) -> bool {
        false
    }

    /// Whether the member has lost its disk, and has not stored since what it may go on from: if it restarts, it rejoins
    /// still.
    fn is_rejoining(&self) -> bool {
        false
    }

    /// The incarnation that stored it, where that is part of what is stored.
    fn incarnation(&self) -> Option<Incarnation> {
        None
    }
}

impl Durable for Term {
    fn term(&self) -> Term {
        *self
    }
}

/// How a process came up.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Boot<D> {
    /// Raised and stored by the host before every start. If it was lost with the disk: the lowest that this start may
    /// take, as far as the host knows.
    pub incarnation: Incarnation,
    /// What the disk holds; `None` on the first start and after the disk was lost.
    pub durable: Option<D>,
    /// Into what it comes.
    pub origin: Origin,
    /// A random number that no other start has drawn.
    pub session: SessionId,
    /// The time of day in seconds since 1970, by a clock that may be wrong.
    pub time_of_day: u32,
}

impl<D> Boot<D> {
    /// A start for a protocol that asks for no session and no time of day.
    pub const fn new(incarnation: Incarnation, durable: Option<D>, origin: Origin) -> Self {
        let session = SessionId::from_random(incarnation.0 as u64);
        Self { incarnation, durable, origin, session, time_of_day: 0 }
    }
}

/// Into what a process comes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// All members start together, and `leader` leads: the scene with which every source begins.
    Founding {
        /// Who leads at the beginning, if anybody does.
        leader: Option<NodeId>,
    },
    /// The group may be running already: the process has just been started or has recovered.
    Joining,
    /// The same, but it has lost its disk, and its operator says that it may come back nevertheless. That is so until it
    /// has stored something: if it restarts before, it must not be taken for one that starts for the first time.
    Rejoining,
}

/// What happens to a member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event<M, T> {
    /// A message arrived.
    Message {
        /// Who sent it.
        from: NodeId,
        /// What it says.
        message: M,
    },
    /// An armed timer fired.
    Timer(T),
    /// The failure detector gives a member up.
    PeerDown(NodeId),
    /// The failure detector hears a member again, and is heard by it.
    PeerUp(NodeId),
    /// Somebody on this member wants an election: it noticed that the coordinator does not answer.
    Campaign,
    /// The operator wants something.
    Command(AdminCommand),
    /// Everything has been stopped that ran under the lease of a retiring leader, and nobody relies on it any more.
    Retired,
}

/// What an operator can ask of a member whose algorithm has leases. The others pay no heed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdminCommand {
    /// Lead no longer.
    Resign,
    /// Hand over to this member.
    Transfer {
        /// To whom.
        to: NodeId,
    },
    /// Do not lead as long as another member can; until told otherwise if it is not said for how long.
    Drain {
        /// For how long.
        lasting: Option<Span>,
        /// Not even if every member that could lead is drained; until told otherwise.
        never: bool,
    },
    /// You may lead again.
    Undrain,
    /// This member is to lead while it can. Asked of the leader.
    Prefer {
        /// Who.
        member: NodeId,
        /// For how long; not at all any more, if for no time.
        lasting: Span,
    },
    /// The attribute of this member has changed.
    Attribute(i64),
}

impl fmt::Display for AdminCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resign => f.write_str("resign"),
            Self::Transfer { to } => write!(f, "transfer to {to}"),
            Self::Drain { never: true, .. } => f.write_str("drain, never lead"),
            Self::Drain { lasting: None, .. } => f.write_str("drain"),
            Self::Drain { lasting: Some(span), .. } => write!(f, "drain for {span}"),
            Self::Undrain => f.write_str("undrain"),
            Self::Prefer { member, lasting } => write!(f, "prefer {member} for {lasting}"),
            Self::Attribute(attr) => write!(f, "attribute {attr}"),
        }
    }
}

/// Why an order is not obeyed. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// It is for the leader, which this member is not.
    NotLeading,
    /// This member cannot lead, has not been heard of late, has just restarted, or reaches no majority.
    Unfit(NodeId),
    /// Nobody else could lead.
    NobodyElse,
    /// It has lost its disk, and has nothing yet that it may store.
    Rejoining,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLeading => f.write_str("this member does not lead; ask the leader"),
            Self::Unfit(id) => {
                write!(
                    f,
                    "{id} cannot lead now: it is no candidate, not heard, has just restarted, or \
                     reaches no majority"
                )
            }
            Self::NobodyElse => f.write_str("nobody else could lead"),
            Self::Rejoining => f.write_str(
                "it has lost its disk and not heard from everybody yet; try again later",
            ),
        }
    }
}

/// What a member wants done.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Effect<M, T, D> {
    /// Store this, and go on only when it is stored.
    Persist(D),
    /// Send a message.
    Send {
        /// To whom.
        to: NodeId,
        /// What.
        message: M,
    },
    /// Arm a timer; a timer of the same tag that is armed already is replaced.
    SetTimer {
        /// Its tag.
        timer: T,
        /// How long it waits.
        after: Delay,
    },
    /// Disarm a timer, if it is armed.
    CancelTimer(T),
    /// What this member believes has changed.
    Announce(View),
    /// Nothing to do, something to record.
    Inform(Notice),
}

/// What a host is told for its records.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Notice {
    /// The failure detector gave this member up; the algorithm has been told already.
    Down(NodeId),
    /// The failure detector hears this member again; the algorithm has been told already.
    Up(NodeId),
    /// The leadership has changed, and why.
    Changed(LeaderChange),
    /// An order was refused.
    Refused(Refusal),
    /// This member is configured otherwise, and is ignored.
    ForeignConfiguration(NodeId),
    /// The disk is an old copy: another member has heard this one in a later term. It does nothing any more, and its
    /// process should stop.
    StateIsOld {
        /// In which term it was heard.
        seen: Term,
        /// By whom.
        by: NodeId,
    },
    /// It has lost its disk and is the only member: nobody can tell it which terms there have been. It does nothing, and
    /// its process should stop. It can be set up anew, above all terms that were ever shown as tokens.
    NobodyToAsk,
    /// No higher term than the present one can be written down, so nobody can be elected.
    OutOfTerms,
    /// Another process of this member has been met, in this incarnation or a later one: the disk is an old copy, or
    /// another process runs with a copy of it. This one does nothing any more, and should stop.
    Replaced {
        /// Which incarnation has been met.
        seen: Incarnation,
        /// By whom.
        by: NodeId,
    },
    /// It has lost its disk, and the clock is plainly wrong: it cannot take an incarnation that it cannot have had. It
    /// does nothing, and its process should stop.
    WrongClock,
    /// A letter was dropped.
    Dropped {
        /// From whom it was.
        from: NodeId,
        /// Why.
        why: Dropped,
    },
    /// A message to this peer was not sent, because the peer has not been met.
    Unsent(NodeId),
}

/// Why a letter was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dropped {
    /// It is from or for another process than the present ones.
    Session,
    /// It came before, or is so old that nobody can tell.
    Replayed,
    /// It greets from a session that is not known yet, sooner after another such than they are answered.
    Limited,
}

/// The effect type of a protocol.
pub type EffectOf<P> =
    Effect<<P as Protocol>::Message, <P as Protocol>::Timer, <P as Protocol>::Durable>;

/// What a member believes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct View {
    /// Whom it follows (itself, if it leads).
    pub leader: Option<NodeId>,
    /// In which term that leader was elected; zero in textbook mode, which has no terms.
    pub term: Term,
    /// What it is doing.
    pub role: Role,
}

/// What a member is doing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Nothing: it follows a leader, or knows of none and does not seek one.
    Follower,
    /// Taking part in an election of which it does not know the end.
    Candidate,
    /// Leading.
    Leader,
    /// Leading still, but about to hand over: nothing new is to begin under its lease.
    Retiring,
}

impl Role {
    /// Whether it acts as a leader.
    pub fn leads(self) -> bool {
        matches!(self, Self::Leader | Self::Retiring)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Follower => "follower",
            Self::Candidate => "candidate",
            Self::Leader => "leader",
            Self::Retiring => "retiring",
        })
    }
}

/// What members say to each other.
///
/// `Display` writes the source's upper-case word and the fields that matter, for traces and golden scripts.
pub trait Message: Clone + Eq + Hash + Debug + fmt::Display + Serialize {
    /// Its kind.
    fn kind(&self) -> Kind;

    /// How many bytes it takes on the wire. Computed, not encoded: the simulator counts every message.
    fn encoded_len(&self) -> usize;

    // What a message says about votes and leases, for those who check the safety rules. An algorithm without leases
    // leaves these as they are.

    /// What its sender binds itself to by sending it, for those who check that it keeps its word.
    fn pledge(&self) -> Option<Pledge> {
        None
    }

    /// For how long it asks its receiver to follow nobody else, for the same.
    fn promise_asked(&self) -> Option<Span> {
        None
    }

    /// The term whose leader holds nobody to a promise any more, as its receiver learns from it.
    fn promise_released(&self) -> Option<Term> {
        None
    }

    // Addresses: only what meets the network directly knows of them.

    /// Where it goes. Nothing where the protocol does not know of addresses, or leaves it to the host to find out where
    /// the receiver's configured name leads.
    fn destination(&self) -> Option<SocketAddr> {
        None
    }

    /// The same message as it arrives from `address`, where the protocol knows of addresses.
    #[must_use]
    fn posted_from(self, _address: SocketAddr) -> Self {
        self
    }
}

/// What a message binds its sender to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pledge {
    /// It stands in this term, and has voted for itself.
    Candidacy {
        /// Which term.
        term: Term,
    },
    /// Its one vote of this term, for the receiver.
    Vote {
        /// Which term.
        term: Term,
    },
    /// To vote for nobody else for as long as the receiver, which leads in this term, has asked for.
    Promise {
        /// Which term.
        term: Term,
    },
    /// That it leads no longer in this term, and holds nobody to a promise.
    Release {
        /// Which term.
        term: Term,
    },
}

/// A kind of message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// The word the sources use, in upper case.
    pub name: &'static str,
    /// On whose account it goes.
    pub class: Class,
}

impl Kind {
    /// A message of the election itself.
    pub const fn election(name: &'static str) -> Self {
        Self { name, class: Class::Election }
    }

    /// An acknowledgement or retransmission.
    pub const fn link(name: &'static str) -> Self {
        Self { name, class: Class::Link }
    }

    /// A heartbeat.
    pub const fn detector(name: &'static str) -> Self {
        Self { name, class: Class::Detector }
    }
}

/// On whose account a message goes. The literature's counts are of [`Class::Election`] alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The algorithm's own messages.
    Election,
    /// Acknowledgements and retransmissions.
    Link,
    /// Heartbeats.
    Detector,
}

/// Collects what a handler wants done, in order. A host keeps one and drains it after every event.
#[derive(Clone, Debug)]
pub struct Effects<P: Protocol> {
    list: Vec<EffectOf<P>>,
    rules: Vec<&'static str>,
    elections: u32,
    unexplained: bool,
}

impl<P: Protocol> Effects<P> {
    /// An empty collection.
    pub const fn new() -> Self {
        Self { list: Vec::new(), rules: Vec::new(), elections: 0, unexplained: false }
    }

    /// An empty collection for a protocol that this one wraps: it notes rules only if they are wanted here.
    pub(crate) fn for_wrapped<Q: Protocol>(&self) -> Effects<Q> {
        Effects { unexplained: self.unexplained, ..Effects::new() }
    }

    /// An empty collection for a host that asks for no explanations: it notes no rules.
    pub fn unexplained() -> Self {
        Self { unexplained: true, ..Self::new() }
    }

    /// Wants `message` sent to `to`.
    #[inline]
    pub fn send(&mut self, to: NodeId, message: P::Message) {
        self.list.push(Effect::Send { to, message });
    }

    /// Wants `timer` armed.
    pub fn set_timer(&mut self, timer: P::Timer, after: impl Into<Delay>) {
        self.list.push(Effect::SetTimer { timer, after: after.into() });
    }

    /// Wants `timer` disarmed.
    pub fn cancel_timer(&mut self, timer: P::Timer) {
        self.list.push(Effect::CancelTimer(timer));
    }

    /// Wants `durable` stored before anything that follows.
    pub fn persist(&mut self, durable: P::Durable) {
        self.list.push(Effect::Persist(durable));
    }

    /// Wants the host to know the new view.
    #[inline]
    pub fn announce(&mut self, view: View) {
        self.list.push(Effect::Announce(view));
    }

    /// Wants the host to know the new view before the effects from the `place`th on are carried out.
    pub(crate) fn announce_before(&mut self, place: usize, view: View) {
        self.list.insert(place, Effect::Announce(view));
    }

    /// Wants the host to record something.
    pub fn inform(&mut self, notice: Notice) {
        self.list.push(Effect::Inform(notice));
    }

    /// Notes which rule of the specification fired, for explanations.
    #[inline]
    pub fn rule(&mut self, rule: &'static str) {
        if !self.unexplained {
            self.rules.push(rule);
        }
    }

    /// Notes that this member began an election of its own.
    #[inline]
    pub fn election_started(&mut self) {
        self.elections += 1;
    }

    /// Takes over the notes, not the effects, of a protocol that this one wraps: its rules and its elections.
    pub(crate) fn take_notes<Q: Protocol>(&mut self, wrapped: &Effects<Q>) {
        self.rules.extend_from_slice(&wrapped.rules);
        self.elections += wrapped.elections;
    }

    /// Takes the message, if one message is all that the handler wants done and it began no election. Nothing is left
    /// then, not even notes.
    #[inline]
    pub fn take_lone_message(&mut self) -> Option<(NodeId, P::Message)> {
        if self.elections > 0 || !matches!(self.list[..], [Effect::Send { .. }]) {
            return None;
        }
        self.rules.clear();
        match self.list.pop() {
            Some(Effect::Send { to, message }) => Some((to, message)),
            _ => None,
        }
    }

    /// Takes the effects, in order, and leaves the collection ready for the next event.
    pub fn drain(&mut self) -> std::vec::Drain<'_, EffectOf<P>> {
        self.list.drain(..)
    }

    /// The effects, in order.
    pub fn list(&self) -> &[EffectOf<P>] {
        &self.list
    }

    /// Which rules fired, in order.
    pub fn rules(&self) -> &[&'static str] {
        &self.rules
    }

    /// How many elections this member began.
    #[inline]
    pub fn elections(&self) -> u32 {
        self.elections
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.list.clear();
        self.rules.clear();
        self.elections = 0;
    }
}

impl<P: Protocol> Default for Effects<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// How many bytes a number takes in the wire's variable-length form: seven bits a byte.
#[inline]
pub const fn varint_len(value: u64) -> usize {
    // Zero takes a byte, as one does.
    let bits = 64 - (value | 1).leading_zeros() as usize;
    // `bits.div_ceil(7)` without a division: the simulator measures every message.
    (bits * 9 + 64) / 64
}

/// The name of a message's kind.
pub fn name_of<M: Message>(message: &M) -> &'static str {
    message.kind().name
}

/// Writes ` term=3`, and nothing in textbook mode, where terms are zero.
pub(crate) fn write_term(f: &mut fmt::Formatter<'_>, term: Term) -> fmt::Result {
    if term == Term::default() { Ok(()) } else { write!(f, " term={term}") }
}
