//! Virtual time.

use std::fmt;
use std::ops::{Add, Sub};

use doyen_core::time::Span;
use serde::{Deserialize, Serialize};

/// An instant of the simulation, in nanoseconds since its beginning.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// The beginning.
    pub const ZERO: Self = Self(0);
}

impl Add<Span> for Time {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.as_nanos()))
    }
}

impl Sub for Time {
    type Output = Span;

    fn sub(self, earlier: Self) -> Span {
        Span::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&Span::from_nanos(self.0).to_string())
    }
}

/// Reads `1.5ms`, `20us`, `3s`, `0`. A number without a unit, a negative one or one beyond a hundred and forty years
/// is refused.
pub fn parse_span(text: &str) -> Result<Span, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "" if number.bytes().all(|b| b == b'0') && !number.is_empty() => 1.0,
        _ => {
            return Err(format!(
                "`{text}` is not a length of time; write for example 1ms, 1.5ms, 20us or 3s"
            ));
        }
    };
    let value: f64 = number
        .parse()
        .map_err(|_| format!("`{text}` is not a length of time; write for example 1.5ms"))?;
    let nanos = value * scale;
    if nanos > u64::MAX as f64 / 4.0 {
        return Err(format!("`{text}` is too long"));
    }
    Ok(Span::from_nanos(nanos.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_with_their_unit() {
        assert_eq!(parse_span("1.5ms"), Ok(Span::from_micros(1_500)));
        assert_eq!(parse_span("0"), Ok(Span::ZERO));
        assert_eq!(parse_span("3s"), Ok(Span::from_millis(3_000)));
        for bad in ["", "5", "-1ms", "1m", "1.2.3ms", "ms", "1e300s", "99999999999999999999s"] {
            assert!(parse_span(bad).is_err(), "{bad}");
        }
    }
}
