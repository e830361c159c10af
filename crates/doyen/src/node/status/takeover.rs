//! When a member that ranks above the leader takes over.
//!
//! The rules are those of the core (Q12): the member waits for the delay, longer if others rank above it, and asks the
//! leader, which transfers leadership once its tenure is over. A preferred member waits for neither. Members whose ranks
//! differ by their attributes alone must differ by the margin.

use std::time::Duration;

use doyen_core::config::Config;
use doyen_core::config::quorum::Preemption;
use doyen_core::time::Span;
use serde::{Deserialize, Serialize};

use super::{MemberStatus, Status, seconds};
use crate::clock;

/// By which rules a member that ranks above the leader takes over: the settings in force.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct PreemptionRules {
    /// `preemption.policy`: `never`, `delayed` or `immediate`.
    pub policy: String,
    /// `preemption.delay`, in milliseconds: how long the highest-ranked member waits.
    pub delay_ms: u64,
    /// `preemption.margin`: by how much its attribute must be higher; 0 is any difference.
    pub margin: u64,
    /// `timing.tenure`, in milliseconds: how long a leader leads before that.
    pub tenure_ms: u64,
}

impl PreemptionRules {
    pub(in crate::node) fn of(config: &Config) -> Self {
        let millis = |span: Span| span.as_nanos() / 1_000_000;
        Self {
            policy: config.quorum.preemption.to_string(),
            delay_ms: millis(config.timing.preempt),
            margin: config.quorum.margin,
            tenure_ms: millis(config.quorum.tenure),
        }
    }

    /// When a member takes over that ranks above `leader`, beside `others` that rank above itself. `from` says from when on it
    /// does so.
    fn when(&self, leader: &str, others: u64, from: Option<&str>) -> String {
        let delay = time(self.delay_ms.saturating_mul(others + 1));
        let tenure = time(self.tenure_ms);
        match (self.policy.parse(), from) {
            (Ok(Preemption::Never), None) => {
                format!(", and {leader} stays leader: preemption.policy is never")
            }
            (Ok(Preemption::Never), Some(from)) => {
                format!(", and {leader} stays leader {from}, too: preemption.policy is never")
            }
            (Ok(Preemption::Immediate), None) => ": it takes over at once".to_owned(),
            (Ok(Preemption::Immediate), Some(from)) => format!(": it takes over {from}"),
            (_, None) => format!(
                ": it takes over when it has waited for {delay}, and not before {leader} has led for {tenure}"
            ),
            (_, Some(from)) => format!(
                ": it takes over {from}, at least {delay} later, and not before {leader} has led for {tenure}"
            ),
        }
    }
}

impl Status {
    /// As text: which member takes over from the leader that works, and when. None if no member that could do so ranks above
    /// it, or would without a penalty.
    pub fn takeover(&self) -> Option<String> {
        let rules = self.preemption.as_ref().filter(|_| self.pause.is_none())?;
        let leader = self.member(self.leader?)?;
        // A leader that is not in the succession is drained, and does not wait for this.
        let place = self.succession.iter().position(|&id| id == leader.id)?;
        let could = |it: &&MemberStatus| {
            it.id != leader.id && it.reachable && self.reaches(leader, it) != Some(false)
        };
        let members = self.succession.iter().filter_map(|&id| self.member(id)).filter(could);
        let is_above = |it: &&MemberStatus| self.succession[..place].contains(&it.id);
        let receives = |it: &&MemberStatus| self.misses(it, leader).is_empty();
        let mut above = members.clone().filter(is_above);
        if let Some(first) = above.clone().find(receives) {
            let others = self.succession.iter().position(|&id| id == first.id)?;
            return Some(self.takes_over(rules, first, leader, others as u64));
        }
        if let Some(first) = above.next() {
            return Some(format!(
                "{} ranks higher and cannot take over while it receives nothing from {}",
                first.name,
                self.misses(first, leader).join(" and ")
            ));
        }
        let members = members.filter(receives);
        let is_held_back = |it: &&MemberStatus| {
            it.recent_failures > leader.recent_failures
                && it.penalty_remaining_ms.is_some()
                && self.surpasses(it, leader, rules.margin)
        };
        let best = members.filter(is_held_back).max_by_key(|it| self.merit(it))?;
        let when = match self.is_preferred(best) {
            true => ": it takes over when that is over".to_owned(),
            false => rules.when(&leader.name, 0, Some("when that is over")),
        };
        Some(format!("{} would rank higher without its penalty{when}", best.name))
    }

    fn takes_over(
        &self,
        rules: &PreemptionRules,
        first: &MemberStatus,
        leader: &MemberStatus,
        others: u64,
    ) -> String {
        let (name, margin) = (&first.name, rules.margin);
        if self.is_preferred(first) {
            return format!("{name} is preferred: it takes over at once");
        }
        // Otherwise it has fewer failures, or the leader alone is preferred.
        let by_attribute = first.recent_failures == leader.recent_failures;
        if by_attribute && !self.surpasses(first, leader, margin) {
            return format!(
                "{name} ranks higher by less than preemption.margin ({margin}): {} stays leader",
                leader.name
            );
        }
        format!("{name} ranks higher{}", rules.when(&leader.name, others, None))
    }

    /// The members from which a member must receive to take over, and does not: the leader, and as many as a majority lacks.
    fn misses(&self, member: &MemberStatus, leader: &MemberStatus) -> Vec<&str> {
        let missed =
            |it: &&MemberStatus| it.id != member.id && self.reaches(member, it) == Some(false);
        let missed: Vec<&MemberStatus> = self.members.iter().filter(missed).collect();
        let has_majority = self.members.len() - missed.len() > self.members.len() / 2;
        let matters = |it: &&MemberStatus| !has_majority || it.id == leader.id;
        missed.into_iter().filter(matters).map(|it| &*it.name).collect()
    }

    fn is_preferred(&self, member: &MemberStatus) -> bool {
        self.preference.is_some_and(|preferred| preferred.member == member.id)
    }

    /// What ranks members with the same number of failures.
    fn merit(&self, member: &MemberStatus) -> impl Ord + use<> {
        (self.is_preferred(member), member.priority, member.id)
    }

    /// Whether a member outranks another one by enough to take over, penalties apart.
    fn surpasses(&self, one: &MemberStatus, other: &MemberStatus, margin: u64) -> bool {
        match margin {
            1.. if self.is_preferred(one) == self.is_preferred(other) => {
                i128::from(one.priority) - i128::from(other.priority) >= i128::from(margin)
            }
            _ => self.merit(one) > self.merit(other),
        }
    }
}

/// `10 s`, `1m 30s`; a part of a second in milliseconds.
fn time(millis: u64) -> String {
    match millis % 1000 {
        0 => seconds(millis / 1000),
        _ => clock::with_unit(Duration::from_millis(millis)),
    }
}

#[cfg(test)]
mod tests {
    use doyen_core::members::NodeId;

    use super::super::Preferred;
    use super::*;
    use crate::config::Configuration;

    /// What n1 says while n2 leads, n3 has the highest priority and this is so.
    fn told(change: impl FnOnce(&mut Status)) -> Option<String> {
        let member = |id: u32| {
            format!("[[member]]\nid = {id}\naddress = \"127.0.0.1:740{id}\"\npriority = {id}0\n")
        };
        let members: String = (1..=3).map(member).collect();
        let text = format!("cluster = \"x\"\nid = 1\nstate_dir = \"s\"\n{members}");
        let settings = Configuration::parse("a test", &text).expect("it is sound").settings;
        let mut status = Status::initial(&settings);
        status.members.iter_mut().for_each(|it| it.reachable = true);
        (status.leader, status.succession) = (Some(NodeId(2)), [3, 2, 1].map(NodeId).to_vec());
        status.preemption = Some(PreemptionRules::of(&settings.core));
        change(&mut status);
        status.takeover()
    }

    fn policy(status: &mut Status, policy: &str) {
        status.preemption.as_mut().expect("rules").policy = policy.to_owned();
    }

    fn penalize(status: &mut Status) {
        status.succession = [2, 1, 3].map(NodeId).to_vec();
        let failed = &mut status.members[2];
        (failed.recent_failures, failed.penalty_remaining_ms) = (1, Some(48_000));
    }

    #[test]
    fn a_member_that_ranks_higher_waits_for_its_time_and_that_of_the_leader() {
        let wanted = "n3 ranks higher: it takes over when it has waited for 10 s, and not before n2 has led for 30 s";
        assert_eq!(told(|_| {}).as_deref(), Some(wanted));
        let never = "n3 ranks higher, and n2 stays leader: preemption.policy is never";
        assert_eq!(told(|status| policy(status, "never")).as_deref(), Some(never));
        let at_once = "n3 ranks higher: it takes over at once";
        assert_eq!(told(|status| policy(status, "immediate")).as_deref(), Some(at_once));
        let below = told(|status| {
            status.succession = [1, 3, 2].map(NodeId).to_vec();
            status.members[0].reachable = false;
        });
        let twice = "n3 ranks higher: it takes over when it has waited for 20 s, and not before n2 has led for 30 s";
        assert_eq!(below.as_deref(), Some(twice));
    }

    #[test]
    fn a_penalty_is_waited_for_as_well() {
        let wanted = "n3 would rank higher without its penalty: it takes over when that is over, at least 10 s later, and \
            not before n2 has led for 30 s";
        assert_eq!(told(penalize).as_deref(), Some(wanted));
        let never = told(|status| {
            penalize(status);
            policy(status, "never");
        });
        let wanted = "n3 would rank higher without its penalty, and n2 stays leader when that is over, too: \
            preemption.policy is never";
        assert_eq!(never.as_deref(), Some(wanted));
        let suspected = told(|status| {
            penalize(status);
            status.members[2].penalty_remaining_ms = None;
        });
        assert_eq!(suspected, None, "no leader has counted it");
    }

    #[test]
    fn a_preferred_member_waits_for_nothing_but_its_penalty() {
        let prefer = |status: &mut Status| {
            policy(status, "never");
            status.preference = Some(Preferred { member: NodeId(3), remaining_ms: 1000 });
        };
        let at_once = "n3 is preferred: it takes over at once";
        assert_eq!(told(prefer).as_deref(), Some(at_once));
        let penalized = told(|status| {
            prefer(status);
            penalize(status);
        });
        let wanted = "n3 would rank higher without its penalty: it takes over when that is over";
        assert_eq!(penalized.as_deref(), Some(wanted));
    }

    #[test]
    fn no_member_takes_over_that_cannot() {
        let margin = told(|status| status.preemption.as_mut().expect("rules").margin = 11);
        let wanted = "n3 ranks higher by less than preemption.margin (11): n2 stays leader";
        assert_eq!(margin.as_deref(), Some(wanted));
        assert_eq!(told(|status| status.members[2].reachable = false), None);
        let cut = told(|status| status.members[1].unreachable = Some(vec![NodeId(3)]));
        assert_eq!(cut, None, "the leader does not reach it");
        let deaf = told(|status| status.members[2].unreachable = Some([1, 2].map(NodeId).to_vec()));
        let wanted =
            "n3 ranks higher and cannot take over while it receives nothing from n1 and n2";
        assert_eq!(deaf.as_deref(), Some(wanted));
        let without_leader = told(|status| status.members[2].unreachable = Some(vec![NodeId(2)]));
        let wanted = "n3 ranks higher and cannot take over while it receives nothing from n2";
        assert_eq!(without_leader.as_deref(), Some(wanted));
        let penalized = told(|status| {
            penalize(status);
            status.members[2].unreachable = Some(vec![NodeId(2)]);
        });
        assert_eq!(penalized, None, "the end of its penalty changes nothing");
        assert_eq!(told(|status| status.succession = [2, 3, 1].map(NodeId).to_vec()), None);
        assert_eq!(told(|status| status.leader = None), None);
        assert_eq!(told(|status| status.preemption = None), None, "an older release");
    }
}
