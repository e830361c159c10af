//! The history on disk, so that it survives a restart: `history` in the state folder, one JSON object.
//!
//! It is for people, and no rule reads it. So it is written by a thread of its own, which may lag behind; a file that
//! cannot be read is moved aside, and one that cannot be written is a warning, and tried again.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
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

/// How long a history that could not be written waits for the next try, if it does not change.
const AGAIN: Duration = Duration::from_secs(60);

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
    problem: watch::Receiver<Option<String>>,
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
        let (publish, problem) = watch::channel(None);
        thread::Builder::new().name("doyen-history".to_owned()).spawn(move || {
            let _alive = alive;
            loop {
                let wait = if publish.borrow().is_some() { AGAIN } else { Duration::MAX };
                if woken.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) {
                    return;
                }
                let entries = history.borrow().clone();
                let path = folder.join(NAME);
                let failed = write(&folder, &entries).err().map(|error| {
                    let text = format!("cannot be written ({error}); a restart would lose it");
                    describe(&path, &text)
                });
                let before = publish.send_replace(failed.clone());
                if let Some(text) = failed.filter(|_| before.is_none()) {
                    log.write(LogLine::warning("history-not-written", text));
                }
            }
        })?;
        Ok((Self { wake, problem }, Written(ended)))
    }

    /// As text: why the history cannot be written. None if it can.
    pub(in super::super) fn problem(&self) -> Option<String> {
        self.problem.borrow().clone()
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
    log.write(LogLine::warning(event, describe(path, what)));
}

fn describe(path: &Path, what: &str) -> String {
    format!("the history {} {what}", path.display())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_history_that_cannot_be_written_is_a_problem_until_it_can() {
        let scratch = Scratch::new();
        let folder = scratch.join("state");
        let (_history, entries) = watch::channel(Arc::default());
        let log = Logger::start("n1".to_owned()).expect("a logger");
        let (writer, _written) = Writer::start(folder.clone(), entries, log).expect("a thread");
        let told = |is_told: fn(&Option<String>) -> bool| {
            let begun = Instant::now();
            writer.wake();
            while !is_told(&writer.problem()) {
                assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", writer.problem());
                thread::sleep(Duration::from_millis(5));
            }
            writer.problem()
        };
        let problem = told(Option::is_some).expect("a problem");
        let start = format!("the history {} cannot be written (", folder.join(NAME).display());
        assert!(problem.starts_with(&start), "{problem}");
        fs::create_dir(&folder).expect("a folder");
        told(Option::is_none);
    }
}
