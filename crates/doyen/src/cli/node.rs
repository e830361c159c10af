//! `doyen node`: one member, until it is told to stop.
//!
//! The loop of the election has a thread of its own; this one serves HTTP and waits for signals. SIGTERM and SIGINT
//! have the node hand over and end, a second one ends it at once, SIGHUP has it read its keys again.

mod flags;
mod log;

use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use doyen::api::{self, Admin, Limits};
use doyen::clock;
use doyen::config::{Configuration, Settings};
use doyen::node::{self, Failure, Handle, Running};
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use super::Answer;

pub(super) use flags::Node;
use log::Log;

impl Node {
    pub(super) fn run(&self) -> Result<Answer> {
        let configuration = match self.settings()? {
            flags::Wanted::Run(configuration) => *configuration,
            flags::Wanted::Told => return Ok(Answer::Yes),
        };
        let log = Log::start(self.log_format)?;
        if self.while_stdin_is_open {
            end_with_stdin();
        }
        let served = serve(configuration, self.rejoin);
        log.finish();
        served
    }
}

/// Runs the node and its HTTP interface to the end. What keeps it from starting is an error; that it had to stop is its
/// answer.
fn serve(configuration: Configuration, rejoin: bool) -> Result<Answer> {
    let Settings { http, grace, .. } = configuration.settings;
    let admin = Admin::of(&configuration.settings);
    let listener = http.map(|address| {
        let failed = |error| {
            anyhow!("cannot serve HTTP on {address}: {error}{}", node::hint_if_taken(&error))
        };
        TcpListener::bind(address).map_err(failed)
    });
    let listener = listener.transpose()?;
    let introduction = introduction(&configuration);
    let running = node::start(configuration, rejoin)?;
    introduction.iter().for_each(|line| info!("{line}"));
    let handle = running.handle().clone();
    let server = listener.map(|listener| api::start(handle, listener, &admin, Limits::default()));
    let server = server.transpose()?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(until_the_end(running, grace));
    // Keys may be being read from a disk that does not answer.
    runtime.shutdown_background();
    if ended.is_ok()
        && let Some(server) = server
    {
        server.stop();
    }
    Ok(match ended {
        Ok(()) => {
            info!("has stopped");
            Answer::Yes
        }
        Err(why) => {
            // A log that cannot be written is no reason to end otherwise.
            let _ = writeln!(io::stderr(), "doyen: {why:#}");
            match why.downcast_ref() {
                Some(Failure::Panicked) => Answer::Panicked,
                _ => Answer::No,
            }
        }
    })
}

/// Waits for the node's end, and passes signals on to it.
async fn until_the_end(running: Running, grace: Duration) -> Result<()> {
    let handle = running.handle().clone();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let ended = running.ended();
    tokio::pin!(ended);
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = &mut ended => return Ok(ended?),
            _ = hang_up.recv() => {
                tokio::spawn(reload(handle.clone()));
                continue;
            }
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if stopping {
            bail!("stopped at once, without handing over, by a second signal");
        }
        stopping = true;
        handle.stop(grace);
        info!("stops, and hands over first if it leads; a second signal stops it at once");
    }
}

async fn reload(handle: Handle) {
    if let Err(error) = handle.reload_keys().await {
        warn!("does not read its keys again: {error}");
    }
}

/// What is being run, for the log.
fn introduction(configuration: &Configuration) -> Vec<String> {
    for warning in &configuration.warnings {
        warn!("{warning}");
    }
    let settings = &configuration.settings;
    if let Some(caveat) = clock::caveat().filter(|_| settings.algorithm.has_leases()) {
        warn!("{caveat}");
    }
    let Settings { cluster, algorithm, listen, members, .. } = settings;
    let name = &settings.own().name;
    let count = match members.len() {
        1 => "1 member".to_owned(),
        count => format!("{count} members"),
    };
    let node = format!("{name} of cluster {cluster}: {algorithm}, {count}, listens on {listen}");
    let http = settings.http.map(|http| format!("status, health and metrics: http://{http}/"));
    [node].into_iter().chain(http).collect()
}

/// Ends the process when whoever started it does: `doyen cluster` holds the other end of the standard input.
fn end_with_stdin() {
    std::thread::spawn(|| {
        let mut byte = [0];
        while matches!(io::stdin().read(&mut byte), Ok(1)) {}
        std::process::exit(1);
    });
}
