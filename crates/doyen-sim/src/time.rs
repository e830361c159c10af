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
