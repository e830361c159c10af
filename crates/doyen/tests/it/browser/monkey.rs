//! Random clicks, keys and drags: nothing goes wrong, nothing grows, nothing is left behind.

use std::collections::{BTreeSet, VecDeque};
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

/// A small generator, so that the seed that is printed repeats a run as far as time allows: `MONKEY_SEED=7`.
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
    Duration::from_secs(setting("SOAK_SECONDS").unwrap_or(60))
}

/// What was done last; printed if the test fails.
struct Deeds {
    seed: u64,
    last: VecDeque<String>,
}

impl Deeds {
    const KEPT: usize = 30;

    fn add(&mut self, deed: String) {
        if self.last.len() == Self::KEPT {
            self.last.pop_front();
        }
        self.last.push_back(deed);
    }
}

impl Drop for Deeds {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("MONKEY_SEED={}; what was done last:", self.seed);
            self.last.iter().for_each(|deed| println!("  {deed}"));
        }
    }
}

/// A number from the environment.
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

#[test]
fn random_clicking_breaks_nothing() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&[]);
    let page = Page::open(&browser, &lab.address, DESK);
    page.wait("a leader", "lab.shown.leader");
    let seed = setting("MONKEY_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("MONKEY_SEED={seed}");
    let mut dice = Dice(seed);
    let mut deeds = Deeds { seed, last: VecDeque::new() };
    let (began, mut first) = (Instant::now(), None);
    let mut started = BTreeSet::new();
    while began.elapsed() < length() {
        let deed = act(&page, &mut dice);
        deeds.add(format!("{:>7.2} s  {deed}", began.elapsed().as_secs_f64()));
        started.extend(descendants(lab.pid()));
        assert_eq!(mistakes(&page), [] as [String; 0]);
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

/// Does something, and says what.
fn act(page: &Page, dice: &mut Dice) -> String {
    match dice.below(12) {
        0 => {
            let place = PLACES[dice.below(PLACES.len())];
            page.evaluate(&format!("void (location.hash = {})", json!(place)));
            format!("goes to {place}")
        }
        1..=5 => {
            let key = KEYS[dice.below(KEYS.len())];
            page.press(key);
            format!("presses {key:?}")
        }
        6..=8 => {
            let at = anywhere(dice);
            page.click_at(at);
            format!("clicks at {at}")
        }
        9 => {
            let (from, to) = (anywhere(dice), anywhere(dice));
            page.drag(from, to);
            format!("drags from {from} to {to}")
        }
        _ => {
            // A control that is there, which clicks somewhere rarely hit.
            let nth = dice.below(1000);
            let control = page.evaluate(&format!(
                "(() => {{ const all = [...document.querySelectorAll('button:not(:disabled), a[href^=\"#\"], select, input')]
                    .filter((one) => one.checkVisibility()); const one = all[{nth} % Math.max(1, all.length)]; one?.click();
                    return one ? `${{one.tagName}} ${{one.getAttribute('aria-label') ?? one.textContent}}` : 'nothing'; }})()"
            ));
            format!("activates {control} on {}", page.evaluate("location.hash"))
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
