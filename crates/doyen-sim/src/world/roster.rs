//! The members of a world, and what the world knows about each.

use std::ops::{Index, IndexMut};

use doyen_core::members::{Members, NodeId};

use crate::network::LastLink;

/// Everybody, by position. In memory they stand as they stand in the ring: what is passed from neighbour to neighbour
/// then goes through memory in order, and the processor has the next member at hand before it is asked for. With a
/// million members that is most of the time a message takes.
pub(super) struct Roster<'a, P> {
    members: &'a Members,
    in_ring_order: Vec<Member<P>>,
}

/// A member, and what the world knows about it. Aligned, so that a small one takes one cache line instead of two.
#[repr(align(64))]
pub(super) struct Member<P> {
    pub(super) protocol: P,
    /// The longest chain of messages that has led to it.
    pub(super) depth: u32,
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
    /// Dead, but its control part forwards (003).
    Forwarding,
}

impl<'a, P> Roster<'a, P> {
    /// Everybody is up, in the state that `start` builds.
    pub(super) fn new(members: &'a Members, mut start: impl FnMut(NodeId) -> P) -> Self {
        let seat = |id| Member {
            protocol: start(id),
            depth: 0,
            sent: 0,
            received: 0,
            last_link: LastLink::default(),
            status: Status::Up,
            leads: false,
        };
        let mut in_ring_order = Vec::with_capacity(members.len());
        in_ring_order.extend(members.ring().map(seat));
        Self { members, in_ring_order }
    }

    pub(super) fn len(&self) -> u32 {
        self.in_ring_order.len() as u32
    }

    /// All members, by position.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Member<P>> {
        (0..self.len()).map(|position| &self[position])
    }
}

impl<P> Index<u32> for Roster<'_, P> {
    type Output = Member<P>;

    #[inline]
    fn index(&self, position: u32) -> &Member<P> {
        &self.in_ring_order[self.members.ring_place(position as usize)]
    }
}

impl<P> IndexMut<u32> for Roster<'_, P> {
    #[inline]
    fn index_mut(&mut self, position: u32) -> &mut Member<P> {
        &mut self.in_ring_order[self.members.ring_place(position as usize)]
    }
}

impl<P> Member<P> {
    pub(super) fn is_alive(&self) -> bool {
        matches!(self.status, Status::Up | Status::Paused)
    }
}
