//! What a node that knows no leader can say about it: who led last, which members still reach that one, and how many
//! members the node reaches itself.

use std::time::Duration;

use doyen::node::status::{MemberStatus, Status, still_reach};
use doyen_core::registry::Algorithm;

use super::terminal::span;

/// Sentences about a missing leader, the most telling first; none if the node knows one or rejoins.
pub(crate) fn describe(status: &Status) -> Vec<String> {
    if status.leader.is_some() || status.rejoining {
        return Vec::new();
    }
    last_leader(status).into_iter().chain(reached(status)).collect()
}

/// `n1 led in term 5 when last heard, 5.0 s ago; n2 still reaches it; this node does not reach n1`; or, if it is known to lead
/// no longer, `n1 led in term 5 until 5.0 s ago; it died and its guardian released the lease`.
fn last_leader(status: &Status) -> Option<String> {
    let last = status.last_leader.as_ref()?;
    let (term, ago) = (last.term, span(Duration::from_millis(last.last_heard_ms)));
    let leader = status.member(last.member)?;
    let name = &leader.name;
    let lost = last.lost.as_ref().map_or(String::new(), |lost| format!("; it {lost}"));
    if leader.id == status.id {
        return Some(format!("{name}, this node, led in term {term} until {ago} ago{lost}"));
    }
    if last.lost.is_some() {
        return Some(format!("{name} led in term {term} until {ago} ago{lost}"));
    }
    let mut text = format!("{name} led in term {term} when last heard, {ago} ago");
    let reached_by: Vec<String> =
        status.reached_by(leader).iter().map(|it| it.name.clone()).collect();
    if !reached_by.is_empty() {
        text += &format!("; {}", still_reach(&reached_by));
    }
    if !leader.reachable {
        text += &format!("; this node does not reach {name}");
    }
    Some(text)
}

/// Says that this many members are needed.
pub(crate) fn needs(needed: usize) -> String {
    if needed == 1 { "1 is needed".to_owned() } else { format!("{needed} are needed") }
}

/// As text: that no member which this node reaches may lead, though they are enough to elect one. None if one may, as far as
/// this node knows, or while elections are paused. A drained member leads if no other can, unless it was drained with
/// `--never`, which is not known of others.
pub(crate) fn none_may_lead(status: &Status) -> Option<String> {
    let reachable: Vec<&MemberStatus> = status.members.iter().filter(|it| it.reachable).collect();
    let is_idle = status.rejoining || status.pause.is_some();
    if status.leader.is_some() || is_idle || reachable.len() < majority(status)? {
        return None;
    }
    let why_not = |member: &&MemberStatus| match member {
        MemberStatus { name, witness: true, .. } => Some(format!("{name} is a witness")),
        it if it.id == status.id => {
            let drain = status.drain().filter(|_| status.never_leads)?;
            Some(format!("{} {drain}", it.name))
        }
        MemberStatus { name, eligible: false, .. } => Some(format!(
            "{name} is drained (it leads if no other can, unless drained with --never): `doyen undrain {name}` lets it lead"
        )),
        _ => None,
    };
    let reasons: Option<Vec<String>> = reachable.iter().map(why_not).collect();
    reasons.map(|it| format!("every reachable member is a witness or drained: {}", it.join("; ")))
}

/// How many members the node reaches, if that is why there is no leader; nothing if the leader is missing only here.
fn reached(status: &Status) -> Option<String> {
    if status.leader_elsewhere().is_some() {
        return None;
    }
    if let Some(text) = none_may_lead(status) {
        return Some(text);
    }
    let (all, name) = (status.members.len(), &status.name);
    let reached = match status.members.iter().filter(|member| member.reachable).count() {
        1 => format!("{name} reaches only itself"),
        count => format!("{name} reaches {count} members, itself included"),
    };
    Some(match majority(status) {
        Some(needed) => format!("{reached}; {needed} of {all} members are needed"),
        None => reached,
    })
}

/// The size of a majority, where one is needed.
pub(crate) fn majority(status: &Status) -> Option<usize> {
    let is_quorum = status.algorithm == Algorithm::Quorum.name();
    is_quorum.then(|| status.members.len() / 2 + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::testing;

    #[test]
    fn a_leader_that_is_missing_only_here_needs_no_member_that_may_lead() {
        let witnesses = |others_reach_it: bool| {
            let status = testing::status(|status| {
                (status["leader"], status["role"]) = (json!(null), json!("follower"));
                status["last_leader"] = json!({ "member": 3, "term": 4, "last_heard_ms": 5000 });
                status["members"][2]["reachable"] = json!(false);
                for witness in [0, 1] {
                    status["members"][witness]["witness"] = json!(true);
                    status["members"][witness]["eligible"] = json!(false);
                }
                status["members"][1]["unreachable"] =
                    if others_reach_it { json!([]) } else { json!([3]) };
            });
            describe(&status)
        };
        let led = "n3 led in term 4 when last heard, 5.0 s ago";
        let here = format!("{led}; n2 still reaches it; this node does not reach n3");
        assert_eq!(witnesses(true), [here]);
        let all =
            "every reachable member is a witness or drained: n1 is a witness; n2 is a witness"
                .to_owned();
        assert_eq!(witnesses(false), [format!("{led}; this node does not reach n3"), all]);
    }

    /// What is said of reachable members of which n2 and n3 are drained and n1, this node, is a witness.
    fn of_drained(change: impl FnOnce(&mut Value)) -> Option<String> {
        none_may_lead(&testing::status(|status| {
            status["leader"] = json!(null);
            status["members"][0]["witness"] = json!(true);
            for member in 0..3 {
                status["members"][member]["eligible"] = json!(false);
            }
            change(status);
        }))
    }

    #[test]
    fn of_another_drained_member_it_is_not_known_that_it_never_leads() {
        let told = "every reachable member is a witness or drained: n1 is a witness; n2 is drained (it leads if no \
            other can, unless drained with --never): `doyen undrain n2` lets it lead; n3 is drained (it leads if no other can, \
            unless drained with --never): `doyen undrain n3` lets it lead";
        assert_eq!(of_drained(|_| {}).as_deref(), Some(told));
    }

    #[test]
    fn while_elections_are_paused_that_is_why_there_is_no_leader() {
        let pause = json!({ "number": 2, "by": 1, "remaining_ms": 60_000 });
        assert_eq!(of_drained(|status| status["pause"] = pause), None);
    }
}
