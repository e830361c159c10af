//! Colours and type.

use super::Theme;

/// The colours on one ground.
struct Palette {
    ground: &'static str,
    ink: &'static str,
    soft: &'static str,
    line: &'static str,
    grid: &'static str,
    stands: &'static str,
    reign: &'static str,
    reign_edge: &'static str,
    bad: &'static str,
    good: &'static str,
    messages: [&'static str; 8],
}

const LIGHT: Palette = Palette {
    ground: "#ffffff",
    ink: "#1b2430",
    soft: "#5b6778",
    line: "#8793a5",
    grid: "#edf0f4",
    stands: "#cfe1f7",
    reign: "#f5bd1f",
    reign_edge: "#8a6400",
    bad: "#c8102e",
    good: "#14804a",
    messages: [
        "#1769c4", "#12805c", "#d0510a", "#8a3ffc", "#6b4f3a", "#7a8797", "#c2185b", "#007f93",
    ],
};

const DARK: Palette = Palette {
    ground: "#10151d",
    ink: "#e8edf4",
    soft: "#9aa7b8",
    line: "#66738a",
    grid: "#1d2530",
    stands: "#1f3c5f",
    reign: "#e0a90f",
    reign_edge: "#ffe08a",
    bad: "#ff6b78",
    good: "#4fd08b",
    messages: [
        "#64aef7", "#46cf9a", "#ff9450", "#be95ff", "#c8a78d", "#8592a3", "#ff7eb0", "#3ec9dc",
    ],
};

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
pub(super) fn kind(kinds: &[String], index: usize) -> usize {
    let known = |name: &str| KNOWN.iter().position(|names| names.contains(&name));
    if let Some(colour) = known(&kinds[index]) {
        return colour;
    }
    let taken: Vec<usize> = kinds.iter().filter_map(|name| known(name)).collect();
    let strangers = kinds[..index].iter().filter(|name| known(name).is_none()).count();
    // At least the last one is free: no known kind has it.
    let free: Vec<usize> = (0..8).rev().filter(|colour| !taken.contains(colour)).collect();
    free[strangers % free.len()]
}

/// The style sheet. Every rule is bound to the diagram, so that it may stand within a page.
pub(super) fn style(theme: Theme, dense: bool) -> String {
    let mut style = SHAPES.to_owned();
    if dense {
        style.push_str(THIN);
    }
    match theme {
        Theme::Light => style.push_str(&colours(&LIGHT)),
        Theme::Dark => style.push_str(&colours(&DARK)),
        Theme::Auto => {
            style.push_str(&colours(&LIGHT));
            style.push_str("@media (prefers-color-scheme: dark) {\n");
            style.push_str(&colours(&DARK));
            style.push_str("}\n");
        }
    }
    style
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

fn colours(palette: &Palette) -> String {
    let mut sheet = COLOURS.to_owned();
    for (name, colour) in [
        ("GROUND", palette.ground),
        ("INK", palette.ink),
        ("SOFT", palette.soft),
        ("LINE", palette.line),
        ("GRID", palette.grid),
        ("STANDS", palette.stands),
        ("REIGN", palette.reign),
        ("EDGE", palette.reign_edge),
        ("BAD", palette.bad),
        ("GOOD", palette.good),
    ] {
        sheet = sheet.replace(&format!("${name}"), colour);
    }
    for (kind, colour) in palette.messages.into_iter().enumerate() {
        sheet.push_str(&format!(
            ".doyen-run .m{kind} .way, .doyen-run .m{kind} .under-way {{ stroke: {colour}; }}\n.doyen-run .m{kind} .tip, .doyen-run .m{kind} .label {{ fill: {colour}; }}\n"
        ));
    }
    sheet
}

/// What does. A name in capitals stands for a colour of the palette.
const COLOURS: &str = "\
.doyen-run .ground { fill: $GROUND; }
.doyen-run text { fill: $INK; stroke: $GROUND; }
.doyen-run .subheading, .doyen-run .tick, .doyen-run .axis-name, .doyen-run .ending, .doyen-run .timer-name { fill: $SOFT; }
.doyen-run .grid { stroke: $GRID; }
.doyen-run .axis, .doyen-run .life, .doyen-run .dead-line { stroke: $LINE; }
.doyen-run .stands { fill: $STANDS; }
.doyen-run .reign { fill: $REIGN; }
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
.doyen-run .leads { fill: $REIGN; stroke: $EDGE; }
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
            (0..kinds.len()).map(|index| kind(&kinds, index)).collect::<Vec<_>>()
        };
        assert_eq!(colours(&["ELECTION", "OK", "COORDINATOR"]), [0, 1, 2]);
        assert_eq!(colours(&["COORDINATOR", "ELECTION"]), [2, 0]);
        assert_eq!(colours(&["PRE-VOTE", "ELECTION", "VOTE"]), [7, 0, 6]);
    }
}
