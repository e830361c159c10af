//! A run as a space-time diagram, in SVG: one life line for each member, time from left to right, an arrow for each
//! message.
//!
//! The picture stands alone: no script, no font, no file besides it. It suits a light and a dark page, and every
//! element says on hover what it is. A legend explains the signs.
//!
//! Where leaders have leases, a bar below a life line shows each lease with its term: from its first publication to its
//! deadline, as it was renewed last. If its holder loses it earlier, by a crash or because of a later term, the rest of
//! the bar is hollow: other programs may have read the deadline.
//!
//! Around a critical section, a life line has a thin bar while its member waits and a thick one while it is inside. Where
//! two members are inside, their bars and the ground between are red.
//!
//! Waits in which nothing happens are cut short and say so; everything else is to scale.

mod arrows;
pub mod canvas;
mod head;
mod labels;
mod lease;
mod legend;
mod plot;
mod style;
#[cfg(test)]
mod tests;
mod timeline;
pub mod tokens;

use std::collections::BTreeSet;

use self::arrows::Way;
use self::canvas::{Canvas, Point};
use self::labels::{Labels, Side};
use self::plot::{Lane, Mark, Plot, Sign, State, Stretch};
use self::timeline::Timeline;
use super::{RunInfo, TooLarge, Unit};
use crate::time::Time;
use crate::trace::TraceEvent;

/// How a diagram is drawn.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The line below the heading; by default that of the run.
    pub subtitle: Option<String>,
    /// Whether to show heartbeats, acknowledgements and their timers.
    pub background: bool,
    /// The background.
    pub theme: Theme,
    /// The indices of the events that matter: everything else is drawn faintly. An element that is drawn from several
    /// events matters if one of them does. `None` draws everything alike.
    pub emphasis: Option<BTreeSet<usize>>,
}

/// The background of a diagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Theme {
    /// Light or dark, as the reader's system is set.
    #[default]
    Auto,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

/// The style sheet of diagrams, for charts of the same look.
pub fn style_sheet() -> String {
    style::style(Theme::Auto, false)
}

/// The space above the first life line, without the heading.
const HEAD_ROOM: f64 = 34.0;

/// The space between a life line's name and its beginning.
const NAME_GAP: f64 = 22.0;

/// How much of a life line is shown before the first moment.
const RUN_UP: f64 = 10.0;

/// The space to the right of the last moment.
const TAIL: f64 = timeline::BEYOND;

const MARGIN: f64 = 24.0;

/// If there are more messages than this, arrows are thin.
const DENSE: usize = 150;

/// The least distance between two labelled times.
const TICKS_APART: f64 = 60.0;

/// Draws the run that `events` tell of as an SVG document.
pub fn space_time(
    info: &RunInfo,
    events: &[TraceEvent],
    options: &Options,
) -> Result<String, TooLarge> {
    let unit = Unit::new(info.transmission);
    let plot = Plot::new(info, events, options.background, unit)?;
    Ok(Picture::new(info, &plot, options, unit).draw())
}

/// A plot, and the place of everything in it.
struct Picture<'a> {
    info: &'a RunInfo,
    subtitle: Option<&'a str>,
    plot: &'a Plot,
    options: &'a Options,
    unit: Unit,
    timeline: Timeline,
    /// Where the first life line runs.
    top: f64,
    /// How far apart life lines are.
    pitch: f64,
    /// The widths of the members' names and of their states at the end.
    names: f64,
    endings: f64,
}

impl<'a> Picture<'a> {
    fn new(info: &'a RunInfo, plot: &'a Plot, options: &'a Options, unit: Unit) -> Self {
        let widest = |texts: &mut dyn Iterator<Item = String>, size: f64| {
            texts.map(|text| canvas::width(&text, size)).fold(0.0, f64::max)
        };
        let names = widest(&mut plot.lanes.iter().map(|lane| lane.key.to_string()), 15.0);
        let endings = widest(&mut plot.lanes.iter().map(|lane| lane.ending.clone()), 12.0);
        let left = MARGIN + names + NAME_GAP;
        let fan = arrows::largest_fan(&plot.arrows).saturating_sub(1) as f64;
        let narrowest = fan * arrows::PORTS_APART / arrows::SHARE_OF_RUN;
        let timeline = Timeline::new(instants(plot), plot.flight, left, narrowest);
        let subtitle = options.subtitle.as_deref().or(info.subtitle.as_deref());
        let heading = if subtitle.is_some() { 50.0 } else { 30.0 };
        let has_bands = !plot.splits.is_empty() || !plot.overlaps.is_empty();
        let splits = if has_bands { 20.0 } else { 0.0 };
        let pitch = (560.0 / plot.lanes.len() as f64).clamp(24.0, 56.0);
        let top = MARGIN + heading + splits + HEAD_ROOM;
        Self { info, subtitle, plot, options, unit, timeline, top, pitch, names, endings }
    }

    fn draw(&self) -> String {
        let mut canvas = Canvas::default();
        self.draw_grid(&mut canvas);
        self.draw_splits(&mut canvas);
        for (place, lane) in self.plot.lanes.iter().enumerate() {
            self.draw_lane(&mut canvas, place, lane);
        }
        self.draw_breaks(&mut canvas);
        let ways = self.ways();
        let mut labels = self.labels(&ways);
        self.draw_terms(&mut canvas, &mut labels);
        self.draw_cuts(&mut canvas);
        let names: Vec<_> =
            self.plot.marks.iter().map(|mark| self.name_of(mark, &mut labels)).collect();
        self.draw_arrows(&mut canvas, &ways, &mut labels);
        for (mark, name) in self.plot.marks.iter().zip(names) {
            self.draw_mark(&mut canvas, mark, name);
        }
        let width = self.width();
        let bottom = self.draw_legend(&mut canvas, self.axis() + 52.0, width);
        self.draw_heading(&mut canvas);
        let dense = self.plot.arrows.len() > DENSE;
        let style = style::style(self.options.theme, dense);
        canvas.finish(width, bottom + MARGIN, &self.info.title, &style)
    }

    fn width(&self) -> f64 {
        let subtitle = canvas::width(self.subtitle.unwrap_or_default(), 13.0);
        let heading = canvas::width(&self.info.title, 19.0).max(subtitle);
        let picture = self.end() + 10.0 + self.endings + MARGIN;
        picture.max(heading + 2.0 * MARGIN).max(560.0)
    }

    /// Where life lines end.
    fn end(&self) -> f64 {
        self.timeline.right + TAIL
    }

    fn y(&self, place: usize) -> f64 {
        self.top + place as f64 * self.pitch
    }

    /// The place of the axis.
    fn axis(&self) -> f64 {
        self.y(self.plot.lanes.len() - 1) + self.pitch.min(36.0)
    }

    fn x(&self, at: Time) -> f64 {
        self.timeline.x(at).min(self.end())
    }

    /// Whether something drawn from these events is drawn faintly.
    fn is_faint(&self, events: &[usize]) -> bool {
        let emphasis = self.options.emphasis.as_ref();
        emphasis.is_some_and(|matter| !events.iter().any(|event| matter.contains(event)))
    }

    fn draw_heading(&self, canvas: &mut Canvas) {
        canvas.text("heading", MARGIN, MARGIN + 16.0, &self.info.title);
        if let Some(subtitle) = self.subtitle {
            canvas.text("subheading", MARGIN, MARGIN + 37.0, subtitle);
        }
    }

    fn draw_grid(&self, canvas: &mut Canvas) {
        let (above, axis) = (self.top - HEAD_ROOM + 8.0, self.axis());
        let ticks = self.timeline.ticks(self.unit, TICKS_APART);
        for tick in &ticks {
            canvas.line("grid", (tick.x, above), (tick.x, axis));
            canvas.text("tick", tick.x, axis + 17.0, &tick.label);
        }
        canvas.line("axis", (self.timeline.left(), axis), (self.end(), axis));
        let name = format!("time, {}", self.unit.name);
        canvas.text("axis-name", self.end() + 10.0, axis + 4.0, &name);
    }

    fn draw_breaks(&self, canvas: &mut Canvas) {
        for gap in self.timeline.breaks() {
            let (above, axis) = (self.top - HEAD_ROOM + 8.0, self.axis());
            canvas.zigzag(gap.x, above, axis + 5.0);
            let label = format!("+{}", self.unit.short(gap.nanos));
            canvas.text("tick", gap.x, axis + 30.0, &label);
        }
    }

    fn draw_splits(&self, canvas: &mut Canvas) {
        let above = self.top - HEAD_ROOM - 10.0;
        let splits = self.plot.splits.iter().map(|split| {
            let right = split.to.map_or(self.end(), |to| self.x(to));
            let name = format!("partition {}", split.label);
            (self.x(split.from), right, split.to.is_some(), name)
        });
        let overlaps =
            self.plot.overlaps.iter().map(|&(from, to)| {
                (self.x(from), self.x(to), true, "two members inside".to_owned())
            });
        for (left, right, ends, name) in splits.chain(overlaps) {
            canvas.open("split", &name);
            canvas.rect("split-ground", (left, above), (right, self.axis()), 0.0);
            canvas.line("split-edge", (left, above), (left, self.axis()));
            if ends {
                canvas.line("split-edge", (right, above), (right, self.axis()));
            }
            canvas.text("split-name", left + 6.0, above + 14.0, &name);
            canvas.close();
        }
    }

    fn draw_lane(&self, canvas: &mut Canvas, place: usize, lane: &Lane) {
        let (y, end) = (self.y(place), self.end());
        canvas.text("name", MARGIN + self.names, y + 5.0, &lane.key.to_string());
        let mut alive_from = self.timeline.left() - RUN_UP;
        for death in lane.stretches.iter().filter(|stretch| stretch.state == State::Down) {
            if death.from > Time::ZERO {
                canvas.line("life", (alive_from, y), (self.x(death.from), y));
            }
            alive_from = self.x(death.to);
        }
        if alive_from < end {
            canvas.line("life", (alive_from, y), (end, y));
        }
        for stretch in &lane.stretches {
            self.draw_stretch(canvas, y, lane, *stretch);
        }
        self.draw_leases(canvas, y, lane);
        canvas.text("ending", end + 10.0, y + 4.0, &lane.ending);
    }

    fn draw_stretch(&self, canvas: &mut Canvas, y: f64, lane: &Lane, stretch: Stretch) {
        let (mut left, right) = (self.x(stretch.from), self.x(stretch.to));
        if stretch.from == Time::ZERO {
            left -= RUN_UP;
        }
        let from = self.unit.short(stretch.from.0);
        let to = match stretch.to {
            Time(u64::MAX) => "the end".to_owned(),
            to => self.unit.short(to.0),
        };
        let (class, words) = (stretch.state.class(), stretch.state.words());
        canvas.open("stretch", &format!("{} {words} from {from} to {to}", lane.key.id));
        match stretch.state {
            State::Down => canvas.line(class, (left, y), (right, y)),
            state => draw_stretch_bar(canvas, state, (left, y), right),
        }
        canvas.close();
    }

    fn draw_cuts(&self, canvas: &mut Canvas) {
        for cut in &self.plot.cuts {
            let x = self.x(cut.at);
            let class = if cut.mended { "mended" } else { "cut" };
            canvas.open(class, &cut.title);
            draw_link(canvas, class, (x, self.y(cut.from)), (x, self.y(cut.to)));
            canvas.close();
        }
    }

    /// The lines that text must not cover.
    fn labels(&self, ways: &[Way]) -> Labels {
        let mut labels = Labels::new(ways);
        for (place, lane) in self.plot.lanes.iter().enumerate() {
            for stretch in &lane.stretches {
                labels.add_band(self.x(stretch.from), self.x(stretch.to), self.y(place));
            }
        }
        labels
    }

    /// Where the name of the timer that fired stands, if there is room beside the mark.
    fn name_of(&self, mark: &Mark, labels: &mut Labels) -> Option<(Point, Side)> {
        let Sign::Timer(name) = &mark.sign else { return None };
        let (x, y) = (self.x(mark.at), self.y(mark.lane));
        let heights = [y - 9.0, y + 17.0];
        let left = heights.map(|y| ((x - 4.0, y), Side::Left));
        let right = heights.map(|y| ((x + 4.0, y), Side::Right));
        labels.place(name, left.into_iter().chain(right))
    }

    fn draw_mark(&self, canvas: &mut Canvas, mark: &Mark, name: Option<(Point, Side)>) {
        let place = (self.x(mark.at), self.y(mark.lane));
        canvas.open_faint("mark", &mark.title, self.is_faint(&[mark.event]));
        draw_sign(canvas, &mark.sign, place);
        if let (Sign::Timer(text), Some(((x, y), side))) = (&mark.sign, name) {
            let class = if side == Side::Left { "timer-name" } else { "timer-name begin" };
            canvas.text(class, x, y, text);
        }
        canvas.close();
    }
}

/// The bar of a state on the life line that runs through `from`.
fn draw_stretch_bar(canvas: &mut Canvas, state: State, (left, y): Point, right: f64) {
    let half = match state {
        State::Waits => 2.0,
        State::Inside | State::Together => 6.0,
        State::Campaigns | State::Leads | State::Paused | State::Down => 5.0,
    };
    canvas.rect(state.class(), (left, y - half), (right, y + half), half);
}

/// A link that is cut or mended.
fn draw_link(canvas: &mut Canvas, class: &str, from: Point, to: Point) {
    canvas.line(class, from, to);
    canvas.head(class, from, to);
    if class == "cut" {
        canvas.cross("lost", middle(from, to), 5.0);
    }
}

fn middle(from: Point, to: Point) -> Point {
    ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0)
}

fn draw_sign(canvas: &mut Canvas, sign: &Sign, (x, y): Point) {
    match sign {
        Sign::Campaign | Sign::Request => {
            canvas.disc("call", (x, y), 7.5);
            canvas.text("call-sign", x, y + 4.2, "!");
        }
        Sign::Timer(_) => canvas.line("timer", (x, y - 8.0), (x, y + 8.0)),
        Sign::Crash => canvas.cross("crash", (x, y), 7.0),
        Sign::Restart => canvas.triangle("restart", (x, y), 7.5),
        Sign::Clock => canvas.disc("clock", (x, y), 5.0),
        Sign::Suspects => canvas.disc("suspects", (x, y), 3.5),
        Sign::Trusts => canvas.disc("trusts", (x, y), 3.5),
        Sign::Leads => canvas.star("leads", (x, y), 10.0),
        Sign::EntersBeside => {
            canvas.disc("violation", (x, y), 7.5);
            canvas.text("call-sign", x, y + 4.2, "‼");
        }
    }
}

impl State {
    fn class(self) -> &'static str {
        match self {
            Self::Campaigns => "campaigns",
            Self::Leads => "leader-bar",
            Self::Waits => "waits",
            Self::Inside => "inside",
            Self::Together => "violation",
            Self::Paused => "pause",
            Self::Down => "down-line",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Campaigns => "takes part in an election",
            Self::Leads => "leads",
            Self::Waits => "waits",
            Self::Inside => "is inside",
            Self::Together => "is inside beside another member",
            Self::Paused => "is paused",
            Self::Down => "is down",
        }
    }
}

/// Every moment that must have its place on the time line.
fn instants(plot: &Plot) -> Vec<u64> {
    let arrows = plot.arrows.iter().flat_map(|arrow| [arrow.sent, arrow.ends]);
    let marks = plot.marks.iter().map(|mark| mark.at);
    let cuts = plot.cuts.iter().map(|cut| cut.at);
    let splits = plot.splits.iter().flat_map(|split| [Some(split.from), split.to]).flatten();
    let stretches = plot.lanes.iter().flat_map(|lane| &lane.stretches);
    let borders = stretches.flat_map(|stretch| [stretch.from, stretch.to]);
    let leases = lease::instants(plot);
    let all = arrows.chain(marks).chain(cuts).chain(splits).chain(borders).chain(leases);
    let all = all.chain([plot.end]);
    all.map(|at| at.0).filter(|&at| at < u64::MAX).collect()
}
