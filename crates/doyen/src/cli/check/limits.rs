//! When a check stops, whether it has seen everything or not. Limits hold for the whole command, however many rings it
//! checks; only shrinking what was found has a patience of its own.

use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use doyen_check::search;
use doyen_core::time::Span;

use crate::cli::memory;

/// How much of the free memory a check takes at most, unless one says otherwise.
const SHARE_OF_MEMORY: f64 = 0.6;

#[derive(Args, Debug)]
pub(super) struct Limits {
    /// Stop at so many states
    #[arg(long, value_name = "COUNT", value_parser = parse_count::<u64>, help_heading = "Search")]
    max_states: Option<u64>,

    /// Stop after this time, such as 60s or 5m, also random runs; if something was found, it is then shrunk for 25s at
    /// most
    #[arg(long, value_name = "TIME", help_heading = "Search")]
    max_time: Option<String>,

    /// Stop when so much memory is taken, such as 2GB [default: 60 % of what is free]
    #[arg(long, value_name = "SIZE", help_heading = "Search")]
    max_memory: Option<String>,

    /// Go so many steps from the start at most
    #[arg(long, value_name = "COUNT", value_parser = parse_count::<u32>, help_heading = "Search")]
    max_depth: Option<u32>,
}

impl Limits {
    /// The limits of a search, which ends as well when `interrupt` is set.
    pub(super) fn resolve(&self, interrupt: &'static AtomicBool) -> Result<search::Limits> {
        let most_memory = match &self.max_memory {
            Some(text) => parse_size(text)?,
            None => (memory::available() as f64 * SHARE_OF_MEMORY) as u64,
        };
        Ok(search::Limits {
            states: self.max_states,
            time: self.time()?,
            memory: Some(most_memory),
            resident: Some(memory::resident),
            depth: self.max_depth,
            interrupt: Some(interrupt),
            clock: Some(elapsed),
        })
    }

    /// After how long to stop.
    pub(super) fn time(&self) -> Result<Option<Duration>> {
        self.max_time.as_deref().map(parse_time).transpose()
    }
}

/// The time since the first call.
fn elapsed() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// A number of at least one.
fn parse_count<T: TryFrom<u64>>(text: &str) -> Result<T, &'static str> {
    let count = text.parse::<u64>().ok().filter(|&count| count > 0);
    count.and_then(|count| T::try_from(count).ok()).ok_or("use a whole number of at least 1")
}

/// `60s`, `1.5s`, `5m`, `1h 30m`.
fn parse_time(text: &str) -> Result<Duration> {
    let short = text.parse::<Span>().map(|span| Duration::from_nanos(span.as_nanos()));
    let Ok(time) = short.or_else(|_| humantime::parse_duration(text)) else {
        bail!("--max-time: `{text}` is not a length of time; write for example 60s, 5m or 2h");
    };
    if time.is_zero() {
        bail!("--max-time: nothing would be explored in no time; write for example 60s, 5m or 2h");
    }
    Ok(time)
}

/// `512MB`, `2GB`, `1.5 GB`.
fn parse_size(text: &str) -> Result<u64> {
    let problem = || anyhow!("--max-memory: `{text}` is not a size such as 512MB or 2GB");
    let upper = text.trim().to_uppercase();
    let (number, unit) = ["KB", "MB", "GB"]
        .into_iter()
        .zip([1e3, 1e6, 1e9])
        .find_map(|(name, unit)| Some((upper.strip_suffix(name)?, unit)))
        .ok_or_else(problem)?;
    let number: f64 = number.trim().parse().map_err(|_| problem())?;
    if number.is_finite() && number > 0.0 { Ok((number * unit) as u64) } else { Err(problem()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_size("512MB").unwrap(), 512_000_000);
        assert_eq!(parse_size("1.5 gb").unwrap(), 1_500_000_000);
        for wrong in ["", "GB", "-1GB", "12", "nanGB"] {
            assert!(parse_size(wrong).unwrap_err().to_string().contains("512MB"), "{wrong}");
        }
    }

    #[test]
    fn times_are_read_from_nanoseconds_to_hours() {
        for (text, millis) in [("60s", 60_000), ("1.5s", 1_500), ("5m", 300_000), ("2h", 7_200_000)]
        {
            assert_eq!(parse_time(text).unwrap(), Duration::from_millis(millis));
        }
        for wrong in ["", "0", "0s", "5", "-1s", "soon"] {
            assert!(parse_time(wrong).unwrap_err().to_string().contains("60s, 5m"), "{wrong}");
        }
    }

    #[test]
    fn a_limit_of_nothing_is_no_limit() {
        assert_eq!(parse_count::<u64>("1"), Ok(1));
        for wrong in ["0", "-1", "1.5", "many", "4294967296"] {
            assert!(parse_count::<u32>(wrong).is_err(), "{wrong}");
        }
    }
}
