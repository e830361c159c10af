//! The series of a chart, from rows: medians and percentiles.

use std::collections::BTreeMap;

use doyen_core::registry::Algorithm;
use serde_json::{Map, Value};

use crate::plan::Report;
use crate::row::{Field, Row, Unit};

/// How many colours there are before they repeat.
const COLOURS: usize = 8;

/// The most series of a chart: a reader cannot distinguish more.
const MAX_SERIES: usize = 20;

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
    /// Its place on the horizontal axis.
    pub(super) x: f64,
    /// Its place on the vertical axis.
    pub(super) y: f64,
    /// Its place by the closed form.
    pub(super) formula: Option<f64>,
}

/// The runs of a series that have the same x.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) spread: Spread,
    /// The median of the closed form's values, if it has one for each of them.
    pub(super) formula: Option<f64>,
}

/// The distribution of numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Spread {
    pub(super) count: usize,
    pub(super) p5: f64,
    pub(super) q1: f64,
    pub(super) median: f64,
    pub(super) q3: f64,
    pub(super) p95: f64,
}

/// The contents of a chart.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Picture {
    pub(super) series: Vec<Series>,
    /// Runs that have no number there, or none that a logarithmic axis can show.
    pub(super) left_out: usize,
    /// Runs of series that are too many to draw.
    pub(super) crowded_out: usize,
}

impl Picture {
    pub(super) fn of(report: &Report, rows: &[Row]) -> Self {
        let mut picture = Self::default();
        let mut palette = Palette::default();
        for values in rows.iter().filter_map(|row| report.values_of(row)) {
            match numbers(report, &values) {
                None => picture.left_out += 1,
                Some(sample) => picture.add(report, &values, sample, &mut palette),
            }
        }
        picture
    }

    fn add(
        &mut self,
        report: &Report,
        values: &Map<String, Value>,
        sample: Sample,
        palette: &mut Palette,
    ) {
        let names: Vec<String> = report.series.iter().map(|field| field.text(values)).collect();
        let name = names.join(", ");
        let known = self.series.iter().position(|series| series.name == name);
        if known.is_none() && self.series.len() == MAX_SERIES {
            self.crowded_out += 1;
            return;
        }
        let place = known.unwrap_or_else(|| {
            let (colour, dash) = palette.paint(report, names);
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
}

/// The place of a run in a chart; none if it has no number there or none that the axis can show.
fn numbers(report: &Report, values: &Map<String, Value>) -> Option<Sample> {
    let fits = |field: &Field, log: bool| {
        let number = field.number(values).filter(|number| number.is_finite());
        number.filter(|&number| !log || number > 0.0)
    };
    let formula = values.get("formula_value").and_then(Value::as_f64);
    Some(Sample { x: fits(report.x, report.log_x)?, y: fits(report.y, report.log_y)?, formula })
}

impl Series {
    /// Its runs by x, ascending. For yes and no, the share of yes is shown, not the median.
    pub(super) fn points(&self, unit: Unit) -> Vec<Point> {
        let mut by_x: BTreeMap<u64, Vec<&Sample>> = BTreeMap::new();
        for sample in &self.samples {
            by_x.entry(ordered(sample.x)).or_default().push(sample);
        }
        let distribution = if unit == Unit::Flag { Spread::of_share } else { Spread::of };
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
    /// An algorithm has the same colour in every chart; other values take the next one.
    fn paint(&mut self, report: &Report, mut names: Vec<String>) -> (usize, usize) {
        let Some(first) = report.series.first() else { return (0, 0) };
        let others = names.split_off(1).join(", ");
        let name = names.remove(0);
        let known = |name: &str| Algorithm::ALL.iter().position(|known| known.name() == name);
        let colour = match known(&name).filter(|_| first.name == "algorithm") {
            Some(place) => place,
            None => place_in(&mut self.firsts, name),
        };
        (colour % COLOURS, place_in(&mut self.others, others))
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
        let points = series(&[(9.0, 1.0), (0.5, 8.0), (9.0, 3.0), (-1.0, 4.0)]).points(Unit::Count);
        let medians: Vec<(f64, f64)> =
            points.iter().map(|point| (point.x, point.spread.median)).collect();
        assert_eq!(medians, [(-1.0, 4.0), (0.5, 8.0), (9.0, 2.0)]);
        assert_eq!(points[2].formula, Some(2.0));
        let shares = series(&[(1.0, 1.0), (1.0, 0.0), (1.0, 0.0), (1.0, 0.0)]).points(Unit::Flag);
        assert_eq!((shares[0].spread.median, shares[0].spread.is_wide()), (0.25, false));
    }
}
