//! The closed enum of all protocols.
//!
//! Layered runs, the checker, the node and the replay of a node run [`AnyProtocol`], so that they are compiled once
//! and not once for each algorithm. Only a simulation of bare members, where one more call per message matters, is
//! compiled for each of them; [`dispatch!`](crate::dispatch) selects it.
//!
//! On the wire and on the disk nothing says which algorithm it is: all members run the same one. So writing delegates to
//! the inner value, and reading gets the algorithm as an argument ([`Algorithm::read_packet`] and the like). Texts are those of the inner
//! value too, because traces and counterexamples name timers and messages by them.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::hash::Hash;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Algorithm;
use crate::algorithm::{
    bank, bully, chang_roberts, modified_bully, quorum, ring_active_list, ring_all_ids, ring_list,
    ring_resilient, sequencer,
};
use crate::config::Config;
use crate::exclusion::{
    centralised, lamport, maekawa, raymond, ricart_agrawala, suzuki_kasami, token_recovery,
    token_ring, voting,
};
use crate::explore::{Explore, Giver, Serial};
use crate::members::{Incarnation, NodeId, Term};
use crate::node::Packet;
use crate::protocol::{
    AlgorithmMessage, Bonds, Boot, Commitments, Deliveries, Durable, Effect, Effects, Event,
    Holding, Kind, Message, Protocol, View,
};
use crate::session::{Kept, Letter};

/// Evaluates an expression for the algorithm at hand. There are three forms:
///
/// - `dispatch!(algorithm, P => expression)`: `P` is the type of the protocol that is named;
/// - `dispatch!(election algorithm, P => expression, else other)`: the same for those that elect, and `other` for the rest;
/// - `dispatch!(in AnyMessage: value, message => expression)`: `message` is what is inside a value of a closed enum.
#[macro_export]
macro_rules! dispatch {
    (in $closed:ident: $value:expr, $inner:ident => $body:expr) => {
        match $value {
            $closed::Bully($inner) => $body,
            $closed::ModifiedBully($inner) => $body,
            $closed::RingList($inner) => $body,
            $closed::RingActiveList($inner) => $body,
            $closed::RingAllIds($inner) => $body,
            $closed::ChangRoberts($inner) => $body,
            $closed::RingResilient($inner) => $body,
            $closed::Quorum($inner) => $body,
            $closed::Centralised($inner) => $body,
            $closed::Voting($inner) => $body,
            $closed::Lamport($inner) => $body,
            $closed::RicartAgrawala($inner) => $body,
            $closed::TokenRing($inner) => $body,
            $closed::Maekawa($inner) => $body,
            $closed::Raymond($inner) => $body,
            $closed::SuzukiKasami($inner) => $body,
            $closed::TokenRecovery($inner) => $body,
            $closed::Bank($inner) => $body,
            $closed::Sequencer($inner) => $body,
        }
    };
    (election $algorithm:expr, $P:ident => $body:expr, else $other:expr) => {
        $crate::dispatch!(@ $algorithm, $P, $body,
            Bully: algorithm::bully::Bully,
            ModifiedBully: algorithm::modified_bully::ModifiedBully,
            RingList: algorithm::ring_list::RingList,
            RingActiveList: algorithm::ring_active_list::RingActiveList,
            RingAllIds: algorithm::ring_all_ids::RingAllIds,
            ChangRoberts: algorithm::chang_roberts::ChangRoberts,
            RingResilient: algorithm::ring_resilient::RingResilient,
            Quorum: algorithm::quorum::Quorum,
            ; $other
        )
    };
    ($algorithm:expr, $P:ident => $body:expr) => {
        $crate::dispatch!(@ $algorithm, $P, $body,
            Bully: algorithm::bully::Bully,
            ModifiedBully: algorithm::modified_bully::ModifiedBully,
            RingList: algorithm::ring_list::RingList,
            RingActiveList: algorithm::ring_active_list::RingActiveList,
            RingAllIds: algorithm::ring_all_ids::RingAllIds,
            ChangRoberts: algorithm::chang_roberts::ChangRoberts,
            RingResilient: algorithm::ring_resilient::RingResilient,
            Quorum: algorithm::quorum::Quorum,
            Centralised: exclusion::centralised::Centralised,
            Voting: exclusion::voting::Voting,
            Lamport: exclusion::lamport::Lamport,
            RicartAgrawala: exclusion::ricart_agrawala::RicartAgrawala,
            TokenRing: exclusion::token_ring::TokenRing,
            Maekawa: exclusion::maekawa::Maekawa,
            Raymond: exclusion::raymond::Raymond,
            SuzukiKasami: exclusion::suzuki_kasami::SuzukiKasami,
            TokenRecovery: exclusion::token_recovery::TokenRecovery,
            Bank: algorithm::bank::Bank,
            Sequencer: algorithm::sequencer::Sequencer,
        )
    };
    (@ $algorithm:expr, $P:ident, $body:expr, $($name:ident: $folder:ident::$module:ident::$protocol:ident,)* $(; $other:expr)?) => {
        match $algorithm {
            $($crate::registry::Algorithm::$name => {
                type $P = $crate::$folder::$module::$protocol;
                $body
            })*
            $(_ => $other,)?
        }
    };
}

/// What a closed enum holds of each algorithm.
pub trait Part {
    /// Of this one.
    type Of<P: Explore>: Clone + Eq + Hash + Debug;
}

/// Declares the closed enums by what they hold, and what that has in common for all algorithms.
macro_rules! parts {
    ($($(#[$about:meta])* $alias:ident = $part:ident($($has:ident),*) of $P:ident: $inner:ty;)*) => {$(
        $(#[$about])*
        pub type $alias = Any<$part>;

        #[doc = concat!("The part that is in an [`", stringify!($alias), "`].")]
        #[derive(Clone, PartialEq, Eq, Hash, Debug, $($has),*)]
        pub enum $part {}

        impl Part for $part {
            type Of<$P: Explore> = $inner;
        }
    )*};
}

parts! {
    /// A member of the algorithm that its configuration names.
    AnyProtocol = Member() of P: P;
    /// A message of any algorithm.
    AnyMessage = MessagePart() of P: P::Message;
    /// What a member of any algorithm waits for.
    AnyTimer = TimerPart(Copy, PartialOrd, Ord) of P: P::Timer;
    /// What a member of any algorithm stores.
    AnyDurable = DurablePart() of P: P::Durable;
}

/// A protocol in the registry, which has its place in the closed enums.
trait Registered: Explore<Config = Config> {
    fn wrap<K: Part>(inner: K::Of<Self>) -> Any<K>;
    fn take<K: Part>(any: Any<K>) -> Option<K::Of<Self>>;
    fn get<K: Part>(any: &Any<K>) -> Option<&K::Of<Self>>;
}

/// Declares the closed enum, with one variant for each algorithm.
macro_rules! registered {
    ($($name:ident: $protocol:ty,)*) => {
        /// Something of one of the algorithms.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Any<K: Part> {
            $(
                #[doc = concat!("Of [`Algorithm::", stringify!($name), "`].")]
                $name(K::Of<$protocol>),
            )*
        }

        impl<K: Part> Any<K> {
            fn algorithm(&self) -> Algorithm {
                match self { $(Self::$name(_) => Algorithm::$name,)* }
            }
        }

        $(impl Registered for $protocol {
            fn wrap<K: Part>(inner: K::Of<Self>) -> Any<K> {
                Any::$name(inner)
            }

            fn take<K: Part>(any: Any<K>) -> Option<K::Of<Self>> {
                if let Any::$name(inner) = any { Some(inner) } else { None }
            }

            fn get<K: Part>(any: &Any<K>) -> Option<&K::Of<Self>> {
                if let Any::$name(inner) = any { Some(inner) } else { None }
            }
        })*
    };
}

registered! {
    Bully: bully::Bully,
    ModifiedBully: modified_bully::ModifiedBully,
    RingList: ring_list::RingList,
    RingActiveList: ring_active_list::RingActiveList,
    RingAllIds: ring_all_ids::RingAllIds,
    ChangRoberts: chang_roberts::ChangRoberts,
    RingResilient: ring_resilient::RingResilient,
    Quorum: quorum::Quorum,
    Centralised: centralised::Centralised,
    Voting: voting::Voting,
    Lamport: lamport::Lamport,
    RicartAgrawala: ricart_agrawala::RicartAgrawala,
    TokenRing: token_ring::TokenRing,
    Maekawa: maekawa::Maekawa,
    Raymond: raymond::Raymond,
    SuzukiKasami: suzuki_kasami::SuzukiKasami,
    TokenRecovery: token_recovery::TokenRecovery,
    Bank: bank::Bank,
    Sequencer: sequencer::Sequencer,
}

/// Which algorithm, and its configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnyConfig {
    /// Which algorithm.
    pub algorithm: Algorithm,
    /// Its configuration.
    pub inner: Config,
}

impl Protocol for AnyProtocol {
    type Config = AnyConfig;
    type Message = AnyMessage;
    type Timer = AnyTimer;
    type Durable = AnyDurable;

    fn start(
        id: NodeId,
        config: &AnyConfig,
        boot: Boot<AnyDurable>,
        out: &mut Effects<Self>,
    ) -> Self {
        dispatch!(config.algorithm, P => start::<P>(id, &config.inner, boot, out))
    }

    fn handle(
        &mut self,
        config: &AnyConfig,
        event: Event<AnyMessage, AnyTimer>,
        out: &mut Effects<Self>,
    ) {
        dispatch!(in AnyProtocol: self, state => handle(state, &config.inner, event, out));
    }

    fn view(&self) -> View {
        dispatch!(in AnyProtocol: self, state => state.view())
    }

    fn kinds(config: &AnyConfig) -> Cow<'static, [Kind]> {
        config.algorithm.kinds().into()
    }

    fn kind_index(config: &AnyConfig, message: &AnyMessage) -> usize {
        dispatch!(config.algorithm, P => {
            P::get(message).map_or(0, |message| P::kind_index(&config.inner, message))
        })
    }

    fn is_background(timer: AnyTimer) -> bool {
        dispatch!(timer.algorithm(), P => P::take(timer).is_some_and(P::is_background))
    }

    fn heeds_detector(config: &AnyConfig) -> bool {
        dispatch!(config.algorithm, P => P::heeds_detector(&config.inner))
    }

    fn has_leases(config: &AnyConfig) -> bool {
        dispatch!(config.algorithm, P => P::has_leases(&config.inner))
    }

    fn lease(&self) -> Option<AnyTimer> {
        fn of<P: Registered>(state: &P) -> Option<AnyTimer> {
            state.lease().map(P::wrap)
        }
        dispatch!(in AnyProtocol: self, state => of(state))
    }

    fn hold(&self) -> Option<AnyTimer> {
        fn of<P: Registered>(state: &P) -> Option<AnyTimer> {
            state.hold().map(P::wrap)
        }
        dispatch!(in AnyProtocol: self, state => of(state))
    }

    fn holding(&self) -> Option<Holding> {
        dispatch!(in AnyProtocol: self, state => state.holding())
    }

    fn deliveries(&self) -> Option<&Deliveries> {
        dispatch!(in AnyProtocol: self, state => state.deliveries())
    }

    fn is_lease(timer: AnyTimer) -> bool {
        dispatch!(timer.algorithm(), P => P::take(timer).is_some_and(P::is_lease))
    }

    fn bonds(&self) -> Bonds<AnyTimer> {
        fn of<P: Registered>(state: &P) -> Bonds<AnyTimer> {
            state.bonds().map(P::wrap)
        }
        dispatch!(in AnyProtocol: self, state => of(state))
    }
}

fn start<P: Registered>(
    id: NodeId,
    config: &Config,
    boot: Boot<AnyDurable>,
    out: &mut Effects<AnyProtocol>,
) -> AnyProtocol {
    let Boot { incarnation, durable, origin, session, time_of_day } = boot;
    let durable = durable.and_then(P::take);
    let boot = Boot { incarnation, durable, origin, session, time_of_day };
    let mut own = out.for_wrapped();
    let state = P::start(id, config, boot, &mut own);
    pass_on::<P>(own, out);
    P::wrap(state)
}

/// Lets the member handle an event. An event of another algorithm is ignored.
fn handle<P: Registered>(
    state: &mut P,
    config: &Config,
    event: Event<AnyMessage, AnyTimer>,
    out: &mut Effects<AnyProtocol>,
) {
    let event = match event {
        Event::Message { from, message } => {
            let Some(message) = P::take(message) else { return };
            Event::Message { from, message }
        }
        Event::Timer(timer) => {
            let Some(timer) = P::take(timer) else { return };
            Event::Timer(timer)
        }
        Event::PeerDown(peer) => Event::PeerDown(peer),
        Event::PeerUp(peer) => Event::PeerUp(peer),
        Event::Campaign => Event::Campaign,
        Event::Command(command) => Event::Command(command),
        Event::Retired => Event::Retired,
        Event::Request => Event::Request,
        Event::Exit => Event::Exit,
        Event::Crashed => Event::Crashed,
    };
    let mut own = out.for_wrapped();
    state.handle(config, event, &mut own);
    pass_on::<P>(own, out);
}

/// Converts the effects of the member.
fn pass_on<P: Registered>(mut own: Effects<P>, out: &mut Effects<AnyProtocol>) {
    out.take_notes(&own);
    for effect in own.drain() {
        match effect {
            Effect::Persist(durable) => out.persist(P::wrap(durable)),
            Effect::Send { to, message } => out.send(to, P::wrap(message)),
            Effect::SetTimer { timer, after } => out.set_timer(P::wrap(timer), after),
            Effect::CancelTimer(timer) => out.cancel_timer(P::wrap(timer)),
            Effect::Announce(view) => out.announce(view),
            Effect::Inform(notice) => out.inform(notice),
        }
    }
}

impl Explore for AnyProtocol {
    fn heeds_incarnation(config: &AnyConfig) -> bool {
        dispatch!(config.algorithm, P => P::heeds_incarnation(&config.inner))
    }

    fn has_canonical_form(config: &AnyConfig) -> bool {
        dispatch!(config.algorithm, P => P::has_canonical_form(&config.inner))
    }

    fn canonical(&self, config: &AnyConfig) -> Self {
        fn of<P: Registered>(state: &P, config: &Config) -> AnyProtocol {
            P::wrap(state.canonical(config))
        }
        dispatch!(in AnyProtocol: self, state => of(state, &config.inner))
    }

    fn canonical_timer(&self, config: &AnyConfig, timer: AnyTimer) -> AnyTimer {
        fn of<P: Registered>(state: &P, config: &Config, timer: AnyTimer) -> AnyTimer {
            let own = P::take(timer);
            own.map_or(timer, |own| P::wrap(state.canonical_timer(config, own)))
        }
        dispatch!(in AnyProtocol: self, state => of(state, &config.inner, timer))
    }

    fn first_live_serial(&self, config: &AnyConfig) -> Option<Serial> {
        dispatch!(in AnyProtocol: self, state => state.first_live_serial(&config.inner))
    }

    fn serial(message: &AnyMessage) -> Option<(Serial, Giver)> {
        dispatch!(message.algorithm(), P => P::serial(P::get(message)?))
    }

    fn without_serial(message: &AnyMessage) -> AnyMessage {
        dispatch!(message.algorithm(), P => {
            let own = P::get(message).map(P::without_serial);
            own.map_or_else(|| message.clone(), P::wrap)
        })
    }

    fn is_obsolete(&self, config: &AnyConfig, from: NodeId, message: &AnyMessage) -> bool {
        fn of<P: Registered>(state: &P, config: &Config, from: NodeId, any: &AnyMessage) -> bool {
            P::get(any).is_some_and(|message| state.is_obsolete(config, from, message))
        }
        dispatch!(in AnyProtocol: self, state => of(state, &config.inner, from, message))
    }

    fn is_symmetric(config: &AnyConfig) -> bool {
        dispatch!(config.algorithm, P => P::is_symmetric(&config.inner))
    }

    fn renamed(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
        fn of<P: Registered>(state: &P, names: &dyn Fn(NodeId) -> NodeId) -> AnyProtocol {
            P::wrap(state.renamed(names))
        }
        dispatch!(in AnyProtocol: self, state => of(state, names))
    }

    fn renamed_durable(durable: &AnyDurable, names: &dyn Fn(NodeId) -> NodeId) -> AnyDurable {
        dispatch!(durable.algorithm(), P => {
            let own = P::take(durable.clone()).map(|own| P::renamed_durable(&own, names));
            own.map_or_else(|| durable.clone(), P::wrap)
        })
    }
}

impl Message for AnyMessage {
    fn kind(&self) -> Kind {
        dispatch!(in AnyMessage: self, message => message.kind())
    }

    fn is_background(&self) -> bool {
        dispatch!(in AnyMessage: self, message => Message::is_background(message))
    }

    fn commitments(&self) -> Commitments {
        dispatch!(in AnyMessage: self, message => Message::commitments(message))
    }

    fn amount(&self) -> u64 {
        dispatch!(in AnyMessage: self, message => Message::amount(message))
    }
}

/// Methods that ask what is inside.
macro_rules! forward {
    ($closed:ident: $(fn $method:ident -> $result:ty;)*) => {$(
        fn $method(&self) -> $result {
            dispatch!(in $closed: self, inner => inner.$method())
        }
    )*};
}

impl AnyMessage {
    /// The same message for members that run the version of the protocol before this one.
    #[must_use]
    pub fn for_earlier_version(self) -> Self {
        match self {
            Self::Quorum(message) => Self::Quorum(message.for_earlier_version()),
            other => other,
        }
    }
}

impl Durable for AnyDurable {
    forward! { AnyDurable:
        fn term -> Term;
        fn vote -> Option<NodeId>;
        fn is_drained -> bool;
        fn is_rejoining -> bool;
        fn incarnation -> Option<Incarnation>;
    }
}

impl<K: Part> Debug for Any<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dispatch!(in Any: self, inner => Debug::fmt(inner, f))
    }
}

impl fmt::Display for AnyMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dispatch!(in AnyMessage: self, message => fmt::Display::fmt(message, f))
    }
}

impl Serialize for AnyMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        dispatch!(in AnyMessage: self, message => message.serialize(serializer))
    }
}

impl Serialize for AnyDurable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        dispatch!(in AnyDurable: self, durable => durable.serialize(serializer))
    }
}

type MessageOf<P> = <P as Protocol>::Message;
type DurableOf<P> = <P as Protocol>::Durable;

/// Data that does not contain the name of its algorithm is read as that of the one that all members run.
impl Algorithm {
    /// Reads a packet between nodes.
    pub fn read_packet<'de, D: Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<Packet<AnyMessage>, D::Error> {
        dispatch!(self, P => {
            Ok(Packet::<MessageOf<P>>::deserialize(from)?.map(P::wrap))
        })
    }

    /// Reads a letter between processes.
    pub fn read_letter<'de, D: Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<Letter<Packet<AnyMessage>>, D::Error> {
        dispatch!(self, P => {
            let letter = Letter::<Packet<MessageOf<P>>>::deserialize(from)?;
            Ok(letter.map(|packet| packet.map(P::wrap)))
        })
    }

    /// Reads what a process has stored.
    pub fn read_kept<'de, D: Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<Kept<AnyDurable>, D::Error> {
        dispatch!(self, P => Ok(Kept::<DurableOf<P>>::deserialize(from)?.map(P::wrap)))
    }

    /// Reads what a member has stored.
    pub fn read_durable<'de, D: Deserializer<'de>>(self, from: D) -> Result<AnyDurable, D::Error> {
        dispatch!(self, P => Ok(P::wrap(DurableOf::<P>::deserialize(from)?)))
    }

    /// The kinds of its messages, in the order in which those that arrive at the same instant are handled.
    pub fn kinds(self) -> &'static [Kind] {
        dispatch!(self, P => MessageOf::<P>::KINDS)
    }
}
