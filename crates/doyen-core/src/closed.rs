//! Closed enums of protocols: one for the algorithms ([`AnyProtocol`](crate::registry::AnyProtocol)), one for the layers
//! around them ([`Stack`](crate::layers::Stack)).
//!
//! A host that runs a closed enum is compiled once, and not once for each protocol in it. Such an enum is itself a protocol:
//! its messages, timers and stored states are those of the protocol inside, so there are four enums with the same
//! variants, which differ in the [`Part`] that they hold.
//!
//! Nothing shows which protocol is inside, because all members run the same one: what is written, hashed or displayed is the
//! inner value alone. An event of another protocol than the member's is ignored.

use std::fmt::Debug;
use std::hash::Hash;

use crate::explore::Explore;
use crate::protocol::{Effects, Event, Protocol};

/// What a closed enum holds of each protocol.
pub trait Part {
    /// Of this one.
    type Of<P: Explore>: Clone + Eq + Hash + Debug;
}

/// The state of a member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum StatePart {}

/// What members send each other.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum MessagePart {}

/// What a member waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TimerPart {}

/// What a member stores.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum DurablePart {}

impl Part for StatePart {
    type Of<P: Explore> = P;
}

impl Part for MessagePart {
    type Of<P: Explore> = P::Message;
}

impl Part for TimerPart {
    type Of<P: Explore> = P::Timer;
}

impl Part for DurablePart {
    type Of<P: Explore> = P::Durable;
}

/// Lets the member inside handle an event, if it is one of its protocol.
pub(crate) fn handle<P: Protocol, C: Protocol>(
    state: &mut P,
    config: &P::Config,
    event: Option<Event<P::Message, P::Timer>>,
    out: &mut Effects<C>,
    wrap: impl FnOnce(Effects<P>, &mut Effects<C>),
) {
    let Some(event) = event else { return };
    let mut own = out.for_wrapped();
    state.handle(config, event, &mut own);
    wrap(own, out);
}

/// One of the timers of the member inside, in its canonical form.
pub(crate) fn canonical_timer<P: Explore, T>(
    state: &P,
    config: &P::Config,
    timer: P::Timer,
    wrap: impl FnOnce(P::Timer) -> T,
) -> T {
    wrap(state.canonical_timer(config, timer))
}

/// The methods of a trait that the value inside a closed enum answers, whichever it is.
macro_rules! answered_inside {
    ($of:ident $names:tt $(fn $method:ident() -> $answer:ty;)*) => {
        $(answered_inside!(@ $of $names $method $answer);)*
    };
    (@ $of:ident {$($name:ident)*} $method:ident $answer:ty) => {
        fn $method(&self) -> $answer {
            match self { $(Self::$name(inside) => $of::$method(inside),)* }
        }
    };
}

/// Declares a closed enum with one variant for each protocol, each with the pattern of the configuration that selects it, which
/// binds the configuration of the protocol inside to `$inner`.
macro_rules! closed {
    (
        $(#[$about:meta])*
        enum $closed:ident: $state:ident, $message:ident, $timer:ident, $durable:ident;
        configured by $Config:ty, inside: $inner:ident;
        $($(#[$row:meta])* $name:ident($protocol:ty): $config:pat,)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $closed<K: Part> {
            $($(#[$row])* $name(K::Of<$protocol>),)*
        }

        impl Protocol for $state {
            type Config = $Config;
            type Message = $message;
            type Timer = $timer;
            type Durable = $durable;

            fn start(
                id: NodeId,
                config: &$Config,
                boot: Boot<$durable>,
                out: &mut Effects<Self>,
            ) -> Self {
                let Boot { incarnation, durable, origin, session, time_of_day } = boot;
                match config {$(
                    $config => {
                        let durable = match durable {
                            Some($closed::$name(durable)) => Some(durable),
                            _ => None,
                        };
                        let boot = Boot { incarnation, durable, origin, session, time_of_day };
                        let mut own = out.for_wrapped();
                        let state = <$protocol>::start(id, $inner, boot, &mut own);
                        out.take_over(own, $closed::$name, $closed::$name, $closed::$name);
                        Self::$name(state)
                    }
                )*}
            }

            fn handle(
                &mut self,
                config: &$Config,
                event: Event<$message, $timer>,
                out: &mut Effects<Self>,
            ) {
                match (self, config) {
                    $((Self::$name(state), $config) => {
                        let event = event.map(
                            |_, any| if let $closed::$name(own) = any { Some(own) } else { None },
                            |any| if let $closed::$name(own) = any { Some(own) } else { None },
                        );
                        closed::handle(state, $inner, event, out, |own, out| {
                            out.take_over(own, $closed::$name, $closed::$name, $closed::$name);
                        });
                    })*
                    _ => {}
                }
            }

            answered_inside! { Protocol {$($name)*}
                fn view() -> View;
                fn holding() -> Option<Holding>;
                fn recording() -> Option<Recording>;
                fn deliveries() -> Option<&Deliveries>;
                fn asked_after() -> Option<&AskedAfter>;
            }

            fn kinds(config: &$Config) -> Cow<'static, [Kind]> {
                match config { $($config => <$protocol>::kinds($inner),)* }
            }

            fn kind_index(config: &$Config, message: &$message) -> usize {
                match (config, message) {
                    $(($config, $closed::$name(own)) => <$protocol>::kind_index($inner, own),)*
                    _ => 0,
                }
            }

            fn is_background(timer: $timer) -> bool {
                match timer { $($closed::$name(own) => <$protocol>::is_background(own),)* }
            }

            fn heeds_detector(config: &$Config) -> bool {
                match config { $($config => <$protocol>::heeds_detector($inner),)* }
            }

            fn has_sessions(config: &$Config) -> bool {
                match config { $($config => <$protocol>::has_sessions($inner),)* }
            }

            fn has_leases(config: &$Config) -> bool {
                match config { $($config => <$protocol>::has_leases($inner),)* }
            }

            fn has_met(&self, peer: NodeId) -> bool {
                match self { $(Self::$name(state) => state.has_met(peer),)* }
            }

            fn lease(&self) -> Option<$timer> {
                match self { $(Self::$name(state) => state.lease().map($closed::$name),)* }
            }

            fn hold(&self) -> Option<$timer> {
                match self { $(Self::$name(state) => state.hold().map($closed::$name),)* }
            }

            fn is_lease(timer: $timer) -> bool {
                match timer { $($closed::$name(own) => <$protocol>::is_lease(own),)* }
            }

            fn bonds(&self) -> Bonds<$timer> {
                match self { $(Self::$name(state) => state.bonds().map($closed::$name),)* }
            }
        }

        impl Explore for $state {
            answered_inside! { Explore {$($name)*}
                fn token() -> Option<Term>;
                fn time() -> Option<u64>;
            }

            fn heeds_incarnation(config: &$Config) -> bool {
                match config { $($config => <$protocol>::heeds_incarnation($inner),)* }
            }

            fn has_canonical_form(config: &$Config) -> bool {
                match config { $($config => <$protocol>::has_canonical_form($inner),)* }
            }

            fn canonical(&self, config: &$Config) -> Self {
                match (self, config) {
                    $((Self::$name(state), $config) => Self::$name(state.canonical($inner)),)*
                    _ => self.clone(),
                }
            }

            fn canonical_timer(&self, config: &$Config, timer: $timer) -> $timer {
                match (self, config, timer) {
                    $((Self::$name(state), $config, $closed::$name(own)) => {
                        closed::canonical_timer(state, $inner, own, $closed::$name)
                    })*
                    _ => timer,
                }
            }

            fn first_live_serial(&self, config: &$Config) -> Option<Serial> {
                match (self, config) {
                    $((Self::$name(state), $config) => state.first_live_serial($inner),)*
                    _ => None,
                }
            }

            fn serial(message: &$message) -> Option<(Serial, Giver)> {
                match message { $($closed::$name(own) => <$protocol>::serial(own),)* }
            }

            fn without_serial(message: &$message) -> $message {
                match message {$(
                    $closed::$name(own) => $closed::$name(<$protocol>::without_serial(own)),
                )*}
            }

            fn is_obsolete(&self, config: &$Config, from: NodeId, message: &$message) -> bool {
                match (self, config, message) {
                    $((Self::$name(state), $config, $closed::$name(own)) => {
                        state.is_obsolete($inner, from, own)
                    })*
                    _ => false,
                }
            }

            fn ends_first(timer: $timer) -> bool {
                match timer { $($closed::$name(own) => <$protocol>::ends_first(own),)* }
            }

            fn token_in(message: &$message) -> Option<Term> {
                match message { $($closed::$name(own) => <$protocol>::token_in(own),)* }
            }

            fn observe_time(&mut self, time: u64) {
                match self { $(Self::$name(state) => state.observe_time(time),)* }
            }

            fn is_symmetric(config: &$Config) -> bool {
                match config { $($config => <$protocol>::is_symmetric($inner),)* }
            }

            fn renamed(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
                match self { $(Self::$name(state) => Self::$name(state.renamed(names)),)* }
            }

            fn renamed_durable(durable: &$durable, names: &dyn Fn(NodeId) -> NodeId) -> $durable {
                match durable {$(
                    $closed::$name(own) => $closed::$name(<$protocol>::renamed_durable(own, names)),
                )*}
            }
        }

        impl Message for $message {
            answered_inside! { Message {$($name)*}
                fn kind() -> Kind;
                fn encoded_len() -> usize;
                fn is_background() -> bool;
                fn commitments() -> Commitments;
                fn amount() -> u64;
                fn destination() -> Option<SocketAddr>;
            }

            fn posted_from(self, address: Option<SocketAddr>) -> Self {
                match self { $(Self::$name(message) => Self::$name(message.posted_from(address)),)* }
            }
        }

        impl Durable for $durable {
            answered_inside! { Durable {$($name)*}
                fn term() -> Term;
                fn vote() -> Option<NodeId>;
                fn is_drained() -> bool;
                fn is_paused() -> bool;
                fn is_rejoining() -> bool;
                fn incarnation() -> Option<Incarnation>;
            }
        }

        impl<K: Part> Hash for $closed<K> {
            fn hash<H: Hasher>(&self, state: &mut H) {
                match self { $(Self::$name(inner) => inner.hash(state),)* }
            }
        }

        impl<K: Part> fmt::Debug for $closed<K> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$name(inner) => fmt::Debug::fmt(inner, f),)* }
            }
        }

        impl fmt::Display for $message {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$name(message) => fmt::Display::fmt(message, f),)* }
            }
        }

        impl Serialize for $message {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(Self::$name(message) => message.serialize(serializer),)* }
            }
        }

        impl Serialize for $durable {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(Self::$name(durable) => durable.serialize(serializer),)* }
            }
        }
    };
}

pub(crate) use {answered_inside, closed};
