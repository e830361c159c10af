//! The clock: one that counts while the machine sleeps.
//!
//! A lease is time, so a machine that slept must know for how long. `CLOCK_MONOTONIC` stops in a suspend on Linux and
//! the wall clock can be set, so neither will do; `CLOCK_BOOTTIME` is right. On macOS the monotonic clock counts a
//! suspend as well. Elsewhere it is the nearest thing, and a node says so when it starts ([`caveat`]).

use std::time::Duration;

use doyen_core::time::Span;
use rustix::time::{ClockId, clock_gettime};

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// Whether the clock goes on while the machine is suspended.
const COUNTS_SUSPEND: bool = cfg!(any(target_os = "linux", target_vendor = "apple"));

/// What the operator of this machine should know of its clock, if there is something.
pub fn caveat() -> Option<&'static str> {
    (!COUNTS_SUSPEND).then_some(
        "no clock of this system counts the time for which it is suspended: a leader that wakes up may believe in a lease \
         that is over. Keep this machine from being suspended, and have fencing tokens checked",
    )
}

/// A moment, in nanoseconds since this machine booted. Moments of two machines cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Moment(u64);

impl Moment {
    /// Now.
    pub fn now() -> Self {
        let now = clock_gettime(CLOCK);
        // Neither is negative: the clock began at boot.
        Self(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    /// The moment so many nanoseconds after boot.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// In nanoseconds since boot.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The moment `span` later. An absurd span is for ever.
    #[must_use]
    pub const fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.as_nanos()))
    }

    /// The moment so many nanoseconds later.
    #[must_use]
    pub const fn after_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// How long after `earlier` this is; no time if it is before.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn there_is_nothing_to_say_of_a_clock_that_counts_a_suspend() {
        assert_eq!((CLOCK, caveat()), (ClockId::Boottime, None));
    }

    #[test]
    fn time_goes_on_and_never_back() {
        let first = Moment::now();
        std::thread::sleep(Duration::from_millis(1));
        let second = Moment::now();
        assert!(second.since(first) >= Duration::from_millis(1));
        assert_eq!(first.since(second), Duration::ZERO);
        assert_eq!(first.after(Span::from_nanos(u64::MAX)), Moment::from_nanos(u64::MAX));
    }
}
