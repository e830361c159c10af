//! The contract between an algorithm and its host.
//!
//! One algorithm is one state machine that receives [`Event`]s and answers with [`Effect`]s. It has no clock, no
//! randomness and no I/O, so the simulator, the checker and a real node run the same code. The host's side of the
//! contract is the numbered list in the documentation of this crate.
//!
//! The contract is the same for all algorithms, whether they elect a leader or keep members out of a critical section.
//! Each ignores the events that mean nothing to it, and its [`View`] says what its members believe of a leader, of the
//! section, or of both.

mod delivery;
mod effects;
mod message;
mod recording;
mod rule;
mod view;

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use crate::change::LeaderChange;
use crate::members::{Incarnation, NodeId, SessionId, Term};
use crate::time::{Delay, Span};

pub use delivery::{Deliveries, Multicast};
pub use effects::{Context, Effects};
pub use message::{AlgorithmMessage, Class, Commitments, Family, Kind, Message, Pledge, name_of};
pub use recording::{Channel, Flaw, Holding, Recording};
pub use rule::RuleText;
pub use view::{AskedAfter, Fence, Role, Section, View};

/// An algorithm: events in, effects out.
pub trait Protocol: Sized + Clone + Eq + Hash + Debug {
    /// The configuration of a member. Shared, never part of the state.
    type Config;
    /// What members send each other.
    type Message: Message;
    /// The name of a timer: a tag, never a time. At most one timer of a tag is armed at once.
    type Timer: Copy + Eq + Ord + Hash + Debug;
    /// The state that must survive a crash.
    type Durable: Durable;

    /// Builds the state of member `id` and starts it.
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

    /// The member to which this one passes `message` on, as it is, if the message makes it do nothing else: it stays as it
    /// is, and there is no other effect. A host that needs no explanation may ask this before it calls
    /// [`handle`](Self::handle), and call it only if there is no answer. An algorithm that passes few messages on keeps
    /// this default.
    #[inline(always)]
    fn relay(&self, _config: &Self::Config, _message: &Self::Message) -> Option<NodeId> {
        None
    }

    /// What this member currently believes.
    fn view(&self) -> View;

    /// The kinds of its messages, in the order in which kinds that arrive at the same instant are handled.
    fn kinds(config: &Self::Config) -> Cow<'static, [Kind]>;

    /// Which of [`kinds`](Self::kinds) a message is.
    fn kind_index(config: &Self::Config, message: &Self::Message) -> usize;

    /// Whether `timer` belongs to a background activity that never ends, such as heartbeats. A run is quiet when only
    /// such timers are left.
    fn is_background(timer: Self::Timer) -> bool;

    /// Whether it uses `PeerDown` and `PeerUp`. If not, no detector is needed.
    fn heeds_detector(_config: &Self::Config) -> bool {
        true
    }

    /// Whether it determines its own incarnation when the disk is lost. If not, the host takes one that no start can
    /// have had.
    fn has_sessions(_config: &Self::Config) -> bool {
        false
    }

    // Leases: an algorithm without leases keeps these defaults. Hosts publish the lease. The safety rules are checked
    // against what each member reports about its lease and its bonds, and what its messages commit it to
    // (`Message::commitments`).

    /// Whether its leaders hold leases. If not, the other functions about leases are not used.
    fn has_leases(_config: &Self::Config) -> bool {
        false
    }

    /// Whether it can exchange messages with `peer`. Only protocols with sessions must meet a peer first.
    fn has_met(&self, _peer: NodeId) -> bool {
        true
    }

    /// The armed timer whose firing ends this member's lease, while it leads under one. The host knows the deadline,
    /// and publishes it to programs that act for the leader.
    fn lease(&self) -> Option<Self::Timer> {
        None
    }

    /// The armed timer whose firing ends this member's stay in the critical section, if the stay has a limit. The host
    /// knows the deadline, and publishes it to programs that act inside.
    fn hold(&self) -> Option<Self::Timer> {
        None
    }

    /// Whether `timer` may end a lease or a stay: such timers are handled first when several are due.
    fn is_lease(_timer: Self::Timer) -> bool {
        false
    }

    // Snapshots: only the layer that takes them, and algorithms that move something that is conserved, have these.

    /// How much this member has of what the algorithm conserves, if it conserves something.
    fn holding(&self) -> Option<Holding> {
        None
    }

    /// What this member has recorded, once a snapshot has reached it.
    fn recording(&self) -> Option<Recording> {
        None
    }

    /// What this member has delivered, if the algorithm is a totally ordered multicast.
    fn deliveries(&self) -> Option<&Deliveries> {
        None
    }

    /// What its request to enter a critical section comes after, if that is known.
    fn asked_after(&self) -> Option<&AskedAfter> {
        None
    }

    /// What keeps this member from voting.
    fn bonds(&self) -> Bonds<Self::Timer> {
        Bonds::NONE
    }
}

/// What keeps a member from voting, each with the armed timer whose firing ends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bonds<T> {
    /// Its vote lease, and the term of the leader that it gave it to.
    pub vote_lease: Option<(Term, T)>,
    /// Its hold-down after a restart.
    pub hold_down: Option<T>,
    /// Its own lease, on which programs may still act, whether it leads or not.
    pub own_lease: Option<T>,
    /// It does not vote before its hold-down begins, because it has lost its disk and not every other member has
    /// answered yet; or it never votes again.
    pub silenced: bool,
}

impl<T> Bonds<T> {
    /// Nothing keeps it from voting.
    pub const NONE: Self =
        Self { vote_lease: None, hold_down: None, own_lease: None, silenced: false };

    /// A member that is down does not vote; its bonds are determined when it starts again.
    pub const DOWN: Self =
        Self { vote_lease: None, hold_down: None, own_lease: None, silenced: true };

    /// The same with renamed timers.
    pub fn map<U>(self, name: impl Fn(T) -> U) -> Bonds<U> {
        Bonds {
            vote_lease: self.vote_lease.map(|(term, timer)| (term, name(timer))),
            hold_down: self.hold_down.map(&name),
            own_lease: self.own_lease.map(&name),
            silenced: self.silenced,
        }
    }
}

/// The state that a member stores.
pub trait Durable: Clone + Eq + Hash + Debug + Serialize {
    /// The highest term known to the member. It never falls.
    fn term(&self) -> Term;

    /// The member it has voted for in that term. It never changes within a term.
    fn vote(&self) -> Option<NodeId> {
        None
    }

    /// Whether the operator has drained it.
    fn is_drained(&self) -> bool {
        false
    }

    /// Whether it knows of a pause that is not over.
    fn is_paused(&self) -> bool {
        false
    }

    /// Whether the member has lost its disk and has not yet stored a state to continue from. If it restarts, it is
    /// still rejoining.
    fn is_rejoining(&self) -> bool {
        false
    }

    /// The incarnation that stored it, if the stored state includes it.
    fn incarnation(&self) -> Option<Incarnation> {
        None
    }
}

impl Durable for Term {
    fn term(&self) -> Term {
        *self
    }
}

/// How a process starts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Boot<D> {
    /// Raised and stored by the host before every start. If it was lost with the disk: the lowest that this start may
    /// take, as far as the host knows.
    pub incarnation: Incarnation,
    /// What the disk holds; `None` on the first start and after the disk was lost.
    pub durable: Option<D>,
    /// What kind of group it starts into.
    pub origin: Origin,
    /// A random number that no other start has drawn.
    pub session: SessionId,
    /// The time of day in seconds since 1970, by a clock that may be wrong.
    pub time_of_day: u32,
}

impl<D> Boot<D> {
    /// A start for a protocol that uses neither session nor time of day.
    pub const fn new(incarnation: Incarnation, durable: Option<D>, origin: Origin) -> Self {
        let session = SessionId::from_random(incarnation.0 as u64);
        Self { incarnation, durable, origin, session, time_of_day: 0 }
    }
}

/// What kind of group a process starts into.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Origin {
    /// All members start together, and `leader` leads: the initial state of every source.
    Founding { leader: Option<NodeId> },
    /// The group may be running already: the process has just been started or has recovered.
    Joining,
    /// The same, but it has lost its disk, and its operator allows it to come back nevertheless. This holds until it
    /// has stored something: if it restarts before, it must not be mistaken for a first start.
    Rejoining,
}

/// An input of a member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Event<M, T> {
    /// A message arrived.
    Message { from: NodeId, message: M },
    /// An armed timer fired.
    Timer(T),
    /// The failure detector considers this member down.
    PeerDown(NodeId),
    /// The failure detector considers this member up again: messages pass in both directions.
    PeerUp(NodeId),
    /// A program on this member requests an election: it noticed that the coordinator does not answer.
    Campaign,
    /// The operator gives a command.
    Command(AdminCommand),
    /// Everything that ran under the lease of a retiring leader has stopped, and nothing relies on the lease any more.
    Retired,
    /// A program on this member wants to enter the critical section. It asks only while the member is outside.
    Request,
    /// Everything that ran inside the critical section has stopped: the member leaves it.
    Exit,
    /// The process has died. Its host gives this event to a copy of the last state, whose answer nothing else sees: the
    /// messages that the host may send in the name of the dead process (14 in the list of the crate).
    Crashed,
}

impl<M, T> Event<M, T> {
    /// The same event for the algorithm within a layer: what `message` and `timer` make of a message or a timer; none if that
    /// is not for the algorithm.
    #[inline]
    pub fn map<N, U>(
        self,
        message: impl FnOnce(NodeId, M) -> Option<N>,
        timer: impl FnOnce(T) -> Option<U>,
    ) -> Option<Event<N, U>> {
        match self {
            Self::Message { from, message: outer } => {
                Some(Event::Message { from, message: message(from, outer)? })
            }
            Self::Timer(outer) => Some(Event::Timer(timer(outer)?)),
            other => other.passed(),
        }
    }

    /// The same event for the algorithm within a layer, if it is neither a message nor a timer of the layer.
    #[inline]
    pub(crate) fn passed<N, U>(self) -> Option<Event<N, U>> {
        Some(match self {
            Self::Message { .. } | Self::Timer(_) => return None,
            Self::PeerDown(peer) => Event::PeerDown(peer),
            Self::PeerUp(peer) => Event::PeerUp(peer),
            Self::Campaign => Event::Campaign,
            Self::Command(command) => Event::Command(command),
            Self::Retired => Event::Retired,
            Self::Request => Event::Request,
            Self::Exit => Event::Exit,
            Self::Crashed => Event::Crashed,
        })
    }
}

/// A command that an operator can give a member. All but [`Snapshot`](Self::Snapshot) are for algorithms with leases;
/// others ignore them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum AdminCommand {
    /// Step down as leader.
    Resign,
    /// Step down as leader, because its process is about to end.
    ShutDown,
    /// Step down as leader, because what it runs keeps failing: that counts as a failure.
    GiveUp,
    /// Transfer leadership to this member.
    Transfer { to: NodeId },
    /// Do not lead as long as another member can.
    Drain {
        /// The duration; without one, until `Undrain`.
        lasting: Option<Span>,
        /// Do not lead even if every member that could lead is drained; until `Undrain`.
        never: bool,
    },
    /// End a drain.
    Undrain,
    /// This member is to lead while it can. For the leader only.
    Prefer {
        member: NodeId,
        /// The duration; zero withdraws the preference.
        lasting: Span,
    },
    /// The attribute of this member has changed.
    Attribute(i64),
    /// No member campaigns for this time, except by a transfer. Any member accepts it and tells the others.
    Pause { lasting: Span },
    /// End a pause. Any member accepts it and tells the others.
    Resume,
    /// Start a snapshot of the whole group. Only members under the layer that takes snapshots act on it.
    Snapshot,
    /// Send this member a message of the application. Only members under [`hearsay`](crate::hearsay) act on it.
    Tell { to: NodeId },
}

impl fmt::Display for AdminCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resign => f.write_str("resign"),
            Self::ShutDown => f.write_str("shut down"),
            Self::GiveUp => f.write_str("give up"),
            Self::Transfer { to } => write!(f, "transfer to {to}"),
            Self::Drain { never: true, .. } => f.write_str("drain, never lead"),
            Self::Drain { lasting: None, .. } => f.write_str("drain"),
            Self::Drain { lasting: Some(span), .. } => write!(f, "drain for {span:#}"),
            Self::Undrain => f.write_str("undrain"),
            Self::Prefer { member, lasting } => write!(f, "prefer {member} for {lasting:#}"),
            Self::Attribute(attr) => write!(f, "attribute {attr}"),
            Self::Pause { lasting } => write!(f, "pause for {lasting:#}"),
            Self::Resume => f.write_str("resume"),
            Self::Snapshot => f.write_str("snapshot"),
            Self::Tell { to } => write!(f, "tell {to}"),
        }
    }
}

/// Why a command is rejected. A rejected command changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// The command is for the leader, and this member does not lead.
    NotLeading,
    /// This member cannot lead, is unreachable, has just restarted, or does not reach a majority.
    Unfit(NodeId),
    /// No other member could lead.
    NoOtherCandidate,
    /// It has lost its disk, and has no state yet that it may store.
    Rejoining,
    /// There is no pause to end.
    NotPaused,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLeading => f.write_str("this member does not lead; ask the leader"),
            Self::Unfit(id) => {
                write!(
                    f,
                    "{id} cannot lead now: it is no candidate, unreachable, has just restarted, or \
                     reaches no majority"
                )
            }
            Self::NoOtherCandidate => f.write_str("no other member could lead"),
            Self::Rejoining => f.write_str(
                "it has lost its disk, and not every other member has answered yet; try again later",
            ),
            Self::NotPaused => f.write_str("elections are not paused"),
        }
    }
}

/// An output of a member: what the host is to do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Effect<M, T, D> {
    /// Store this, and continue only when it is stored.
    Persist(D),
    /// Send a message.
    Send { to: NodeId, message: M },
    /// Arm a timer with a delay that the host draws from `after`; this replaces an armed timer of the same tag.
    SetTimer { timer: T, after: Delay },
    /// Disarm a timer, if it is armed.
    CancelTimer(T),
    /// The view of this member has changed.
    Announce(View),
    /// Record this; nothing else is to be done.
    Inform(Notice),
}

/// A notice for the host's records.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Notice {
    /// The failure detector considers this member down; the algorithm has already been informed.
    Down(NodeId),
    /// The failure detector considers this member up again; the algorithm has already been informed.
    Up(NodeId),
    /// The leadership has changed, with the reason.
    Changed(LeaderChange),
    /// A command was rejected.
    Refused(Refusal),
    /// Elections are paused for this time, by a command that `by` accepted.
    Paused { by: NodeId, left: Span },
    /// Elections are no longer paused: by a command that this member accepted, or because the time is over.
    Resumed { by: Option<NodeId> },
    /// This member has a different configuration, and is ignored.
    ForeignConfiguration(NodeId),
    /// The disk is an old copy: another member has received from this one in a later term. The member has halted, and
    /// its process should stop.
    StateIsOld { seen: Term, by: NodeId },
    /// It has lost its disk and is the only member, so no other member knows which terms there have been. It has
    /// halted, and its process should stop. It can be set up again, above all terms that were ever presented as fencing
    /// tokens.
    NoOtherMember,
    /// The term has reached the highest representable value, so no member can be elected.
    OutOfTerms,
    /// Another process of this member has been met, in this incarnation or a later one: the disk is an old copy, or
    /// another process runs with a copy of it. This one has halted, and should stop.
    Replaced { seen: Incarnation, by: NodeId },
    /// It has lost its disk, and the clock is obviously wrong: it cannot choose an incarnation that is certainly new.
    /// It has halted, and its process should stop.
    WrongClock,
    /// It has recorded its state for a snapshot.
    Recorded { view: View, holding: Option<Holding> },
    /// It has recorded what was under way from this member when the snapshot was taken.
    ChannelRecorded { from: NodeId, messages: u32, amount: u64 },
    /// A letter was dropped.
    Dropped { from: NodeId, why: Dropped },
    /// A message to this peer was not sent, because the peer has not been met.
    Unsent(NodeId),
}

/// Why a letter was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dropped {
    /// It is from or for a process other than the current one.
    Session,
    /// It arrived before, or is too old to tell.
    Replayed,
    /// It is a HELLO from an unknown session, too soon after another one.
    Limited,
}

/// The effect type of a protocol.
pub type EffectOf<P> =
    Effect<<P as Protocol>::Message, <P as Protocol>::Timer, <P as Protocol>::Durable>;

/// Writes ` term=3`, and nothing in textbook mode, where terms are zero.
pub(crate) fn write_term(f: &mut fmt::Formatter<'_>, term: Term) -> fmt::Result {
    if term == Term::default() { Ok(()) } else { write!(f, " term={term}") }
}

/// The timers of an algorithm that waits for messages only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NoTimer {}
