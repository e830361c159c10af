//! `doyen rejoin`: a member that has lost its state gets a new one from what the other members know of it.
//!
//! The safety rules are the core's (`session/rejoin.rs`, `quorum/recovery.rs`). Here a node runs until they are met, without
//! HTTP and without anything that runs under a lease, and stops. What it has stored by then is a state like any other; if it
//! is interrupted, the state is marked, and the next start continues.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use doyen::clock;
use doyen::config::Configuration;
use doyen::node::status::Status;
use doyen::node::{Builder, Running};
use doyen_core::members::Incarnation;
use tokio::signal::unix::{SignalKind, signal};

use super::Answer;
use super::client::parse_time;
use super::node::{ConfigFlags, unless_it_may_pass};
use super::system;

/// Bring back a member whose state is lost, damaged or an old copy
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen rejoin --config orders-n3/doyen.toml && doyen node --config orders-n3/doyen.toml
  sudo -u doyen doyen rejoin --config /var/lib/doyen/orders/doyen.toml && \\
      systemctl start doyen@orders

It asks every other member what it has stored about this one, so all of them must be up, and this one must not run. It
stores a new state and ends; then the node is started as ever. A valid state is kept and is never replaced.

Exit: 0 rejoined; 1 it cannot for a reason that may pass (a port that is in use, a full disk); 2 it cannot: the
configuration or the keys are wrong, or the state is valid; 4 the timeout passed; 130 interrupted.")]
pub(crate) struct Rejoin {
    #[command(flatten)]
    config: ConfigFlags,

    /// Wait at most this long for the other members [default: until all have answered]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Duration>,
}

impl Rejoin {
    pub(super) fn run(&self) -> Result<Answer> {
        let configuration = self.config.load()?;
        check_user(&configuration.settings.state_dir)?;
        let rejoin = |configuration| self.rejoin(configuration);
        unless_it_may_pass(self.config.prepare_and_serve(configuration, rejoin), Answer::No)
    }

    fn rejoin(&self, configuration: Configuration) -> Result<Answer> {
        let state_dir = configuration.settings.state_dir.clone();
        let running = Builder::new(configuration).rejoin(true).start()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let status = match runtime.block_on(until_rejoined(running, self.timeout))? {
            Ended::Rejoined(status) => status,
            Ended::TimedOut(status) => {
                let missing = status.rejoin().unwrap_or_default();
                system::note(format_args!(
                    "not within {}: {} {missing}",
                    clock::in_days(self.timeout.unwrap_or_default()),
                    status.name
                ));
                return Ok(Answer::Limit);
            }
            Ended::Interrupted => return Ok(Answer::Interrupted),
        };
        io::stdout().write_all(self.report(&status, &state_dir).as_bytes())?;
        Ok(Answer::Yes)
    }

    /// What it has learnt, and what comes next.
    fn report(&self, status: &Status, state_dir: &Path) -> String {
        let Status { name, cluster, term, .. } = status;
        let others = status.members.iter().filter(|member| member.id != status.id);
        let others: Vec<&str> = others.map(|member| &*member.name).collect();
        let config = self.config.config.as_ref();
        let config = config.map_or(String::new(), |path| format!(" --config {}", path.display()));
        format!(
            "{name} has rejoined {cluster}: stored by {}; it votes in no term up to {term}.\n\
             The new state is in {}. Start the node now:\n  doyen node{config}\n",
            others.join(", "),
            state_dir.display(),
        )
    }
}

/// A state that root creates is of no use to a node that runs as another user.
fn check_user(state_dir: &Path) -> Result<()> {
    let owner = state_dir.ancestors().find_map(|folder| fs::metadata(folder).ok());
    let owner = owner.map_or(0, |folder| folder.uid());
    if rustix::process::geteuid().is_root() && owner != 0 {
        bail!(
            "{} belongs to the user {owner}, and the node runs as that user: rejoin as that user (`sudo -u '#{owner}' doyen rejoin …`)",
            state_dir.display()
        );
    }
    Ok(())
}

enum Ended {
    Rejoined(Arc<Status>),
    TimedOut(Arc<Status>),
    Interrupted,
}

/// Waits until the member has rejoined, and stops the node in any case.
async fn until_rejoined(running: Running, timeout: Option<Duration>) -> Result<Ended> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let handle = running.handle().clone();
    let mut published = handle.watch();
    let ended = running.ended();
    tokio::pin!(ended);
    let deadline = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    // Before its first snapshot a node has no incarnation.
    let is_member =
        |status: &Arc<Status>| !status.rejoining && status.incarnation != Incarnation::default();
    let result = tokio::select! {
        failed = &mut ended => {
            failed?;
            bail!("the node stopped before it had rejoined");
        }
        Ok(status) = published.wait_for(is_member) => Ended::Rejoined(Arc::clone(&status)),
        () = deadline => Ended::TimedOut(handle.status()),
        _ = terminate.recv() => Ended::Interrupted,
        _ = interrupt.recv() => Ended::Interrupted,
    };
    handle.stop(Duration::ZERO);
    ended.await?;
    Ok(result)
}
