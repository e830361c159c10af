//! Members that are alike but for their names: states that differ in nothing but who is who are one.
//!
//! Where any renaming of the members turns what can happen in a state into what can happen in the renamed one, and what
//! is claimed says nothing of names, one state of those that are renamings of each other is enough. Their fingerprint is
//! made of all that a state has by every renaming, and so is the same for all of them. Which of them a search goes on from
//! makes no difference, so states are never renamed, only fingerprints are: each part of a state has its own by every
//! renaming from the beginning.

use doyen_core::members::{Members, NodeId};

use crate::arrange::arrangements;

/// With more members than this renaming takes longer than exploring.
const MOST_ALIKE: usize = 5;

/// Every renaming of the members but the one that changes nothing; none where members are not alike.
#[derive(Default)]
pub(super) struct Symmetry(Vec<Renaming>);

/// A renaming of the members.
pub(super) struct Renaming {
    /// In their usual places.
    ids: Vec<NodeId>,
    /// Where each of them goes.
    places: Vec<u32>,
}

impl Symmetry {
    /// Of members that are alike.
    pub(super) fn of(members: &Members) -> Self {
        if members.len() > MOST_ALIKE {
            return Self::default();
        }
        let usual: Vec<u32> = (0..members.len() as u32).collect();
        let others = arrangements(&usual, false).into_iter().filter(|places| *places != usual);
        Self(others.map(|places| Renaming { ids: members.iter().collect(), places }).collect())
    }

    pub(super) fn renamings(&self) -> &[Renaming] {
        &self.0
    }

    /// A fingerprint by each renaming.
    pub(super) fn each(&self, print: impl FnMut(&Renaming) -> u64) -> Box<[u64]> {
        self.renamings().iter().map(print).collect()
    }
}

impl Renaming {
    /// The place to which a member goes.
    pub(super) fn place(&self, place: u8) -> u8 {
        self.places[usize::from(place)] as u8
    }

    /// The name that a member gets.
    pub(super) fn name(&self, id: NodeId) -> NodeId {
        let place = self.ids.iter().position(|&other| other == id);
        place.map_or(id, |place| self.ids[self.places[place] as usize])
    }
}
