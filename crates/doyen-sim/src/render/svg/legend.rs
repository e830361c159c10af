//! The legend of a picture: it explains only what occurs in it.

use doyen_core::protocol::Family;

use super::canvas::{self, Canvas, Point};
use super::head::Head;
use super::lease::draw_bar;
use super::plot::{Fate, Sign, State};
use super::{MARGIN, Picture, draw_link, draw_sign, draw_stretch_bar, middle, tokens};

/// How wide the sample beside a word is.
const SAMPLE: f64 = 30.0;

/// How far apart rows are.
const ROW: f64 = 23.0;

/// The meaning of a sign, and a function that draws it from one point to another.
type Entry = (String, Box<dyn Fn(&mut Canvas, Point, Point)>);

fn entry(text: &str, draw: impl Fn(&mut Canvas, Point, Point) + 'static) -> Entry {
    (text.to_owned(), Box::new(draw))
}

impl Picture<'_> {
    /// Draws the legend from `top` on; returns where it ends.
    pub(super) fn draw_legend(&self, canvas: &mut Canvas, top: f64, width: f64) -> f64 {
        let mut y = top;
        let rows = [self.messages(), self.signs(), self.states()];
        for entries in rows.into_iter().filter(|entries| !entries.is_empty()) {
            let mut x = MARGIN;
            for (text, draw) in entries {
                let room = SAMPLE + 8.0 + canvas::width(&text, 12.0) + 18.0;
                if x + room > width && x > MARGIN {
                    (x, y) = (MARGIN, y + ROW);
                }
                draw(canvas, (x, y), (x + SAMPLE, y));
                canvas.text("legend", x + SAMPLE + 8.0, y + 4.0, &text);
                x += room;
            }
            y += ROW;
        }
        y - ROW
    }

    fn messages(&self) -> Vec<Entry> {
        let plot = self.plot;
        let mut entries = Vec::new();
        for (index, kind) in plot.kinds.iter().enumerate() {
            let sent = plot.arrows.iter().filter(|arrow| arrow.kind == index);
            let count = sent.filter(|arrow| arrow.fate != Fate::Doubled).count();
            let (class, head) = (tokens::class_of(kind.family), Head::of(kind.family));
            entries.push(entry(&format!("{} ({count})", kind.name), move |canvas, from, to| {
                canvas.open(&class, "");
                canvas.arrow(head, from, to);
                canvas.close();
            }));
        }
        for (fate, text) in [
            (Fate::Missed, "receiver down"),
            (Fate::Lost, "lost on the way"),
            (Fate::Doubled, "arrives again"),
            (Fate::UnderWay, "still in flight"),
        ] {
            if plot.arrows.iter().any(|arrow| arrow.fate == fate) {
                entries
                    .push(entry(text, move |canvas, from, to| draw_fate(canvas, fate, from, to)));
            }
        }
        if plot.arrows.iter().any(|arrow| self.is_faint(&arrow.events)) {
            entries.push(entry("faint: not a cause of it", |canvas, from, to| {
                canvas.open_faint(&tokens::class_of(Family::Ask), "", true);
                canvas.arrow(Head::Solid, from, to);
                canvas.close();
            }));
        }
        entries
    }

    fn signs(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (sign, text) in [
            (Sign::Campaign, "calls an election"),
            (Sign::Request, "asks to enter"),
            (Sign::EntersBeside, "enters beside another member"),
            (Sign::Timer(String::new()), "a timer fires"),
            (Sign::Crash, "crashes"),
            (Sign::Restart, "restarts"),
            (Sign::Clock, "its clock changes"),
            (Sign::Suspects, "suspects a member"),
            (Sign::Trusts, "trusts it again"),
        ] {
            let kind = std::mem::discriminant(&sign);
            if self.plot.marks.iter().any(|mark| std::mem::discriminant(&mark.sign) == kind) {
                entries.push(entry(text, move |canvas, from, to| {
                    canvas.line("life", from, to);
                    draw_sign(canvas, &sign, (from.0 + SAMPLE / 2.0, from.1));
                }));
            }
        }
        for (mended, class, text) in
            [(false, "cut", "a link is cut"), (true, "mended", "it is mended")]
        {
            if self.plot.cuts.iter().any(|cut| cut.mended == mended) {
                entries
                    .push(entry(text, move |canvas, from, to| draw_link(canvas, class, from, to)));
            }
        }
        if self.timeline.breaks().next().is_some() {
            entries.push(entry("a wait, cut short", |canvas, from, to| {
                canvas.line("life", from, to);
                canvas.zigzag((from.0 + to.0) / 2.0, from.1 - 9.0, from.1 + 9.0);
            }));
        }
        entries
    }

    fn states(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for state in [
            State::Campaigns,
            State::Leads,
            State::Waits,
            State::Inside,
            State::Together,
            State::Paused,
            State::Down,
        ] {
            let mut stretches = self.plot.lanes.iter().flat_map(|lane| &lane.stretches);
            if stretches.any(|stretch| stretch.state == state) {
                entries.push(entry(state.words(), move |canvas, from, to| match state {
                    State::Down => canvas.line(state.class(), from, to),
                    _ => {
                        canvas.line("life", from, to);
                        draw_stretch_bar(canvas, state, from, to.0);
                    }
                }));
            }
        }
        let leases = || self.plot.lanes.iter().flat_map(|lane| &lane.leases);
        let rests = leases().any(|lease| lease.stands_to().is_some());
        for (occurs, class, text) in [
            (leases().next().is_some(), "lease", "holds a lease"),
            (rests, "lease-rest", "gave it up before its deadline"),
        ] {
            if occurs {
                entries.push(entry(text, move |canvas, from, to| {
                    canvas.line("life", (from.0, from.1 - 3.0), (to.0, to.1 - 3.0));
                    draw_bar(canvas, class, (from.0, from.1 - 3.0), to.0);
                }));
            }
        }
        entries
    }
}

fn draw_fate(canvas: &mut Canvas, fate: Fate, from: Point, to: Point) {
    canvas.open(&tokens::class_of(Family::Ask), "");
    match fate {
        Fate::Received => canvas.arrow(Head::Solid, from, to),
        Fate::Doubled => canvas.dashed_arrow(Head::Solid, from, to),
        Fate::UnderWay => canvas.line("under-way", from, to),
        Fate::Lost => {
            canvas.line("way", from, middle(from, to));
            canvas.cross("lost", middle(from, to), 5.0);
        }
        Fate::Missed => {
            let end = (to.0 - 6.0, to.1);
            canvas.line("way", from, end);
            canvas.miss("missed", end, 5.0);
        }
    }
    canvas.close();
}
