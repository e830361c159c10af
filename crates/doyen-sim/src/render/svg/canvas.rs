//! Strokes, shapes and text as SVG. Each call names a class of the style sheet, which determines the look.

use std::fmt::Write;

use super::labels::Along;

/// A place in the picture.
pub type Point = (f64, f64);

/// A picture that is being drawn.
#[derive(Debug, Default)]
pub struct Canvas {
    body: String,
}

impl Canvas {
    /// The whole document.
    pub fn finish(self, width: f64, height: f64, title: &str, style: &str) -> String {
        let (width, height, title) = (n(width.ceil()), n(height.ceil()), escaped(title));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"doyen-run\" role=\"img\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n<title>{title}</title>\n<style>\n{style}</style>\n\
             <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n{}</svg>\n",
            self.body
        )
    }

    /// Begins a group that says `title` on hover. [`close`](Self::close) ends it.
    pub fn open(&mut self, class: &str, title: &str) {
        self.open_faint(class, title, false);
    }

    /// Begins a group that may be drawn faintly.
    pub fn open_faint(&mut self, class: &str, title: &str, faint: bool) {
        let faint = if faint { " faint" } else { "" };
        self.push(&format!("<g class=\"{class}{faint}\">"));
        if !title.is_empty() {
            self.push(&format!("<title>{}</title>", escaped(title)));
        }
    }

    /// Closes the group that was opened last.
    pub fn close(&mut self) {
        self.push("</g>\n");
    }

    /// A text that begins at a point.
    pub fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let text = escaped(text);
        self.push(&format!(
            "<text class=\"{class}\" x=\"{}\" y=\"{}\">{text}</text>\n",
            n(x),
            n(y)
        ));
    }

    /// A line.
    pub fn line(&mut self, class: &str, from: Point, to: Point) {
        let path = segment(from, to);
        self.push(&format!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    /// A rectangle with round corners.
    pub fn rect(&mut self, class: &str, from: Point, to: Point, radius: f64) {
        let (width, height) = ((to.0 - from.0).max(0.0), to.1 - from.1);
        let radius = n(radius.min(width / 2.0));
        self.push(&format!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{radius}\"/>",
            n(from.0),
            n(from.1),
            n(width),
            n(height),
        ));
    }

    /// A line that bends towards `peak`.
    pub(super) fn curve(&mut self, class: &str, from: Point, peak: Point, to: Point) {
        let path = format!(
            "M{} {}Q{} {} {} {}",
            n(from.0),
            n(from.1),
            n(peak.0),
            n(peak.1),
            n(to.0),
            n(to.1)
        );
        self.push(&format!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    /// The tip of an arrow of its own colour.
    pub fn head(&mut self, class: &str, from: Point, to: Point) {
        self.path(&format!("{class} tip"), &triangle(from, to, 10.0, 3.8), true);
    }

    /// A cross.
    pub fn cross(&mut self, class: &str, (x, y): Point, size: f64) {
        let one = segment((x - size, y - size), (x + size, y + size));
        let other = segment((x - size, y + size), (x + size, y - size));
        self.push(&format!("<path class=\"{class}\" d=\"{one}{other}\"/>"));
    }

    /// A circle with a stroke through it.
    pub fn miss(&mut self, class: &str, (x, y): Point, radius: f64) {
        let k = radius * std::f64::consts::FRAC_1_SQRT_2;
        let (r, y0, left, right) = (n(radius), n(y), n(x - radius), n(x + radius));
        let circle = format!("M{left},{y0}A{r},{r} 0 1 0 {right},{y0}A{r},{r} 0 1 0 {left},{y0}");
        let stroke = segment((x - k, y + k), (x + k, y - k));
        self.push(&format!("<path class=\"{class}\" d=\"{circle}{stroke}\"/>"));
    }

    /// A disc.
    pub fn disc(&mut self, class: &str, (x, y): Point, radius: f64) {
        self.push(&format!(
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>",
            n(x),
            n(y),
            n(radius)
        ));
    }

    /// A triangle that points to the right.
    pub fn triangle(&mut self, class: &str, (x, y): Point, size: f64) {
        let (back, tip, half) = (n(x - size * 0.6), n(x + size), size);
        self.push(&format!(
            "<path class=\"{class}\" d=\"M{back} {}L{tip} {}L{back} {}Z\"/>",
            n(y - half),
            n(y),
            n(y + half)
        ));
    }

    /// A five-pointed star. The sines and cosines of 36° and 72° stand here as numbers, so that every machine draws
    /// the same.
    pub fn star(&mut self, class: &str, (x, y): Point, radius: f64) {
        const RAYS: [Point; 10] = [
            (0.0, -1.0),
            (0.588, -0.809),
            (0.951, -0.309),
            (0.951, 0.309),
            (0.588, 0.809),
            (0.0, 1.0),
            (-0.588, 0.809),
            (-0.951, 0.309),
            (-0.951, -0.309),
            (-0.588, -0.809),
        ];
        let mut path = String::new();
        for (ray, (dx, dy)) in RAYS.into_iter().enumerate() {
            let length = if ray % 2 == 0 { radius } else { radius * 0.45 };
            let command = if ray == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{} {}", n(x + dx * length), n(y + dy * length));
        }
        self.push(&format!("<path class=\"{class}\" d=\"{path}Z\"/>"));
    }

    /// Two jagged lines from top to bottom: time is missing here.
    pub fn zigzag(&mut self, x: f64, top: f64, bottom: f64) {
        let mut path = String::new();
        let teeth = ((bottom - top) / 9.0).ceil() as usize;
        for tooth in 0..=teeth {
            let side = if tooth % 2 == 0 { -3.0 } else { 3.0 };
            let command = if tooth == 0 { 'M' } else { 'L' };
            let y = (top + tooth as f64 * 9.0).min(bottom);
            let _ = write!(path, "{command}{} {}", n(x + side), n(y));
        }
        self.push(&format!(
            "<path class=\"gap\" d=\"{path}\"/><path class=\"gap-edge\" d=\"{path}\"/>\n"
        ));
    }

    /// Text along an arrow.
    pub(super) fn label(&mut self, Along { at, direction: (cos, sin) }: Along, text: &str) {
        self.push(&format!(
            "<text class=\"label\" transform=\"matrix({} {} {} {} {} {})\">{}</text>",
            three(cos),
            three(sin),
            three(-sin),
            three(cos),
            n(at.0),
            n(at.1),
            escaped(text)
        ));
    }

    /// Begins a group of this class that says `title` on hover.
    pub fn group(&mut self, class: &str, title: &str) {
        self.push(&format!("<g class=\"{class}\"><title>{}</title>", escaped(title)));
    }

    /// Text of this class.
    pub fn words(&mut self, class: &str, (x, y): Point, text: &str) {
        let text = escaped(text);
        self.push(&format!(
            "<text class=\"{class}\" x=\"{}\" y=\"{}\">{text}</text>\n",
            n(x),
            n(y)
        ));
    }

    /// A line of this class through all points, or an area with them as corners.
    pub fn path(&mut self, class: &str, points: &[Point], closed: bool) {
        let mut path = String::new();
        for (place, &(x, y)) in points.iter().enumerate() {
            let command = if place == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{} {}", n(x), n(y));
        }
        let end = if closed { "Z" } else { "" };
        self.push(&format!("<path class=\"{class}\" d=\"{path}{end}\"/>"));
    }

    fn push(&mut self, text: &str) {
        self.body.push_str(text);
    }
}

/// Roughly how wide `text` is.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.58
}

fn segment(from: Point, to: Point) -> String {
    format!("M{} {}L{} {}", n(from.0), n(from.1), n(to.0), n(to.1))
}

/// The point `distance` before `to`.
pub(super) fn short_of(from: Point, to: Point, distance: f64) -> Point {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(distance).max(f64::MIN_POSITIVE);
    (to.0 - dx / length * distance, to.1 - dy / length * distance)
}

/// The corners of an arrow's tip: its point, and what is to its left and its right `length` before it.
pub(super) fn triangle(from: Point, to: Point, length: f64, half_width: f64) -> [Point; 3] {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let run = dx.hypot(dy).max(f64::MIN_POSITIVE);
    let (cos, sin) = (dx / run, dy / run);
    let back = (to.0 - length * cos, to.1 - length * sin);
    let (across_x, across_y) = (-sin * half_width, cos * half_width);
    [to, (back.0 + across_x, back.1 + across_y), (back.0 - across_x, back.1 - across_y)]
}

/// A coordinate: a tenth of a pixel is enough.
fn n(number: f64) -> String {
    let tenths = (number * 10.0).round() / 10.0;
    let text = format!("{tenths:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn three(number: f64) -> String {
    format!("{number:.3}")
}

/// Text that XML reads as text.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no way to write these.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
