//! Says that something is going on when it takes longer than a second. On a terminal it moves; elsewhere those that can
//! take minutes print a plain line now and then.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What takes less than this needs no word.
const APPEARS_AFTER: Duration = Duration::from_millis(700);

/// How often something that moves is drawn anew.
const REDRAW: Duration = Duration::from_millis(120);

/// How often a plain line is printed.
const PLAIN_LINE: Duration = Duration::from_secs(10);

/// Does something again and again, in a thread of its own, until it is dropped.
#[derive(Debug)]
struct Ticker {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    fn start(first: Duration, then: Duration, act: impl Fn() + Send + 'static) -> Self {
        let (done, wait) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut next = first;
            while wait.recv_timeout(next) == Err(RecvTimeoutError::Timeout) {
                act();
                next = then;
            }
        });
        Self { done: Some(done), thread: Some(thread) }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.done = None;
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing to say that matters.
            let _ = thread.join();
        }
    }
}

/// A spinner that appears after a while and goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Spinner {
    bar: ProgressBar,
    ticker: Option<Ticker>,
}

impl Spinner {
    /// Starts to wait; after most of a second `message` appears.
    pub(crate) fn start(message: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style("{spinner} {msg} {elapsed}"));
        bar.set_message(message);
        let moving = bar.clone();
        let ticker = Ticker::start(APPEARS_AFTER, REDRAW, move || moving.tick());
        Self { bar, ticker: Some(ticker) }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.ticker = None;
        self.bar.finish_and_clear();
    }
}

/// A line that says how far something is, from the first second on, and goes when it is dropped. Where nothing can be
/// drawn it is printed now and then.
#[derive(Debug)]
pub(crate) struct Meter {
    bar: ProgressBar,
    began: Instant,
    printed: Mutex<Instant>,
}

impl Meter {
    /// Starts to wait; after most of a second what is shown appears.
    pub(crate) fn start(message: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style("{spinner} {prefix}: {msg} {elapsed}"));
        bar.set_prefix(message);
        let began = Instant::now();
        Self { bar, began, printed: Mutex::new(began) }
    }

    /// Shows how far it is.
    pub(crate) fn show(&self, line: impl FnOnce() -> String) {
        if self.bar.is_hidden() {
            // Whoever else is about to print says the same.
            let Ok(mut printed) = self.printed.try_lock() else { return };
            if printed.elapsed() >= PLAIN_LINE {
                *printed = Instant::now();
                eprintln!("doyen: {}: {}", self.bar.prefix(), line());
            }
        } else if self.began.elapsed() > APPEARS_AFTER {
            self.bar.set_message(line());
            self.bar.tick();
        }
    }

    /// From now on it is about something else.
    pub(crate) fn say(&self, message: &'static str) {
        self.bar.set_prefix(message);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How many of many things are done, each of which may take long: a bar, or where none can be drawn a line now and then.
#[derive(Debug)]
pub(crate) struct Tally {
    bar: ProgressBar,
    done: Arc<AtomicU64>,
    ticker: Option<Ticker>,
}

impl Tally {
    /// None of `total` things, which are called `name`, is done.
    pub(crate) fn start(total: u64, name: &'static str) -> Self {
        let (bar, began) = (bar(total, name), Instant::now());
        let done = Arc::new(AtomicU64::new(0));
        let ticker = if bar.is_hidden() {
            let done = Arc::clone(&done);
            Ticker::start(PLAIN_LINE, PLAIN_LINE, move || {
                let (done, seconds) = (done.load(Ordering::Relaxed), began.elapsed().as_secs());
                eprintln!("doyen: {done} of {total} {name} after {seconds} s");
            })
        } else {
            let (bar, done) = (bar.clone(), Arc::clone(&done));
            let draw = move || bar.set_position(done.load(Ordering::Relaxed));
            Ticker::start(APPEARS_AFTER, REDRAW, draw)
        };
        Self { bar, done, ticker: Some(ticker) }
    }

    /// So many are done.
    pub(crate) fn set(&self, done: u64) {
        self.done.fetch_max(done, Ordering::Relaxed);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.ticker = None;
        self.bar.finish_and_clear();
    }
}

/// A bar for `total` things of which it is told how many are done.
pub(crate) fn bar(total: u64, message: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    bar.set_style(style("{msg} {bar:32} {pos}/{len} {elapsed}, {eta} left"));
    bar.set_message(message);
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
