//! Hooks: commands that are run when this member begins to lead, and when it does not lead.
//!
//! They are for what a program cannot do under the lease itself: to move an address, to start a service. Their effect is
//! part of what the lease protects, so the guardian runs them, and treats them like a job:
//!
//! - `leader` is run when the member has a lease; a job starts when it has succeeded.
//! - `not_leader` is run at the start, and after every end of leadership: before a planned transfer, a margin before a
//!   lease that is not renewed ends, and when the node has died. The lease is released only when it has succeeded.
//!
//! They are triggered by the state, not by its changes: `not_leader` is repeated until it succeeds, and each must be
//! idempotent. One runs at a time, and none for longer than the timeout.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, set_parent_process_death_signal,
};
use serde::{Deserialize, Serialize};

use super::handle::HOOK;
use super::init::code_of;
use super::log::LogFormat;
use super::process::OOM_SCORE;
use super::wait::ends_by;
use super::{CANNOT_EXECUTE, NOT_FOUND};
use crate::clock::Moment;

/// The commands of the operator. An empty command means none.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Hooks {
    /// Run when this member leads.
    pub leader: Vec<String>,
    /// Run when it does not.
    pub not_leader: Vec<String>,
    /// How long either may take.
    pub timeout: Duration,
    /// The name of this member, for the hooks.
    pub member: String,
}

impl Hooks {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.leader.is_empty() && self.not_leader.is_empty()
    }

    fn command(&self, hook: Hook) -> &[String] {
        match hook {
            Hook::Leader => &self.leader,
            Hook::NotLeader => &self.not_leader,
        }
    }
}

/// One of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Hook {
    /// This member leads.
    Leader,
    /// It does not.
    NotLeader,
}

impl Hook {
    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leader => "hooks.leader",
            Self::NotLeader => "hooks.not_leader",
        }
    }
}

/// What a hook is told, in its environment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occasion<'a> {
    pub(super) term: u64,
    pub(super) token: u64,
    /// `elected`, `started`, `stopped`, `lease-lapsed` or `crashed`.
    pub(super) reason: &'a str,
    pub(super) lease_file: &'a Path,
    /// How readily the kernel ends it when memory is short, as for the node.
    pub(super) oom_score: &'a str,
    pub(super) log_format: LogFormat,
}

/// Becomes a hook: for the process that [`RunningHook::start`] starts. Returns the exit code if that fails.
pub(super) fn become_hook(oom_score: &OsStr, log: LogFormat, command: &[OsString]) -> i32 {
    let _ = fs::write(OOM_SCORE, oom_score.as_encoded_bytes());
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let Some((program, arguments)) = command.split_first() else { return NOT_FOUND.into() };
    let error = Command::new(program).args(arguments).exec();
    log.warn("hook-not-started", &format!("cannot run the hook {}: {error}", program.display()));
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    i32::from(if is_missing { NOT_FOUND } else { CANNOT_EXECUTE })
}

/// The exit code of one that SIGKILL has ended.
const KILLED: i32 = 128 + 9;

/// A hook that runs.
#[derive(Debug)]
pub(super) struct RunningHook {
    child: Child,
    pidfd: OwnedFd,
    /// When it is killed.
    pub(super) kill_at: Moment,
}

impl RunningHook {
    /// Starts a hook; none if there is no command for it.
    pub(super) fn start(
        hooks: &Hooks,
        hook: Hook,
        occasion: Occasion<'_>,
    ) -> io::Result<Option<Self>> {
        let Some((program, arguments)) = hooks.command(hook).split_first() else { return Ok(None) };
        let (role, leader) = match hook {
            Hook::Leader => ("leader", hooks.member.as_str()),
            Hook::NotLeader => ("follower", ""),
        };
        // Through doyen, which has it end with the guardian and then becomes it.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("doyen-hook").arg(HOOK).arg(occasion.oom_score);
        command.arg(occasion.log_format.name()).arg(program).args(arguments);
        command.stdin(Stdio::null()).process_group(0);
        command.env("DOYEN_ROLE", role).env("DOYEN_MEMBER", &hooks.member);
        command.env("DOYEN_LEADER", leader).env("DOYEN_REASON", occasion.reason);
        command.env("DOYEN_TERM", occasion.term.to_string());
        command.env("DOYEN_TOKEN", occasion.token.to_string());
        command.env("DOYEN_LEASE_FILE", occasion.lease_file);
        let failed = |error: io::Error| io::Error::other(format!("cannot run {program}: {error}"));
        let child = command.spawn().map_err(failed)?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let kill_at = Moment::now().after_nanos(hooks.timeout.as_nanos() as u64);
        Ok(Some(Self { child, pidfd, kill_at }))
    }

    /// Ends it, with what it has started in its process group.
    pub(super) fn kill(&self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }

    /// Its result, once it has ended.
    pub(super) fn finish(mut self) -> Result<(), String> {
        match self.child.wait().map(code_of) {
            Ok(0) => Ok(()),
            Ok(KILLED) => {
                Err("was killed: it took too long, or the lease was about to end".to_owned())
            }
            Ok(code) => Err(format!("ended with exit code {code}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Waits for its end, and kills it at `deadline`.
    pub(super) fn finish_by(self, deadline: Moment) -> Result<(), String> {
        if !ends_by(&self.pidfd, deadline.min(self.kill_at)).unwrap_or(false) {
            self.kill();
        }
        self.finish()
    }
}

impl AsFd for RunningHook {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}
