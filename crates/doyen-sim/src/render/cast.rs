//! What is known of every member at a moment of a run, from the records so far.

use doyen_core::members::{Epoch, NodeId};
use doyen_core::protocol::Role;

use super::Scene;
use crate::record::What;
use crate::time::Time;

/// One member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Face {
    pub(crate) life: Life,
    pub(crate) role: Role,
    pub(crate) leader: Option<NodeId>,
    pub(crate) epoch: Epoch,
    /// Until when it may act as a leader, where leaders have leases.
    pub(crate) lease: Option<Time>,
}

/// Whether a member does anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    Up,
    /// Until this time it does nothing.
    Paused(Time),
    Dead,
}

/// What a new belief, or another lease, means to those who watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// It leads now.
    Leads,
    /// It leads still, but is about to hand over.
    Retires,
    /// It led, and does no longer; it may follow another one at once.
    StepsDown(Option<NodeId>),
    /// It follows this one now.
    Follows(NodeId),
    /// It no longer takes part in an election, or no longer follows, and knows no leader.
    Alone,
    /// It takes part in an election now.
    Stands,
    /// It has a lease now, in this epoch.
    Leased(Epoch),
    /// It has had a lease until this time, and has none any more.
    Unleased(Time),
    /// Nothing to speak of.
    Nothing,
}

/// One that has just come up.
const NEWBORN: Face =
    Face { life: Life::Up, role: Role::Follower, leader: None, epoch: Epoch(0), lease: None };

/// All of them, in the order in which they are shown.
#[derive(Clone, Debug)]
pub(crate) struct Cast {
    faces: Vec<Face>,
}

impl Cast {
    /// Everybody at the beginning of a run.
    pub(crate) fn new(scene: &Scene) -> Self {
        let follower = Face { leader: scene.leader, ..NEWBORN };
        let mut faces = vec![follower; scene.len()];
        if let Some(place) = scene.leader.and_then(|leader| scene.place(leader)) {
            faces[place] = match scene.leases {
                true => Face { role: Role::Candidate, ..NEWBORN },
                false => Face { role: Role::Leader, ..follower },
            };
        }
        Self { faces }
    }

    pub(crate) fn face(&self, place: usize) -> Face {
        self.faces[place]
    }

    pub(crate) fn set(&mut self, place: usize, face: Face) {
        self.faces[place] = face;
    }

    /// Takes note of what happens to the member at `place`; says what it means if it is a new belief.
    pub(crate) fn note(&mut self, place: usize, what: &What) -> Turn {
        let face = &mut self.faces[place];
        match *what {
            What::View { leader, role, epoch, .. } => {
                let before = *face;
                *face = Face { leader, role, epoch, ..before };
                return turn(before, *face);
            }
            What::Leased { until, .. } => {
                return match (std::mem::replace(&mut face.lease, until), until) {
                    (None, Some(_)) => Turn::Leased(face.epoch),
                    (Some(deadline), None) => Turn::Unleased(deadline),
                    _ => Turn::Nothing,
                };
            }
            // That its lease is over is told next.
            What::Crashed { .. } => {
                *face = Face { life: Life::Dead, lease: face.lease, ..NEWBORN };
            }
            What::Restarted { .. } => *face = NEWBORN,
            What::Paused { until, .. } => face.life = Life::Paused(until),
            _ => {}
        }
        Turn::Nothing
    }
}

fn turn(before: Face, after: Face) -> Turn {
    match (before.role, after.role) {
        (Role::Leader, Role::Leader)
        | (Role::Retiring, Role::Retiring)
        | (Role::Candidate, Role::Candidate) => Turn::Nothing,
        (_, Role::Leader) => Turn::Leads,
        (_, Role::Retiring) => Turn::Retires,
        (Role::Leader | Role::Retiring, Role::Follower) => Turn::StepsDown(after.leader),
        (Role::Leader | Role::Retiring, Role::Candidate) => Turn::StepsDown(None),
        (Role::Follower, Role::Candidate) => Turn::Stands,
        (Role::Follower, Role::Follower) if before.leader == after.leader => Turn::Nothing,
        (_, Role::Follower) => after.leader.map_or(Turn::Alone, Turn::Follows),
    }
}

/// The member to which something happens, or with which it begins; nobody if it happens to all.
pub(crate) fn subject(what: &What) -> Option<NodeId> {
    match *what {
        What::Sent { from: member, .. }
        | What::Received { to: member, .. }
        | What::Missed { to: member, .. }
        | What::Armed { member, .. }
        | What::Fired { member, .. }
        | What::Campaign { member, .. }
        | What::Ordered { member, .. }
        | What::Retired { member, .. }
        | What::Noted { member, .. }
        | What::Leased { member, .. }
        | What::Suspected { member, .. }
        | What::Trusted { member, .. }
        | What::View { member, .. }
        | What::Crashed { member, .. }
        | What::Restarted { member, .. }
        | What::Paused { member, .. }
        | What::Clock { member, .. }
        | What::Cut { from: member, .. }
        | What::Mended { from: member, .. } => Some(member),
        What::Partitioned { .. } | What::Weather { .. } | What::Healed => None,
    }
}
