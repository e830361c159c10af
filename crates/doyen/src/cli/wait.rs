//! `doyen wait`: waits until a cluster is as a script needs it.

use std::io::Write as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use doyen::clock;
use doyen::node::status::Status;
use doyen_core::members::{Incarnation, NodeId, Term};

use super::client::{self, CannotReach, NodeFlags, parse_time};
use super::progress::Progress;
use super::{Answer, system};

/// How often the node is asked.
const POLL: Duration = Duration::from_millis(100);

/// Wait until there is a leader, until a given member leads, or until a node can be relied on
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen wait && ./deploy                          until the node knows a leader
  doyen wait --leader n2 --timeout 2m             until n2 leads
  systemctl restart doyen && doyen wait --ready   then the next member may be restarted

Exit: 0 it came true, 4 the timeout passed.")]
pub(crate) struct Wait {
    #[command(flatten)]
    node: NodeFlags,

    /// Wait until this member leads, by name or id
    #[arg(long, value_name = "MEMBER")]
    leader: Option<String>,

    /// Wait until the node has followed one leader, or led, for long enough to be a successor
    #[arg(long, conflicts_with = "leader")]
    ready: bool,

    /// Wait at most this long
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_time)]
    timeout: Duration,
}

impl Wait {
    /// A node that cannot be reached may still come up.
    pub(crate) fn run(self) -> Result<Answer> {
        let client = self.node.connect_reader()?;
        let deadline = Instant::now() + self.timeout;
        let progress = Progress::spinner("waiting");
        let mut steady = Steady { known: None, since: Instant::now() };
        loop {
            let left = deadline.saturating_duration_since(Instant::now()).max(POLL);
            let problem = match client.status_within(left) {
                Ok(status) => match self.lacks(&status, &mut steady)? {
                    None => {
                        drop(progress);
                        let leader = status.leader.map(|id| status.name_of(id)).unwrap_or_default();
                        writeln!(anstream::stdout(), "{leader} leads in term {}", status.term)?;
                        return Ok(Answer::Yes);
                    }
                    Some(problem) => problem,
                },
                Err(error) if error.is::<CannotReach>() => {
                    steady.sees(None);
                    error.to_string()
                }
                Err(error) => return Err(error),
            };
            if Instant::now() >= deadline {
                drop(progress);
                system::note(format_args!(
                    "not within {}: {problem}",
                    clock::in_days(self.timeout)
                ));
                return Ok(Answer::Limit);
            }
            progress.set_message(problem);
            sleep(POLL);
        }
    }

    /// What is not yet as it should be.
    fn lacks(&self, status: &Status, steady: &mut Steady) -> Result<Option<String>> {
        let wanted = client::members(status, "--leader", self.leader.as_slice())?.pop();
        steady.sees(status.leader.map(|leader| (status.incarnation, leader, status.term)));
        Ok(match (status.leader, wanted) {
            (None, _) => Some(match status.paused() {
                Some(paused) => format!("no leader is known; {paused}"),
                None => "no leader is known".to_owned(),
            }),
            (Some(leader), Some(wanted)) if leader != wanted => {
                Some(format!("{} leads, not {}", status.name_of(leader), status.name_of(wanted)))
            }
            (Some(leader), _)
                if self.ready && steady.since.elapsed() < settling(status, leader) =>
            {
                Some(format!("{} has just begun to follow {}", status.name, status.name_of(leader)))
            }
            (Some(_), _) => None,
        })
    }
}

/// Since when the node has known the same leader of the same term, in the same process.
struct Steady {
    known: Option<(Incarnation, NodeId, Term)>,
    since: Instant,
}

impl Steady {
    fn sees(&mut self, known: Option<(Incarnation, NodeId, Term)>) {
        if self.known != known {
            *self = Self { known, since: Instant::now() };
        }
    }
}

/// How long it takes after a start until the leader counts a member among its successors: some heartbeats, which take
/// longer where messages do.
fn settling(status: &Status, leader: NodeId) -> Duration {
    let round_trip = status.member(leader).and_then(|member| member.rtt_us).unwrap_or_default();
    Duration::from_secs(1).max(Duration::from_micros(40 * round_trip))
}
