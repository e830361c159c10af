//! What a diagram shows, and where it shows it.

use std::fs;
use std::path::Path;

use super::super::Recording;
use super::super::examples::{FIGURE_1, TWO_INSIDE};
use super::*;
use crate::run;
use crate::scenario::Scenario;

const STORM: &str = r#"
    algorithm = "bully"
    mode = "hardened"
    members = [1, 2, 5, 9]
    attr = { 2 = 40 }
    leader = 2
    delay = "uniform:1ms..2ms"
    loss = "20%"
    duplicate = "20%"
    until = "150ms"
    fault = [
        { at = "5ms", crash = 2 },
        { at = "5ms", campaign = 5 },
        { at = "30ms", restart = 2, disk = false },
        { at = "40ms", pause = 9, for = "9ms" },
        { at = "60ms", partition = [[1, 2], [5, 9]] },
        { at = "61ms", campaign = 1 },
        { at = "80ms", heal = true },
        { at = "90ms", cut = [1, 2] },
        { at = "95ms", mend = [1, 2] },
        { at = "99ms", clock = 1, rate = 0.9, skew = "3ms" },
    ]
"#;

const LEASES: &str = r#"
    algorithm = "quorum"
    members = 3
    leader = 3
    until = "100ms"
    fault = [
        { at = "10ms", crash = 3 },
        { at = "80ms", command = "resign", member = 2 },
    ]
"#;

fn recorded(scenario: &str) -> (RunInfo, Vec<TraceEvent>) {
    let case = Scenario::from_toml("test", scenario).unwrap();
    let mut recording = Recording::new(false);
    run::run(&case, Some(&mut recording));
    (RunInfo::of(&case), recording.events().unwrap().to_vec())
}

fn drawn(scenario: &str, options: &Options) -> String {
    let (info, events) = recorded(scenario);
    space_time(&info, &events, options).unwrap()
}

fn count(text: &str, pattern: &str) -> usize {
    text.matches(pattern).count()
}

/// The values of an attribute wherever it stands.
fn values<'a>(svg: &'a str, attribute: &str) -> Vec<&'a str> {
    let pattern = format!(" {attribute}=\"");
    svg.split(&pattern).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn every_message_is_an_arrow_that_says_what_it_is() {
    let svg = drawn(FIGURE_1, &Options::default());
    assert_eq!(count(&svg, ", sent at "), 15);
    assert!(svg.contains("<title>5 → 4 OK, sent at 1 ms, arrives at 2 ms [R4]</title>"));
    assert!(
        svg.contains("<title>4 → 7 ELECTION, sent at 0 ms, arrives at 1 ms: 7 is down</title>")
    );
    assert_eq!(
        count(&svg, "class=\"missed\""),
        3 + 1,
        "three to members that are down, one in the legend"
    );
    assert_eq!(count(&svg, "class=\"lost\""), 0, "none is lost on the way");
    assert!(svg.contains("ELECTION (6)") && svg.contains("OK (3)"));
    assert!(svg.contains("COORDINATOR (6)"));
}

#[test]
fn life_lines_tell_who_leads_who_is_down_and_whom_the_others_follow() {
    let svg = drawn(FIGURE_1, &Options::default());
    assert!(svg.contains("<title>6 leads from 3 ms to the end</title>"));
    assert!(svg.contains("<title>7 is down from 0 ms to the end</title>"));
    assert!(svg.contains("<title>4 takes part in an election from 0 ms to 4 ms</title>"));
    assert_eq!(count(&svg, ">follows 6</text>"), 6);
    assert_eq!(count(&svg, ">down</text>"), 1);
}

#[test]
fn faults_are_drawn_and_explained() {
    let svg = drawn(STORM, &Options::default());
    for piece in [
        "<title>2 leads from 0 ms to 5 ms</title>",
        "<title>2: crashes, at 5 ms</title>",
        "<title>2: restarts without a disk [H1], at 30 ms</title>",
        "<title>9 is paused from 40 ms to 49 ms</title>",
        "<title>partition 1,2 | 5,9</title>",
        "<title>cut 1 → 2 at 90 ms</title>",
        "<title>mended 1 → 2 at 95 ms</title>",
        "<title>1: clock at 0.9 of the true rate, jumps 3 ms ahead, at 99 ms</title>",
        ">lost on the way</text>",
        ">arrives again</text>",
        ">2:40</text>",
    ] {
        assert!(svg.contains(piece), "{piece}\n{svg}");
    }
}

#[test]
fn leases_are_drawn_to_their_deadlines_with_their_terms() {
    let svg = drawn(LEASES, &Options::default());
    for piece in [
        "<title>3 takes part in an election from 0 ms to 2 ms</title>",
        "<title>3 leads from 2 ms to 10 ms</title>",
        "<title>3 holds a lease of term 1 from 2 ms to 10 ms, renewed once</title>",
        "<title>3 gave up its lease before the deadline, 22.182 ms</title>",
        "<title>2 holds a lease of term 2 from ",
        " to 80 ms, renewed ",
        "<title>1 holds a lease of term 3 from ",
        "<title>1: leads in term 3, at ",
        ">holds a lease</text>",
    ] {
        assert!(svg.contains(piece), "{piece}\n{svg}");
    }
    // One of each in the legend. Nothing is left of the lease that 2 handed over.
    assert_eq!(count(&svg, "class=\"lease\""), 3 + 1);
    assert_eq!(count(&svg, "class=\"lease-rest\""), 1 + 1);
    let terms = [1, 2, 3, 4].map(|term| count(&svg, &format!(">term {term}</text>")));
    assert_eq!(terms, [1, 1, 1, 0]);
    assert_eq!(count(&drawn(STORM, &Options::default()), "class=\"lease\""), 0);
}

#[test]
fn nothing_is_drawn_outside_of_the_picture() {
    for scenario in [FIGURE_1, STORM, LEASES, "algorithm = \"ring-list\"\nmembers = 1"] {
        let svg = drawn(scenario, &Options::default());
        let side = |name| values(&svg, name)[0].parse::<f64>().unwrap();
        let (width, height) = (side("width"), side("height"));
        let points = values(&svg, "d").into_iter().flat_map(|path| {
            let numbers = path.split(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
            let numbers = numbers.filter(|number| !number.is_empty());
            numbers.map(|number| number.parse::<f64>().unwrap()).collect::<Vec<_>>()
        });
        let limit = width.max(height);
        assert!(points.into_iter().all(|number| (0.0..=limit).contains(&number)), "{svg}");
        let within = |name: &str, limit: f64| {
            values(&svg, name).iter().all(|x| (0.0..=limit).contains(&x.parse().unwrap()))
        };
        assert!(within("x", width) && within("y", height) && within("cx", width), "{svg}");
    }
}

#[test]
fn text_is_never_markup() {
    let svg = drawn(&format!("title = '<script>&\"'\n{FIGURE_1}"), &Options::default());
    assert_eq!(count(&svg, ">bully, textbook, 8 members<"), 1);
    assert_eq!(count(&svg, "&lt;script&gt;&amp;&quot;"), 2);
    assert!(!svg.contains("<script"));
}

#[test]
fn what_does_not_matter_stands_back() {
    let (info, events) = recorded(FIGURE_1);
    let is_campaign =
        |event: &TraceEvent| matches!(event.kind, crate::trace::EventKind::Campaign { .. });
    let campaign = events.iter().position(is_campaign);
    let emphasis = Some(BTreeSet::from([campaign.unwrap(), campaign.unwrap() + 1]));
    let svg = space_time(&info, &events, &Options { emphasis, ..Options::default() });
    // Fifteen arrows and three marks, less the election that is called and its first message; and one in the legend.
    assert_eq!(count(&svg.unwrap(), " faint\""), 15 + 3 - 2 + 1);
    assert_eq!(count(&drawn(FIGURE_1, &Options::default()), " faint\""), 0);
}

#[test]
fn a_theme_has_one_ground_and_auto_has_both() {
    let grounds = |theme| {
        let svg = drawn(FIGURE_1, &Options { theme, ..Options::default() });
        (svg.contains("#ffffff"), svg.contains("#10151d"))
    };
    assert_eq!(grounds(Theme::Light), (true, false));
    assert_eq!(grounds(Theme::Dark), (false, true));
    assert_eq!(grounds(Theme::Auto), (true, true));
}

#[test]
fn what_does_not_fit_is_refused() {
    let (info, _) = recorded("algorithm = \"bully\"\nmembers = 61\ninitiators = [61]");
    let refused = space_time(&info, &[], &Options::default());
    assert_eq!(refused, Err(TooLarge::Members(61)));
    let case = Scenario::from_toml("test", "algorithm = \"bully\"\nmembers = 60").unwrap();
    let mut events = Vec::new();
    run::run(&case, Some(&mut events));
    let refused = space_time(&RunInfo::of(&case), &events, &Options::default());
    assert_eq!(refused, Err(TooLarge::Messages));
}

/// Every scenario of the repository that can be drawn, by the name of its file.
fn scenarios() -> Vec<(String, RunInfo, Vec<TraceEvent>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut found = Vec::new();
    for folder in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(files) = fs::read_dir(folder) else { continue };
        for file in files.map(|entry| entry.unwrap().path()) {
            let name = file.display().to_string();
            if !name.ends_with(".toml") || name.contains("example-") {
                continue;
            }
            let case = Scenario::from_toml(&name, &fs::read_to_string(&file).unwrap()).unwrap();
            let mut recording = Recording::new(false);
            run::run(&case, Some(&mut recording));
            if let Ok(events) = recording.events() {
                found.push((name, RunInfo::of(&case), events.to_vec()));
            }
        }
    }
    found
}

/// Calls `check` with the picture of every scenario and the ways of its arrows.
fn for_every_picture(check: impl Fn(&str, &Picture<'_>, &[Way])) {
    let mut pictures = 0;
    for (name, info, events) in scenarios() {
        let (options, unit) = (Options::default(), Unit::new(info.transmission));
        if let Ok(plot) = Plot::new(&info, &events, false, unit) {
            let picture = Picture::new(&info, &plot, &options, unit);
            check(&name, &picture, &picture.ways());
            pictures += 1;
        }
    }
    assert!(pictures > 100, "{pictures}");
}

/// The points of a way, all 3 pixels, that are not within `margin` pixels of its ends.
fn points(way: &Way, margin: f64) -> Vec<Point> {
    let length = (way.to.0 - way.from.0).hypot(way.to.1 - way.from.1);
    let steps = (length / 3.0) as u32;
    let at = |step| f64::from(step) * 3.0 / length;
    let between = |one: f64, other: f64, share: f64| one + (other - one) * share;
    (0..=steps)
        .map(at)
        .filter(|share| share * length >= margin && (1.0 - share) * length >= margin)
        .map(|share| (between(way.from.0, way.to.0, share), between(way.from.1, way.to.1, share)))
        .collect()
}

/// Where there is room for ports: the messages of an event are not too many, not far faster than the others, and do not
/// wait long for a receiver that is paused.
fn has_room(fan: &[usize], ways: &[Way]) -> bool {
    let runs = || fan.iter().map(|&index| ways[index].to.0 - ways[index].from.0);
    let is_steep = |&index: &usize| {
        let Way { from, to } = ways[index];
        (to.0 - from.0) < 10.0 * (to.1 - from.1).abs()
    };
    let shortest = runs().fold(f64::MAX, f64::min);
    fan.len() <= 12 && shortest >= 5.0 * fan.len() as f64 && fan.iter().all(is_steep)
}

#[test]
fn arrows_of_one_event_never_lie_on_each_other() {
    for_every_picture(|name, picture, ways| {
        let arrows = &picture.plot.arrows;
        if arrows.len() > DENSE {
            return; // they are thin and pale
        }
        let fans = [arrows::departures(arrows), arrows::arrivals(arrows)];
        let fans = || fans.iter().flat_map(std::collections::BTreeMap::values);
        let crowded: BTreeSet<usize> =
            fans().filter(|fan| !has_room(fan, ways)).flatten().copied().collect();
        for fan in fans() {
            let free = || fan.iter().copied().filter(|index| !crowded.contains(index));
            let pairs = free().flat_map(|one| free().map(move |other| (one, other)));
            for (one, other) in pairs.filter(|(one, other)| one != other) {
                let way = (ways[other].from, ways[other].to);
                for point in points(&ways[one], 12.0) {
                    let apart = labels::to_segment(point, way);
                    let (one, other) = (&arrows[one].title, &arrows[other].title);
                    // An arrow is 1.7 px wide.
                    assert!(apart >= 1.7, "{name}: {one} and {other}: {apart:.1} px apart");
                }
            }
        }
    });
}

#[test]
fn no_text_lies_on_an_arrow() {
    for_every_picture(|name, picture, ways| {
        let mut labels = picture.labels(ways);
        picture.draw_terms(&mut Canvas::default(), &mut labels);
        for mark in &picture.plot.marks {
            picture.name_of(mark, &mut labels);
        }
        picture.draw_arrows(&mut Canvas::default(), ways, &mut labels);
        for text in labels.texts() {
            let points = points(&Way { from: text.0, to: text.1 }, 0.0);
            for way in ways.iter().map(|way| (way.from, way.to)) {
                let nearest = points.iter().map(|&point| labels::to_segment(point, way));
                // Half as high as the text.
                assert!(nearest.fold(f64::MAX, f64::min) > 5.0, "{name}: {text:?} lies on {way:?}");
            }
        }
    });
}

#[test]
fn waits_are_thin_stays_are_thick_and_two_members_inside_are_red() {
    let svg = drawn(TWO_INSIDE, &Options::default());
    assert!(svg.contains("<title>4 waits from 0 ms to 4 ms</title><rect class=\"waits\""), "{svg}");
    assert!(svg.contains("<title>2 is inside from 1 ms to 11 ms</title><rect class=\"inside\""));
    let red = "is inside beside another member from 4 ms to 11 ms</title><rect class=\"violation\"";
    assert_eq!(count(&svg, red), 2);
    assert!(svg.contains(">two members inside</text>") && svg.contains(">asks to enter</text>"));
    assert_eq!(count(&svg, ">outside</text>"), 4);
}
