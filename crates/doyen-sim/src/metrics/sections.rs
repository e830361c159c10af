//! The metrics of mutual exclusion: entries, waiting times, and violations.

use std::collections::BTreeMap;

use doyen_core::ledger::{Contradiction, sections};
use doyen_core::members::NodeId;
use doyen_core::protocol::{AskedAfter, Fence, Section};
use doyen_core::time::Span;
use serde::Serialize;

use crate::time::Time;

/// The results of a run in which members entered a critical section.
#[derive(Clone, PartialEq, Debug)]
pub struct Exclusion {
    /// Every entry, in order.
    pub entries: Vec<Entry>,
    /// The messages that were sent while a member left, for each exit.
    pub at_exit: Vec<u64>,
    /// From each exit to the next entry, where that member was waiting already.
    pub sync_delays: Vec<Span>,
    /// The members that wait at the end.
    pub waiting: Vec<NodeId>,
    /// How long more than one member was inside.
    pub overlap: Span,
    /// What broke the rules.
    pub broken: Vec<Contradiction>,
    /// The results of fences and of grants that end; none if entries have no fences.
    pub fencing: Option<Fencing>,
    /// Whether requests entered in the order in which they happened, where members tell each other something.
    pub in_order: Option<bool>,
}

/// The results of fences and of grants that end by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Fencing {
    /// How many writes of earlier holders the resource refused.
    pub refused_writes: u32,
    /// How many stays ended because the grant was over, before the program left.
    pub lost_grants: u32,
}

/// An entry into the critical section.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Entry {
    /// The member.
    pub member: NodeId,
    /// When it asked.
    pub asked: Time,
    /// When it entered.
    pub entered: Time,
    /// When it left; empty if it was inside at the end, or crashed there.
    pub exited: Option<Time>,
    /// Its fence, if the algorithm has fences.
    pub fence: Option<Fence>,
    /// How often another member entered between its request and its entry: the most of any one member.
    pub bypassed: u32,
    /// Whether no other member waited or was inside when it asked.
    #[serde(skip)]
    pub found_it_idle: bool,
    /// The messages that had been sent when it entered.
    #[serde(skip)]
    pub messages: u64,
}

impl Entry {
    /// How long it waited.
    pub fn wait(&self) -> Span {
        self.entered - self.asked
    }
}

/// The smallest, the middle and the largest of some times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Spread {
    /// The smallest.
    pub min: Span,
    /// The middle one; the mean of the two in the middle, if there are two.
    pub median: Span,
    /// The largest.
    pub max: Span,
}

impl Spread {
    /// The spread of `times`; none if there are none.
    pub fn of(times: impl IntoIterator<Item = Span>) -> Option<Self> {
        let mut times: Vec<Span> = times.into_iter().collect();
        times.sort_unstable();
        let (&min, &max) = (times.first()?, times.last()?);
        let [low, high] = [times[(times.len() - 1) / 2], times[times.len() / 2]];
        let median = Span::from_nanos(low.as_nanos().midpoint(high.as_nanos()));
        Some(Self { min, median, max })
    }
}

impl Exclusion {
    /// How long members waited.
    pub fn wait(&self) -> Option<Spread> {
        Spread::of(self.entries.iter().map(Entry::wait))
    }

    /// The longest wait of a member that found no other one waiting or inside.
    pub fn client_delay(&self) -> Option<Span> {
        self.entries.iter().filter(|entry| entry.found_it_idle).map(Entry::wait).max()
    }

    /// From an exit to the next entry, where that member was waiting already.
    pub fn sync_delay(&self) -> Option<Spread> {
        Spread::of(self.sync_delays.iter().copied())
    }

    /// When the last member left.
    pub fn last_exit(&self) -> Option<Time> {
        self.entries.iter().filter_map(|entry| entry.exited).max()
    }
}

/// Records the metrics while a run happens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    ledger: sections::Sections,
    /// The requests of the members that wait.
    requests: BTreeMap<NodeId, Request>,
    /// The members that are inside, each with the number of its entry.
    inside: BTreeMap<NodeId, usize>,
    entries: Vec<Entry>,
    at_exit: Vec<u64>,
    sync_delays: Vec<Span>,
    /// The last exit, if no member has entered since.
    free_since: Option<Time>,
    overlap: Span,
    overlap_since: Option<Time>,
    broken: Vec<Contradiction>,
    fencing: Option<Fencing>,
    /// The requests that precede those of the waiting members, where that is known.
    asked_after: BTreeMap<NodeId, AskedAfter>,
    in_order: Option<bool>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    asked: Time,
    found_it_idle: bool,
    /// How many entries there had been.
    entries: usize,
}

/// How many violations are kept: the first ones are enough.
const MOST_BROKEN: usize = 8;

impl Recorder {
    /// A member announces where it is, and its request comes after these, if that is known.
    pub(crate) fn follow_order(
        &mut self,
        member: NodeId,
        section: Section,
        asked_after: Option<&AskedAfter>,
    ) {
        match (section, asked_after) {
            (Section::Waiting, Some(asked)) => {
                self.asked_after.insert(member, asked.clone());
            }
            (Section::Inside(_), Some(asked)) if !self.inside.contains_key(&member) => {
                self.asked_after.remove(&member);
                let waiting = self.asked_after.iter().map(|(&id, other)| (id, other.number));
                let broken = sections::out_of_order(member, &asked.after, waiting);
                self.in_order = Some(self.in_order != Some(false) && broken.is_none());
                let room = usize::from(self.broken.len() < MOST_BROKEN);
                self.broken.extend(broken.into_iter().take(room));
            }
            _ => {
                self.asked_after.remove(&member);
            }
        }
    }

    /// A member announces where it is.
    pub(crate) fn announce(&mut self, at: Time, member: NodeId, section: Section, messages: u64) {
        let before = self.ledger.section_of(member);
        let found = self.ledger.announce(member, section);
        let room = MOST_BROKEN - self.broken.len();
        self.broken.extend(found.into_iter().take(room));
        match (before, section) {
            (_, Section::Waiting) if before != section => {
                let found_it_idle = self.requests.is_empty() && self.inside.is_empty();
                let entries = self.entries.len();
                self.requests.insert(member, Request { asked: at, found_it_idle, entries });
            }
            (_, Section::Inside(_)) if before != section => {
                self.enter(at, member, section, messages);
            }
            (_, Section::Outside) => {
                self.requests.remove(&member);
                self.exit(at, member);
            }
            _ => {}
        }
    }

    /// The process of a member is gone.
    pub(crate) fn crash(&mut self, at: Time, member: NodeId) {
        self.ledger.crash(member);
        self.requests.remove(&member);
        self.asked_after.remove(&member);
        self.inside.remove(&member);
        self.count_overlap(at);
    }

    /// A client has written to the resource, which has accepted or refused that.
    pub(crate) fn write(&mut self, is_accepted: bool) {
        self.fencing.get_or_insert_default().refused_writes += u32::from(!is_accepted);
    }

    /// A stay has ended because the grant was over.
    pub(crate) fn lose_grant(&mut self) {
        self.fencing.get_or_insert_default().lost_grants += 1;
    }

    /// This many messages were sent while a member left.
    pub(crate) fn sent_at_exit(&mut self, messages: u64) {
        self.at_exit.push(messages);
    }

    fn enter(&mut self, at: Time, member: NodeId, section: Section, messages: u64) {
        let nothing = Request { asked: at, found_it_idle: false, entries: self.entries.len() };
        let request = self.requests.remove(&member).unwrap_or(nothing);
        if let Some(exit) = self.free_since.take().filter(|&exit| request.asked <= exit) {
            self.sync_delays.push(at - exit);
        }
        let mut overtook: BTreeMap<NodeId, u32> = BTreeMap::new();
        for entry in self.entries[request.entries..].iter().filter(|it| it.member != member) {
            *overtook.entry(entry.member).or_default() += 1;
        }
        self.inside.insert(member, self.entries.len());
        self.entries.push(Entry {
            member,
            asked: request.asked,
            entered: at,
            exited: None,
            fence: section.fence(),
            bypassed: overtook.into_values().max().unwrap_or_default(),
            found_it_idle: request.found_it_idle,
            messages,
        });
        self.count_overlap(at);
    }

    fn exit(&mut self, at: Time, member: NodeId) {
        let Some(entry) = self.inside.remove(&member) else { return };
        self.entries[entry].exited = Some(at);
        self.free_since = Some(at);
        self.count_overlap(at);
    }

    /// The number of members inside may have changed.
    fn count_overlap(&mut self, at: Time) {
        if let Some(since) = self.overlap_since.take() {
            self.overlap = self.overlap + (at - since);
        }
        self.overlap_since = (self.inside.len() > 1).then_some(at);
    }

    /// The metrics of a run that is over.
    pub(crate) fn close(mut self, end: Time) -> Exclusion {
        self.count_overlap(end);
        Exclusion {
            entries: self.entries,
            at_exit: self.at_exit,
            sync_delays: self.sync_delays,
            waiting: self.requests.into_keys().collect(),
            overlap: self.overlap,
            broken: self.broken,
            fencing: self.fencing,
            in_order: self.in_order,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId(1);
    const TWO: NodeId = NodeId(2);

    #[test]
    fn waits_delays_and_overtaking_are_measured() {
        let mut recorder = Recorder::default();
        let mut tell = |at, member, section| recorder.announce(Time(at), member, section, 0);
        tell(0, ONE, Section::Waiting);
        tell(2, ONE, Section::INSIDE);
        tell(3, TWO, Section::Waiting);
        tell(5, ONE, Section::Outside);
        tell(5, ONE, Section::Waiting);
        tell(6, ONE, Section::INSIDE);
        tell(7, ONE, Section::Outside);
        tell(9, TWO, Section::INSIDE);
        let outcome = recorder.close(Time(12));
        let bypassed: Vec<u32> = outcome.entries.iter().map(|entry| entry.bypassed).collect();
        assert_eq!(bypassed, [0, 0, 1]);
        assert_eq!(outcome.client_delay(), Some(Span::from_nanos(2)));
        let spread = |min, median, max| {
            let [min, median, max] = [min, median, max].map(Span::from_nanos);
            Some(Spread { min, median, max })
        };
        assert_eq!(outcome.wait(), spread(1, 2, 6));
        assert_eq!(outcome.sync_delay(), spread(1, 1, 2));
        assert_eq!((outcome.overlap, outcome.last_exit()), (Span::ZERO, Some(Time(7))));
        assert!(outcome.broken.is_empty() && outcome.waiting.is_empty());
    }

    #[test]
    fn two_members_inside_are_an_overlap_and_a_contradiction() {
        let mut recorder = Recorder::default();
        let mut tell = |at, member, section| recorder.announce(Time(at), member, section, 0);
        for (at, member) in [(0, ONE), (4, TWO)] {
            tell(at, member, Section::Waiting);
            tell(at, member, Section::INSIDE);
        }
        recorder.crash(Time(7), ONE);
        let outcome = recorder.close(Time(12));
        assert_eq!((outcome.overlap, outcome.broken.len()), (Span::from_nanos(3), 1));
    }
}
