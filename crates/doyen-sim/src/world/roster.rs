//! The members of a world, and the world's data about each.

use std::hint::black_box;
use std::ops::{Index, IndexMut};

use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::Protocol;

use crate::network::LastLink;

/// All members, by position. In memory they are in the order of the ring: a message that is passed from neighbour to
/// neighbour then goes through memory in order, and the processor has loaded the next member before it is needed. With
/// a million members that is most of the time of a message. Second processes of members (see `world/process.rs`) follow
/// them, at the positions from the number of members on.
pub(super) struct Roster<'a, P: Protocol> {
    members: &'a Members,
    config: &'a P::Config,
    in_ring_order: Vec<Member<P>>,
}

/// The place of a member, for code that needs it more than once.
#[derive(Clone, Copy)]
pub(super) struct Seat(usize);

/// At most this many members are in the cache anyway.
const CACHED: usize = 1 << 12;

/// A member, and the world's data about it. The order of the fields matters: reading the first and the last one brings
/// all of a small member into the cache.
#[repr(C)]
pub(super) struct Member<P> {
    pub(super) id: NodeId,
    /// The longest chain of messages that has led to it.
    pub(super) depth: u32,
    pub(super) protocol: P,
    pub(super) sent: u32,
    pub(super) received: u32,
    pub(super) last_link: LastLink,
    pub(super) status: Status,
    pub(super) leads: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    Up,
    /// Alive, but does nothing until it resumes.
    Paused,
    Dead,
    /// Dead, but its control part forwards (os-textbook).
    Forwarding,
}

impl<'a, P: Protocol> Roster<'a, P> {
    /// All members are up, in the state that `start` builds.
    pub(super) fn new(
        members: &'a Members,
        config: &'a P::Config,
        mut start: impl FnMut(NodeId) -> P,
    ) -> Self {
        let seat = |id| Member::new(id, start(id));
        let mut in_ring_order = Vec::with_capacity(members.len());
        in_ring_order.extend(members.ring().map(seat));
        Self { members, config, in_ring_order }
    }

    /// Reads these members and what decides their elections, so that they are in the cache when they are needed. No
    /// read waits for another one, so all of them take hardly longer than one.
    #[inline]
    pub(super) fn fetch(&self, positions: impl Iterator<Item = u32>) {
        if P::has_sessions(self.config) || self.in_ring_order.len() <= CACHED {
            return;
        }
        let mut seen = 0;
        for position in positions {
            let member = &self[position];
            seen ^= self.members.key(member.id).attr ^ i64::from(member.leads);
        }
        // Keeps the reads from being optimised away.
        black_box(seen);
    }

    /// How many members there are.
    pub(super) fn len(&self) -> u32 {
        self.members.len() as u32
    }

    /// Another process of member `id` takes the next position.
    pub(super) fn push(&mut self, id: NodeId, protocol: P) {
        self.in_ring_order.push(Member::new(id, protocol));
    }

    /// Where the member at `position` is found.
    #[inline]
    pub(super) fn seat(&self, position: u32) -> Seat {
        if P::has_sessions(self.config) && position >= self.len() {
            return Seat(position as usize);
        }
        Seat(self.members.ring_place(position as usize))
    }
}

impl<P: Protocol> Index<u32> for Roster<'_, P> {
    type Output = Member<P>;

    #[inline]
    fn index(&self, position: u32) -> &Member<P> {
        &self[self.seat(position)]
    }
}

impl<P: Protocol> IndexMut<u32> for Roster<'_, P> {
    #[inline]
    fn index_mut(&mut self, position: u32) -> &mut Member<P> {
        let seat = self.seat(position);
        &mut self[seat]
    }
}

impl<P: Protocol> Index<Seat> for Roster<'_, P> {
    type Output = Member<P>;

    #[inline]
    fn index(&self, seat: Seat) -> &Member<P> {
        &self.in_ring_order[seat.0]
    }
}

impl<P: Protocol> IndexMut<Seat> for Roster<'_, P> {
    #[inline]
    fn index_mut(&mut self, seat: Seat) -> &mut Member<P> {
        &mut self.in_ring_order[seat.0]
    }
}

impl<P> Member<P> {
    fn new(id: NodeId, protocol: P) -> Self {
        Self {
            protocol,
            id,
            depth: 0,
            sent: 0,
            received: 0,
            last_link: LastLink::default(),
            status: Status::Up,
            leads: false,
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        matches!(self.status, Status::Up | Status::Paused)
    }
}
