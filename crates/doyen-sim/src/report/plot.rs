//! Draws a picture as SVG. All that is known of the plotting library is in this file.
//!
//! The library draws axes, lines, points and boxes. What makes a plot of seven algorithms readable is added here: each
//! series is named at the end of its line instead of in a legend, and series that lie on each other show as rings,
//! for every one is drawn with smaller dots than those below it. Colours are CSS variables of the page, so that a plot
//! follows the reader's light or dark theme without a script.

use std::sync::Arc;

use kuva::plot::{BandPlot, BoxPlot, LinePlot, MarkerShape, ScatterPlot};
use kuva::render::layout::{ComputedLayout, Layout, TickFormat};
use kuva::render::plots::Plot;
use kuva::render::render::{Primitive, Scene, TextAnchor, render_multiple};
use kuva::render::theme::Theme;

use super::series::{Picture, Point, Series, Spread};
use super::table::escape;
use crate::plan::{Kind, Report};
use crate::row::{Field, Unit};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;

/// The height of one box, and of what surrounds the boxes.
const BOX_HEIGHT: f64 = 40.0;
const BOX_FRAME: f64 = 80.0;

/// A line of more medians than this has no dots.
const MAX_MEDIANS: usize = 400;

/// What a character of a label takes, at most.
const LABEL_CHARACTER: f64 = 7.2;
const LABEL_SIZE: u32 = 13;
const LABEL_GAP: f64 = 17.0;

/// Draws `picture` as `report` asks. It is not empty.
pub(super) fn draw(report: &Report, picture: &Picture) -> String {
    let (scene, labels) = match report.kind {
        Kind::Box => boxes(report, picture),
        Kind::Histogram => histogram(report, picture),
        Kind::Line | Kind::Scatter => curves(report, picture),
    };
    let svg = kuva::backend::svg::SvgBackend::new().render_scene(&finish(scene, &labels));
    // The library's picture has a fixed size; inside one with a view box it takes the size of the page.
    let (width, height) = (WIDTH, height(report, picture));
    let title = escape(&report.title);
    format!(
        "<svg class=\"plot\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\" \
         xmlns=\"http://www.w3.org/2000/svg\">{svg}</svg>"
    )
}

fn height(report: &Report, picture: &Picture) -> f64 {
    match report.kind {
        Kind::Box => BOX_HEIGHT * boxes_of(picture).count() as f64 + BOX_FRAME,
        _ => HEIGHT,
    }
}

/// An axis: what it shows, in which unit, from where to where.
struct Axis {
    title: String,
    factor: f64,
    low: f64,
    high: f64,
}

impl Axis {
    fn new(field: &Field, numbers: impl Iterator<Item = f64> + Clone, log: bool) -> Self {
        let low = numbers.clone().fold(f64::INFINITY, f64::min);
        let high = numbers.fold(f64::NEG_INFINITY, f64::max);
        let (factor, unit) = match field.unit {
            Unit::Time => match high {
                ..1e3 => (1.0, " [ns]"),
                ..1e6 => (1e3, " [µs]"),
                ..1e9 => (1e6, " [ms]"),
                _ => (1e9, " [s]"),
            },
            Unit::Share => (0.01, " [%]"),
            Unit::Flag => (0.01, " [% of runs]"),
            Unit::Words | Unit::Count | Unit::D => (1.0, ""),
        };
        let (low, high) = (low / factor, high / factor);
        let (low, high) = match log {
            _ if field.unit == Unit::Flag => (0.0, 104.0),
            true => (low / 1.25, high * 1.25),
            false if low >= 0.0 && low < high / 2.0 => (0.0, high + high * 0.04),
            false if low == high => (low - 1.0, high + 1.0),
            false => (low - (high - low) * 0.04, high + (high - low) * 0.04),
        };
        Self { title: format!("{}{unit}", field.title), factor, low, high }
    }

    fn of(&self, number: f64) -> f64 {
        number / self.factor
    }
}

/// What stands beside the plot, where, and what it belongs to.
struct Label {
    text: String,
    colour: usize,
    /// From where a thread leads to it.
    from: Option<(f64, f64)>,
    x: f64,
    y: f64,
}

/// Lines with their bands and closed forms, or the runs themselves.
fn curves(report: &Report, picture: &Picture) -> (Scene, Vec<Label>) {
    let samples = || picture.series.iter().flat_map(|series| &series.samples);
    let y_field = report.y.unwrap_or(report.x);
    let formulas = samples().filter_map(|sample| sample.formula).filter(|_| report.formula);
    let ys: Vec<f64> = samples().map(|sample| sample.y).chain(formulas).collect();
    let xs: Vec<f64> = samples().map(|sample| sample.x).collect();
    let x = Axis::new(report.x, xs.iter().copied(), report.scale.log_x);
    let y = Axis::new(y_field, ys.iter().copied(), report.scale.log_y);

    let mut plots: Vec<Plot> = Vec::new();
    let mut ends = Vec::new();
    for (index, series) in picture.series.iter().enumerate() {
        let points = series.points(y_field.unit == Unit::Flag);
        if report.kind == Kind::Line {
            line(report, series, &points, (&x, &y), &mut plots);
        }
        if report.kind == Kind::Scatter {
            plots.push(runs(series, (&x, &y), picture.thinning()).into());
        } else if points.len() <= MAX_MEDIANS {
            // What is drawn later is smaller, so that what lies below it shows as a ring.
            let steps = picture.series.len().saturating_sub(1).max(1);
            let size = 7.0 - index as f64 * (4.4 / steps as f64).min(1.3);
            plots.push(medians(report, series, &points, (&x, &y), size).into());
        }
        if let Some(last) = points.last() {
            ends.push((series, x.of(last.x), y.of(last.spread.median)));
        }
    }
    let layout = layout(report, &plots, &x, &y.title, (y.low, y.high), label_width(picture));
    let computed = ComputedLayout::from_layout(&layout);
    let mut labels: Vec<Label> = (ends.into_iter().filter(|(series, ..)| !series.name.is_empty()))
        .map(|(series, x, y)| {
            let from = (computed.map_x(x) + 7.0, computed.map_y(y));
            Label {
                text: series.name.clone(),
                colour: series.colour,
                from: Some(from),
                x: computed.width - computed.margin_right + 22.0,
                y: from.1,
            }
        })
        .collect();
    let bottom = computed.height - computed.margin_bottom;
    spread_out(&mut labels, computed.margin_top, bottom);
    (render_multiple(plots, layout), labels)
}

/// The thin line of the closed form where there is one, else the line of the medians; and the band around them.
fn line(
    report: &Report,
    series: &Series,
    points: &[Point],
    (x, y): (&Axis, &Axis),
    plots: &mut Vec<Plot>,
) {
    let colour = colour(series.colour);
    if points.len() > 1 && points.iter().any(|point| point.spread.is_wide()) {
        let xs = points.iter().map(|point| x.of(point.x));
        let low = points.iter().map(|point| y.of(point.spread.p5));
        let high = points.iter().map(|point| y.of(point.spread.p95));
        let band = BandPlot::new(xs, low, high).with_color(colour.clone());
        plots.push(band.with_opacity(0.13).into());
    }
    let of_formula = |point: &Point| point.formula.filter(|_| report.formula);
    let formula: Option<Vec<(f64, f64)>> = points
        .iter()
        .map(|point| of_formula(point).map(|value| (x.of(point.x), y.of(value))))
        .collect();
    let (data, width) = match formula {
        Some(formula) => (formula, 1.0),
        None => (points.iter().map(|p| (x.of(p.x), y.of(p.spread.median))).collect(), 1.8),
    };
    let line = LinePlot::new().with_data(data).with_color(colour).with_stroke_width(width);
    let line = match series.dash % 4 {
        0 => line,
        1 => line.with_dashed(),
        2 => line.with_dotted(),
        _ => line.with_dashdot(),
    };
    plots.push(line.into());
}

/// A dot for each run, or for each of so many.
fn runs(series: &Series, (x, y): (&Axis, &Axis), thinning: usize) -> ScatterPlot {
    let samples = series.samples.iter().step_by(thinning);
    let data: Vec<(f64, f64)> = samples.map(|s| (x.of(s.x), y.of(s.y))).collect();
    marked(series).with_data(data).with_size(2.6).with_marker_opacity(0.45)
}

/// A dot for each median, which says what it is when it is pointed at.
fn medians(
    report: &Report,
    series: &Series,
    points: &[Point],
    (x, y): (&Axis, &Axis),
    size: f64,
) -> ScatterPlot {
    let y_field = report.y.unwrap_or(report.x);
    let show = |number: f64| super::show(y_field.unit, number);
    let about = |point: &Point| {
        let spread = &point.spread;
        let mut lines = vec![
            series.name.clone(),
            format!("{}: {}", report.x.title, super::show(report.x.unit, point.x)),
            format!("{}: {}", y_field.title, show(spread.median)),
        ];
        if spread.is_wide() {
            let (count, p5, p95) = (spread.count, show(spread.p5), show(spread.p95));
            lines.push(format!("5th to 95th percentile of {count} runs: {p5} to {p95}"));
        }
        if let Some(formula) = point.formula.filter(|_| report.formula) {
            lines.push(format!("by the closed form: {}", show(formula)));
        }
        lines.join("\n")
    };
    let data: Vec<(f64, f64)> = points.iter().map(|p| (x.of(p.x), y.of(p.spread.median))).collect();
    let dots = marked(series).with_data(data).with_size(size);
    dots.with_tooltips().with_tooltip_labels(points.iter().map(about))
}

/// Dots in the colour and the shape of a series.
fn marked(series: &Series) -> ScatterPlot {
    let shape = match series.dash % 4 {
        0 => MarkerShape::Circle,
        1 => MarkerShape::Square,
        2 => MarkerShape::Triangle,
        _ => MarkerShape::Diamond,
    };
    ScatterPlot::new().with_color(colour(series.colour)).with_marker(shape)
}

/// How often each x occurs, a stepped outline for each series.
fn histogram(report: &Report, picture: &Picture) -> (Scene, Vec<Label>) {
    let edges = picture.edges(report.scale.log_x);
    let x = Axis::new(report.x, edges.iter().copied(), report.scale.log_x);
    let mut plots: Vec<Plot> = Vec::new();
    let mut most = 0;
    for series in &picture.series {
        let counts = series.histogram(&edges);
        most = most.max(counts.iter().copied().max().unwrap_or(0));
        let steps = edges
            .iter()
            .zip(counts.iter().chain([&0]))
            .map(|(&edge, &count)| (x.of(edge), count as f64));
        let first = edges.first().map(|&edge| (x.of(edge), 0.0));
        let outline: Vec<(f64, f64)> = first.into_iter().chain(steps).collect();
        let line = LinePlot::new().with_data(outline).with_color(colour(series.colour));
        let line = line.with_stroke_width(1.6).with_step();
        plots.push(line.with_fill().with_fill_opacity(0.14).into());
    }
    let high = most as f64 * 1.05;
    let layout = layout(report, &plots, &x, "runs", (0.0, high), label_width(picture));
    let computed = ComputedLayout::from_layout(&layout);
    let named = picture.series.iter().filter(|series| !series.name.is_empty());
    let labels = named.enumerate().map(|(index, series)| Label {
        text: series.name.clone(),
        colour: series.colour,
        from: None,
        x: computed.width - computed.margin_right + 22.0,
        y: computed.margin_top + LABEL_GAP * (index as f64 + 1.0),
    });
    let labels = labels.collect();
    (render_multiple(plots, layout), labels)
}

/// One box: its name, its colour and its numbers.
fn boxes_of(picture: &Picture) -> impl Iterator<Item = (String, usize, Vec<f64>)> + '_ {
    picture.categories.iter().enumerate().flat_map(|(index, (category, colour))| {
        picture.series.iter().filter_map(move |series| {
            let of_category = series.samples.iter().filter(|sample| sample.x == index as f64);
            let numbers: Vec<f64> = of_category.map(|sample| sample.y).collect();
            let name = match series.name.as_str() {
                "" => category.clone(),
                name => format!("{category} · {name}"),
            };
            (!numbers.is_empty()).then_some((name, *colour, numbers))
        })
    })
}

/// The quartiles of y for each x: boxes that lie, so that their names can be read.
fn boxes(report: &Report, picture: &Picture) -> (Scene, Vec<Label>) {
    let field = report.y.unwrap_or(report.x);
    let numbers = picture.series.iter().flat_map(|series| &series.samples).map(|sample| sample.y);
    let x = Axis::new(field, numbers, report.scale.log_y);
    let mut plot = BoxPlot::new().with_horizontal(true).with_width(0.52);
    let mut colours = Vec::new();
    let mut strays: Vec<Plot> = Vec::new();
    let boxes: Vec<_> = boxes_of(picture).collect();
    let count = boxes.len() as f64;
    // The axis begins at the bottom, a reader at the top.
    for (place, (name, number, numbers)) in boxes.into_iter().rev().enumerate() {
        let numbers: Vec<f64> = numbers.into_iter().map(|number| x.of(number)).collect();
        let beyond = beyond_whiskers(&numbers).into_iter().map(|stray| (stray, place as f64 + 1.0));
        let dots = ScatterPlot::new().with_data(beyond).with_color(colour(number));
        strays.push(dots.with_size(2.2).with_marker_opacity(0.55).into());
        plot = plot.with_group(name, numbers);
        colours.push(colour(number));
    }
    let mut plots: Vec<Plot> = vec![plot.with_group_colors(colours).into()];
    let mut layout = layout(report, &plots, &x, "", (0.5, count + 0.5), 20.0);
    layout.log_x = report.scale.log_y;
    layout.log_y = false;
    layout.y_label = None;
    plots.extend(strays);
    let layout = layout.with_height(BOX_HEIGHT * count + BOX_FRAME);
    (render_multiple(plots, layout), Vec::new())
}

/// What the whiskers of a box do not reach: more than one and a half times its length away from it.
fn beyond_whiskers(numbers: &[f64]) -> Vec<f64> {
    let Some(spread) = Spread::of(numbers.to_vec()) else { return Vec::new() };
    let reach = 1.5 * (spread.q3 - spread.q1);
    let within = spread.q1 - reach..=spread.q3 + reach;
    numbers.iter().copied().filter(|number| !within.contains(number)).collect()
}

fn layout(
    report: &Report,
    plots: &[Plot],
    x: &Axis,
    y_title: &str,
    (y_low, y_high): (f64, f64),
    right: f64,
) -> Layout {
    let mut layout = Layout::auto_from_plots(plots)
        .with_theme(theme())
        .with_width(WIDTH)
        .with_height(HEIGHT)
        .with_x_label(x.title.clone())
        .with_y_label(y_title)
        .with_tick_format(TickFormat::Custom(Arc::new(number)))
        .with_x_axis_min(x.low)
        .with_x_axis_max(x.high)
        .with_y_axis_min(y_low)
        .with_y_axis_max(y_high)
        .with_label_size(14)
        .with_tick_size(12)
        .with_axis_line_width(1.0)
        .with_tick_width(1.0)
        .with_grid_line_width(1.0);
    layout.force_margin_right = Some(right);
    layout.log_x = report.scale.log_x;
    layout.log_y = report.scale.log_y;
    layout
}

fn theme() -> Theme {
    let page = |name: &str| format!("var(--{name})");
    Theme {
        background: "none".to_owned(),
        axis_color: page("axis"),
        grid_color: page("grid"),
        tick_color: page("axis"),
        text_color: page("ink-soft"),
        legend_bg: "none".to_owned(),
        legend_border: "none".to_owned(),
        pie_leader: page("axis"),
        box_median: page("paper"),
        violin_border: page("axis"),
        colorbar_border: page("axis"),
        font_family: None,
        show_grid: true,
    }
}

/// Adds the labels, and takes away the clipping: everything fits, and its name would be the same in every plot.
fn finish(mut scene: Scene, labels: &[Label]) -> Scene {
    scene
        .elements
        .retain(|element| !matches!(element, Primitive::ClipStart { .. } | Primitive::ClipEnd));
    scene.defs.clear();
    scene.background_color = None;
    for label in labels {
        let colour = kuva::render::color::Color::from(colour(label.colour));
        if let Some((x, y)) = label.from {
            let points = vec![(x, y), (label.x - 10.0, label.y), (label.x - 4.0, label.y)];
            scene.add(Primitive::PolyLine {
                points,
                stroke: colour.clone(),
                stroke_width: 0.8,
                stroke_dasharray: None,
            });
        }
        scene.add(Primitive::Text {
            x: label.x,
            y: label.y + 4.5,
            content: label.text.clone(),
            size: LABEL_SIZE,
            anchor: TextAnchor::Start,
            rotate: None,
            bold: false,
            color: Some(colour),
        });
    }
    scene
}

/// Moves labels apart that would lie on each other, as little as possible in all.
fn spread_out(labels: &mut [Label], top: f64, bottom: f64) {
    labels.sort_by(|a, b| a.y.total_cmp(&b.y));
    // Without the gaps that must lie between them, labels only have to keep their order: isotonic regression, in
    // which neighbours that are the wrong way round share their mean.
    let mut groups: Vec<(f64, f64)> = Vec::new();
    for (index, label) in labels.iter().enumerate() {
        groups.push((label.y - LABEL_GAP * index as f64, 1.0));
        while let [.., (above, many), (below, few)] = groups[..]
            && below / few < above / many
        {
            groups.truncate(groups.len() - 2);
            groups.push((above + below, many + few));
        }
    }
    let means =
        groups.iter().flat_map(|&(sum, count)| std::iter::repeat_n(sum / count, count as usize));
    let last = labels.len().saturating_sub(1) as f64 * LABEL_GAP;
    for (index, (label, mean)) in labels.iter_mut().zip(means).enumerate() {
        let mean = mean.min(bottom - last).max(top);
        label.y = mean + LABEL_GAP * index as f64;
    }
}

fn label_width(picture: &Picture) -> f64 {
    let longest =
        picture.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
    24.0 + longest as f64 * LABEL_CHARACTER
}

fn colour(number: usize) -> String {
    format!("var(--c{})", number + 1)
}

/// A number for a tick: `1,000,000`, `0.25`.
pub(super) fn number(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded.fract() != 0.0 || rounded.abs() >= 1e15 {
        return format!("{rounded}");
    }
    let digits = format!("{:.0}", rounded.abs());
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if rounded < 0.0 { format!("−{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(y: f64) -> Label {
        Label { text: String::new(), colour: 0, from: None, x: 0.0, y }
    }

    #[test]
    fn labels_never_lie_on_each_other_and_stay_where_they_can() {
        let mut labels: Vec<Label> = [50.0, 52.0, 300.0, 51.0].map(label).into();
        spread_out(&mut labels, 0.0, 400.0);
        let ys: Vec<f64> = labels.iter().map(|label| label.y).collect();
        assert_eq!(ys, [34.0, 51.0, 68.0, 300.0]);
        let mut labels: Vec<Label> = [5.0, 5.0, 5.0].map(label).into();
        spread_out(&mut labels, 0.0, 400.0);
        assert_eq!(labels[0].y, 0.0);
        let mut labels: Vec<Label> = [399.0, 399.0].map(label).into();
        spread_out(&mut labels, 0.0, 400.0);
        assert_eq!(labels[1].y, 400.0);
        spread_out(&mut [], 0.0, 400.0);
    }

    #[test]
    fn only_what_is_far_from_the_box_lies_beyond_its_whiskers() {
        let numbers: Vec<f64> = (0..=100).map(f64::from).chain([151.0, 300.0, -60.0]).collect();
        assert_eq!(beyond_whiskers(&numbers), [300.0, -60.0]);
        assert_eq!(beyond_whiskers(&[]), [0.0; 0]);
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let cases =
            [(0.0, "0"), (999.0, "999"), (1e6, "1,000,000"), (0.25, "0.25"), (-1234.0, "−1,234")];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(number(0.1 + 0.2), "0.3");
    }
}
