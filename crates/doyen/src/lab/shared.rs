//! The state that all threads of the lab share, and what is published of it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use doyen::clock::Moment;
use tokio::sync::watch;

use super::monitor::{Changed, Line, Monitor};
use super::view;

/// How often changes are published at most, if they are worth showing at once.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);

/// How often numbers that move are published.
const PAUSE: Duration = Duration::from_millis(100);

/// What the page is told next. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    /// The cluster as JSON, without the time, so that it can be compared.
    cluster: Arc<str>,
    /// Rises with every new value.
    pub(crate) cluster_version: u64,
    now_us: u64,
    pub(crate) timeline: Arc<str>,
    pub(crate) timeline_version: u64,
    pub(crate) lines: Arc<[Line]>,
}

impl Published {
    /// The cluster as JSON, with the time at which it was true.
    pub(crate) fn cluster(&self) -> String {
        let rest = self.cluster.strip_prefix('{').unwrap_or("}");
        format!("{{\"now_us\":{},{rest}", self.now_us)
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    monitor: Mutex<Monitor>,
    changed: Condvar,
    published: watch::Sender<Published>,
}

impl Shared {
    pub(crate) fn new(monitor: Monitor) -> Arc<Self> {
        let published = watch::Sender::new(Published::default());
        let shared = Self { monitor: Mutex::new(monitor), changed: Condvar::new(), published };
        // A page that connects at once finds something.
        shared.publish(&mut shared.lock());
        Arc::new(shared)
    }

    /// Reads or changes the state; what changes is published soon.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Monitor) -> T) -> T {
        let mut monitor = self.lock();
        let result = change(&mut monitor);
        if monitor.changed.at_once {
            self.changed.notify_one();
        }
        result
    }

    /// What is published, whenever it changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Published> {
        self.published.subscribe()
    }

    /// Publishes without end, in a separate thread.
    pub(crate) fn publish_changes(&self) {
        let mut last = Instant::now();
        let mut monitor = self.lock();
        loop {
            let since = last.elapsed();
            let wait = match monitor.changed.at_once {
                true => SHORTEST_PAUSE.saturating_sub(since),
                false => PAUSE.saturating_sub(since),
            };
            // The end of a lease is shown when it happens.
            let now = Moment::now();
            let lease = monitor.leadership.next_deadline();
            let wait = lease.map_or(wait, |deadline| wait.min(deadline.since(now)));
            if !wait.is_zero() {
                let waited = self.changed.wait_timeout(monitor, wait);
                monitor = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            monitor.expire(Moment::now());
            let pause = if monitor.changed.at_once { SHORTEST_PAUSE } else { PAUSE };
            if last.elapsed() >= pause {
                self.publish(&mut monitor);
                last = Instant::now();
            }
        }
    }

    fn publish(&self, monitor: &mut Monitor) {
        let Changed { timeline, .. } = std::mem::take(&mut monitor.changed);
        let now = Moment::now();
        // Numbers, texts and lists can always be written as JSON.
        let cluster = serde_json::to_string(&view::cluster(monitor, now)).unwrap_or_default();
        self.published.send_if_modified(|last| {
            let mut news = false;
            if *last.cluster != *cluster {
                (last.cluster, last.now_us) = (cluster.into(), monitor.setup.micros(now));
                last.cluster_version += 1;
                news = true;
            }
            if timeline {
                let timeline = serde_json::to_string(&view::timeline(monitor));
                last.timeline = timeline.unwrap_or_default().into();
                last.timeline_version += 1;
                news = true;
            }
            if last.lines.last().map(|line| line.n) != monitor.lines.back().map(|line| line.n) {
                last.lines = monitor.lines.iter().cloned().collect();
                news = true;
            }
            news
        });
    }

    fn lock(&self) -> MutexGuard<'_, Monitor> {
        self.monitor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
