//! Records every event of a member, so that it can be replayed and analysed later.
//!
//! One JSON object per line, like the simulator's traces, with the same names of events. It also contains what the
//! simulator need not write, so that [`replay`](super::replay) can feed the same events to the same state machine: whole
//! messages, the configuration, the durable state at the start, and the effects.
//!
//! ```json
//! {"doyen":"node-trace","version":4,"program":"0.1.0","config":"cluster = …","member":1,"incarnation":3,…}
//! {"line":2,"at":81200,"event":"received","from":2,"to":1,"kind":"HEARTBEAT","text":"…","bytes":"0a01…","did":["…"]}
//! {"line":3,"at":91200,"event":"fired","member":1,"timer":"Inner(VoteLease)","did":["…"]}
//! {"line":4,"at":91300,"event":"leased","member":1,"until":319400}
//! {"line":5,"at":98400,"event":"ended","member":1}
//! ```
//!
//! Every line has its number, so that a missing line is noticed. The last line says that the member stopped. A trace
//! without it belongs to a process that was killed or still runs, or its end is missing.
//!
//! A trace grows by more than a gigabyte a day, so it has several [files], of which the last ones are kept. Each begins with
//! the first line, which then has a number, too, and all but the last end with `continued`. What has lost its beginning
//! cannot be replayed, because the state at that moment is not known; its leases are still compared with those of others.
//!
//! Times are nanoseconds since the machine booted. The file is written by a thread of its own, because a disk may be slow
//! and the loop must not wait: if the queue is full, the trace ends there, the log says so, and the node continues. A
//! trace with a gap could not be replayed.

pub mod files;

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use doyen_core::members::{Incarnation, NodeId, SessionId};
use doyen_core::protocol::{
    AdminCommand, Boot, Durable, EffectOf, Event, Origin, Protocol, name_of,
};
use serde::{Deserialize, Serialize};

use super::Failure;
use super::log::{LogLine, Logger};
use crate::clock::Moment;
use crate::config::Settings;
use crate::hex;

pub(super) const MAGIC: &str = "node-trace";

/// The version that this program writes and reads.
pub(super) const VERSION: u32 = 4;

/// How many lines may wait to be written.
const CAPACITY: usize = 16_384;

/// How long a node that ends waits for its last lines to be written.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// The first line: everything that a replay needs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// Always `node-trace`.
    pub doyen: String,
    /// The version of the format.
    pub version: u32,
    /// The version of the program that wrote it.
    pub program: String,
    /// The configuration, as a `doyen.toml`.
    pub config: String,
    /// The member that was recorded.
    pub member: NodeId,
    /// Its incarnation; if its state was lost, the lowest that it could take.
    pub incarnation: Incarnation,
    /// Its session.
    pub session: SessionId,
    /// The time of day at the start, in seconds since 1970.
    pub time_of_day: u32,
    /// How the process started.
    pub origin: Arrived,
    /// Its durable state at the start, in hexadecimal digits.
    pub durable: Option<String>,
    /// The effects of its start.
    pub did: Vec<String>,
    /// The number of this line: one, but for a file that continues a trace.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub line: u64,
}

fn first() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_first(line: &u64) -> bool {
    *line == first()
}

impl Header {
    /// The header for a process that starts like this, without the effects. `config` is the configuration as a file.
    pub(super) fn new<D: Durable>(settings: &Settings, config: String, boot: &Boot<D>) -> Self {
        let durable = boot.durable.as_ref().and_then(|it| postcard::to_allocvec(it).ok());
        Self {
            doyen: MAGIC.to_owned(),
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            config,
            member: settings.me,
            incarnation: boot.incarnation,
            session: boot.session,
            time_of_day: boot.time_of_day,
            origin: boot.origin.into(),
            durable: durable.map(|bytes| hex::encode(&bytes)),
            did: Vec::new(),
            line: first(),
        }
    }
}

/// How a process started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrived {
    /// With its state, into a cluster that may be running.
    Joining,
    /// Without its state.
    Rejoining,
}

impl From<Origin> for Arrived {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Founding { .. } | Origin::Joining => Self::Joining,
            Origin::Rejoining => Self::Rejoining,
        }
    }
}

impl From<Arrived> for Origin {
    fn from(arrived: Arrived) -> Self {
        match arrived {
            Arrived::Joining => Self::Joining,
            Arrived::Rejoining => Self::Rejoining,
        }
    }
}

/// A line after the first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The number of the line. Older traces have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The time of the event.
    pub at: u64,
    /// The event.
    #[serde(flatten)]
    pub what: What,
}

/// An event. `did`: its effects.
#[expect(missing_docs, reason = "the names of most fields say it")]
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum What {
    /// A message arrived.
    Received {
        from: NodeId,
        /// The receiver: the member that was recorded.
        to: NodeId,
        kind: String,
        /// The message as text.
        text: String,
        /// The encoded message, in hexadecimal digits.
        bytes: String,
        did: Vec<String>,
    },
    /// A timer fired.
    Fired { member: NodeId, timer: String, did: Vec<String> },
    /// The member was told to campaign.
    Campaign { member: NodeId, did: Vec<String> },
    /// An operator gave a command.
    Commanded { member: NodeId, command: AdminCommand, did: Vec<String> },
    /// The last permit of a retiring leader ended.
    Retired { member: NodeId, did: Vec<String> },
    /// A program wants to enter the critical section.
    Request { member: NodeId, did: Vec<String> },
    /// What ran in the critical section has stopped.
    Exit { member: NodeId, did: Vec<String> },
    /// The deadline of the lease changed.
    Leased {
        member: NodeId,
        /// The new deadline; none if the lease is over.
        until: Option<u64>,
    },
    /// The next file continues the trace. This is the last line of its file.
    Continued { member: NodeId },
    /// The member stopped. This is the last line.
    Ended { member: NodeId },
}

/// Effects as a trace writes them.
pub(super) fn told<P: Protocol>(effects: &[EffectOf<P>]) -> Vec<String> {
    effects.iter().map(|effect| format!("{effect:?}")).collect()
}

/// What the thread that writes is told.
#[derive(Debug)]
enum Task {
    Write(String),
    /// Go on in another file, with this first line.
    NextFile(String),
}

/// Writes a trace.
#[derive(Debug)]
pub(super) struct Tracer {
    header: Header,
    /// A file that has this many bytes is full.
    file_bytes: u64,
    /// How many bytes the current file has.
    bytes: u64,
    tasks: Option<SyncSender<Task>>,
    /// Disconnects when everything has been written.
    written: Receiver<()>,
    log: Logger,
    /// How many lines have been written.
    length: u64,
    /// The deadline that was recorded last.
    lease: Option<Moment>,
}

impl Tracer {
    /// Begins the trace at `path`, if there is one. No file is overwritten: if `path` is that of another trace, the number
    /// of this start is added to it.
    pub(super) fn begin(
        path: Option<&Path>,
        header: Option<Header>,
        limits: files::Limits,
        log: &Logger,
    ) -> Result<Option<Self>, Failure> {
        let (Some(path), Some(header)) = (path, header) else { return Ok(None) };
        let mut path = path.to_owned();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| Failure::Trace { path, error }
        };
        if !files::files_of(&path).map_err(failed(&path))?.is_empty() {
            path.as_mut_os_string().push(format!(".{}", header.incarnation.0));
        }
        let tracer = Self::create(&path, header, limits, log).map_err(failed(&path))?;
        let text = format!("recording every event in {}", path.display());
        log.write(LogLine::info("trace-started", text));
        Ok(Some(tracer))
    }

    fn create(
        path: &Path,
        header: Header,
        limits: files::Limits,
        log: &Logger,
    ) -> io::Result<Self> {
        let mut writer = Writer::create(path, limits.files)?;
        let (tasks, waiting) = sync_channel(CAPACITY);
        let (ends, written) = sync_channel(1);
        let (path, logger) = (PathBuf::from(path), log.clone());
        thread::Builder::new().name("doyen-trace".to_owned()).spawn(move || {
            let _ends: SyncSender<()> = ends;
            if let Err(error) = writer.work(&waiting) {
                let text = format!("the trace {} ends here: {error}", path.display());
                let line = LogLine::warning("trace-ended", text);
                logger.write(LogLine { reason: Some(error.to_string()), ..line });
            }
        })?;
        let (tasks, log, file_bytes) = (Some(tasks), log.clone(), limits.file_bytes);
        let first = as_line(&header);
        let mut tracer =
            Self { header, file_bytes, bytes: 0, tasks, written, log, length: 0, lease: None };
        tracer.push(first, Task::Write);
        Ok(tracer)
    }

    /// The record of an event, to be made before the event is handled, which consumes it.
    pub(super) fn name<P: Protocol>(&self, event: &Event<P::Message, P::Timer>) -> What {
        let (member, did) = (self.header.member, Vec::new());
        match event {
            Event::Message { from, message } => What::Received {
                from: *from,
                to: member,
                kind: name_of(message).to_owned(),
                text: message.to_string(),
                // Encoding into a vector cannot fail.
                bytes: hex::encode(&postcard::to_allocvec(message).unwrap_or_default()),
                did,
            },
            Event::Timer(timer) => What::Fired { member, timer: format!("{timer:?}"), did },
            Event::Command(command) => What::Commanded { member, command: *command, did },
            // Only a copy of the member is ever given `Crashed`, and copies are not traced.
            Event::Retired | Event::Crashed => What::Retired { member, did },
            Event::Request => What::Request { member, did },
            Event::Exit => What::Exit { member, did },
            // A node's failure detector is a layer below the algorithm and gives no events.
            Event::Campaign | Event::PeerDown(_) | Event::PeerUp(_) => {
                What::Campaign { member, did }
            }
        }
    }

    /// Records an event and its effects.
    pub(super) fn event(&mut self, at: Moment, mut what: What, wanted: Vec<String>) {
        match &mut what {
            What::Received { did, .. }
            | What::Fired { did, .. }
            | What::Campaign { did, .. }
            | What::Commanded { did, .. }
            | What::Retired { did, .. }
            | What::Request { did, .. }
            | What::Exit { did, .. } => *did = wanted,
            What::Leased { .. } | What::Continued { .. } | What::Ended { .. } => {}
        }
        self.record(at, what);
    }

    /// Records the deadline of the lease, if it has changed.
    pub(super) fn lease(&mut self, until: Option<Moment>) {
        if self.lease != until {
            self.lease = until;
            let what =
                What::Leased { member: self.header.member, until: until.map(Moment::as_nanos) };
            self.record(Moment::now(), what);
        }
    }

    /// Records that the member stopped.
    pub(super) fn end(&mut self) {
        let what = What::Ended { member: self.header.member };
        self.record(Moment::now(), what);
    }

    fn record(&mut self, at: Moment, what: What) {
        if self.bytes >= self.file_bytes {
            let member = self.header.member;
            self.push_record(at, What::Continued { member });
            self.header.line = self.length + 1;
            self.bytes = 0;
            self.push(as_line(&self.header), Task::NextFile);
        }
        self.push_record(at, what);
    }

    fn push_record(&mut self, at: Moment, what: What) {
        let record = Record { line: Some(self.length + 1), at: at.as_nanos(), what };
        self.push(as_line(&record), Task::Write);
    }

    fn push(&mut self, line: String, task: fn(String) -> Task) {
        let Some(tasks) = &self.tasks else { return };
        self.length += 1;
        self.bytes += line.len() as u64;
        let Err(error) = tasks.try_send(task(line)) else { return };
        self.tasks = None; // the thread writes the lines that it has
        if let TrySendError::Full(_) = error {
            // Otherwise the thread has said why it ended.
            let text = "the trace ends here: the disk is too slow";
            self.log.write(LogLine::warning("trace-ended", text));
        }
    }
}

/// With its line break. Records consist of numbers and texts, which can always be written as JSON.
fn as_line(record: &impl Serialize) -> String {
    let mut line = serde_json::to_string(record).unwrap_or_default();
    line.push('\n');
    line
}

impl Drop for Tracer {
    /// The loop has ended: waits until everything has been written, for a limited time.
    fn drop(&mut self) {
        self.tasks = None;
        let _ = self.written.recv_timeout(FLUSH_WITHIN);
    }
}

/// The thread that writes.
struct Writer {
    trace: PathBuf,
    /// How many files may be kept.
    files: u32,
    /// The number of the current file.
    part: u32,
    out: BufWriter<File>,
}

impl Writer {
    fn create(trace: &Path, files: u32) -> io::Result<Self> {
        let (trace, part) = (trace.to_owned(), 1);
        let out = BufWriter::new(files::create(&trace, part)?);
        Ok(Self { trace, files, part, out })
    }

    /// Writes lines as they come, and flushes when none waits: a trace that ends with a crash ends with what came before it.
    fn work(&mut self, tasks: &Receiver<Task>) -> io::Result<()> {
        loop {
            let task = match tasks.try_recv() {
                Ok(task) => Ok(task),
                Err(_) => {
                    self.out.flush()?;
                    tasks.recv()
                }
            };
            match task {
                Ok(Task::Write(line)) => self.out.write_all(line.as_bytes())?,
                Ok(Task::NextFile(line)) => {
                    self.next_file()?;
                    self.out.write_all(line.as_bytes())?;
                }
                Err(_) => return Ok(()),
            }
        }
    }

    fn next_file(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.part += 1;
        self.out = BufWriter::new(files::create(&self.trace, self.part)?);
        match self.part.checked_sub(self.files) {
            Some(oldest) if oldest > 0 => files::remove(&self.trace, oldest),
            _ => Ok(()),
        }
    }
}
