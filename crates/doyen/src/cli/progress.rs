//! Progress on stderr: a bar or a spinner on a terminal; elsewhere a line every ten seconds.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{system, terminal};

const REDRAW: Duration = Duration::from_millis(120);
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shown until it is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Dropped, it ends the thread that draws or prints; none if no thread can be started, and then nothing has to be shown.
    _shown: Option<Sender<()>>,
}

impl Progress {
    /// For work whose amount is not known.
    pub(crate) fn spinner(what: &'static str) -> Self {
        Self::spinner_after(Duration::ZERO, what, String::new())
    }

    /// For work that has been going on for this long.
    pub(crate) fn spinner_after(elapsed: Duration, what: &'static str, message: String) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let bar = bar.with_message(message).with_elapsed(elapsed);
        Self::new(bar, what, "{spinner} {prefix} {msg} {elapsed}")
    }

    pub(crate) fn bar(total: u64, what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        Self::new(bar, what, "{prefix} {bar:32} {pos}/{len} {elapsed}, {eta} left")
    }

    fn new(bar: ProgressBar, what: &'static str, template: &str) -> Self {
        let style = ProgressStyle::with_template(template).expect("the templates are valid");
        bar.set_style(style);
        bar.set_prefix(what);
        let drawn = bar.clone();
        let shown = match bar.is_hidden() {
            true => repeat(LINE_EVERY, move || system::note(line(&drawn, drawn.elapsed()))),
            // `enable_steady_tick` would panic without a thread.
            false => repeat(REDRAW, move || drawn.tick()),
        };
        Self { bar, _shown: shown.ok() }
    }

    pub(crate) fn set_position(&self, done: u64) {
        self.bar.set_position(done);
    }

    pub(crate) fn inc(&self) {
        self.bar.inc(1);
    }

    pub(crate) fn set_message(&self, message: String) {
        self.bar.set_message(message);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Shows the progress every so often, whether or not the work has something to say, until what is returned is dropped.
fn repeat(every: Duration, show: impl Fn() + Send + 'static) -> io::Result<Sender<()>> {
    let (alive, ended) = mpsc::channel::<()>();
    let show = move || {
        while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
            show();
        }
    };
    thread::Builder::new().name("doyen-progress".to_owned()).spawn(show)?;
    Ok(alive)
}

/// `runs: 30 of 200, 10 s`.
fn line(bar: &ProgressBar, elapsed: Duration) -> String {
    let elapsed = terminal::span(Duration::from_secs(elapsed.as_secs()));
    let done = match bar.length() {
        Some(total) => format!("{} of {total}", bar.position()),
        None => bar.message(),
    };
    let separator = if done.is_empty() { "" } else { ", " };
    format!("{}: {done}{separator}{elapsed}", bar.prefix())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(total: Option<u64>, what: &'static str) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        bar.set_prefix(what);
        bar
    }

    #[test]
    fn a_line_says_how_long_it_has_taken() {
        let elapsed = Duration::from_millis(70_300);
        assert_eq!(line(&bar(None, "shrinking"), elapsed), "shrinking: 1m 10s");
        let exploring = bar(None, "exploring");
        exploring.set_message("12 states");
        assert_eq!(line(&exploring, elapsed), "exploring: 12 states, 1m 10s");
        let runs = bar(Some(200), "runs");
        runs.inc(30);
        assert_eq!(line(&runs, elapsed), "runs: 30 of 200, 1m 10s");
    }

    #[test]
    fn lines_are_printed_without_a_message_until_the_end() {
        let (print, printed) = mpsc::channel();
        let every = Duration::from_millis(10);
        let waiting = bar(None, "waiting");
        let show = move || drop(print.send(line(&waiting, waiting.elapsed())));
        let shown = repeat(every, show).expect("a thread");
        for _ in 0..2 {
            let line = printed.recv_timeout(Duration::from_secs(30)).expect("a line");
            assert!(line.starts_with("waiting: "), "{line}");
        }
        drop(shown);
        // The thread ends, and the channel with it.
        while printed.recv_timeout(Duration::from_secs(30)).is_ok() {}
        assert_eq!(printed.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }
}
