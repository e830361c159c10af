//! The safety rules of mutual exclusion, judged from what members announce: the oracle of a simulation, an exploration and
//! the replay of recorded runs pass in the same views.

use std::collections::BTreeMap;

use super::{Contradiction, Invariant};
use crate::members::NodeId;
use crate::protocol::{Fence, Section};

/// Where each member is with respect to the critical section, and the latest fence.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sections {
    /// The members that are not outside.
    present: BTreeMap<NodeId, Section>,
    /// The largest fence so far, and who entered with it.
    latest: Option<(NodeId, Fence)>,
}

impl Sections {
    /// A member announces where it is.
    pub fn announce(&mut self, member: NodeId, section: Section) -> Vec<Contradiction> {
        let before = self.section_of(member);
        let found = match section.is_inside() && before != section {
            true => self.enter(member, before, section),
            false => Vec::new(),
        };
        match section {
            Section::Outside => self.present.remove(&member),
            Section::Waiting | Section::Inside(_) => self.present.insert(member, section),
        };
        found
    }

    /// The process of a member is gone: it is not inside any more, whatever it announced.
    pub fn crash(&mut self, member: NodeId) {
        self.present.remove(&member);
    }

    /// Where a member is.
    pub fn section_of(&self, member: NodeId) -> Section {
        self.present.get(&member).copied().unwrap_or_default()
    }

    fn enter(&mut self, member: NodeId, before: Section, section: Section) -> Vec<Contradiction> {
        let enters = || (member, "enters the critical section".to_owned());
        let inside = |(&id, section): (&NodeId, &Section)| {
            (id != member && section.is_inside()).then_some(id)
        };
        let together = self.present.iter().find_map(inside).map(|other| {
            let facts = [(other, "is in the critical section".to_owned()), enters()];
            Contradiction::new(Invariant::OneInside, facts)
        });
        let unasked = (before != Section::Waiting).then(|| {
            let facts = [(member, format!("was {before}, and had not asked")), enters()];
            Contradiction::new(Invariant::EnteredByRequest, facts)
        });
        let fallen = section.fence().and_then(|fence| {
            let (other, earlier) = self.latest.replace((member, fence))?;
            let facts = [
                (other, format!("had entered with fence {earlier} before")),
                (member, format!("enters with fence {fence}")),
            ];
            (fence <= earlier).then(|| Contradiction::new(Invariant::FencesRise, facts))
        });
        [together, unasked, fallen].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::Term;

    const ONE: NodeId = NodeId(1);
    const TWO: NodeId = NodeId(2);

    fn broken(found: &[Contradiction]) -> Vec<Invariant> {
        found.iter().map(|it| it.invariant).collect()
    }

    fn fenced(term: u64, number: u64) -> Section {
        Section::Inside(Fence { term: Term(term), number })
    }

    #[test]
    fn two_members_are_not_inside_at_the_same_time() {
        let mut sections = Sections::default();
        assert_eq!(sections.announce(ONE, Section::Waiting), []);
        assert_eq!(sections.announce(TWO, Section::Waiting), []);
        assert_eq!(sections.announce(ONE, Section::INSIDE), []);
        assert_eq!(broken(&sections.announce(TWO, Section::INSIDE)), [Invariant::OneInside]);
        let mut sections = Sections::default();
        sections.announce(ONE, Section::Waiting);
        sections.announce(ONE, Section::INSIDE);
        sections.crash(ONE);
        sections.announce(TWO, Section::Waiting);
        assert_eq!(sections.announce(TWO, Section::INSIDE), [], "the other process is gone");
    }

    #[test]
    fn a_member_enters_only_after_it_has_asked() {
        let mut sections = Sections::default();
        assert_eq!(broken(&sections.announce(ONE, Section::INSIDE)), [Invariant::EnteredByRequest]);
        assert_eq!(sections.announce(ONE, Section::Outside), []);
        assert_eq!(sections.announce(ONE, Section::Waiting), []);
        assert_eq!(sections.announce(ONE, Section::Outside), [], "a request may be given up");
    }

    #[test]
    fn fences_rise_and_none_is_used_twice() {
        let mut sections = Sections::default();
        let mut entry = |member, fence| {
            sections.announce(member, Section::Waiting);
            let found = broken(&sections.announce(member, fence));
            sections.announce(member, Section::Outside);
            found
        };
        assert_eq!(entry(ONE, fenced(1, 5)), []);
        assert_eq!(entry(TWO, fenced(2, 1)), []);
        assert_eq!(entry(ONE, fenced(2, 1)), [Invariant::FencesRise]);
        assert_eq!(entry(ONE, fenced(1, 9)), [Invariant::FencesRise]);
        assert_eq!(entry(ONE, Section::INSIDE), [], "textbook mode has no fences");
    }
}
