//! Log lines, written by a thread of their own.
//!
//! A log may block: a pipe that nobody reads, a disk that is full. The loop must not. So it hands its lines over a
//! bounded queue and never waits; lines that find no room are counted, and the count is logged as soon as there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use tracing::{error, info, warn};

/// How many lines may wait.
const ROOM: usize = 1024;

/// How long the end of a node waits for its last lines.
const PATIENCE: Duration = Duration::from_secs(1);

/// Something worth a line.
#[derive(Clone, Debug)]
pub(super) enum Line {
    /// The course of things: a change of leadership and why.
    Info(String),
    /// Something that an operator should look at.
    Warning(String),
    /// Something that ends the node.
    Error(String),
    /// None: everything before it has been written, and whoever waits for that is told.
    Mark(SyncSender<()>),
}

/// The loop's end of the queue.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    lines: SyncSender<Line>,
    lost: Arc<AtomicU64>,
}

impl Journal {
    /// Starts the thread that writes. It ends with the last clone of what is returned. `name` stands in every line:
    /// one process may run several nodes.
    pub(super) fn start(name: String) -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel::<Line>(ROOM);
        let lost = Arc::new(AtomicU64::new(0));
        let missed = Arc::clone(&lost);
        thread::Builder::new().name("doyen-log".to_owned()).spawn(move || {
            for line in waiting {
                match line {
                    Line::Info(text) => info!(node = name, "{text}"),
                    Line::Warning(text) => warn!(node = name, "{text}"),
                    Line::Error(text) => error!(node = name, "{text}"),
                    // Whoever waited may have lost patience.
                    Line::Mark(passed) => drop(passed.send(())),
                }
                let missed = missed.swap(0, Ordering::Relaxed);
                if missed > 0 {
                    warn!(node = name, "{missed} log lines were lost: the log was too slow");
                }
            }
        })?;
        Ok(Self { lines, lost })
    }

    /// Waits until what was handed over has been written, but not for ever. Not for the loop while it runs.
    pub(super) fn finish(&self) {
        let (passed, passing) = sync_channel(1);
        if self.lines.try_send(Line::Mark(passed)).is_ok() {
            let _ = passing.recv_timeout(PATIENCE);
        }
    }

    /// Hands over `line`.
    pub(super) fn write(&self, line: Line) {
        if let Err(TrySendError::Full(_)) = self.lines.try_send(line) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}
