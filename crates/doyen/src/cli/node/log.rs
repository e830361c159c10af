//! The log of a node: lines to stderr, written by a thread of their own.
//!
//! Writing may block, on a pipe without a reader or a full disk, and may fail. Neither may delay signals, commands or
//! requests. So lines go through a bounded queue; what finds no room, or cannot be written, is counted, and the count is
//! written as soon as that is possible again.
//!
//! A line of text is one line whatever it says: control characters are escaped. In the journal of systemd every line has its
//! priority.

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use doyen::config;
use doyen::guardian::{LogFormat, stderr_is_journal};
use doyen::node::counters::{Counters, LOST_LOG_LINES};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{Format, FormatEvent, FormatFields, Full, Writer};
use tracing_subscriber::fmt::{self as log_format, FmtContext};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::cli::terminal::count;

/// How many lines may wait.
const QUEUE: usize = 1024;

/// How long the end of the process waits for its last lines.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// What is logged; there is one for the process, as there is one log.
static FILTER: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

/// [`finish`](Log::finish) it before the process ends.
pub(in crate::cli) struct Log {
    lines: SyncSender<Line>,
}

enum Line {
    Text(Vec<u8>),
    /// Answered when everything before it is written.
    Mark(SyncSender<()>),
}

impl Log {
    /// Starts to log what `filter` says.
    pub(super) fn start(format: LogFormat, filter: &str) -> Result<Self> {
        let filter = parse(filter)?;
        let in_journal = stderr_is_journal();
        let (lines, waiting) = sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let queue = Queue { lines: lines.clone(), lost: Arc::clone(&lost) };
        let report = move |lost| report_of_lost(format, in_journal, lost);
        thread::Builder::new()
            .name("doyen-stderr".to_owned())
            .spawn(move || write_lines(&waiting, &lost, io::stderr(), report))?;
        let (filter, handle) = reload::Layer::new(filter);
        let log = log_format::layer().with_target(false);
        let log = log.with_writer(move || queue.clone()).log_internal_errors(false);
        let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let log = match format {
            LogFormat::Text => {
                // The journal has a time of its own for each line.
                let untimed =
                    in_journal.then(|| Format::default().without_time().with_target(false));
                log.with_ansi(colours)
                    .map_event_format(|inner| Prioritized { inner, in_journal, untimed })
                    .fmt_fields(Sentence)
                    .boxed()
            }
            LogFormat::Json => log
                .json()
                .flatten_event(true)
                .map_event_format(|inner| Prioritized { inner, in_journal, untimed: None })
                .boxed(),
        };
        tracing_subscriber::registry().with(filter).with(log).init();
        FILTER.get_or_init(|| handle);
        Ok(Self { lines })
    }

    /// Whether `filter` can be used.
    pub(in crate::cli) fn check_filter(filter: &str) -> Result<()> {
        parse(filter).map(drop)
    }

    /// Logs what `filter` says from now on.
    pub(in crate::cli) fn set_filter(filter: &str) -> Result<()> {
        let filter = parse(filter)?;
        FILTER.get().map_or(Ok(()), |handle| Ok(handle.reload(filter)?))
    }

    pub(in crate::cli) fn finish(&self) {
        let (passed, passing) = sync_channel(1);
        if self.lines.try_send(Line::Mark(passed)).is_ok() {
            let _ = passing.recv_timeout(FINISH_TIMEOUT);
        }
    }
}

/// What is logged.
fn parse(filter: &str) -> Result<Targets> {
    config::check_filter(filter).map_err(anyhow::Error::msg)?;
    filter.parse::<Targets>().with_context(|| format!("log: cannot read `{filter}`"))
}

/// Writes lines until the last sender is gone. `report`: a line that says how many were lost.
fn write_lines(
    waiting: &Receiver<Line>,
    lost: &AtomicU64,
    mut out: impl io::Write,
    report: impl Fn(u64) -> String,
) {
    for line in waiting {
        match line {
            Line::Mark(passed) => drop(passed.send(())),
            Line::Text(text) if out.write_all(&text).is_err() => {
                lose(lost);
            }
            Line::Text(_) => {
                let missing = lost.swap(0, Ordering::Relaxed);
                if missing > 0 && out.write_all(report(missing).as_bytes()).is_err() {
                    lost.fetch_add(missing, Ordering::Relaxed);
                }
            }
        }
    }
}

/// A line is lost: that is to be reported, and counted for the metrics.
fn lose(unreported: &AtomicU64) {
    Counters::add(unreported, 1);
    Counters::add(&LOST_LOG_LINES, 1);
}

/// As other lines of the log are written.
fn report_of_lost(format: LogFormat, in_journal: bool, lost: u64) -> String {
    let text =
        format!("{} dropped: the log is too slow, or cannot be written", count(lost, "log line"));
    match format {
        LogFormat::Text if in_journal => format!("<4> WARN {text}\n"),
        LogFormat::Text => {
            let at = humantime::format_rfc3339_micros(SystemTime::now());
            format!("{at}  WARN {text}\n")
        }
        LogFormat::Json => format.line("log-lines-dropped", &text, in_journal),
    }
}

/// The fields of a line of text. What has an `event` is doyen's own: its sentence says what its fields say, which are for
/// programs that read JSON. What libraries log is written whole.
struct Sentence;

impl<'w> FormatFields<'w> for Sentence {
    fn format_fields<R: RecordFields>(&self, mut out: Writer<'w>, fields: R) -> fmt::Result {
        let mut is_own = false;
        fields.record(&mut Each(|field: &Field, _: &dyn fmt::Debug| {
            is_own |= field.name() == "event";
        }));
        let mut written = Ok(());
        fields.record(&mut Each(|field: &Field, value: &dyn fmt::Debug| {
            written = written.and_then(|()| match field.name() {
                "message" => write!(Escaped(&mut out), "{value:?}"),
                _ if is_own => Ok(()),
                name => write!(Escaped(&mut out), " {name}={value:?}"),
            });
        }));
        written
    }
}

/// Calls a function with each field.
struct Each<F>(F);

impl<F: FnMut(&Field, &dyn fmt::Debug)> Visit for Each<F> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        (self.0)(field, value);
    }
}

/// Escapes control characters: what a client sends must not look like a line of its own.
struct Escaped<W>(W);

impl<W: fmt::Write> fmt::Write for Escaped<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|letter| match letter.is_control() {
            true => write!(self.0, "{}", letter.escape_default()),
            false => self.0.write_char(letter),
        })
    }
}

/// Puts the priority before every line, where that is read.
struct Prioritized<F> {
    inner: F,
    in_journal: bool,
    /// In place of `inner`.
    untimed: Option<Format<Full, ()>>,
}

impl<S, N, F> FormatEvent<S, N> for Prioritized<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if self.in_journal {
            // Those of syslog, as sd-daemon(3) has them.
            let priority = match *event.metadata().level() {
                Level::ERROR => 3,
                Level::WARN => 4,
                Level::INFO => 6,
                _ => 7,
            };
            write!(writer, "<{priority}>")?;
        }
        match &self.untimed {
            Some(untimed) => untimed.format_event(context, writer, event),
            None => self.inner.format_event(context, writer, event),
        }
    }
}

/// Where a line is written to: all of a line comes in one piece.
#[derive(Clone)]
struct Queue {
    lines: SyncSender<Line>,
    lost: Arc<AtomicU64>,
}

impl io::Write for Queue {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.lines.try_send(Line::Text(text.to_vec())).is_err() {
            lose(&self.lost);
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::Write as _;

    #[test]
    fn no_line_break_of_a_client_begins_a_line() {
        let mut out = String::new();
        write!(Escaped(&mut out), "for 1h\n30m\r\u{1b}[2Jä").unwrap();
        assert_eq!(out, "for 1h\\n30m\\r\\u{1b}[2Jä");
    }

    #[test]
    fn the_sentence_of_an_event_is_not_repeated_by_its_fields() {
        let (lines, waiting) = sync_channel(4);
        let queue = Queue { lines, lost: Arc::default() };
        let log = log_format::layer().without_time().with_target(false).with_ansi(false);
        let log = log.with_writer(move || queue.clone()).fmt_fields(Sentence);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(log), || {
            tracing::info!(event = "starting", token = 3, "starting the command (token 3)");
            tracing::info!(bytes = 7, "as a library\nsays it");
        });
        let mut text = Vec::new();
        write_lines(&waiting, &AtomicU64::new(0), &mut text, |_| String::new());
        let text = String::from_utf8(text).unwrap();
        assert_eq!(
            text,
            " INFO starting the command (token 3)\n INFO as a library\\nsays it bytes=7\n"
        );
    }

    /// A disk that is full for the second and the third line.
    struct Disk(u32, Vec<u8>);

    impl io::Write for Disk {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            if (2..=3).contains(&self.0) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.1.write(text)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_find_no_room_or_cannot_be_written_are_counted() {
        let (lines, waiting) = sync_channel(4);
        let lost = Arc::new(AtomicU64::new(0));
        let mut queue = Queue { lines, lost: Arc::clone(&lost) };
        let before = Counters::read(&LOST_LOG_LINES);
        for line in ["a", "b", "c", "d", "no room", "nor here"] {
            queue.write_all(line.as_bytes()).unwrap();
        }
        drop(queue);
        let mut disk = Disk(0, Vec::new());
        write_lines(&waiting, &lost, &mut disk, |lost| format!("[{lost}]"));
        // After the first line, neither the report of the two that found no room nor the second line can be written.
        assert_eq!(String::from_utf8(disk.1).unwrap(), "ac[3]d");
        assert_eq!(lost.load(Ordering::Relaxed), 0, "all of them are reported");
        assert_eq!(Counters::read(&LOST_LOG_LINES) - before, 3, "and still counted");
    }

    #[test]
    fn the_report_looks_as_the_lines_around_it() {
        let report = |in_journal| report_of_lost(LogFormat::Text, in_journal, 2);
        let text = "WARN 2 log lines dropped: the log is too slow, or cannot be written\n";
        assert_eq!(report(true), format!("<4> {text}"), "the journal has a time of its own");
        assert!(report(false).ends_with(&format!("Z  {text}")), "{}", report(false));
    }
}
