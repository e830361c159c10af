//! Reads the configuration of a running node again: for `doyen reload`, for `systemctl reload` and for SIGHUP.
//!
//! Everything is checked before anything changes. A setting that cannot be changed while the node runs rejects the whole
//! reload, with the reason: a configuration that is half in force would be worse than one that needs a restart.
//!
//! | settings | from when on |
//! |---|---|
//! | keys, admin secret, `log`, `hooks.…` | at once; hooks: when the next one is run |
//! | `member.priority` | at once, of this member. Each member reports its own |
//! | `timing.jitter`, `stagger`, `tenure`, `penalty_decay`, `probe`; `preemption.…` | from the next term on |
//! | `timing.transmission`, `processing`, `heartbeat`, `vote_lease`, `drift`, `profile` | restart: leases that run now, and what followers have promised, depend on them |
//! | all others | restart: addresses and sockets, identity, what is recorded |

use doyen::api::SecretReloader;
use doyen::config::{Attribute, Configuration, Settings};
use doyen::guardian::Hooks;
use doyen::node::Handle;
use doyen_core::protocol::AdminCommand;
use doyen_core::registry::Algorithm;
use tokio::sync::watch;
use tracing::{info, warn};

use super::change_hook::ChangeHook;
use super::node::{ConfigFlags, Log};
use super::supervise;

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
        (Self { handle, secret, flags, current, hooks, change_hook }, changes)
    }

    /// Serves requests until the node has ended.
    pub(super) async fn serve(mut self) {
        let Some(mut requests) = self.handle.reload_requests() else { return };
        while let Some(answer) = requests.recv().await {
            // Whoever asked may have gone.
            let _ = answer.send(self.reload().await);
        }
    }

    async fn reload(&mut self) -> Result<String, String> {
        let flags = self.flags.clone();
        let loading = tokio::task::spawn_blocking(move || {
            let new = flags.load().map_err(|error| format!("{error:#}"))?;
            if let Some(problem) = &new.exposed {
                return Err(problem.clone());
            }
            supervise::check_hooks(&new.settings).map_err(|error| format!("{error:#}"))?;
            Ok(new)
        });
        let new = loading.await.map_err(|_| "the configuration was not read".to_owned())??;
        let changed = self.current.report.differences(&new.report);
        check(&self.current.settings, &new.settings, &changed)?;
        self.secret.reload().map_err(|error| error.to_string())?;
        let keys = self.handle.reload_keys().await.map_err(|error| error.to_string())?;
        let mut done = vec![format!("keys: {keys}")];
        done.extend(self.apply(&new.settings, &changed).await?);
        self.current = new;
        Ok(format!("reloaded its configuration; {}", done.join("; ")))
    }

    /// Uses what has changed. It has been checked.
    async fn apply(&self, new: &Settings, changed: &[&str]) -> Result<Vec<String>, String> {
        let mut done = Vec::new();
        if changed.contains(&"log") {
            Log::set_filter(&new.log).map_err(|error| format!("{error:#}"))?;
            done.push(format!("logs {}", new.log));
        }
        if changed.iter().any(|name| name.starts_with("hooks.")) {
            self.hooks.send_replace(new.hooks.clone());
            self.change_hook.send_replace(ChangeHook::of(new));
            done.push("new hooks".to_owned());
        }
        let priority = new.own().priority;
        if self.current.settings.own().priority != priority {
            let given = self.handle.command(AdminCommand::Attribute(priority)).await;
            given.map_err(|error| error.to_string())?;
            done.push(format!("priority {priority}"));
        }
        let later: Vec<&str> =
            changed.iter().copied().filter(|name| FROM_NEXT_TERM.contains(name)).collect();
        if !later.is_empty() {
            let retimed = self.handle.retime(new.core.clone()).await;
            retimed.map_err(|error| error.to_string())?;
            done.push(format!("from the next term on {}", later.join(", ")));
        }
        Ok(done)
    }
}

/// Whether all that has changed can change while the node runs.
fn check(old: &Settings, new: &Settings, changed: &[&str]) -> Result<(), String> {
    let problems: Vec<String> = changed
        .iter()
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
        "hooks.leader" | "hooks.not_leader" if old.hooks.is_none() != new.hooks.is_none() => {
            Some("the guardian that runs it is started with the node")
        }
        "member.priority" if old.algorithm != Algorithm::Quorum => {
            Some("this algorithm has fixed priorities")
        }
        "member.priority" if old.attribute != Attribute::Priority => {
            Some("a measured attribute takes its place")
        }
        _ if is_later || AT_ONCE.contains(&name) => None,
        _ if name.starts_with("timing.") => {
            Some("leases that run now, and what followers have promised, depend on it")
        }
        "listen" | "http" | "http_open" | "http_admin" => Some("its sockets are open"),
        "key_file" | "key_group_readable" => Some("the file is chosen at a start"),
        _ if name.starts_with("member") => {
            Some("all members must have the same list, and addresses are used from the start")
        }
        _ => Some("it is read at a start only"),
    }
}

/// Has the node reload, because of a signal, and logs the result.
pub(super) async fn reload_by_signal(handle: Handle) {
    match handle.reload().await {
        Ok(done) => info!("{done}"),
        Err(why) => warn!("not reloaded: {why}"),
    }
}
