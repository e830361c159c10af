//! Draws a line chart as SVG, with the canvas, the type and the colours of the space-time diagrams.
//!
//! Each series is named at the end of its line instead of in a legend, and has its own shape besides its colour, so
//! that a reader need not distinguish colours. Series that coincide show as rings: each is drawn with smaller dots than
//! those below it.

use super::series::{Picture, Point, Series};
use crate::plan::Report;
use crate::row::{Field, Unit, grouped};
use doyen_sim::render::svg::canvas::{self, Canvas};
use doyen_sim::render::svg::style_sheet;
use doyen_sim::render::svg::tokens::SERIES;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 46.0;

/// A line of more medians than this has no dots.
const MAX_DOTS: usize = 400;

const LABEL_SIZE: f64 = 12.0;
const LABEL_GAP: f64 = 16.0;

/// The rules that the style sheet of the diagrams does not have.
const STYLE: &str = "\
.doyen-run .tick.y { text-anchor: end; }
.doyen-run .axis-name { font-size: 12px; }
.doyen-run .axis-name.x { text-anchor: middle; }
.doyen-run .label.end { font-size: 12px; text-anchor: start; }
.doyen-run .way.thin { stroke-width: 1; }
.doyen-run .way.dash1 { stroke-dasharray: 7 4; }
.doyen-run .way.dash2 { stroke-dasharray: 2 4; }
.doyen-run .way.dash3 { stroke-dasharray: 8 3 2 3; }
.doyen-run .way.thread { stroke-width: 0.8; opacity: 0.6; }
.doyen-run .tip.band { opacity: 0.13; }
.doyen-run .dot:hover { opacity: 0.6; }
.doyen-run .series:hover .way { stroke-width: 3; }
";

/// Draws `picture` as `report` asks. It is not empty.
pub(super) fn draw(report: &Report, picture: &Picture) -> String {
    Chart::new(report, picture).draw(picture)
}

/// An axis: its field, range and unit, and its place in the picture.
struct Axis {
    title: String,
    factor: f64,
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(field: &Field, numbers: &[f64], log: bool) -> Self {
        let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (factor, unit) = match field.unit {
            Unit::Time => match high {
                ..1e3 => (1.0, ", ns"),
                ..1e6 => (1e3, ", µs"),
                ..1e9 => (1e6, ", ms"),
                _ => (1e9, ", s"),
            },
            Unit::Share => (0.01, ", %"),
            Unit::Flag => (0.01, ", % of runs"),
            Unit::Text | Unit::Count | Unit::D => (1.0, ""),
        };
        let (low, high) = (low / factor, high / factor);
        let (low, high) = match log {
            true => (low / 1.25, high * 1.25),
            false if field.unit == Unit::Flag => (0.0, 104.0),
            false if low == high => ((low - 1.0).max(0.0), high + 1.0),
            false if low >= 0.0 && low < high / 2.0 => (0.0, high * 1.04),
            false => (low - (high - low) * 0.04, high + (high - low) * 0.04),
        };
        Self { title: format!("{}{unit}", field.title), factor, low, high, log, from: 0.0, to: 0.0 }
    }

    /// The place of a number of the field.
    fn at(&self, number: f64) -> f64 {
        self.place(number / self.factor)
    }

    /// The place of a number of the axis.
    fn place(&self, number: f64) -> f64 {
        let along = |number: f64| if self.log { libm::log10(number) } else { number };
        let share = (along(number) - along(self.low)) / (along(self.high) - along(self.low));
        self.from + (self.to - self.from) * share
    }

    /// Round numbers between its ends.
    fn ticks(&self) -> Vec<f64> {
        let power = |exponent: i32| 10_f64.powi(exponent);
        if self.log {
            let decades = libm::floor(libm::log10(self.low)) as i32..=libm::log10(self.high) as i32;
            let within = |tick: &f64| (self.low..=self.high).contains(tick);
            let few = libm::log10(self.high / self.low) < 2.5;
            let steps: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let ticks =
                decades.flat_map(|exponent| steps.iter().map(move |step| step * power(exponent)));
            return ticks.filter(within).collect();
        }
        let rough = (self.high - self.low) / 6.0;
        let unit = power(libm::floor(libm::log10(rough)) as i32);
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * unit);
        let step = step.into_iter().find(|&step| step >= rough).unwrap_or(rough);
        let first = libm::ceil(self.low / step) as i64;
        let last = libm::floor(self.high / step) as i64;
        (first..=last).map(|tick| tick as f64 * step).collect()
    }
}

/// The name at the end of a line.
struct Label<'a> {
    series: &'a Series,
    from: canvas::Point,
    y: f64,
}

struct Chart<'a> {
    report: &'a Report,
    x: Axis,
    y: Axis,
    canvas: Canvas,
}

impl<'a> Chart<'a> {
    fn new(report: &'a Report, picture: &Picture) -> Self {
        let samples = || picture.series.iter().flat_map(|series| &series.samples);
        let formulas = samples().filter_map(|sample| sample.formula).filter(|_| report.formula);
        let ys: Vec<f64> = samples().map(|sample| sample.y).chain(formulas).collect();
        let xs: Vec<f64> = samples().map(|sample| sample.x).collect();
        let mut x = Axis::new(report.x, &xs, report.log_x);
        let mut y = Axis::new(report.y, &ys, report.log_y);
        let widest = |texts: &mut dyn Iterator<Item = String>, size: f64| {
            texts.map(|text| canvas::width(&text, size)).fold(0.0, f64::max)
        };
        let left = 24.0 + widest(&mut y.ticks().into_iter().map(grouped), 11.0);
        let names =
            widest(&mut picture.series.iter().map(|series| series.name.clone()), LABEL_SIZE);
        (x.from, x.to) = (left, WIDTH - 40.0 - names);
        (y.from, y.to) = (BOTTOM, TOP);
        Self { report, x, y, canvas: Canvas::default() }
    }

    fn draw(mut self, picture: &Picture) -> String {
        self.axes();
        let mut labels = Vec::new();
        for series in &picture.series {
            let points = series.points(self.report.y.unit);
            self.line(series, &points);
        }
        for (index, series) in picture.series.iter().enumerate() {
            let points = series.points(self.report.y.unit);
            // What is drawn later is smaller, so that what lies below it shows as a ring.
            let steps = picture.series.len().saturating_sub(1).max(1);
            let size = 6.0 - index as f64 * (3.6 / steps as f64).min(1.1);
            if points.len() <= MAX_DOTS {
                points.iter().for_each(|point| self.dot(series, point, size));
            }
            if let Some(last) = points.last().filter(|_| !series.name.is_empty()) {
                let from = (self.x.at(last.x) + 8.0, self.y.at(last.spread.median));
                labels.push(Label { series, from, y: from.1 });
            }
        }
        spread_out(&mut labels, TOP, BOTTOM);
        labels.iter().for_each(|label| self.label(label));
        self.canvas.finish(WIDTH, HEIGHT, &self.report.title, &format!("{}{STYLE}", style_sheet()))
    }

    fn axes(&mut self) {
        let Self { x, y, canvas, .. } = self;
        for tick in y.ticks() {
            let at = y.place(tick);
            canvas.path("grid", &[(x.from, at), (x.to, at)], false);
            canvas.words("tick y", (x.from - 8.0, at + 4.0), &grouped(tick));
        }
        for tick in x.ticks() {
            let at = x.place(tick);
            canvas.path("axis", &[(at, y.from), (at, y.from + 5.0)], false);
            canvas.words("tick", (at, y.from + 18.0), &grouped(tick));
        }
        canvas.path("axis", &[(x.from, y.from), (x.to, y.from)], false);
        canvas.words("axis-name x", ((x.from + x.to) / 2.0, HEIGHT - 9.0), &x.title);
        canvas.words("axis-name", (8.0, 16.0), &y.title);
    }

    /// The thin line of the closed form where there is one, else the line of the medians; and the band around them.
    fn line(&mut self, series: &Series, points: &[Point]) {
        self.canvas.group(&series_class(series.colour), &series.name);
        if points.len() > 1 && points.iter().any(|point| point.spread.is_wide()) {
            let high = points.iter().map(|point| (self.x.at(point.x), self.y.at(point.spread.p95)));
            let low = points.iter().map(|point| (self.x.at(point.x), self.y.at(point.spread.p5)));
            let corners: Vec<_> = high.chain(low.rev()).collect();
            self.canvas.path("tip band", &corners, true);
        }
        let of_formula = |point: &Point| point.formula.filter(|_| self.report.formula);
        let formula: Option<Vec<_>> = (points.iter())
            .map(|point| of_formula(point).map(|value| (self.x.at(point.x), self.y.at(value))))
            .collect();
        let thin = if formula.is_some() { " thin" } else { "" };
        let line = formula.unwrap_or_else(|| {
            let median = |point: &Point| (self.x.at(point.x), self.y.at(point.spread.median));
            points.iter().map(median).collect()
        });
        self.canvas.path(&format!("way{thin} dash{}", series.dash % 4), &line, false);
        self.canvas.close();
    }

    /// A dot for a median, which shows its values on hover.
    fn dot(&mut self, series: &Series, point: &Point, size: f64) {
        let Report { x, y, formula, .. } = self.report;
        let show = |number: f64| y.unit.show(number);
        let spread = &point.spread;
        let mut lines = vec![
            series.name.clone(),
            format!("{}: {}", x.title, x.unit.show(point.x)),
            format!("{}: {}", y.title, show(spread.median)),
        ];
        if spread.is_wide() {
            let (count, p5, p95) = (spread.count, show(spread.p5), show(spread.p95));
            lines.push(format!("5th to 95th percentile of {count} runs: {p5} to {p95}"));
        }
        if let Some(value) = point.formula.filter(|_| *formula) {
            lines.push(format!("by the closed form: {}", show(value)));
        }
        self.canvas.group(&format!("{} dot", series_class(series.colour)), &lines.join("; "));
        let at = (self.x.at(point.x), self.y.at(spread.median));
        let corners: Vec<_> = shape(series.colour)
            .iter()
            .map(|(dx, dy)| (at.0 + dx * size, at.1 + dy * size))
            .collect();
        self.canvas.path("tip", &corners, true);
        self.canvas.close();
    }

    fn label(&mut self, label: &Label<'_>) {
        let x = self.x.to + 26.0;
        self.canvas.group(&series_class(label.series.colour), &label.series.name);
        let thread = [label.from, (x - 10.0, label.y), (x - 4.0, label.y)];
        self.canvas.path("way thread", &thread, false);
        self.canvas.words("label end", (x, label.y + 4.0), &label.series.name);
        self.canvas.close();
    }
}

/// The class of a series with this colour.
fn series_class(colour: usize) -> String {
    format!("series {}", SERIES[colour % SERIES.len()])
}

/// The corners of the dots of a colour, around the middle.
fn shape(colour: usize) -> &'static [canvas::Point] {
    const SHAPES: [&[canvas::Point]; 8] = [
        &[
            (0.0, -1.0),
            (0.5, -0.87),
            (0.87, -0.5),
            (1.0, 0.0),
            (0.87, 0.5),
            (0.5, 0.87),
            (0.0, 1.0),
            (-0.5, 0.87),
            (-0.87, 0.5),
            (-1.0, 0.0),
            (-0.87, -0.5),
            (-0.5, -0.87),
        ],
        &[(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
        &[(0.0, -1.15), (1.05, 0.75), (-1.05, 0.75)],
        &[(0.0, -1.2), (1.0, 0.0), (0.0, 1.2), (-1.0, 0.0)],
        &[(0.0, 1.15), (-1.05, -0.75), (1.05, -0.75)],
        &[(1.15, 0.0), (-0.75, 1.05), (-0.75, -1.05)],
        &[(-1.15, 0.0), (0.75, 1.05), (0.75, -1.05)],
        &[(-1.1, -0.5), (1.1, -0.5), (1.1, 0.5), (-1.1, 0.5)],
    ];
    SHAPES[colour % SHAPES.len()]
}

/// Moves labels that would overlap apart, by as little as possible in total.
fn spread_out(labels: &mut [Label<'_>], top: f64, bottom: f64) {
    labels.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut places: Vec<f64> = labels.iter().map(|label| label.y).collect();
    keep_apart(&mut places, top, bottom);
    labels.iter_mut().zip(places).for_each(|(label, place)| label.y = place);
}

/// Without the gaps that must lie between them, places only have to keep their order: isotonic regression, in which
/// neighbours that are the wrong way round share their mean.
fn keep_apart(places: &mut [f64], top: f64, bottom: f64) {
    let mut groups: Vec<(f64, f64)> = Vec::new();
    for (index, place) in places.iter().enumerate() {
        groups.push((place - LABEL_GAP * index as f64, 1.0));
        while let [.., (above, many), (below, few)] = groups[..]
            && below / few < above / many
        {
            groups.truncate(groups.len() - 2);
            groups.push((above + below, many + few));
        }
    }
    let means =
        groups.iter().flat_map(|&(sum, count)| std::iter::repeat_n(sum / count, count as usize));
    let means: Vec<f64> = means.collect();
    let last = places.len().saturating_sub(1) as f64 * LABEL_GAP;
    for (index, (place, mean)) in places.iter_mut().zip(means).enumerate() {
        *place = mean.min(bottom - last).max(top) + LABEL_GAP * index as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_never_lie_on_each_other_and_stay_where_they_can() {
        let apart = |places: &[f64]| {
            let mut places = places.to_vec();
            keep_apart(&mut places, 0.0, 400.0);
            places
        };
        assert_eq!(apart(&[50.0, 51.0, 52.0, 300.0]), [35.0, 51.0, 67.0, 300.0]);
        assert_eq!(apart(&[5.0, 5.0, 5.0]), [0.0, 16.0, 32.0]);
        assert_eq!(apart(&[399.0, 399.0]), [384.0, 400.0]);
        assert_eq!(apart(&[]), [0.0; 0]);
    }

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        let ticks = |low, high, log| {
            let field = Field::named("messages").unwrap();
            let axis = Axis { low, high, ..Axis::new(field, &[1.0, 2.0], log) };
            axis.ticks()
        };
        assert_eq!(ticks(0.0, 1040.0, false), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert_eq!(ticks(9.6, 12.4, false), [10.0, 10.5, 11.0, 11.5, 12.0]);
        assert_eq!(ticks(800.0, 1.2e6, true), [1e3, 1e4, 1e5, 1e6]);
        assert_eq!(ticks(4.0, 60.0, true), [5.0, 10.0, 20.0, 50.0]);
    }
}
