//! `doyen history`: recent changes of leadership, as one member or as all of them saw them.

use anyhow::Result;
use clap::Args;
use doyen::node::status::Entry;
use serde::Serialize;

use super::awaited::{ask_one, in_parallel};
use super::client::{CannotReach, OperatorFlags, path_to};
use super::terminal::{FAINT, styled, timestamp};
use super::{Answer, system, terminal};

/// Show recent changes of leadership and their reasons
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen history
  doyen history n2             as n2 saw it, asked through this node
  doyen history --all          as all members saw it, by time

A node keeps the last 256 changes that it saw, also those before a restart; its log keeps them
longer. Times are from the wall clock of each member.
Exit: 0 there are changes, 1 there are none, 3 the node or a member cannot be reached; with --all the
changes of the others are shown nevertheless.")]
pub(crate) struct History {
    /// The member to ask, by name or id [default: the node itself]
    #[arg(value_name = "MEMBER", conflicts_with = "all")]
    member: Option<String>,

    /// Ask all members
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    operator: OperatorFlags,

    /// Show only the latest N changes
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Print one JSON array, as /v1/history does; with --all, each entry has `member`
    #[arg(long)]
    json: bool,
}

/// A change, and which member saw it.
#[derive(Debug, Serialize)]
struct Seen {
    member: String,
    #[serde(flatten)]
    entry: Entry,
}

impl History {
    pub(crate) fn run(self) -> Result<Answer> {
        if self.all {
            return self.run_for_all();
        }
        let member = self.member.as_ref();
        let client = self.operator.connect_to(member)?;
        let path = path_to(&self.path(), member)?;
        let entries: Vec<Entry> = ask_one(member.map(String::as_str), || client.get(&path))?;
        self.print(&entries, line)?;
        Ok(if entries.is_empty() { Answer::No } else { Answer::Yes })
    }

    fn run_for_all(&self) -> Result<Answer> {
        let client = self.operator.connect_admin()?;
        let members = client.status()?.members;
        let names: Vec<String> = members.into_iter().map(|member| member.name).collect();
        let path = self.path();
        let answers = in_parallel(&names, |name| -> Result<Vec<Entry>> {
            client.get(&path_to(&path, Some(name))?)
        });
        let (mut seen, mut missing) = (Vec::new(), Vec::new());
        for (member, answer) in names.iter().zip(answers) {
            match answer {
                Ok(entries) => seen.extend(
                    entries.into_iter().map(|entry| Seen { member: member.clone(), entry }),
                ),
                Err(error) => missing.push(format!("{error:#}")),
            }
        }
        seen.sort_by_key(|seen| seen.entry.at_unix_ms);
        seen.drain(..seen.len().saturating_sub(self.limit.unwrap_or(usize::MAX)));
        let width = names.iter().map(String::len).max().unwrap_or(0);
        self.print(&seen, |Seen { member, entry }| {
            let at = styled(FAINT, timestamp(entry.at_unix_ms));
            format!("{at}  {member:width$}  {}", entry.text)
        })?;
        for missing in &missing {
            system::note(format_args!("{missing}"));
        }
        match (missing.len(), seen.len()) {
            (0, 0) => Ok(Answer::No),
            (0, _) => Ok(Answer::Yes),
            _ => Ok(Answer::Code(CannotReach::EXIT)),
        }
    }

    fn path(&self) -> String {
        self.limit
            .map_or_else(|| "/v1/history".to_owned(), |limit| format!("/v1/history?limit={limit}"))
    }

    fn print<T: Serialize>(&self, entries: &[T], line: impl Fn(&T) -> String) -> Result<()> {
        terminal::print(self.json, &entries, |entries| {
            entries.iter().map(|entry| line(entry) + "\n").collect()
        })
    }
}

pub(crate) fn line(entry: &Entry) -> String {
    format!("{}  {}", styled(FAINT, timestamp(entry.at_unix_ms)), entry.text)
}
