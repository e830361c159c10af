//! `hooks.change`: a program that is told of every change of leader. Nothing waits for it.
//!
//! It is triggered by the state: it is run at the start, and again whenever leader, term or role of this member differ from
//! what it was last told; changes while it ran are reported once, with the latest state. A hook that fails is run again a
//! few times.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use doyen::config::Settings;
use doyen::leadership::LeadershipState;
use doyen::node::Handle;
use doyen::node::status::Entry;
use doyen_core::change::LeaderChange;
use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::Role;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::terminal::span;

/// How long the history may take to record the change that the hook is told of.
const RECORDED: Duration = Duration::from_millis(200);
/// How often a hook that fails is run for the same state.
const TRIES: u32 = 5;
/// How long it waits to be run again.
const PAUSE: Duration = Duration::from_secs(1);

/// The command, and what it needs to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ChangeHook {
    command: Vec<String>,
    timeout: Duration,
    me: (NodeId, String),
    names: Vec<(NodeId, String)>,
}

/// What the command is told.
type State = (Option<NodeId>, Term, Option<Role>);

impl ChangeHook {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            command: settings.change_hook.clone(),
            timeout: settings.hooks.timeout,
            me: (settings.me, settings.own().name.clone()),
            names: settings.members.iter().map(|it| (it.id, it.name.clone())).collect(),
        }
    }

    /// Runs the command whenever there is something to report, until the node has ended. A command that a reload changes
    /// gets the state too.
    pub(super) async fn run(mut hooks: watch::Receiver<Self>, handle: Handle) {
        let mut states = handle.leadership().watch();
        let mut told: Option<(Self, State)> = None;
        loop {
            let hook = hooks.borrow_and_update().clone();
            let LeadershipState { leader, term, role, .. } = *states.borrow_and_update();
            let next = (hook, (leader, term, role));
            if role.is_some() && !next.0.command.is_empty() && told.as_ref() != Some(&next) {
                next.0.tell(next.1, &handle).await;
                told = Some(next);
                continue;
            }
            tokio::select! {
                changed = states.changed() => if changed.is_err() {
                    return;
                },
                Ok(()) = hooks.changed() => {}
            }
        }
    }

    async fn tell(&self, state: State, handle: &Handle) {
        for _ in 0..TRIES {
            let Err(error) = self.tell_once(state, handle).await else { return };
            warn!(event = "hook-failed", reason = %error, "hooks.change: {error}");
            sleep(PAUSE).await;
            let now = handle.leadership().state();
            if (now.leader, now.term, now.role) != state {
                return;
            }
        }
    }

    async fn tell_once(&self, (leader, term, role): State, handle: &Handle) -> Result<()> {
        let name = |id| self.names.iter().find(|(it, _)| *it == id).map(|(_, name)| name.as_str());
        let reason = self.reason((leader, term, role), handle).await;
        let role = role.map_or_else(String::new, |role| role.to_string());
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stdin(Stdio::null()).kill_on_drop(true);
        command.env("DOYEN_ROLE", role).env("DOYEN_MEMBER", &self.me.1);
        command.env("DOYEN_LEADER", leader.and_then(name).unwrap_or_default());
        command.env("DOYEN_TERM", term.0.to_string()).env("DOYEN_REASON", reason);
        match timeout(self.timeout, command.status()).await {
            Err(_) => bail!("it took longer than {} and was killed", span(self.timeout)),
            Ok(Err(error)) => bail!("cannot run {}: {error}", self.command[0]),
            Ok(Ok(status)) if !status.success() => bail!("it failed: {status}"),
            Ok(Ok(_)) => Ok(()),
        }
    }

    /// The latest change in the history, if it led to this state: it is recorded a little later than the state is published,
    /// and nothing is after a start. Otherwise what the state itself says.
    async fn reason(&self, state: State, handle: &Handle) -> String {
        let (mut history, started) = (handle.watch_history(), handle.status().incarnation);
        let latest = |history: &Arc<Vec<Entry>>| {
            let latest = history.last().filter(|entry| entry.incarnation == started);
            latest.filter(|entry| leads_to(entry.change, state, self.me.0)).cloned()
        };
        let recorded = history.wait_for(|history| latest(history).is_some());
        if let Ok(Ok(history)) = timeout(RECORDED, recorded).await
            && let Some(entry) = latest(&history)
        {
            return entry.text;
        }
        let name = |id| self.names.iter().find(|(it, _)| *it == id).map(|(_, name)| name.as_str());
        match (state.0.and_then(name), state.2) {
            (Some(leader), Some(Role::Retiring)) => {
                format!("{leader} is about to transfer leadership")
            }
            (Some(leader), _) => format!("{leader} leads (term {})", state.1),
            (None, _) => format!("no leader is known (term {})", state.1),
        }
    }
}

/// Whether this change led `me` to this state.
fn leads_to(change: LeaderChange, (leader, term, role): State, me: NodeId) -> bool {
    match change {
        LeaderChange::BecameLeader { term: of, .. } => {
            (leader, term, role) == (Some(me), of, Some(Role::Leader))
        }
        LeaderChange::Follows { leader: to, term: of, .. }
        | LeaderChange::RegainedContact { leader: to, term: of }
        | LeaderChange::LeaseResumed { leader: to, term: of } => {
            (leader, term) == (Some(to), of) && role != Some(Role::Retiring)
        }
        LeaderChange::SteppedDown { .. }
        | LeaderChange::LostContact { .. }
        | LeaderChange::LeaderLeft { .. }
        | LeaderChange::LeaseLapsed { .. }
        | LeaderChange::ElectionStarted { .. } => leader.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doyen_core::change::{ElectionReason, StepDownReason};

    #[test]
    fn a_change_explains_the_state_that_it_led_to_and_no_other() {
        let (me, other, term) = (NodeId(1), NodeId(2), Term(7));
        let became = LeaderChange::BecameLeader { term, reason: ElectionReason::Founded };
        assert!(leads_to(became, (Some(me), term, Some(Role::Leader)), me));
        for later in [
            (Some(me), term, Some(Role::Retiring)),
            (None, term, Some(Role::Follower)),
            (Some(other), Term(8), Some(Role::Follower)),
        ] {
            assert!(!leads_to(became, later, me), "{later:?}");
        }
        let follows =
            LeaderChange::Follows { leader: other, term, reason: ElectionReason::Founded };
        assert!(leads_to(follows, (Some(other), term, Some(Role::Follower)), me));
        assert!(!leads_to(follows, (None, term, Some(Role::Follower)), me), "it has left");
        let ended = LeaderChange::SteppedDown { term, reason: StepDownReason::NoMajority };
        assert!(leads_to(ended, (None, term, Some(Role::Follower)), me));
        assert!(!leads_to(ended, (Some(me), Term(8), Some(Role::Leader)), me));
    }
}
