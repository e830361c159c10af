//! A member of a local cluster: its files, its process, and the way to its HTTP.
//!
//! **No orphans.** The child has a pipe from this process as stdin and ends when that is closed. Where the system can, it also
//! asks the kernel to be killed when this process dies: a child that is paused reads no pipe. The kernel means the *thread*
//! that started the child, so members are started by the main thread alone.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use doyen::http_client::Authorities;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};
use serde_json::Value;

use crate::cli::admin_socket::LocalAdmin;
use crate::cli::client::{Client, CommandResult};

/// A member that does not answer for this long is paused or stuck.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) client: Arc<Client>,
    /// Flags of `doyen node` besides its configuration.
    flags: Vec<String>,
    process: Option<Process>,
}

#[derive(Debug)]
struct Process {
    pid: Pid,
    /// The child ends when this is closed.
    _stdin: Option<ChildStdin>,
}

impl Process {
    fn of(mut child: Child) -> Self {
        Self { pid: Pid::from_child(&child), _stdin: child.stdin.take() }
    }
}

/// What happened to a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProcessChange {
    Paused,
    Continued,
    Ended(Ending),
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    Signal(i32),
    Code(i32),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Code(code) => write!(f, "exit code {code}"),
        }
    }
}

impl Member {
    /// A member whose files are in `folder`. It does not run yet.
    pub(crate) fn new(folder: &Path, id: u32, http: u16, flags: Vec<String>) -> Result<Self> {
        let url = format!("http://127.0.0.1:{http}");
        let client = Arc::new(Client::new(url, ANSWER_TIMEOUT, Authorities::System)?);
        let (name, folder) = (format!("n{id}"), folder.to_owned());
        Ok(Self { id, name, folder, client, flags, process: None })
    }

    pub(crate) fn pid(&self) -> Option<Pid> {
        self.process.as_ref().map(|process| process.pid)
    }

    pub(crate) fn log_file(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Starts its process. To be called by the main thread only.
    pub(crate) fn start(&mut self) -> Result<Pid> {
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let log = File::options().create(true).append(true).open(self.log_file());
        let child = Command::new(program)
            .args(["node", "--while-stdin-is-open", "--config"])
            .arg(self.folder.join("doyen.toml"))
            .args(&self.flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log.context("cannot open its log")?)
            .spawn()
            .with_context(|| format!("cannot start {}", self.name))?;
        let process = Process::of(child);
        let pid = process.pid;
        self.process = Some(process);
        Ok(pid)
    }

    /// What has happened to its process since the last call, if anything has: by this program, or from a terminal.
    pub(crate) fn change(&mut self) -> Option<ProcessChange> {
        let pid = self.pid()?;
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED;
        let change = match waitpid(Some(pid), options) {
            Ok(None) | Err(rustix::io::Errno::INTR) => return None,
            Ok(Some((_, status))) => read(status)?,
            // It is no child any more, so it has ended.
            Err(_) => ProcessChange::Ended(Ending::Code(0)),
        };
        if let ProcessChange::Ended(_) = change {
            self.process = None;
        }
        Some(change)
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<Pid> {
        let pid = self.pid().ok_or_else(|| anyhow!("{} is not running", self.name))?;
        kill_process(pid, signal).with_context(|| self.name.clone())?;
        Ok(pid)
    }

    /// Gives its node an admin command.
    pub(crate) fn command(&self, command: &str, body: &Value) -> Result<CommandResult> {
        admin_command(&self.folder, command, body)
    }

    /// Asks it to stop, paused or not.
    pub(crate) fn stop(&self) {
        // A member that is not running has stopped already.
        let _ = self.signal(Signal::TERM);
        let _ = self.signal(Signal::CONT);
    }

    /// Waits for its end until `deadline`, and kills it then.
    pub(crate) fn wait(&mut self, deadline: Instant) {
        while self.process.is_some() {
            if self.change().is_some() {
                continue;
            }
            if Instant::now() > deadline {
                let _ = self.signal(Signal::KILL);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Gives the node whose files are in `folder` an admin command.
pub(crate) fn admin_command(folder: &Path, command: &str, body: &Value) -> Result<CommandResult> {
    let admin = LocalAdmin::of(&folder.join("state"), ANSWER_TIMEOUT);
    admin.command(&format!("/v1/{command}"), body, None)
}

fn read(status: WaitStatus) -> Option<ProcessChange> {
    let ended = |ending| Some(ProcessChange::Ended(ending));
    match (status.terminating_signal(), status.exit_status()) {
        (Some(signal), _) => ended(Ending::Signal(signal)),
        (None, Some(code)) => ended(Ending::Code(code)),
        (None, None) if status.continued() => Some(ProcessChange::Continued),
        (None, None) => status.stopped().then_some(ProcessChange::Paused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Member {
        /// A member whose process is any program.
        pub(crate) fn running(id: u32, program: &mut Command) -> Self {
            let child = program.stdin(Stdio::piped()).spawn().expect("it can be run");
            let member = Self::new(Path::new("/nowhere"), id, 1, Vec::new());
            Self { process: Some(Process::of(child)), ..member.expect("a member") }
        }
    }

    #[test]
    fn members_that_do_not_stop_are_waited_for_together() {
        let mut members: Vec<Member> =
            (1..=4).map(|id| Member::running(id, Command::new("sleep").arg("60"))).collect();
        let begun = Instant::now();
        let deadline = begun + Duration::from_millis(500);
        members.iter_mut().for_each(|member| member.wait(deadline));
        assert!(members.iter().all(|member| member.pid().is_none()));
        let waited = begun.elapsed();
        assert!(waited >= Duration::from_millis(500), "{waited:?}");
        assert!(waited < Duration::from_millis(1500), "one after another: {waited:?}");
    }
}
