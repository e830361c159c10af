//! Watches the loop: when it last published something, and how often the leader changed.
//!
//! The loop publishes a snapshot several times a second. If it does not, it is stuck, for example on a disk that does not
//! answer, and `/livez` reports that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use doyen_core::change::LeaderChange;
use tokio::time::Instant;

use crate::node::Handle;
use crate::node::status::Entry;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Observer(Arc<Observed>);

#[derive(Debug)]
struct Observed {
    start: Instant,
    /// When the loop last published something, in milliseconds since `start`. A suspend of the machine does not count.
    last_seen: AtomicU64,
    ended: AtomicBool,
    leader_changes: AtomicU64,
}

impl Observer {
    pub(super) fn new() -> Self {
        Self(Arc::new(Observed {
            start: Instant::now(),
            last_seen: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            leader_changes: AtomicU64::new(0),
        }))
    }

    /// How long the loop has published nothing; none if it has ended.
    pub(super) fn silence(&self) -> Option<Duration> {
        let last_seen = Duration::from_millis(self.0.last_seen.load(Ordering::Relaxed));
        let ended = self.0.ended.load(Ordering::Relaxed);
        (!ended).then(|| self.0.start.elapsed().saturating_sub(last_seen))
    }

    /// How often this node became leader or followed a new one.
    pub(super) fn leader_changes(&self) -> u64 {
        self.0.leader_changes.load(Ordering::Relaxed)
    }

    /// Watches until the node ends.
    pub(super) async fn observe(self, handle: Handle) {
        let (mut status, mut history) = (handle.watch(), handle.watch_history());
        let mut counted = 0;
        loop {
            counted = self.count(&history.borrow_and_update(), counted);
            let changed = tokio::select! {
                changed = status.changed() => changed,
                changed = history.changed() => changed,
            };
            if changed.is_err() {
                break;
            }
            let now = self.0.start.elapsed().as_millis() as u64;
            self.0.last_seen.store(now, Ordering::Relaxed);
        }
        self.0.ended.store(true, Ordering::Relaxed);
    }

    /// Counts the changes after entry `counted`; returns the last entry that has been counted.
    fn count(&self, history: &[Entry], counted: u64) -> u64 {
        let new = history.iter().filter(|entry| entry.number > counted);
        let changes = new.filter(|entry| {
            matches!(entry.change, LeaderChange::BecameLeader { .. } | LeaderChange::Follows { .. })
        });
        self.0.leader_changes.fetch_add(changes.count() as u64, Ordering::Relaxed);
        history.last().map_or(counted, |entry| entry.number.max(counted))
    }
}
