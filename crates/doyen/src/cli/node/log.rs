//! The log of a node: lines to stderr, written by a thread of their own.
//!
//! Writing may block, on a pipe without a reader or a full disk, and may fail. Neither may delay signals, commands or
//! requests. So lines go through a bounded queue; what finds no room, or cannot be written, is lost.

use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use super::LogFormat;

/// In lines.
const QUEUE: usize = 1024;

/// How long the end of the process waits for its last lines.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

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
    pub(super) fn start(format: LogFormat) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(QUEUE);
        thread::Builder::new().name("doyen-stderr".to_owned()).spawn(move || {
            for line in waiting {
                // There is nowhere to report that the log fails.
                match line {
                    Line::Text(text) => drop(io::stderr().write_all(&text)),
                    Line::Mark(passed) => drop(passed.send(())),
                }
            }
        })?;
        let queue = lines.clone();
        let filter =
            EnvFilter::try_from_env("DOYEN_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_target(false);
        let log = log.with_writer(move || Queue(queue.clone())).log_internal_errors(false);
        let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        match format {
            LogFormat::Text => log.with_ansi(colours).fmt_fields(debug_fn(write_field)).init(),
            LogFormat::Json => log.json().flatten_event(true).init(),
        }
        Ok(Self { lines })
    }

    pub(in crate::cli) fn finish(&self) {
        let (passed, passing) = sync_channel(1);
        if self.lines.try_send(Line::Mark(passed)).is_ok() {
            let _ = passing.recv_timeout(FINISH_TIMEOUT);
        }
    }
}

/// In a line of text the sentence says what its fields say; they are for programs that read JSON.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    match field.name() {
        "message" => write!(out, "{value:?}"),
        "node" | "event" | "command" | "member" | "leader" | "term" | "reason" | "address"
        | "downtime_us" => Ok(()),
        name => write!(out, " {name}={value:?}"),
    }
}

/// Where a line is written to: all of a line comes in one piece.
struct Queue(SyncSender<Line>);

impl io::Write for Queue {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let _ = self.0.try_send(Line::Text(text.to_vec()));
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
