//! `doyen history`: recent changes of leadership.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use doyen::node::status::Entry;

use super::Answer;
use super::client::NodeFlags;
use super::terminal::{FAINT, styled, timestamp};

/// Show recent changes of leadership and their reasons
#[derive(Args, Debug)]
#[command(after_help = "\
A node keeps the last 256 changes that it saw, also those before a restart; its log keeps them
longer. Times are from its wall clock.
Exit: 0 there are changes, 1 there are none, 3 the node cannot be reached.")]
pub(crate) struct History {
    #[command(flatten)]
    node: NodeFlags,

    /// Show only the latest N changes
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Print one JSON array, as /v1/history does
    #[arg(long)]
    json: bool,
}

impl History {
    pub(crate) fn run(self) -> Result<Answer> {
        let limit = self.limit.map_or_else(String::new, |limit| format!("?limit={limit}"));
        let entries: Vec<Entry> = self.node.connect()?.get(&format!("/v1/history{limit}"))?;
        let mut out = anstream::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(&entries)?)?;
        } else {
            for entry in &entries {
                writeln!(out, "{}", line(entry))?;
            }
        }
        Ok(if entries.is_empty() { Answer::No } else { Answer::Yes })
    }
}

pub(crate) fn line(entry: &Entry) -> String {
    format!("{}  {}", styled(FAINT, timestamp(entry.at_unix_ms)), entry.text)
}
