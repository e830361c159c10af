//! The members: ids, election keys, the ring, and small sets of peers.

use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A member's number: unique, and the tie-breaker of every election.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How often a member has started, raised and stored by its host before every start.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Incarnation(pub u32);

/// One start of a process, by a random number that its host draws.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "[u8; 8]", try_from = "[u8; 8]")]
pub struct SessionId(NonZeroU64);

impl SessionId {
    /// The session with this number.
    pub const fn new(number: NonZeroU64) -> Self {
        Self(number)
    }

    /// The session with this number; zero, which means "none" on the wire, becomes the highest.
    pub const fn from_random(number: u64) -> Self {
        match NonZeroU64::new(number) {
            Some(number) => Self(number),
            None => Self(NonZeroU64::MAX),
        }
    }

    /// The session of member `id` in a simulation in which all members start together and know each other's sessions
    /// beforehand.
    pub const fn of_founder(id: NodeId) -> Self {
        Self::from_random(id.0 as u64 + 1)
    }

    /// The number, never zero.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({:x})", self.0)
    }
}

// A random number takes more bytes in variable-length form than as eight bytes.
impl From<SessionId> for [u8; 8] {
    fn from(session: SessionId) -> Self {
        session.get().to_le_bytes()
    }
}

impl TryFrom<[u8; 8]> for SessionId {
    type Error = &'static str;

    fn try_from(bytes: [u8; 8]) -> Result<Self, Self::Error> {
        NonZeroU64::new(u64::from_le_bytes(bytes)).map(Self).ok_or("a session cannot be zero")
    }
}

/// The number of an election; hardened mode stores the highest it has seen.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Term(pub u64);

impl Term {
    /// The term after this one. Terms never wrap: the last one stays. No run reaches it by itself; if a peer claims to
    /// be there, terms no longer distinguish elections, and keys decide alone.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What decides an election: the attribute first, the id where attributes are equal.
///
/// cs425 elects by "an attribute value called attr, e.g. id, MAC address, CPU" and is correct only if attributes
/// differ; with the id in the key any attribute works.
///
/// Packed into twelve bytes: nearly every message holds a key, and a simulation has millions of messages in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[repr(C, packed(4))]
pub struct Key {
    /// The tie-breaker.
    pub id: NodeId,
    /// The election attribute: the higher, the better.
    pub attr: i64,
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let Self { id, attr } = *self;
        (attr, id).cmp(&(other.attr, other.id))
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Key {
    /// The id alone where it is its own attribute, else `id:attr`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attr, id } = *self;
        if attr == i64::from(id.0) { id.fmt(f) } else { write!(f, "{id}:{attr}") }
    }
}

/// The configured members, identical at every one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Members {
    ids: Ids,
    /// Attributes by position; without them the id is the attribute.
    attrs: Option<Attrs>,
    /// The position of the member with the highest key.
    highest: u32,
    /// Made when they are first asked for, which the rings never do. Without attributes ranks are positions.
    ranks: LazyRanks,
    /// The ring, clockwise; without one it runs by ascending id.
    ring: Option<Ring>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Ids {
    /// `first..first + count`: a million members cost nothing.
    Range { first: u32, count: u32 },
    /// Any ids, ascending.
    Listed(Box<[NodeId]>),
}

/// Half as large if all of them are small.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Attrs {
    Small(Box<[i32]>),
    Any(Box<[i64]>),
}

impl Attrs {
    fn new(attrs: Vec<i64>) -> Self {
        match attrs.iter().all(|&attr| i32::try_from(attr).is_ok()) {
            true => Self::Small(attrs.iter().map(|&attr| attr as i32).collect()),
            false => Self::Any(attrs.into()),
        }
    }

    #[inline]
    fn at(&self, position: usize) -> i64 {
        match self {
            Self::Small(attrs) => attrs[position].into(),
            Self::Any(attrs) => attrs[position],
        }
    }
}

/// Positions by rank (lowest key first), and ranks by position.
#[derive(Clone, Debug)]
struct Ranks {
    by_rank: Box<[u32]>,
    of: Box<[u32]>,
}

#[derive(Clone, Debug, Default)]
struct LazyRanks(OnceLock<Ranks>);

/// They follow from the attributes, whether they have been made or not.
impl PartialEq for LazyRanks {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LazyRanks {}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Ring {
    /// The clockwise neighbour of each member, by position.
    next: Box<[NodeId]>,
    /// The number of clockwise hops of each member from where the ring begins, by position.
    place: Box<[u32]>,
}

/// Why a set of members is rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MembersError {
    /// There must be at least one.
    Empty,
    /// Two members have this id.
    Duplicate(NodeId),
    /// An attribute or a position in the ring is given for an id that is not a member.
    Unknown(NodeId),
    /// The ring does not include this member.
    NotInRing(NodeId),
}

impl fmt::Display for MembersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there are no members; give at least one"),
            Self::Duplicate(id) => write!(f, "member {id} is named twice; ids must be unique"),
            Self::Unknown(id) => write!(f, "{id} is not a member"),
            Self::NotInRing(id) => {
                write!(f, "member {id} is not in the ring; name every member once, clockwise")
            }
        }
    }
}

impl std::error::Error for MembersError {}

impl Members {
    /// `count` members with ids `first..first + count`.
    pub fn range(first: u32, count: u32) -> Result<Self, MembersError> {
        if count == 0 {
            return Err(MembersError::Empty);
        }
        Ok(Self::of(Ids::Range { first, count }))
    }

    /// Members with any ids, in any order.
    pub fn listed(mut ids: Vec<NodeId>) -> Result<Self, MembersError> {
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(MembersError::Duplicate(pair[0]));
        }
        let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
            return Err(MembersError::Empty);
        };
        if (last.0 - first.0) as usize + 1 == ids.len() {
            return Self::range(first.0, ids.len() as u32);
        }
        Ok(Self::of(Ids::Listed(ids.into())))
    }

    fn of(ids: Ids) -> Self {
        let highest = match &ids {
            Ids::Range { count, .. } => count - 1,
            Ids::Listed(ids) => ids.len() as u32 - 1,
        };
        Self { ids, attrs: None, highest, ranks: LazyRanks::default(), ring: None }
    }

    /// The same members, with an attribute for some of them; the others keep their id as attribute.
    pub fn with_attrs(
        mut self,
        attrs: impl IntoIterator<Item = (NodeId, i64)>,
    ) -> Result<Self, MembersError> {
        let mut by_position: Vec<i64> = self.iter().map(|id| i64::from(id.0)).collect();
        for (id, attr) in attrs {
            let position = self.position(id).ok_or(MembersError::Unknown(id))?;
            by_position[position] = attr;
        }
        // Of equal ones the last, which has the highest id.
        let highest = (0..by_position.len()).max_by_key(|&position| by_position[position]);
        self.highest = highest.unwrap_or_default() as u32;
        self.attrs = Some(Attrs::new(by_position));
        self.ranks = LazyRanks::default();
        Ok(self)
    }

    /// The same members, with the ring in this clockwise order.
    pub fn with_ring(
        mut self,
        clockwise: impl IntoIterator<Item = NodeId>,
    ) -> Result<Self, MembersError> {
        const NOWHERE: u32 = u32::MAX;
        let mut order = Vec::with_capacity(self.len());
        let mut place = vec![NOWHERE; self.len()].into_boxed_slice();
        for id in clockwise {
            let position = self.position(id).ok_or(MembersError::Unknown(id))?;
            if std::mem::replace(&mut place[position], order.len() as u32) != NOWHERE {
                return Err(MembersError::Duplicate(id));
            }
            order.push(id);
        }
        if let Some(missing) = place.iter().position(|&place| place == NOWHERE) {
            return Err(MembersError::NotInRing(self.at(missing)));
        }
        let mut next = vec![order[0]; order.len()].into_boxed_slice();
        for pair in order.windows(2) {
            next[self.place_of(pair[0])] = pair[1];
        }
        self.ring = Some(Ring { next, place });
        Ok(self)
    }

    /// How many members there are.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.ids {
            Ids::Range { count, .. } => *count as usize,
            Ids::Listed(ids) => ids.len(),
        }
    }

    /// Always false: a group without members cannot be built.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position of `id` among the members in ascending order of their ids.
    #[inline]
    pub fn position(&self, id: NodeId) -> Option<usize> {
        match &self.ids {
            Ids::Range { first, count } => {
                let position = id.0.wrapping_sub(*first);
                (position < *count).then_some(position as usize)
            }
            Ids::Listed(ids) => search(ids, id),
        }
    }

    /// The member at `position`.
    #[inline]
    pub fn at(&self, position: usize) -> NodeId {
        match &self.ids {
            Ids::Range { first, count } => {
                if position >= *count as usize {
                    no_member_at(position);
                }
                NodeId(first + position as u32)
            }
            Ids::Listed(ids) => ids[position],
        }
    }

    /// Whether `id` is a member.
    #[inline]
    pub fn contains(&self, id: NodeId) -> bool {
        self.position(id).is_some()
    }

    /// All members in ascending order of their ids.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + '_ {
        (0..self.len()).map(|position| self.at(position))
    }

    /// All members but `me`.
    pub fn others(&self, me: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.iter().filter(move |&id| id != me)
    }

    /// The election key of a member.
    #[inline]
    pub fn key(&self, id: NodeId) -> Key {
        let attr = match &self.attrs {
            None => i64::from(id.0),
            Some(attrs) => attrs.at(self.place_of(id)),
        };
        Key { attr, id }
    }

    /// How many members have a lower key.
    pub fn rank(&self, id: NodeId) -> usize {
        let position = self.place_of(id);
        self.ranks().map_or(position, |ranks| ranks.of[position] as usize)
    }

    /// The member with the highest key.
    pub fn highest(&self) -> NodeId {
        self.at(self.highest as usize)
    }

    /// The member with exactly `rank` lower members.
    pub fn by_rank(&self, rank: usize) -> NodeId {
        let position = self.ranks().map_or(rank, |ranks| ranks.by_rank[rank] as usize);
        self.at(position)
    }

    /// The ranks, where they are not the positions.
    fn ranks(&self) -> Option<&Ranks> {
        let attrs = self.attrs.as_ref()?;
        Some(self.ranks.0.get_or_init(|| {
            // Positions ascend with ids, so a stable sort by attribute alone breaks ties by id.
            let mut by_rank: Box<[u32]> = (0..self.len() as u32).collect();
            by_rank.sort_by_key(|&position| attrs.at(position as usize));
            let of = inverse(&by_rank);
            Ranks { by_rank, of }
        }))
    }

    /// The members with a higher key than `id`, lowest first.
    pub fn higher(&self, id: NodeId) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        (self.rank(id) + 1..self.len()).map(|rank| self.by_rank(rank))
    }

    /// The members with a lower key than `id`, lowest first.
    pub fn lower(&self, id: NodeId) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        (0..self.rank(id)).map(|rank| self.by_rank(rank))
    }

    /// All members, clockwise from where the ring begins.
    pub fn ring(&self) -> impl Iterator<Item = NodeId> + '_ {
        let is_last = |&position: &usize| self.ring_place(position) + 1 == self.len();
        let last = (0..self.len()).rev().find(is_last).map(|position| self.at(position));
        last.into_iter().flat_map(|last| self.clockwise(last))
    }

    /// The members from `id`'s clockwise neighbour round to `id` itself.
    pub fn clockwise(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let mut last = id;
        (0..self.len()).map(move |_| {
            last = self.next_clockwise(last);
            last
        })
    }

    /// The clockwise neighbour of `id`: itself, if it is the only member.
    #[inline(always)]
    pub fn next_clockwise(&self, id: NodeId) -> NodeId {
        let position = self.place_of(id);
        match &self.ring {
            Some(ring) => ring.next[position],
            None if position + 1 < self.len() => self.at(position + 1),
            None => self.at(0),
        }
    }

    /// The next term of `owner` after `last`, if terms are dealt out to the members in turn: no two members ever have the
    /// same. For services whose leaders are not elected by their terms.
    pub fn next_term_of(&self, owner: NodeId, last: Term) -> Term {
        let count = self.len() as u64;
        let place = self.position(owner).unwrap_or_default() as u64;
        let term = (last.0 / count * count).saturating_add(place + 1);
        Term(if term > last.0 { term } else { term.saturating_add(count) })
    }

    /// How many clockwise hops it is from `from` to `to`.
    pub fn ring_distance(&self, from: NodeId, to: NodeId) -> usize {
        let [from, to] = [from, to].map(|id| self.ring_place(self.place_of(id)));
        (to + self.len() - from) % self.len()
    }

    /// How many clockwise hops the member at `position` is from where the ring begins.
    #[inline]
    pub fn ring_place(&self, position: usize) -> usize {
        self.ring.as_ref().map_or(position, |ring| ring.place[position] as usize)
    }

    #[inline]
    fn place_of(&self, id: NodeId) -> usize {
        self.position(id).unwrap_or_else(|| no_member(id))
    }
}

/// Kept out of [`Members::position`], which is small without it.
#[inline(never)]
fn search(ids: &[NodeId], id: NodeId) -> Option<usize> {
    ids.binary_search(&id).ok()
}

// Panics are separate from their callers: otherwise the message that names the id would be prepared there, every time.
#[cold]
fn no_member_at(position: usize) -> ! {
    panic!("no member stands at {position}")
}

#[cold]
fn no_member(id: NodeId) -> ! {
    panic!("{id} is not a member")
}

fn inverse(order: &[u32]) -> Box<[u32]> {
    let mut inverse = vec![0; order.len()].into_boxed_slice();
    for (place, &position) in order.iter().enumerate() {
        inverse[position as usize] = place as u32;
    }
    inverse
}

/// A small set of members. When empty, as it nearly always is, it takes one word: a million members keep one each.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
#[allow(clippy::box_collection, reason = "one word instead of three, a million times")]
pub struct PeerSet(Option<Box<Vec<NodeId>>>);

impl PeerSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Whether `id` is in the set.
    #[inline]
    pub fn contains(&self, id: NodeId) -> bool {
        self.0.as_ref().is_some_and(|ids| ids.binary_search(&id).is_ok())
    }

    /// Adds `id`; returns whether it was new.
    pub fn insert(&mut self, id: NodeId) -> bool {
        let ids = self.0.get_or_insert_default();
        match ids.binary_search(&id) {
            Ok(_) => false,
            Err(place) => {
                ids.insert(place, id);
                true
            }
        }
    }

    /// Removes `id`; returns whether it was present. An emptied set equals a new one.
    #[inline]
    pub fn remove(&mut self, id: NodeId) -> bool {
        let Some(ids) = &mut self.0 else { return false };
        let Ok(place) = ids.binary_search(&id) else { return false };
        ids.remove(place);
        if ids.is_empty() {
            self.0 = None;
        }
        true
    }

    /// The members of the set, ascending by id.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.0.iter().flat_map(|ids| ids.iter().copied())
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The number of members in the set.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |ids| ids.len())
    }

    /// Removes all members.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

impl fmt::Debug for PeerSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|id| id.0)).finish()
    }
}

impl FromIterator<NodeId> for PeerSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(ids: I) -> Self {
        let mut set = Self::new();
        for id in ids {
            set.insert(id);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[u32]) -> Vec<NodeId> {
        ids.iter().copied().map(NodeId).collect()
    }

    #[test]
    fn the_attribute_decides_and_the_id_breaks_ties() {
        let members = Members::range(1, 4).unwrap();
        let members =
            members.with_attrs([(NodeId(1), 9), (NodeId(2), 9), (NodeId(4), -1)]).unwrap();
        let ranked: Vec<NodeId> = (0..4).map(|rank| members.by_rank(rank)).collect();
        assert_eq!(ranked, ids(&[4, 3, 1, 2]));
        assert_eq!(members.highest(), NodeId(2));
        assert_eq!(members.higher(NodeId(3)).collect::<Vec<_>>(), ids(&[1, 2]));
        assert_eq!(members.lower(NodeId(1)).collect::<Vec<_>>(), ids(&[4, 3]));
    }

    #[test]
    fn attributes_of_any_size_decide() {
        for attr in [7, i64::from(i32::MAX), i64::from(i32::MAX) + 1, i64::MAX] {
            let members = Members::range(1, 3).unwrap().with_attrs([(NodeId(2), attr)]).unwrap();
            assert_eq!(members.key(NodeId(2)), Key { attr, id: NodeId(2) });
            assert_eq!((members.highest(), members.rank(NodeId(2))), (NodeId(2), 2));
            let low = members.clone().with_attrs([(NodeId(2), -attr)]).unwrap();
            assert_eq!((low.highest(), low.rank(NodeId(2))), (NodeId(3), 0));
        }
    }

    #[test]
    fn members_are_equal_whether_they_were_ranked_or_not() {
        let members = || Members::range(1, 3).unwrap().with_attrs([(NodeId(1), 9)]).unwrap();
        let ranked = members();
        assert_eq!(ranked.highest(), NodeId(1));
        assert_eq!(ranked, members());
    }

    #[test]
    fn the_ring_runs_clockwise_and_ends_where_it_began() {
        let members = Members::listed(ids(&[33, 17, 24, 3])).unwrap();
        let members = members.with_ring(ids(&[17, 24, 33, 3])).unwrap();
        assert_eq!(members.clockwise(NodeId(24)).collect::<Vec<_>>(), ids(&[33, 3, 17, 24]));
        assert_eq!(members.ring_distance(NodeId(17), NodeId(33)), 2);
        assert_eq!(members.ring_distance(NodeId(33), NodeId(17)), 2);
        assert_eq!(members.ring_distance(NodeId(3), NodeId(3)), 0);
    }

    #[test]
    fn impossible_groups_are_refused() {
        assert_eq!(Members::range(1, 0), Err(MembersError::Empty));
        assert_eq!(Members::listed(vec![]), Err(MembersError::Empty));
        assert_eq!(Members::listed(ids(&[2, 5, 2])), Err(MembersError::Duplicate(NodeId(2))));
        let members = || Members::range(1, 3).unwrap();
        assert_eq!(members().with_attrs([(NodeId(4), 1)]), Err(MembersError::Unknown(NodeId(4))));
        assert_eq!(members().with_ring(ids(&[1, 2])), Err(MembersError::NotInRing(NodeId(3))));
        assert_eq!(members().with_ring(ids(&[1, 2, 2])), Err(MembersError::Duplicate(NodeId(2))));
    }

    #[test]
    fn an_emptied_set_equals_a_new_one() {
        let mut set = PeerSet::new();
        assert!(set.insert(NodeId(3)) && set.insert(NodeId(1)) && !set.insert(NodeId(3)));
        assert_eq!(set.iter().collect::<Vec<_>>(), ids(&[1, 3]));
        assert!(set.remove(NodeId(1)) && set.remove(NodeId(3)) && !set.remove(NodeId(3)));
        assert_eq!(set, PeerSet::new());
        assert_eq!(size_of::<PeerSet>(), size_of::<usize>());
    }
}
