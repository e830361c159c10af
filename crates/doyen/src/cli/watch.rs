//! `doyen watch`: changes as they happen.
//!
//! If the connection breaks it is made again, and the node tells what was missed meanwhile. Only the first connection
//! must succeed: a node that is not there from the beginning is a mistake more often than not.

mod events;

use std::io::{self, BufRead, Write};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::Args;
use doyen::node::status::{Entry, Status};
use doyen_core::protocol::Role;
use serde_json::{Value, json};

use super::Answer;
use super::client::{CannotReach, Client, NodeFlags, Stream};
use super::terminal::{Paint, moment};
use events::{Event, Events};

/// How long a node that has gone is waited for before it is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Show changes as they happen, until interrupted
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen watch
  doyen watch --json | jq 'select(.event == \"change\") | .data.text'

With --json every line is {\"event\": \"snapshot\" or \"change\", \"id\": …, \"data\": …}: a status, or an
entry of the history. A snapshot comes first, and whenever something else has changed.
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
        let client = self.node.connect()?;
        let mut viewer =
            Viewer { json: self.json, paint: Paint::for_stdout(), shown: None, told: false };
        let mut last = None;
        let mut stream = client.watch(None)?;
        loop {
            follow(&mut stream, &mut viewer, &mut last)?;
            eprintln!("doyen: {} is gone; waiting for it", client.url());
            stream = reconnect(&client, last.as_deref())?;
            eprintln!("doyen: {} is back", client.url());
        }
    }
}

/// Shows what comes, until the stream breaks.
fn follow(stream: &mut impl BufRead, viewer: &mut Viewer, last: &mut Option<String>) -> Result<()> {
    for event in Events::new(stream) {
        // However a stream breaks, it is opened again.
        let Ok(event) = event else { break };
        viewer.show(&event, &mut io::stdout().lock())?;
        *last = Some(event.id);
    }
    Ok(())
}

fn reconnect(client: &Client, last: Option<&str>) -> Result<Stream> {
    loop {
        sleep(AGAIN_AFTER);
        match client.watch(last) {
            Err(error) if error.is::<CannotReach>() => {}
            other => return other,
        }
    }
}

/// Shows events.
#[derive(Debug)]
struct Viewer {
    json: bool,
    paint: Paint,
    /// The latest snapshot.
    shown: Option<Status>,
    /// Whether changes have been told since, so that the next snapshot is no news as far as they go.
    told: bool,
}

impl Viewer {
    fn show(&mut self, event: &Event, out: &mut impl Write) -> Result<()> {
        if self.json {
            let data: Value = serde_json::from_str(&event.data)?;
            writeln!(out, "{}", json!({ "event": event.name, "id": event.id, "data": data }))?;
        } else {
            for line in self.lines(event)? {
                writeln!(out, "{line}")?;
            }
        }
        // Whoever reads this wants it now.
        Ok(out.flush()?)
    }

    fn lines(&mut self, event: &Event) -> Result<Vec<String>> {
        match event.name.as_str() {
            "change" => {
                let entry: Entry = serde_json::from_str(&event.data)?;
                let name = self.shown.as_ref().map_or("", |status| &status.name);
                let at = self.paint.faint(&moment(entry.at_unix_ms));
                self.told = true;
                Ok(vec![format!("{at}  {name} {}", entry.text)])
            }
            "snapshot" => {
                let status: Status = serde_json::from_str(&event.data)?;
                let at = self.paint.faint(&moment(now()));
                let news = match &self.shown {
                    Some(before) => news(before, &status, self.told),
                    None => vec![summary(&status)],
                };
                (self.shown, self.told) = (Some(status), false);
                Ok(news.into_iter().map(|line| format!("{at}  {line}")).collect())
            }
            // A later version may have more to tell.
            _ => Ok(Vec::new()),
        }
    }
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64
}

fn summary(status: &Status) -> String {
    let Status { name, term, .. } = status;
    match status.leader {
        Some(leader) if leader == status.id => format!("{name} leads in term {term}"),
        Some(leader) => format!("{name} follows {} in term {term}", status.name_of(leader)),
        None => format!("{name} follows nobody, and the term is {term}"),
    }
}

/// What is different, in words; but for the leader, if `told` of it already.
fn news(before: &Status, after: &Status, told: bool) -> Vec<String> {
    let name = &after.name;
    let mut news = Vec::new();
    if before.incarnation != after.incarnation {
        news.push(format!("{name} has started anew (start {})", after.incarnation.0));
    }
    if before.leader != after.leader && !told {
        news.push(summary(after));
    }
    if before.role != after.role && matches!(after.role, Role::Candidate | Role::Retiring) {
        news.push(format!("{name} is {} now", after.role));
    }
    if before.lease.is_some() && after.lease.is_none() {
        news.push(format!("{name} holds no lease any more"));
    }
    if before.drained != after.drained {
        let drained = if after.drained { "is drained" } else { "is not drained any more" };
        news.push(format!("{name} {drained}"));
    }
    let preferred = |status: &Status| status.preference.map(|preferred| preferred.member);
    match (preferred(before), preferred(after)) {
        (one, other) if one == other => {}
        (_, Some(member)) => news.push(format!("{} is preferred", after.name_of(member))),
        (_, None) => news.push("nobody is preferred any more".to_owned()),
    }
    news.extend(news_of_members(before, after));
    news
}

fn news_of_members(before: &Status, after: &Status) -> Vec<String> {
    let mut news = Vec::new();
    for (was, is) in before.members.iter().zip(&after.members) {
        let name = &is.name;
        if was.priority != is.priority {
            news.push(format!("{name} has the priority {} now", is.priority));
        }
        if was.eligible != is.eligible {
            let may = if is.eligible { "would lead again" } else { "would not lead" };
            news.push(format!("{name} {may}"));
        }
        if was.recent_failures < is.recent_failures
            && let Some(penalty) = is.penalty()
        {
            news.push(format!("{name} {penalty}"));
        }
        // Who has just started may not have been told yet.
        if was.recent_failures > 0
            && is.recent_failures == 0
            && before.incarnation == after.incarnation
        {
            news.push(format!("the penalty of {name} has decayed"));
        }
        if is.config_mismatch && !was.config_mismatch {
            news.push(format!("{name} is ignored: its configuration differs"));
        }
        for (other_was, other_is) in before.members.iter().zip(&after.members) {
            let other = &other_is.name;
            match (before.reaches(was, other_was), after.reaches(is, other_is)) {
                (Some(true), Some(false)) => {
                    news.push(format!("{name} does not hear {other} any more"));
                }
                (Some(false), Some(true)) => news.push(format!("{name} hears {other} again")),
                _ => {}
            }
        }
    }
    news
}
