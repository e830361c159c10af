//! The log of which members this node reaches: a line when that has changed.
//!
//! What counts is what the status shows ([`Network::reachable`](super::network::Network::reachable)), at every snapshot. A
//! member is reported as unreachable after a while only, so that neither a quick restart nor a moment of a busy machine
//! is. Of a member that comes and goes some lines are left out, never the last one.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use doyen_core::members::{NodeId, PeerSet};
use doyen_core::registry::Algorithm;

use super::log::LogLine;
use crate::clock::Moment;
use crate::config::Settings;

/// How long a member is unreachable before that is reported.
const LOST: Duration = Duration::from_secs(1);

/// The same for a member that has not been reached since this node started: all of them may be starting.
const NEVER_REACHED: Duration = Duration::from_secs(10);

/// How many lines about one member are logged within [`PERIOD`].
const LINES: usize = 6;
const PERIOD: Duration = Duration::from_secs(60);

/// What was seen of every other member, and reported.
#[derive(Debug, Default)]
pub(super) struct Reachability(BTreeMap<NodeId, Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Since when it is unreachable.
    lost_at: Option<Moment>,
    /// When this node, which was isolated until then, reached another member: the patience with this one begins again.
    joined_at: Option<Moment>,
    was_reached: bool,
    is_reported_lost: bool,
    /// What reports it is that this node reaches no other member.
    is_among_all: bool,
    /// When the process was met that was reported last.
    met_at: Option<Moment>,
    /// When the last lines about it were logged.
    lines: VecDeque<Moment>,
}

/// What is reported of a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Change {
    Restarted,
    /// It is reachable for the first time, after it was reported as never reached.
    Reached,
    Back,
    Lost,
    NeverReached,
}

impl Reachability {
    /// What is to be logged now. `met_at`: when the present process of a member was met.
    pub(super) fn observe(
        &mut self,
        now: Moment,
        settings: &Settings,
        reachable: &PeerSet,
        met_at: impl Fn(NodeId) -> Option<Moment>,
    ) -> Vec<LogLine> {
        let mut changes: BTreeMap<Change, Vec<&str>> = BTreeMap::new();
        let is_alone = reachable.iter().all(|id| id == settings.me);
        for member in settings.members.iter().filter(|member| member.id != settings.me) {
            let seen = self.0.entry(member.id).or_default();
            let restart = seen.restart(now, met_at(member.id));
            let change = seen.change(now, reachable.contains(member.id), is_alone);
            for change in restart.into_iter().chain(change) {
                changes.entry(change).or_default().push(&member.name);
            }
        }
        let consequence = consequence(settings, reachable);
        changes.iter().map(|(change, names)| change.line(names, &consequence)).collect()
    }

    /// Since when this node does not reach a member; none if it reaches it.
    pub(super) fn lost_at(&self, member: NodeId) -> Option<Moment> {
        self.0.get(&member)?.lost_at
    }
}

impl Seen {
    fn restart(&mut self, now: Moment, met_at: Option<Moment>) -> Option<Change> {
        let has_restarted = self.met_at.is_some() && met_at != self.met_at;
        let is_reported = has_restarted && self.may_report(now);
        if is_reported || !has_restarted {
            self.met_at = met_at;
        }
        is_reported.then_some(Change::Restarted)
    }

    /// Whether its reachability has changed.
    fn change(&mut self, now: Moment, is_reachable: bool, is_alone: bool) -> Option<Change> {
        if self.is_among_all && !is_alone && !is_reachable {
            (self.is_among_all, self.is_reported_lost, self.joined_at) = (false, false, Some(now));
        }
        let was_reached = self.was_reached;
        self.was_reached |= is_reachable;
        let change = match (is_reachable, was_reached) {
            (true, true) => Change::Back,
            (true, false) => Change::Reached,
            (false, true) => Change::Lost,
            (false, false) => Change::NeverReached,
        };
        let patience = match change {
            Change::Lost => LOST,
            Change::NeverReached => NEVER_REACHED,
            Change::Restarted | Change::Reached | Change::Back => Duration::ZERO,
        };
        self.lost_at = if is_reachable { None } else { self.lost_at.or(Some(now)) };
        let waits_since = self.lost_at.max(self.joined_at);
        let is_settled = waits_since.is_none_or(|since| now.since(since) >= patience);
        let has_changed = self.is_reported_lost == is_reachable;
        let is_among_all = is_alone && change == Change::NeverReached;
        let is_reported = has_changed && is_settled && (is_among_all || self.may_report(now));
        if is_reported {
            (self.is_reported_lost, self.is_among_all) = (!is_reachable, is_among_all);
        }
        (is_reported && !is_among_all).then_some(change)
    }

    /// Whether a line about it may be logged now. If so, it counts as logged.
    fn may_report(&mut self, now: Moment) -> bool {
        self.lines.retain(|&at| now.since(at) < PERIOD);
        let may = self.lines.len() < LINES;
        if may {
            self.lines.push_back(now);
        }
        may
    }
}

impl Change {
    fn line(self, names: &[&str], consequence: &str) -> LogLine {
        let member = names.join(", ");
        let is_one = names.len() == 1;
        let (are, have) = if is_one { ("is", "has") } else { ("are", "have") };
        let line = match self {
            Self::Restarted => {
                LogLine::info("peer-restarted", format!("{member} {have} restarted"))
            }
            Self::Reached => LogLine::info("peer-up", format!("{member} {are} reachable")),
            Self::Back => LogLine::info("peer-up", format!("{member} {are} reachable again")),
            Self::Lost => {
                LogLine::warning("peer-down", format!("{member} {are} unreachable{consequence}"))
            }
            Self::NeverReached => LogLine::warning(
                "peer-down",
                format!("{member} {have} been unreachable since this node started{consequence}"),
            ),
        };
        LogLine { member: Some(member), ..line }
    }
}

/// What it means for a quorum that only these members are reachable, if it means anything.
fn consequence(settings: &Settings, reachable: &PeerSet) -> String {
    let (all, count) = (settings.members.len(), reachable.iter().count());
    let needed = all / 2 + 1;
    let others: Vec<NodeId> = reachable.iter().filter(|&id| id != settings.me).collect();
    match others[..] {
        _ if settings.algorithm != Algorithm::Quorum => String::new(),
        [] => format!("; this node reaches only itself, and {needed} of {all} members are needed"),
        _ if count < needed => format!(
            "; this node reaches {count} of {all} members, itself included, and {needed} are needed"
        ),
        [other] if count == needed => {
            format!("; losing {} would leave no majority", settings.name_of(other))
        }
        _ if count == needed => "; losing another member would leave no majority".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Configuration;

    fn settings(members: u32) -> Settings {
        let member = |id| {
            format!(
                "[[member]]\nid = {id}\nname = \"n{id}\"\naddress = \"127.0.0.1:{}\"\n",
                7400 + id
            )
        };
        let members: String = (1..=members).map(member).collect();
        let text = format!("cluster = \"x\"\nid = 1\nstate_dir = \"s\"\n{members}");
        Configuration::parse("a test", &text).expect("it is sound").settings
    }

    /// What n1 logs at these times, in milliseconds, if it reaches these members then.
    fn logged(members: u32, times: &[(u64, &[u32])]) -> Vec<String> {
        let (settings, mut reachability) = (settings(members), Reachability::default());
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let lines = times.iter().flat_map(|(millis, reached)| {
            let reachable = [1].iter().chain(*reached).map(|&id| NodeId(id)).collect();
            let met = reachability.observe(at(*millis), &settings, &reachable, |_| Some(at(0)));
            met.into_iter().map(|line| line.text)
        });
        lines.collect()
    }

    #[test]
    fn a_member_is_reported_when_it_is_lost_for_a_while_and_when_it_is_back() {
        let times: [(u64, &[u32]); 6] =
            [(0, &[2, 3]), (100, &[3]), (1000, &[3]), (1100, &[3]), (5000, &[3]), (5200, &[2, 3])];
        let lost = "n2 is unreachable; losing n3 would leave no majority";
        assert_eq!(logged(3, &times), [lost, "n2 is reachable again"]);
        let alone =
            "n2 is unreachable; this node reaches only itself, and 3 of 5 members are needed";
        assert_eq!(logged(5, &[(0, &[2]), (1, &[]), (1001, &[])]), [alone]);
        assert_eq!(logged(3, &[(0, &[2, 3]), (100, &[3]), (1000, &[2, 3])]), [""; 0]);
    }

    #[test]
    fn members_that_start_later_are_no_cause_for_alarm() {
        let never = "n3, n4 have been unreachable since this node started; this node reaches 2 of 4 members, itself included, and 3 are needed";
        let times: [(u64, &[u32]); 4] =
            [(0, &[]), (9_000, &[2]), (10_000, &[2]), (11_000, &[2, 3])];
        assert_eq!(logged(4, &times), [never, "n3 is reachable"]);
        assert_eq!(logged(3, &[(0, &[]), (9_000, &[2, 3])]), [""; 0]);
        assert_eq!(
            logged(3, &[(0, &[]), (10_000, &[]), (10_001, &[3]), (20_000, &[3]), (20_001, &[3])]),
            [
                "n3 is reachable",
                "n2 has been unreachable since this node started; losing n3 would leave no majority"
            ],
            "the node was isolated, and has said so"
        );
    }

    #[test]
    fn a_member_that_was_never_reached_is_unreachable_since_the_start() {
        let (settings, mut reachability) = (settings(3), Reachability::default());
        for (second, reached) in [(1, &[1][..]), (12, &[1]), (13, &[1, 2])] {
            let now = Moment::from_nanos(second * 1_000_000_000);
            let reachable = reached.iter().map(|&id| NodeId(id)).collect();
            reachability.observe(now, &settings, &reachable, |_| None);
        }
        assert_eq!(reachability.lost_at(NodeId(3)), Some(Moment::from_nanos(1_000_000_000)));
    }

    #[test]
    fn a_member_that_comes_and_goes_does_not_fill_the_log() {
        let settings = settings(2);
        let mut reachability = Reachability::default();
        let mut lines = Vec::new();
        for second in 0..600 {
            let reached = if second / 2 % 2 == 0 || second > 500 { 2 } else { 1 };
            let now = Moment::from_nanos(second * 1_000_000_000);
            let reachable = [1, reached].map(NodeId).into_iter().collect();
            lines.extend(reachability.observe(now, &settings, &reachable, |_| None));
        }
        assert!((50..=60).contains(&lines.len()), "{}", lines.len());
        assert_eq!(
            lines.last().expect("a line").text,
            "n2 is reachable again",
            "the last one is not left out"
        );
    }

    #[test]
    fn a_new_process_is_a_restart() {
        let (settings, mut reachability) = (settings(2), Reachability::default());
        let mut met = |met_at: Option<u64>| {
            let met_at = met_at.map(Moment::from_nanos);
            let reachable = [1, 2].map(NodeId).into_iter().collect();
            reachability.observe(Moment::default(), &settings, &reachable, |_| met_at)
        };
        assert_eq!(met(None), []);
        assert_eq!(met(Some(1)), []);
        assert_eq!(met(Some(1)), []);
        let lines = met(Some(2));
        assert_eq!(
            (lines[0].event, lines[0].text.as_str()),
            ("peer-restarted", "n2 has restarted")
        );
        assert_eq!(met(Some(2)), []);
    }
}
