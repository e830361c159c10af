//! Reads the configuration of a running node again: for `doyen reload`, for `systemctl reload` and for SIGHUP.
//!
//! Everything is checked before anything changes. A setting that cannot be changed while the node runs rejects the whole
//! reload, with the reason: a partly adopted configuration would be worse than one that needs a restart.
//!
//! | settings | from when on |
//! |---|---|
//! | keys, admin secret, `log`, `hooks.…` | at once; hooks: when the next one is run |
//! | `member.priority` | at once, of this member. Each member reports its own |
//! | `timing.jitter`, `stagger`, `tenure`, `penalty_decay`, `probe`; `preemption.…` | from the next term on |
//! | `timing.transmission`, `processing`, `heartbeat`, `vote_lease`, `drift`, `profile` | restart: current leases and vote leases depend on them |
//! | all others | restart: addresses and sockets, identity, what is recorded |

use std::path::PathBuf;

use doyen::api::SecretReloader;
use doyen::blocking::in_thread;
use doyen::config::{Attribute, Configuration, Settings};
use doyen::guardian::Hooks;
use doyen::guardian::lease_file::LeaseFile;
use doyen::node::compared::Compared;
use doyen::node::{CommandError, Handle};
use doyen_core::protocol::AdminCommand;
use doyen_core::registry::Algorithm;
use tokio::sync::{oneshot, watch};
use tracing::{info, warn};

use super::change_hook::ChangeHook;
use super::node::{ConfigFlags, Log};
use super::supervise::{self, Supervision};

/// What is used at once.
const AT_ONCE: [&str; 6] =
    ["log", "hooks.leader", "hooks.not_leader", "hooks.change", "hooks.timeout", "member.priority"];

/// What is used from the next term on: no lease depends on it.
const FROM_NEXT_TERM: [&str; 8] = [
    "timing.jitter",
    "timing.stagger",
    "timing.tenure",
    "timing.penalty_decay",
    "timing.probe",
    "preemption.policy",
    "preemption.delay",
    "preemption.margin",
];

/// What of a running node a reload changes.
pub(super) struct Reloader {
    pub(super) handle: Handle,
    pub(super) secret: SecretReloader,
    /// Where the configuration comes from.
    pub(super) flags: ConfigFlags,
    /// The configuration in force.
    pub(super) current: Configuration,
    pub(super) hooks: watch::Sender<Hooks>,
    pub(super) change_hook: watch::Sender<ChangeHook>,
    /// How a node that runs without hooks begins to run them.
    unguarded: Option<Unguarded>,
}

/// No guardian watches the node yet.
struct Unguarded {
    /// The flag `--lease-file`.
    lease_file: Option<PathBuf>,
    begin: oneshot::Sender<Supervision>,
}

/// What a guardian needs to watch a node that runs already.
struct Guard {
    supervision: Supervision,
    /// The lease file, if the node has none yet.
    created: Option<LeaseFile>,
}

/// The hooks of a node, as they may change.
pub(super) struct HookChanges {
    pub(super) hooks: watch::Receiver<Hooks>,
    pub(super) change_hook: watch::Receiver<ChangeHook>,
}

impl Reloader {
    pub(super) fn new(
        handle: Handle,
        secret: SecretReloader,
        flags: ConfigFlags,
        current: Configuration,
    ) -> (Self, HookChanges) {
        let (hooks, hooks_changed) = watch::channel(current.settings.hooks.clone());
        let (change_hook, change_hook_changed) = watch::channel(ChangeHook::of(&current.settings));
        let changes = HookChanges { hooks: hooks_changed, change_hook: change_hook_changed };
        let unguarded = None;
        (Self { handle, secret, flags, current, hooks, change_hook, unguarded }, changes)
    }

    /// The node runs without hooks. Returns what they need, once a reload has added some.
    pub(super) fn may_add_hooks(
        &mut self,
        lease_file: Option<PathBuf>,
    ) -> oneshot::Receiver<Supervision> {
        let (begin, begun) = oneshot::channel();
        self.unguarded = Some(Unguarded { lease_file, begin });
        begun
    }

    /// Serves requests until the node has ended.
    pub(super) async fn serve(mut self) {
        let Some(mut requests) = self.handle.reload_requests() else { return };
        while let Some(answer) = requests.recv().await {
            // The caller may have gone.
            let _ = answer.send(self.reload().await);
        }
    }

    async fn reload(&mut self) -> Result<String, String> {
        let flags = self.flags.clone();
        let loading = in_thread(move || {
            let new = flags.load().map_err(|error| format!("{error:#}"))?;
            if let Some(problem) = &new.exposed {
                return Err(problem.clone());
            }
            supervise::check_hooks(&new.settings).map_err(|error| format!("{error:#}"))?;
            Log::check_filter(&new.settings.log).map_err(|error| format!("{error:#}"))?;
            Ok(new)
        });
        let unread = |error| format!("the configuration was not read: {error}");
        let new = loading.await.map_err(unread)??;
        let changed = self.current.report.differences(&new.report);
        check(&self.current.settings, &new.settings, &changed)?;
        // All files have been read when the first thing changes. What the node may reject comes first.
        let secrets = self.secret.read(&self.handle).await.map_err(|error| error.to_string())?;
        let guard = match new.settings.hooks.is_none() {
            true => None,
            false => self.prepare_guard(&new.settings)?,
        };
        let commanded = self.command(&new.settings, &changed).await;
        let commanded = commanded.map_err(|error| error.to_string())?;
        let keys = secrets.adopt().await.map_err(|error| error.to_string())?;
        if let Some(guard) = guard {
            self.begin_guard(guard).await?;
        }
        let mut done = vec![format!("keys: {keys}")];
        done.extend(self.apply(&new.settings, &changed));
        done.extend(commanded);
        self.handle.set_compared(Compared::of(&new.settings));
        self.current = new;
        Ok(format!("reloaded its configuration; {}", done.join("; ")))
    }

    /// Uses what has changed outside the node's loop. It has been checked.
    fn apply(&self, new: &Settings, changed: &[&str]) -> Vec<String> {
        let mut done = Vec::new();
        if changed.contains(&"log") {
            match Log::set_filter(&new.log) {
                Ok(()) => done.push(format!("logs {}", new.log)),
                Err(error) => warn!(
                    event = "log-not-reloaded",
                    reason = format!("{error:#}"),
                    "the log stays as it was: {error:#}"
                ),
            }
        }
        if changed.iter().any(|name| name.starts_with("hooks.")) {
            self.hooks.send_replace(new.hooks.clone());
            self.change_hook.send_replace(ChangeHook::of(new));
            let none = new.hooks.is_none() && new.change_hook.is_empty();
            done.push(if none { "no hooks any more" } else { "new hooks" }.to_owned());
        }
        done
    }

    /// Has the node's loop use what has changed.
    async fn command(&self, new: &Settings, changed: &[&str]) -> Result<Vec<String>, CommandError> {
        let mut done = Vec::new();
        let priority = new.own().priority;
        if self.current.settings.own().priority != priority {
            self.handle.command(AdminCommand::Attribute(priority)).await?;
            done.push(format!("priority {priority}"));
        }
        let later: Vec<&str> =
            changed.iter().copied().filter(|name| FROM_NEXT_TERM.contains(name)).collect();
        if !later.is_empty() {
            self.handle.retime(new.core.clone()).await?;
            done.push(format!("from the next term on {}", later.join(", ")));
        }
        Ok(done)
    }

    /// What a guardian needs to watch the node, if there is none yet.
    fn prepare_guard(&self, new: &Settings) -> Result<Option<Guard>, String> {
        let Some(Unguarded { lease_file, .. }) = &self.unguarded else { return Ok(None) };
        let format = self.flags.log.format();
        let supervision = Supervision::new(new, lease_file.as_deref(), format, new.margin);
        let supervision = supervision.map_err(without_hooks)?;
        let created = match lease_file {
            // The node publishes its lease there already.
            Some(_) => None,
            None => {
                Some(supervise::create_lease_file(&supervision.lease_file).map_err(without_hooks)?)
            }
        };
        Ok(Some(Guard { supervision, created }))
    }

    /// Has a guardian watch the node. It runs hooks from now on, so this comes last.
    async fn begin_guard(&mut self, guard: Guard) -> Result<(), String> {
        let Guard { supervision, created } = guard;
        let shared = supervision.handover.try_clone().map_err(without_hooks)?;
        self.handle.guard(created, shared).await.map_err(without_hooks)?;
        if let Some(Unguarded { begin, .. }) = self.unguarded.take() {
            // The node may be stopping: then nothing begins any more.
            let _ = begin.send(supervision);
        }
        Ok(())
    }
}

fn without_hooks(error: impl Into<anyhow::Error>) -> String {
    format!("hooks: {:#}; they are not used", error.into())
}

/// Whether all that has changed can change while the node runs.
fn check(old: &Settings, new: &Settings, changed: &[&str]) -> Result<(), String> {
    if old.owner().members != new.owner().members {
        return Err("the list of members is fixed, because two lists can elect two leaders; docs/operations.md says how to \
                    change the members of a cluster; nothing has changed"
            .to_owned());
    }
    // What follows from the profile has changed with it.
    let has_other_profile = changed.contains(&"timing.profile");
    let follows =
        |name: &str| name.starts_with("timing.") || ["margin", "group_lease"].contains(&name);
    let problems: Vec<String> = changed
        .iter()
        .filter(|&&name| !has_other_profile || name == "timing.profile" || !follows(name))
        .filter_map(|name| {
            why_not(old, new, name).map(|why| format!("{name} needs a restart: {why}"))
        })
        .collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(format!("{}; nothing has changed", problems.join("; "))),
    }
}

/// Why a setting cannot change while the node runs.
fn why_not(old: &Settings, new: &Settings, name: &str) -> Option<&'static str> {
    let is_later = FROM_NEXT_TERM.contains(&name);
    match name {
        "timing.probe" if old.core.quorum.probe.is_none() != new.core.quorum.probe.is_none() => {
            Some("probing is begun and ended at a start")
        }
        _ if is_later && old.trace.is_some() => {
            Some("a trace is recorded, and `doyen replay` needs one timing for all of it")
        }
        "member.priority" if old.algorithm != Algorithm::Quorum => {
            Some("this algorithm has fixed priorities")
        }
        "member.priority" if old.attribute != Attribute::Priority => {
            Some("a measured attribute takes its place")
        }
        _ if is_later || AT_ONCE.contains(&name) => None,
        _ if name.starts_with("timing.") => Some("current leases and vote leases depend on it"),
        "listen" | "http" | "http_open" | "http_admin" => Some("its sockets are open"),
        "key_file" | "key_group_readable" => Some("the file is chosen at a start"),
        "member.address" => Some("addresses are read at a start only"),
        _ if name.starts_with("member") => Some("all members must have the same list"),
        _ => Some("it is read at a start only"),
    }
}

/// Has the node reload, because of a signal, and logs the result.
pub(super) async fn reload_by_signal(handle: Handle) {
    match handle.reload().await {
        Ok(done) => info!(event = "reloaded", "{done}"),
        Err(why) => warn!(event = "not-reloaded", reason = %why, "not reloaded: {why}"),
    }
}
