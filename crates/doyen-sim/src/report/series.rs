//! From rows to what is drawn: series, medians, percentiles, bins.

use std::collections::BTreeMap;

use doyen_core::registry::Algorithm;

use crate::plan::{Kind, Report};
use crate::row::{Field, Row};

/// How many colours there are before they repeat.
pub(super) const COLOURS: usize = 8;

/// The bins of a histogram.
const BINS: usize = 40;

/// More series than anybody can tell apart, and more boxes than anybody reads.
const MAX_SERIES: usize = 20;
const MAX_CATEGORIES: usize = 60;

/// More dots than can be seen.
const MAX_DOTS: usize = 6_000;

/// The runs of one series.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    /// The number of its colour, the same for an algorithm in all plots.
    pub(super) colour: usize,
    /// How its line is drawn: 0 is solid.
    pub(super) dash: usize,
    /// Its runs.
    pub(super) samples: Vec<Sample>,
}

/// One run in a plot.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sample {
    /// To the right; the number of its category in a plot of boxes.
    pub(super) x: f64,
    /// Upwards; nothing in a histogram.
    pub(super) y: f64,
    /// Where the closed form puts it.
    pub(super) formula: Option<f64>,
}

/// The runs of a series that have the same x.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) spread: Spread,
    /// The median of what the closed form says, if it says something about every one of them.
    pub(super) formula: Option<f64>,
}

/// How numbers are distributed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Spread {
    pub(super) count: usize,
    pub(super) p5: f64,
    pub(super) q1: f64,
    pub(super) median: f64,
    pub(super) q3: f64,
    pub(super) p95: f64,
}

/// What a report shows.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Picture {
    pub(super) series: Vec<Series>,
    /// The values of x in a plot of boxes, each with the number of its colour.
    pub(super) categories: Vec<(String, usize)>,
    /// Runs that have no number there, or none that a logarithmic axis can show.
    pub(super) left_out: usize,
    /// Runs of series or boxes that are too many to draw.
    pub(super) crowded_out: usize,
}

impl Picture {
    pub(super) fn of(report: &Report, rows: &[Row]) -> Self {
        let mut picture =
            Self { series: Vec::new(), categories: Vec::new(), left_out: 0, crowded_out: 0 };
        let mut palette = Palette::default();
        for row in rows.iter().filter(|row| report.shows(row)) {
            match numbers(report, row) {
                None => picture.left_out += 1,
                Some(sample) => picture.add(report, row, sample, &mut palette),
            }
        }
        picture
    }

    fn add(&mut self, report: &Report, row: &Row, mut sample: Sample, palette: &mut Palette) {
        let name = report.series_of(row);
        if report.kind == Kind::Box {
            let category = report.x.text(row);
            let known = self.categories.iter().position(|(known, _)| *known == category);
            if known.is_none() && self.categories.len() == MAX_CATEGORIES {
                self.crowded_out += 1;
                return;
            }
            sample.x = known.unwrap_or(self.categories.len()) as f64;
            if known.is_none() {
                self.categories.push((category, palette.colour(report.x, row)));
            }
        }
        let known = self.series.iter().position(|series| series.name == name);
        if known.is_none() && self.series.len() == MAX_SERIES {
            self.crowded_out += 1;
            return;
        }
        let place = known.unwrap_or_else(|| {
            let (colour, dash) = palette.paint(report, row);
            self.series.push(Series { name, colour, dash, samples: Vec::new() });
            self.series.len() - 1
        });
        self.series[place].samples.push(sample);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// How many runs it shows.
    pub(super) fn count(&self) -> usize {
        self.series.iter().map(|series| series.samples.len()).sum()
    }

    /// How many runs one dot stands for where every run would have one.
    pub(super) fn thinning(&self) -> usize {
        self.count() / MAX_DOTS + 1
    }

    /// The edges of a histogram's bins: the same for all series, evenly spaced on the axis.
    pub(super) fn edges(&self, log: bool) -> Vec<f64> {
        let along = |x: f64| if log { libm::log(x) } else { x };
        let back = |x: f64| if log { libm::exp(x) } else { x };
        let all =
            || self.series.iter().flat_map(|series| &series.samples).map(|sample| along(sample.x));
        let low = all().fold(f64::INFINITY, f64::min);
        let high = all().fold(f64::NEG_INFINITY, f64::max);
        if low == high {
            return vec![back(low - 0.5), back(low + 0.5)];
        }
        let width = (high - low) / BINS as f64;
        (0..=BINS).map(|bin| back(low + width * bin as f64)).collect()
    }
}

/// Where a run lies in a plot; nowhere, if it has no number there or none that the axis can show.
fn numbers(report: &Report, row: &Row) -> Option<Sample> {
    let fits = |field: &Field, log: bool| {
        let number = field.number(row).filter(|number| number.is_finite());
        number.filter(|&number| !log || number > 0.0)
    };
    let y = report.y.map_or(Some(0.0), |y| fits(y, report.scale.log_y))?;
    let x = match report.kind {
        Kind::Box => 0.0,
        Kind::Line | Kind::Scatter | Kind::Histogram => fits(report.x, report.scale.log_x)?,
    };
    Some(Sample { x, y, formula: row.formula_value.map(|value| value as f64) })
}

impl Series {
    /// Its runs by x, ascending. Of yes and no the share of yes is shown, not the median.
    pub(super) fn points(&self, shares: bool) -> Vec<Point> {
        let mut by_x: BTreeMap<u64, Vec<&Sample>> = BTreeMap::new();
        for sample in &self.samples {
            by_x.entry(ordered(sample.x)).or_default().push(sample);
        }
        let distribution = if shares { Spread::of_share } else { Spread::of };
        let point = |samples: Vec<&Sample>| {
            let formulas: Option<Vec<f64>> = samples.iter().map(|sample| sample.formula).collect();
            Some(Point {
                x: samples.first()?.x,
                spread: distribution(samples.iter().map(|sample| sample.y).collect())?,
                formula: formulas.and_then(Spread::of).map(|spread| spread.median),
            })
        };
        by_x.into_values().filter_map(point).collect()
    }

    /// How many of its runs fall between each two edges; the last edge belongs to the last bin.
    pub(super) fn histogram(&self, edges: &[f64]) -> Vec<usize> {
        let mut counts = vec![0; edges.len().saturating_sub(1)];
        for sample in &self.samples {
            let bin = edges.partition_point(|edge| *edge <= sample.x).saturating_sub(1);
            if let Some(count) = counts.get_mut(bin.min(edges.len().saturating_sub(2))) {
                *count += 1;
            }
        }
        counts
    }
}

impl Spread {
    /// The distribution of `numbers`; nothing, if there are none.
    pub(super) fn of(mut numbers: Vec<f64>) -> Option<Self> {
        numbers.sort_unstable_by(f64::total_cmp);
        let last = numbers.len().checked_sub(1)?;
        let at = |share: f64| {
            let place = share * last as f64;
            let (below, above) = (numbers[place as usize], numbers[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        Some(Self {
            count: numbers.len(),
            p5: at(0.05),
            q1: at(0.25),
            median: at(0.5),
            q3: at(0.75),
            p95: at(0.95),
        })
    }

    /// The mean of `numbers`, and nothing else.
    fn of_share(numbers: Vec<f64>) -> Option<Self> {
        let count = numbers.len();
        let mean = numbers.into_iter().sum::<f64>() / count as f64;
        (count > 0).then_some(Self { count, p5: mean, q1: mean, median: mean, q3: mean, p95: mean })
    }

    /// Whether there is anything to show beside the median.
    pub(super) fn is_wide(&self) -> bool {
        self.p95 > self.p5
    }
}

/// A number whose order as an integer is that of the float. All numbers here are at least zero, or nearly.
fn ordered(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Gives series their colours: one for each value of the first field, a dash for each value of the others.
#[derive(Default)]
struct Palette {
    firsts: Vec<String>,
    others: Vec<String>,
}

impl Palette {
    fn paint(&mut self, report: &Report, row: &Row) -> (usize, usize) {
        let Some((first, others)) = report.series.split_first() else { return (0, 0) };
        let others: Vec<String> = others.iter().map(|field| field.text(row)).collect();
        (self.colour(first, row), place_in(&mut self.others, others.join(", ")))
    }

    /// An algorithm has the same colour in every plot; other values take the next one.
    fn colour(&mut self, field: &Field, row: &Row) -> usize {
        let number = match row.algorithm.parse::<Algorithm>() {
            Ok(algorithm) if field.name == "algorithm" => {
                Algorithm::ALL.iter().position(|&other| other == algorithm).unwrap_or(0)
            }
            _ => place_in(&mut self.firsts, field.text(row)),
        };
        number % COLOURS
    }
}

fn place_in(known: &mut Vec<String>, name: String) -> usize {
    let place = known.iter().position(|known| *known == name);
    place.unwrap_or_else(|| {
        known.push(name);
        known.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(samples: &[(f64, f64)]) -> Series {
        let samples = samples.iter().map(|&(x, y)| Sample { x, y, formula: Some(y) }).collect();
        Series { name: String::new(), colour: 0, dash: 0, samples }
    }

    #[test]
    fn percentiles_lie_between_their_neighbours() {
        let spread = Spread::of((0..=100).rev().map(f64::from).collect()).unwrap();
        assert_eq!(
            (spread.p5, spread.q1, spread.median, spread.q3, spread.p95),
            (5.0, 25.0, 50.0, 75.0, 95.0)
        );
        assert_eq!(Spread::of(vec![1.0, 2.0]).unwrap().median, 1.5);
        let one = Spread::of(vec![7.0]).unwrap();
        assert!(one.p5 == 7.0 && one.p95 == 7.0 && !one.is_wide());
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn runs_of_the_same_x_are_one_point_and_points_ascend() {
        let points = series(&[(9.0, 1.0), (0.5, 8.0), (9.0, 3.0), (-1.0, 4.0)]).points(false);
        let medians: Vec<(f64, f64)> =
            points.iter().map(|point| (point.x, point.spread.median)).collect();
        assert_eq!(medians, [(-1.0, 4.0), (0.5, 8.0), (9.0, 2.0)]);
        assert_eq!(points[2].formula, Some(2.0));
        let shares = series(&[(1.0, 1.0), (1.0, 0.0), (1.0, 0.0), (1.0, 0.0)]).points(true);
        assert_eq!((shares[0].spread.median, shares[0].spread.is_wide()), (0.25, false));
    }

    #[test]
    fn a_histogram_counts_every_run_once() {
        let series = series(&[(1.0, 0.0), (2.0, 0.0), (2.0, 0.0), (11.0, 0.0)]);
        let picture =
            Picture { series: vec![series], categories: Vec::new(), left_out: 0, crowded_out: 0 };
        for log in [false, true] {
            let edges = picture.edges(log);
            let counts = picture.series[0].histogram(&edges);
            assert_eq!(counts.len(), BINS);
            assert_eq!(counts.iter().sum::<usize>(), 4);
            assert_eq!((counts[0], counts[BINS - 1]), (1, 1));
        }
    }

    #[test]
    fn equal_runs_fill_one_bin() {
        let series = series(&[(3.0, 0.0), (3.0, 0.0)]);
        let picture =
            Picture { series: vec![series], categories: Vec::new(), left_out: 0, crowded_out: 0 };
        assert_eq!(picture.series[0].histogram(&picture.edges(false)), [2]);
    }
}
