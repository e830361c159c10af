//! `doyen explain`: why this leader, why it moved, who is next; and who would lead if somebody died.
//!
//! The last is not answered by a rule of thumb, but by the state machines themselves: see `rehearsal.rs`.

mod rehearsal;

use std::cmp::Reverse;
use std::fmt::{self, Write as _};
use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use doyen::node::status::{Entry, MemberStatus, Status};
use doyen_core::change::LeaderChange;
use doyen_core::members::NodeId;
use serde_json::{Value, json};

use super::Answer;
use super::client::{self, NodeFlags};
use super::history::line;
use super::terminal::Paint;
use rehearsal::Rehearsal;

/// Say why this leader, why it moved, who is next, and who would lead if somebody died
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen explain
  doyen explain --if-dies n2
  doyen explain --if-dies n2,n3

What --if-dies says is what the election does: it is simulated with the members as they are now,
as far as this node knows who is alive and who hears whom.
Exit: 0 somebody leads, or would; 1 nobody; 3 the node cannot be reached.")]
pub(crate) struct Explain {
    #[command(flatten)]
    node: NodeFlags,

    /// Who would lead if these died now, by name or id
    #[arg(long, value_name = "MEMBER", value_delimiter = ',')]
    if_dies: Vec<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(crate) fn run(self) -> Result<Answer> {
        let client = self.node.connect()?;
        let status = client.status()?;
        let history: Vec<Entry> = client.get("/v1/history")?;
        let dying = client::members(&status, "--if-dies", &self.if_dies)?;
        let rehearsal = match dying.as_slice() {
            [] => None,
            dying => Some(Rehearsal::play(&status, dying)?),
        };
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", as_json(&status, &history, rehearsal.as_ref()))?;
        } else {
            let paint = Paint::for_stdout();
            let text = match &rehearsal {
                Some(rehearsal) => verdict(&status, rehearsal),
                None => explanation(&status, &history, paint),
            };
            out.write_all(text.as_bytes())?;
        }
        let somebody = match &rehearsal {
            Some(rehearsal) => !rehearsal.leaders.is_empty(),
            None => status.leader.is_some(),
        };
        Ok(if somebody { Answer::Yes } else { Answer::No })
    }
}

fn explanation(status: &Status, history: &[Entry], paint: Paint) -> String {
    let mut text = String::new();
    // A string takes whatever is written into it.
    let _ = write_explanation(&mut text, status, history, paint);
    text
}

fn write_explanation(
    out: &mut String,
    status: &Status,
    history: &[Entry],
    paint: Paint,
) -> fmt::Result {
    let term = status.term;
    match status.leader {
        Some(leader) => {
            writeln!(out, "{} leads in term {term}", paint.good(&status.name_of(leader)))?;
            if let Some(why) = &status.why {
                writeln!(out, "  {why}")?;
            }
        }
        None if status.rejoining => {
            let rejoin = status.rejoin().unwrap_or_default();
            return writeln!(out, "{} {rejoin}", paint.bad(&status.name));
        }
        None => {
            let nobody = paint.bad("nobody");
            writeln!(
                out,
                "{nobody} is known to lead, and the term is {term}\n  {}",
                strength(status)
            )?;
        }
    }
    let moved = latest_move(history);
    if !moved.is_empty() {
        writeln!(out, "\nhow it came about, as {} saw it", status.name)?;
        for entry in moved {
            writeln!(out, "  {}", line(entry, paint))?;
        }
    }
    writeln!(out, "\nin this order they would lead")?;
    for member in ranking(status) {
        writeln!(out, "  {} {}", member.name, standing(status, member))?;
    }
    match (status.leader, status.next.map(|next| status.name_of(next))) {
        (Some(_), Some(next)) => writeln!(out, "\n{next} is next if the leader dies now"),
        (None, Some(next)) => {
            writeln!(out, "\n{next} is the first in line, if a majority hears it")
        }
        // Only a quorum says who is next.
        (Some(leader), None) if rehearsal::needed(status).is_some() => {
            let leader = status.members.iter().find(|member| member.id == leader);
            let left = heard(status) - usize::from(leader.is_some_and(|leader| leader.reachable));
            writeln!(out, "\nnobody could lead if the leader died now: {}", shortage(status, left))
        }
        (_, None) => Ok(()),
    }
}

/// How many members are heard, this node included.
fn heard(status: &Status) -> usize {
    status.members.iter().filter(|member| member.reachable).count()
}

/// Whether those that are heard are enough.
fn strength(status: &Status) -> String {
    let heard = format!("{} of {} members are heard", heard(status), status.members.len());
    match rehearsal::needed(status) {
        Some(needed) => format!("{heard}, and {needed} must agree"),
        None => heard,
    }
}

/// The latest change of the leader, with what led to it.
fn latest_move(history: &[Entry]) -> &[Entry] {
    let settles = |entry: &Entry| {
        matches!(entry.change, LeaderChange::BecameLeader { .. } | LeaderChange::Follows { .. })
    };
    let Some(last) = history.iter().rposition(settles) else { return history };
    let before = history[..last].iter().rposition(settles);
    &history[before.map_or(0, |before| before + 1)..]
}

/// Everybody, in the order in which they would lead, as the node's own state machine sees it; then who could not, for
/// it would not or is not heard.
fn ranking(status: &Status) -> Vec<&MemberStatus> {
    let place = |member: &&MemberStatus| {
        let place = status.succession.iter().position(|&id| id == member.id);
        (!member.reachable, place.unwrap_or(usize::MAX), Reverse((member.priority, member.id)))
    };
    let mut members: Vec<&MemberStatus> = status.members.iter().collect();
    members.sort_by_key(place);
    members
}

/// What there is to say of a member's chances.
fn standing(status: &Status, member: &MemberStatus) -> String {
    let mut words = vec![format!("priority {}", member.priority)];
    if status.leader == Some(member.id) {
        words.push("leads".to_owned());
    }
    if status.preference.is_some_and(|preferred| preferred.member == member.id) {
        words.push("preferred".to_owned());
    }
    if let Some(penalty) = member.penalty() {
        words.push(penalty);
    }
    match member {
        MemberStatus { witness: true, .. } => words.push("cannot: a witness".to_owned()),
        MemberStatus { eligible: false, .. } if status.drained && member.id == status.id => {
            words.extend(status.drain());
        }
        MemberStatus { eligible: false, .. } => words.push("would not: it stands back".to_owned()),
        _ => {}
    }
    match member {
        MemberStatus { config_mismatch: true, .. } => {
            words.push("cannot: its configuration differs, and it is ignored".to_owned());
        }
        MemberStatus { reachable: false, .. } => words.push("cannot: it is unreachable".to_owned()),
        _ => {}
    }
    words.join(", ")
}

/// Why so many that would be left could elect nobody.
fn shortage(status: &Status, left: usize) -> String {
    let of = status.members.len();
    match rehearsal::needed(status) {
        Some(needed) if left < needed => {
            format!("{left} of {of} members would be left, and {needed} must agree")
        }
        _ => format!(
            "none of the {left} that would be left could be elected: see who hears whom, and who would lead"
        ),
    }
}

fn verdict(status: &Status, rehearsal: &Rehearsal) -> String {
    let names = |ids: &[NodeId]| -> String {
        let names: Vec<String> = ids.iter().map(|&id| status.name_of(id)).collect();
        names.join(" and ")
    };
    let if_dies = format!("if {} died now", names(&rehearsal.dying));
    match rehearsal.leaders.as_slice() {
        [] => format!("{if_dies}, nobody could lead: {}\n", shortage(status, rehearsal.left)),
        [leader] if status.leader == Some(*leader) => {
            format!("{if_dies}, {} would lead on\n", names(&[*leader]))
        }
        [leader] => format!("{if_dies}, {} would lead\n", names(&[*leader])),
        several => format!(
            "{if_dies}, {} would each lead a part: {} does not survive a partition\n",
            names(several),
            status.algorithm
        ),
    }
}

fn as_json(status: &Status, history: &[Entry], rehearsal: Option<&Rehearsal>) -> Value {
    let name = |id: NodeId| json!({ "id": id, "name": status.name_of(id) });
    let names = |ids: &[NodeId]| ids.iter().map(|&id| name(id)).collect::<Vec<_>>();
    let rank = |member: &&MemberStatus| {
        json!({
            "id": member.id,
            "name": member.name,
            "priority": member.priority,
            "eligible": member.eligible && !member.witness,
            "reachable": member.reachable,
            "config_mismatch": member.config_mismatch,
            "recent_failures": member.recent_failures,
        })
    };
    let mut answer = json!({
        "leader": status.leader.map(name),
        "term": status.term,
        "why": status.why,
        "moved": latest_move(history),
        "next": status.next.map(name),
        "ranking": ranking(status).iter().map(rank).collect::<Vec<_>>(),
    });
    if let Some(rehearsal) = rehearsal {
        answer["if_dies"] =
            json!({ "dying": names(&rehearsal.dying), "leaders": names(&rehearsal.leaders) });
    }
    answer
}
