//! The members that detect the failure of the coordinator, and when.

use std::ops::Range;

use doyen_core::members::NodeId;

use crate::time::Time;

/// The members that detect it, in the order in which they were named. There may be a million of them, and nearly always
/// all of them detect it at the beginning.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Initiators {
    ids: Ids,
    /// When each of them detects it; empty if all of them do so at the beginning.
    times: Vec<Time>,
}

/// Ids, stored as a range if they are consecutive.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Ids {
    Run(Range<u32>),
    Listed(Vec<NodeId>),
}

impl Default for Ids {
    fn default() -> Self {
        Self::Run(0..0)
    }
}

impl From<Vec<NodeId>> for Ids {
    fn from(ids: Vec<NodeId>) -> Self {
        let first = ids.first().map_or(0, |id| id.0);
        let run = first..first.saturating_add(ids.len() as u32);
        let is_run = run.clone().eq(ids.iter().map(|id| id.0));
        if is_run { Self::Run(run) } else { Self::Listed(ids) }
    }
}

impl Initiators {
    /// These members detect it at the beginning.
    pub fn at_once(ids: impl IntoIterator<Item = NodeId>) -> Self {
        Self { ids: ids.into_iter().collect::<Vec<_>>().into(), times: Vec::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.ids {
            Ids::Run(run) => run.len(),
            Ids::Listed(ids) => ids.len(),
        }
    }

    /// Whether there are no initiators.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each initiator, and its time.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, Time)> + '_ {
        let time = |place| self.times.get(place).copied().unwrap_or_default();
        let id = |place| match &self.ids {
            Ids::Run(run) => NodeId(run.start + place as u32),
            Ids::Listed(ids) => ids[place],
        };
        (0..self.len()).map(move |place| (id(place), time(place)))
    }
}

impl FromIterator<(NodeId, Time)> for Initiators {
    fn from_iter<I: IntoIterator<Item = (NodeId, Time)>>(initiators: I) -> Self {
        let (ids, times): (Vec<NodeId>, Vec<Time>) = initiators.into_iter().unzip();
        let at_once = times.iter().all(|&at| at == Time::ZERO);
        Self { ids: ids.into(), times: if at_once { Vec::new() } else { times } }
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
        assert_eq!(Initiators::at_once([]), Initiators::default());
    }

    #[test]
    fn a_run_of_ids_is_as_good_as_a_list() {
        for ids in [[3, 4, 5], [3, 4, 6], [5, 4, 3], [u32::MAX - 2, u32::MAX - 1, u32::MAX]] {
            let ids = ids.map(NodeId);
            let initiators = Initiators::at_once(ids);
            assert_eq!(initiators.len(), 3);
            assert!(initiators.iter().eq(ids.map(|id| (id, Time::ZERO))));
        }
    }
}
