//! Says that something is going on when it takes longer than a second. Only on a terminal.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What takes less than this needs no word.
const APPEARS_AFTER: Duration = Duration::from_millis(700);

/// A spinner that appears after a while and goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Spinner {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Spinner {
    /// Starts to wait; after most of a second `message` appears.
    pub(crate) fn start(message: &'static str) -> Self {
        let (done, wait) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            if wait.recv_timeout(APPEARS_AFTER) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(style("{spinner} {msg} {elapsed}"));
            bar.set_message(message);
            while wait.recv_timeout(Duration::from_millis(120)) == Err(RecvTimeoutError::Timeout) {
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Self { done: Some(done), thread: Some(thread) }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.done = None;
        if let Some(thread) = self.thread.take() {
            // A spinner that panicked has nothing to say that matters.
            let _ = thread.join();
        }
    }
}

/// A line that says how far something is, from the first second on, and goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Meter {
    bar: ProgressBar,
    began: std::time::Instant,
}

impl Meter {
    /// Starts to wait; after most of a second what is shown appears.
    pub(crate) fn start(message: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style("{spinner} {prefix}: {msg} {elapsed}"));
        bar.set_prefix(message);
        Self { bar, began: std::time::Instant::now() }
    }

    /// Shows how far it is.
    pub(crate) fn show(&self, line: impl FnOnce() -> String) {
        if self.began.elapsed() > APPEARS_AFTER && !self.bar.is_hidden() {
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
