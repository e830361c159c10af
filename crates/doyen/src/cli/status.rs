//! `doyen status`: who leads, who is there, who hears whom.

mod view;

use std::io::{self, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use doyen::node::status::Status as Snapshot;

use super::Answer;
use super::client::{CannotReach, Client, NodeFlags, parse_time};
use super::terminal::Paint;

/// How often the node is asked anew while a leader is waited for.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Show who leads, who is there and who hears whom
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen status
  doyen status --node http://127.0.0.1:7400 --json
  doyen status --wait-leader --timeout 10s && ./deploy

Exit: 0 somebody leads, 1 nobody does, 3 the node cannot be reached, 4 nobody led in time.")]
pub(crate) struct Status {
    #[command(flatten)]
    node: NodeFlags,

    /// Wait until somebody leads
    #[arg(long)]
    wait_leader: bool,

    /// With --wait-leader: for how long at most
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
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(&status)?)?;
        } else {
            out.write_all(view::render(&status, Paint::for_stdout()).as_bytes())?;
        }
        Ok(if status.leader.is_some() { Answer::Yes } else { Answer::No })
    }
}

/// The status once somebody leads; nothing if nobody did in time. A node that cannot be reached may yet come up.
fn wait_for_leader(client: &Client, deadline: Instant) -> Result<Option<Snapshot>> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).max(AGAIN_AFTER);
        let problem = match client.status_within(left) {
            Ok(status) if status.leader.is_some() => return Ok(Some(status)),
            Ok(_) => "nobody is known to lead".to_owned(),
            Err(error) if error.is::<CannotReach>() => error.to_string(),
            Err(error) => return Err(error),
        };
        if Instant::now() >= deadline {
            eprintln!("doyen: --timeout: the time is over: {problem}");
            return Ok(None);
        }
        sleep(AGAIN_AFTER);
    }
}
