//! How a run is shown to people: as text in columns, as a space-time diagram, as a Mermaid sequence.
//!
//! Every view is made from two things: the [`RunInfo`], which lists the members, and the [`TraceEvent`]s of the run, in
//! order. A view knows nothing else, so a run that was watched and a trace that was read back look the same. All views
//! read the events through one `RunModel`, and say what happens in the words of `describe`.
//!
//! [`columns`] needs no memory and shows runs of any length while they happen. [`svg`] and [`mermaid`] draw a run as a
//! whole; a picture of more than [`MAX_MEMBERS`] members or [`MAX_MESSAGES`] messages would be unreadable and is
//! rejected.

pub mod columns;
pub mod describe;
pub mod mermaid;
pub mod model;
pub mod svg;

use std::fmt;

use doyen_core::time::Span;

use self::model::Filter;
use crate::trace::{EventKind, Observer, TraceEvent};

pub use crate::trace::RunInfo;

/// The most members a picture shows.
pub const MAX_MEMBERS: usize = 60;

/// The most messages a picture shows.
pub const MAX_MESSAGES: usize = 3_000;

/// The unit of time that suits the bound on a message's delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unit {
    pub(crate) nanos: u64,
    pub(crate) name: &'static str,
}

impl Unit {
    pub(crate) fn new(transmission: Span) -> Self {
        let (nanos, name) = match transmission.as_nanos() {
            1..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "us"),
            0 | 1_000_000..1_000_000_000 => (1_000_000, "ms"),
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
    /// This many members.
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

/// Keeps the events of a run for a picture, and stops when there are too many for one: a run that is too large costs no
/// more memory than the largest picture.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    events: Vec<TraceEvent>,
    filter: Filter,
    messages: usize,
}

impl Recording {
    /// An empty collection. `background`: it also keeps heartbeats, acknowledgements and their timers.
    pub fn new(background: bool) -> Self {
        Self { filter: Filter::new(background), ..Self::default() }
    }

    /// The events, unless there were too many.
    pub fn events(&self) -> Result<&[TraceEvent], TooLarge> {
        if self.wants_more() { Ok(&self.events) } else { Err(TooLarge::Messages) }
    }
}

impl Observer for Recording {
    fn observe(&mut self, event: &TraceEvent) {
        if self.wants_more() && self.filter.passes(&event.kind) {
            self.messages += usize::from(matches!(event.kind, EventKind::Sent { .. }));
            self.events.push(event.clone());
        }
    }

    fn wants_more(&self) -> bool {
        self.messages <= MAX_MESSAGES && self.events.len() <= 10 * MAX_MESSAGES
    }
}

/// Runs with which several renderers are tested.
#[cfg(test)]
mod examples {
    /// The first figure of Kordafshari.
    pub(super) const FIGURE_1: &str = r#"
        algorithm = "bully"
        members = "0..7"
        dead = [7]
        contact_dead = true
        initiators = [4]
    "#;

    /// A duplicated token lets two members in.
    pub(super) const TWO_INSIDE: &str = r#"
        algorithm = "token-ring"
        members = 4
        requests = [2, 4]
        hold = "10ms"
        twice = ["1:2:TOKEN+1ms"]
    "#;
}

#[cfg(test)]
mod tests {
    use doyen_core::members::{Members, NodeId};
    use doyen_core::registry::Purpose;

    use super::*;
    use crate::time::Time;
    use doyen_core::protocol::Class;

    fn ids(ids: &[u32]) -> Vec<NodeId> {
        ids.iter().copied().map(NodeId).collect()
    }

    #[test]
    fn the_unit_suits_the_delay() {
        let unit = |nanos| Unit::new(Span::from_nanos(nanos));
        assert_eq!(unit(50_000).short(2_500), "2.5 us");
        assert_eq!(unit(1_000_000).fixed(1_234_567), "1.235");
        assert_eq!(unit(2_000_000_000).short(10_000_000_000), "10 s");
        assert_eq!(unit(0).name, "ms");
    }

    #[test]
    fn a_ring_is_shown_clockwise() {
        let members = Members::listed(ids(&[3, 17, 24, 33])).unwrap();
        let members = members.with_ring(ids(&[17, 24, 3, 33])).unwrap();
        let mut info = RunInfo {
            title: String::new(),
            subtitle: None,
            members,
            clockwise: true,
            purpose: Purpose::Elects,
            leader: None,
            leases: false,
            transmission: Span::ZERO,
        };
        let shown = |info: &RunInfo| info.keys().iter().map(|key| key.id.0).collect::<Vec<_>>();
        assert_eq!(shown(&info), [3, 33, 17, 24]);
        assert_eq!(info.place(NodeId(17)), Some(2));
        assert_eq!(info.place(NodeId(4)), None);
        info.clockwise = false;
        assert_eq!(shown(&info), [3, 17, 24, 33]);
    }

    #[test]
    fn a_recording_of_too_many_messages_keeps_no_more_than_a_picture_needs() {
        let mut recording = Recording::new(false);
        let kind = EventKind::Sent {
            id: 1,
            from: NodeId(1),
            to: NodeId(2),
            kind: "OK".into(),
            text: "OK".into(),
            class: Class::Algorithm,
            arrives: None,
            again: None,
            changed: None,
        };
        let event = TraceEvent { at: Time::ZERO, kind };
        for _ in 0..MAX_MESSAGES {
            recording.observe(&event);
        }
        assert_eq!(recording.events().map(<[TraceEvent]>::len), Ok(MAX_MESSAGES));
        for _ in 0..10 {
            recording.observe(&event);
        }
        assert_eq!(recording.events(), Err(TooLarge::Messages));
        assert_eq!(recording.events.len(), MAX_MESSAGES + 1);
    }
}
