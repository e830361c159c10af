//! What the unit tests of the algorithms share: a member on its own, and what it does.

use crate::config::{Config, Mode, Timing};
use crate::members::{Incarnation, Members, NodeId, Term};
use crate::protocol::{Boot, Effects, Event, Origin, Protocol};
use crate::time::Span;

/// Members 1 to `members`, with a `D` of one millisecond.
pub(crate) fn config(members: u32, mode: Mode) -> Config {
    let timing = Timing::for_transmission(Span::from_millis(1));
    Config::new(Members::range(1, members).unwrap(), timing, mode)
}

/// A boot into a group that starts without a leader.
pub(crate) fn founding() -> Boot<Term> {
    Boot::new(Incarnation(1), None, Origin::Founding { leader: None })
}

/// Member `id` of a group that starts without a leader.
pub(crate) fn started<P: Protocol<Config = Config, Durable = Term>>(id: u32, config: &Config) -> P {
    P::start(NodeId(id), config, founding(), &mut Effects::new())
}

/// What `member` does when this message comes.
pub(crate) fn told<P: Protocol<Config = Config>>(
    member: &mut P,
    config: &Config,
    from: u32,
    message: impl Into<P::Message>,
) -> Effects<P> {
    let mut out = Effects::new();
    let event = Event::Message { from: NodeId(from), message: message.into() };
    member.handle(config, event, &mut out);
    out
}
