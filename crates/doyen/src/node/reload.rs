//! Requests to read the configuration again. The program that runs the node does that, because it knows where the
//! configuration comes from; the loop adopts what concerns it.

use doyen_core::config::Config;
use doyen_core::members::Term;
use tokio::sync::{mpsc, oneshot};

use super::inbox::{self, Inbox};
use super::{Command, CommandError, Handle};

/// How many requests may wait.
const WAITING: usize = 4;

/// Where the result goes: what has changed, or why nothing has.
pub type ReloadAnswer = oneshot::Sender<Result<String, String>>;

/// Both ends of the channel to the program that runs the node.
#[derive(Clone, Debug)]
pub(super) struct Reloads {
    requests: mpsc::Sender<ReloadAnswer>,
    received: Inbox<ReloadAnswer>,
}

impl Default for Reloads {
    fn default() -> Self {
        let (requests, received) = inbox::channel(WAITING);
        Self { requests, received }
    }
}

/// Timing that a member adopts when a new term begins.
#[derive(Clone, Debug)]
pub(super) struct NextTiming {
    pub(super) config: Config,
    /// The term in which it was set.
    pub(super) set_in: Term,
}

impl NextTiming {
    /// Changes what no lease depends on: when members campaign, and when a leader of higher rank takes over. The length of
    /// leases and the settings that it follows from stay, because current vote leases and the lease of this member depend
    /// on them.
    pub(super) fn adopt(self, config: &mut Config) {
        let new = self.config;
        config.timing.preempt = new.timing.preempt;
        let quorum = &mut config.quorum;
        quorum.jitter = new.quorum.jitter;
        quorum.stagger = new.quorum.stagger;
        quorum.tenure = new.quorum.tenure;
        quorum.penalty_decay = new.quorum.penalty_decay;
        quorum.probe = new.quorum.probe;
        quorum.preemption = new.quorum.preemption;
        quorum.margin = new.quorum.margin;
    }
}

impl Handle {
    /// Has the program that runs the node read its configuration, its keys and its admin secret again. Returns what has
    /// changed, or why nothing has.
    pub async fn reload(&self) -> Result<String, String> {
        let (answer, answered) = oneshot::channel();
        let sent = self.reloads.requests.try_send(answer);
        sent.map_err(|_| "the node is busy with other requests, or cannot reload".to_owned())?;
        answered.await.unwrap_or_else(|_| Err("the node has stopped".to_owned()))
    }

    /// The requests to reload, for the program that runs the node; none if they have been asked for before.
    pub fn reload_requests(&self) -> Option<mpsc::Receiver<ReloadAnswer>> {
        self.reloads.received.take()
    }

    /// Uses the timing of `config` from the next term on, as far as no lease depends on it.
    pub async fn retime(&self, config: Config) -> Result<(), CommandError> {
        self.send(|answer| Command::Retime(Box::new(config), answer)).await
    }
}
