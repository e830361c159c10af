//! The process tree of a command, from its start to its confirmed end.

use std::ffi::OsString;
use std::io::{self, PipeWriter, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    pidfd_send_signal, waitid,
};

use super::FAILED;
use super::contain::{Cgroup, Containment};
use super::handle::INIT;
use super::init::code_of;
use super::log::LogFormat;
use super::wait::ends_by;
use crate::clock::Moment;
use crate::sys;

/// How long the kernel may take to end the processes of a cgroup, or an init that has been killed.
pub(super) const ENDING: Duration = Duration::from_secs(10);

/// A command, and what it is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<'a> {
    pub(super) command: &'a [OsString],
    pub(super) containment: &'a Containment,
    pub(super) term: u64,
    pub(super) token: u64,
    pub(super) lease_file: &'a Path,
    /// How readily the kernel ends it when memory is short, as for the node.
    pub(super) oom_score: &'a str,
    pub(super) log_format: LogFormat,
}

/// A command that runs.
#[derive(Debug)]
pub(super) struct Job {
    pid: Pid,
    init: OwnedFd,
    cgroup: Option<Cgroup>,
    /// The thread that started it: the kernel ends a process that asks for it when this thread ends.
    parent: JoinHandle<io::Result<i32>>,
}

impl Job {
    /// Starts it. `may_start` is asked at the last moment; if it says no, nothing has been started.
    pub(super) fn start(
        order: Order<'_>,
        may_start: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Self> {
        let cgroup = match &order.containment.cgroups {
            Some(folder) => Some(Cgroup::create(folder, order.token)?),
            None => None,
        };
        let (pid, mut gate, parent) = spawn(order)?;
        let init = pidfd_open(pid, PidfdFlags::empty())?;
        // From here on a gate that is dropped ends what was started.
        if let Some(cgroup) = &cgroup {
            cgroup.add(pid.as_raw_nonzero().get())?;
        }
        may_start()?;
        gate.write_all(b"!")?;
        Ok(Self { pid, init, cgroup, parent })
    }

    /// The number of its first process.
    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends a signal to the command.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.init, signal);
    }

    /// Ends the whole tree; of one that nothing contains, its process group.
    pub(super) fn kill(&self) {
        if let Some(cgroup) = &self.cgroup {
            let _ = cgroup.kill();
        }
        // Init leads the group, which is ended with it.
        let _ = pidfd_send_signal(&self.init, Signal::KILL);
    }

    /// Waits until init, which has been killed, is gone.
    pub(super) fn wait(&self) -> io::Result<()> {
        match ends_by(&self.init, Moment::now().after_nanos(ENDING.as_nanos() as u64))? {
            true => Ok(()),
            false => Err(io::Error::other(format!("process {} does not end", self.pid))),
        }
    }

    /// The command has ended: ends what may be left of its tree, and returns its exit code.
    pub(super) fn reap(self) -> io::Result<i32> {
        let code = self.parent.join().map_err(|_| io::Error::other("a thread panicked"))??;
        if let Some(cgroup) = &self.cgroup {
            cgroup.end(ENDING)?;
        }
        Ok(code)
    }
}

impl AsFd for Job {
    /// Readable once init has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.init.as_fd()
    }
}

/// Starts init, behind its gate, from a thread that lives as long as it does.
fn spawn(order: Order<'_>) -> io::Result<(Pid, PipeWriter, JoinHandle<io::Result<i32>>)> {
    let (reader, writer) = io::pipe()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("doyen-init").process_group(0);
    command.arg(INIT).arg(reader.as_raw_fd().to_string()).arg(order.oom_score);
    command.arg(order.log_format.name()).args(order.command);
    command.env("DOYEN_TERM", order.term.to_string());
    command.env("DOYEN_TOKEN", order.token.to_string());
    command.env("DOYEN_LEASE_FILE", order.lease_file);
    let namespace = order.containment.namespace;
    let (tell, told) = mpsc::channel();
    let parent = thread::Builder::new().name("job".to_owned()).spawn(move || {
        let started = start_in(namespace, &mut command, &reader);
        drop(reader);
        let mut child = match started {
            Ok(child) => child,
            Err(error) => {
                let _ = tell.send(Err(error));
                return Ok(FAILED.into());
            }
        };
        let pid = Pid::from_child(&child);
        let _ = tell.send(Ok(pid));
        // Before it is reaped its number belongs to no other process: what is left of its group ends with it.
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        let _ = kill_process_group(pid, Signal::KILL);
        child.wait().map(code_of)
    })?;
    let pid = told.recv().map_err(io::Error::other)??;
    Ok((pid, writer, parent))
}

fn start_in(namespace: bool, command: &mut Command, gate: &io::PipeReader) -> io::Result<Child> {
    if namespace {
        sys::new_pid_namespace()?;
    }
    fcntl_setfd(gate.as_fd(), FdFlags::empty())?;
    command.spawn()
}
