//! Log lines, written by a thread of their own.
//!
//! Writing a log may block: the pipe may be full, or the disk. The loop must not. So it puts its lines into a bounded
//! queue and never waits; lines that find no room are counted, and the count is logged as soon as there is room again.
//!
//! A line is a sentence for people and fields for programs: `event` names what happened, the other fields name the
//! members, the term and the reason. Fields that do not apply are left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use tracing::{Level, error, info, warn};

use super::counters::{Counters, LOST_LOG_LINES};

const CAPACITY: usize = 1024;

/// How long a node that ends waits for its last lines to be written.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// One line of the log.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct LogLine {
    pub(super) level: Level,
    /// A stable name for programs, such as `became-leader`.
    pub(super) event: &'static str,
    /// The sentence, without the name of the node, which is put before it.
    pub(super) text: String,
    pub(super) member: Option<String>,
    pub(super) leader: Option<String>,
    pub(super) term: Option<u64>,
    pub(super) reason: Option<String>,
    pub(super) address: Option<String>,
    pub(super) downtime_us: Option<u64>,
}

impl LogLine {
    fn new(level: Level, event: &'static str, text: impl Into<String>) -> Self {
        Self {
            level,
            event,
            text: text.into(),
            member: None,
            leader: None,
            term: None,
            reason: None,
            address: None,
            downtime_us: None,
        }
    }

    /// The normal course of events.
    pub(super) fn info(event: &'static str, text: impl Into<String>) -> Self {
        Self::new(Level::INFO, event, text)
    }

    /// Something that an operator should look at.
    pub(super) fn warning(event: &'static str, text: impl Into<String>) -> Self {
        Self::new(Level::WARN, event, text)
    }

    /// Something that ends the node.
    pub(super) fn error(event: &'static str, text: impl Into<String>) -> Self {
        Self::new(Level::ERROR, event, text)
    }

    fn emit(self, node: &str) {
        let Self { level, event, text, member, leader, term, reason, address, downtime_us } = self;
        macro_rules! emit {
            ($log:ident) => {
                $log!(
                    node,
                    event,
                    member,
                    leader,
                    term,
                    reason,
                    address,
                    downtime_us,
                    "{node}: {text}"
                )
            };
        }
        match level {
            Level::ERROR => emit!(error),
            Level::WARN => emit!(warn),
            _ => emit!(info),
        }
    }
}

enum Item {
    Line(Box<LogLine>),
    /// Everything before it has been written: says so.
    Flush(SyncSender<()>),
}

/// Writes to the log without blocking. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Logger {
    queue: SyncSender<Item>,
    dropped: Arc<AtomicU64>,
}

impl Logger {
    /// Starts the thread that writes; it ends with the last clone of the logger. `node` is named in every line, because
    /// one process may run several nodes.
    pub(super) fn start(node: String) -> std::io::Result<Self> {
        let (queue, queued) = sync_channel::<Item>(CAPACITY);
        let dropped = Arc::new(AtomicU64::new(0));
        let missing = Arc::clone(&dropped);
        thread::Builder::new().name("doyen-log".to_owned()).spawn(move || {
            for item in queued {
                match item {
                    Item::Line(line) => line.emit(&node),
                    // The node that ends may have given up waiting.
                    Item::Flush(done) => drop(done.send(())),
                }
                let missing = missing.swap(0, Ordering::Relaxed);
                if missing > 0 {
                    let text = format!("{missing} log lines were dropped: the log is too slow");
                    LogLine::warning("log-lines-dropped", text).emit(&node);
                }
            }
        })?;
        Ok(Self { queue, dropped })
    }

    pub(super) fn write(&self, line: LogLine) {
        if let Err(TrySendError::Full(_)) = self.queue.try_send(Item::Line(Box::new(line))) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            Counters::add(&LOST_LOG_LINES, 1);
        }
    }

    /// Waits until everything has been written, for a limited time. Not to be called while the loop runs.
    pub(super) fn flush(&self) {
        let (done, is_done) = sync_channel(1);
        if self.queue.try_send(Item::Flush(done)).is_ok() {
            let _ = is_done.recv_timeout(FLUSH_WITHIN);
        }
    }
}
