//! What a member believes: which leader it follows, and where it is with respect to the critical section.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::map::SortedMap;
use crate::members::{NodeId, Term};

/// What a member believes, as it announces it to its host. One type for all algorithms, because a service may do both:
/// its members follow a leader, and enter a section that the leader grants.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct View {
    /// The leader that it follows; itself, if it leads.
    pub leader: Option<NodeId>,
    /// The term in which that leader was elected; zero in textbook mode, which has no terms.
    pub term: Term,
    /// Its role.
    pub role: Role,
    /// Where it is with respect to the critical section; outside, if the algorithm has none.
    #[serde(default, skip_serializing_if = "Section::is_outside")]
    pub section: Section,
}

impl View {
    /// What a member of an election believes.
    pub const fn new(leader: Option<NodeId>, term: Term, role: Role) -> Self {
        Self { leader, term, role, section: Section::Outside }
    }

    /// What a member believes that elects no leader.
    pub const fn of_section(section: Section) -> Self {
        Self { leader: None, term: Term(0), role: Role::Follower, section }
    }
}

/// Recorded runs contain views in this form. A member that is outside looks as it did before there were sections, so
/// that earlier recordings are replayed.
impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut view = f.debug_struct("View");
        view.field("leader", &self.leader).field("term", &self.term).field("role", &self.role);
        if !self.section.is_outside() {
            view.field("section", &self.section);
        }
        view.finish()
    }
}

/// A request to enter a critical section, and the requests that happened before it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AskedAfter {
    /// Which request of its member it is, counted from one.
    pub number: u32,
    /// How many requests of each member happened before it.
    pub after: SortedMap<NodeId, u32>,
}

/// The role of a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Follows a leader, or knows of none and does not campaign.
    Follower,
    /// Takes part in an election whose result it does not know.
    Candidate,
    /// Leads.
    Leader,
    /// Still leads, but is about to transfer leadership: nothing new may begin under its lease.
    Retiring,
}

impl Role {
    /// Whether it acts as a leader.
    pub fn leads(self) -> bool {
        matches!(self, Self::Leader | Self::Retiring)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Follower => "follower",
            Self::Candidate => "candidate",
            Self::Leader => "leader",
            Self::Retiring => "retiring",
        })
    }
}

/// Where a member is with respect to the critical section.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Section {
    /// It neither is in the section nor wants to enter it.
    #[default]
    Outside,
    /// It has asked, and may not enter yet.
    Waiting,
    /// It is in the section.
    Inside(Fence),
}

impl Section {
    /// Inside in textbook mode, which has no fences.
    pub const INSIDE: Self = Self::Inside(Fence { term: Term(0), number: 0 });

    /// Whether it neither is inside nor waits.
    pub fn is_outside(&self) -> bool {
        *self == Self::Outside
    }

    /// Whether it is inside.
    pub fn is_inside(&self) -> bool {
        matches!(self, Self::Inside(_))
    }

    /// The fence under which it is inside, if it is and the algorithm has fences.
    pub fn fence(&self) -> Option<Fence> {
        match *self {
            Self::Inside(fence) => Some(fence).filter(|&fence| fence != Fence::default()),
            Self::Outside | Self::Waiting => None,
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside => f.write_str("outside"),
            Self::Waiting => f.write_str("waiting"),
            Self::Inside(_) => match self.fence() {
                Some(fence) => write!(f, "inside, fence {fence}"),
                None => f.write_str("inside"),
            },
        }
    }
}

/// The number of an entry. Of two entries the later one has the larger fence, so that a resource can refuse a member
/// that was inside before. Zero in textbook mode.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Fence {
    /// The term of the leader that granted the entry.
    pub term: Term,
    /// The number of the grant within that term.
    pub number: u64,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.term, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_without_a_section_looks_as_in_earlier_recordings() {
        let view = View::new(Some(NodeId(3)), Term(2), Role::Follower);
        let text = "View { leader: Some(NodeId(3)), term: Term(2), role: Follower }";
        assert_eq!(format!("{view:?}"), text);
        let inside = View { section: Section::INSIDE, ..view };
        assert!(format!("{inside:?}").contains("section: Inside("));
    }

    #[test]
    fn later_grants_have_larger_fences() {
        let fence = |term, number| Fence { term: Term(term), number };
        assert!(fence(1, 9) < fence(2, 1) && fence(2, 1) < fence(2, 2));
        assert_eq!(Section::INSIDE.fence(), None);
        assert_eq!(Section::Inside(fence(2, 1)).to_string(), "inside, fence 2.1");
    }
}
