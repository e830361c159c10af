//! Random clicks, keys and drags: nothing goes wrong, nothing grows, nothing is left behind.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use super::browser;
use super::lab::{Lab, descendants};
use super::page::{DESK, Page, Point};

const KEYS: [&str; 34] = [
    "k",
    "K",
    "z",
    "r",
    "c",
    "p",
    "h",
    "t",
    "d",
    "v",
    " ",
    "ArrowLeft",
    "ArrowRight",
    "ArrowUp",
    "ArrowDown",
    "Home",
    "End",
    "[",
    "]",
    "x",
    "b",
    ",",
    ".",
    "Delete",
    "g",
    "l",
    "m",
    "u",
    "0",
    "+",
    "Enter",
    "Escape",
    "Tab",
    "w",
];

const PLACES: [&str; 7] = [
    "#/live",
    "#/sim/kordafshari/figure-1",
    "#/sim/flaws/f01-slow-leader",
    "#/sim?algorithm=quorum&members=5&initiators=all",
    "#/race",
    "#/check",
    "#/gallery",
];

/// A small generator, so that the seed that is printed repeats a run as far as time allows.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

/// One minute; `make soak` takes ten.
fn length() -> Duration {
    let seconds = std::env::var("SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(60))
}

#[test]
fn random_clicking_breaks_nothing() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&[]);
    let page = Page::open(&browser, &lab.address, DESK);
    page.wait("a leader", "lab.shown.leader");
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut dice = Dice(seed);
    let (began, mut first) = (Instant::now(), None);
    let mut started = BTreeSet::new();
    while began.elapsed() < length() {
        act(&page, &mut dice);
        started.extend(descendants(lab.pid()));
        assert_eq!(mistakes(&page), [] as [String; 0], "seed {seed}");
        // What every view needs is loaded by now.
        if first.is_none() && began.elapsed() > length() / 3 {
            first = Some((settled_heap(&page), resident(lab.pid())));
        }
    }
    let (heap, memory) = first.expect("a third of the time has passed");
    let last = settled_heap(&page);
    assert!(last < heap * 3 / 2 + 8_000_000, "the page grew from {heap} to {last} bytes");
    // A run of a million members takes this much for a moment, and the allocator may keep it.
    let last = resident(lab.pid());
    assert!(last < memory + 300_000, "the lab grew from {memory} to {last} kB");
    let running = descendants(lab.pid());
    assert!(running.len() <= 10, "five nodes and what guards them: {running:?}");
    drop(page);
    lab.interrupt();
    let left = |pid: &&u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    let deadline = Instant::now() + Duration::from_secs(10);
    while started.iter().any(|pid| left(&pid)) {
        assert!(
            Instant::now() < deadline,
            "left behind: {:?}",
            started.iter().filter(left).collect::<Vec<_>>()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The memory of a process in kB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// What went wrong. A rejected scenario or command is none, nor a command to a node that is down or paused: the page shows
/// the reason.
fn mistakes(page: &Page) -> Vec<String> {
    let is_answer = |error: &String| {
        let has = |codes: [&str; 2]| {
            codes.iter().any(|code| error.contains(&format!("status of {code}")))
        };
        has(["422", "409"]) || (error.contains("/lab/admin") && has(["503", "504"]))
    };
    page.errors().into_iter().filter(|error| !is_answer(error)).collect()
}

fn act(page: &Page, dice: &mut Dice) {
    match dice.below(12) {
        0 => {
            let place = PLACES[dice.below(PLACES.len())];
            page.evaluate(&format!("void (location.hash = {})", json!(place)));
        }
        1..=5 => page.press(KEYS[dice.below(KEYS.len())]),
        6..=8 => page.click_at(anywhere(dice)),
        9 => page.drag(anywhere(dice), anywhere(dice)),
        _ => {
            // A control that is there, which clicks somewhere rarely hit.
            let nth = dice.below(1000);
            page.evaluate(&format!(
                "(() => {{ const all = [...document.querySelectorAll('button:not(:disabled), a[href^=\"#\"], select, input')]
                    .filter((one) => one.checkVisibility()); all[{nth} % Math.max(1, all.length)]?.click(); }})()"
            ));
        }
    }
}

fn anywhere(dice: &mut Dice) -> Point {
    Point { x: dice.below(DESK.0 as usize) as f64, y: dice.below(DESK.1 as usize) as f64 }
}

/// The heap on a view that is always the same, so that two readings compare.
fn settled_heap(page: &Page) -> u64 {
    page.evaluate("(() => { document.querySelectorAll('dialog').forEach((one) => one.close()); location.hash = '#/gallery'; })()");
    page.wait("the gallery", "lab.query.view === 'gallery' && lab.shown.scenarios");
    page.heap()
}
