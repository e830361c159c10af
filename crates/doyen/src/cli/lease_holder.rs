//! What a command runs under: the lease of a node, in this process or another one of this machine, or a lock.
//!
//! Another node is known by its lease file alone. While the command runs, `doyen run` and its guardian hold a shared lock on
//! that file: the node's transfers wait for it, and so does the node's own guardian if the node dies, at most until the
//! deadline that the file showed last. The fencing token comes from the node, over its admin socket.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use doyen::api::{Accepted, TokenGiven};
use doyen::clock::Moment;
use doyen::guardian::lease_file::{Lease, LeaseReader};
use doyen::leadership::{FencingToken, LeadershipState};
use doyen::lock::{Claim, ClaimState};
use doyen::node::status::Job;
use doyen::node::{Handle, Work};
use doyen_core::change::{ElectionReason, LeaderChange};
use doyen_core::members::NodeId;
use doyen_core::protocol::{AdminCommand, Role};
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::warn;

use super::admin_socket::LocalAdmin;
use super::reload::reload_by_signal;

/// How often the lease file of another node is read.
const LOOK: Duration = Duration::from_millis(5);

/// A node under whose lease something may run.
pub(super) enum Node {
    /// A node in this process.
    Own { handle: Handle, announced: watch::Receiver<LeadershipState> },
    /// A node in another process of this machine.
    Other(Attachment),
    /// No node: a lock of a cluster, which ends with the command.
    Lock { claim: Claim, state: watch::Receiver<ClaimState> },
}

/// The position of a node.
pub(super) struct Position {
    /// It holds a lease under which something may start.
    pub(super) leads: bool,
    /// It is about to give its lease up.
    pub(super) retires: bool,
    pub(super) term: u64,
}

/// What makes a transfer wait.
pub(super) enum Held {
    Work {
        _work: Work,
    },
    Lock {
        lock: File,
    },
    /// The lock of the cluster itself.
    Claim,
}

impl Held {
    /// Nothing runs any more. If this is not called, as when this process fails, the guardian's copy of the lock stays until
    /// it has ended the job.
    pub(super) fn release(self) {
        if let Self::Lock { lock } = self {
            // The lock is one: this takes it away from the guardian too.
            let _ = lock.unlock();
        }
    }
}

impl Node {
    pub(super) fn own(handle: Handle) -> Self {
        let announced = handle.leadership().watch();
        Self::Own { handle, announced }
    }

    /// A lock that is held.
    pub(super) fn of_lock(claim: Claim) -> Self {
        let state = claim.watch();
        Self::Lock { claim, state }
    }

    /// Whether this process ends with the command, and not with a node.
    pub(super) fn ends_with_command(&self) -> bool {
        matches!(self, Self::Other(_) | Self::Lock { .. })
    }

    /// Whether nothing can run under it any more: a lock that was lost.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Lock { claim, .. } if matches!(claim.state(), ClaimState::Over(_)))
    }

    pub(super) fn position(&mut self) -> Position {
        match self {
            Self::Own { announced, .. } => {
                let state = *announced.borrow_and_update();
                let retires = state.role == Some(Role::Retiring);
                Position { leads: state.is_leader(), retires, term: state.term.0 }
            }
            Self::Other(node) => node.position(),
            Self::Lock { state, .. } => match *state.borrow_and_update() {
                ClaimState::Held(held) => Position {
                    leads: Moment::now() < held.deadline,
                    retires: false,
                    term: held.fence.term.0,
                },
                ClaimState::Waiting { .. } | ClaimState::Over(_) => {
                    Position { leads: false, retires: true, term: 0 }
                }
            },
        }
    }

    /// Waits until its position may have changed.
    pub(super) async fn changed(&mut self) {
        match self {
            Self::Own { announced, .. } => {
                // Its end is noticed elsewhere.
                if announced.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            Self::Other(_) => sleep(LOOK).await,
            Self::Lock { state, .. } => {
                if state.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// Something starts under the lease, if there still is one: the term, and the fencing token.
    pub(super) fn begin(&self) -> Result<Option<(Held, u64, u64)>> {
        match self {
            Self::Own { handle, .. } => {
                let Some(work) = handle.begin_work() else { return Ok(None) };
                let term = work.term().0;
                let token = work.next_token();
                let FencingToken(token) = token
                    .with_context(|| format!("there are no fencing tokens left in term {term}"))?;
                Ok(Some((Held::Work { _work: work }, term, token)))
            }
            Self::Other(node) => node.begin(),
            Self::Lock { claim, .. } => Ok(match claim.state() {
                ClaimState::Held(held) => Some((Held::Claim, held.fence.term.0, held.token.0)),
                ClaimState::Waiting { .. } | ClaimState::Over(_) => None,
            }),
        }
    }

    /// Whether nothing is left of what ran elsewhere: the last leader gave this one its leadership, or the leader has waited
    /// for the end of the last lock. Of another node that is unknown.
    pub(super) fn was_transferred(&self, term: u64) -> bool {
        let handle = match self {
            Self::Own { handle, .. } => handle,
            Self::Other(_) => return false,
            Self::Lock { .. } => return true,
        };
        handle.history().iter().rev().any(|entry| {
            matches!(entry.change, LeaderChange::BecameLeader { term: of, reason: ElectionReason::Transferred { .. } }
                if of.0 == term)
        })
    }

    /// Shows in the status of the node in this process what runs under its lease.
    pub(super) fn show(&self, job: &Job) {
        if let Self::Own { handle, .. } = self {
            handle.show_job(job.clone());
        }
    }

    /// Stops the node in this process; a node in another process keeps running.
    pub(super) fn stop(&self, grace: Duration) {
        if let Self::Own { handle, .. } = self {
            handle.stop(grace);
        }
    }

    /// Has the node give up leadership.
    pub(super) fn resign(&self) {
        match self {
            Self::Own { handle, .. } => {
                let handle = handle.clone();
                tokio::spawn(async move {
                    if let Err(error) = handle.command(AdminCommand::GiveUp).await {
                        warn!(event = "resign-failed", reason = %error, "leadership was not given up: {error}");
                    }
                });
            }
            Self::Other(node) => {
                // This member and no other, though another one may lead by now.
                let path = format!("/v1/resign?member={}", node.member);
                if let Err(error) = node.admin.call::<Accepted>(&path) {
                    warn!(
                        event = "resign-failed",
                        reason = format!("{error:#}"),
                        "leadership was not given up: {error:#}"
                    );
                }
            }
            // It ends with the command.
            Self::Lock { .. } => {}
        }
    }

    /// Has the node in this process read its configuration again; false if there is none.
    pub(super) fn reload(&self) -> bool {
        let Self::Own { handle, .. } = self else { return false };
        tokio::spawn(reload_by_signal(handle.clone()));
        true
    }

    /// The lock that its guardian holds too.
    pub(super) fn lock(&self) -> Option<&File> {
        match self {
            Self::Own { .. } | Self::Lock { .. } => None,
            Self::Other(node) => Some(&node.lock),
        }
    }
}

/// The way to a node in another process.
pub(super) struct Attachment {
    lease: LeaseReader,
    lock: File,
    admin: LocalAdmin,
    /// The member that the node runs.
    member: NodeId,
    /// What the file showed last.
    last: Option<Lease>,
    /// The term of the last lease that was valid.
    term: u64,
}

/// There is no node to attach to.
#[derive(Debug, thiserror::Error)]
#[error("no node publishes its lease in {0}: start `doyen node --lease-file {0}` first")]
pub(super) struct NoNodeYet(String);

impl NoNodeYet {
    pub(super) fn new(lease_file: &Path) -> Self {
        Self(lease_file.display().to_string())
    }
}

impl Attachment {
    /// To the node that publishes its lease in this file.
    pub(super) fn new(
        lease_file: &Path,
        admin: LocalAdmin,
        member: NodeId,
    ) -> Result<Self, NoNodeYet> {
        // A file that an earlier node has left shows no lease, and never will.
        if !LeaseReader::is_written(lease_file) {
            return Err(NoNodeYet::new(lease_file));
        }
        let lease = LeaseReader::open(lease_file).map_err(|_| NoNodeYet::new(lease_file))?;
        let lock = File::open(lease_file).map_err(|_| NoNodeYet::new(lease_file))?;
        Ok(Self { lease, lock, admin, member, last: None, term: 0 })
    }

    fn position(&mut self) -> Position {
        // What cannot be read is being written: the last lease that was read counts.
        if let Ok(lease) = self.lease.read() {
            self.last = lease;
        }
        let valid = self.last.filter(|lease| Moment::now() < lease.deadline);
        let retires = valid.is_none_or(|lease| lease.term != self.term);
        if let Some(lease) = valid {
            self.term = lease.term;
        }
        Position { leads: valid.is_some(), retires, term: self.term }
    }

    fn begin(&self) -> Result<Option<(Held, u64, u64)>> {
        let held = Held::Lock { lock: self.lock.try_clone()? };
        // A transfer that has begun holds the lock, or has taken the lease out of the file by now.
        if self.lock.try_lock_shared().is_err() {
            return Ok(None);
        }
        if !self.lease.is_valid() {
            held.release();
            return Ok(None);
        }
        match self.admin.call::<TokenGiven>("/v1/token") {
            Ok(given) => Ok(Some((held, given.term, given.token))),
            Err(error) => {
                warn!(
                    event = "no-fencing-token",
                    reason = format!("{error:#}"),
                    "no fencing token: {error:#}"
                );
                held.release();
                Ok(None)
            }
        }
    }
}
