//! Changes of leadership: derived from views for algorithms that do not report them, as lines of the log, and on disk.
//!
//! The quorum reports every change with its reason. The algorithms of the sources only say which leader a member
//! follows; so that their operators have a history as well, it is derived from one view to the next.

pub(super) mod file;

use std::time::Duration;

use doyen_core::change::{ElectionReason, LeaderChange, Loss, Names, StepDownReason};
use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::View;

use super::commander::{self, Commander};
use super::log::LogLine;
use super::wire::Rejection;
use crate::clock::{self, Moment};

/// How many changes of leadership are kept.
pub(super) const KEPT: usize = 256;

/// Compares each view with the one before.
#[derive(Debug)]
pub(super) struct ViewHistory {
    me: NodeId,
    /// The leader and the term of the view before.
    before: (Option<NodeId>, Term),
    /// The last leader that was known.
    last_leader: Option<NodeId>,
}

impl ViewHistory {
    pub(super) fn new(me: NodeId) -> Self {
        Self { me, before: (None, Term::default()), last_leader: None }
    }

    /// What changed with `view`: first how the last leadership ended, then how the next one began.
    pub(super) fn changes(&mut self, view: View) -> impl Iterator<Item = LeaderChange> + use<> {
        let (before, term) = std::mem::replace(&mut self.before, (view.leader, view.term));
        if before == view.leader {
            return [None, None].into_iter().flatten();
        }
        let ended = before.and_then(|leader| match view.leader {
            None if leader == self.me => {
                Some(LeaderChange::SteppedDown { term, reason: StepDownReason::Contested })
            }
            Some(to) if leader == self.me => {
                Some(LeaderChange::SteppedDown { term, reason: StepDownReason::GaveWay { to } })
            }
            None => Some(LeaderChange::ElectionStarted { leader, term }),
            Some(_) => None,
        });
        let begun = view.leader.map(|leader| {
            let after = self.last_leader.replace(leader).filter(|&last| last != leader);
            let (term, reason) = (view.term, ElectionReason::Elected { after, cause: None });
            match leader == self.me {
                true => LeaderChange::BecameLeader { term, reason },
                false => LeaderChange::Follows { leader, term, reason },
            }
        });
        [ended, begun].into_iter().flatten()
    }
}

/// How much later than it happened a change is recorded before the text says so.
const LATE: Duration = Duration::from_millis(100);

/// What the host knows about a change of leadership and the algorithm does not.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Circumstance {
    /// When the lease ended whose end is being handled.
    pub(super) lease_ended: Option<Moment>,
    /// The last command that makes a leader transfer leadership, and that leader.
    pub(super) commanded: Option<(NodeId, Commander)>,
    /// When the leader before the present one was last heard, if there was one.
    pub(super) predecessor_heard: Option<Moment>,
    /// Why datagrams from the leader's address are rejected, if they are.
    pub(super) rejected: Option<Rejection>,
}

impl Circumstance {
    /// A member says who had it move leadership. A command to `me`, in that term or later, is not forgotten for it.
    pub(super) fn hear_of(&mut self, commander: Commander, from: NodeId, me: NodeId) {
        let own = self.commanded.as_ref().filter(|(leader, _)| *leader == me);
        if own.is_none_or(|(_, own)| own.term < commander.term) {
            self.commanded = Some((from, commander));
        }
    }

    /// What it adds to the text of a change.
    pub(super) fn describe(&self, change: LeaderChange, me: NodeId, now: Moment) -> String {
        if let Some((leader, last_term)) = commander::transferred_by(change, me) {
            let known = self.commanded.as_ref();
            let known = known.filter(|(of, it)| *of == leader && it.term <= last_term);
            return known.map_or_else(String::new, |(_, it)| format!("; command from {}", it.by));
        }
        match change {
            LeaderChange::LeaseLapsed { .. }
            | LeaderChange::SteppedDown { reason: StepDownReason::NoMajority, .. } => {
                let late = self.lease_ended.map(|ended| now.since(ended));
                late.filter(|&late| late >= LATE).map_or_else(String::new, |late| {
                    let late = clock::with_unit(late);
                    format!("; it ended {late} ago, and this process did not run meanwhile")
                })
            }
            LeaderChange::LostContact { .. } => {
                let rejected = self.rejected.map(Rejection::name);
                rejected.map_or_else(String::new, |reason| {
                    format!("; its datagrams arrive and are rejected: {reason}")
                })
            }
            _ => String::new(),
        }
    }
}

/// What a downtime adds to the text of a change. Where there was nearly none, its digits are not to look like many.
pub(super) fn downtime(micros: u64) -> String {
    let text = match micros {
        0..1000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => clock::with_unit(Duration::from_micros(micros)),
    };
    format!("; downtime {text}")
}

/// A change that `me` took part in, with its fields, for the log. The text is left to the caller.
pub(super) fn log_line(change: LeaderChange, me: NodeId, name: Names<'_>) -> LogLine {
    let (event, leader, term, reason) = match change {
        LeaderChange::BecameLeader { term, reason } => {
            ("became-leader", Some(me), term, Some(reason.describe(name)))
        }
        LeaderChange::SteppedDown { term, reason } => {
            ("stepped-down", None, term, Some(reason.describe(name)))
        }
        LeaderChange::Follows { leader, term, reason } => {
            ("follows", Some(leader), term, Some(reason.describe(name)))
        }
        LeaderChange::LostContact { leader, term } => ("lost-contact", Some(leader), term, None),
        LeaderChange::LeaderLeft { leader, term, reason } => {
            ("leader-left", Some(leader), term, Some(reason.to_string()))
        }
        LeaderChange::LeaseLapsed { term } => ("lease-lapsed", Some(me), term, None),
        LeaderChange::LeaseResumed { leader, term } => ("lease-resumed", Some(leader), term, None),
        LeaderChange::RegainedContact { leader, term } => {
            ("regained-contact", Some(leader), term, None)
        }
        LeaderChange::ElectionStarted { leader, term } => {
            ("election-started", Some(leader), term, None)
        }
    };
    let (leader, term) = (leader.map(name), Some(term.0));
    let is_failure = match change {
        LeaderChange::LostContact { .. } | LeaderChange::LeaseLapsed { .. } => true,
        LeaderChange::LeaderLeft { reason: Loss::Transferred(reason), .. } => reason.is_failure(),
        LeaderChange::LeaderLeft { .. } => true,
        _ => false,
    };
    let line = if is_failure { LogLine::warning } else { LogLine::info };
    LogLine { leader, term, reason, ..line(event, "") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doyen_core::change::TransferReason;
    use doyen_core::protocol::Role;
    use tracing::Level;

    /// The changes that member 2 derives if these are its leaders, one after the other.
    fn changes(leaders: &[Option<u32>]) -> Vec<String> {
        let mut history = ViewHistory::new(NodeId(2));
        let views = (1..)
            .zip(leaders)
            .map(|(term, leader)| View::new(leader.map(NodeId), Term(term), Role::Follower));
        views.flat_map(|view| history.changes(view)).map(|change| change.to_string()).collect()
    }

    #[test]
    fn a_follower_records_the_end_of_the_old_leader_and_the_new_one() {
        assert_eq!(
            changes(&[None, Some(3), Some(3), None, Some(1), Some(3)]),
            [
                "follows 3 (term 2): elected; no previous leader known",
                "election in progress; the last leader was 3 (term 3)",
                "follows 1 (term 5): elected after 3 lost leadership",
                "follows 3 (term 6): elected after 1 lost leadership",
            ]
        );
    }

    #[test]
    fn another_member_does_not_replace_who_commanded_this_leader() {
        let (me, other) = (NodeId(1), NodeId(2));
        let commander = |term, by: &str| Commander { term: Term(term), by: by.to_owned() };
        let own = Some((me, commander(5, "own")));
        let mut known = Circumstance { commanded: own.clone(), ..Circumstance::default() };
        known.hear_of(commander(5, "theirs"), other, me);
        assert_eq!(known.commanded, own);
        known.hear_of(commander(6, "theirs"), other, me);
        known.hear_of(commander(5, "again"), other, me);
        assert_eq!(known.commanded, Some((other, commander(5, "again"))));
    }

    #[test]
    fn circumstances_are_part_of_the_text() {
        let second = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let (me, term) = (NodeId(1), Term(1));
        let lapsed = LeaderChange::LeaseLapsed { term };
        let late = Circumstance { lease_ended: Some(second(10)), ..Circumstance::default() };
        let text = late.describe(lapsed, me, second(15));
        assert_eq!(text, "; it ended 5.0 s ago, and this process did not run meanwhile");
        assert_eq!(late.describe(lapsed, me, second(10)), "");
        let text = late.describe(lapsed, me, second(10 + 8 * 3600));
        assert_eq!(text, "; it ended 8h ago, and this process did not run meanwhile");
        let left = |reason| LeaderChange::SteppedDown {
            term,
            reason: StepDownReason::Transferred { to: None, reason },
        };
        let commander = Commander { term, by: "n".to_owned() };
        let by = Circumstance { commanded: Some((me, commander)), ..Circumstance::default() };
        let told = |change| by.describe(change, me, second(1));
        assert_eq!(told(left(TransferReason::Requested)), "; command from n");
        assert_eq!(told(left(TransferReason::Preferred)), "; command from n");
        assert_eq!(told(left(TransferReason::Outranked)), "");
        assert_eq!(told(left(TransferReason::ShuttingDown)), "");
        let follows = |by, term| LeaderChange::Follows {
            leader: NodeId(2),
            term: Term(term),
            reason: ElectionReason::Transferred { by, reason: TransferReason::Drained },
        };
        assert_eq!(told(follows(me, 2)), "; command from n");
        assert_eq!(told(follows(NodeId(3), 2)), "", "it was another leader that was told");
        assert_eq!(told(follows(me, 1)), "", "it was told later");
        let lost = LeaderChange::LostContact { leader: NodeId(3), term };
        let key = Circumstance { rejected: Some(Rejection::Key), ..Circumstance::default() };
        let text = key.describe(lost, me, second(1));
        assert_eq!(text, "; its datagrams arrive and are rejected: key");
        assert_eq!(told(lost), "");
    }

    /// During a pause of elections this is the only line at once that says that there is no leader.
    #[test]
    fn a_leader_that_failed_is_a_warning_and_one_that_was_told_to_leave_is_not() {
        use TransferReason::{Crashed, Drained, Failed, Requested, ShuttingDown};

        let level = |reason| {
            let change = LeaderChange::LeaderLeft { leader: NodeId(3), term: Term(1), reason };
            log_line(change, NodeId(1), &|id| id.to_string()).level
        };
        let transferred = |reason| level(Loss::Transferred(reason));
        assert_eq!([Loss::NotRenewed, Loss::NotConfirmed].map(level), [Level::WARN; 2]);
        assert_eq!([Crashed, Failed].map(transferred), [Level::WARN; 2]);
        assert_eq!([Drained, Requested, ShuttingDown].map(transferred), [Level::INFO; 3]);
    }

    #[test]
    fn a_downtime_is_in_the_unit_that_suits_it() {
        for (micros, text) in [
            (790, "0.8 ms"),
            (1_500, "1.5 ms"),
            (180_400, "180 ms"),
            (4_100_000, "4.1 s"),
            (3_600_000_000, "1h"),
        ] {
            assert_eq!(downtime(micros), format!("; downtime {text}"));
        }
    }

    #[test]
    fn a_leader_records_why_it_led_and_why_it_stopped() {
        assert_eq!(
            changes(&[Some(3), None, Some(2), Some(3), Some(2), None]),
            [
                "follows 3 (term 1): elected; no previous leader known",
                "election in progress; the last leader was 3 (term 1)",
                "became leader (term 3): elected after 3 lost leadership",
                "stepped down (term 3): 3 is the new leader",
                "follows 3 (term 4): elected after 2 lost leadership",
                "became leader (term 5): elected after 3 lost leadership",
                "stepped down (term 5): an election is in progress",
            ]
        );
    }
}
