//! The clients of a critical section: the world plays the programs that ask to enter it.
//!
//! Each member has one client. It asks at the times of the scenario, stays inside for a time that it draws, leaves, and asks
//! again after another time, as often as the scenario says. A client that is to ask while its member waits or is inside asks
//! when it has left. The client is part of the member's process: it is paused with the member and dies with it; after a
//! restart it asks at the times that are left.
//!
//! Where entries have fences, a client writes to a resource when it enters and when it leaves, and a write that a pause has
//! interrupted is made when the member resumes, before it can look at a clock. The resource refuses a fence lower than the
//! highest one that it has seen.

use doyen_core::members::NodeId;
use doyen_core::protocol::{Effects, Event, Fence, Protocol, Section, View};
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

/// The behaviour of the clients.
#[derive(Clone, PartialEq, Debug)]
pub struct Requests {
    /// The members that ask, and when.
    pub who: Initiators,
    /// How long a member stays inside.
    pub hold: DelayModel,
    /// How often each asks.
    pub repeat: u32,
    /// The time from leaving to asking again.
    pub think: DelayModel,
}

impl Requests {
    /// How often members ask in all.
    pub fn count(&self) -> u64 {
        self.who.len() as u64 * u64::from(self.repeat)
    }
}

/// All clients, and their metrics.
pub(super) struct Clients {
    by_member: FastMap<u32, Client>,
    /// The client that is leaving at this moment because its stay is over.
    leaving: Option<u32>,
    /// The highest fence that the resource has seen.
    highest: Fence,
    pub(super) metrics: Recorder,
}

#[derive(Clone, Copy, Default)]
struct Client {
    /// Where its member is, as it was announced last.
    section: Section,
    /// The fence of the write that a pause has interrupted.
    writing: Option<Fence>,
    /// The fence of a stay that ended in a pause, by the clock: its member may not have noticed yet.
    ended: Option<Fence>,
    /// How often it will ask again after leaving.
    left: u64,
    /// How often it was to ask while its member was not outside.
    postponed: u64,
    /// The number of its stay, so that the end of an earlier one does not end this.
    stay: u64,
}

impl Clients {
    pub(super) fn new() -> Self {
        Self {
            by_member: FastMap::default(),
            leaving: None,
            highest: Fence::default(),
            metrics: Recorder::default(),
        }
    }
}

impl<P: Protocol> World<'_, '_, P> {
    /// Schedules the requests of the clients. Members that ask at the beginning do so now.
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

    /// The client of a member is to ask this many times, one after the other, beginning now.
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
        if let Some(fence) = self.members[member].protocol.view().section.fence() {
            self.write(member, fence);
        }
        let (id, before) = (self.id(member), self.metrics.total());
        let told = |rules| EventKind::Exit { member: id, rules };
        if let Some(clients) = &mut self.clients {
            clients.leaving = Some(member);
        }
        self.instruct(member, Event::Exit, told, out);
        let sent = self.metrics.total() - before;
        let Some(clients) = &mut self.clients else { return };
        clients.leaving = None;
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
        let asked_after = self.members[member].protocol.asked_after();
        let (Some(clients), Some(requests)) = (&mut self.clients, self.setup.requests) else {
            return;
        };
        clients.metrics.follow_order(id, view.section, asked_after);
        clients.metrics.announce(self.now, id, view.section, messages);
        let client = clients.by_member.entry(member).or_default();
        let before = std::mem::replace(&mut client.section, view.section);
        self.work -= u64::from(!before.is_outside());
        self.work += u64::from(!view.section.is_outside());
        if view.section.is_inside() && !before.is_inside() {
            client.stay += 1;
            let stay = client.stay;
            let hold = Span::from_nanos(requests.hold.draw(&mut self.random));
            self.later(self.now + hold, Item::Leave { member, stay });
            if let Some(fence) = view.section.fence() {
                self.write(member, fence);
            }
        } else if before.is_inside() && !view.section.is_inside() && clients.leaving != Some(member)
        {
            self.lose_section(member);
        }
    }

    /// A member is no longer inside, though its client has not left: its grant is over.
    fn lose_section(&mut self, member: u32) {
        if let Some(clients) = &mut self.clients {
            clients.metrics.lose_grant();
        }
        if self.observer.is_some() {
            let note = "is no longer inside: its grant is over".to_owned();
            self.record_of(member, EventKind::Noted { member: self.id(member), note });
        }
        self.ask_again(member);
    }

    /// The timer that ends a member's stay is due while the member is paused: from then on the member does not count as
    /// inside, though it cannot report that itself.
    pub(super) fn end_overdue_stay(&mut self, member: u32, timer: P::Timer) {
        let protocol = &self.members[member].protocol;
        if self.clients.is_none() || protocol.hold() != Some(timer) {
            return;
        }
        let inside = protocol.view();
        let client = self.clients.as_mut().and_then(|it| it.by_member.get_mut(&member));
        if let Some(client) = client {
            client.ended = inside.section.fence();
        }
        let view = View { section: Section::Outside, ..inside };
        self.follow_section(member, view);
        if let Some(monitor) = &mut self.monitor {
            monitor.view_changed(self.now, member, view);
        }
        if self.observer.is_some() {
            self.record_of(member, EventKind::of_view(self.id(member), view));
        }
    }

    /// A view according to the clock: a stay that has ended is over, even if its member handles other events first when it
    /// resumes.
    pub(super) fn by_the_clock(&self, member: u32, view: View) -> View {
        let client = self.clients.as_ref().and_then(|it| it.by_member.get(&member));
        match client.and_then(|client| client.ended) {
            Some(ended) if view.section.fence() == Some(ended) => {
                View { section: Section::Outside, ..view }
            }
            _ => view,
        }
    }

    /// A member is paused, perhaps in the middle of a write.
    pub(super) fn interrupt_write(&mut self, member: u32) {
        let Some(clients) = &mut self.clients else { return };
        if let Some(client) = clients.by_member.get_mut(&member) {
            client.writing = client.writing.or(client.section.fence());
        }
    }

    /// A member resumes, and its client with the write that it was about to make.
    pub(super) fn resume_write(&mut self, member: u32) {
        let client = self.clients.as_mut().and_then(|it| it.by_member.get_mut(&member));
        if let Some(fence) = client.and_then(|client| client.writing.take()) {
            self.write(member, fence);
        }
    }

    /// The client of a member writes to the resource.
    fn write(&mut self, member: u32, fence: Fence) {
        let Some(clients) = &mut self.clients else { return };
        let highest = clients.highest;
        clients.highest = highest.max(fence);
        clients.metrics.write(fence >= highest);
        if fence < highest && self.observer.is_some() {
            let note = format!("writes with fence {fence}, which is refused: {highest} was here");
            self.record_of(member, EventKind::Noted { member: self.id(member), note });
        }
    }

    /// A member has crashed, and its client with it.
    pub(super) fn end_client(&mut self, member: u32, id: NodeId) {
        let Some(clients) = &mut self.clients else { return };
        clients.metrics.crash(self.now, id);
        if let Some(client) = clients.by_member.get_mut(&member) {
            self.work -= u64::from(!client.section.is_outside());
            *client = Client { stay: client.stay + 1, ..Client::default() };
        }
    }
}
