//! What members of a totally ordered multicast have delivered to the programs above them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::members::NodeId;

/// A message that a program has multicast, by its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Multicast {
    /// The member whose program it is.
    pub client: NodeId,
    /// Which of its messages.
    pub number: u32,
}

impl fmt::Display for Multicast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.client, self.number)
    }
}

/// What a member has delivered since it started, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Deliveries {
    /// The messages, since the last reset.
    pub sequence: Vec<Multicast>,
    /// How often what it had delivered contradicted the others, so that its program had to take over their state.
    pub resets: u32,
}

impl Deliveries {
    /// Whether one of the two has delivered what the other has, and perhaps more.
    pub fn agrees_with(&self, other: &Self) -> bool {
        self.sequence.iter().zip(&other.sequence).all(|(one, another)| one == another)
    }

    /// The first message that it has delivered twice.
    pub fn duplicate(&self) -> Option<Multicast> {
        let seen_before =
            |(place, name): (usize, &Multicast)| self.sequence[..place].contains(name);
        let mut placed = self.sequence.iter().enumerate();
        placed.find(|&it| seen_before(it)).map(|(_, &name)| name)
    }
}
