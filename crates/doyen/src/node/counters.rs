//! What a node counts and measures since its start, for the metrics. The loop only adds to atomic numbers, so no reader can
//! delay it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::wire::Rejection;

/// Counters since the start. None of them ever falls.
#[derive(Debug, Default)]
pub struct Counters {
    /// Datagrams sent.
    pub sent: AtomicU64,
    /// Bytes sent.
    pub sent_bytes: AtomicU64,
    /// Datagrams received, including those that were rejected.
    pub received: AtomicU64,
    /// Bytes received.
    pub received_bytes: AtomicU64,
    /// Datagrams that could not be sent.
    pub unsent: AtomicU64,
    /// Datagrams rejected, by reason, in the order of [`Rejection::ALL`].
    pub rejected: [AtomicU64; Rejection::ALL.len()],
    /// How often this node became leader or followed a new one.
    pub leader_changes: AtomicU64,
    /// Elections that this node started.
    pub elections: AtomicU64,
    /// Events handled.
    pub events: AtomicU64,
    /// How long writes to the state file took.
    pub store_time: Histogram,
    /// How long members took to answer.
    pub round_trip: Histogram,
    /// How long no lease was valid before one of this node began: measured after a transfer and in a gap; after a crash, the
    /// time since this node last heard the leader before it.
    pub downtime: Histogram,
}

/// Log lines of this process that were lost, because the log was too slow or could not be written. All nodes of a process
/// share its log.
pub static LOST_LOG_LINES: AtomicU64 = AtomicU64::new(0);

impl Counters {
    /// Adds `amount` to a counter.
    pub fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }

    /// Reads a counter.
    pub fn read(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }

    pub(super) fn reject(&self, reason: Rejection) {
        Self::add(&self.rejected[reason as usize], 1);
    }
}

/// The upper bounds of the buckets, in microseconds: from a round trip in one rack to an outage that was noticed.
const BOUNDS: [u64; 17] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// How often times of which length were measured.
#[derive(Debug, Default)]
pub struct Histogram {
    /// One for each bound, then one for what is longer than all of them.
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_us: AtomicU64,
}

impl Histogram {
    /// Adds a time.
    pub fn observe(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|&bound| bound < micros);
        Counters::add(&self.counts[bucket], 1);
        Counters::add(&self.sum_us, micros);
    }

    /// The sum of all times in seconds, and how many of them are in which bucket: its upper bound in seconds, and its count.
    pub fn read(&self) -> (f64, Vec<(f64, u64)>) {
        let bounds = BOUNDS.iter().map(|&bound| bound as f64 / 1e6).chain([f64::INFINITY]);
        let buckets = bounds.zip(&self.counts).map(|(bound, it)| (bound, Counters::read(it)));
        (Counters::read(&self.sum_us) as f64 / 1e6, buckets.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_that_is_not_shorter() {
        let histogram = Histogram::default();
        for micros in [0, 50, 51, 1_000, 60_000_000] {
            histogram.observe(Duration::from_micros(micros));
        }
        let (sum, buckets) = histogram.read();
        let filled: Vec<(f64, u64)> = buckets.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0.000_05, 2), (0.000_1, 1), (0.001, 1), (f64::INFINITY, 1)]);
        assert!((sum - 60.001_101).abs() < 1e-9, "{sum}");
    }
}
