//! What the picture shows, explained: only what occurs in it.

use super::canvas::{self, Canvas, Ink, Point};
use super::lease::draw_bar;
use super::plot::{Fate, Sign, State};
use super::{MARGIN, Picture, draw_link, draw_sign, skin};

/// How wide the sample beside a word is.
const SAMPLE: f64 = 30.0;

/// How far apart rows are.
const ROW: f64 = 23.0;

/// A sample, and what it means.
struct Entry {
    sample: Sample,
    text: String,
}

enum Sample {
    Kind(usize),
    Fate(Fate),
    State(State),
    Lease(Ink),
    Sign(Sign),
    Link(Ink),
}

impl Picture<'_> {
    /// Draws the legend from `top` on; says where it ends.
    pub(super) fn draw_legend(&self, canvas: &mut Canvas, top: f64, width: f64) -> f64 {
        let mut y = top;
        for entries in [self.messages(), self.signs(), self.states()] {
            if entries.is_empty() {
                continue;
            }
            let mut x = MARGIN;
            for entry in entries {
                let room = SAMPLE + 8.0 + canvas::width(&entry.text, 12.0) + 18.0;
                if x + room > width && x > MARGIN {
                    (x, y) = (MARGIN, y + ROW);
                }
                draw_sample(canvas, &entry.sample, (x, y));
                canvas.text(Ink::Legend, x + SAMPLE + 8.0, y + 4.0, &entry.text);
                x += room;
            }
            y += ROW;
        }
        y - ROW
    }

    fn messages(&self) -> Vec<Entry> {
        let plot = self.plot;
        let kinds = plot.kinds.iter().enumerate().map(|(index, name)| {
            let sent = plot.arrows.iter().filter(|arrow| arrow.kind == index);
            let count = sent.filter(|arrow| arrow.fate != Fate::Doubled).count();
            let sample = Sample::Kind(skin::kind(&plot.kinds, index));
            Entry { sample, text: format!("{name} ({count})") }
        });
        let fates = [
            (Fate::Missed, "receiver dead"),
            (Fate::Lost, "lost"),
            (Fate::Doubled, "arrives again"),
            (Fate::UnderWay, "still under way"),
        ];
        let occurs = |fate: &Fate| plot.arrows.iter().any(|arrow| arrow.fate == *fate);
        let fates = fates.into_iter().filter(|(fate, _)| occurs(fate));
        kinds.chain(fates.map(|(fate, text)| Entry::new(Sample::Fate(fate), text))).collect()
    }

    fn signs(&self) -> Vec<Entry> {
        let signs = [
            (Sign::Campaign, "calls an election"),
            (Sign::Timer(String::new()), "a timer fires"),
            (Sign::Crash, "crashes"),
            (Sign::Restart, "restarts"),
            (Sign::Clock, "its clock changes"),
            (Sign::Suspects, "suspects a member"),
            (Sign::Trusts, "trusts it again"),
        ];
        let same =
            |one: &Sign, other: &Sign| std::mem::discriminant(one) == std::mem::discriminant(other);
        let occurs = |sign: &Sign| self.plot.marks.iter().any(|mark| same(&mark.sign, sign));
        let signs = signs.into_iter().filter(|(sign, _)| occurs(sign));
        let links = [(false, Ink::Cut, "a link is cut"), (true, Ink::Mended, "it is mended")];
        let occurs = |mended: bool| self.plot.cuts.iter().any(|cut| cut.mended == mended);
        let links = links.into_iter().filter(|(mended, ..)| occurs(*mended));
        (signs.map(|(sign, text)| Entry::new(Sample::Sign(sign), text)))
            .chain(links.map(|(_, ink, text)| Entry::new(Sample::Link(ink), text)))
            .collect()
    }

    fn states(&self) -> Vec<Entry> {
        let states = [
            (State::Stands, "takes part in an election"),
            (State::Leads, "leads"),
            (State::Paused, "is paused"),
            (State::Dead, "is dead"),
        ];
        let stretches = || self.plot.lanes.iter().flat_map(|lane| &lane.stretches);
        let occurs = |state: State| stretches().any(|stretch| stretch.state == state);
        let states = states.into_iter().filter(|(state, _)| occurs(*state));
        let leases = || self.plot.lanes.iter().flat_map(|lane| &lane.leases);
        let rests = leases().any(|lease| lease.stands_to().is_some());
        let leases = [
            (leases().next().is_some(), Ink::Lease, "has a lease"),
            (rests, Ink::LeaseRest, "has it no more, but others may count on it"),
        ];
        let leases = leases.into_iter().filter(|&(occurs, ..)| occurs);
        (states.map(|(state, text)| Entry::new(Sample::State(state), text)))
            .chain(leases.map(|(_, ink, text)| Entry::new(Sample::Lease(ink), text)))
            .collect()
    }
}

impl Entry {
    fn new(sample: Sample, text: &str) -> Self {
        Self { sample, text: text.to_owned() }
    }
}

fn draw_sample(canvas: &mut Canvas, sample: &Sample, from: Point) {
    let to = (from.0 + SAMPLE, from.1);
    let middle = (from.0 + SAMPLE / 2.0, from.1);
    match sample {
        Sample::Kind(colour) => {
            canvas.open(Ink::Message(*colour), "");
            canvas.arrow(from, to);
            canvas.close();
        }
        Sample::Fate(fate) => draw_fate(canvas, *fate, from, to),
        Sample::State(State::Dead) => canvas.line(Ink::DeadLine, from, to),
        Sample::State(state) => {
            canvas.line(Ink::Life, from, to);
            canvas.rect(state.ink(), (from.0, from.1 - 5.0), (to.0, to.1 + 5.0), 5.0);
        }
        Sample::Lease(ink) => {
            canvas.line(Ink::Life, (from.0, from.1 - 3.0), (to.0, to.1 - 3.0));
            draw_bar(canvas, *ink, (from.0, from.1 - 3.0), to.0);
        }
        Sample::Sign(sign) => {
            canvas.line(Ink::Life, from, to);
            draw_sign(canvas, sign, middle);
        }
        Sample::Link(ink) => draw_link(canvas, *ink, from, to),
    }
}

fn draw_fate(canvas: &mut Canvas, fate: Fate, from: Point, to: Point) {
    canvas.open(Ink::Message(0), "");
    match fate {
        Fate::Received => canvas.arrow(from, to),
        Fate::Doubled => canvas.dashed_arrow(from, to),
        Fate::UnderWay => canvas.line(Ink::UnderWay, from, to),
        Fate::Lost | Fate::Missed => {
            let end = if fate == Fate::Lost { (from.0 + to.0) / 2.0 } else { to.0 - 6.0 };
            canvas.line(Ink::Way, from, (end, from.1));
            canvas.cross(Ink::Lost, (end, from.1), 5.0);
        }
    }
    canvas.close();
}
