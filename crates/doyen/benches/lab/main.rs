//! What the lab costs a person: the wait until a leader is on screen, the first paint, and how smooth a large run plays.
//!
//! **Leader.** From the command `doyen lab` to a page that shows who leads, in a browser that runs already.
//!
//! **Paint.** The browser's own first contentful paint of that page.
//!
//! **Frames.** A run of [`MEMBERS`] members in which all start an election is played for [`PLAYED`]. Measured is the time
//! from one frame to the next; without a graphics processor a browser draws at most 60 a second.
//!
//! The figures are for reading: a target that is missed is no error. Without Chromium there are none.

#[path = "../../tests/it/browser/chromium.rs"]
mod chromium;
#[allow(dead_code, reason = "tests use the rest of it")]
#[path = "../../tests/it/browser/lab.rs"]
mod lab;
#[allow(dead_code, reason = "tests use the rest of it")]
#[path = "../../tests/it/browser/page.rs"]
mod page;
#[path = "../../tests/it/support/mod.rs"]
mod support;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use chromium::Browser;
use lab::Lab;
use page::{DESK, Page};
use serde_json::Value;

const STARTS: usize = 5;
const MEMBERS: usize = 50;
const PLAYED: Duration = Duration::from_secs(10);

fn main() {
    // `cargo test --benches` only wants to know that it starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let Some(browser) = Browser::start() else {
        println!("There is no Chromium: `make tools` installs it where it may.");
        return;
    };
    let browser = Rc::new(RefCell::new(browser));
    println!("The lab in a browser without a window");
    println!("\n{:<34} {:>9} {:>9} {:>9}   aim", "milliseconds", "least", "median", "most");
    let (leaders, paints) = (0..STARTS).map(|_| start(&browser)).unzip();
    row("command to a page with a leader", leaders, "2000 ms");
    row("first contentful paint", paints, "");
    let (events, frames) = play(&browser);
    let late = frames.iter().filter(|&&frame| frame > 25.0).count() * 100 / frames.len().max(1);
    row(&format!("frame, {MEMBERS} members, {events} events"), frames, "17 ms");
    println!("{:<34} {late:>8} %", "  frames over 25 ms");
}

/// How long it takes until a leader is on screen, and until anything is.
fn start(browser: &Rc<RefCell<Browser>>) -> (f64, f64) {
    let begun = Instant::now();
    let lab = Lab::start(&[]);
    let page = Page::open(browser, &lab.address, DESK);
    page.wait("a leader", "lab.shown.leader");
    let leader = begun.elapsed().as_secs_f64() * 1000.0;
    let paint =
        page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0");
    (leader, paint.as_f64().unwrap_or_default())
}

/// The number of events of a large run, and the time that each frame of it took.
fn play(browser: &Rc<RefCell<Browser>>) -> (u64, Vec<f64>) {
    let lab = Lab::start(&["--members", "1"]);
    let scenario = format!("#/sim?algorithm=bully&members={MEMBERS}&initiators=all");
    let page = Page::open(browser, &lab.view(&scenario), DESK);
    page.wait("the run", "lab.shown.of > 0");
    page.press(" ");
    page.wait("it plays", "lab.shown.playing");
    let frames = page.evaluate(&format!(
        "new Promise((done) => {{ const times = []; const until = performance.now() + {}; \
         const next = (now) => {{ times.push(now); now < until ? requestAnimationFrame(next) : done(times); }}; \
         requestAnimationFrame(next); }})",
        PLAYED.as_millis()
    ));
    let times: Vec<f64> =
        frames.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    let events = page.evaluate("lab.shown.of").as_u64().unwrap_or_default();
    (events, times.windows(2).map(|pair| pair[1] - pair[0]).collect())
}

fn row(name: &str, mut times: Vec<f64>, aim: &str) {
    times.sort_by(f64::total_cmp);
    if let (Some(least), Some(most)) = (times.first(), times.last()) {
        let median = times[times.len() / 2];
        println!("{name:<34} {least:>9.1} {median:>9.1} {most:>9.1}   {aim}");
    }
}
