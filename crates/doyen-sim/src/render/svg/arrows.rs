//! Messages: where each arrow runs, and how it is drawn.
//!
//! Arrows that leave one event fan out from the same point of a life line, and those that reach one event close in on the
//! same point. Where two of them would lie on each other, they get ports of their own, a few pixels apart: at the beginning
//! further right, at the end further left, so that no arrow leaves before its message or arrives after it.

use std::collections::BTreeMap;

use super::canvas::{Canvas, Point};
use super::head::Head;
use super::labels::{self, Labels};
use super::plot::{Arrow, Fate};
use super::{Picture, middle, tokens};
use crate::time::Time;

/// The least distance between two ports.
pub(super) const PORTS_APART: f64 = 3.0;

/// How far apart arrows of one fan are at least, beyond the surroundings of their ports.
const ARROWS_APART: f64 = 2.0;

/// The size of these surroundings, in which arrows of one event may meet.
const AROUND_PORTS: f64 = 12.0;

/// The ports of a fan take at most this share of its shortest arrow's run, at either end.
pub(super) const SHARE_OF_RUN: f64 = 0.45;

/// Where an arrow runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Way {
    pub(super) from: Point,
    pub(super) to: Point,
}

impl Way {
    fn run(&self) -> f64 {
        self.to.0 - self.from.0
    }

    fn rise(&self) -> f64 {
        (self.to.1 - self.from.1).abs()
    }

    /// How flat it is: of two arrows that leave together, the steeper is to the left.
    fn flatness(&self) -> f64 {
        self.run() / self.rise().max(1.0)
    }

    /// How far the port of the flatter arrow `next` must be from the port of this one.
    fn port_distance(&self, next: &Self) -> f64 {
        let length = |way: &Self| way.run().hypot(way.rise()).max(1.0);
        let turn = next.run() * self.rise() - self.run() * next.rise();
        let sine = turn / (length(self) * length(next));
        if sine * AROUND_PORTS >= ARROWS_APART {
            return 0.0;
        }
        // The distance that counts is the one across the arrow, not along the life line.
        let slope = next.rise() / length(next);
        (1.25 * ARROWS_APART / slope.max(0.1)).max(PORTS_APART)
    }
}

/// The arrows that leave one event, or reach it, on one side of its life line.
type Fans = BTreeMap<(usize, Time, bool), Vec<usize>>;

fn fans(arrows: &[Arrow], event: impl Fn(&Arrow) -> (usize, Time)) -> Fans {
    let mut fans = Fans::new();
    for (index, arrow) in arrows.iter().enumerate().filter(|(_, arrow)| arrow.from != arrow.to) {
        let (lane, at) = event(arrow);
        fans.entry((lane, at, arrow.from < arrow.to)).or_default().push(index);
    }
    fans
}

/// The arrows of each event that sends.
pub(super) fn departures(arrows: &[Arrow]) -> Fans {
    fans(arrows, |arrow| (arrow.from, arrow.sent))
}

/// The arrows of each event that receives.
pub(super) fn arrivals(arrows: &[Arrow]) -> Fans {
    fans(arrows, |arrow| (arrow.to, arrow.ends))
}

/// The most arrows that leave or reach one event on one side of its life line.
pub(super) fn largest_fan(arrows: &[Arrow]) -> usize {
    let sizes = [departures(arrows), arrivals(arrows)].into_iter().flat_map(Fans::into_values);
    sizes.map(|fan| fan.len()).max().unwrap_or(0)
}

/// How far the port of each arrow of a fan is from the event, the steepest arrow first.
fn ports(fan: &[usize], ways: &[Way]) -> Vec<f64> {
    let mut ports = vec![0.0];
    for pair in fan.windows(2) {
        let last = ports.last().copied().unwrap_or_default();
        ports.push(last + ways[pair[0]].port_distance(&ways[pair[1]]));
    }
    let room = fan.iter().map(|&index| ways[index].run() * SHARE_OF_RUN).fold(f64::MAX, f64::min);
    // A trace that was edited by hand may have messages that arrive before they are sent.
    let room = room.max(0.0);
    let widest = ports.last().copied().unwrap_or_default();
    let scale = if widest > room { room / widest } else { 1.0 };
    ports.into_iter().map(|port| port * scale).collect()
}

impl Picture<'_> {
    /// Where each arrow runs.
    pub(super) fn ways(&self) -> Vec<Way> {
        let straight = |arrow: &Arrow| Way {
            from: (self.x(arrow.sent), self.y(arrow.from)),
            to: (self.timeline.x(arrow.ends), self.y(arrow.to)),
        };
        let bare: Vec<Way> = self.plot.arrows.iter().map(straight).collect();
        let mut ways = bare.clone();
        let flatness = |index: usize| bare[index].flatness();
        for mut fan in departures(&self.plot.arrows).into_values() {
            fan.sort_by(|&a, &b| flatness(a).total_cmp(&flatness(b)).then(a.cmp(&b)));
            for (&index, port) in fan.iter().zip(ports(&fan, &bare)) {
                ways[index].from.0 += port;
            }
        }
        for mut fan in arrivals(&self.plot.arrows).into_values() {
            // Of two messages with the same route, the one that leaves further right arrives further right.
            fan.sort_by(|&a, &b| flatness(a).total_cmp(&flatness(b)).then(b.cmp(&a)));
            for (&index, port) in fan.iter().zip(ports(&fan, &bare)) {
                ways[index].to.0 -= port;
            }
        }
        ways
    }

    pub(super) fn draw_arrows(&self, canvas: &mut Canvas, ways: &[Way], labels: &mut Labels) {
        let texts: Vec<_> = (self.plot.arrows.iter().zip(ways))
            .map(|(arrow, &way)| self.label_of(arrow, way, labels))
            .collect();
        for ((arrow, &way), label) in self.plot.arrows.iter().zip(ways).zip(texts) {
            let family = self.plot.kinds[arrow.kind].family;
            let class = tokens::class_of(family);
            canvas.open_faint(&class, &arrow.title, self.is_faint(&arrow.events));
            draw_way(canvas, arrow, way, Head::of(family));
            if let Some(place) = label {
                canvas.label(place, &arrow.fields);
            }
            canvas.close();
        }
    }

    /// The place where a message shows what it carries besides its kind, if it leaves alone and there is room.
    fn label_of(&self, arrow: &Arrow, way: Way, labels: &mut Labels) -> Option<labels::Along> {
        if arrow.fields.is_empty() || arrow.from == arrow.to {
            return None;
        }
        let with = |other: &&Arrow| other.from == arrow.from && other.sent == arrow.sent;
        let is_alone = self.plot.arrows.iter().filter(with).count() == 1;
        is_alone.then(|| labels.place_along(way, &arrow.fields)).flatten()
    }
}

fn draw_way(canvas: &mut Canvas, arrow: &Arrow, Way { from, to }: Way, head: Head) {
    match arrow.fate {
        Fate::Received | Fate::Doubled if arrow.from == arrow.to => canvas.hop(head, from, to),
        Fate::Received => canvas.arrow(head, from, to),
        Fate::Doubled => canvas.dashed_arrow(head, from, to),
        Fate::UnderWay => canvas.line("under-way", from, to),
        Fate::Lost => {
            canvas.line("way", from, middle(from, to));
            canvas.cross("lost", middle(from, to), 5.0);
        }
        Fate::Missed => {
            canvas.line("way", from, to);
            canvas.miss("missed", to, 5.0);
        }
    }
}
