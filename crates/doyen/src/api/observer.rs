//! Somebody who listens all the time: when the loop last said something, and how often the leader has changed.
//!
//! The loop publishes a snapshot several times a second, whatever happens. So its silence means that it is stuck, say
//! on a disk that does not answer, and `/livez` can tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use doyen_core::change::LeaderChange;
use tokio::time::Instant;

use crate::node::Handle;
use crate::node::status::Entry;

/// What was observed. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Observer(Arc<Observed>);

#[derive(Debug)]
struct Observed {
    began: Instant,
    /// When the loop last said something, in milliseconds since then. A machine's sleep does not count.
    heard: AtomicU64,
    ended: AtomicBool,
    leader_changes: AtomicU64,
}

impl Observer {
    pub(super) fn new() -> Self {
        Self(Arc::new(Observed {
            began: Instant::now(),
            heard: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            leader_changes: AtomicU64::new(0),
        }))
    }

    /// For how long the loop has been silent; nothing if it has ended.
    pub(super) fn silence(&self) -> Option<Duration> {
        let heard = Duration::from_millis(self.0.heard.load(Ordering::Relaxed));
        let ended = self.0.ended.load(Ordering::Relaxed);
        (!ended).then(|| self.0.began.elapsed().saturating_sub(heard))
    }

    /// How often somebody began to lead or to be followed, as this node saw it.
    pub(super) fn leader_changes(&self) -> u64 {
        self.0.leader_changes.load(Ordering::Relaxed)
    }

    /// Listens until the node ends.
    pub(super) async fn observe(self, handle: Handle) {
        let (mut status, mut history) = (handle.watch(), handle.watch_history());
        let mut counted = 0;
        loop {
            counted = self.count(&history.borrow_and_update(), counted);
            let heard = tokio::select! {
                heard = status.changed() => heard,
                heard = history.changed() => heard,
            };
            if heard.is_err() {
                break;
            }
            let now = self.0.began.elapsed().as_millis() as u64;
            self.0.heard.store(now, Ordering::Relaxed);
        }
        self.0.ended.store(true, Ordering::Relaxed);
    }

    /// Counts what came after entry `counted`; says up to where it has counted.
    fn count(&self, history: &[Entry], counted: u64) -> u64 {
        let new = history.iter().filter(|entry| entry.number > counted);
        let changes = new.filter(|entry| {
            matches!(entry.change, LeaderChange::BecameLeader { .. } | LeaderChange::Follows { .. })
        });
        self.0.leader_changes.fetch_add(changes.count() as u64, Ordering::Relaxed);
        history.last().map_or(counted, |entry| entry.number.max(counted))
    }
}
