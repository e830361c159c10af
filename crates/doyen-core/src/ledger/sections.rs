//! The safety rules of mutual exclusion, judged from what members announce: the oracle of a simulation, an exploration and
//! the replay of recorded runs pass in the same views. [`two_tokens`] is asked by explorations alone, which see where every
//! token is.

use super::{Contradiction, Fact, Invariant};
use crate::map::SortedMap;
use crate::members::{NodeId, Term};
use crate::protocol::{Fence, Section};

/// Where each member is with respect to the critical section, and what the rules need to know of earlier entries. It is part
/// of the states of an exploration, so it holds nothing that no rule needs.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Sections {
    /// The members that are not outside.
    present: SortedMap<NodeId, Section>,
    /// The largest fence so far, and who entered with it.
    latest: Option<(NodeId, Fence)>,
    /// How often one member may enter while another one waits, if that is bounded.
    most_overtaking: Option<u32>,
    /// How often each member has entered while another one waits: by the one that waits. Empty without a bound.
    overtaken: SortedMap<NodeId, SortedMap<NodeId, u32>>,
}

impl Sections {
    /// No member waits or is inside. `most_overtaking`: how often one member may enter while another one waits, if the
    /// algorithm bounds that.
    pub fn new(most_overtaking: Option<u32>) -> Self {
        Self { most_overtaking, ..Self::default() }
    }

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
        if before != section {
            self.overtaken.remove(&member);
        }
        found
    }

    /// The process of a member is gone: it is not inside any more, whatever it announced.
    pub fn crash(&mut self, member: NodeId) {
        self.present.remove(&member);
        self.overtaken.remove(&member);
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
        let overtaking = self.overtake(member);
        [together, unasked, fallen, overtaking].into_iter().flatten().collect()
    }

    /// Counts an entry of `member` for all others that wait.
    fn overtake(&mut self, member: NodeId) -> Option<Contradiction> {
        let most = self.most_overtaking?;
        let mut broken = None;
        for (&waiting, _) in
            self.present.iter().filter(|&(&id, it)| id != member && *it == Section::Waiting)
        {
            let times = self.overtaken.get_or_default(waiting).get_or_default(member);
            *times += 1;
            if *times > most {
                let facts = [
                    (waiting, "waits to enter".to_owned()),
                    (member, format!("enters {times} times meanwhile, and {most} are allowed")),
                ];
                broken = Some(Contradiction::new(Invariant::BoundedBypass, facts));
            }
        }
        broken
    }
}

/// A request that waits although it happened before that of `member`, which enters, if there is one. `after` are the requests
/// that happened before its own, `waiting` those of the members that wait: how many of each member, and which.
pub fn out_of_order(
    member: NodeId,
    after: &SortedMap<NodeId, u32>,
    waiting: impl IntoIterator<Item = (NodeId, u32)>,
) -> Option<Contradiction> {
    let happened_before = |(id, number): &(NodeId, u32)| {
        *id != member && after.get(id).is_some_and(|known| number <= known)
    };
    let (other, _) = waiting.into_iter().find(happened_before)?;
    let facts = [
        (other, format!("has asked before {member}, which knew of it, and still waits")),
        (member, "enters the critical section".to_owned()),
    ];
    Some(Contradiction::new(Invariant::CausalOrder, facts))
}

/// Two tokens of one generation, if there are two. `tokens` are all that are held or under way: where each is, in words
/// whose subject is a member, and its generation.
pub fn two_tokens(tokens: impl IntoIterator<Item = (Fact, Term)>) -> Option<Contradiction> {
    let mut seen: SortedMap<Term, Fact> = SortedMap::new();
    tokens.into_iter().find_map(|(place, generation)| {
        let other = seen.insert(generation, place.clone())?;
        Some(Contradiction { invariant: Invariant::OneToken, facts: vec![other, place] })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn overtaking_is_counted_from_the_request_on() {
        let mut sections = Sections::new(Some(1));
        let mut enters = |member| {
            let asks = sections.announce(member, Section::Waiting);
            assert_eq!(asks, []);
            broken(&sections.announce(member, Section::INSIDE))
        };
        assert_eq!(enters(ONE), []);
        sections.announce(ONE, Section::Outside);
        sections.announce(TWO, Section::Waiting);
        let mut enters = |member| {
            sections.announce(member, Section::Waiting);
            let found = broken(&sections.announce(member, Section::INSIDE));
            sections.announce(member, Section::Outside);
            found
        };
        assert_eq!(enters(ONE), [], "the entry before the request does not count");
        assert_eq!(enters(ONE), [Invariant::BoundedBypass]);
        assert_eq!(enters(TWO), []);
        sections.announce(TWO, Section::Waiting);
        let mut again = sections.clone();
        again.crash(TWO);
        again.announce(TWO, Section::Waiting);
        assert_eq!(again, sections, "a new request counts from the beginning");
        let mut unbounded = Sections::default();
        unbounded.announce(TWO, Section::Waiting);
        for _ in 0..9 {
            unbounded.announce(ONE, Section::Waiting);
            assert_eq!(unbounded.announce(ONE, Section::INSIDE), []);
            unbounded.announce(ONE, Section::Outside);
        }
    }

    #[test]
    fn a_request_that_happened_before_enters_first() {
        let after = SortedMap::from([(TWO, 1)]);
        assert_eq!(out_of_order(ONE, &after, [(TWO, 2)]), None, "a later request");
        let found = out_of_order(ONE, &after, [(TWO, 1)]).unwrap();
        assert_eq!(found.invariant, Invariant::CausalOrder);
        assert_eq!(out_of_order(ONE, &SortedMap::new(), [(TWO, 1)]), None);
    }

    #[test]
    fn two_tokens_of_one_generation_are_one_too_many() {
        let token = |member, generation| (Fact::new(member, "holds a token"), Term(generation));
        assert_eq!(two_tokens([token(ONE, 0), token(TWO, 1)]), None);
        let found = two_tokens([token(ONE, 0), token(TWO, 1), token(TWO, 0)]).unwrap();
        assert_eq!((found.invariant, found.facts.len()), (Invariant::OneToken, 2));
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
