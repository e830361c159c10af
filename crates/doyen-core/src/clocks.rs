//! Berkeley clock synchronisation (Gusella and Zatti 1989): how far apart the wall clocks of the members are, and by how
//! much each would have to be corrected for all of them to agree. The rules alone, without a clock and without a network.
//!
//! | rule | event | action |
//! |---|---|---|
//! | B1 | a round begins | POLL to every member |
//! | B2 | POLL | the member answers CLOCK with its reading |
//! | B3 | the answers are there | offset = reading − (sent + received)/2; answers whose round trip took too long are dropped; the largest set of offsets within γ of each other is averaged, if it is a majority of all members; SLEW = average − offset for *every* answer, outliers too |
//! | B4 | SLEW | the clock runs faster or slower by σ at most until the correction is made up for: it never steps back |
//!
//! **What it guarantees.** An offset is wrong by half the difference of the two ways at most, and so by half the round trip
//! at most. With ways between `d` and `D` that is `ε = (D − d)/2`: right after a round, any two clocks differ by 2ε at most;
//! later by 2ε + 2ρT and what is not slewed yet. A clock beyond γ moves no other one.
//!
//! **What it does not.** The members agree with each other, not with the time of day: a clock that is always just within γ of
//! the others pulls all of them along, by γ/N in every round, without end. That needs a reference outside the group, which is
//! why doyen sets no clock: `doyen clocks` shows what a round would do. Nothing in doyen relies on wall clocks. Leases run on
//! the raw monotonic clock of each machine, which no correction touches.
//!
//! **Departures from the specification** (section 5.3). It is no [`Protocol`](crate::protocol::Protocol): a clock reading is
//! what no state machine of this crate may have, so this is an observer outside the contract. The observer need not be a
//! member: it polls all of them, and its own clock is only what the offsets are measured against.

use std::collections::BTreeMap;

use crate::time::Span;

/// `σ`: by how many parts in a million a clock runs faster or slower while it is corrected, as adjtime does.
pub const SLEW_PPM: u64 = 500;

/// The answer to a POLL. All times are in nanoseconds, `sent` and `received` by the observer's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// When POLL was sent.
    pub sent: i64,
    /// When CLOCK arrived.
    pub received: i64,
    /// What the member's clock showed in between.
    pub clock: i64,
}

impl Reading {
    /// By how much the member's clock is ahead of the observer's, if both ways took equally long.
    pub fn offset(&self) -> i64 {
        self.clock.saturating_sub(i64::midpoint(self.sent, self.received))
    }

    /// How long POLL and CLOCK took together.
    pub fn round_trip(&self) -> Span {
        Span::from_nanos(u64::try_from(self.received.saturating_sub(self.sent)).unwrap_or(0))
    }

    /// By how much the offset may be wrong: all of the round trip may have been one of the two ways.
    pub fn uncertainty(&self) -> Span {
        Span::from_nanos(self.round_trip().as_nanos().div_ceil(2))
    }
}

/// The reading that says most, of several of one member: the one with the shortest round trip.
pub fn best(readings: impl IntoIterator<Item = Reading>) -> Option<Reading> {
    readings.into_iter().min_by_key(Reading::round_trip)
}

/// Which answers count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// An answer that took longer is dropped.
    pub round_trip: Span,
    /// `γ`: the clocks that are averaged are within this of each other.
    pub gamma: Span,
}

/// What a round says of a member that has answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Its answer.
    pub reading: Reading,
    /// Whether its clock counts.
    pub standing: Standing,
    /// The correction that it would be sent, in nanoseconds; none if its answer says too little, or if there is no average.
    pub slew: Option<i64>,
}

/// Whether a clock counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It is one of those that are averaged.
    Averaged,
    /// It is too far from the others, or no majority is close together.
    Outlier,
    /// Its answer took too long to say anything.
    Slow,
}

/// The result of a round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Round<M> {
    /// By how much the clocks that count are ahead of the observer's on average, in nanoseconds. None if no majority of all
    /// members is close enough together.
    pub average: Option<i64>,
    /// The members that have answered.
    pub members: BTreeMap<M, Finding>,
}

/// B3: what the answers of a round say, and what each member would be told. `members` is the number of all members, with
/// those that have not answered.
pub fn round<M: Ord + Clone>(
    members: usize,
    readings: &BTreeMap<M, Reading>,
    limits: &Limits,
) -> Round<M> {
    let counted = |reading: &Reading| reading.round_trip() <= limits.round_trip;
    let mut offsets: Vec<i64> =
        readings.values().filter(|reading| counted(reading)).map(Reading::offset).collect();
    offsets.sort_unstable();
    let close = largest_within(&offsets, limits.gamma);
    let close = if close.len() > members / 2 { close } else { &[] };
    let average = mean(close);
    let finding = |reading: &Reading| {
        let offset = reading.offset();
        let standing = match (close.first(), close.last()) {
            _ if !counted(reading) => Standing::Slow,
            (Some(first), Some(last)) if (first..=last).contains(&&offset) => Standing::Averaged,
            _ => Standing::Outlier,
        };
        let slew = average.filter(|_| standing != Standing::Slow);
        let slew = slew.map(|average| average.saturating_sub(offset));
        Finding { reading: *reading, standing, slew }
    };
    let members = readings.iter().map(|(member, it)| (member.clone(), finding(it))).collect();
    Round { average, members }
}

/// The largest part of sorted offsets whose ends are within `gamma`; of several, the narrowest.
fn largest_within(offsets: &[i64], gamma: Span) -> &[i64] {
    let width = |part: &[i64]| match part {
        [first, .., last] => last.abs_diff(*first),
        _ => 0,
    };
    let parts = (0..offsets.len()).map(|first| {
        let reach = offsets[first..]
            .partition_point(|offset| offset.abs_diff(offsets[first]) <= gamma.as_nanos());
        &offsets[first..first + reach]
    });
    parts.max_by_key(|part| (part.len(), std::cmp::Reverse(width(part)))).unwrap_or(&[])
}

fn mean(offsets: &[i64]) -> Option<i64> {
    let sum: i128 = offsets.iter().map(|&offset| i128::from(offset)).sum();
    let count = i128::try_from(offsets.len()).ok().filter(|&count| count > 0)?;
    i64::try_from(sum.div_euclid(count)).ok()
}

/// B4: how long a clock that is corrected by `slew` nanoseconds runs faster or slower.
pub fn slewing_time(slew: i64) -> Span {
    Span::from_nanos(slew.unsigned_abs().saturating_mul(1_000_000 / SLEW_PPM))
}

#[cfg(test)]
mod tests;
