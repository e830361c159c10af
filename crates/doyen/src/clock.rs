//! A clock that keeps counting while the machine is suspended.
//!
//! A lease ends at a time, so a machine that was suspended must know for how long. `CLOCK_MONOTONIC` stops during a
//! suspend on Linux, and the wall clock can be set; `CLOCK_BOOTTIME` does neither. On macOS the monotonic clock counts a
//! suspend as well. On other systems the monotonic clock is the best there is, and a node warns about it when it starts
//! ([`caveat`]).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doyen_core::time::Span;
use rustix::time::{ClockId, clock_gettime};

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

const COUNTS_SUSPEND: bool = cfg!(any(target_os = "linux", target_vendor = "apple"));

/// A warning for the operator, if no clock of this system counts the time of a suspend.
pub fn caveat() -> Option<&'static str> {
    (!COUNTS_SUSPEND).then_some(
        "no clock of this system counts the time for which it is suspended: after a suspend, a leader may rely on a lease \
         that is over. Prevent this machine from being suspended, and check fencing tokens",
    )
}

/// The wall clock, in milliseconds since 1970: for people, and for comparison with other machines.
pub fn unix_ms() -> u64 {
    unix_us() / 1000
}

/// The same in microseconds.
pub fn unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Reads a length of time: `1.5ms`, `20us`, `3s`, `5m`, `1h 30m`. At most a hundred and forty years.
pub fn parse_span(text: &str) -> Result<Span, String> {
    text.parse::<Span>().or_else(|problem| {
        let long = humantime::parse_duration(text).map_err(|_| problem)?;
        let nanos = u64::try_from(long.as_nanos()).ok().filter(|&nanos| nanos <= u64::MAX / 4);
        nanos.map(Span::from_nanos).ok_or_else(|| format!("`{text}` is too long"))
    })
}

/// A length of time for people, in days at most: months and years differ in length.
pub fn in_days(duration: Duration) -> String {
    const DAY: u64 = 24 * 60 * 60;
    let days = duration.as_secs() / DAY;
    let rest = duration - Duration::from_secs(days * DAY);
    match (days, rest.is_zero()) {
        (0, _) => humantime::format_duration(duration).to_string(),
        (_, true) => format!("{days}d"),
        (_, false) => format!("{days}d {}", humantime::format_duration(rest)),
    }
}

/// A length of time for people, with a unit that suits it: `310 us`, `1.2 ms`, `180 ms`, `12.3 s`, `1h 59m 59s`.
pub fn with_unit(duration: Duration) -> String {
    let micros = duration.as_micros();
    match micros {
        0..1000 => format!("{micros} us"),
        1000..10_000 => format!("{:.1} ms", micros as f64 / 1e3),
        10_000..1_000_000 => format!("{} ms", micros / 1000),
        1_000_000..60_000_000 => format!("{:.1} s", micros as f64 / 1e6),
        _ => in_days(Duration::from_secs(duration.as_secs())),
    }
}

/// A point in time, in nanoseconds since this machine booted. Moments of two machines cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Moment(u64);

impl Moment {
    /// The current time.
    pub fn now() -> Self {
        let now = clock_gettime(CLOCK);
        // Neither part is negative: the clock starts at boot.
        Self(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    /// From nanoseconds since boot.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The time since boot, in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// `span` later; saturates.
    #[must_use]
    pub const fn after(self, span: Span) -> Self {
        self.after_nanos(span.as_nanos())
    }

    /// `nanos` nanoseconds later; saturates.
    #[must_use]
    pub const fn after_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// The time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_clock_that_counts_a_suspend_needs_no_warning() {
        assert_eq!((CLOCK, caveat()), (ClockId::Boottime, None));
    }

    #[test]
    fn durations_have_a_unit_that_suits_them() {
        for (micros, text) in [
            (310, "310 us"),
            (1240, "1.2 ms"),
            (180_400, "180 ms"),
            (12_345_000, "12.3 s"),
            (7_199_000_000, "1h 59m 59s"),
            (36_000_000_000_000, "416d 16h"),
        ] {
            assert_eq!(with_unit(Duration::from_micros(micros)), text);
        }
    }

    #[test]
    fn time_never_goes_back() {
        let first = Moment::now();
        std::thread::sleep(Duration::from_millis(1));
        let second = Moment::now();
        assert!(second.since(first) >= Duration::from_millis(1));
        assert_eq!(first.since(second), Duration::ZERO);
        assert_eq!(first.after(Span::from_nanos(u64::MAX)), Moment::from_nanos(u64::MAX));
    }
}
