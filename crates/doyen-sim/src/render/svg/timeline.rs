//! Where a time stands in the picture. Long waits in which nothing happens are cut short.

use super::super::{Unit, trimmed};
use crate::time::Time;

/// A wait of more than this many steps is drawn broken, ...
const LONGEST: f64 = 6.0;

/// ... and this many pixels wide: there is room for its length below it.
const BROKEN_WIDTH: f64 = 64.0;

/// The fewest and the most pixels a step takes.
const STEP_WIDTH: std::ops::RangeInclusive<f64> = 34.0..=150.0;

/// How wide a picture should be, if its steps allow.
const GOOD_WIDTH: f64 = 1_050.0;

/// How far beyond the last moment anything is drawn.
pub(super) const BEYOND: f64 = 40.0;

/// From times to pixels, piece by piece.
#[derive(Debug)]
pub(super) struct Timeline {
    pieces: Vec<Piece>,
    /// How many nanoseconds a step lasts, and how many pixels it takes.
    step: f64,
    step_width: f64,
    /// Where the first moment stands.
    left: f64,
    /// Where the last one stands.
    pub(super) right: f64,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    from: u64,
    to: u64,
    left: f64,
    right: f64,
    broken: bool,
}

/// A wait that is drawn shorter than it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Break {
    pub(super) x: f64,
    pub(super) nanos: u64,
}

/// A labelled time.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Tick {
    pub(super) x: f64,
    pub(super) label: String,
}

impl Timeline {
    /// A time line with a place for each of `instants`, beginning at `left`. `step` is how long a message takes, and at
    /// least `narrowest` pixels wide, if that is not too wide.
    pub(super) fn new(mut instants: Vec<u64>, step: u64, left: f64, narrowest: f64) -> Self {
        instants.push(0);
        instants.sort_unstable();
        instants.dedup();
        let step = step.max(1) as f64;
        let waits = || instants.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / step);
        let steps: f64 = waits().filter(|&wait| wait <= LONGEST).sum();
        let (least, most) = (*STEP_WIDTH.start(), *STEP_WIDTH.end());
        let width = (GOOD_WIDTH / steps.max(1.0)).clamp(narrowest.clamp(least, most), most);
        let mut right = left;
        let pieces = instants.windows(2).zip(waits()).map(|(pair, wait)| {
            let left = right;
            let broken = wait > LONGEST;
            right += if broken { BROKEN_WIDTH } else { wait * width };
            Piece { from: pair[0], to: pair[1], left, right, broken }
        });
        let pieces = pieces.collect();
        Self { pieces, step, step_width: width, left, right }
    }

    /// Where `at` stands. What comes after the last moment stands a little to the right of it.
    pub(super) fn x(&self, at: Time) -> f64 {
        let index = self.pieces.partition_point(|piece| piece.to < at.0);
        let Some(piece) = self.pieces.get(index) else {
            let last = self.pieces.last().map_or(0, |piece| piece.to);
            let steps = at.0.saturating_sub(last) as f64 / self.step;
            return self.right + (steps * self.step_width).min(BEYOND);
        };
        let share = at.0.saturating_sub(piece.from) as f64 / (piece.to - piece.from) as f64;
        piece.left + share * (piece.right - piece.left)
    }

    /// The waits that are cut short.
    pub(super) fn breaks(&self) -> impl Iterator<Item = Break> + '_ {
        let broken = self.pieces.iter().filter(|piece| piece.broken);
        broken.map(|piece| Break {
            x: (piece.left + piece.right) / 2.0,
            nanos: piece.to - piece.from,
        })
    }

    /// Round times, at least `apart` pixels and a step apart, outside of breaks.
    pub(super) fn ticks(&self, unit: Unit, apart: f64) -> Vec<Tick> {
        let least = self.step * (apart / self.step_width).max(1.0);
        let thousandths = round_above((least / unit.nanos as f64 * 1_000.0).ceil() as u64);
        let every = u128::from(thousandths) * u128::from(unit.nanos) / 1_000;
        let every = u64::try_from(every).unwrap_or(u64::MAX).max(1);
        let mut ticks = vec![Tick { x: self.left, label: "0".to_owned() }];
        for piece in self.pieces.iter().filter(|piece| !piece.broken) {
            let first = piece.from.div_ceil(every);
            for at in (first..=piece.to / every).map(|number| number * every) {
                let x = self.x(Time(at));
                if ticks.last().is_some_and(|last| x - last.x > apart * 0.7) {
                    ticks.push(Tick { x, label: trimmed(&unit.fixed(at)).to_owned() });
                }
            }
        }
        ticks
    }

    /// Where the first moment stands.
    pub(super) fn left(&self) -> f64 {
        self.left
    }
}

/// The least of 1, 2, 5, 10, 20, 50, … that is not below `number`.
fn round_above(number: u64) -> u64 {
    let mut power: u64 = 1;
    loop {
        let candidates = [1, 2, 5].map(|digit| power.saturating_mul(digit));
        if let Some(found) = candidates.into_iter().find(|&candidate| candidate >= number) {
            return found;
        }
        power = power.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Unit = Unit { nanos: 1_000, name: "us" };

    #[test]
    fn long_waits_are_cut_short_and_order_is_kept() {
        let timeline = Timeline::new(vec![1_000, 2_000, 500_000, 501_000], 1_000, 10.0, 0.0);
        let xs: Vec<f64> =
            [0, 1_000, 2_000, 300_000, 500_000, 501_000].map(|at| timeline.x(Time(at))).to_vec();
        assert!(xs.is_sorted() && xs[0] == 10.0 && xs[5] == timeline.right, "{xs:?}");
        assert_eq!(timeline.breaks().map(|gap| gap.nanos).collect::<Vec<_>>(), [498_000]);
        assert!(timeline.x(Time(u64::MAX)) > timeline.right);
    }

    #[test]
    fn ticks_are_round_and_stand_outside_of_breaks() {
        let timeline = Timeline::new(vec![1_000, 2_000, 500_000, 501_000], 1_000, 10.0, 0.0);
        let labels: Vec<String> =
            timeline.ticks(UNIT, 60.0).into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["0", "1", "2", "500", "501"]);
    }

    #[test]
    fn a_run_in_which_nothing_happens_has_a_line_too() {
        let timeline = Timeline::new(Vec::new(), 0, 10.0, 0.0);
        assert_eq!(timeline.x(Time(0)), 10.0);
        assert_eq!(timeline.ticks(UNIT, 60.0).len(), 1);
    }

    #[test]
    fn a_step_is_rounded_to_one_two_or_five() {
        assert_eq!([0, 1, 3, 6, 11, 51, 800].map(round_above), [1, 1, 5, 10, 20, 100, 1_000]);
    }
}
