//! The metrics of a run: every message, every stage, every moment without a leader.

pub mod sections;
mod views;

use std::fmt;

use doyen_core::members::NodeId;
use doyen_core::protocol::{Class, Kind, View};
use doyen_core::time::Span;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

use crate::cut::Cut;
use crate::delivered::Delivered;
use crate::time::Time;

pub use views::Views;

/// What a run came to: the one form for `--json`, the rows of sweeps and summaries. Times are virtual nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// The member that all live members follow, if it is the same; `agreed` says whether it is alive.
    pub leader: Option<NodeId>,
    /// Whether all live members follow the same live member.
    pub agreed: bool,
    /// What was sent.
    #[serde(flatten)]
    pub messages: Messages,
    /// The longest chain of election messages, each sent because of the one before.
    pub stages: u32,
    /// From the first election to the last receipt of an election message.
    pub turnaround: Span,
    /// From the first election to the moment when the last member knew its leader; none if they do not agree at the end.
    pub informed: Option<Span>,
    /// How many members sent an election message.
    pub involved: u32,
    /// How many elections were called.
    pub elections: u64,
    /// How often a member became leader that was not the leader before.
    pub leader_changes: u32,
    /// How long no live member led.
    pub downtime: Span,
    /// How long more than one live member led.
    pub overlap: Span,
    /// Why the run ended.
    pub ended: Ended,
    /// When it ended.
    pub end: Time,
    /// How many events were handled.
    pub events: u64,
    /// What the members have recorded, if a snapshot was started.
    #[serde(flatten)]
    pub snapshot: Option<Cut>,
    /// What the members have delivered, if the algorithm is a multicast.
    #[serde(flatten)]
    pub multicast: Option<Delivered>,
    /// How many old processes of members run at the end, beside the present ones.
    pub old_processes: u32,
    /// The results of the critical section, if there is one.
    #[serde(skip)]
    pub exclusion: Option<sections::Exclusion>,
    /// The messages that the scenario changes, but that no member sent.
    #[serde(skip)]
    pub never_sent: Vec<String>,
    /// A fingerprint of what happened, in order: every message that a member received, missed or forwarded, with its
    /// kind, sender and time; every timer that fired; every crash and restart; and every change of a view.
    #[serde(serialize_with = "as_hex")]
    pub digest: u64,
    /// Election messages sent and received by each member, by position.
    #[serde(skip)]
    pub by_member: Vec<MemberCount>,
    /// What each member believes at the end, by position; `None` if it is dead.
    #[serde(skip)]
    pub views: Views,
}

fn as_hex<S: Serializer>(digest: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{digest:016x}"))
}

/// What was sent in a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Messages {
    /// Election messages, those to dead members included.
    #[serde(rename = "messages")]
    pub total: u64,
    /// The same by kind.
    #[serde(serialize_with = "as_map")]
    pub by_kind: Vec<(&'static str, u64)>,
    /// Election messages that found their receiver dead.
    pub to_dead: u64,
    /// Election messages that the network lost.
    pub lost: u64,
    /// Acknowledgements and retransmissions.
    #[serde(rename = "link_messages")]
    pub link: u64,
    /// Heartbeats.
    #[serde(rename = "detector_messages")]
    pub detector: u64,
    /// The bytes of all of them.
    pub bytes: u64,
}

fn as_map<S: Serializer>(kinds: &[(&str, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(kinds.iter().copied())
}

/// The election messages of one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemberCount {
    /// Sent by it.
    pub sent: u32,
    /// Received by it.
    pub received: u32,
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Ended {
    /// Nothing was left to do.
    #[serde(rename = "quiet")]
    Quiet,
    /// The time was up.
    #[serde(rename = "time limit")]
    TimeLimit,
    /// Too many messages were sent.
    #[serde(rename = "message limit")]
    MessageLimit,
    /// Too much happened.
    #[serde(rename = "event limit")]
    EventLimit,
    /// Its watcher stopped it.
    #[serde(rename = "interrupt")]
    Interrupt,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// What the fingerprint is made from, besides the time and the member.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sight {
    /// A message of this kind was handled.
    Received(usize),
    /// A message of this kind found its receiver dead.
    Missed(usize),
    /// A message of this kind was passed on by a dead member.
    Forwarded(usize),
    /// The timer with this hash fired.
    Fired(u64),
    /// The member's view has this hash now.
    View(u64),
    /// A member crashed.
    Crashed,
    /// A member came up again.
    Restarted,
}

impl Sight {
    #[inline]
    fn word(self) -> u64 {
        let (what, which) = match self {
            Self::Received(kind) => (0, kind as u64),
            Self::Missed(kind) => (1, kind as u64),
            Self::Forwarded(kind) => (2, kind as u64),
            Self::Fired(timer) => (3, timer),
            Self::View(view) => (4, view),
            Self::Crashed => (5, 0),
            Self::Restarted => (6, 0),
        };
        (which << 3) | what
    }
}

/// Records the metrics of a run while it happens.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    pub(crate) kinds: Cow<'static, [Kind]>,
    by_kind: Vec<u64>,
    pub(crate) to_dead: u64,
    pub(crate) lost: u64,
    bytes: u64,
    pub(crate) stages: u32,
    pub(crate) elections: u64,
    pub(crate) events: u64,
    pub(crate) digest: u64,
    first_election: Option<Time>,
    last_receipt: Time,
    last_settled: Time,
    leaders: u32,
    last_leader: Option<u32>,
    leader_changes: u32,
    leaders_since: Time,
    downtime: Span,
    overlap: Span,
}

impl Recorder {
    pub(crate) fn new(kinds: Cow<'static, [Kind]>) -> Self {
        Self {
            by_kind: vec![0; kinds.len()],
            kinds,
            to_dead: 0,
            lost: 0,
            bytes: 0,
            stages: 0,
            elections: 0,
            events: 0,
            digest: 0,
            first_election: None,
            last_receipt: Time::ZERO,
            last_settled: Time::ZERO,
            leaders: 0,
            last_leader: None,
            leader_changes: 0,
            leaders_since: Time::ZERO,
            downtime: Span::ZERO,
            overlap: Span::ZERO,
        }
    }

    /// An event was handled: counts it and folds it into the fingerprint.
    #[inline]
    pub(crate) fn witness(&mut self, at: Time, from: u32, who: u32, sight: Sight) {
        self.events += 1;
        self.fold(at, from, who, sight);
    }

    /// Folds what was seen into the fingerprint. `from` is zero if no other member took part in it.
    #[inline]
    pub(crate) fn fold(&mut self, at: Time, from: u32, who: u32, sight: Sight) {
        let when = (at.0.rotate_left(24) ^ sight.word()).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let who = ((u64::from(from) << 32) | u64::from(who)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        let word = when ^ who.rotate_left(32);
        self.digest = (self.digest.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// A message of `kind` was sent.
    #[inline]
    pub(crate) fn sent(&mut self, kind: usize, bytes: usize) {
        self.by_kind[kind] += 1;
        self.bytes += bytes as u64;
    }

    /// An election message was received.
    #[inline]
    pub(crate) fn received(&mut self, at: Time, depth: u32) {
        self.last_receipt = at;
        self.stages = self.stages.max(depth);
    }

    pub(crate) fn election(&mut self, at: Time, count: u32) {
        self.elections += u64::from(count);
        self.first_election.get_or_insert(at);
    }

    pub(crate) fn settled(&mut self, at: Time) {
        self.last_settled = at;
    }

    /// This member leads from the beginning: that it does is no change.
    pub(crate) fn founded_by(&mut self, member: u32) {
        self.last_leader = Some(member);
    }

    /// A member began to lead.
    pub(crate) fn reign_begins(&mut self, at: Time, member: u32) {
        if self.last_leader != Some(member) {
            self.leader_changes += 1;
        }
        self.last_leader = Some(member);
        self.count_leaders(at, self.leaders + 1);
    }

    /// A member no longer leads.
    pub(crate) fn reign_ends(&mut self, at: Time) {
        self.count_leaders(at, self.leaders - 1);
    }

    fn count_leaders(&mut self, at: Time, leaders: u32) {
        let span = at - self.leaders_since;
        match self.leaders {
            0 => self.downtime = self.downtime + span,
            1 => {}
            _ => self.overlap = self.overlap + span,
        }
        self.leaders = leaders;
        self.leaders_since = at;
    }

    /// How many election messages have been sent.
    pub(crate) fn total(&self) -> u64 {
        self.class_total(Class::Algorithm)
    }

    /// How many markers have been sent.
    pub(crate) fn markers(&self) -> u64 {
        self.class_total(Class::Marker)
    }

    fn class_total(&self, class: Class) -> u64 {
        let of_class = |(kind, _): &(&Kind, &u64)| kind.class == class;
        self.kinds.iter().zip(&self.by_kind).filter(of_class).map(|(_, count)| count).sum()
    }

    /// The outcome of a run that is over.
    pub(crate) fn close(
        mut self,
        end: Time,
        ended: Ended,
        by_member: Vec<MemberCount>,
        views: Views,
    ) -> Outcome {
        self.count_leaders(end, self.leaders);
        let start = self.first_election.unwrap_or_default();
        let leader = common_leader(&views);
        let agreed = leader.is_some_and(|(_, alive)| alive);
        let of_election = |(kind, _): &(&Kind, &u64)| kind.class == Class::Algorithm;
        Outcome {
            leader: leader.map(|(leader, _)| leader),
            agreed,
            messages: Messages {
                total: self.total(),
                by_kind: (self.kinds.iter().zip(&self.by_kind).filter(of_election))
                    .map(|(kind, &count)| (kind.name, count))
                    .filter(|&(_, count)| count > 0)
                    .collect(),
                to_dead: self.to_dead,
                lost: self.lost,
                link: self.class_total(Class::Link),
                detector: self.class_total(Class::Detector),
                bytes: self.bytes,
            },
            stages: self.stages,
            turnaround: self.last_receipt - start,
            informed: agreed.then(|| self.last_settled - start),
            involved: by_member.iter().filter(|count| count.sent > 0).count() as u32,
            elections: self.elections,
            leader_changes: self.leader_changes,
            downtime: self.downtime,
            overlap: self.overlap,
            ended,
            end,
            events: self.events,
            digest: self.digest,
            by_member,
            views,
            snapshot: None,
            multicast: None,
            old_processes: 0,
            never_sent: Vec::new(),
            exclusion: None,
        }
    }
}

/// The member that all live members follow, and whether it says itself that it leads.
fn common_leader(views: &Views) -> Option<(NodeId, bool)> {
    let mut leaders = views.distinct().map(|view| view.leader);
    let first = leaders.next()??;
    let all = leaders.all(|leader| leader == Some(first));
    all.then(|| {
        use doyen_core::protocol::Role;
        let leading = |view: &View| view.leader == Some(first) && view.role == Role::Leader;
        (first, views.distinct().any(leading))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_tells_times_senders_receivers_and_sights_apart() {
        let digest = |at, from, who, sight| {
            let mut recorder = Recorder::new(Cow::Borrowed(&[]));
            recorder.witness(Time(at), from, who, sight);
            recorder.digest
        };
        let one = digest(5, 1, 2, Sight::Received(0));
        for other in [
            digest(6, 1, 2, Sight::Received(0)),
            digest(5, 3, 2, Sight::Received(0)),
            digest(5, 2, 1, Sight::Received(0)),
            digest(5, 1, 2, Sight::Received(1)),
            digest(5, 1, 2, Sight::Missed(0)),
            digest(5, 1, 2, Sight::Crashed),
        ] {
            assert_ne!(one, other);
        }
    }
}
