//! Virtual time, in units of D.

use std::fmt;
use std::str::FromStr;

use doyen_core::time::Span;

/// D, the longest time a message may take.
pub(super) const D: Span = Span::from_millis(1);

/// An instant, or a length of time; written in units of D.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Time(pub(super) Span);

impl Time {
    /// The instant `span` later.
    pub(super) fn after(self, span: Span) -> Self {
        Self(self.0 + span)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nanos, unit) = (self.0.as_nanos(), D.as_nanos());
        write!(f, "{}", nanos / unit)?;
        match nanos % unit {
            0 => Ok(()),
            rest => write!(f, ".{}", format!("{rest:06}").trim_end_matches('0')),
        }
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units: f64 =
            text.parse().map_err(|_| format!("`{text}` is not a time in units of D"))?;
        if !(0.0..1e6).contains(&units) {
            return Err(format!("{text} is not a time between 0 and a million D"));
        }
        Ok(Self(Span::from_nanos((units * D.as_nanos() as f64).round() as u64)))
    }
}
