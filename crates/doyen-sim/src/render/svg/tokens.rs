//! The colours of every picture: one table, from which diagrams, charts and `web/tokens.css` are made.
//!
//! A colour is a role or a meaning, never an identity: gold leads, blue asks, green answers, red is a fault. Signs
//! repeat every meaning by their shape, so nothing depends on colour alone.

#[cfg(test)]
mod tests;

use std::fmt::Write;

use doyen_core::protocol::Family;

use super::Theme;

/// A colour by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// What it is for.
    pub name: &'static str,
    /// On a light ground.
    pub light: &'static str,
    /// On a dark ground.
    pub dark: &'static str,
}

const fn token(name: &'static str, light: &'static str, dark: &'static str) -> Token {
    Token { name, light, dark }
}

/// Every colour. Green also means a lease, or a good state.
pub const TOKENS: [Token; 19] = [
    token("paper", "#ffffff", "#10151d"),
    token("wash", "#f6f7f9", "#161c26"),
    token("ink", "#1b2430", "#e8edf4"),
    token("soft", "#5b6778", "#9aa7b8"),
    token("line", "#8793a5", "#66738a"),
    token("rule", "#e3e7ec", "#262f3b"),
    token("grid", "#edf0f4", "#1d2530"),
    token("leader", "#f5bd1f", "#e0a90f"),
    token("leader-edge", "#8a6400", "#ffe08a"),
    token("candidate", "#dbe7fb", "#1c3558"),
    token("candidate-edge", "#2a68de", "#65b4fe"),
    token("follower-edge", "#5b6778", "#9aa7b8"),
    token("ask", "#2a68de", "#65b4fe"),
    token("answer", "#0e8562", "#86e0bf"),
    token("announce", "#cf7a12", "#f3b428"),
    token("handover", "#52008f", "#9a57e6"),
    token("refuse", "#791440", "#ea6eb7"),
    token("upkeep", "#8391a0", "#6f7782"),
    token("fault", "#c8102e", "#ff6b78"),
];

/// The colours of lines: those of messages, and two more for charts with many series.
pub const SERIES: [&str; 8] =
    ["ask", "announce", "answer", "handover", "refuse", "fault", "upkeep", "soft"];

impl Token {
    /// Its colour on the ground of `theme`; the light one for [`Theme::Auto`].
    pub fn on(&self, theme: Theme) -> &'static str {
        if theme == Theme::Dark { self.dark } else { self.light }
    }
}

/// The class of messages of this family.
pub(super) fn class_of(family: Family) -> String {
    format!("m {}", family.name())
}

/// The style sheet of the page, `web/tokens.css`.
pub fn css() -> String {
    let mut sheet = "/* Made from crates/doyen-sim/src/render/svg/tokens.rs by `make golden`. */\n\
                     :root {\n  color-scheme: light dark;\n"
        .to_owned();
    for Token { name, light, dark } in TOKENS {
        let _ = writeln!(sheet, "  --{name}: light-dark({light}, {dark});");
    }
    sheet + "}\n"
}
