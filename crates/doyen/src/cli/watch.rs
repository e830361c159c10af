//! `doyen watch`: changes as they happen.
//!
//! A broken connection is opened again, and the node sends what was missed. Only the first connection must succeed: if
//! the node is not there at the start, that is usually a mistake.

use std::io::Write;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use doyen::clock::unix_ms;
use doyen::node::status::{Entry, Status};
use doyen_core::protocol::Role;
use serde_json::{Value, json};

use super::client::{AdminClient, CannotReach, NodeFlags, Stream};
use super::server_sent::{Event, read_event};
use super::terminal::{FAINT, styled, timestamp};
use super::{Answer, system};

const RECONNECT_AFTER: Duration = Duration::from_secs(1);

/// Show changes as they happen, until interrupted
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen watch
  doyen watch --json | jq 'select(.event == \"change\") | .data.text'

With --json every line is {\"event\": \"snapshot\" or \"change\", \"id\": …, \"data\": …}: a status or an
entry of the history. A snapshot comes first, and after every other change.
Exit: 3 the node cannot be reached.")]
pub(crate) struct Watch {
    #[command(flatten)]
    node: NodeFlags,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

impl Watch {
    pub(crate) fn run(self) -> Result<Answer> {
        let client = self.node.connect_reader()?;
        let mut viewer = Viewer { json: self.json, shown: None, leader_told: false };
        let mut last_id = None;
        let mut stream = client.watch(None)?;
        loop {
            // However a stream breaks, it is opened again.
            while let Ok(Some(event)) = read_event(&mut stream.events) {
                viewer.show(&event, &mut anstream::stdout().lock())?;
                last_id = Some(event.id);
            }
            system::note(format_args!("lost {}; reconnecting", stream.place));
            stream = reconnect(&client, last_id.as_deref())?;
            system::note(format_args!("reconnected to {}", stream.place));
        }
    }
}

fn reconnect(client: &AdminClient, last_id: Option<&str>) -> Result<Stream> {
    loop {
        sleep(RECONNECT_AFTER);
        match client.watch(last_id) {
            Err(error) if error.is::<CannotReach>() => {}
            other => return other,
        }
    }
}

#[derive(Debug)]
struct Viewer {
    json: bool,
    /// The latest snapshot.
    shown: Option<Status>,
    /// Whether a change was printed since then: it names the leader, so the next snapshot need not.
    leader_told: bool,
}

impl Viewer {
    fn show(&mut self, event: &Event, out: &mut impl Write) -> Result<()> {
        if self.json {
            let data: Value = serde_json::from_str(&event.data)?;
            writeln!(out, "{}", json!({ "event": event.name, "id": event.id, "data": data }))?;
        } else {
            for (at, line) in self.lines(event)? {
                writeln!(out, "{}  {line}", styled(FAINT, timestamp(at)))?;
            }
        }
        Ok(out.flush()?)
    }

    fn lines(&mut self, event: &Event) -> Result<Vec<(u64, String)>> {
        match event.name.as_str() {
            "change" => {
                let entry: Entry = serde_json::from_str(&event.data)?;
                let name = self.shown.as_ref().map_or("", |status| &status.name);
                self.leader_told = true;
                Ok(vec![(entry.at_unix_ms, format!("{name} {}", entry.text))])
            }
            "snapshot" => {
                let status: Status = serde_json::from_str(&event.data)?;
                let now = unix_ms();
                let lines = match &self.shown {
                    Some(before) => changes(before, &status, self.leader_told),
                    None => vec![summary(&status)],
                };
                (self.shown, self.leader_told) = (Some(status), false);
                Ok(lines.into_iter().map(|line| (now, line)).collect())
            }
            // A later version may send more kinds of events.
            _ => Ok(Vec::new()),
        }
    }
}

fn summary(status: &Status) -> String {
    let Status { name, term, .. } = status;
    match status.leader {
        Some(leader) if leader == status.id => format!("{name} leads in term {term}"),
        Some(leader) => format!("{name} follows {} in term {term}", status.name_of(leader)),
        None => format!("{name} knows no leader (term {term})"),
    }
}

fn changes(before: &Status, after: &Status, leader_told: bool) -> Vec<String> {
    let name = &after.name;
    let mut lines = Vec::new();
    if before.incarnation != after.incarnation {
        lines.push(format!("{name} restarted (start {})", after.incarnation.0));
    }
    if before.leader != after.leader && !leader_told {
        lines.push(summary(after));
    }
    if before.role != after.role && matches!(after.role, Role::Candidate | Role::Retiring) {
        lines.push(format!("{name} is now {}", after.role));
    }
    if before.lease.is_some() && after.lease.is_none() {
        lines.push(format!("{name} no longer holds a lease"));
    }
    if before.drained != after.drained {
        let drained = if after.drained { "is drained" } else { "is no longer drained" };
        lines.push(format!("{name} {drained}"));
    }
    match (before.pause, after.pause) {
        (one, other) if one.map(|it| it.number) == other.map(|it| it.number) => {}
        (_, None) => lines.push("elections are no longer paused".to_owned()),
        (_, Some(_)) => lines.extend(after.paused()),
    }
    let preferred = |status: &Status| status.preference.map(|preferred| preferred.member);
    match (preferred(before), preferred(after)) {
        (one, other) if one == other => {}
        (_, Some(member)) => lines.push(format!("{} is preferred", after.name_of(member))),
        (_, None) => lines.push("no member is preferred any more".to_owned()),
    }
    lines.extend(member_changes(before, after));
    lines
}

fn member_changes(before: &Status, after: &Status) -> Vec<String> {
    let mut lines = Vec::new();
    for (was, is) in before.members.iter().zip(&after.members) {
        let name = &is.name;
        if was.priority != is.priority {
            lines.push(format!("{name} now has priority {}", is.priority));
        }
        if was.eligible != is.eligible {
            let may = if is.eligible { "is eligible again" } else { "is no longer eligible" };
            lines.push(format!("{name} {may}"));
        }
        if was.recent_failures < is.recent_failures {
            lines.extend(is.penalty().map(|penalty| format!("{name} {penalty}")));
        }
        // A node that has just started may not have been told yet.
        if was.recent_failures > 0
            && is.recent_failures == 0
            && before.incarnation == after.incarnation
        {
            lines.push(format!("{name} is no longer penalised for failing as leader"));
        }
        match is.rejection().filter(|_| was.rejected_for() != is.rejected_for()) {
            Some(why) => lines.push(format!("{name} is rejected: it {why}")),
            None if was.rejected_for().is_some() && is.rejected_for().is_none() => {
                lines.push(format!("{name} is no longer rejected"));
            }
            None => {}
        }
        for (other_was, other_is) in before.members.iter().zip(&after.members) {
            let other = &other_is.name;
            match (before.reaches(was, other_was), after.reaches(is, other_is)) {
                (Some(true), Some(false)) => {
                    lines.push(format!("{name} no longer reaches {other}"));
                }
                (Some(false), Some(true)) => lines.push(format!("{name} reaches {other} again")),
                _ => {}
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::testing;

    #[test]
    fn why_a_member_is_rejected_is_a_change() {
        let [well, key, version] = [json!(null), json!("key"), json!("version")]
            .map(|reason| testing::status(|status| status["members"][1]["rejected"] = reason));
        let is_rejected =
            ["n2 is rejected: it does not use a key of this node: compare the key files"];
        assert_eq!(changes(&well, &key, false), is_rejected);
        assert_eq!(changes(&key, &key, false), [""; 0]);
        let other = "n2 is rejected: it has a protocol version that this node cannot read: finish the upgrade";
        assert_eq!(changes(&key, &version, false), [other]);
        assert_eq!(changes(&version, &well, false), ["n2 is no longer rejected"]);
    }
}
