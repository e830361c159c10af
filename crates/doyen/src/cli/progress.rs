//! Progress on stderr: a bar or a spinner on a terminal; elsewhere a line every ten seconds.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::system;

const REDRAW: Duration = Duration::from_millis(120);
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shown until it is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    last_line: Mutex<Instant>,
}

impl Progress {
    /// For work whose amount is not known.
    pub(crate) fn spinner(what: &'static str) -> Self {
        Self::new(None, what, "{spinner} {prefix} {msg} {elapsed}")
    }

    pub(crate) fn bar(total: u64, what: &'static str) -> Self {
        Self::new(Some(total), what, "{prefix} {bar:32} {pos}/{len} {elapsed}, {eta} left")
    }

    fn new(total: Option<u64>, what: &'static str, template: &str) -> Self {
        let style = ProgressStyle::with_template(template).expect("the templates are valid");
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        bar.set_style(style);
        bar.set_prefix(what);
        bar.enable_steady_tick(REDRAW);
        Self { bar, last_line: Mutex::new(Instant::now()) }
    }

    pub(crate) fn set_position(&self, done: u64) {
        self.bar.set_position(done);
        let total = self.bar.length().unwrap_or_default();
        self.print(|| format!("{done} of {total}"));
    }

    pub(crate) fn inc(&self) {
        self.set_position(self.bar.position() + 1);
    }

    pub(crate) fn set_message(&self, message: impl FnOnce() -> String) {
        match self.bar.is_hidden() {
            true => self.print(message),
            false => self.bar.set_message(message()),
        }
    }

    /// Prints a line where nothing can be drawn, if the last one is long ago.
    fn print(&self, line: impl FnOnce() -> String) {
        // If the lock is taken, another thread is about to print the same.
        if self.bar.is_hidden()
            && let Ok(mut last) = self.last_line.try_lock()
            && last.elapsed() >= LINE_EVERY
        {
            *last = Instant::now();
            system::note(format_args!("{}: {}", self.bar.prefix(), line()));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
