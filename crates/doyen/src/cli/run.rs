//! `doyen run -- COMMAND`: one copy of a command in the whole cluster, on the member that leads.
//!
//! `supervise.rs` starts and stops the command, under a [guardian](doyen::guardian); this file is the command line.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use doyen::config::{Configuration, Settings};
use doyen::guardian::contain::Containment;
use doyen::guardian::{CANNOT_EXECUTE, FAILED, Hooks, NOT_FOUND};
use rustix::fs::{Access, access};
use tracing::{info, warn};

use super::Answer;
use super::client::parse_time;
use super::node::{MemberFlags, unless_it_may_pass};
use super::supervise::{self, Supervision};
use super::system;

/// Run a command on exactly one member: the leader
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen run --config orders/n1/doyen.toml -- ./job --verbose
  doyen run --once -- ./migrate

The command runs on the member that holds the lease. Its environment has DOYEN_TERM, DOYEN_TOKEN (a fencing token: higher at
every start, in the whole cluster) and DOYEN_LEASE_FILE. All of its processes are gone before another member can hold a
lease, even if doyen is killed, stopped or hangs. On a transfer of leadership it gets SIGTERM, and SIGKILL after --grace.
SIGUSR1 and SIGUSR2 are passed on to it. SIGHUP is not: doyen reads its configuration again, as after `doyen reload`.

Exit: the exit code of the command (--once, or stopped by a signal), 128 + n if signal n ended it; 125 doyen
failed, or cannot start for a reason that may pass; 126 or 127 the command cannot be executed; 2 doyen cannot start: usage,
configuration, keys or state are wrong.")]
pub(crate) struct Run {
    #[command(flatten)]
    member: MemberFlags,

    /// End when the command ends, with its exit code, instead of starting it again
    #[arg(long)]
    once: bool,

    /// How long before the end of a lease the command is killed [default: the setting `margin`]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    margin: Option<Duration>,

    /// How long the command has to stop after SIGTERM [default: the setting `grace`]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    grace: Option<Duration>,

    /// Give up leadership after this many consecutive failures [default: never]
    #[arg(long, value_name = "COUNT")]
    give_up_after: Option<u32>,

    /// Use the node that runs here with this configuration and publishes its lease, instead of starting one
    #[arg(long)]
    attach: bool,

    #[command(flatten)]
    contain: ContainFlags,

    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Run {
    pub(super) fn run(&self) -> Result<Answer> {
        let configuration = self.member.config.load()?;
        let config = &self.member.config;
        let served = config.prepare_and_serve(configuration, |it| self.serve(it));
        unless_it_may_pass(served, Answer::Code(FAILED))
    }

    /// Runs the node and the command to the end. What keeps them from starting is an error.
    fn serve(&self, configuration: Configuration) -> Result<Answer> {
        if let Some(code) = cannot_execute(&self.command[0]) {
            let _ = writeln!(io::stderr(), "doyen: cannot execute {}", self.command[0].display());
            return Ok(Answer::Code(code));
        }
        let supervision = self.supervision(&configuration.settings)?;
        say_what_is_contained(&supervision.containment);
        let ended = match self.attach {
            true => {
                let file = &supervision.lease_file;
                let node = self.member.attach(&configuration.settings, file)?;
                info!(
                    event = "attached",
                    "attached to the node that publishes its lease in {}",
                    file.display()
                );
                supervise::serve_beside(node, &supervision)?
            }
            false => supervise::serve(configuration, &self.member.config, &supervision)?,
        };
        Ok(Answer::Code(match ended {
            Ok(code) => u8::try_from(code).unwrap_or(FAILED),
            Err(error) => {
                system::complain(&error);
                FAILED
            }
        }))
    }

    fn supervision(&self, settings: &Settings) -> Result<Supervision> {
        let margin = self.margin.unwrap_or(settings.margin);
        let hooks = self.member.supervision(settings, margin)?;
        Ok(Supervision {
            containment: self.contain.containment()?,
            grace: self.grace.unwrap_or(settings.grace),
            command: self.command.clone(),
            once: self.once,
            give_up_after: self.give_up_after,
            // Those of another node are its own.
            hooks: if self.attach { Hooks::default() } else { hooks.hooks },
            ..hooks
        })
    }
}

/// How a command is contained.
#[derive(Args, Debug)]
pub(super) struct ContainFlags {
    /// Run the command without containment: processes that leave its process group survive
    #[arg(long)]
    uncontained: bool,
}

impl ContainFlags {
    pub(super) fn containment(&self) -> Result<Containment> {
        if self.uncontained {
            return Ok(Containment::default());
        }
        let available = Containment::available().context("cannot start a thread")?;
        if available.is_none() {
            bail!(
                "cannot contain the command: PID namespaces need root (CAP_SYS_ADMIN), and no cgroup v2 is writable (systemd: \
                 Delegate=yes). With --uncontained, processes that leave its process group survive it"
            );
        }
        Ok(available)
    }
}

/// The exit code if there is no such program here, or it is not executable.
pub(super) fn cannot_execute(program: &OsStr) -> Option<u8> {
    let is_file = |path: &PathBuf| path.is_file();
    let candidates: Vec<PathBuf> = match program.as_bytes().contains(&b'/') {
        true => vec![program.into()],
        false => std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .map(|folder| folder.join(program))
            .collect(),
    };
    let files: Vec<PathBuf> = candidates.into_iter().filter(is_file).collect();
    let is_executable = |path: &PathBuf| access(path, Access::EXEC_OK).is_ok();
    match files.iter().any(is_executable) {
        true => None,
        false if files.is_empty() => Some(NOT_FOUND),
        false => Some(CANNOT_EXECUTE),
    }
}

pub(super) fn say_what_is_contained(containment: &Containment) {
    match (containment.namespace, &containment.cgroups) {
        (true, _) => {
            info!(
                event = "containment",
                "commands run in a PID namespace: the kernel kills all their processes together"
            );
        }
        (false, Some(_)) => warn!(
            event = "containment",
            "the command runs in a cgroup without a PID namespace: if doyen and its guardian are both killed at once, it survives them"
        ),
        (false, None) => {
            warn!(
                event = "containment",
                "the command is not contained: processes that leave its process group survive it"
            );
        }
    }
}
