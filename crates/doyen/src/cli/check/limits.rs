//! When a check stops, whether it has seen everything or not. Limits hold for the whole command, however many rings it
//! checks; only shrinking what was found has a patience of its own.

use doyen_core::time::Span;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Args;
use doyen_sim::check::search;

use crate::cli::memory;

/// How much of the free memory a check takes at most, unless one says otherwise.
const SHARE_OF_MEMORY: f64 = 0.6;

#[derive(Args, Debug)]
pub(super) struct Limits {
    /// Stop after so many states, of all rings together
    #[arg(long, value_name = "COUNT", help_heading = "Search")]
    max_states: Option<u64>,

    /// Stop after this time, such as 60s; if something was found, it is then shrunk for 25s at most
    #[arg(long, value_name = "TIME", help_heading = "Search")]
    max_time: Option<String>,

    /// Stop when the states take so much memory, such as 2GB [default: 60 % of what is free]
    #[arg(long, value_name = "SIZE", help_heading = "Search")]
    max_memory: Option<String>,

    /// Go so many steps from the start at most
    #[arg(long, value_name = "COUNT", help_heading = "Search")]
    max_depth: Option<u32>,
}

impl Limits {
    pub(super) fn resolve(&self) -> Result<search::Limits> {
        let time = self.max_time.as_ref().map(|text| {
            let span = text.parse::<Span>().map_err(|problem| anyhow!("--max-time: {problem}"))?;
            Ok::<_, anyhow::Error>(Duration::from_nanos(span.as_nanos()))
        });
        let memory = match &self.max_memory {
            Some(text) => parse_size(text)?,
            None => (memory::available() as f64 * SHARE_OF_MEMORY) as u64,
        };
        Ok(search::Limits {
            states: self.max_states,
            time: time.transpose()?,
            memory: Some(memory),
            depth: self.max_depth,
        })
    }
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
}
