//! Where an exploration begins.

use doyen_core::members::{Members, NodeId};
use doyen_sim::scenario::Case;

/// The initial scene.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scene<'c> {
    /// The members.
    pub members: &'c Members,
    /// The leader.
    pub leader: Option<NodeId>,
    /// The members that are down.
    pub dead: Vec<NodeId>,
    /// Whether all members know who is down.
    pub dead_known: bool,
    /// The members that have called an election.
    pub initiators: Vec<NodeId>,
}

impl<'c> Scene<'c> {
    /// All `members` are up, without a leader or an election.
    pub fn new(members: &'c Members) -> Self {
        Self { members, leader: None, dead: Vec::new(), dead_known: true, initiators: Vec::new() }
    }

    /// The scene of `case`. A member that calls an election at any time there has called it here.
    pub fn of(case: &'c Case) -> Self {
        Self {
            members: case.members(),
            leader: case.leader,
            dead: case.dead.clone(),
            dead_known: !case.contact_dead,
            initiators: case.initiators.iter().map(|(id, _)| id).collect(),
        }
    }
}
