//! What is to run under a lease, and whether it can: the margin must fit the lease, the hooks must exist.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use doyen::config::Settings;
use doyen::guardian::contain::Containment;
use doyen::guardian::lease_file::LeaseFile;
use doyen::guardian::{Handover, Hooks, LogFormat};
use rustix::fs::{Access, access};

use crate::cli::run::cannot_execute;
use crate::cli::terminal::span;

/// A member whose `hooks.leader` fails this many times in a row lets another one lead.
const HOOK_FAILURES: u32 = 3;

/// What runs under the lease, and how.
pub(in crate::cli) struct Supervision {
    /// The length of a lease.
    pub(in crate::cli) lease: Duration,
    /// How long before the end of a lease everything is ended.
    pub(in crate::cli) margin: Duration,
    /// What the guardian does if the node dies.
    pub(in crate::cli) handover: Handover,
    /// What is run when this member leads, and when it does not.
    pub(in crate::cli) hooks: Hooks,
    /// The format of the log.
    pub(in crate::cli) log_format: LogFormat,
    /// Where the lease is published.
    pub(in crate::cli) lease_file: PathBuf,
    /// How long the command has to stop.
    pub(in crate::cli) grace: Duration,
    /// What holds its process tree together.
    pub(in crate::cli) containment: Containment,
    /// The command and its arguments; empty if there are only hooks.
    pub(in crate::cli) command: Vec<OsString>,
    /// Whether doyen ends when the command ends.
    pub(in crate::cli) once: bool,
    /// After how many failures in a row leadership is given up.
    pub(in crate::cli) give_up_after: Option<u32>,
}

impl Supervision {
    /// Of the hooks alone, with this margin. `lease_file`: where the lease is published, if that is said.
    pub(in crate::cli) fn new(
        settings: &Settings,
        lease_file: Option<&Path>,
        log_format: LogFormat,
        margin: Duration,
    ) -> Result<Self> {
        let lease = lease_that_fits(settings, margin)?;
        check_hooks(settings)?;
        Ok(Self {
            lease,
            margin,
            handover: Handover::create().context("cannot share memory with the guardian")?,
            hooks: settings.hooks.clone(),
            log_format,
            lease_file: lease_file
                .map_or_else(|| default_lease_file(settings), |file| Ok(file.to_owned()))?,
            grace: settings.grace,
            containment: Containment::default(),
            command: Vec::new(),
            once: false,
            give_up_after: Some(HOOK_FAILURES),
        })
    }
}

/// Whether hooks can run under the lease, and the programs of all of them can be executed.
pub(in crate::cli) fn check_hooks(settings: &Settings) -> Result<()> {
    let Hooks { leader, not_leader, .. } = &settings.hooks;
    if !settings.hooks.is_none() {
        lease_that_fits(settings, settings.margin)?;
    }
    let hooks = [("leader", leader), ("not_leader", not_leader), ("change", &settings.change_hook)];
    for (name, command) in hooks {
        if let Some(program) = command.first()
            && cannot_execute(program.as_ref()).is_some()
        {
            bail!("hooks.{name}: {program} does not exist here or is not executable");
        }
    }
    Ok(())
}

/// The length of a lease, if the margin leaves enough of it.
fn lease_that_fits(settings: &Settings, margin: Duration) -> Result<Duration> {
    if !settings.algorithm.has_leases() {
        bail!(
            "algorithm: {} has no leases, so two members may lead at once; `doyen run` needs `quorum`",
            settings.algorithm
        );
    }
    let pace = settings.core.quorum.pace;
    let [lease, heartbeat] =
        [pace.lease(), pace.heartbeat].map(|it| Duration::from_nanos(it.as_nanos()));
    // Two heartbeats may get lost before the command is killed.
    if margin + heartbeat * 3 > lease {
        bail!(
            "the margin does not fit the lease: {} + 3 × heartbeat ({}) is longer than the lease ({}). \
             Use a slower timing.profile, or a shorter margin",
            span(margin),
            span(heartbeat),
            span(lease)
        );
    }
    Ok(lease)
}

pub(in crate::cli) fn create_lease_file(path: &Path) -> Result<LeaseFile> {
    LeaseFile::create(path)
        .with_context(|| format!("cannot create the lease file {}", path.display()))
}

/// A file on a file system in memory that programs of this machine can find.
fn default_lease_file(settings: &Settings) -> Result<PathBuf> {
    Ok(folder_in_memory()?.join(format!("{}-{}.lease", settings.cluster, settings.own().name)))
}

/// A folder on a file system in memory, for lease files.
pub(in crate::cli) fn folder_in_memory() -> Result<PathBuf> {
    let runtime =
        std::env::var_os("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("doyen"));
    let shared =
        Path::new("/dev/shm").join(format!("doyen-{}", rustix::process::getuid().as_raw()));
    let folders = [Some(PathBuf::from("/run/doyen")), runtime, Some(shared)];
    let usable = |folder: &PathBuf| {
        std::fs::create_dir_all(folder).is_ok() && access(folder, Access::WRITE_OK).is_ok()
    };
    let folder = folders.into_iter().flatten().find(usable);
    folder.ok_or_else(|| anyhow!("no folder in memory for the lease file; give --lease-file"))
}
