//! What a node that knows no leader can say about it: who led last, which members still reach that one, and how many
//! members the node reaches itself.

use std::time::Duration;

use doyen::node::status::{MemberStatus, Status};
use doyen_core::registry::Algorithm;
use doyen_sim::words::listed;

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
    match names_of_those_who_reach(status, leader).as_slice() {
        [] => {}
        [one] => text += &format!("; {one} still reaches it"),
        several => text += &format!("; {} still reach it", listed(several)),
    }
    if !leader.reachable {
        text += &format!("; this node does not reach {name}");
    }
    Some(text)
}

/// Whether a member that this node reaches still reaches the last leader: then a leader is missing only here.
pub(crate) fn is_only_here(status: &Status) -> bool {
    let last = status.last_leader.as_ref().filter(|last| last.lost.is_none());
    let last = last.and_then(|last| status.member(last.member));
    last.is_some_and(|leader| !names_of_those_who_reach(status, leader).is_empty())
}

fn names_of_those_who_reach(status: &Status, leader: &MemberStatus) -> Vec<String> {
    let others = status.members.iter().filter(|it| ![status.id, leader.id].contains(&it.id));
    let reach = others.filter(|it| status.reaches(it, leader) == Some(true));
    reach.map(|it| it.name.clone()).collect()
}

/// Says that this many members are needed.
pub(crate) fn needs(needed: usize) -> String {
    if needed == 1 { "1 is needed".to_owned() } else { format!("{needed} are needed") }
}

/// How many members the node reaches; nothing if the leader is missing only here, because then that says nothing.
fn reached(status: &Status) -> Option<String> {
    let (all, name) = (status.members.len(), &status.name);
    let reached = match status.members.iter().filter(|member| member.reachable).count() {
        1 => format!("{name} reaches only itself"),
        count => format!("{name} reaches {count} members, itself included"),
    };
    let text = match majority(status) {
        Some(needed) => format!("{reached}; {needed} of {all} members are needed"),
        None => reached,
    };
    (!is_only_here(status)).then_some(text)
}

/// The size of a majority, where one is needed.
pub(crate) fn majority(status: &Status) -> Option<usize> {
    let is_quorum = status.algorithm == Algorithm::Quorum.name();
    is_quorum.then(|| status.members.len() / 2 + 1)
}
