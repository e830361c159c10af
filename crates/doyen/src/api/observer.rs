//! Watches the loop: when it last published something.
//!
//! The loop publishes a snapshot several times a second. If it does not, it is stuck, for example on a disk that does not
//! answer, and `/livez` reports that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::node::Handle;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Observer(Arc<Observed>);

#[derive(Debug)]
struct Observed {
    start: Instant,
    /// When the loop last published something, in milliseconds since `start`. A suspend of the machine does not count.
    last_seen: AtomicU64,
    ended: AtomicBool,
}

impl Observer {
    pub(super) fn new() -> Self {
        Self(Arc::new(Observed {
            start: Instant::now(),
            last_seen: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }))
    }

    /// How long the loop has published nothing; none if it has ended.
    pub(super) fn silence(&self) -> Option<Duration> {
        let last_seen = Duration::from_millis(self.0.last_seen.load(Ordering::Relaxed));
        let ended = self.0.ended.load(Ordering::Relaxed);
        (!ended).then(|| self.0.start.elapsed().saturating_sub(last_seen))
    }

    /// Watches until the node ends.
    pub(super) async fn observe(self, handle: Handle) {
        let mut status = handle.watch();
        while status.changed().await.is_ok() {
            let now = self.0.start.elapsed().as_millis() as u64;
            self.0.last_seen.store(now, Ordering::Relaxed);
        }
        self.0.ended.store(true, Ordering::Relaxed);
    }
}
