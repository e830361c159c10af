//! What a status says, in sentences: the same on the command line, in notices and on the page.

use std::time::Duration;

use doyen_core::protocol::Role;

use super::{JobFailure, MemberStatus, Paused, Status};
use crate::clock;

impl Status {
    /// As text: that this node is drained, and for how much longer. None if it is not.
    pub fn drain(&self) -> Option<String> {
        let lasting = match self.drained_remaining_ms {
            Some(left) => format!("for another {}", rounded_up(left)),
            None => "until `undrain`".to_owned(),
        };
        let effect = match self.role {
            Role::Retiring => "it leads until its job or hook has stopped",
            _ if self.never_leads => "it never leads",
            Role::Leader => "it leads because no other member can",
            Role::Follower | Role::Candidate => "it leads only if no other member can",
        };
        self.drained.then(|| format!("is drained {lasting}: {effect}"))
    }

    /// As text: that elections are paused, and for how much longer. None if they are not.
    pub fn paused(&self) -> Option<String> {
        let Paused { by, remaining_ms, .. } = self.pause?;
        let effect = match self.leader {
            Some(leader) => {
                format!("if {} is lost, there is no leader until", self.name_of(leader))
            }
            None => "there is no leader until".to_owned(),
        };
        Some(format!(
            "elections are paused for another {} (command at {}): {effect} then or until `doyen resume`",
            rounded_up(remaining_ms),
            self.name_of(by)
        ))
    }

    /// As text: what runs under the lease of this node, and whether a transfer of leadership waits for it. None if nothing
    /// does.
    pub fn work(&self) -> Option<String> {
        let lasting = rounded_up(self.work_ms?);
        Some(match self.role {
            Role::Retiring => {
                let to = self.named_successor.map(|to| format!(" to {}", self.name_of(to)));
                let since = self.retiring_ms.map(|since| format!(" for {}", rounded_up(since)));
                format!(
                    "has been transferring leadership{}{}: its job or hook, which it started {lasting} ago, has to stop first",
                    to.unwrap_or_default(),
                    since.unwrap_or_default()
                )
            }
            _ => format!("has run its job or hook under its lease for {lasting}"),
        })
    }

    /// As text: that the leader was told to give up leadership, by whichever command, and has not done so yet. None if it was
    /// not.
    pub fn moving(&self) -> Option<String> {
        let (leader, by) = (self.leader?, self.moved_by.as_ref()?);
        Some(format!("{} was told to give up leadership; command from {by}", self.name_of(leader)))
    }

    /// What fails of what this node runs under its lease. None if nothing does.
    pub fn job_failure(&self) -> Option<&JobFailure> {
        self.job.as_ref()?.failure.as_ref()
    }

    /// As text: that this node rejoins, and which members have not answered. None if it does not.
    pub fn rejoin(&self) -> Option<String> {
        let awaited = self.rejoining.then(|| self.unanswered())?;
        Some(format!("lost its state and rejoins; no answer yet from {awaited}"))
    }

    /// As text: the members that have not answered, each with the reason if that is known.
    pub(in crate::node) fn unanswered(&self) -> String {
        let awaited = self.members.iter().filter(|member| !member.reachable);
        let described = awaited.map(|member| match member.rejection() {
            Some(rejection) => format!("{} (which {rejection})", member.name),
            None => member.name.clone(),
        });
        described.collect::<Vec<_>>().join(", ")
    }
}

/// Of a member with another configuration.
pub(in crate::node) const CONFIGURATION_DIFFERS: &str =
    "has another member list, algorithm or groups/group_lease: compare the configurations";

impl MemberStatus {
    /// Why this node rejects what arrives from it, by name. None if it does not.
    pub fn rejected_for(&self) -> Option<&str> {
        // A node of an earlier release only says that the configurations differ.
        self.rejected.as_deref().or(self.config_mismatch.then_some("configuration"))
    }

    /// As text: why this node rejects what arrives from it. None if it does not.
    pub fn rejection(&self) -> Option<&'static str> {
        match self.rejected_for()? {
            "key" => Some("does not use a key of this node: compare the key files"),
            "version" => {
                Some("has a protocol version that this node cannot read: finish the upgrade")
            }
            "cluster" => Some("belongs to another cluster: compare the names and the addresses"),
            "configuration" => Some(CONFIGURATION_DIFFERS),
            _ => Some("sends what this node rejects: see its log"),
        }
    }

    /// Its penalty as text; none if it has none.
    pub fn penalty(&self) -> Option<String> {
        let ago = self.failed_ms_ago.map(|ago| format!("{} ago", rounded_up(ago)));
        let failed = match (self.recent_failures, ago) {
            (0, _) => return None,
            (1, None) => "failed as leader".to_owned(),
            (1, Some(ago)) => format!("failed as leader {ago}"),
            (times, None) => format!("failed as leader {times} times"),
            (times, Some(ago)) => format!("failed as leader {times} times, last {ago}"),
        };
        Some(match self.penalty_remaining_ms {
            Some(left) => format!("{failed}; ranked last for another {}", rounded_up(left)),
            // No leader has counted it: the member may lead on, and only this node has lost it.
            None => "may have failed as leader; ranked last until a leader says whether it has"
                .to_owned(),
        })
    }
}

/// Whole seconds, rounded up: a time that is not over is not "0 s".
fn rounded_up(millis: u64) -> String {
    seconds(millis.div_ceil(1000))
}

/// `48 s`, `1m 30s`.
pub(crate) fn seconds(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => clock::in_days(Duration::from_secs(seconds)),
    }
}
