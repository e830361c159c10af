//! The history on disk, so that it survives a restart: `history` in the state folder, one JSON object.
//!
//! It is for people, and no rule reads it. So it is written by a thread of its own, which may lag behind; a file that
//! cannot be read is moved aside, and one that cannot be written is a warning.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::super::log::{LogLine, Logger};
use super::super::status::Entry;
use super::KEPT;
use crate::files;

const NAME: &str = "history";

/// Where a file goes that cannot be read.
const ASIDE: &str = "history.unreadable";

const VERSION: u32 = 1;

/// In bytes; far more than what is ever written.
const LONGEST: u64 = 4 * 1024 * 1024;

/// How long a node that ends waits for its last change to be written.
const FINISH_WITHIN: Duration = Duration::from_secs(1);

#[derive(Serialize, Deserialize)]
struct Contents<T> {
    version: u32,
    entries: T,
}

/// Reads the history of earlier starts. An unreadable file is moved aside.
pub(in super::super) fn load(folder: &Path, log: &Logger) -> Vec<Entry> {
    let path = folder.join(NAME);
    let error = match read(&path) {
        Ok(entries) => return entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => error,
    };
    let aside = folder.join(ASIDE);
    let moved = match fs::rename(&path, &aside) {
        Ok(()) => format!("it is kept as {}", aside.display()),
        Err(error) => format!("nor moved aside: {error}"),
    };
    warn(log, "history-unreadable", &format!("cannot be read ({error}); {moved}"), &path);
    Vec::new()
}

fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST).read_to_string(&mut text)?;
    let Contents { version, mut entries }: Contents<Vec<Entry>> = serde_json::from_str(&text)?;
    if version != VERSION {
        return Err(io::Error::other(format!("it has version {version}, not {VERSION}")));
    }
    entries.drain(..entries.len().saturating_sub(KEPT));
    Ok(entries)
}

/// Wakes the thread that writes the history.
#[derive(Debug)]
pub(in super::super) struct Writer {
    wake: SyncSender<()>,
}

/// Tells when the last change has been written.
pub(in super::super) struct Written(Receiver<()>);

impl Writer {
    /// Starts the thread; it ends when the writer is dropped and everything has been written.
    pub(in super::super) fn start(
        folder: PathBuf,
        history: watch::Receiver<Arc<Vec<Entry>>>,
        log: Logger,
    ) -> io::Result<(Self, Written)> {
        // One place: a change that finds it taken is written by the wake that waits there.
        let (wake, woken) = sync_channel(1);
        let (alive, ended) = sync_channel(1);
        thread::Builder::new().name("doyen-history".to_owned()).spawn(move || {
            let _alive = alive;
            let mut has_failed = false;
            for () in woken {
                let entries = history.borrow().clone();
                let written = write(&folder, &entries);
                if let Err(error) = &written
                    && !has_failed
                {
                    let text = format!("cannot be written ({error}); a restart would lose it");
                    warn(&log, "history-not-written", &text, &folder.join(NAME));
                }
                has_failed = written.is_err();
            }
        })?;
        Ok((Self { wake }, Written(ended)))
    }

    /// The history has changed.
    pub(in super::super) fn wake(&self) {
        // If it is full, the thread is about to read the history anyway.
        let _ = self.wake.try_send(());
    }
}

impl Written {
    /// Waits for a limited time, once the writer has been dropped.
    pub(in super::super) fn wait(self) {
        // The thread sends nothing: its end is the news.
        let _ = self.0.recv_timeout(FINISH_WITHIN);
    }
}

fn write(folder: &Path, entries: &[Entry]) -> io::Result<()> {
    let text = serde_json::to_string(&Contents { version: VERSION, entries })?;
    files::replace(&folder.join(NAME), 0o600, &text)
}

fn warn(log: &Logger, event: &'static str, what: &str, path: &Path) {
    log.write(LogLine::warning(event, format!("the history {} {what}", path.display())));
}
