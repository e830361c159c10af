//! Interchangeable members: states that differ only in the names of the members are one.
//!
//! If any renaming of the members turns the steps of a state into the steps of the renamed state, and no property names a
//! member, one of the states that are renamings of each other is enough. Their fingerprint combines the fingerprints under
//! every renaming, and so is the same for all of them. It makes no difference from which of them a search continues, so
//! states are never renamed, only fingerprints are: each part of a state has its own under every renaming.

use doyen_core::members::{Members, NodeId};

/// With more members than this renaming takes longer than exploring.
const MAX_SYMMETRIC: usize = 5;

/// Every renaming of the members but the identity; none where members are not interchangeable.
#[derive(Default)]
pub(super) struct Symmetry(Vec<Renaming>);

/// A renaming of the members.
pub(super) struct Renaming {
    /// The members by place.
    ids: Vec<NodeId>,
    /// The new place of each.
    places: Vec<u8>,
}

impl Symmetry {
    /// The renamings of interchangeable members.
    pub(super) fn of(members: &Members) -> Self {
        if members.len() > MAX_SYMMETRIC {
            return Self::default();
        }
        let identity: Vec<u8> = (0..members.len() as u8).collect();
        let others = permutations(&identity).into_iter().filter(|places| *places != identity);
        Self(others.map(|places| Renaming { ids: members.iter().collect(), places }).collect())
    }

    pub(super) fn renamings(&self) -> &[Renaming] {
        &self.0
    }

    /// A fingerprint under each renaming.
    pub(super) fn each(&self, print: impl FnMut(&Renaming) -> u64) -> Box<[u64]> {
        self.renamings().iter().map(print).collect()
    }
}

impl Renaming {
    /// The new place of a member.
    pub(super) fn place(&self, place: u8) -> u8 {
        self.places[usize::from(place)]
    }

    /// The new name of a member.
    pub(super) fn name(&self, id: NodeId) -> NodeId {
        let place = self.ids.iter().position(|&other| other == id);
        place.map_or(id, |place| self.ids[usize::from(self.places[place])])
    }
}

fn permutations(places: &[u8]) -> Vec<Vec<u8>> {
    if places.is_empty() {
        return vec![Vec::new()];
    }
    let begin_with = |index: usize| {
        let mut others = places.to_vec();
        let first = others.remove(index);
        permutations(&others).into_iter().map(move |order| [vec![first], order].concat())
    };
    (0..places.len()).flat_map(begin_with).collect()
}
