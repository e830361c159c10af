//! `doyen status`: the leader, the members and which of them reach each other.

use std::fmt::Write as _;
use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use doyen::node::status::{MemberStatus, Status as Snapshot};
use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;

use super::Answer;
use super::client::{CannotReach, Client, NodeFlags, parse_time};
use super::terminal::{BAD, FAINT, GOOD, span, styled, table};

/// How often the node is polled with `--wait-leader`.
const POLL: Duration = Duration::from_millis(100);

/// Show the leader, the members and which of them reach each other
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen status
  doyen status --node http://127.0.0.1:7400 --json
  doyen status --wait-leader --timeout 10s && ./deploy

Exit: 0 there is a leader, 1 there is none, 3 the node cannot be reached, 4 the timeout passed.")]
pub(crate) struct Status {
    #[command(flatten)]
    node: NodeFlags,

    /// Wait until there is a leader
    #[arg(long)]
    wait_leader: bool,

    /// With --wait-leader: wait at most this long
    #[arg(long, value_name = "TIME", requires = "wait_leader", default_value = "30s",
          value_parser = parse_time)]
    timeout: Duration,

    /// Print one JSON object, as /v1/status does
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(crate) fn run(self) -> Result<Answer> {
        let client = self.node.connect()?;
        let status = match self.wait_leader {
            true => match wait_for_leader(&client, Instant::now() + self.timeout)? {
                Some(status) => status,
                None => return Ok(Answer::Limit),
            },
            false => client.status()?,
        };
        let text = match self.json {
            true => serde_json::to_string(&status)? + "\n",
            false => render(&status),
        };
        anstream::stdout().lock().write_all(text.as_bytes())?;
        Ok(if status.leader.is_some() { Answer::Yes } else { Answer::No })
    }
}

/// `None` if there is no leader before the deadline. A node that cannot be reached may still come up.
fn wait_for_leader(client: &Client, deadline: Instant) -> Result<Option<Snapshot>> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).max(POLL);
        let problem = match client.status_within(left) {
            Ok(status) if status.leader.is_some() => return Ok(Some(status)),
            Ok(_) => "no leader is known".to_owned(),
            Err(error) if error.is::<CannotReach>() => error.to_string(),
            Err(error) => return Err(error),
        };
        if Instant::now() >= deadline {
            eprintln!("doyen: --timeout: {problem}");
            return Ok(None);
        }
        sleep(POLL);
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
        None => format!("{}: {cluster}, term {term}", styled(BAD, "no leader is known")),
    });
    match (status.leader, status.next.map(|next| status.name_of(next))) {
        (Some(_), Some(next)) => lines.push(format!("{next} is next")),
        (None, Some(next)) => lines.push(format!("{next} is first in line")),
        // Only a quorum tells which member is next.
        (Some(leader), None) if leases == Ok(true) => {
            lines.push(styled(BAD, shortage(status, leader)));
        }
        (_, None) => {}
    }
    if let Some(preferred) = status.preference {
        let left = span(Duration::from_millis(preferred.remaining_ms));
        lines.push(format!("{} is preferred for another {left}", status.name_of(preferred.member)));
    }
    lines.extend(status.drain().map(|drain| format!("{name} {drain}")));
    let warning = if leases == Ok(false) { ", which does not tolerate partitions" } else { "" };
    let start = incarnation.0;
    let seen = format!("seen from {name} (start {start}), {algorithm}{warning}, doyen {version}");
    lines.push(styled(FAINT, seen));
    lines.join("\n") + "\n"
}

/// What would happen without the leader of a quorum, if no other member is eligible.
pub(crate) fn shortage(status: &Snapshot, leader: NodeId) -> String {
    let all = status.members.len();
    let left = status.members.iter().filter(|it| it.reachable && it.id != leader).count();
    let (name, needed) = (status.name_of(leader), all / 2 + 1);
    match left < needed {
        true => format!(
            "no failover possible: losing {name} would leave {left} of {all} members, and {needed} are needed"
        ),
        false => {
            format!("without {name}, only a drained member could take over; a witness never leads")
        }
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
    }
    text
}

/// A node knows its own role; of the others, which one leads and which do not.
fn role(status: &Snapshot, member: &MemberStatus) -> String {
    match member {
        _ if member.id == status.id => status.role.to_string(),
        _ if status.leader == Some(member.id) => "leader".to_owned(),
        MemberStatus { witness: true, .. } => "witness".to_owned(),
        MemberStatus { eligible: false, .. } => "ineligible".to_owned(),
        _ => "-".to_owned(),
    }
}

fn last_seen(status: &Snapshot, member: &MemberStatus) -> String {
    match member.last_seen_ms.map(|ago| span(Duration::from_millis(ago))) {
        _ if member.id == status.id => "this node".to_owned(),
        _ if member.config_mismatch => styled(BAD, "config mismatch"),
        Some(ago) if member.reachable => format!("{ago} ago"),
        Some(ago) => styled(BAD, format!("unreachable for {ago}")),
        None => styled(BAD, "never"),
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
