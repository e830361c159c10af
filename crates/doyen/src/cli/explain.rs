//! `doyen explain`: why the leader leads, how it became leader, which member takes over or is next; and the effect of
//! failures.
//!
//! `--if-dies` is answered by the state machines themselves: the cluster as this node sees it is simulated, and the
//! members crash. The node knows which members are up, which reach each other, which are ineligible, and their
//! succession, in which priorities, preference and penalties are already weighed; a member's place in it is its attribute
//! in the simulation. The cluster's timing is not known and decides nothing; preemption is off, so that only the crash
//! makes a difference.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::Write;

use anyhow::{Result, anyhow};
use clap::Args;
use doyen::node::status::{Entry, MemberStatus, Status};
use doyen_core::change::LeaderChange;
use doyen_core::config::Mode;
use doyen_core::config::quorum::{Preemption, Profile};
use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_sim::fault::{Action, Fault};
use doyen_sim::run;
use doyen_sim::scenario::{MemberList, QuorumOptions, Scenario};
use doyen_sim::time::Time;
use serde_json::{Value, json};

use super::client::{self, NodeFlags};
use super::history::line;
use super::status::shortage;
use super::terminal::{BAD, GOOD, styled};
use super::{Answer, absence};

/// How long the simulation runs before the members crash: long enough for all to notice which others they reach.
const CRASH_AT: Span = Span::from_millis(5_000);

/// When the simulation ends, long after everything is settled.
const END: Span = Span::from_millis(30_000);

/// Explain the current leader, its last change and which member is next; simulate failures
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen explain
  doyen explain --if-dies n2
  doyen explain --if-dies n2,n3

--if-dies simulates the election with the members as this node sees them now: which are up, and
which reach each other.
Exit: 0 there is a leader, or would be; 1 there is none; 3 the node cannot be reached.")]
pub(crate) struct Explain {
    #[command(flatten)]
    node: NodeFlags,

    /// Say which member would lead if these failed now, by name or id
    #[arg(long, value_name = "MEMBER", value_delimiter = ',')]
    if_dies: Vec<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(crate) fn run(self) -> Result<Answer> {
        let client = self.node.connect_reader()?;
        let status = client.status()?;
        let history: Vec<Entry> = client.get("/v1/history")?;
        let dying = client::members(&status, "--if-dies", &self.if_dies)?;
        let prediction = match dying.as_slice() {
            [] => None,
            dying => Some(Prediction::simulate(&status, dying)?),
        };
        let text = match &prediction {
            prediction if self.json => {
                format!("{}\n", as_json(&status, &history, prediction.as_ref()))
            }
            Some(prediction) => prediction.describe(&status) + "\n",
            None => explanation(&status, &history),
        };
        anstream::stdout().lock().write_all(text.as_bytes())?;
        let has_leader = match &prediction {
            Some(prediction) => {
                !prediction.leaders.is_empty() && !prediction.waits_for_resume(&status)
            }
            None => status.leader.is_some(),
        };
        Ok(if has_leader { Answer::Yes } else { Answer::No })
    }
}

fn explanation(status: &Status, history: &[Entry]) -> String {
    let term = status.term;
    let mut lines = Vec::new();
    match status.leader {
        Some(leader) => {
            lines.push(format!("{} leads in term {term}", styled(GOOD, status.name_of(leader))));
            lines.extend(status.why.as_ref().map(|why| format!("  {why}")));
            lines.extend(status.moving().map(|moving| format!("  {moving}")));
            lines.extend(status.work().map(|work| format!("  {} {work}", status.name)));
            lines.extend(
                status.job_failure().map(|failure| format!("  {}: {failure}", status.name)),
            );
        }
        None if status.rejoining => {
            let rejoin = status.rejoin().unwrap_or_default();
            return format!("{} {rejoin}\n", styled(BAD, &status.name));
        }
        None => {
            lines.push(format!("{} (term {term})", styled(BAD, "no leader is known")));
            lines.extend(absence::describe(status).iter().map(|text| format!("  {text}")));
        }
    }
    lines.extend(status.paused().map(|paused| format!("  {paused}")));
    let change = latest_change(history);
    if !change.is_empty() {
        lines.push(format!("\nlast change, as {} saw it", status.name));
        lines.extend(change.iter().map(|entry| format!("  {}", line(entry))));
    }
    lines.push("\nsuccession".to_owned());
    let ranked = ranking(status);
    lines.extend(ranked.iter().map(|it| format!("  {} {}", it.name, prospects(status, it))));
    let outlook: Vec<String> =
        status.takeover().into_iter().chain(after_a_failure(status)).collect();
    if !outlook.is_empty() {
        lines.push(String::new());
        lines.extend(outlook);
    }
    lines.join("\n") + "\n"
}

/// Which member leads if the leader fails, or why none does. With a leader this is what `--if-dies` says of it; `next`
/// is about a transfer.
fn after_a_failure(status: &Status) -> Option<String> {
    match (status.leader, status.next.map(|next| status.name_of(next))) {
        // What a pause means for the next election has been said.
        (Some(_), _) if status.pause.is_some() => None,
        (Some(leader), Some(_)) => {
            let prediction = Prediction::simulate(status, &[leader]).ok()?;
            Some(prediction.describe(status))
        }
        (None, Some(next)) if status.leader_elsewhere().is_none() => {
            Some(format!("{next} is first in line, if it reaches a majority"))
        }
        // Only a quorum tells which member is next.
        (Some(leader), None) if is_quorum(status) => Some(shortage(status, leader)),
        _ => None,
    }
}

fn is_quorum(status: &Status) -> bool {
    absence::majority(status).is_some()
}

/// The latest change of the leader, with the entries that led to it.
fn latest_change(history: &[Entry]) -> &[Entry] {
    let settles = |entry: &Entry| {
        matches!(entry.change, LeaderChange::BecameLeader { .. } | LeaderChange::Follows { .. })
    };
    let Some(last) = history.iter().rposition(settles) else { return history };
    let before = history[..last].iter().rposition(settles);
    &history[before.map_or(0, |before| before + 1)..]
}

/// In the succession of the node's own state machine; then ineligible and unreachable members.
fn ranking(status: &Status) -> Vec<&MemberStatus> {
    let place = |member: &&MemberStatus| {
        let place = status.succession.iter().position(|&id| id == member.id);
        (!member.reachable, place.unwrap_or(usize::MAX), Reverse((member.priority, member.id)))
    };
    let mut members: Vec<&MemberStatus> = status.members.iter().collect();
    members.sort_by_key(place);
    members
}

/// What speaks for and against a member as leader.
fn prospects(status: &Status, member: &MemberStatus) -> String {
    let mut words = vec![format!("priority {}", member.priority)];
    if status.leader == Some(member.id) {
        words.push("leads".to_owned());
    }
    if status.preference.is_some_and(|preferred| preferred.member == member.id) {
        words.push("preferred".to_owned());
    }
    words.extend(member.penalty());
    match member {
        MemberStatus { witness: true, .. } => words.push("ineligible: a witness".to_owned()),
        MemberStatus { eligible: false, .. } if status.drained && member.id == status.id => {
            words.extend(status.drain());
        }
        // Of another member it is not known whether it leads if no other one can.
        MemberStatus { eligible: false, .. } => words.push("drained".to_owned()),
        _ => {}
    }
    match member.rejection() {
        Some(rejection) => words.push(rejection.to_owned()),
        None if !member.reachable => words.push("unreachable".to_owned()),
        None => {}
    }
    words.join(", ")
}

fn as_json(status: &Status, history: &[Entry], prediction: Option<&Prediction>) -> Value {
    let name = |id: NodeId| json!({ "id": id, "name": status.name_of(id) });
    let names = |ids: &[NodeId]| ids.iter().map(|&id| name(id)).collect::<Vec<_>>();
    let rank = |member: &&MemberStatus| {
        json!({
            "id": member.id,
            "name": member.name,
            "role": member.role,
            "priority": member.priority,
            "eligible": member.eligible && !member.witness,
            "reachable": member.reachable,
            "config_mismatch": member.config_mismatch,
            "rejected": member.rejected,
            "recent_failures": member.recent_failures,
        })
    };
    let mut answer = json!({
        "leader": status.leader.map(name),
        "term": status.term,
        "why": status.why,
        "last_leader": status.last_leader,
        "last_change": latest_change(history),
        "next": status.next.map(name),
        "takeover": status.takeover(),
        "ranking": ranking(status).iter().map(rank).collect::<Vec<_>>(),
    });
    if let Some(Prediction { dying, leaders, .. }) = prediction {
        answer["if_dies"] = json!({ "dying": names(dying), "leaders": names(leaders) });
    }
    answer
}

/// The member that would lead if `leader` failed now, as `--if-dies` predicts it. None if that is not one member.
pub(crate) fn next_after_failure_of(leader: NodeId, status: &Status) -> Option<NodeId> {
    match Prediction::simulate(status, &[leader]).ok()?.leaders[..] {
        [next] => Some(next),
        _ => None,
    }
}

/// What the simulation of `--if-dies` comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Prediction {
    dying: Vec<NodeId>,
    /// More than one where the algorithm does not tolerate partitions.
    leaders: Vec<NodeId>,
    /// How many members are up after the crash.
    left: usize,
}

impl Prediction {
    fn simulate(status: &Status, dying: &[NodeId]) -> Result<Self> {
        let down = down(status);
        let case = scenario(status, &down, dying)?.resolve().map_err(|error| {
            anyhow!("--if-dies: cannot simulate this cluster: {}: {}", error.key, error.problem)
        })?;
        let outcome = run::run(&case, None);
        let views = case.config.members.iter().zip(outcome.views.iter());
        let leads = views.filter(|(_, view)| view.is_some_and(|view| view.role.leads()));
        let leaders = leads.map(|(id, _)| id).collect();
        let gone: BTreeSet<NodeId> = down.iter().chain(dying).copied().collect();
        Ok(Self { dying: dying.to_vec(), leaders, left: status.members.len() - gone.len() })
    }

    /// Whether the members that die leave no leader, and elections are paused.
    fn waits_for_resume(&self, status: &Status) -> bool {
        let survives = |leader: NodeId| !self.dying.contains(&leader);
        status.pause.is_some() && !status.leader.is_some_and(survives)
    }

    fn describe(&self, status: &Status) -> String {
        let names = |ids: &[NodeId]| {
            ids.iter().map(|&id| status.name_of(id)).collect::<Vec<_>>().join(" and ")
        };
        let (left, all) = (self.left, status.members.len());
        let outcome = match (self.leaders.as_slice(), absence::majority(status)) {
            ([], Some(needed)) if left < needed => {
                format!(
                    "no member could lead: {left} of {all} would be left, and {}",
                    absence::needs(needed)
                )
            }
            ([], _) if left == 0 => "no member would be left".to_owned(),
            ([], _) => {
                let none = match left {
                    1 => "the only member left could not".to_owned(),
                    left => format!("none of the {left} members left could"),
                };
                format!("{none} be elected; see `doyen status` for reachability")
            }
            ([leader], _) if status.leader == Some(*leader) => {
                format!("{} would stay leader", names(&[*leader]))
            }
            ([leader], _) => format!("{} would lead", names(&[*leader])),
            (several, _) => format!(
                "{} would each lead a part: {} does not tolerate partitions",
                names(several),
                status.algorithm
            ),
        };
        let paused = match self.waits_for_resume(status) {
            true => "there would be no leader until elections are resumed; then ",
            false => "",
        };
        format!("if {} failed now, {paused}{outcome}", names(&self.dying))
    }
}

/// The members that neither this node nor, as far as it knows, any other one reaches.
fn down(status: &Status) -> Vec<NodeId> {
    let reached = |member: &MemberStatus| {
        let others = status.members.iter().filter(|it| it.id != status.id && it.id != member.id);
        member.reachable
            || others.into_iter().any(|other| status.reaches(other, member) == Some(true))
    };
    status.members.iter().filter(|it| !reached(it)).map(|it| it.id).collect()
}

fn scenario(status: &Status, down: &[NodeId], dying: &[NodeId]) -> Result<Scenario> {
    let members = &status.members;
    let is_up = |id: &NodeId| !down.contains(id);
    // A member's place in the succession, counted from the end.
    let attribute = |member: &MemberStatus| match status.succession.is_empty() {
        true => member.priority,
        false => {
            let place = status.succession.iter().rev().position(|&id| id == member.id);
            place.map_or(0, |place| place as i64 + 1)
        }
    };
    // A link whose receiver reports that it does not reach the sender.
    let pairs = members.iter().flat_map(|from| members.iter().map(move |to| (from, to)));
    let cut = pairs.filter(|(from, to)| {
        is_up(&from.id) && is_up(&to.id) && status.reaches(to, from) == Some(false)
    });
    let cuts =
        cut.map(|(from, to)| Fault::at(Time::ZERO, Action::Cut { from: from.id, to: to.id }));
    let dying: BTreeSet<NodeId> = dying.iter().filter(|id| is_up(id)).copied().collect();
    let crash = |member| Fault::at(Time::ZERO + CRASH_AT, Action::crash(member));
    let algorithm: Algorithm =
        status.algorithm.parse().map_err(|problem: String| anyhow!(problem))?;
    let mut scenario = Scenario {
        algorithm: Some(algorithm),
        members: Some(MemberList::Listed(members.iter().map(|it| it.id.0).collect())),
        attr: members.iter().map(|it| (it.id.to_string(), attribute(it))).collect(),
        dead: down.iter().map(|id| id.0).collect(),
        leader: status.leader.filter(is_up).map(|leader| leader.0),
        until: Some(END),
        fault: cuts.chain(dying.into_iter().map(crash)).collect(),
        ..Scenario::default()
    };
    if is_quorum(status) {
        let ids = |wanted: fn(&MemberStatus) -> bool| {
            members.iter().filter(|it| wanted(it)).map(|it| it.id.0).collect()
        };
        scenario.quorum = Some(QuorumOptions {
            profile: Some(Profile::Lan),
            preemption: Some(Preemption::Never),
            witnesses: ids(|member| member.witness),
            reluctant: ids(|member| !member.eligible && !member.witness),
            ..QuorumOptions::default()
        });
    } else {
        scenario.mode = Some(Mode::Hardened);
        scenario.detector = Some(Span::from_millis(50));
        scenario.reliable = true;
    }
    Ok(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::testing;

    #[test]
    fn a_takeover_is_told_below_the_succession() {
        let status = testing::status(|status| {
            (status["succession"], status["next"]) = (json!([3, 2, 1]), json!(3));
            status["preemption"] =
                json!({ "policy": "never", "delay_ms": 0, "margin": 0, "tenure_ms": 0 });
        });
        let text = explanation(&status, &[]);
        let wanted = "
succession
  n3 priority 3
  n2 priority 2, leads
  n1 priority 1

n3 ranks higher, and n2 stays leader: preemption.policy is never
if n2 failed now, n3 would lead
";
        assert!(text.ends_with(wanted), "{text}");
    }

    #[test]
    fn what_follows_a_failure_is_simulated_even_if_another_member_is_next_in_a_transfer() {
        let next_is_3 = |status: &mut Value| {
            (status["succession"], status["next"]) = (json!([2, 1, 3]), json!(3));
        };
        let told = after_a_failure(&testing::status(next_is_3));
        assert_eq!(told.as_deref(), Some("if n2 failed now, n1 would lead"));
        let drained = testing::status(|status| {
            [0, 2].iter().for_each(|&it| status["members"][it]["eligible"] = json!(false));
        });
        let told = after_a_failure(&drained).expect("a sentence");
        assert!(told.starts_with("without n2, only a drained member could take over"), "{told}");
    }

    #[test]
    fn members_that_are_left_are_counted_as_people_count() {
        let status = testing::status(|status| status["algorithm"] = json!("bully"));
        let none_of = |left| {
            let dying = vec![NodeId(2)];
            Prediction { dying, leaders: Vec::new(), left }.describe(&status)
        };
        assert_eq!(none_of(0), "if n2 failed now, no member would be left");
        let text = none_of(1);
        assert!(text.contains("the only member left could not be elected; "), "{text}");
        let text = none_of(2);
        assert!(text.contains("none of the 2 members left could be elected; "), "{text}");
    }
}
