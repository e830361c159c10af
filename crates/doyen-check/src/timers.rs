//! When timers expire in an exploration, and how time passes.

use std::fmt;

use doyen_core::config::quorum;
use doyen_core::registry::Algorithm;
use doyen_core::time::{Delay, Span};
use doyen_sim::scenario::Case;

use crate::budget::ANY;
use crate::part::{Part, Scope};

/// The ticks that a failure detector takes at most, by default.
pub const DETECTION: u8 = 2;

/// How often the free timers of a member expire at most, by default.
pub const EXPIRIES: u8 = 2;

/// When timers expire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Timers {
    /// At any moment, in any order: the asynchronous model.
    Free {
        /// How often the timers of each member may expire, so that runs end; [`ANY`] is any number of times.
        expiries: u8,
    },
    /// When they are due, and no message takes longer than a tick: the synchronous model, in which the sources make their
    /// claims.
    Bounded {
        /// The length of a tick: `D`.
        tick: Span,
        /// The ticks that a failure detector takes at most to notice a crash or a recovery.
        detection: u8,
    },
    /// When they are due, but messages may take any time: the model in which leases must be safe. Nothing is said about
    /// how runs end.
    Clocked {
        /// The length of a tick.
        tick: Span,
        /// The error of any clock, in thousandths: each timer may be early or late by as much.
        drift: u32,
    },
}

impl Timers {
    /// The default model for `case`: bounded, because elections make their promises in that model; free, if members have
    /// no timers. Mutual exclusion is promised whatever the delays are, so its timers are free too: those of the voters, which
    /// number their attempts without end.
    pub fn usual(case: &Case) -> Self {
        let bounded = Self::Bounded { tick: case.bare_bound, detection: DETECTION };
        match case.algorithm {
            Algorithm::ChangRoberts | Algorithm::RingAllIds | Algorithm::RingActiveList
                if !case.is_layered() =>
            {
                Self::Free { expiries: 0 }
            }
            Algorithm::LockService => Scope::new(Part::Locks).timers(false),
            algorithm if algorithm.elects() => bounded,
            _ if case.reliable || case.detector.is_some() => bounded,
            Algorithm::Voting => Self::Free { expiries: EXPIRIES },
            _ => Self::Free { expiries: 0 },
        }
    }

    pub(crate) fn expiries(self) -> u8 {
        match self {
            Self::Free { expiries } => expiries,
            Self::Bounded { .. } | Self::Clocked { .. } => 0,
        }
    }

    pub(crate) fn clock(self) -> Option<Clock> {
        match self {
            Self::Free { .. } => None,
            Self::Bounded { tick, detection } => {
                Some(Clock { tick, detection: Some(detection), drift: 0 })
            }
            Self::Clocked { tick, drift } => Some(Clock { tick, detection: None, drift }),
        }
    }

    /// Rejects leases and vote leases that are not whole ticks, where safety depends on clocks. Rounded, they would not be
    /// what runs.
    pub fn suit(self, case: &Case) -> Result<(), String> {
        match self {
            Self::Clocked { tick, drift } if case.algorithm.has_leases() => {
                let clock = Clock { tick, detection: None, drift };
                let mut paces = case.members().iter().map(|id| case.config.quorum.pace_of(id));
                paces.try_for_each(|pace| {
                    check_ticks(pace, tick)?;
                    check_margin(pace, clock)
                })
            }
            _ => Ok(()),
        }
    }
}

/// Whether the vote leases and leases of this pace are whole ticks; if not, names a vote lease that is.
fn check_ticks(pace: quorum::Pace, tick: Span) -> Result<(), String> {
    let tick_nanos = tick.as_nanos().max(1);
    let is_whole = |span: Span| span.as_nanos().is_multiple_of(tick_nanos);
    let lengths = [("vote lease", pace.vote_lease), ("lease", pace.lease())];
    let Some((name, length)) = lengths.into_iter().find(|&(_, length)| !is_whole(length)) else {
        return Ok(());
    };
    let with_vote_lease = |ticks| quorum::Pace { vote_lease: tick * ticks, ..pace };
    let least = pace.vote_lease.as_nanos().div_ceil(tick_nanos);
    // Drift is in thousandths: the lease is a whole number of ticks again before two thousand ticks more.
    let fits = (least..least + 2000).map(with_vote_lease).find(|pace| is_whole(pace.lease()));
    let remedy = match fits {
        Some(pace) => {
            format!("set vote_lease = \"{}\" under [quorum] in a scenario", pace.vote_lease)
        }
        None => format!("no vote lease fits timers as coarse as {}", pace.grain),
    };
    Err(format!(
        "a {name} of {} is not a whole number of ticks of {tick}, as clocked timers need; {remedy}",
        length.rounded()
    ))
}

/// Whether a lease stays shorter than its vote leases by the worst clocks once both are rounded to ticks. Clocks that are
/// worse than members assume are allowed: they show what happens then.
fn check_margin(pace: quorum::Pace, clock: Clock) -> Result<(), String> {
    let [_, lease] = clock.in_ticks(pace.lease().into());
    let [vote_lease, _] = clock.in_ticks(pace.vote_lease.into());
    if lease <= vote_lease || clock.drift > pace.drift {
        return Ok(());
    }
    Err(format!(
        "with wrong clocks a lease of {} takes up to {lease} whole ticks of {} and a vote lease of {} at least {vote_lease}: \
         only rounding makes it the longer of the two; use other lengths",
        pace.lease().rounded(),
        clock.tick,
        pace.vote_lease
    ))
}

impl fmt::Display for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free { expiries: ANY } => f.write_str("free, any number of expiries"),
            Self::Free { expiries: 0 } => f.write_str("no timers in this model"),
            Self::Free { expiries: 1 } => f.write_str("free, 1 expiry a member"),
            Self::Free { expiries } => write!(f, "free, {expiries} expiries a member"),
            Self::Bounded { tick, detection } => {
                write!(
                    f,
                    "bounded: a message takes at most {tick}, a crash is detected within {}",
                    *tick * u64::from(*detection)
                )
            }
            Self::Clocked { tick, drift } => {
                write!(f, "clocked, in ticks of {tick}; a message takes any time")?;
                match drift {
                    0 => Ok(()),
                    _ => write!(f, "; clocks are wrong by up to {}", f64::from(*drift) / 1000.0),
                }
            }
        }
    }
}

/// How time passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Clock {
    /// With bounded timers, the longest delay of a message: `D`.
    pub(crate) tick: Span,
    /// The ticks after which all detectors have noticed a crash; unbounded without.
    pub(crate) detection: Option<u8>,
    /// The error of any clock, in thousandths.
    pub(crate) drift: u32,
}

impl Clock {
    /// The ticks after which a timer expires, by the fastest clock and by the slowest. By an exact clock no timer expires
    /// early: a fraction of a tick counts as a whole one.
    pub(crate) fn in_ticks(self, after: Delay) -> [u32; 2] {
        let drift = u128::from(self.drift.min(999));
        let tick = u128::from(self.tick.as_nanos().max(1));
        let [min, max] = [after.min, after.max].map(|span| u128::from(span.as_nanos()) * 1000);
        let earliest = match drift {
            0 => min.div_ceil(tick * 1000),
            _ => min / (tick * (1000 + drift)),
        };
        let latest = max.div_ceil(tick * (1000 - drift));
        [earliest, latest].map(|ticks| u32::try_from(ticks).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With clocks that are wrong by a fifth a lease is two thirds of its vote lease. By such clocks a vote lease of three
    /// ticks lasts at least two and its lease at most three; with six ticks, five and five.
    #[test]
    fn a_lease_that_only_rounding_makes_too_long_is_refused() {
        let millis = Span::from_millis;
        let check = |vote_lease, drift| {
            let [vote_lease, heartbeat] = [vote_lease, 1].map(millis);
            let pace = quorum::Pace { heartbeat, vote_lease, drift: 200, grain: Span::ZERO };
            check_margin(pace, Clock { tick: millis(1), drift, detection: None })
        };
        let refused = check(3, 200).unwrap_err();
        assert!(refused.contains("a lease of 2ms takes up to 3 whole ticks"), "{refused}");
        assert!(refused.contains("a vote lease of 3ms at least 2"), "{refused}");
        assert_eq!(check(6, 200), Ok(()));
        assert_eq!(check(3, 201), Ok(()), "worse clocks than members assume");
    }
}
