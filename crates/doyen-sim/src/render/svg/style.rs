//! The style sheet of a space-time diagram: type, strokes and colours.

use super::Theme;

/// The colours by name, on a light and on a dark ground; then those of the messages.
const PALETTE: [(&str, [&str; 2]); 10] = [
    ("GROUND", ["#ffffff", "#10151d"]),
    ("INK", ["#1b2430", "#e8edf4"]),
    ("SOFT", ["#5b6778", "#9aa7b8"]),
    ("LINE", ["#8793a5", "#66738a"]),
    ("GRID", ["#edf0f4", "#1d2530"]),
    ("CAMPAIGN", ["#cfe1f7", "#1f3c5f"]),
    ("LEADER", ["#f5bd1f", "#e0a90f"]),
    ("EDGE", ["#8a6400", "#ffe08a"]),
    ("BAD", ["#c8102e", "#ff6b78"]),
    ("GOOD", ["#14804a", "#4fd08b"]),
];

const MESSAGES: [[&str; 2]; 8] = [
    ["#1769c4", "#64aef7"],
    ["#12805c", "#46cf9a"],
    ["#d0510a", "#ff9450"],
    ["#8a3ffc", "#be95ff"],
    ["#6b4f3a", "#c8a78d"],
    ["#7a8797", "#8592a3"],
    ["#c2185b", "#ff7eb0"],
    ["#007f93", "#3ec9dc"],
];

/// The kinds that every diagram draws in the same colour; the others take what is left, in order.
const KNOWN: [&[&str]; 7] = [
    &["ELECTION", "ELECT", "ELECT-ME"],
    &["OK"],
    &["COORDINATOR", "ELECTED", "NEW-COORDINATOR"],
    &["GRANT"],
    &["STOP"],
    &["ALIVE", "HEARTBEAT", "ACK", "HOP-ACK"],
    &["NACK"],
];

/// The colour of the kind at `index`.
pub(super) fn colour_of(kinds: &[String], index: usize) -> usize {
    let known = |name: &str| KNOWN.iter().position(|names| names.contains(&name));
    if let Some(colour) = known(&kinds[index]) {
        return colour;
    }
    let taken: Vec<usize> = kinds.iter().filter_map(|name| known(name)).collect();
    let strangers = kinds[..index].iter().filter(|name| known(name).is_none()).count();
    // At least the last one is free: no known kind has it.
    let free: Vec<usize> =
        (0..MESSAGES.len()).rev().filter(|colour| !taken.contains(colour)).collect();
    free[strangers % free.len()]
}

/// The class of messages of this colour.
pub(super) fn class_of(colour: usize) -> String {
    format!("m m{colour}")
}

/// The style sheet. Every rule is bound to the diagram, so that it may stand within a page.
pub(super) fn style(theme: Theme, dense: bool) -> String {
    let thin = if dense { THIN } else { "" };
    let colours = match theme {
        Theme::Light => colours(0),
        Theme::Dark => colours(1),
        Theme::Auto => {
            format!("{}@media (prefers-color-scheme: dark) {{\n{}}}\n", colours(0), colours(1))
        }
    };
    format!("{SHAPES}{thin}{colours}")
}

/// The colours on the light or the dark ground.
fn colours(ground: usize) -> String {
    let mut sheet = COLOURS.to_owned();
    for (name, colours) in PALETTE {
        sheet = sheet.replace(&format!("${name}"), colours[ground]);
    }
    for (kind, colours) in MESSAGES.into_iter().enumerate() {
        let (message, colour) = (format!(".doyen-run .m{kind}"), colours[ground]);
        sheet.push_str(&format!(
            "{message} .way, {message} .under-way {{ stroke: {colour}; }}\n\
             {message} .tip, {message} .label {{ fill: {colour}; }}\n"
        ));
    }
    sheet
}

/// What does not depend on the ground.
const SHAPES: &str = "\
.doyen-run { font-family: Inter, 'Segoe UI', system-ui, -apple-system, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif; font-variant-numeric: tabular-nums; }
.doyen-run path { fill: none; stroke-linecap: round; stroke-linejoin: round; }
.doyen-run text { font-size: 12px; paint-order: stroke; stroke-width: 3px; stroke-linejoin: round; }
.doyen-run .heading { font-size: 19px; font-weight: 650; }
.doyen-run .subheading { font-size: 13px; }
.doyen-run .name { font-size: 15px; font-weight: 650; text-anchor: end; }
.doyen-run .tick { font-size: 11px; text-anchor: middle; }
.doyen-run .axis-name { font-size: 11px; }
.doyen-run .split-name { font-size: 11px; font-weight: 600; }
.doyen-run .timer-name { font-size: 10px; text-anchor: end; font-style: italic; }
.doyen-run .label { font-size: 10px; text-anchor: middle; }
.doyen-run .term { font-size: 10px; font-weight: 600; }
.doyen-run .call-sign { font-size: 12px; font-weight: 800; text-anchor: middle; stroke: none; }
.doyen-run .grid, .doyen-run .axis { stroke-width: 1; }
.doyen-run .life { stroke-width: 1.6; }
.doyen-run .dead-line { stroke-width: 1.4; stroke-dasharray: 1 5; }
.doyen-run .pause { stroke-width: 1.2; stroke-dasharray: 3 2.5; }
.doyen-run .lease-rest { stroke-width: 1.2; stroke-dasharray: 2 2; }
.doyen-run .split-ground { opacity: 0.06; }
.doyen-run .split-edge { stroke-width: 1.2; stroke-dasharray: 5 3; }
.doyen-run .cut, .doyen-run .mended { stroke-width: 1.4; stroke-dasharray: 2 3; }
.doyen-run .tip { stroke: none; stroke-dasharray: none; }
.doyen-run .way { stroke-width: 1.7; }
.doyen-run .under-way { stroke-width: 1.7; stroke-dasharray: 5 4; }
.doyen-run .lost { stroke-width: 2.2; }
.doyen-run .m:hover .way { stroke-width: 3; }
.doyen-run .timer { stroke-width: 2; }
.doyen-run .crash { stroke-width: 3; }
.doyen-run .leads { stroke-width: 1.2; }
.doyen-run .suspects, .doyen-run .trusts, .doyen-run .clock { stroke-width: 1.8; }
.doyen-run .gap { stroke-width: 7; stroke-linecap: butt; }
.doyen-run .gap-edge { stroke-width: 1; stroke-dasharray: none; }
.doyen-run .faint { opacity: 0.16; }
";

/// Many arrows.
const THIN: &str = "\
.doyen-run .way, .doyen-run .under-way { stroke-width: 0.8; opacity: 0.7; }
.doyen-run .m .tip { opacity: 0.7; }
";

/// What does. A name in capitals stands for a colour of the palette.
const COLOURS: &str = "\
.doyen-run .ground { fill: $GROUND; }
.doyen-run text { fill: $INK; stroke: $GROUND; }
.doyen-run .subheading, .doyen-run .tick, .doyen-run .axis-name, .doyen-run .ending, .doyen-run .timer-name { fill: $SOFT; }
.doyen-run .grid { stroke: $GRID; }
.doyen-run .axis, .doyen-run .life, .doyen-run .dead-line { stroke: $LINE; }
.doyen-run .campaigns { fill: $CAMPAIGN; }
.doyen-run .leader-bar { fill: $LEADER; }
.doyen-run .lease { fill: $GOOD; }
.doyen-run .lease-rest { fill: $GROUND; stroke: $GOOD; }
.doyen-run .term { fill: $GOOD; }
.doyen-run .pause { fill: $GROUND; stroke: $SOFT; }
.doyen-run .split-ground { fill: $BAD; }
.doyen-run .split-edge { stroke: $BAD; }
.doyen-run .split-name { fill: $BAD; }
.doyen-run .cut { stroke: $BAD; }
.doyen-run .cut .tip { fill: $BAD; }
.doyen-run .mended { stroke: $GOOD; }
.doyen-run .mended .tip { fill: $GOOD; }
.doyen-run .lost, .doyen-run .crash { stroke: $BAD; }
.doyen-run .call { fill: $INK; }
.doyen-run .call-sign { fill: $GROUND; stroke: none; }
.doyen-run .timer { stroke: $INK; }
.doyen-run .restart { fill: $GOOD; stroke: $GROUND; }
.doyen-run .clock { fill: $GROUND; stroke: $INK; }
.doyen-run .suspects { fill: $GROUND; stroke: $BAD; }
.doyen-run .trusts { fill: $GROUND; stroke: $GOOD; }
.doyen-run .leads { fill: $LEADER; stroke: $EDGE; }
.doyen-run .gap { stroke: $GROUND; }
.doyen-run .gap-edge { stroke: $LINE; }
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_kinds_keep_their_colour_and_strangers_take_what_is_left() {
        let kinds = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let colours = |names: &[&str]| {
            let kinds = kinds(names);
            (0..kinds.len()).map(|index| colour_of(&kinds, index)).collect::<Vec<_>>()
        };
        assert_eq!(colours(&["ELECTION", "OK", "COORDINATOR"]), [0, 1, 2]);
        assert_eq!(colours(&["COORDINATOR", "ELECTION"]), [2, 0]);
        assert_eq!(colours(&["PRE-VOTE", "ELECTION", "VOTE"]), [7, 0, 6]);
    }
}
