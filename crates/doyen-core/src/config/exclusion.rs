//! What the algorithms of mutual exclusion need to know beyond the members: where the token or the coordinator is at the
//! beginning, the voting sets, the tree, the voters.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::Timing;
use crate::members::{Members, NodeId, PeerSet};
use crate::time::{Delay, Span};

/// The additional settings of mutual exclusion.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// The coordinator, or the member where the token begins.
    pub first: Option<NodeId>,
    /// The voting sets of Maekawa's algorithm.
    pub sets: Sets,
    /// The tree of Raymond's algorithm.
    pub tree: Tree,
    /// How many members are voters: the highest ones; all by default.
    pub voters: Option<u32>,
    /// How many votes are needed; a majority of the voters by default.
    pub votes: Option<u32>,
    /// Whether a member asks all voters, not only as many as it needs votes.
    pub ask_all: bool,
    /// How long a member waits after too few votes; by default from half a D to four.
    pub back_off: Option<Delay>,
    /// How long a grant of the lock service lasts; by default as long as three vote leases.
    pub grant: Option<Span>,
    /// How often the client of a lock calls; then it calls again only if it learns of a leader, and keeps no lock for another
    /// lease within a term. For explorations, which would not end otherwise.
    pub calls: Option<u32>,
    /// The rule that a check takes away.
    pub without: Option<Reliance>,
}

impl Settings {
    /// Whether the members keep this rule.
    pub fn keeps(&self, reliance: Reliance) -> bool {
        self.without != Some(reliance)
    }

    /// How many votes are needed.
    pub fn votes(&self, members: &Members) -> usize {
        self.votes.map_or(self.voters(members) / 2 + 1, |votes| votes as usize)
    }

    /// The voters that a member asks, lowest first.
    pub fn asked_voters<'a>(&self, members: &'a Members) -> impl Iterator<Item = NodeId> + 'a {
        let voters = self.voters(members);
        let asked = if self.ask_all { voters } else { self.votes(members).min(voters) };
        members.iter().skip(members.len() - voters).take(asked)
    }

    /// How long a member waits after too few votes.
    pub fn back_off(&self, timing: &Timing) -> Delay {
        let half = Span::from_nanos(timing.transmission.as_nanos() / 2);
        self.back_off.unwrap_or_else(|| Delay::between(half, half * 8))
    }

    fn voters(&self, members: &Members) -> usize {
        self.voters.map_or(members.len(), |voters| members.len().min(voters as usize))
    }
}

/// What an algorithm relies on: the rules of which a check shows that they matter, by taking one of them away. The first six
/// are those of the [recovery of a token](crate::exclusion::token_recovery).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reliance {
    /// P3: an old token is dropped.
    OldTokenIsDropped,
    /// P4, P5: all live members have answered, not only a majority.
    AllAnswer,
    /// P2: a member that holds a token says so.
    HolderAnswers,
    /// P1: no two searches have the same generation.
    GenerationsDiffer,
    /// P6: only ADOPT raises the generation of a token; its holder does not do so by itself.
    OnlyAdoptRaises,
    /// A pinned token stays where it is.
    PinnedStays,
    /// C2: the coordinator queues a request of the holder, which may overtake its release.
    HolderIsQueued,
    /// V3: a voter that has given its vote gives it to no other member.
    OneVote,
    /// L5: only the first in the queue enters.
    FirstEnters,
    /// L5: a member enters only when it has heard from all others.
    AllAreHeard,
    /// A2, A3: a REQUEST raises the clock.
    RequestsRaiseTheClock,
    /// A2: of two requests with the same time, that of the lower member comes first.
    IdsBreakTies,
    /// A2: of two requests, the earlier comes first.
    EarlierGoesFirst,
    /// A2: a member that is inside defers its REPLY.
    InsideDefers,
    /// A4: a member enters only when all others have replied.
    AllReply,
    /// T1: only one member begins with a token.
    OneBegins,
    /// T2: a member that is inside keeps the token.
    InsideKeepsTheToken,
    /// T4: a member that leaves passes the token on.
    LeavingPassesOn,
    /// Any two voting sets have a member in common.
    SetsMeet,
    /// K7: a member that cannot win now gives its votes back.
    LosersYield,
    /// Y3, Y5: a member whose request for the token has been answered asks again.
    AsksAgain,
    /// S3: a REQUEST that is late does not lower the number of the latest one.
    NumbersRise,
    /// D1: a member that records its state sends MARKER to all others.
    MarkersToAll,
    /// D2: the first MARKER that a member receives closes its channel.
    FirstMarkerCloses,
    /// D3: every later MARKER closes its channel.
    MarkerCloses,
    /// D4: a message on an open channel belongs to the state of the channel.
    OpenChannelsRecord,
    /// Q2: a message that has a position gets no second one.
    OrderedOnce,
    /// Q4: a stable sequencer delivers what a majority has, and not before.
    MajorityHasIt,
    /// Q5: a member that has answered a later term accepts nothing of an earlier one.
    AnsweredTermBinds,
    /// Q6: a new sequencer takes the latest log, not its own.
    LatestLogWins,
}

/// How voting sets are constructed: each member is in its own set, and any two sets have a member in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Sets {
    /// Each set is the same pattern, moved along the members: every member is in equally many sets. The pattern is a
    /// difference cover, the smallest one for up to 31 members.
    #[default]
    Cyclic,
    /// The members stand in a square, the last row may be short: row and column.
    Grid,
    /// The lines of a projective plane: any two sets have exactly one member in common. For 7, 13, 21, 31, 57, 73 or 91
    /// members.
    Plane,
    /// A majority of the members, from each on.
    Majority,
}

/// Up to this many members the smallest difference cover is searched for; above that there are too many to try.
const SMALLEST_COVERS: usize = 31;

/// Perfect difference sets: every residue except zero is exactly one difference. The planes of order 2, 3, 4, 5, 7, 8 and 9.
const PLANES: [(usize, &[usize]); 7] = [
    (7, &[0, 1, 3]),
    (13, &[0, 1, 3, 9]),
    (21, &[0, 1, 4, 14, 16]),
    (31, &[0, 1, 3, 8, 12, 18]),
    (57, &[0, 1, 3, 13, 32, 36, 43, 52]),
    (73, &[0, 1, 3, 7, 15, 31, 36, 54, 63]),
    (91, &[0, 1, 3, 9, 27, 49, 56, 61, 77, 81]),
];

impl Sets {
    /// All constructions.
    pub const ALL: [Self; 4] = [Self::Cyclic, Self::Grid, Self::Plane, Self::Majority];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cyclic => "cyclic",
            Self::Grid => "grid",
            Self::Plane => "plane",
            Self::Majority => "majority",
        }
    }

    /// Why there are no such sets for this many members, if there are none.
    pub fn suits(self, members: usize) -> Result<(), String> {
        if self != Self::Plane || plane(members).is_some() {
            return Ok(());
        }
        let known: Vec<String> = PLANES.iter().map(|(count, _)| count.to_string()).collect();
        Err(format!("there is no plane of {members} members; use {} or cyclic", known.join(", ")))
    }

    /// The set of member `id`. Where there is no plane, it is cyclic.
    pub fn of(self, id: NodeId, members: &Members) -> PeerSet {
        let (count, me) = (members.len(), members.position(id).unwrap_or_default());
        let moved = |pattern: &[usize]| -> PeerSet {
            pattern.iter().map(|offset| members.at((me + offset) % count)).collect()
        };
        match self {
            Self::Cyclic => moved(&difference_cover(count)),
            Self::Plane => plane(count).map_or_else(|| moved(&difference_cover(count)), moved),
            Self::Majority => moved(&(0..=count / 2).collect::<Vec<_>>()),
            Self::Grid => {
                let width = count.isqrt() + usize::from(count.isqrt().pow(2) < count);
                let meets = |at: &usize| at / width == me / width || at % width == me % width;
                (0..count).filter(meets).map(|at| members.at(at)).collect()
            }
        }
    }
}

fn plane(members: usize) -> Option<&'static [usize]> {
    PLANES.iter().find(|(count, _)| *count == members).map(|(_, pattern)| *pattern)
}

/// A pattern whose differences are all residues: the smallest one, or one of about √(2·count) members.
fn difference_cover(count: usize) -> Vec<usize> {
    if let Some(pattern) = plane(count) {
        return pattern.to_vec();
    }
    if count <= SMALLEST_COVERS {
        let smallest = (1..=count).find_map(|size| smallest_cover(count, size));
        return smallest.unwrap_or_else(|| (0..count).collect());
    }
    // Every residue up to half of the members is a multiple of the width less a smaller number, or its opposite is.
    let width = (count / 2).isqrt() + 1;
    let multiples = (1..=(count / 2).div_ceil(width)).map(|times| times * width);
    (0..width).chain(multiples).collect()
}

/// The first cover of this size by the order of its members, if there is one.
fn smallest_cover(count: usize, size: usize) -> Option<Vec<usize>> {
    fn extend(count: usize, size: usize, pattern: &mut Vec<usize>, covered: u64) -> bool {
        let is_cover = covered.count_ones() as usize == count;
        let left = size - pattern.len();
        // Each further member adds at most two differences with each of those before it.
        let reachable: usize = (0..left).map(|more| 2 * (pattern.len() + more)).sum();
        if left == 0 || (covered.count_ones() as usize + reachable) < count {
            return is_cover;
        }
        let next = pattern[pattern.len() - 1] + 1;
        (next..count).any(|offset| {
            let differences = pattern.iter().fold(covered, |covered, before| {
                let difference = offset - before;
                covered | 1 << difference | 1 << (count - difference)
            });
            pattern.push(offset);
            let found = extend(count, size, pattern, differences);
            if !found {
                pattern.pop();
            }
            found
        })
    }
    // One of its differences is 1: moved, it contains 0 and 1.
    if count < 3 || size < 2 {
        return (size == count).then(|| (0..count).collect());
    }
    let mut pattern = vec![0, 1];
    let covered = 1 | 1 << 1 | 1 << (count - 1);
    extend(count, size, &mut pattern, covered).then_some(pattern)
}

/// The tree of the members. In a shape, they stand in the order of their ids.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Tree {
    /// The lowest member is the neighbour of all others.
    #[default]
    Star,
    /// Each member is the neighbour of the next one.
    Line,
    /// Each member has two below it; the lowest is the root.
    Binary,
    /// Any tree, by its edges.
    Listed(Arc<[(NodeId, NodeId)]>),
}

/// A tree with more edges is not read: the ways in it are searched for.
const MOST_EDGES: usize = 10_000;

impl Tree {
    /// All shapes.
    pub const SHAPES: [Self; 3] = [Self::Star, Self::Line, Self::Binary];

    /// The name of a shape on the command line; the edges of any other tree: `1-2,1-3`.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Star => "star".into(),
            Self::Line => "line".into(),
            Self::Binary => "binary".into(),
            Self::Listed(edges) => {
                let edges: Vec<String> = edges.iter().map(|(a, b)| format!("{a}-{b}")).collect();
                edges.join(",").into()
            }
        }
    }

    /// Why it is not a tree of these members, if it is none.
    pub fn suits(&self, members: &Members) -> Result<(), String> {
        let Self::Listed(edges) = self else { return Ok(()) };
        if let Some((a, b)) = edges.iter().find(|(a, b)| a == b) {
            return Err(format!("{a}-{b} is an edge from a member to itself"));
        }
        let mut ends = edges.iter().flat_map(|&(a, b)| [a, b]);
        if let Some(stranger) = ends.find(|&id| !members.contains(id)) {
            return Err(format!("{stranger} is not a member"));
        }
        let wanted = members.len() - 1;
        if edges.len() != wanted {
            let found = edges.len();
            return Err(format!(
                "a tree of {} members has {wanted} edges, and not {found}",
                members.len()
            ));
        }
        let reached = self.distances(members.at(0), members);
        match members.iter().find(|id| !reached.contains_key(id)) {
            Some(id) => Err(format!("no way leads from {} to {id}", members.at(0))),
            None => Ok(()),
        }
    }

    /// The neighbour of `from` on the way to `to`, by position; `from` itself, if it is there.
    pub fn next_hop(&self, from: usize, to: usize, members: &Members) -> usize {
        if from == to {
            return from;
        }
        match self {
            Self::Star if from == 0 => to,
            Self::Star => 0,
            Self::Line if from < to => from + 1,
            Self::Line => from - 1,
            Self::Binary => {
                let parent = |position: usize| (position - 1) / 2;
                // Above `to` numbers only fall: the way up from it meets `from`, or passes it.
                let mut below = to;
                while below > 0 && parent(below) > from {
                    below = parent(below);
                }
                if below > 0 && parent(below) == from { below } else { parent(from) }
            }
            Self::Listed(edges) => {
                let distances = self.distances(members.at(to), members);
                let from = members.at(from);
                let ends = edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
                let neighbours = ends.filter(|(end, _)| *end == from).map(|(_, other)| other);
                let next = neighbours.min_by_key(|id| distances.get(id).copied());
                next.and_then(|id| members.position(id)).unwrap_or(to)
            }
        }
    }

    /// How many hops it is from `from` to `to`, by position.
    pub fn distance(&self, from: usize, to: usize, members: &Members) -> usize {
        if let Self::Listed(_) = self {
            let distances = self.distances(members.at(to), members);
            return distances.get(&members.at(from)).copied().unwrap_or_default();
        }
        let hop = |&at: &usize| (at != to).then(|| self.next_hop(at, to, members));
        std::iter::successors(Some(from), hop).count() - 1
    }

    /// How many hops it is to `to` from each member of a listed tree from which a way leads there.
    fn distances(&self, to: NodeId, members: &Members) -> BTreeMap<NodeId, usize> {
        let Self::Listed(edges) = self else { return BTreeMap::new() };
        let mut neighbours: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for &(a, b) in edges.iter() {
            neighbours.entry(a).or_default().push(b);
            neighbours.entry(b).or_default().push(a);
        }
        let mut distances = BTreeMap::from([(to, 0)]);
        let mut reached = VecDeque::from([to]);
        while let Some(at) = reached.pop_front() {
            let hops = distances[&at] + 1;
            for &next in neighbours.get(&at).into_iter().flatten() {
                if members.contains(next) && !distances.contains_key(&next) {
                    distances.insert(next, hops);
                    reached.push_back(next);
                }
            }
        }
        distances
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

impl FromStr for Tree {
    type Err = String;

    /// Reads `star`, `line`, `binary` and edges such as `1-2,1-3`.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(shape) = Self::SHAPES.into_iter().find(|shape| shape.name() == text) {
            return Ok(shape);
        }
        let wrong = || {
            format!("unknown tree `{text}`; use star, line, binary or the edges, such as 1-2,1-3")
        };
        let end = |text: &str| text.trim().parse().map(NodeId).map_err(|_| wrong());
        let edge = |text: &str| {
            let (a, b) = text.split_once('-').ok_or_else(wrong)?;
            Ok((end(a)?, end(b)?))
        };
        let edges: Vec<(NodeId, NodeId)> =
            text.split(',').map(edge).collect::<Result<_, String>>()?;
        match edges.len() <= MOST_EDGES {
            true => Ok(Self::Listed(edges.into())),
            false => Err(format!("{} edges are too many; use at most {MOST_EDGES}", edges.len())),
        }
    }
}

/// Implements reading and writing of a choice by its name.
macro_rules! named {
    ($($choice:ty: $noun:literal;)*) => {$(
        impl fmt::Display for $choice {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $choice {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.into_iter().find(|choice| choice.name() == text).ok_or_else(|| {
                    let names: Vec<&str> = Self::ALL.iter().map(|choice| choice.name()).collect();
                    format!("unknown {} `{text}`; use one of {}", $noun, names.join(", "))
                })
            }
        }
    )*};
}

named! {
    Sets: "voting sets";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(sets: Sets, count: u32) -> Vec<PeerSet> {
        let members = Members::range(1, count).unwrap();
        members.iter().map(|id| sets.of(id, &members)).collect()
    }

    fn common(one: &PeerSet, other: &PeerSet) -> usize {
        one.iter().filter(|&id| other.contains(id)).count()
    }

    /// X6.1 and X6.2.
    #[test]
    fn any_two_sets_have_a_member_in_common_and_each_member_is_in_its_own() {
        for count in 1..=200 {
            for kind in [Sets::Cyclic, Sets::Grid, Sets::Majority] {
                let all = sets(kind, count);
                for (one, id) in all.iter().zip(1..) {
                    assert!(one.contains(NodeId(id)), "{kind} {count}");
                    assert!(all.iter().all(|other| common(one, other) > 0), "{kind} {count}");
                }
                let load = |id| all.iter().filter(|set| set.contains(NodeId(id))).count();
                if kind == Sets::Grid {
                    let width = f64::from(count).sqrt().ceil() as usize;
                    assert!(all.iter().all(|set| set.len() < 2 * width), "{kind} {count}");
                } else {
                    assert!((1..=count).all(|id| load(id) == all[0].len()), "{kind} {count}");
                }
            }
        }
    }

    /// X6.3 and X6.5.
    #[test]
    fn cyclic_sets_are_the_smallest_for_up_to_31_members() {
        let sizes = [
            (3, 3, 2),
            (4, 3, 3),
            (5, 4, 3),
            (7, 5, 3),
            (9, 5, 4),
            (13, 7, 4),
            (16, 7, 5),
            (20, 8, 6),
            (21, 9, 5),
            (25, 9, 6),
            (31, 11, 6),
        ];
        for (count, grid, cyclic) in sizes {
            let largest = sets(Sets::Grid, count).iter().map(PeerSet::len).max();
            assert_eq!(
                (largest, sets(Sets::Cyclic, count)[0].len()),
                (Some(grid), cyclic),
                "{count}"
            );
        }
        let bound = |count: usize| (1..).find(|size| size * (size - 1) + 1 >= count).unwrap();
        let above: Vec<usize> =
            (2..=31).filter(|&count| difference_cover(count).len() > bound(count)).collect();
        assert_eq!(above, [20, 29, 30]);
    }

    /// X6.4.
    #[test]
    fn two_lines_of_a_plane_meet_in_exactly_one_member() {
        for (count, pattern) in PLANES {
            assert_eq!(pattern.len() * (pattern.len() - 1) + 1, count);
            let all = sets(Sets::Plane, count as u32);
            for (place, one) in all.iter().enumerate() {
                assert!(all[..place].iter().all(|other| common(one, other) == 1), "{count}");
            }
            assert_eq!(Sets::Plane.suits(count), Ok(()));
        }
        assert!(Sets::Plane.suits(8).unwrap_err().contains("use 7, 13"));
    }

    #[test]
    fn a_tree_leads_from_everywhere_to_everywhere() {
        for count in 1..40_u32 {
            let members = Members::range(1, count).unwrap();
            // The binary tree once more, by its edges.
            let edges = (2..=count).map(|id| (NodeId(id / 2), NodeId(id)));
            let listed = Tree::Listed(edges.collect());
            assert_eq!(listed.suits(&members), Ok(()));
            let count = count as usize;
            for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
                assert_eq!(Tree::Line.distance(from, to, &members), from.abs_diff(to));
                assert!(Tree::Star.distance(from, to, &members) <= 2);
                let distance = Tree::Binary.distance(from, to, &members);
                assert_eq!(distance, Tree::Binary.distance(to, from, &members));
                assert!(distance <= 2 * count.ilog2() as usize);
                assert_eq!(distance, listed.distance(from, to, &members));
                let hop = |tree: &Tree| tree.next_hop(from, to, &members);
                assert_eq!(hop(&listed), hop(&Tree::Binary));
            }
        }
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let members = Members::range(1, 4).unwrap();
        for (edges, problem) in [
            ("1-2,2-3", "has 3 edges, and not 2"),
            ("1-2,2-3,3-1", "no way leads from 1 to 4"),
            ("1-2,2-3,3-9", "9 is not a member"),
            ("1-2,2-3,4-4", "from a member to itself"),
            ("1-2,2-1,3-4", "no way leads from 1 to 3"),
        ] {
            let refused = edges.parse::<Tree>().unwrap().suits(&members).unwrap_err();
            assert!(refused.contains(problem), "{edges}: {refused}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for kind in Sets::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        let listed: Tree = "1-2, 1-30".parse().unwrap();
        assert_eq!(listed.to_string(), "1-2,1-30");
        for tree in Tree::SHAPES.into_iter().chain([listed]) {
            assert_eq!(tree.to_string().parse(), Ok(tree));
        }
        for wrong in ["ring", "1-2,3", "1-x", ""] {
            assert!(wrong.parse::<Tree>().unwrap_err().contains("use star, line"), "{wrong}");
        }
    }
}
