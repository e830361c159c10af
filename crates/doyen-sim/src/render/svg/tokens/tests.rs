//! What the colours promise: marks and text stand out from the ground, and the seven meanings can be told apart, also by
//! those who do not see red or green.

use std::path::Path;

use super::*;

type Rgb = [f64; 3];

const MEANINGS: [&str; 7] = ["ask", "answer", "announce", "handover", "refuse", "upkeep", "fault"];

/// What people with a colour deficiency see of linear light: Machado, Oliveira and Fernandes 2009, full severity.
const PROTANOPIA: [Rgb; 3] = [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
];
const DEUTERANOPIA: [Rgb; 3] = [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.011820, 0.042940, 0.968881],
];
const NORMAL: [Rgb; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

fn linear(name: &str, theme: Theme) -> Rgb {
    let token = TOKENS.iter().find(|token| token.name == name).expect("it is in the table");
    let hex = token.on(theme);
    [1, 3, 5].map(|place| {
        let byte = u8::from_str_radix(&hex[place..place + 2], 16).expect("it is a number");
        let share = f64::from(byte) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    })
}

fn dot(one: Rgb, other: Rgb) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// The contrast of WCAG.
fn contrast(one: &str, other: &str, theme: Theme) -> f64 {
    let luminance = |name| dot([0.2126, 0.7152, 0.0722], linear(name, theme)) + 0.05;
    let (one, other) = (luminance(one), luminance(other));
    one.max(other) / one.min(other)
}

fn lab(rgb: Rgb) -> Rgb {
    let xyz = [
        dot([0.4124564, 0.3575761, 0.1804375], rgb) / 0.95047,
        dot([0.2126729, 0.7151522, 0.0721750], rgb),
        dot([0.0193339, 0.1191920, 0.9503041], rgb) / 1.08883,
    ];
    let [x, y, z] = xyz.map(|t| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// How different two colours look: CIEDE2000 (Sharma, Wu and Dalal 2005).
fn difference(one: Rgb, other: Rgb) -> f64 {
    let ([l1, a1, b1], [l2, a2, b2]) = (one, other);
    let seventh = |c: f64| (c.powi(7) / (c.powi(7) + 25_f64.powi(7))).sqrt();
    let stretch = 1.5 - 0.5 * seventh((a1.hypot(b1) + a2.hypot(b2)) / 2.0);
    let (a1, a2) = (a1 * stretch, a2 * stretch);
    let (c1, c2) = (a1.hypot(b1), a2.hypot(b2));
    let hue = |a: f64, b: f64| b.atan2(a).to_degrees().rem_euclid(360.0);
    let (h1, h2) = (hue(a1, b1), hue(a2, b2));
    let turn = (h2 - h1 + 180.0).rem_euclid(360.0) - 180.0;
    let dh = 2.0 * (c1 * c2).sqrt() * (turn / 2.0).to_radians().sin();
    let (l, c, h) = ((l1 + l2) / 2.0, (c1 + c2) / 2.0, (h1 + turn / 2.0).rem_euclid(360.0));
    let cos = |degrees: f64| degrees.to_radians().cos();
    let t = 1.0 - 0.17 * cos(h - 30.0) + 0.24 * cos(2.0 * h) + 0.32 * cos(3.0 * h + 6.0)
        - 0.20 * cos(4.0 * h - 63.0);
    let sl = 1.0 + 0.015 * (l - 50.0).powi(2) / (20.0 + (l - 50.0).powi(2)).sqrt();
    let (sc, sh) = (1.0 + 0.045 * c, 1.0 + 0.015 * c * t);
    let rotation = 60.0 * (-((h - 275.0) / 25.0).powi(2)).exp();
    let rt = -2.0 * seventh(c) * rotation.to_radians().sin();
    let (dl, dc, dh) = ((l2 - l1) / sl, (c2 - c1) / sc, dh / sh);
    (dl * dl + dc * dc + dh * dh + rt * dc * dh).sqrt()
}

/// The least difference between two of the seven meanings, as seen.
fn least_difference(theme: Theme, sight: [Rgb; 3]) -> f64 {
    let seen = MEANINGS.map(|name| {
        let light = linear(name, theme);
        lab(sight.map(|row| dot(row, light).clamp(0.0, 1.0)))
    });
    let pairs = (0..seen.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
    pairs.map(|(one, other)| difference(seen[one], seen[other])).fold(f64::INFINITY, f64::min)
}

#[test]
fn the_difference_is_that_of_the_standard() {
    // From the test data of Sharma, Wu and Dalal.
    for (one, other, expected) in [
        ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
        ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
        ([60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387], 1.2644),
        ([2.0776, 0.0795, -1.1350], [0.9033, -0.0636, -0.5514], 0.9082),
    ] {
        let found = difference(one, other);
        assert!((found - expected).abs() < 1e-4, "{found} is not {expected}");
    }
}

#[test]
fn marks_and_text_stand_out() {
    for theme in [Theme::Light, Theme::Dark] {
        let edges = ["line", "leader-edge", "candidate-edge", "follower-edge"];
        for name in edges.into_iter().chain(MEANINGS) {
            let found = contrast(name, "paper", theme);
            assert!(found >= 3.0, "{name} on {theme:?}: {found:.2}");
        }
        for name in ["ink", "soft", "answer", "fault"] {
            let found = contrast(name, "paper", theme);
            assert!(found >= 4.5, "{name} on {theme:?}: {found:.2}");
        }
    }
    assert!(contrast("ink", "leader", Theme::Light) >= 4.5);
    assert!(contrast("paper", "leader", Theme::Dark) >= 4.5);
}

#[test]
fn the_seven_meanings_can_be_told_apart() {
    for theme in [Theme::Light, Theme::Dark] {
        for (name, sight) in
            [("normal", NORMAL), ("protanopia", PROTANOPIA), ("deuteranopia", DEUTERANOPIA)]
        {
            let least = least_difference(theme, sight);
            assert!(least >= 12.0, "{theme:?}, {name}: {least:.1}");
        }
    }
}

#[test]
fn the_page_has_the_same_colours() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/tokens.css");
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::write(&path, css()).expect("web/tokens.css can be written");
    }
    let written = std::fs::read_to_string(&path).expect("web/tokens.css is there");
    assert_eq!(written, css(), "`make golden` rewrites it");
}

#[test]
fn every_family_has_a_colour() {
    for family in Family::ALL {
        assert!(TOKENS.iter().any(|token| token.name == family.name()), "{family:?}");
    }
}
