//! Text between arrows: each has some places where it may stand, and takes the first at which it lies on no arrow, on no
//! band and on no other text. If there is none it is left out; what it says is said on hover too.

use super::arrows::Way;
use super::canvas::{self, Point};

/// How far text stays away from everything.
const AIR: f64 = 2.0;

/// The size of text beside arrows and marks.
const SIZE: f64 = 10.0;

/// What text must not lie on: a line of some thickness.
#[derive(Clone, Copy, Debug)]
struct Obstacle {
    from: Point,
    to: Point,
    half: f64,
}

/// The texts and their places.
#[derive(Debug, Default)]
pub(super) struct Labels {
    arrows: Vec<Obstacle>,
    bands: Vec<Obstacle>,
    texts: Vec<Obstacle>,
}

/// Where text along an arrow stands: its middle, and the direction of the arrow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Along {
    pub(super) at: Point,
    pub(super) direction: Point,
}

/// On which side of a point text stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Left,
    Right,
}

impl Labels {
    /// Nothing may lie on these arrows.
    pub(super) fn new(ways: &[Way]) -> Self {
        let obstacle = |way: &Way| Obstacle { from: way.from, to: way.to, half: 1.0 };
        Self { arrows: ways.iter().map(obstacle).collect(), ..Self::default() }
    }

    /// Nothing along an arrow may lie on this stretch of a life line.
    pub(super) fn add_band(&mut self, left: f64, right: f64, y: f64) {
        self.bands.push(Obstacle { from: (left, y), to: (right, y), half: 6.0 });
    }

    /// Places `text` at the first of `places`, each a point on its base line and the side of it, where it is free.
    pub(super) fn place(
        &mut self,
        text: &str,
        places: impl IntoIterator<Item = (Point, Side)>,
    ) -> Option<(Point, Side)> {
        let width = canvas::width(text, SIZE);
        places.into_iter().find(|&((x, y), side)| {
            let left = if side == Side::Left { x - width } else { x };
            let middle = y - SIZE * 0.35;
            let from = (left, middle);
            self.take(Obstacle { from, to: (left + width, middle), half: SIZE / 2.0 }, false)
        })
    }

    /// Places `text` along an arrow, above it or below it, if there is room.
    pub(super) fn place_along(&mut self, way: Way, text: &str) -> Option<Along> {
        let (dx, dy) = (way.to.0 - way.from.0, way.to.1 - way.from.1);
        let length = dx.hypot(dy);
        let half = canvas::width(text, SIZE) / 2.0;
        let (cos, sin) = (dx / length.max(1.0), dy / length.max(1.0));
        // A little before the middle at best: there the arrows of a ring cross.
        let places =
            [0.4, 0.3, 0.55, 0.7].into_iter().flat_map(|share| [(share, -1.0), (share, 1.0)]);
        for (share, side) in places {
            let along = length * share;
            if along < half + 8.0 || length - along < half + 14.0 {
                continue;
            }
            let off = side * (SIZE / 2.0 + AIR + 2.0);
            let (x, y) =
                (way.from.0 + along * cos - off * sin, way.from.1 + along * sin + off * cos);
            let from = (x - half * cos, y - half * sin);
            let to = (x + half * cos, y + half * sin);
            if self.take(Obstacle { from, to, half: SIZE / 2.0 }, true) {
                // The base line is below the middle of the text.
                let at = (x - 3.5 * sin, y + 3.5 * cos);
                return Some(Along { at, direction: (cos, sin) });
            }
        }
        None
    }

    /// The middle lines of all text.
    #[cfg(test)]
    pub(super) fn texts(&self) -> impl Iterator<Item = (Point, Point)> {
        self.texts.iter().map(|text| (text.from, text.to))
    }

    /// Takes a place, if it is free.
    fn take(&mut self, text: Obstacle, heeds_bands: bool) -> bool {
        let bands = self.bands.iter().filter(|_| heeds_bands);
        let mut others = self.arrows.iter().chain(&self.texts).chain(bands);
        let is_free = !others.any(|other| {
            distance((text.from, text.to), (other.from, other.to)) < text.half + other.half + AIR
        });
        if is_free {
            self.texts.push(text);
        }
        is_free
    }
}

/// The distance between two line segments.
pub(super) fn distance(one: (Point, Point), other: (Point, Point)) -> f64 {
    if cross(one, other) {
        return 0.0;
    }
    let ends = [
        to_segment(one.0, other),
        to_segment(one.1, other),
        to_segment(other.0, one),
        to_segment(other.1, one),
    ];
    ends.into_iter().fold(f64::INFINITY, f64::min)
}

/// The distance of a point from a line segment.
pub(super) fn to_segment((x, y): Point, (from, to): (Point, Point)) -> f64 {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = (dx * dx + dy * dy).max(f64::MIN_POSITIVE);
    let share = (((x - from.0) * dx + (y - from.1) * dy) / length).clamp(0.0, 1.0);
    (x - from.0 - share * dx).hypot(y - from.1 - share * dy)
}

/// Whether two line segments cross.
fn cross((a, b): (Point, Point), (c, d): (Point, Point)) -> bool {
    let side = |p: Point, q: Point, r: Point| (q.0 - p.0) * (r.1 - p.1) - (q.1 - p.1) * (r.0 - p.0);
    side(a, b, c) * side(a, b, d) < 0.0 && side(c, d, a) * side(c, d, b) < 0.0
}
