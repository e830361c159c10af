//! How the process tree of a command is held together, so that all of it can be ended.
//!
//! A command may fork twice, change its session and its process group, and ignore signals. Two features of Linux contain
//! it nevertheless: a PID namespace, whose processes the kernel ends with the first of them, and a cgroup, whose
//! processes it ends when `cgroup.kill` is written. The first needs `CAP_SYS_ADMIN`, the second a cgroup v2 that may be
//! written to (systemd: `Delegate=yes`). If both are available, both are used.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::clock::Moment;

/// What holds a tree together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Containment {
    /// Whether the tree has a PID namespace of its own.
    pub namespace: bool,
    /// The folder below which the tree gets its own cgroup.
    pub cgroups: Option<PathBuf>,
}

impl Containment {
    /// What this process may use. It is an error if it cannot start a thread to try that.
    pub fn available() -> io::Result<Self> {
        let cgroups = own_cgroup().filter(|folder| may_divide(folder));
        Ok(Self { namespace: may_unshare()?, cgroups })
    }

    /// Whether nothing holds the tree together.
    pub fn is_none(&self) -> bool {
        !self.namespace && self.cgroups.is_none()
    }
}

/// Whether a child of this process may be the first of a PID namespace.
fn may_unshare() -> io::Result<bool> {
    // This needs a separate thread: a thread that has unshared its PID namespace can start no other children outside of
    // it.
    let tried = thread::Builder::new().spawn(|| crate::sys::new_pid_namespace().is_ok())?;
    Ok(tried.join().unwrap_or(false))
}

/// The folder of the cgroup v2 of this process, if one is mounted; the mount may lie beside those of version 1.
fn own_cgroup() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let is_cgroup = right.split(' ').next() == Some("cgroup2");
        is_cgroup.then(|| left.split(' ').nth(4)).flatten()
    })?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(mount).join(own))
}

/// Whether a cgroup can be made below this one and killed.
fn may_divide(folder: &Path) -> bool {
    let probe = folder.join(format!("doyen-probe-{}", std::process::id()));
    let may = fs::create_dir(&probe).is_ok() && probe.join("cgroup.kill").exists();
    let _ = fs::remove_dir(&probe);
    may
}

/// A cgroup of one tree.
#[derive(Debug)]
pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    pub(super) fn create(beneath: &Path, token: u64) -> io::Result<Self> {
        let folder = beneath.join(format!("doyen-{}-{token}", std::process::id()));
        fs::create_dir(&folder)?;
        Ok(Self(folder))
    }

    /// A cgroup whose guardian is gone.
    pub(super) fn left_behind(folder: PathBuf) -> Self {
        Self(folder)
    }

    pub(super) fn add(&self, pid: i32) -> io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), pid.to_string())
    }

    pub(super) fn kill(&self) -> io::Result<()> {
        fs::write(self.0.join("cgroup.kill"), "1")
    }

    fn is_populated(&self) -> io::Result<bool> {
        let events = fs::read_to_string(self.0.join("cgroup.events"))?;
        Ok(events.lines().any(|line| line == "populated 1"))
    }

    /// Kills what is in it until nothing is; an error if something still is after `patience`.
    pub(super) fn end(&self, patience: Duration) -> io::Result<()> {
        let until = Moment::now().after_nanos(patience.as_nanos() as u64);
        while self.is_populated()? {
            self.kill()?;
            if Moment::now() > until {
                return Err(io::Error::other("processes of the cgroup do not end"));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
