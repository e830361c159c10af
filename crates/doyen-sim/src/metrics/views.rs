//! What each member believes at the end of a run.

use std::fmt;
use std::ops::Index;

use doyen_core::protocol::View;

use crate::hash::FastMap;

/// The view of each member, by position; `None` if it is dead. Nearly all members believe the same in the end, and there
/// may be a million of them: each view is kept once.
#[derive(Clone, PartialEq, Default)]
pub struct Views {
    /// In the order in which they are first met.
    distinct: Vec<Option<View>>,
    /// The index of each member's view, by position.
    of: Vec<u32>,
}

impl Views {
    /// The view of each member.
    pub fn iter(&self) -> impl Iterator<Item = &Option<View>> {
        self.of.iter().map(|&which| &self.distinct[which as usize])
    }

    /// The views of live members, each once.
    pub fn distinct(&self) -> impl Iterator<Item = &View> {
        self.distinct.iter().flatten()
    }

    /// The same as a list.
    pub fn to_vec(&self) -> Vec<Option<View>> {
        self.iter().copied().collect()
    }
}

impl FromIterator<Option<View>> for Views {
    fn from_iter<I: IntoIterator<Item = Option<View>>>(views: I) -> Self {
        let views = views.into_iter();
        let mut distinct = Vec::new();
        let mut of = Vec::with_capacity(views.size_hint().0);
        let mut known = FastMap::default();
        let mut last = None;
        for view in views {
            // Nearly always the same as that of the member before.
            let which = match last {
                Some((same, which)) if same == view => which,
                _ => *known.entry(view).or_insert_with(|| {
                    distinct.push(view);
                    distinct.len() as u32 - 1
                }),
            };
            of.push(which);
            last = Some((view, which));
        }
        Self { distinct, of }
    }
}

impl Index<usize> for Views {
    type Output = Option<View>;

    fn index(&self, position: usize) -> &Option<View> {
        &self.distinct[self.of[position] as usize]
    }
}

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doyen_core::members::{NodeId, Term};
    use doyen_core::protocol::Role;

    #[test]
    fn every_member_has_its_view_and_each_view_is_kept_once() {
        let view = |leader, role| Some(View::new(Some(NodeId(leader)), Term(1), role));
        let [follows, leads] = [view(3, Role::Follower), view(3, Role::Leader)];
        let listed = [follows, None, follows, leads, None, follows];
        let views = Views::from_iter(listed);
        assert_eq!(views.to_vec(), listed);
        assert!((0..6).all(|position| views[position] == listed[position]));
        assert!(views.distinct().copied().map(Some).eq([follows, leads]));
    }
}
