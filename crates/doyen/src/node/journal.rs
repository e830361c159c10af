//! Log lines, written by a thread of their own.
//!
//! A log may block: a pipe that nobody reads, a disk that is full. The loop must not. So it hands its lines over a
//! bounded queue and never waits; lines that find no room are counted, and the count is logged as soon as there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

use tracing::{error, info, warn};

/// How many lines may wait.
const ROOM: usize = 1024;

/// Something worth a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// The course of things: a change of leadership and why.
    Info(String),
    /// Something that an operator should look at.
    Warning(String),
    /// Something that ends the node.
    Error(String),
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
                }
                let missed = missed.swap(0, Ordering::Relaxed);
                if missed > 0 {
                    warn!(node = name, "{missed} log lines were lost: the log was too slow");
                }
            }
        })?;
        Ok(Self { lines, lost })
    }

    /// Hands over `line`.
    pub(super) fn write(&self, line: Line) {
        if let Err(TrySendError::Full(_)) = self.lines.try_send(line) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}
