//! Lengths of time. The core never knows *what time it is*; it only asks its host to wait *this long*.

use std::fmt;
use std::ops::{Add, Mul, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A length of time in nanoseconds. Arithmetic saturates: an absurd setting waits forever, and never wraps to zero.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// Longer than any other: the latest end of a timer that need not end.
    pub const FOREVER: Self = Self(u64::MAX);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// The length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// As people want to read it: five digits are enough, so `17.181818ms` is `17.182ms`.
    #[must_use]
    pub const fn rounded(self) -> Self {
        self.rounded_to(5)
    }

    /// With so many digits.
    #[must_use]
    pub const fn rounded_to(self, digits: u32) -> Self {
        let mut step = 1;
        while self.0 / step >= 10_u64.pow(digits) {
            step *= 10;
        }
        Self(self.0.saturating_add(step / 2) / step * step)
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Self;

    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl fmt::Display for Span {
    /// The shortest exact form: `1500us` is written `1.5ms`. With `#` whole minutes and hours as people count them: `1h 30m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: u64 = 1_000_000_000;
        if f.alternate() && self.0 >= 60 * SECOND && self.0.is_multiple_of(SECOND) {
            let seconds = self.0 / SECOND;
            let units = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
            let parts = units.iter().filter(|(count, _)| *count > 0);
            let parts: Vec<String> = parts.map(|(count, unit)| format!("{count}{unit}")).collect();
            return f.write_str(&parts.join(" "));
        }
        let (unit, name) = match self.0 {
            0 => return f.write_str("0"),
            1..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let (whole, rest) = (self.0 / unit, self.0 % unit);
        if rest == 0 {
            return write!(f, "{whole}{name}");
        }
        let digits = unit.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        write!(f, "{whole}.{}{name}", fraction.trim_end_matches('0'))
    }
}

impl FromStr for Span {
    type Err = String;

    /// Reads `1.5ms`, `20us`, `3s`, `5m`, `1h`, `0`. A number without a unit, a negative one or one beyond a hundred and
    /// forty years is rejected.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let scale = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            "" if number.bytes().all(|b| b == b'0') && !number.is_empty() => 1.0,
            "" if number.parse::<f64>().is_ok() => {
                return Err(format!(
                    "`{text}` lacks a unit; write for example {text}ms or {text}s"
                ));
            }
            _ => {
                return Err(format!(
                    "`{text}` is not a length of time; write for example 1ms, 20us, 3s, 5m or 1h"
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
        Ok(Self::from_nanos(nanos.round() as u64))
    }
}

/// How long a timer waits: the host draws a length from `min..=max`, the checker lets the timer fire at any time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Delay {
    /// The shortest wait.
    pub min: Span,
    /// The longest wait.
    pub max: Span,
}

impl Delay {
    /// A wait of exactly `span`.
    pub const fn exactly(span: Span) -> Self {
        Self { min: span, max: span }
    }

    /// A wait drawn from `min..=max`.
    pub fn between(min: Span, max: Span) -> Self {
        assert!(min <= max, "a delay's bounds are the wrong way round: {min} > {max}");
        Self { min, max }
    }
}

impl From<Span> for Delay {
    fn from(span: Span) -> Self {
        Self::exactly(span)
    }
}

/// An instant of a recorded or simulated run, in nanoseconds since its beginning. Protocols never see one.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// The beginning.
    pub const ZERO: Self = Self(0);

    /// As people want to read it: [`Span::rounded`].
    #[must_use]
    pub const fn rounded(self) -> Self {
        Self(Span(self.0).rounded().0)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_with_their_unit() {
        assert_eq!("1.5ms".parse(), Ok(Span::from_micros(1_500)));
        assert_eq!("5m".parse(), Ok(Span::from_millis(300_000)));
        assert_eq!("1.5h".parse(), Ok(Span::from_millis(5_400_000)));
        assert_eq!("0".parse(), Ok(Span::ZERO));
        assert_eq!("3s".parse(), Ok(Span::from_millis(3_000)));
        for bad in ["", "5", "-1ms", "1min", "1.2.3ms", "ms", "1e300s", "99999999999999999999s"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
        let problem = "5".parse::<Span>().unwrap_err();
        assert_eq!(problem, "`5` lacks a unit; write for example 5ms or 5s");
    }

    #[test]
    fn minutes_and_hours_are_written_as_people_count_them() {
        for (millis, text) in [
            (59_000, "59s"),
            (90_000, "1m 30s"),
            (90_500, "90.5s"),
            (600_000, "10m"),
            (5_400_000, "1h 30m"),
            (7_200_000, "2h"),
        ] {
            assert_eq!(format!("{:#}", Span::from_millis(millis)), text);
        }
    }

    #[test]
    fn a_span_is_written_in_its_largest_unit() {
        for (nanos, text) in [
            (0, "0"),
            (999, "999ns"),
            (1_500, "1.5us"),
            (1_000_000, "1ms"),
            (1_000_001, "1.000001ms"),
            (90_000_000_000, "90s"),
        ] {
            assert_eq!(Span::from_nanos(nanos).to_string(), text);
        }
    }

    #[test]
    fn five_digits_are_enough_for_people() {
        for (nanos, text) in [
            (0, "0"),
            (99_999, "99.999us"),
            (17_181_818, "17.182ms"),
            (143_082_426, "143.08ms"),
            (999_999_999, "1s"),
            (3_381_500_000, "3.3815s"),
            (90_000_000_000, "90s"),
        ] {
            assert_eq!(Span::from_nanos(nanos).rounded().to_string(), text);
        }
        let ever = Span::from_nanos(u64::MAX).rounded().as_nanos();
        assert!(ever > u64::MAX / 2, "{ever}");
    }

    #[test]
    fn arithmetic_saturates() {
        let ever = Span::from_nanos(u64::MAX);
        assert_eq!(ever + Span::from_nanos(1), ever);
        assert_eq!(ever * 2, ever);
    }
}
