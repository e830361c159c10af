//! The first process of a command's tree: it starts the command, passes signals on, and reaps.
//!
//! In a PID namespace it is process 1: orphans become its children, and when it ends the kernel ends all others. It
//! dies with the guardian. It starts the command only when the guardian opens the **gate**, a pipe: by then the guardian
//! has put it into its cgroup and has looked at the lease once more. If the guardian dies first, the pipe ends.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::RawFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, set_child_subreaper, set_parent_process_death_signal,
    waitpid,
};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU,
    SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::Signals;

use super::log::LogFormat;
use super::process::OOM_SCORE;
use super::{CANNOT_EXECUTE, FAILED, NOT_FOUND};
use crate::sys;

/// The signals that are passed on.
const PASSED: [i32; 12] = [
    SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1,
    SIGUSR2, SIGWINCH,
];

/// Runs the command and returns the exit code of the tree: that of the command, or 128 + n if signal n ended it.
/// `oom_score`: how readily the kernel ends the tree when memory is short.
pub(super) fn run(gate: RawFd, oom_score: &OsStr, log: LogFormat, command: &[OsString]) -> i32 {
    // The guardian is spared, and what it starts is not.
    let _ = fs::write(OOM_SCORE, oom_score.as_encoded_bytes());
    match try_run(gate, log, command) {
        Ok(code) => code,
        Err(error) => {
            log.warn("command-not-guarded", &format!("cannot guard the command: {error}"));
            FAILED.into()
        }
    }
}

fn try_run(gate: RawFd, log: LogFormat, command: &[OsString]) -> io::Result<i32> {
    let mut gate = File::from(sys::take_inherited(gate)?);
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Without a namespace orphans would go to the init of the machine.
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut signals = Signals::new(PASSED.iter().copied().chain([SIGCHLD]))?;
    if gate.read(&mut [0])? == 0 {
        return Ok(FAILED.into());
    }
    drop(gate);
    let Some((program, arguments)) = command.split_first() else { return Ok(NOT_FOUND.into()) };
    let child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => Pid::from_child(&child),
        Err(error) => {
            let text = format!("cannot start {}: {error}", program.display());
            log.warn("command-not-started", &text);
            let missing = error.kind() == io::ErrorKind::NotFound;
            return Ok(if missing { NOT_FOUND } else { CANNOT_EXECUTE }.into());
        }
    };
    for signal in signals.forever() {
        if signal != SIGCHLD {
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = kill_process(child, signal);
            }
            continue;
        }
        while let Ok(Some((pid, status))) = waitpid(None, WaitOptions::NOHANG) {
            if pid == child {
                let status = std::process::ExitStatus::from_raw(status.as_raw());
                return Ok(code_of(status));
            }
        }
    }
    Ok(FAILED.into())
}

/// As shells say it.
pub(super) fn code_of(status: std::process::ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}
