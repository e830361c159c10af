//! `doyen history`: what happened, and why.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use doyen::node::status::Entry;

use super::Answer;
use super::client::NodeFlags;
use super::terminal::{Paint, moment};

/// Show the latest changes of leadership, and why each happened
#[derive(Args, Debug)]
#[command(after_help = "\
A node remembers what it took part in or learnt of since it started, up to 256 changes: a restart
forgets them. Its log keeps them for longer. Times are by its wall clock.
Exit: 0 something happened, 1 nothing did, 3 the node cannot be reached.")]
pub(crate) struct History {
    #[command(flatten)]
    node: NodeFlags,

    /// At most so many, the latest
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
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(&entries)?)?;
        } else {
            let paint = Paint::for_stdout();
            for entry in &entries {
                writeln!(out, "{}", line(entry, paint))?;
            }
        }
        Ok(if entries.is_empty() { Answer::No } else { Answer::Yes })
    }
}

/// An entry in a line.
pub(crate) fn line(entry: &Entry, paint: Paint) -> String {
    let at = paint.faint(&moment(entry.at_unix_ms));
    format!("{at}  {}", entry.text)
}
