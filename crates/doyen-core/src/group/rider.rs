//! What rides on a heartbeat and on its acknowledgement: the calls and answers of all groups, a few bytes for each.
//!
//! A fence is written as the number of terms that it is older than the rider, mostly 0, and its number in its term; a group by
//! its place in the list. In the encoding of the node a group that is kept takes three to five bytes in each direction.

use serde::{Deserialize, Serialize};

use super::{GroupId, Table};
use crate::lock::Round;
use crate::members::{NodeId, Term};
use crate::protocol::Fence;

/// The rider of a heartbeat or of an acknowledgement.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Rider {
    /// Identifies the sender's list of groups.
    pub list: u32,
    /// The term of the message that carries it.
    pub term: Term,
    /// What it says.
    pub body: Body,
}

/// What a rider says.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Body {
    /// From a member to the leader.
    Claims(Claims),
    /// From the leader to a member.
    Answers(Answers),
}

/// One call for every group: KEEP for those that are held, RELEASE for those that were left, ACQUIRE for all others if the
/// sender is willing, and RELEASE if it is not.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Claims {
    /// The round of this call.
    pub round: Round,
    /// Whether it would lead groups.
    pub willing: bool,
    /// The version of the table that it knows in this term; zero: none.
    pub seen: u64,
    /// The groups that it leads.
    pub held: Vec<Entry>,
    /// The groups that it led and has left.
    pub left: Vec<GroupId>,
}

/// What the leader answers to the last call of a member.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Answers {
    /// Rises with every rider of this leader.
    pub number: u64,
    /// The round of that call; zero if there was none.
    pub round: Round,
    /// The groups that the member leads, for one lease from the sending of that call.
    pub held: Vec<Entry>,
    /// The groups that it does not lead any more.
    pub gone: Vec<GroupId>,
    /// The groups that it should give up.
    pub yields: Vec<GroupId>,
    /// Nothing is granted yet.
    pub settling: bool,
    /// Who leads which group, and the version of that, if the member does not know it.
    pub table: Option<Told>,
}

/// A group and the fence of its grant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The group.
    pub group: GroupId,
    /// How many terms ago it was granted.
    pub age: u64,
    /// The number of the grant in that term.
    pub number: u64,
}

/// Who leads which group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Told {
    /// Its version within the term; never zero.
    pub version: u64,
    /// The groups that a member leads, and which member.
    pub leads: Vec<(NodeId, Entry)>,
}

impl Entry {
    pub(super) fn new(group: GroupId, fence: Fence, term: Term) -> Self {
        Self { group, age: term.0.saturating_sub(fence.term.0), number: fence.number }
    }

    /// The fence in a rider of `term`.
    pub(super) fn fence(&self, term: Term) -> Fence {
        Fence { term: Term(term.0.saturating_sub(self.age)), number: self.number }
    }
}

impl Told {
    /// The whole table of `groups` groups.
    pub(super) fn table(&self, term: Term, groups: usize) -> Table {
        let mut table = vec![None; groups];
        for (member, entry) in &self.leads {
            table[entry.group.place()] = Some((*member, entry.fence(term)));
        }
        table
    }
}

impl Rider {
    /// Whether everything in it is about one of `groups` groups and a term that there has been.
    pub(super) fn is_sound(&self, groups: usize) -> bool {
        let exists = |group: &GroupId| group.place() < groups;
        let is_sound = |entry: &Entry| exists(&entry.group) && entry.age < self.term.0;
        match &self.body {
            Body::Claims(Claims { held, left, .. }) => {
                held.iter().all(is_sound) && left.iter().all(exists)
            }
            Body::Answers(Answers { held, gone, yields, table, .. }) => {
                let leads = table.iter().flat_map(|told| &told.leads);
                held.iter().chain(leads.map(|(_, entry)| entry)).all(is_sound)
                    && gone.iter().chain(yields).all(exists)
            }
        }
    }
}
