//! What a host offers a member, and the one way to carry out the effects of the member.
//!
//! The simulator, the checker, a real node, the replay of a recorded run, the fuzzer and the tests all implement [`Host`]
//! and call [`apply`]. The numbered list in the documentation of this crate states what each method must do.

use crate::members::NodeId;
use crate::protocol::{Effect, EffectOf, Notice, Protocol, View};
use crate::time::Delay;

/// The host of one member, while that member's effects are carried out.
pub trait Host<P: Protocol> {
    /// Why the process ends in the middle of an event: its disk fails, it must stop, or it crashes in a simulation.
    type Error;

    /// Stores `durable`; returns when it would survive a crash (4).
    fn persist(&mut self, durable: P::Durable) -> Result<(), Self::Error>;

    /// Sends `message` to `to` (9).
    fn send(&mut self, to: NodeId, message: P::Message) -> Result<(), Self::Error>;

    /// Arms `timer`, in place of one of the same tag that is armed already (6, 7).
    fn arm(&mut self, timer: P::Timer, after: Delay);

    /// Disarms `timer`, if it is armed (6).
    fn cancel(&mut self, timer: P::Timer);

    /// Publishes `view`; returns when all who act on it have been informed (5).
    fn announce(&mut self, view: View);

    /// Records `notice`, and stops if it says that this process must not continue (12).
    fn inform(&mut self, notice: Notice) -> Result<(), Self::Error>;
}

/// Carries out `effects` in order (3). After an error no further effect is carried out.
#[inline]
pub fn apply<P: Protocol, H: Host<P>>(
    effects: impl IntoIterator<Item = EffectOf<P>>,
    host: &mut H,
) -> Result<(), H::Error> {
    for effect in effects {
        match effect {
            Effect::Persist(durable) => host.persist(durable)?,
            Effect::Send { to, message } => host.send(to, message)?,
            Effect::SetTimer { timer, after } => host.arm(timer, after),
            Effect::CancelTimer(timer) => host.cancel(timer),
            Effect::Announce(view) => host.announce(view),
            Effect::Inform(notice) => host.inform(notice)?,
        }
    }
    Ok(())
}
