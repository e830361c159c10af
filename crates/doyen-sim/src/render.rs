//! How a run is shown to people: as text in columns, as a space-time diagram, as a Mermaid sequence.
//!
//! Every view is made from two things: the [`Scene`], which says who takes part, and the [`Record`]s of the run, in
//! order. Nothing else is known to a view, so a run that was watched and a trace that was read back look the same.
//!
//! [`columns`] needs no memory and shows runs of any length while they go on. [`svg`] and [`mermaid`] draw a run as a
//! whole; a picture of more than [`MAX_MEMBERS`] members or [`MAX_MESSAGES`] messages helps nobody and is refused.

mod cast;
pub mod columns;
pub mod mermaid;
pub mod script;
pub mod shiviz;
pub mod svg;
mod words;

use std::fmt;

use doyen_core::members::{Key, Members, NodeId};
use doyen_core::protocol::Class;
use doyen_core::time::Span;

use crate::record::{Observer, Record, What};
use crate::scenario::Case;

pub(crate) use cast::subject;

/// The most members a picture shows.
pub const MAX_MEMBERS: usize = 60;

/// The most messages a picture shows.
pub const MAX_MESSAGES: usize = 3_000;

/// Who takes part in a run, and what else a view must know that no record says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scene {
    /// What a picture is headed with.
    pub title: String,
    /// Who takes part.
    pub members: Members,
    /// Whether to show the members in the order of the ring, which turns a message on its way round into a staircase;
    /// else they stand by id.
    pub clockwise: bool,
    /// Who leads at the beginning.
    pub leader: Option<NodeId>,
    /// Whether leaders have leases: then nobody leads before it has one, and epochs are called terms.
    pub leases: bool,
    /// `D`, the bound on a message's delay.
    pub transmission: Span,
}

impl Scene {
    /// The scene of `case`.
    pub fn of(case: &Case) -> Self {
        let members = case.members().clone();
        let count = members.len();
        let noun = if count == 1 { "member" } else { "members" };
        Self {
            title: format!("{}, {}, {count} {noun}", case.algorithm, case.mode()),
            members,
            clockwise: case.algorithm.is_ring(),
            leader: case.leader,
            leases: case.algorithm.has_leases(),
            transmission: case.config.timing.transmission,
        }
    }

    /// What an epoch is called.
    pub(crate) fn epoch(&self) -> &'static str {
        if self.leases { "term" } else { "epoch" }
    }

    /// How many members there are.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// The members in the order in which they are shown.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let first = self.members.at(0);
        let others = self.members.clockwise(first).take(self.len() - 1);
        let ids: Vec<NodeId> = match self.clockwise {
            true => std::iter::once(first).chain(others).collect(),
            false => self.members.iter().collect(),
        };
        ids.into_iter().map(|id| self.members.key(id)).collect()
    }

    /// Where a member is shown. Whoever is not a member, which a trace edited by hand may name, is shown nowhere.
    pub(crate) fn place(&self, id: NodeId) -> Option<usize> {
        let position = self.members.position(id)?;
        Some(match self.clockwise {
            true => self.members.ring_distance(self.members.at(0), id),
            false => position,
        })
    }
}

/// In which unit times are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clock {
    /// Nanoseconds to seconds, whichever suits the bound on a message's delay.
    #[default]
    Seconds,
    /// Multiples of `D`, the bound on a message's delay, as the literature has it.
    Transmissions,
}

/// A unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unit {
    pub(crate) nanos: u64,
    pub(crate) name: &'static str,
}

impl Unit {
    pub(crate) fn new(clock: Clock, transmission: Span) -> Self {
        let (nanos, name) = match (clock, transmission.as_nanos()) {
            (Clock::Transmissions, nanos @ 1..) => (nanos, "D"),
            (_, 1..1_000) => (1, "ns"),
            (_, 1_000..1_000_000) => (1_000, "us"),
            (_, 0 | 1_000_000..1_000_000_000) => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        Self { nanos, name }
    }

    /// The time as a number of this unit, to three places: `2.500`.
    pub(crate) fn fixed(self, nanos: u64) -> String {
        let thousandths =
            (u128::from(nanos) * 1_000 + u128::from(self.nanos / 2)) / u128::from(self.nanos);
        format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
    }

    /// The same without needless zeros and with the unit: `2.5 ms`.
    pub(crate) fn short(self, nanos: u64) -> String {
        format!("{} {}", trimmed(&self.fixed(nanos)), self.name)
    }
}

/// `2.500` as `2.5`, `2.000` as `2`.
pub(crate) fn trimmed(number: &str) -> &str {
    number.trim_end_matches('0').trim_end_matches('.')
}

/// A run is too large for a picture. Nothing was drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TooLarge {
    /// So many members.
    Members(usize),
    /// More messages than [`MAX_MESSAGES`], or ten times as many events.
    Messages,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Members(count) => write!(
                f,
                "{count} members do not fit into a picture; it shows at most {MAX_MEMBERS}"
            ),
            Self::Messages => write!(
                f,
                "the run does not fit into a picture, which shows at most {MAX_MESSAGES} messages; end it earlier, \
                 or write a trace instead"
            ),
        }
    }
}

impl std::error::Error for TooLarge {}

/// Keeps the records of a run for a picture, and stops when there are too many for one: watching a run that is too
/// large costs no more memory than the largest picture.
#[derive(Clone, Debug, Default)]
pub struct Film {
    records: Vec<Record>,
    filter: Filter,
    messages: usize,
}

impl Film {
    /// An empty one. `upkeep`: heartbeats, acknowledgements and their timers are wanted too.
    pub fn new(upkeep: bool) -> Self {
        Self { filter: Filter::new(upkeep), ..Self::default() }
    }

    /// The records, unless there were too many.
    pub fn records(&self) -> Result<&[Record], TooLarge> {
        if self.is_full() { Err(TooLarge::Messages) } else { Ok(&self.records) }
    }

    fn is_full(&self) -> bool {
        self.messages > MAX_MESSAGES || self.records.len() > 10 * MAX_MESSAGES
    }
}

impl Observer for Film {
    fn observe(&mut self, record: &Record) {
        if !self.is_full() && self.filter.passes(&record.what) {
            self.messages += usize::from(matches!(record.what, What::Sent { .. }));
            self.records.push(record.clone());
        }
    }
}

/// Tells what is worth showing from upkeep: heartbeats, acknowledgements and their timers. A receipt does not say on
/// whose account the message went, so the filter remembers it of each kind that was sent: there are a handful.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    upkeep: bool,
    kept_back: Vec<String>,
}

impl Filter {
    pub(crate) fn new(upkeep: bool) -> Self {
        Self { upkeep, kept_back: Vec::new() }
    }

    /// Whether `what` is shown. Arming a timer never is: that it fires says enough.
    pub(crate) fn passes(&mut self, what: &What) -> bool {
        match what {
            What::Armed { .. } => false,
            _ if self.upkeep => true,
            What::Fired { upkeep, .. } => !upkeep,
            What::Sent { class, kind, .. } => {
                // A link's acknowledgements are upkeep; what it retransmits is a message of the election.
                let shown = match class {
                    Class::Election => true,
                    Class::Link => !kind.ends_with("ACK"),
                    Class::Detector => false,
                };
                if !shown && !self.kept_back.contains(kind) {
                    self.kept_back.push(kind.clone());
                }
                shown
            }
            What::Received { kind, .. } | What::Missed { kind, .. } => {
                !self.kept_back.contains(kind)
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    fn ids(ids: &[u32]) -> Vec<NodeId> {
        ids.iter().copied().map(NodeId).collect()
    }

    #[test]
    fn the_unit_suits_the_delay() {
        let unit = |nanos| Unit::new(Clock::Seconds, Span::from_nanos(nanos));
        assert_eq!(unit(50_000).short(2_500), "2.5 us");
        assert_eq!(unit(1_000_000).fixed(1_234_567), "1.235");
        assert_eq!(unit(2_000_000_000).short(10_000_000_000), "10 s");
        assert_eq!(Unit::new(Clock::Transmissions, Span::from_millis(2)).short(7_000_000), "3.5 D");
        assert_eq!(Unit::new(Clock::Transmissions, Span::ZERO).name, "ms");
    }

    #[test]
    fn a_ring_is_shown_clockwise() {
        let members = Members::listed(ids(&[3, 17, 24, 33])).unwrap();
        let members = members.with_ring(ids(&[17, 24, 3, 33])).unwrap();
        let mut scene = Scene {
            title: String::new(),
            members,
            clockwise: true,
            leader: None,
            leases: false,
            transmission: Span::ZERO,
        };
        let shown = |scene: &Scene| scene.keys().iter().map(|key| key.id.0).collect::<Vec<_>>();
        assert_eq!(shown(&scene), [3, 33, 17, 24]);
        assert_eq!(scene.place(NodeId(17)), Some(2));
        assert_eq!(scene.place(NodeId(4)), None);
        scene.clockwise = false;
        assert_eq!(shown(&scene), [3, 17, 24, 33]);
    }

    #[test]
    fn a_film_of_too_many_messages_keeps_no_more_than_a_picture_needs() {
        let mut film = Film::new(false);
        let what = What::Sent {
            id: 1,
            from: NodeId(1),
            to: NodeId(2),
            kind: "OK".into(),
            text: "OK".into(),
            class: Class::Election,
            arrives: None,
            again: None,
        };
        let record = Record { at: Time::ZERO, what };
        for _ in 0..MAX_MESSAGES {
            film.observe(&record);
        }
        assert_eq!(film.records().map(<[Record]>::len), Ok(MAX_MESSAGES));
        for _ in 0..10 {
            film.observe(&record);
        }
        assert_eq!(film.records(), Err(TooLarge::Messages));
        assert_eq!(film.records.len(), MAX_MESSAGES + 1);
    }
}
