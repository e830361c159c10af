//! A run as a space-time diagram, in SVG: one life line a member, time from left to right, a message an arrow.
//!
//! The picture stands alone: no script, no font, no file besides it. It suits a light and a dark page, and every
//! element says on hover what it is. What is drawn how stands in its own legend.
//!
//! Where leaders have leases, a bar beneath a life line says who had one when, with its term: from its first
//! publication to its deadline, as it was renewed last. If its holder loses it before, by a crash or because of a later
//! term, the rest is hollow: others may have been told of it.
//!
//! Waits in which nothing happens are cut short and say so; everything else is to scale.

pub mod canvas;
mod lease;
mod legend;
mod plot;
mod style;
mod timeline;

use std::collections::BTreeSet;

use self::canvas::{Canvas, Point};
use self::plot::{Arrow, Fate, Lane, Mark, Plot, Sign, State, Stretch};
use self::timeline::Timeline;
use super::{RunInfo, TooLarge, Unit};
use crate::time::Time;
use crate::trace::TraceEvent;

/// How a diagram is drawn.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The heading; by default that of the run.
    pub title: Option<String>,
    /// A line below it.
    pub subtitle: Option<String>,
    /// Whether to show heartbeats, acknowledgements and their timers.
    pub background: bool,
    /// On which ground.
    pub theme: Theme,
    /// The events, by index, that matter: everything else is drawn faintly. What is drawn from several events
    /// matters if one of them does. `None` draws everything alike.
    pub emphasis: Option<BTreeSet<usize>>,
}

/// On which ground a diagram is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Theme {
    /// Light or dark, as the reader has set up.
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

/// Above the first life line, without the heading.
const HEAD_ROOM: f64 = 34.0;

/// Between a life line's name and its beginning.
const NAME_GAP: f64 = 22.0;

/// How much of a life line is shown before the first moment.
const RUN_UP: f64 = 10.0;

/// To the right of the last moment.
const TAIL: f64 = timeline::BEYOND;

const MARGIN: f64 = 24.0;

/// With more messages than this, arrows are thin.
const DENSE: usize = 150;

/// The least distance between two labelled times.
const TICKS_APART: f64 = 60.0;

/// An arrow that is steeper than this has no room for a label beside its neighbours.
const LABEL_RUN: f64 = 60.0;

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

/// A plot, and where everything in it goes.
struct Picture<'a> {
    info: &'a RunInfo,
    plot: &'a Plot,
    options: &'a Options,
    unit: Unit,
    timeline: Timeline,
    /// Where the first life line runs.
    top: f64,
    /// How far apart life lines are.
    pitch: f64,
    /// How wide the members' names are, and what they believe at the end.
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
        let timeline = Timeline::new(instants(plot), plot.flight, left);
        let heading = if options.subtitle.is_some() { 50.0 } else { 30.0 };
        let splits = if plot.splits.is_empty() { 0.0 } else { 20.0 };
        let pitch = (560.0 / plot.lanes.len() as f64).clamp(24.0, 56.0);
        let top = MARGIN + heading + splits + HEAD_ROOM;
        Self { info, plot, options, unit, timeline, top, pitch, names, endings }
    }

    fn draw(&self) -> String {
        let mut canvas = Canvas::default();
        self.draw_grid(&mut canvas);
        self.draw_splits(&mut canvas);
        for (place, lane) in self.plot.lanes.iter().enumerate() {
            self.draw_lane(&mut canvas, place, lane);
        }
        self.draw_breaks(&mut canvas);
        self.draw_terms(&mut canvas);
        self.draw_cuts(&mut canvas);
        self.draw_arrows(&mut canvas);
        for mark in &self.plot.marks {
            self.draw_mark(&mut canvas, mark);
        }
        let width = self.width();
        let bottom = self.draw_legend(&mut canvas, self.axis() + 52.0, width);
        self.draw_heading(&mut canvas);
        let dense = self.plot.arrows.len() > DENSE;
        let style = style::style(self.options.theme, dense);
        canvas.finish(width, bottom + MARGIN, self.title(), &style)
    }

    fn width(&self) -> f64 {
        let subtitle = self.options.subtitle.as_deref().unwrap_or_default();
        let heading = canvas::width(self.title(), 19.0).max(canvas::width(subtitle, 13.0));
        let picture = self.end() + 10.0 + self.endings + MARGIN;
        picture.max(heading + 2.0 * MARGIN).max(560.0)
    }

    fn title(&self) -> &str {
        self.options.title.as_ref().unwrap_or(&self.info.title)
    }

    /// Where life lines end.
    fn end(&self) -> f64 {
        self.timeline.right + TAIL
    }

    fn y(&self, place: usize) -> f64 {
        self.top + place as f64 * self.pitch
    }

    /// Where the axis is.
    fn axis(&self) -> f64 {
        self.y(self.plot.lanes.len() - 1) + self.pitch.min(36.0)
    }

    fn x(&self, at: Time) -> f64 {
        self.timeline.x(at).min(self.end())
    }

    /// Whether something drawn from these events stands back.
    fn is_faint(&self, events: &[usize]) -> bool {
        let emphasis = self.options.emphasis.as_ref();
        emphasis.is_some_and(|matter| !events.iter().any(|event| matter.contains(event)))
    }

    fn draw_heading(&self, canvas: &mut Canvas) {
        canvas.text("heading", MARGIN, MARGIN + 16.0, self.title());
        if let Some(subtitle) = &self.options.subtitle {
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
        for split in &self.plot.splits {
            let (left, right) = (self.x(split.from), split.to.map_or(self.end(), |to| self.x(to)));
            let name = format!("partition {}", split.label);
            canvas.open("split", &name);
            canvas.rect("split-ground", (left, above), (right, self.axis()), 0.0);
            canvas.line("split-edge", (left, above), (left, self.axis()));
            if split.to.is_some() {
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
            _ => canvas.rect(class, (left, y - 5.0), (right, y + 5.0), 5.0),
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

    fn draw_arrows(&self, canvas: &mut Canvas) {
        let labelled = self.kinds_with_labels();
        let mut strands: Vec<(usize, usize, Time, Time)> = Vec::new();
        for arrow in &self.plot.arrows {
            let strand = (arrow.from, arrow.to, arrow.sent, arrow.ends);
            // Messages that leave and arrive together lie side by side.
            let beside = strands.iter().filter(|&&other| other == strand).count() as f64 * 6.0;
            strands.push(strand);
            self.draw_arrow(canvas, arrow, beside, labelled.contains(&arrow.kind));
        }
    }

    fn draw_arrow(&self, canvas: &mut Canvas, arrow: &Arrow, beside: f64, label: bool) {
        let from = (self.x(arrow.sent) + beside, self.y(arrow.from));
        let to = (self.timeline.x(arrow.ends) + beside, self.y(arrow.to));
        let middle = middle(from, to);
        let class = style::class_of(style::colour_of(&self.plot.kinds, arrow.kind));
        canvas.open_faint(&class, &arrow.title, self.is_faint(&arrow.events));
        match arrow.fate {
            Fate::Received | Fate::Doubled if arrow.from == arrow.to => canvas.hop(from, to),
            Fate::Received => canvas.arrow(from, to),
            Fate::Doubled => canvas.dashed_arrow(from, to),
            Fate::UnderWay => canvas.line("under-way", from, to),
            Fate::Lost => {
                canvas.line("way", from, middle);
                canvas.cross("lost", middle, 5.0);
            }
            Fate::Missed => {
                canvas.line("way", from, to);
                canvas.cross("lost", to, 5.0);
            }
        }
        if label {
            canvas.label(from, to, &arrow.fields);
        }
        canvas.close();
    }

    /// The kinds of which every message leaves alone and has room for a label.
    fn kinds_with_labels(&self) -> Vec<usize> {
        let has_room = |arrow: &Arrow| {
            let run = self.timeline.x(arrow.ends) - self.x(arrow.sent);
            let rise = self.y(arrow.to) - self.y(arrow.from);
            let needed = canvas::width(&arrow.fields, 10.0) + 20.0;
            run >= LABEL_RUN && run.hypot(rise) >= needed
        };
        let fits = |kind: &usize| {
            let mut arrows = self.plot.arrows.iter().filter(|arrow| arrow.kind == *kind);
            arrows.all(|arrow| self.is_alone(arrow) && has_room(arrow))
        };
        (0..self.plot.kinds.len()).filter(fits).collect()
    }

    /// Whether it says something, and its sender says nothing else at that moment.
    fn is_alone(&self, arrow: &Arrow) -> bool {
        let with = |other: &&Arrow| other.from == arrow.from && other.sent == arrow.sent;
        !arrow.fields.is_empty() && self.plot.arrows.iter().filter(with).count() == 1
    }

    fn draw_mark(&self, canvas: &mut Canvas, mark: &Mark) {
        let place = (self.x(mark.at), self.y(mark.lane));
        canvas.open_faint("mark", &mark.title, self.is_faint(&[mark.event]));
        draw_sign(canvas, &mark.sign, place);
        canvas.close();
    }
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
        Sign::Campaign => {
            canvas.disc("call", (x, y), 7.5);
            canvas.text("call-sign", x, y + 4.2, "!");
        }
        Sign::Timer(name) => {
            canvas.line("timer", (x, y - 8.0), (x, y + 8.0));
            canvas.text("timer-name", x - 4.0, y - 9.0, name);
        }
        Sign::Crash => canvas.cross("crash", (x, y), 7.0),
        Sign::Restart => canvas.triangle("restart", (x, y), 7.5),
        Sign::Clock => canvas.disc("clock", (x, y), 5.0),
        Sign::Suspects => canvas.disc("suspects", (x, y), 3.5),
        Sign::Trusts => canvas.disc("trusts", (x, y), 3.5),
        Sign::Leads => canvas.star("leads", (x, y), 10.0),
    }
}

impl State {
    fn class(self) -> &'static str {
        match self {
            Self::Campaigns => "campaigns",
            Self::Leads => "leader-bar",
            Self::Paused => "pause",
            Self::Down => "dead-line",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Campaigns => "takes part in an election",
            Self::Leads => "leads",
            Self::Paused => "is paused",
            Self::Down => "is down",
        }
    }
}

/// Every moment that must have its place.
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

#[cfg(test)]
mod tests {
    use super::super::Recording;
    use super::*;
    use crate::run;
    use crate::scenario::Scenario;

    const FIGURE_1: &str = r#"
        algorithm = "bully"
        members = "0..7"
        dead = [7]
        contact_dead = true
        initiators = [4]
    "#;

    const STORM: &str = r#"
        algorithm = "bully"
        mode = "hardened"
        members = [1, 2, 5, 9]
        attr = { 2 = 40 }
        leader = 2
        delay = "uniform:1ms..2ms"
        loss = "20%"
        duplicate = "20%"
        until = "150ms"
        fault = [
            { at = "5ms", crash = 2 },
            { at = "5ms", campaign = 5 },
            { at = "30ms", restart = 2, disk = false },
            { at = "40ms", pause = 9, for = "9ms" },
            { at = "60ms", partition = [[1, 2], [5, 9]] },
            { at = "61ms", campaign = 1 },
            { at = "80ms", heal = true },
            { at = "90ms", cut = [1, 2] },
            { at = "95ms", mend = [1, 2] },
            { at = "99ms", clock = 1, rate = 0.9, skew = "3ms" },
        ]
    "#;

    const LEASES: &str = r#"
        algorithm = "quorum"
        members = 3
        leader = 3
        until = "100ms"
        fault = [
            { at = "10ms", crash = 3 },
            { at = "80ms", command = "resign", member = 2 },
        ]
    "#;

    fn recorded(scenario: &str) -> (RunInfo, Vec<TraceEvent>) {
        let case = Scenario::from_toml("test", scenario).unwrap();
        let mut recording = Recording::new(false);
        run::run(&case, Some(&mut recording));
        (RunInfo::of(&case), recording.events().unwrap().to_vec())
    }

    fn drawn(scenario: &str, options: &Options) -> String {
        let (info, events) = recorded(scenario);
        space_time(&info, &events, options).unwrap()
    }

    fn count(text: &str, pattern: &str) -> usize {
        text.matches(pattern).count()
    }

    /// The values of an attribute wherever it stands.
    fn values<'a>(svg: &'a str, attribute: &str) -> Vec<&'a str> {
        let pattern = format!(" {attribute}=\"");
        svg.split(&pattern).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn every_message_is_an_arrow_that_says_what_it_is() {
        let svg = drawn(FIGURE_1, &Options::default());
        assert_eq!(count(&svg, ", sent at "), 15);
        assert!(svg.contains("<title>5 → 4 OK, sent at 1 ms, arrives at 2 ms [R4]</title>"));
        assert!(
            svg.contains("<title>4 → 7 ELECTION, sent at 0 ms, arrives at 1 ms: 7 is down</title>")
        );
        assert_eq!(count(&svg, "class=\"lost\""), 3 + 1, "three to the dead, one in the legend");
        assert!(svg.contains("ELECTION (6)") && svg.contains("OK (3)"));
        assert!(svg.contains("COORDINATOR (6)"));
    }

    #[test]
    fn life_lines_tell_who_leads_who_is_dead_and_whom_the_others_follow() {
        let svg = drawn(FIGURE_1, &Options::default());
        assert!(svg.contains("<title>6 leads from 3 ms to the end</title>"));
        assert!(svg.contains("<title>7 is down from 0 ms to the end</title>"));
        assert!(svg.contains("<title>4 takes part in an election from 0 ms to 4 ms</title>"));
        assert_eq!(count(&svg, ">follows 6</text>"), 6);
        assert_eq!(count(&svg, ">dead</text>"), 1);
    }

    #[test]
    fn faults_are_drawn_and_explained() {
        let svg = drawn(STORM, &Options::default());
        for piece in [
            "<title>2 leads from 0 ms to 5 ms</title>",
            "<title>2: crashes, at 5 ms</title>",
            "<title>2: restarts without a disk [H1], at 30 ms</title>",
            "<title>9 is paused from 40 ms to 49 ms</title>",
            "<title>partition 1,2 | 5,9</title>",
            "<title>cut 1 → 2 at 90 ms</title>",
            "<title>mended 1 → 2 at 95 ms</title>",
            "<title>1: clock at 0.9 of the true rate, jumps 3ms ahead, at 99 ms</title>",
            ">lost</text>",
            ">arrives again</text>",
            ">2:40</text>",
        ] {
            assert!(svg.contains(piece), "{piece}\n{svg}");
        }
    }

    #[test]
    fn leases_are_drawn_to_their_deadlines_with_their_terms() {
        let svg = drawn(LEASES, &Options::default());
        for piece in [
            "<title>3 takes part in an election from 0 ms to 2 ms</title>",
            "<title>3 leads from 2 ms to 10 ms</title>",
            "<title>3 holds a lease of term 1 from 2 ms to 10 ms, renewed once</title>",
            "<title>3 gave up its lease before the deadline, 22.182 ms</title>",
            "<title>2 holds a lease of term 2 from ",
            " to 80 ms, renewed ",
            "<title>1 holds a lease of term 3 from ",
            "<title>1: leads in term 3, at ",
            ">holds a lease</text>",
        ] {
            assert!(svg.contains(piece), "{piece}\n{svg}");
        }
        // One of each in the legend. Nothing is left of the lease that 2 handed over.
        assert_eq!(count(&svg, "class=\"lease\""), 3 + 1);
        assert_eq!(count(&svg, "class=\"lease-rest\""), 1 + 1);
        let terms = [1, 2, 3, 4].map(|term| count(&svg, &format!(">term {term}</text>")));
        assert_eq!(terms, [1, 1, 1, 0]);
        assert_eq!(count(&drawn(STORM, &Options::default()), "class=\"lease\""), 0);
    }

    #[test]
    fn nothing_is_drawn_outside_of_the_picture() {
        for scenario in [FIGURE_1, STORM, LEASES, "algorithm = \"ring-list\"\nmembers = 1"] {
            let svg = drawn(scenario, &Options::default());
            let side = |name| values(&svg, name)[0].parse::<f64>().unwrap();
            let (width, height) = (side("width"), side("height"));
            let points = values(&svg, "d").into_iter().flat_map(|path| {
                let numbers = path.split(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
                let numbers = numbers.filter(|number| !number.is_empty());
                numbers.map(|number| number.parse::<f64>().unwrap()).collect::<Vec<_>>()
            });
            let limit = width.max(height);
            assert!(points.into_iter().all(|number| (0.0..=limit).contains(&number)), "{svg}");
            let within = |name: &str, limit: f64| {
                values(&svg, name).iter().all(|x| (0.0..=limit).contains(&x.parse().unwrap()))
            };
            assert!(within("x", width) && within("y", height) && within("cx", width), "{svg}");
        }
    }

    #[test]
    fn text_is_never_markup() {
        let title = Some("<script>&\"".to_owned());
        let svg = drawn(FIGURE_1, &Options { title, ..Options::default() });
        assert_eq!(count(&svg, "&lt;script&gt;&amp;&quot;"), 2);
        assert!(!svg.contains("<script"));
    }

    #[test]
    fn what_does_not_matter_stands_back() {
        let (info, events) = recorded(FIGURE_1);
        let is_campaign =
            |event: &TraceEvent| matches!(event.kind, crate::trace::EventKind::Campaign { .. });
        let campaign = events.iter().position(is_campaign);
        let emphasis = Some(BTreeSet::from([campaign.unwrap(), campaign.unwrap() + 1]));
        let svg = space_time(&info, &events, &Options { emphasis, ..Options::default() });
        // Fifteen arrows and three marks, less the election that is called and its first message.
        assert_eq!(count(&svg.unwrap(), " faint\""), 15 + 3 - 2);
        assert_eq!(count(&drawn(FIGURE_1, &Options::default()), " faint\""), 0);
    }

    #[test]
    fn a_theme_has_one_ground_and_auto_has_both() {
        let grounds = |theme| {
            let svg = drawn(FIGURE_1, &Options { theme, ..Options::default() });
            (svg.contains("#ffffff"), svg.contains("#10151d"))
        };
        assert_eq!(grounds(Theme::Light), (true, false));
        assert_eq!(grounds(Theme::Dark), (false, true));
        assert_eq!(grounds(Theme::Auto), (true, true));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (info, _) = recorded("algorithm = \"bully\"\nmembers = 61\ninitiators = [61]");
        let refused = space_time(&info, &[], &Options::default());
        assert_eq!(refused, Err(TooLarge::Members(61)));
        let case = Scenario::from_toml("test", "algorithm = \"bully\"\nmembers = 60").unwrap();
        let mut events = Vec::new();
        run::run(&case, Some(&mut events));
        let refused = space_time(&RunInfo::of(&case), &events, &Options::default());
        assert_eq!(refused, Err(TooLarge::Messages));
    }
}
