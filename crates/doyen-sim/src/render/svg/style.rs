//! The style sheet of a space-time diagram: type, strokes and colours.

use super::Theme;
use super::tokens::{SERIES, TOKENS};

/// The style sheet. Every rule is bound to the diagram, so that it may stand within a page.
pub(super) fn style(theme: Theme, dense: bool) -> String {
    let thin = if dense { THIN } else { "" };
    let colours = match theme {
        Theme::Light | Theme::Dark => colours(theme),
        Theme::Auto => {
            let (light, dark) = (colours(Theme::Light), colours(Theme::Dark));
            format!("{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")
        }
    };
    format!("{SHAPES}{thin}{colours}")
}

/// The colours on a light or a dark background.
fn colours(theme: Theme) -> String {
    let mut sheet = COLOURS.to_owned();
    for name in SERIES {
        let of = format!(".doyen-run .{name}");
        sheet.push_str(&format!(
            "{of} .way, {of} .under-way, {of} .tip.hollow, {of} .tip.bar {{ stroke: ${name}; }}\n\
             {of} .tip {{ fill: ${name}; }}\n"
        ));
    }
    sheet.push_str(".doyen-run .tip.hollow { fill: $paper; }\n");
    for token in &TOKENS {
        sheet = sheet.replace(&format!("${};", token.name), &format!("{};", token.on(theme)));
    }
    sheet
}

/// The rules that do not depend on the background.
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
.doyen-run .timer-name.begin { text-anchor: start; }
.doyen-run .term { font-size: 10px; font-weight: 600; }
.doyen-run .term.end { text-anchor: end; }
.doyen-run .call-sign { font-size: 12px; font-weight: 800; text-anchor: middle; stroke: none; }
.doyen-run .grid, .doyen-run .axis { stroke-width: 1; }
.doyen-run .life { stroke-width: 1.6; }
.doyen-run .down-line { stroke-width: 1.4; stroke-dasharray: 1 5; }
.doyen-run .campaigns, .doyen-run .leader-bar, .doyen-run .waits, .doyen-run .inside, .doyen-run .violation { stroke-width: 1; }
.doyen-run .pause { stroke-width: 1.2; stroke-dasharray: 3 2.5; }
.doyen-run .lease-rest { stroke-width: 1.2; stroke-dasharray: 2 2; }
.doyen-run .split-ground { opacity: 0.06; }
.doyen-run .split-edge { stroke-width: 1.2; stroke-dasharray: 5 3; }
.doyen-run .cut, .doyen-run .mended { stroke-width: 1.4; stroke-dasharray: 2 3; }
.doyen-run .tip { stroke: none; stroke-dasharray: none; }
.doyen-run .tip.hollow { stroke-width: 1.4; }
.doyen-run .tip.bar { stroke-width: 2.4; }
.doyen-run .way { stroke-width: 1.7; }
.doyen-run .under-way { stroke-width: 1.7; stroke-dasharray: 5 4; }
.doyen-run .m.upkeep .way, .doyen-run .m.upkeep .under-way { stroke-width: 1.1; }
.doyen-run .lost { stroke-width: 2.2; }
.doyen-run .missed { stroke-width: 1.8; }
.doyen-run .m:hover .way { stroke-width: 3; }
.doyen-run .timer { stroke-width: 2; }
.doyen-run .crash { stroke-width: 3; }
.doyen-run .leads { stroke-width: 1.2; }
.doyen-run .suspects, .doyen-run .trusts, .doyen-run .clock { stroke-width: 1.8; }
.doyen-run .gap { stroke-width: 7; stroke-linecap: butt; }
.doyen-run .gap-edge { stroke-width: 1; stroke-dasharray: none; }
.doyen-run .faint { opacity: 0.16; }
";

/// Rules for many arrows.
const THIN: &str = "\
.doyen-run .way, .doyen-run .under-way { stroke-width: 0.8; opacity: 0.7; }
.doyen-run .m .tip { opacity: 0.7; }
";

/// The rules that depend on the background. `$name` stands for the colour of a token.
const COLOURS: &str = "\
.doyen-run .ground { fill: $paper; }
.doyen-run text { fill: $ink; stroke: $paper; }
.doyen-run .subheading, .doyen-run .tick, .doyen-run .axis-name, .doyen-run .ending, .doyen-run .timer-name, .doyen-run .label { fill: $soft; }
.doyen-run .grid { stroke: $grid; }
.doyen-run .axis, .doyen-run .life, .doyen-run .down-line { stroke: $line; }
.doyen-run .campaigns { fill: $candidate; stroke: $candidate-edge; }
.doyen-run .leader-bar { fill: $leader; stroke: $leader-edge; }
.doyen-run .waits { fill: $candidate-edge; stroke: $candidate-edge; }
.doyen-run .inside { fill: $leader; stroke: $leader-edge; }
.doyen-run .violation { fill: $fault; stroke: $fault; }
.doyen-run .lease { fill: $answer; }
.doyen-run .lease-rest { fill: $paper; stroke: $answer; }
.doyen-run .term { fill: $answer; }
.doyen-run .pause { fill: $paper; stroke: $soft; }
.doyen-run .split-ground { fill: $fault; }
.doyen-run .split-edge { stroke: $fault; }
.doyen-run .split-name { fill: $fault; }
.doyen-run .cut { stroke: $fault; }
.doyen-run .cut .tip { fill: $fault; }
.doyen-run .mended { stroke: $answer; }
.doyen-run .mended .tip { fill: $answer; }
.doyen-run .lost, .doyen-run .crash { stroke: $fault; }
.doyen-run .missed { fill: $paper; stroke: $fault; }
.doyen-run .call { fill: $ink; }
.doyen-run .call-sign { fill: $paper; stroke: none; }
.doyen-run .timer { stroke: $ink; }
.doyen-run .restart { fill: $answer; stroke: $paper; }
.doyen-run .clock { fill: $paper; stroke: $ink; }
.doyen-run .suspects { fill: $paper; stroke: $fault; }
.doyen-run .trusts { fill: $paper; stroke: $answer; }
.doyen-run .leads { fill: $leader; stroke: $leader-edge; }
.doyen-run .gap { stroke: $paper; }
.doyen-run .gap-edge { stroke: $line; }
";
