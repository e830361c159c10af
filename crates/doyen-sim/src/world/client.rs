//! The clients of a critical section: the world plays the programs that ask to enter it.
//!
//! Each member has one client. It asks at the times of the scenario, stays inside for a time that it draws, leaves, and asks
//! again after another time, as often as the scenario says. A client that is to ask while its member waits or is inside asks
//! when it has left. The client is part of the member's process: it sleeps in a pause and dies in a crash; after a restart it
//! asks at the times that are left.

use doyen_core::members::NodeId;
use doyen_core::protocol::{Effects, Event, Protocol, Section, View};
use doyen_core::time::Span;

use super::pause::Waiting;
use super::roster::Status;
use super::{Item, World};
use crate::hash::FastMap;
use crate::initiators::Initiators;
use crate::metrics::sections::Recorder;
use crate::network::DelayModel;
use crate::time::Time;
use crate::trace::EventKind;

/// What the clients do.
#[derive(Clone, PartialEq, Debug)]
pub struct Requests {
    /// Who asks, and when.
    pub who: Initiators,
    /// How long a member stays inside.
    pub hold: DelayModel,
    /// How often each asks.
    pub repeat: u32,
    /// From leaving to asking again.
    pub think: DelayModel,
}

impl Requests {
    /// How often members ask in all.
    pub fn count(&self) -> u64 {
        self.who.len() as u64 * u64::from(self.repeat)
    }
}

/// All clients, and what is measured of them.
pub(super) struct Clients {
    by_member: FastMap<u32, Client>,
    pub(super) metrics: Recorder,
}

#[derive(Clone, Copy, Default)]
struct Client {
    /// How often it will ask again after leaving.
    left: u64,
    /// How often it was to ask while its member was not outside.
    postponed: u64,
    /// The number of its stay, so that the end of an earlier one does not end this.
    stay: u64,
}

impl Clients {
    pub(super) fn new() -> Self {
        Self { by_member: FastMap::default(), metrics: Recorder::default() }
    }
}

impl<P: Protocol> World<'_, '_, P> {
    /// Schedules what the clients do of themselves. Who asks at the beginning does so now.
    pub(super) fn schedule_requests(&mut self, out: &mut Effects<P>) {
        let Some(requests) = self.setup.requests else { return };
        for (id, at) in requests.who.iter() {
            let Some(member) = self.setup.members.position(id) else { continue };
            let first = Item::Ask { member: member as u32, repeat: requests.repeat };
            if at > Time::ZERO {
                self.later(at, first);
            } else {
                self.ask(member as u32, requests.repeat, out);
                self.catch_up(out);
            }
        }
    }

    /// The client of a member is to ask so often, one time after the other, beginning now.
    pub(super) fn ask(&mut self, member: u32, times: u32, out: &mut Effects<P>) {
        let Some(clients) = &mut self.clients else { return };
        match self.members[member].status {
            Status::Up => {}
            Status::Paused => return self.wait(member, Waiting::Ask(times)),
            Status::Dead | Status::Forwarding => return,
        }
        let client = clients.by_member.entry(member).or_default();
        if !self.members[member].protocol.view().section.is_outside() {
            client.postponed += u64::from(times);
            return;
        }
        client.left += u64::from(times.saturating_sub(1));
        let id = self.id(member);
        let told = |rules| EventKind::Request { member: id, rules };
        self.instruct(member, Event::Request, told, out);
    }

    /// The client of a member is done inside.
    pub(super) fn leave(&mut self, member: u32, stay: u64, out: &mut Effects<P>) {
        let Some(clients) = &self.clients else { return };
        let is_over = clients.by_member.get(&member).is_none_or(|client| client.stay != stay);
        match self.members[member].status {
            _ if is_over || !self.members[member].protocol.view().section.is_inside() => return,
            Status::Up => {}
            Status::Paused => return self.wait(member, Waiting::Leave(stay)),
            Status::Dead | Status::Forwarding => return,
        }
        let (id, before) = (self.id(member), self.metrics.total());
        let told = |rules| EventKind::Exit { member: id, rules };
        self.instruct(member, Event::Exit, told, out);
        let sent = self.metrics.total() - before;
        let Some(clients) = &mut self.clients else { return };
        clients.metrics.sent_at_exit(sent);
        self.ask_again(member);
    }

    fn ask_again(&mut self, member: u32) {
        let (Some(clients), Some(requests)) = (&mut self.clients, self.setup.requests) else {
            return;
        };
        let Some(client) = clients.by_member.get_mut(&member) else { return };
        let again = Item::Ask { member, repeat: 1 };
        if client.postponed > 0 {
            client.postponed -= 1;
            self.later(self.now, again);
        } else if client.left > 0 {
            client.left -= 1;
            let think = Span::from_nanos(requests.think.draw(&mut self.random));
            self.later(self.now + think, again);
        }
    }

    /// A member announces where it is. While it waits or is inside, the run is not quiet.
    pub(super) fn follow_section(&mut self, member: u32, view: View) {
        let (id, messages) = (self.id(member), self.metrics.total());
        let (Some(clients), Some(requests)) = (&mut self.clients, self.setup.requests) else {
            return;
        };
        let before = clients.metrics.announce(self.now, id, view.section, messages);
        self.work -= u64::from(!before.is_outside());
        self.work += u64::from(!view.section.is_outside());
        if view.section.is_inside() && !before.is_inside() {
            let client = clients.by_member.entry(member).or_default();
            client.stay += 1;
            let stay = client.stay;
            let hold = Span::from_nanos(requests.hold.draw(&mut self.random));
            self.later(self.now + hold, Item::Leave { member, stay });
        }
    }

    /// A member has crashed, and its client with it.
    pub(super) fn end_client(&mut self, member: u32, id: NodeId) {
        let Some(clients) = &mut self.clients else { return };
        let before: Section = clients.metrics.crash(self.now, id);
        self.work -= u64::from(!before.is_outside());
        if let Some(client) = clients.by_member.get_mut(&member) {
            *client = Client { stay: client.stay + 1, ..Client::default() };
        }
    }
}
