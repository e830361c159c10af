//! The node's side: starts a guardian and talks to it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process_group, pidfd_open, pidfd_send_signal,
};

use super::contain::{Cgroup, Containment};
use super::control::{Channel, Report, Request};
use super::handover::Handover;
use super::hook::Hooks;
use super::job::ENDING;
use super::log::LogFormat;
use super::process::Options;
use super::wait::ends_by;
use crate::clock::Moment;
use crate::mutex::lock;

/// The name under which this program runs as a guardian.
const GUARDIAN: &str = "guardian";
/// The name under which it becomes a hook.
pub(super) const HOOK: &str = "guardian-hook";
/// The name under which it is the first process of a command's tree.
pub(super) const INIT: &str = "guardian-init";

/// What a guardian guards, and how.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The lease file.
    pub lease_file: &'a Path,
    /// What it does if the node dies.
    pub handover: &'a Handover,
    /// If the node is not this process but another one: a lock on its lease file, which the guardian holds as well.
    pub lock: Option<&'a File>,
    /// How long before the deadline it begins to kill.
    pub margin: Duration,
    /// What holds the tree together.
    pub containment: &'a Containment,
    /// What is run when this member leads, and when it does not.
    pub hooks: &'a Hooks,
    /// The format of its log, which goes to the standard error.
    pub log_format: LogFormat,
    /// The command and its arguments; empty if there are only hooks.
    pub command: &'a [OsString],
}

/// A guardian that runs.
#[derive(Debug)]
pub struct Guardian {
    process: Mutex<Child>,
    pid: u32,
    control: Channel,
    cgroups: Option<PathBuf>,
    /// The first process of the command's tree, while it runs.
    init: Mutex<Option<(Pid, OwnedFd)>>,
}

impl Guardian {
    /// Starts `program`, which is doyen itself, as the guardian of this process. It inherits the standard streams and the
    /// environment, for the command.
    pub fn start(program: &Path, plan: &Plan<'_>) -> io::Result<Self> {
        let (control, its_control) = Channel::pair()?;
        let node = pidfd_open(getpid(), PidfdFlags::empty())?;
        let Containment { namespace, cgroups } = plan.containment;
        let mut command = Command::new(program);
        command.arg0("doyen-guardian");
        command.arg(GUARDIAN);
        command.arg(its_control.as_fd().as_raw_fd().to_string());
        command.arg(node.as_raw_fd().to_string());
        command.arg(plan.handover.as_fd().as_raw_fd().to_string());
        command.arg(plan.lock.map_or("-".to_owned(), |lock| lock.as_raw_fd().to_string()));
        command.arg(plan.lease_file);
        command.arg(plan.margin.as_nanos().to_string());
        command.arg(if *namespace { "namespace" } else { "-" });
        command.arg(cgroups.as_deref().map_or(OsStr::new("-"), Path::as_os_str));
        command.arg(serde_json::to_string(plan.hooks).map_err(io::Error::other)?);
        command.arg(plan.log_format.name());
        command.args(plan.command).stdin(Stdio::inherit());
        fcntl_setfd(its_control.as_fd(), FdFlags::empty())?;
        fcntl_setfd(&node, FdFlags::empty())?;
        let lent = [Some(plan.handover.as_fd()), plan.lock.map(AsFd::as_fd)];
        lent.iter().flatten().try_for_each(|fd| fcntl_setfd(fd, FdFlags::empty()))?;
        let process = command.spawn()?;
        lent.iter().flatten().try_for_each(|fd| fcntl_setfd(fd, FdFlags::CLOEXEC))?;
        let (pid, cgroups) = (process.id(), cgroups.clone());
        Ok(Self { process: Mutex::new(process), pid, control, cgroups, init: Mutex::default() })
    }

    /// Asks the guardian for something.
    pub fn ask(&self, request: &Request) -> io::Result<()> {
        self.control.send(request)
    }

    /// Waits for the next report; none once the guardian is gone.
    pub fn report(&self) -> io::Result<Option<Report>> {
        let report = self.control.receive()?;
        let mut init = lock(&self.init);
        match report {
            Some(Report::Started { pid }) => {
                let open = |pid| pidfd_open(pid, PidfdFlags::empty()).ok().map(|fd| (pid, fd));
                *init = pid.and_then(Pid::from_raw).and_then(open);
            }
            Some(Report::Ended { .. }) => *init = None,
            _ => {}
        }
        Ok(report)
    }

    /// Kills the guardian itself: for one that does not answer.
    pub fn kill(&self) -> io::Result<()> {
        lock(&self.process).kill()
    }

    /// Ends what is left of the command's tree after the guardian is gone, and confirms that nothing is.
    pub fn end_what_is_left(&self) -> io::Result<()> {
        // It may be alive and not understood.
        let _ = self.kill();
        lock(&self.process).wait()?;
        if let Some((pid, init)) = lock(&self.init).take() {
            // In a namespace the kernel has done so already; without containment there is the process group.
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = pidfd_send_signal(&init, Signal::KILL);
            if !ends_by(&init, Moment::now().after_nanos(ENDING.as_nanos() as u64))? {
                return Err(io::Error::other("its first process does not end"));
            }
        }
        let Some(cgroups) = &self.cgroups else { return Ok(()) };
        for entry in fs::read_dir(cgroups)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&format!("doyen-{}-", self.pid)) {
                Cgroup::left_behind(entry.path()).end(ENDING)?;
            }
        }
        Ok(())
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Has the guardian end its job and itself, and waits for that.
    pub fn finish(&self) -> io::Result<()> {
        self.control.send(&Request::Finish)?;
        lock(&self.process).wait().map(drop)
    }
}

/// What this process is to be, if its first argument says so: a guardian or the first process of a command's tree. Returns
/// its exit code once it has been that.
pub fn play_part(arguments: impl IntoIterator<Item = OsString>) -> Option<i32> {
    let mut arguments = arguments.into_iter();
    let part = arguments.next()?;
    let rest: Vec<OsString> = arguments.collect();
    if part == INIT {
        let [gate, oom_score, format, command @ ..] = &rest[..] else { return None };
        let format = LogFormat::of_name(format);
        return Some(super::init::run(number(gate)?, oom_score, format, command));
    }
    if part == HOOK {
        let [oom_score, format, command @ ..] = &rest[..] else { return None };
        return Some(super::hook::become_hook(oom_score, LogFormat::of_name(format), command));
    }
    if part != GUARDIAN {
        return None;
    }
    let [
        control,
        node,
        handover,
        lock,
        lease_file,
        margin,
        namespace,
        cgroups,
        hooks,
        log_format,
        command @ ..,
    ] = &rest[..]
    else {
        return None;
    };
    let log_format = LogFormat::of_name(log_format);
    let options = Options {
        control: number(control)?,
        node: number(node)?,
        handover: number(handover)?,
        lock: number(lock),
        lease_file: lease_file.into(),
        margin: Duration::from_nanos(number(margin)?),
        containment: Containment {
            namespace: namespace == "namespace",
            cgroups: (cgroups != "-").then(|| cgroups.into()),
        },
        hooks: serde_json::from_str(hooks.to_str()?).ok()?,
        log_format,
        command: command.to_vec(),
    };
    Some(match super::process::run(options) {
        Ok(()) => 0,
        Err(error) => {
            log_format.warn("guardian-failed", &format!("the guardian ends: {error}"));
            super::FAILED.into()
        }
    })
}

fn number<N: std::str::FromStr>(text: &OsStr) -> Option<N> {
    text.to_str()?.parse().ok()
}
