//! A singleton cron: a short command every so often, on the leader of a cluster and on no other member.
//!
//! ```text
//! doyen init --cluster orders --member n1=127.0.0.1:7401 --member n2=127.0.0.1:7402 --member n3=127.0.0.1:7403
//! cargo run --example cron -- orders/n1/doyen.toml 10s ./report        and the same for n2 and n3
//! ```
//!
//! Each run has a permit: a transfer of leadership waits for it, and a command that takes longer is killed when it ends. In a
//! failover a run may be left out. A command that runs for longer than a lease is for `doyen run`.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use doyen::clock::Moment;
use doyen::config::{Configuration, Env};
use doyen::leadership::{Leadership, Permit};
use doyen::node::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

/// The end of the lease comes first, most of the time.
const LONGEST_RUN: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [config, every, command @ ..] = &arguments[..] else {
        return Err("usage: cron DOYEN.TOML EVERY COMMAND...".into());
    };
    let every = humantime::parse_duration(every)?;
    let configuration = Configuration::load(Some(Path::new(config)), &[], &Env::of_process())?;
    let grace = configuration.settings.grace;
    let running = Builder::new(configuration).start()?;
    let handle = running.handle().clone();
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        () = run_whenever_leading(handle.leadership(), every, command) => {}
        _ = terminate.recv() => handle.stop(grace),
    }
    Ok(running.ended().await?)
}

/// Returns when the node has ended.
async fn run_whenever_leading(leadership: &Leadership, every: Duration, command: &[String]) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while leadership.wait().await.is_some() {
        ticks.tick().await;
        // It may not lead any more: then there is no permit.
        if let Some(permit) = leadership.guard(LONGEST_RUN)
            && let Err(error) = run(command, permit)
        {
            eprintln!("{command:?}: {error}");
        }
    }
}

/// Runs the command until it ends, or until the permit does. The node has threads of its own, so this may block.
fn run(command: &[String], permit: Permit) -> Result<(), Box<dyn Error>> {
    let (program, arguments) = command.split_first().ok_or("there is no command")?;
    let token = permit.token.to_string();
    let mut child = Command::new(program).args(arguments).env("DOYEN_TOKEN", token).spawn()?;
    while Moment::now() < permit.deadline {
        if let Some(status) = child.try_wait()? {
            return if status.success() { Ok(()) } else { Err(status.to_string().into()) };
        }
        sleep(Duration::from_millis(1));
    }
    child.kill()?;
    child.wait()?;
    Err("killed, because its permit has ended".into())
}
