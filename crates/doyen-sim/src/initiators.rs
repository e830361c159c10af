//! Who notices that the coordinator is gone, and when.

use doyen_core::members::NodeId;

use crate::time::Time;

/// The members that notice, in the order in which they were named. Nearly always they all notice at the beginning, and
/// then four bytes each are enough: there may be a million of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Initiators {
    ids: Vec<NodeId>,
    /// When each of them does; empty if all of them do at the beginning.
    times: Vec<Time>,
}

impl Initiators {
    /// These notice at the beginning.
    pub fn at_once(ids: impl IntoIterator<Item = NodeId>) -> Self {
        Self { ids: ids.into_iter().collect(), times: Vec::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether nobody notices anything.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Each of them, and when.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, Time)> + '_ {
        let time = |place| self.times.get(place).copied().unwrap_or_default();
        self.ids.iter().enumerate().map(move |(place, &id)| (id, time(place)))
    }
}

impl FromIterator<(NodeId, Time)> for Initiators {
    fn from_iter<I: IntoIterator<Item = (NodeId, Time)>>(initiators: I) -> Self {
        let (ids, times): (_, Vec<Time>) = initiators.into_iter().unzip();
        let at_once = times.iter().all(|&at| at == Time::ZERO);
        Self { ids, times: if at_once { Vec::new() } else { times } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_kept_where_they_matter() {
        let [two, five] = [NodeId(2), NodeId(5)];
        let listed = |at| Initiators::from_iter([(five, Time::ZERO), (two, Time(at))]);
        assert_eq!(listed(0), Initiators::at_once([five, two]));
        let later = listed(7);
        assert!(later.iter().eq([(five, Time::ZERO), (two, Time(7))]));
        assert_eq!((later.len(), later.is_empty()), (2, false));
        assert!(Initiators::default().is_empty());
    }
}
