//! The members of a world, and what the world knows about each.

use std::hint::black_box;
use std::ops::{Index, IndexMut};

use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::Protocol;

use crate::network::LastLink;

/// Everybody, by position. In memory they stand as they stand in the ring: what is passed from neighbour to neighbour
/// then goes through memory in order, and the processor has the next member at hand before it is asked for. With a
/// million members that is most of the time a message takes. Second processes of members (see `world/process.rs`) stand
/// behind them, at the positions from the number of members on.
pub(super) struct Roster<'a, P: Protocol> {
    members: &'a Members,
    config: &'a P::Config,
    in_ring_order: Vec<Member<P>>,
}

/// Where a member is found, for those who need it more than once.
#[derive(Clone, Copy)]
pub(super) struct Seat(usize);

/// So few members that they are in the cache anyhow.
const CACHED: usize = 1 << 12;

/// A member, and what the world knows about it. In this order, so that whoever has read the first and the last field has
/// all of a small one in the cache.
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
    /// Everybody is up, in the state that `start` builds.
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

    /// Reads these members and what decides their elections, so that they are in the cache when something happens to
    /// them. No read waits for another, so that all of them take hardly longer than one.
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
