//! The heads of arrows: each family of messages has its own shape, so that a reader need not distinguish colours.

use doyen_core::protocol::Family;

use super::canvas::{Canvas, Point, short_of, triangle};

/// The shape of an arrow's head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Head {
    /// A filled triangle: asks.
    Solid,
    /// A triangle that is not filled: answers.
    Hollow,
    /// Two triangles: announces.
    Double,
    /// A diamond: hands over.
    Diamond,
    /// A bar across: refuses.
    Bar,
    /// A small triangle: upkeep.
    Small,
}

/// How long a triangle is, and half as wide as this.
const LENGTH: f64 = 10.0;
const HALF_WIDTH: f64 = 3.8;

impl Head {
    /// The head of messages of this family.
    pub fn of(family: Family) -> Self {
        match family {
            Family::Ask => Self::Solid,
            Family::Answer => Self::Hollow,
            Family::Announce => Self::Double,
            Family::HandOver => Self::Diamond,
            Family::Refuse => Self::Bar,
            Family::Upkeep => Self::Small,
        }
    }

    /// The length of the shaft that it covers.
    fn length(self) -> f64 {
        match self {
            Self::Solid => LENGTH * 0.7,
            Self::Hollow | Self::Diamond => LENGTH,
            Self::Double => LENGTH * 1.4,
            Self::Bar => 0.0,
            Self::Small => LENGTH * 0.5,
        }
    }
}

impl Canvas {
    /// An arrow in the colour of the group.
    pub fn arrow(&mut self, head: Head, from: Point, to: Point) {
        self.line("way", from, short_of(from, to, head.length()));
        self.tip(head, from, to);
    }

    /// An arrow with a dashed shaft.
    pub fn dashed_arrow(&mut self, head: Head, from: Point, to: Point) {
        self.line("under-way", from, short_of(from, to, head.length()));
        self.tip(head, from, to);
    }

    /// An arrow from a life line to itself.
    pub fn hop(&mut self, head: Head, from: Point, to: Point) {
        let peak = ((from.0 + to.0) / 2.0, from.1 - 34.0);
        self.curve("way", from, peak, short_of(peak, to, head.length()));
        self.tip(head, peak, to);
    }

    /// The head of an arrow, in the colour of the group.
    fn tip(&mut self, head: Head, from: Point, to: Point) {
        match head {
            Head::Solid => self.path("tip", &triangle(from, to, LENGTH, HALF_WIDTH), true),
            Head::Hollow => {
                self.path("tip hollow", &triangle(from, to, LENGTH, HALF_WIDTH), true);
            }
            Head::Double => {
                let behind = short_of(from, to, LENGTH * 0.75);
                self.path("tip", &triangle(from, to, LENGTH, HALF_WIDTH), true);
                self.path("tip", &triangle(from, behind, LENGTH, HALF_WIDTH), true);
            }
            Head::Diamond => {
                let [tip, left, right] = triangle(from, to, LENGTH / 2.0, HALF_WIDTH);
                self.path("tip", &[tip, left, short_of(from, to, LENGTH), right], true);
            }
            Head::Bar => {
                let [_, left, right] = triangle(from, to, 0.0, LENGTH / 2.0);
                self.path("tip bar", &[left, right], false);
            }
            Head::Small => {
                self.path("tip", &triangle(from, to, LENGTH * 0.6, HALF_WIDTH * 0.6), true);
            }
        }
    }
}
