//! `doyen lock NAME -- COMMAND`: one holder of a lock at a time in the whole cluster, for programs anywhere.
//!
//! Waits for the lock, then runs the command under a [guardian](doyen::guardian), as `doyen run` does: the lock is the lease
//! under which it runs.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use doyen::guardian::FAILED;
use doyen::guardian::Handover;
use doyen::guardian::Hooks;
use doyen::guardian::lease_file::LeaseFile;
use doyen::lock::{Builder, Claim, ClaimState, Ending, LEASE, LockList, LockReport, Place};
use tokio::time::sleep;
use tracing::info;

use super::client::{CannotReach, Client, NodesFlags, parse_time};
use super::lease_holder::Node;
use super::node::{Log, LogFlags, unless_it_may_pass};
use super::run::{ContainFlags, cannot_execute, say_what_is_contained};
use super::supervise::{self, Signals, Supervision};
use super::{Answer, system, terminal};

/// How long a node takes to list its locks.
const LIST_TIMEOUT: Duration = Duration::from_secs(3);

/// The file descriptors of a client of locks with a guardian, and of its connections.
const LOCK_FILES: usize = 32;

/// How long the command has to stop if nothing else is said.
const GRACE: Duration = Duration::from_secs(10);

/// Run a command while it holds a lock: one holder at a time in the whole cluster
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen lock nightly-report --node n1:7400,n2:7400,n3:7400 -- ./report
  doyen lock migrate --wait 30s -- doyen fence /srv/orders/fence -- ./migrate
  doyen lock --list

The leader grants the lock; name every node that may lead. Any program may want one, a member or not. Those who wait are
served in order. The command's environment has DOYEN_TOKEN (a fencing token: higher with every grant), DOYEN_TERM and
DOYEN_LEASE_FILE. The lock is kept while the command runs, through failovers of the leader too. If it cannot be kept,
all processes of the command are gone before another program can hold it.

What it cannot promise: there is no replicated log. After a failover the new leader grants nothing for one lock lease
(10 s, and the possible error of clocks), in which holders and those who wait show it what they have. A waiting program
that finds the new leader later is told so, and queues at the end. Clients are believed: every program that reaches a
node over HTTP may take a lock. A program that was paused does not know that its lock is gone: what the lock protects
should refuse old tokens (`doyen fence`).

Exit: the exit code of the command, 128 + n if signal n ended it; 4 no lock within --wait, with the reason; 125 doyen
failed, or the lock was lost; 126 or 127 the command cannot be executed; 2 wrong usage or configuration.")]
pub(crate) struct Lock {
    #[command(flatten)]
    nodes: NodesFlags,

    #[command(flatten)]
    log: LogFlags,

    /// The lock: 1 to 64 letters, digits, `-`, `_` or `.`
    #[arg(value_name = "NAME", required_unless_present = "list")]
    name: Option<String>,

    /// List the locks that are held or waited for, and exit
    #[arg(long, conflicts_with_all = ["name", "command", "wait"])]
    list: bool,

    /// With --list: as JSON
    #[arg(long, requires = "list")]
    json: bool,

    /// Wait at most this long for the lock [default: as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    wait: Option<Duration>,

    /// How long the command has to stop after SIGTERM [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    grace: Option<Duration>,

    /// How long before the end of the lock's lease the command is killed [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    margin: Option<Duration>,

    /// What the lock's list calls this program [default: the command and the process id]
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,

    #[command(flatten)]
    contain: ContainFlags,

    /// The command and its arguments
    #[arg(required_unless_present = "list", last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Lock {
    pub(super) fn run(&self) -> Result<Answer> {
        let nodes = self.nodes.urls()?;
        match self.name.as_deref().filter(|_| !self.list) {
            None => self.print_list(&nodes),
            Some(name) => unless_it_may_pass(self.serve(name, nodes), Answer::Code(FAILED)),
        }
    }

    fn serve(&self, name: &str, nodes: Vec<String>) -> Result<Answer> {
        if let Some(code) = cannot_execute(&self.command[0]) {
            let _ = writeln!(io::stderr(), "doyen: cannot execute {}", self.command[0].display());
            return Ok(Answer::Code(code));
        }
        let builder = Builder::new(name, nodes)?
            .owner(&self.owner())
            .authorities(self.nodes.trust.authorities());
        let supervision = self.supervision(name)?;
        let filter = std::env::var_os("DOYEN_LOG").filter(|filter| !filter.is_empty());
        let filter = filter.as_ref().map_or("info".into(), |filter| filter.to_string_lossy());
        Log::check_filter(&filter).context("DOYEN_LOG")?;
        system::check_free_files(LOCK_FILES)?;
        let log = self.log.start(&filter)?;
        say_what_is_contained(&supervision.containment);
        let held = self.hold(name, builder, &supervision);
        // No other process uses it: its name has the number of this process.
        let _ = LeaseFile::remove(&supervision.lease_file);
        log.finish();
        held
    }

    fn owner(&self) -> String {
        let program = Path::new(&self.command[0]).file_name().unwrap_or_default();
        let usual = || format!("{}, process {}", program.display(), std::process::id());
        self.owner.clone().unwrap_or_else(usual)
    }

    fn supervision(&self, name: &str) -> Result<Supervision> {
        let lease = Duration::from_nanos(LEASE.as_nanos());
        let margin = self.margin.unwrap_or(lease / 10);
        anyhow::ensure!(
            margin <= lease / 2,
            "--margin: must be at most half of the lock's lease, 5s"
        );
        let file = format!("lock-{name}-{}.lease", std::process::id());
        Ok(Supervision {
            lease,
            margin,
            handover: Handover::create().context("cannot share memory with the guardian")?,
            hooks: Hooks::default(),
            log_format: self.log.format(),
            lease_file: supervise::folder_in_memory()?.join(file),
            grace: self.grace.unwrap_or(GRACE),
            containment: self.contain.containment()?,
            command: self.command.clone(),
            once: true,
            give_up_after: None,
        })
    }

    /// Waits for the lock, and runs the command under it.
    fn hold(&self, name: &str, builder: Builder, supervision: &Supervision) -> Result<Answer> {
        let file = supervise::create_lease_file(&supervision.lease_file)?;
        let claim = builder.lease_file(file).start()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let held = runtime.block_on(async {
            if let Some(answer) = self.wait_for(name, &claim).await? {
                claim.release().await;
                return Ok(answer);
            }
            let mut state = claim.watch();
            let code = match supervise::serve_under(Node::of_lock(claim), supervision).await {
                Ok(code) => code,
                // The command may still run: the guardian ends it when this process is gone, and the lock expires.
                Err(error) => {
                    system::complain(&error);
                    return Ok(Answer::Code(FAILED));
                }
            };
            // The claim is given up by now. If no leader hears of it, it expires.
            let is_over = |state: &ClaimState| matches!(state, ClaimState::Over(_));
            let _ = tokio::time::timeout(LIST_TIMEOUT, state.wait_for(is_over)).await;
            Ok(Answer::Code(u8::try_from(code).unwrap_or(FAILED)))
        });
        runtime.shutdown_background();
        held
    }

    /// Waits until the lock is there; the answer if it is not.
    async fn wait_for(&self, name: &str, claim: &Claim) -> Result<Option<Answer>> {
        let mut signals = Signals::new()?;
        let mut state = claim.watch();
        let limit = async {
            match self.wait {
                Some(wait) => sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(limit);
        let is_decided = |state: &ClaimState| !matches!(state, ClaimState::Waiting { .. });
        loop {
            tokio::select! {
                decided = state.wait_for(is_decided) => {
                    let decided = decided.map(|state| state.clone());
                    return match decided {
                        Ok(ClaimState::Held(held)) => {
                            let (term, token) = (held.fence.term.0, held.token.0);
                            info!(event = "lock-held", lock = name, term, token, "holds lock {name} (term {term}, token {token})");
                            Ok(None)
                        }
                        Ok(ClaimState::Over(Ending::Refused(why))) => Err(anyhow::anyhow!(why)),
                        _ => Ok(Some(Answer::Code(FAILED))),
                    };
                }
                () = &mut limit => {
                    let why = match claim.state() {
                        ClaimState::Waiting { obstacle: Some(why), .. } => why,
                        ClaimState::Waiting { ticket: None, .. } => "no node has answered".to_owned(),
                        _ => "the lock is not free".to_owned(),
                    };
                    system::note(format_args!("--wait: {why}"));
                    return Ok(Some(Answer::Limit));
                }
                (signal, ends) = signals.next() => if ends {
                    return Ok(Some(Answer::Code(128 + signal as u8)));
                },
            }
        }
    }

    /// Of the first node that answers as the leader.
    fn print_list(&self, nodes: &[String]) -> Result<Answer> {
        let mut problems = Vec::new();
        for node in nodes {
            let authorities = self.nodes.trust.authorities();
            let client = Client::new(node.clone(), LIST_TIMEOUT, authorities)?;
            match client.get::<LockList>("/v1/locks") {
                Ok(list) => {
                    terminal::print(self.json, &list, render)?;
                    return Ok(Answer::Yes);
                }
                Err(error) => problems.push(error),
            }
        }
        Err(unanswered(problems))
    }
}

/// Why no node has listed the locks. A node that cannot be reached may be the leader that the others name.
fn unanswered(problems: Vec<anyhow::Error>) -> anyhow::Error {
    let (silent, answers): (Vec<_>, Vec<_>) =
        problems.into_iter().partition(anyhow::Error::is::<CannotReach>);
    let silent: Vec<String> = silent.iter().map(ToString::to_string).collect();
    // The last one that has answered knows the leader best.
    match (answers.into_iter().next_back(), silent.is_empty()) {
        (Some(answer), true) => answer,
        (Some(answer), false) => {
            CannotReach::told(format!("{answer}; {}", silent.join("; "))).into()
        }
        (None, _) => CannotReach::told(silent.join("; ")).into(),
    }
}

fn render(list: &LockList) -> String {
    let mut lines = Vec::new();
    match (list.settling, list.locks.is_empty()) {
        (true, _) => lines.push(
            "The leader is new and grants nothing yet; some locks may not be listed.".to_owned(),
        ),
        (false, true) => lines.push("No lock is held or waited for.".to_owned()),
        (false, false) => {}
    }
    for LockReport { name, holder, waiters } in &list.locks {
        lines.push(match holder {
            Some(holder) => format!("{name}: {} (token {})", holder.owner, holder.token),
            None if list.settling => format!("{name}: holder not known yet"),
            None => format!("{name}: not held"),
        });
        let waiters = (1..).zip(waiters).map(|(number, waiter)| {
            let Place { term, number: ticket } = waiter.ticket;
            format!("  {number}. {} (ticket {term}.{ticket})", waiter.owner)
        });
        lines.extend(waiters);
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_leader_does_not_know_yet_that_a_lock_is_not_held() {
        let listed = |settling| {
            let lock = LockReport { name: "a".to_owned(), holder: None, waiters: Vec::new() };
            render(&LockList { term: 3, settling, locks: vec![lock] })
        };
        assert_eq!(listed(false), "a: not held\n");
        assert!(listed(true).ends_with("listed.\na: holder not known yet\n"));
    }

    #[test]
    fn a_node_that_cannot_be_reached_is_named_beside_what_another_one_says() {
        let silent = || anyhow::Error::from(CannotReach::new("http://n4:7400", "refused"));
        let told = unanswered(vec![silent(), anyhow::anyhow!("n3 is not the leader; n4 is")]);
        let wanted = "n3 is not the leader; n4 is; cannot reach http://n4:7400: refused";
        assert_eq!((told.to_string().as_str(), told.is::<CannotReach>()), (wanted, true));
        let told = unanswered(vec![silent()]);
        assert_eq!(told.to_string(), "cannot reach http://n4:7400: refused");
    }
}
