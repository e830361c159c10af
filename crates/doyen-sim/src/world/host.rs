//! The world as the host of one member: it executes the member's effects.

use doyen_core::host::{self, Host};
use doyen_core::members::NodeId;
use doyen_core::protocol::{Effects, Notice, Protocol, Role, Section, View};
use doyen_core::time::{Delay, Span};

use super::roster::Status;
use super::{Item, World, digest_of};
use crate::metrics::Sight;
use crate::trace::EventKind;

impl<P: Protocol> World<'_, '_, P> {
    /// Executes the effects of a member, in order, until all are done or the member has died: because of the event
    /// itself or of an effect. Messages leave and waits begin after `lag`: no member waits for an answer before the
    /// question has left.
    pub(super) fn act(&mut self, position: u32, lag: Span, out: &mut Effects<P>) {
        if out.elections() > 0 && self.members[position].status == Status::Up {
            self.metrics.election(self.now, out.elections());
            if let Some(monitor) = &mut self.monitor {
                monitor.elections_called(self.now, position, out.elections());
            }
        }
        if self.members[position].status == Status::Up {
            // A member that dies on the way has no more effects.
            let _ = host::apply(out.drain(), &mut MemberHost { world: self, position, lag });
        }
        out.clear();
        self.publish_lease(position);
    }

    pub(super) fn announce(&mut self, position: u32, view: View) {
        let view = self.by_the_clock(position, view);
        let leads = view.role.leads();
        let member = &mut self.members[position];
        let led = std::mem::replace(&mut member.leads, leads);
        match (led, leads) {
            // The lease counts, where there is one.
            _ if P::has_leases(self.setup.config) => {}
            (false, true) => self.metrics.reign_begins(self.now, position),
            (true, false) => self.metrics.reign_ends(self.now),
            _ => {}
        }
        if view.leader.is_some() && view.role != Role::Candidate {
            self.metrics.settled(self.now);
        }
        self.metrics.fold(self.now, 0, position, Sight::View(digest_of_view(view)));
        if self.clients.is_some() {
            self.follow_section(position, view);
        }
        if let Some(monitor) = &mut self.monitor {
            monitor.view_changed(self.now, position, view);
        }
        if self.observer.is_some() {
            self.record_of(position, EventKind::of_view(self.id(position), view));
        }
    }
}

/// The host of one member, for one event. Messages leave and waits begin after `lag`.
struct MemberHost<'w, 'a, 'o, P: Protocol> {
    world: &'w mut World<'a, 'o, P>,
    position: u32,
    lag: Span,
}

impl<P: Protocol> MemberHost<'_, '_, '_, P> {
    /// The schedule may crash a member because of a message that it sends, and a process may end itself by an effect.
    #[inline]
    fn still_up(&self) -> Result<(), Died> {
        if self.world.members[self.position].status == Status::Up { Ok(()) } else { Err(Died) }
    }
}

/// The member has died in the middle of an event.
struct Died;

impl<P: Protocol> Host<P> for MemberHost<'_, '_, '_, P> {
    type Error = Died;

    fn persist(&mut self, durable: P::Durable) -> Result<(), Died> {
        self.world.store(self.position, durable);
        Ok(())
    }

    #[inline]
    fn send(&mut self, to: NodeId, message: P::Message) -> Result<(), Died> {
        let seat = self.world.members.seat(self.position);
        self.world.send(self.position, seat, to, message, self.lag);
        self.still_up()
    }

    fn arm(&mut self, timer: P::Timer, after: Delay) {
        self.world.arm(self.position, timer, after, self.lag);
    }

    fn cancel(&mut self, timer: P::Timer) {
        self.world.cancel(self.position, timer);
    }

    fn announce(&mut self, view: View) {
        let Self { world, position, .. } = self;
        world.announce(*position, view);
        if view.role == Role::Retiring {
            world.later(world.now + world.setup.retire, Item::Retired(*position));
        }
    }

    fn inform(&mut self, notice: Notice) -> Result<(), Died> {
        self.world.inform(self.position, notice);
        self.still_up()
    }
}

/// A view as one word. Elections, which have no section, keep the fingerprints that they had before there was one.
#[inline]
fn digest_of_view(view: View) -> u64 {
    let View { leader, term, role, section } = view;
    match section {
        Section::Outside => digest_of((leader, term, role)),
        Section::Waiting | Section::Inside(_) => digest_of(view),
    }
}
