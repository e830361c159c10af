//! Recording what happens to a member, so that it can be taken apart at a desk.
//!
//! One JSON object a line, as the simulator's traces are, with the same words for what happens. What the simulator need
//! not write is here too, so that [`replay`](super::replay) can feed the very events to the very state machine: messages
//! whole, the configuration, what the disk held at the start, and what the member wanted done.
//!
//! ```json
//! {"doyen":"node-trace","version":3,"program":"0.1.0","config":"cluster = …","member":1,"incarnation":3,…}
//! {"line":2,"at":81200,"event":"received","from":2,"to":1,"kind":"HEARTBEAT","text":"…","bytes":"0a01…","did":["…"]}
//! {"line":3,"at":91200,"event":"fired","member":1,"timer":"Inner(VoteLease)","did":["…"]}
//! {"line":4,"at":91300,"event":"leased","member":1,"until":319400}
//! {"line":5,"at":98400,"event":"ended","member":1}
//! ```
//!
//! Every line says which it is, so that one that is missing is noticed. The last says that the member stopped. A trace
//! without it is of a process that was killed or still runs, or has lost its end.
//!
//! Times are nanoseconds since the machine booted. The file is written by a thread of its own, for a disk may be slow
//! and the loop must not wait: if the queue is full the trace ends there, the log says so, and the node goes on. A trace
//! with a gap would be worth nothing.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use doyen_core::members::{Incarnation, NodeId};
use doyen_core::protocol::{AdminCommand, EffectOf, Event, Origin, Protocol, name_of};
use doyen_core::session::SessionId;
use serde::{Deserialize, Serialize};

use super::clock::Moment;
use super::journal::{Journal, Line};

/// What the first line calls the rest.
pub(super) const MAGIC: &str = "node-trace";

/// The version this program writes and reads.
pub(super) const VERSION: u32 = 3;

/// How many lines may wait to be written.
const ROOM: usize = 16_384;

/// How long a line waits at most before it is in the file.
const FLUSH: Duration = Duration::from_millis(200);

/// How long the end of a node waits for the last lines.
const PATIENCE: Duration = Duration::from_secs(1);

/// The first line: everything a replay must know.
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
    /// Whose trace it is.
    pub member: NodeId,
    /// In which life; the lowest that it could take, if its state was lost.
    pub incarnation: Incarnation,
    /// Its session.
    pub session: SessionId,
    /// The time of day at the start, in seconds since 1970.
    pub time_of_day: u32,
    /// Into what it came.
    pub origin: Arrived,
    /// What its disk held, in hexadecimal digits.
    pub durable: Option<String>,
    /// What it wanted done at the start.
    pub did: Vec<String>,
}

/// Into what a process came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrived {
    /// The group may have been running.
    Joining,
    /// It had lost its disk.
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
    /// On which line of the file it was written. Traces of old had no numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// When.
    pub at: u64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum What {
    /// A message came.
    Received {
        /// From whom.
        from: NodeId,
        /// To whom: the member whose trace it is.
        to: NodeId,
        /// The sources' word for it.
        kind: String,
        /// The word and the fields.
        text: String,
        /// The message as it was on the wire, in hexadecimal digits.
        bytes: String,
        /// What the member wanted done.
        did: Vec<String>,
    },
    /// A timer fired.
    Fired {
        /// Whose.
        member: NodeId,
        /// Which.
        timer: String,
        /// What the member wanted done.
        did: Vec<String>,
    },
    /// Somebody wanted an election.
    Campaign {
        /// Who was told.
        member: NodeId,
        /// What the member wanted done.
        did: Vec<String>,
    },
    /// The operator wanted something.
    Commanded {
        /// Of whom.
        member: NodeId,
        /// What.
        command: AdminCommand,
        /// What the member wanted done.
        did: Vec<String>,
    },
    /// Nothing runs any more under the lease of a retiring leader.
    Retired {
        /// Whose.
        member: NodeId,
        /// What the member wanted done.
        did: Vec<String>,
    },
    /// A lease runs until another time than before.
    Leased {
        /// Whose.
        member: NodeId,
        /// Until when; no lease runs any more, if it is empty.
        until: Option<u64>,
    },
    /// The member stopped, and nothing happens any more.
    Ended {
        /// Who.
        member: NodeId,
    },
}

/// What a member wants done, as a trace says it.
pub(super) fn told<P: Protocol>(effects: &[EffectOf<P>]) -> Vec<String> {
    effects.iter().map(|effect| format!("{effect:?}")).collect()
}

/// Bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hexadecimal digits as bytes.
pub(super) fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// Records.
#[derive(Debug)]
pub(super) struct Tracer {
    member: NodeId,
    lines: Option<SyncSender<String>>,
    /// Ends when everything has been written.
    written: Receiver<()>,
    journal: Journal,
    /// How many lines there are.
    length: u64,
    /// The lease that was last recorded.
    lease: Option<Moment>,
}

impl Tracer {
    /// Begins a trace; an old one of that name is not overwritten.
    pub(super) fn begin(path: &Path, header: &Header, journal: Journal) -> io::Result<Self> {
        let file = File::create_new(path)?;
        let (lines, waiting) = sync_channel(ROOM);
        let (ends, written) = sync_channel(1);
        let (name, log) = (path.display().to_string(), journal.clone());
        thread::Builder::new().name("doyen-trace".to_owned()).spawn(move || {
            let _ends: SyncSender<()> = ends;
            if let Err(error) = write_all(file, &waiting) {
                log.write(Line::Warning(format!("the trace {name} ends early: {error}")));
            }
        })?;
        let (member, lines) = (header.member, Some(lines));
        let mut tracer = Self { member, lines, written, journal, length: 0, lease: None };
        tracer.push(header);
        Ok(tracer)
    }

    /// What an event is called. To be asked before the event is handled, which consumes it.
    pub(super) fn name<P: Protocol>(&self, event: &Event<P::Message, P::Timer>) -> What {
        let (member, did) = (self.member, Vec::new());
        match event {
            Event::Message { from, message } => What::Received {
                from: *from,
                to: member,
                kind: name_of(message).to_owned(),
                text: message.to_string(),
                // Encoding into a vector cannot fail.
                bytes: hex(&postcard::to_allocvec(message).unwrap_or_default()),
                did,
            },
            Event::Timer(timer) => What::Fired { member, timer: format!("{timer:?}"), did },
            Event::Command(command) => What::Commanded { member, command: *command, did },
            Event::Retired => What::Retired { member, did },
            // This host has no failure detector of its own.
            Event::Campaign | Event::PeerDown(_) | Event::PeerUp(_) => {
                What::Campaign { member, did }
            }
        }
    }

    /// Records an event and what the member wanted done.
    pub(super) fn event(&mut self, at: Moment, mut what: What, wanted: Vec<String>) {
        match &mut what {
            What::Received { did, .. }
            | What::Fired { did, .. }
            | What::Campaign { did, .. }
            | What::Commanded { did, .. }
            | What::Retired { did, .. } => *did = wanted,
            What::Leased { .. } | What::Ended { .. } => {}
        }
        self.record(at, what);
    }

    /// Records the lease, if it is another.
    pub(super) fn lease(&mut self, until: Option<Moment>) {
        if self.lease != until {
            self.lease = until;
            let what = What::Leased { member: self.member, until: until.map(Moment::as_nanos) };
            self.record(Moment::now(), what);
        }
    }

    /// Records that nothing happens any more.
    pub(super) fn end(&mut self) {
        let what = What::Ended { member: self.member };
        self.record(Moment::now(), what);
    }

    fn record(&mut self, at: Moment, what: What) {
        self.push(&Record { line: Some(self.length + 1), at: at.as_nanos(), what });
    }

    fn push(&mut self, line: &impl Serialize) {
        let Some(lines) = &self.lines else { return };
        // What is recorded are numbers and texts, which can always be written as JSON.
        let text = serde_json::to_string(line).unwrap_or_default();
        self.length += 1;
        if lines.try_send(text).is_err() {
            self.lines = None; // the thread writes what it has
            self.journal.write(Line::Warning("the trace ends: the disk is too slow".to_owned()));
        }
    }
}

impl Drop for Tracer {
    /// The loop is over: waits until what it recorded has been written, but not for ever.
    fn drop(&mut self) {
        self.lines = None;
        let _ = self.written.recv_timeout(PATIENCE);
    }
}

/// Writes what comes, and flushes when nothing more does for a moment.
fn write_all(file: File, lines: &Receiver<String>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    loop {
        match lines.recv_timeout(FLUSH) {
            Ok(line) => writeln!(out, "{line}")?,
            Err(RecvTimeoutError::Timeout) => out.flush()?,
            Err(RecvTimeoutError::Disconnected) => return out.flush(),
        }
    }
}
