//! `doyen status`: the leader, the members and which of them reach each other.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use doyen::node::status::{MemberStatus, Status as Snapshot};
use doyen_core::members::NodeId;
use doyen_core::protocol::Role;
use doyen_core::registry::Algorithm;

use super::awaited::ask_one;
use super::client::{OperatorFlags, path_to};
use super::terminal::{BAD, FAINT, GOOD, span, styled, table};
use super::{Answer, absence, explain, terminal};

/// Show the leader, the members and which of them reach each other
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen status
  doyen status n2                                      what n2 knows, asked through this node
  doyen status --node http://127.0.0.1:7400 --json

Columns, as the node that answers sees them:
  role        what the member does; - is not known here
  lease       how much longer the leader may act without hearing from the others
  priority    the highest leads; * has a penalty, which a line below explains
  last seen   when something arrived from the member
  round trip  how long a question and its answer take

Exit: 0 there is a leader, 1 there is none, 3 the node or the member cannot be reached. `doyen wait` waits for a leader.")]
pub(crate) struct Status {
    /// The member to ask, by name or id [default: the node itself]
    #[arg(value_name = "MEMBER")]
    member: Option<String>,

    #[command(flatten)]
    operator: OperatorFlags,

    /// Print one JSON object, as /v1/status does
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(crate) fn run(self) -> Result<Answer> {
        let member = self.member.as_ref();
        let client = self.operator.connect_to(member)?;
        let path = path_to("/v1/status", member)?;
        let status: Snapshot = ask_one(member.map(String::as_str), || client.get(&path))?;
        terminal::print(self.json, &status, render)?;
        Ok(if status.leader.is_some() { Answer::Yes } else { Answer::No })
    }
}

fn render(status: &Snapshot) -> String {
    let mut text = head(status);
    text.push('\n');
    text += &members(status);
    text +=
        "\nReachability: a row reaches (+) a column, does not (-), or does not report it (?)\n\n";
    text + &matrix(status)
}

fn head(status: &Snapshot) -> String {
    let Snapshot { cluster, term, name, algorithm, version, incarnation, .. } = status;
    let leases = status.algorithm.parse::<Algorithm>().map(Algorithm::has_leases);
    let mut lines = Vec::new();
    lines.push(match status.leader {
        Some(leader) => {
            let leader = styled(GOOD, status.name_of(leader));
            let why = status.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            format!("{leader} leads {cluster} in term {term}{why}")
        }
        None if status.rejoining => {
            let rejoin = status.rejoin().unwrap_or_default();
            format!("{} of {cluster} {rejoin}", styled(BAD, name))
        }
        None => format!("{} of {cluster} is known (term {term})", styled(BAD, "no leader")),
    });
    lines.extend(absence::describe(status));
    match (status.leader, status.next.map(|next| status.name_of(next))) {
        // What a pause means for the next election is said below.
        (Some(_), _) if status.pause.is_some() => {}
        (Some(leader), Some(next)) => {
            let after_failure = explain::next_after_failure_of(leader, status);
            let other = after_failure.filter(|&other| Some(other) != status.next);
            lines.push(match other {
                None => format!("{next} is next"),
                Some(other) => format!(
                    "{next} is next if {} transfers leadership, {} if it fails",
                    status.name_of(leader),
                    status.name_of(other)
                ),
            });
        }
        (None, Some(next)) if status.leader_elsewhere().is_none() => {
            lines.push(format!("{next} is first in line"));
        }
        // Only a quorum tells which member is next.
        (Some(leader), None) if leases == Ok(true) => {
            lines.push(styled(BAD, shortage(status, leader)));
        }
        _ => {}
    }
    if let Some(preferred) = status.preference {
        let left = span(Duration::from_millis(preferred.remaining_ms));
        lines.push(format!("{} is preferred for another {left}", status.name_of(preferred.member)));
    }
    lines.extend(status.paused().map(|paused| styled(BAD, paused)));
    lines.extend(status.moving());
    lines.extend(status.work().map(|work| format!("{name} {work}")));
    lines.extend(
        status.job_failure().map(|failure| format!("{name}: {}", styled(BAD, failure.to_string()))),
    );
    lines.extend(status.drain().map(|drain| format!("{name} {drain}")));
    let warning = if leases == Ok(false) { ", which does not tolerate partitions" } else { "" };
    let start = incarnation.0;
    let seen = format!("seen from {name} (start {start}), {algorithm}{warning}, doyen {version}");
    lines.push(styled(FAINT, seen));
    lines.join("\n") + "\n"
}

/// What would happen without the leader of a quorum, if no other member is eligible and reaches a majority.
pub(crate) fn shortage(status: &Snapshot, leader: NodeId) -> String {
    let left: Vec<&MemberStatus> =
        status.members.iter().filter(|it| it.reachable && it.id != leader).collect();
    let (name, all) = (status.name_of(leader), status.members.len());
    let needed = all / 2 + 1;
    if left.len() < needed {
        let left = left.len();
        return format!(
            "no failover possible: losing {name} would leave {left} of {all} members, and {}",
            absence::needs(needed)
        );
    }
    let misses = |one: &MemberStatus, other: &MemberStatus| {
        one.id != other.id && status.reaches(one, other) == Some(false)
    };
    let has_majority = |member: &MemberStatus| {
        left.iter().filter(|other| !misses(member, other)).count() >= needed
    };
    let is_drained = |it: &MemberStatus| !it.eligible || (it.id == status.id && status.drained);
    // Of another member it is not known whether it is drained with `--never`.
    let could_lead = |it: &MemberStatus| !(it.witness || it.id == status.id && status.never_leads);
    let drained = left.iter().filter(|it| is_drained(it) && could_lead(it) && has_majority(it));
    let drained: Vec<&str> = drained.map(|it| &*it.name).collect();
    let apart = left.iter().enumerate().flat_map(|(place, one)| {
        let missed = left[place + 1..].iter().filter(|it| misses(one, it) || misses(it, one));
        missed.map(|other| format!("{} and {} do not reach each other", one.name, other.name))
    });
    let apart: Vec<String> = apart.collect();
    match (drained.is_empty(), apart.is_empty()) {
        (false, _) => format!(
            "without {name}, only a drained member could take over: {}, unless drained with --never",
            drained.join(" or ")
        ),
        (true, false) => format!("no failover possible without {name}: {}", apart.join("; ")),
        (true, true) => format!("no failover possible: without {name}, no member may lead"),
    }
}

fn members(status: &Snapshot) -> String {
    let heading =
        ["id", "name", "role", "term", "lease", "priority", "last seen", "round trip", "address"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let dash = || "-".to_owned();
    for member in &status.members {
        let (leads, here) = (status.leader == Some(member.id), member.id == status.id);
        let lease = status.lease.filter(|_| here);
        let mark = if member.recent_failures > 0 { "*" } else { "" };
        rows.push(vec![
            member.id.to_string(),
            if leads { styled(GOOD, &member.name) } else { member.name.clone() },
            role(status, member),
            if here || leads { status.term.to_string() } else { dash() },
            lease.map_or_else(dash, |lease| span(Duration::from_millis(lease.remaining_ms))),
            format!("{}{mark}", member.priority),
            last_seen(status, member),
            member.rtt_us.map_or_else(dash, |rtt| span(Duration::from_micros(rtt))),
            member.observed_address.as_ref().unwrap_or(&member.address).clone(),
        ]);
    }
    let mut text = table("rllrrrlrl", &rows);
    for member in &status.members {
        if let Some(penalty) = member.penalty() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  * {} {penalty}", member.name);
        }
        if let Some(rejection) = member.rejection() {
            let _ = writeln!(text, "  {} {rejection}", styled(BAD, &member.name));
        }
    }
    text
}

/// A leader that is about to transfer leadership is shown as that.
fn role(status: &Snapshot, member: &MemberStatus) -> String {
    match status.role {
        Role::Retiring if member.id == status.id => status.role.to_string(),
        _ => member.role.to_string(),
    }
}

fn last_seen(status: &Snapshot, member: &MemberStatus) -> String {
    let ago = member.last_seen_ms.map(|ago| span(Duration::from_millis(ago)));
    let lost_ms = member.unreachable_ms.or(member.last_seen_ms).unwrap_or_default();
    let lasting = span(Duration::from_millis(lost_ms));
    match (member.rejected_for(), ago) {
        _ if member.id == status.id => "this node".to_owned(),
        (Some(reason), _) => styled(BAD, format!("rejected: {reason}")),
        (None, Some(_)) if member.reachable && member.last_seen_ms == Some(0) => "now".to_owned(),
        (None, Some(ago)) if member.reachable => format!("{ago} ago"),
        (None, Some(_)) if member.arrives => {
            styled(BAD, format!("no answer for {lasting}, only datagrams"))
        }
        (None, Some(_)) => styled(BAD, format!("unreachable for {lasting}")),
        (None, None) => styled(BAD, "never"),
    }
}

fn matrix(status: &Snapshot) -> String {
    let names = status.members.iter().map(|member| member.name.clone());
    let mut rows = vec![[String::new()].into_iter().chain(names).collect::<Vec<_>>()];
    for row in &status.members {
        let cell = |column: &MemberStatus| match status.reaches(row, column) {
            _ if row.id == column.id => ".".to_owned(),
            Some(true) => "+".to_owned(),
            Some(false) => styled(BAD, "-"),
            None => styled(FAINT, "?"),
        };
        rows.push([row.name.clone()].into_iter().chain(status.members.iter().map(cell)).collect());
    }
    table(&format!("l{}", "r".repeat(status.members.len())), &rows)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::testing;

    /// What n1 says would happen without n2, if this is so of three members that reach each other.
    /// What the first lines say of who is next.
    fn next_of(change: impl FnOnce(&mut Value)) -> String {
        let text = head(&testing::status(change));
        text.lines().find(|line| line.contains(" is next")).expect("a line").to_owned()
    }

    #[test]
    fn another_member_may_be_next_after_a_failure_than_after_a_transfer() {
        assert_eq!(next_of(|status| status["next"] = json!(3)), "n3 is next");
        let next_is_3 = |status: &mut Value| {
            (status["succession"], status["next"]) = (json!([2, 1, 3]), json!(3));
        };
        assert_eq!(next_of(next_is_3), "n3 is next if n2 transfers leadership, n1 if it fails");
    }

    fn told(change: impl FnOnce(&mut Value)) -> String {
        shortage(&testing::status(change), NodeId(2))
    }

    #[test]
    fn why_no_member_is_next_is_said_as_it_is() {
        let apart = told(|status| {
            status["members"][2]["unreachable"] = json!([1]);
        });
        assert_eq!(apart, "no failover possible without n2: n1 and n3 do not reach each other");
        let drain = |status: &mut Value| {
            status["members"][2]["eligible"] = json!(false);
            (status["drained"], status["never_leads"]) = (json!(true), json!(true));
        };
        let n3 =
            "without n2, only a drained member could take over: n3, unless drained with --never";
        assert_eq!(told(drain), n3);
        let witness = told(|status| {
            drain(status);
            status["members"][2]["witness"] = json!(true);
        });
        assert_eq!(witness, "no failover possible: without n2, no member may lead");
        let alone = told(|status| status["members"][2]["reachable"] = json!(false));
        let losing = "no failover possible: losing n2 would leave 1 of 3 members, and 2 are needed";
        assert_eq!(alone, losing);
    }
}
