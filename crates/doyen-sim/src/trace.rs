//! A run as a file: one JSON object on each line; the first one says what was run.
//!
//! ```json
//! {"doyen":"trace","version":3,"algorithm":"bully","mode":"textbook","convention":"live","members":"0..7",…}
//! {"at":0,"event":"campaign","member":4,"rules":["R1"]}
//! {"at":0,"event":"sent","id":1,"from":4,"to":5,"kind":"ELECTION","text":"ELECTION",…}
//! ```
//!
//! The lines after the first are [`TraceEvent`]s in the order in which they happened, with times in virtual nanoseconds.
//! A world without an observer makes no events. With one, each event is handed over and forgotten, and writing keeps
//! nothing: a trace of any length needs no memory. A reader ignores fields that it does not know, so that later versions
//! may add some; `version` rises when an older reader could no longer understand the rest.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufWriter, Write};

use doyen_core::members::{Key, Members, NodeId};
use doyen_core::registry::Purpose;
use doyen_core::time::Span;
use serde::{Deserialize, Serialize};

use crate::scenario::{Case, MemberList, RingOrder, Scenario};
use crate::time::Time;

/// The members of a run, and what else a view must know that no event says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunInfo {
    /// The heading of a picture: the title of the scenario, or what was run.
    pub title: String,
    /// A line below it: what was run, if the title does not say it.
    pub subtitle: Option<String>,
    /// The members.
    pub members: Members,
    /// Whether to show the members in the order of the ring, which turns a message that circulates into a staircase;
    /// otherwise they are ordered by id.
    pub clockwise: bool,
    /// What the algorithm does: members follow a leader, or enter a critical section.
    pub purpose: Purpose,
    /// Who leads at the beginning.
    pub leader: Option<NodeId>,
    /// Whether leaders have leases: then a leader leads once it has one.
    pub leases: bool,
    /// `D`, the bound on a message's delay.
    pub transmission: Span,
}

impl RunInfo {
    /// The run of `case`.
    pub fn of(case: &Case) -> Self {
        let members = case.members().clone();
        let count = members.len();
        let noun = if count == 1 { "member" } else { "members" };
        let run = format!("{}, {}, {count} {noun}", case.algorithm, case.mode());
        let (title, subtitle) = match case.title.as_str() {
            "" => (run, None),
            title => (title.to_owned(), Some(run)),
        };
        Self {
            title,
            subtitle,
            members,
            clockwise: case.algorithm.is_ring(),
            purpose: case.algorithm.purpose(),
            leader: case.leader.filter(|_| case.algorithm.elects()),
            leases: case.algorithm.has_leases(),
            transmission: case.config.timing.transmission,
        }
    }

    /// How many members there are.
    #[expect(clippy::len_without_is_empty, reason = "there is always a member")]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The members in the order in which they are shown.
    pub fn keys(&self) -> Vec<Key> {
        let first = self.members.at(0);
        let others = self.members.clockwise(first).take(self.len() - 1);
        let ids: Vec<NodeId> = match self.clockwise {
            true => std::iter::once(first).chain(others).collect(),
            false => self.members.iter().collect(),
        };
        ids.into_iter().map(|id| self.members.key(id)).collect()
    }

    /// The place where a member is shown. None for an unknown one, which a trace that was edited by hand may name.
    pub fn place(&self, id: NodeId) -> Option<usize> {
        let position = self.members.position(id)?;
        Some(match self.clockwise {
            true => self.members.ring_distance(self.members.at(0), id),
            false => position,
        })
    }
}

pub use doyen_core::trace::{EventKind, TraceEvent};

/// Receives every event of a run in order.
pub trait Observer {
    /// Takes note of `event`.
    fn observe(&mut self, event: &TraceEvent);

    /// Whether it wants more events. A run without an observer is fast again.
    fn wants_more(&self) -> bool {
        true
    }
}

impl Observer for Vec<TraceEvent> {
    fn observe(&mut self, event: &TraceEvent) {
        self.push(event.clone());
    }
}

/// Shows one run to many observers.
#[derive(Default)]
pub struct Observers<'a>(pub Vec<&'a mut dyn Observer>);

impl fmt::Debug for Observers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}

impl Observer for Observers<'_> {
    fn observe(&mut self, event: &TraceEvent) {
        for observer in self.0.iter_mut().filter(|observer| observer.wants_more()) {
            observer.observe(event);
        }
    }

    fn wants_more(&self) -> bool {
        self.0.iter().any(|observer| observer.wants_more())
    }
}

/// What the first line calls the rest.
const MAGIC: &str = "trace";

/// The version that this program writes and reads.
const VERSION: u32 = 3;

/// The first line: what was run, as far as a reader of the events must know. Members, ring and the other fields are
/// written as in a scenario, so that a million members take no more room than three.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Header {
    doyen: String,
    version: u32,
    /// The title of the scenario.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The algorithm's name.
    pub algorithm: String,
    /// `textbook`, `hardened` or a literal variant.
    pub mode: String,
    /// The members that the counts are about: `live` or `configured`.
    pub convention: String,
    /// The members.
    pub members: MemberList,
    /// The attributes of the members whose attribute is not their id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attr: BTreeMap<String, i64>,
    /// The clockwise order.
    pub ring: RingOrder,
    /// The members that were dead from the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dead: Vec<NodeId>,
    /// The member that led at the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<NodeId>,
    /// `D`, the bound on a message's delay, in nanoseconds.
    pub transmission: Span,
    /// The random seed.
    pub seed: u64,
}

impl Header {
    /// The first line of a trace of `case`.
    pub fn of(case: &Case) -> Self {
        let members = case.members();
        let (first, last) = (members.at(0), members.at(members.len() - 1));
        let keys = members.iter().map(|id| members.key(id));
        let named = keys.filter(|key| key.attr != i64::from(key.id.0));
        Self {
            doyen: MAGIC.to_owned(),
            version: VERSION,
            title: case.title.clone(),
            algorithm: case.algorithm.to_string(),
            mode: case.mode().to_string(),
            convention: case.convention.to_string(),
            members: match (last.0 - first.0) as usize == members.len() - 1 {
                true => MemberList::Range(format!("{first}..{last}")),
                false => MemberList::Listed(members.iter().map(|id| id.0).collect()),
            },
            attr: named.map(|key| (key.id.to_string(), key.attr)).collect(),
            ring: case.ring.clone(),
            dead: case.dead.clone(),
            leader: case.leader,
            transmission: case.config.timing.transmission,
            seed: case.seed,
        }
    }

    /// What a view must know to show the events.
    pub fn info(&self) -> Result<RunInfo, String> {
        let wrong = |problem: String| format!("line 1: {problem}");
        let scenario = Scenario {
            title: self.title.clone(),
            algorithm: Some(self.algorithm.parse().map_err(wrong)?),
            mode: Some(self.mode.parse().map_err(wrong)?),
            members: Some(self.members.clone()),
            attr: self.attr.clone(),
            ring: Some(self.ring.clone()),
            leader: self.leader.map(|id| id.0),
            bound: Some(self.transmission),
            seed: Some(self.seed),
            ..Scenario::default()
        };
        let case = scenario.resolve().map_err(|error| format!("line 1: {error}"))?;
        Ok(RunInfo::of(&case))
    }
}

/// Writes a trace while a run happens.
pub struct Writer<'o> {
    out: BufWriter<&'o mut dyn Write>,
    failed: Option<io::Error>,
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl<'o> Writer<'o> {
    /// Begins a trace on `out`.
    pub fn new(header: &Header, out: &'o mut dyn Write) -> Self {
        let mut writer = Self { out: BufWriter::new(out), failed: None };
        writer.write(header);
        writer
    }

    /// Writes the rest, and returns whether everything could be written. After the first failure nothing more was
    /// written.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn write(&mut self, line: &impl Serialize) {
        if self.failed.is_none() {
            let written = serde_json::to_writer(&mut self.out, line).map_err(io::Error::from);
            self.failed = written.and_then(|()| self.out.write_all(b"\n")).err();
        }
    }
}

impl Observer for Writer<'_> {
    fn observe(&mut self, event: &TraceEvent) {
        self.write(event);
    }
}

/// Reads a trace event by event.
#[derive(Debug)]
pub struct Reader<R> {
    header: Header,
    lines: Lines<R>,
    latest: Time,
}

/// The mark that distinguishes a trace from other files.
#[derive(Deserialize)]
struct Magic {
    doyen: String,
    version: u32,
}

impl<R: BufRead> Reader<R> {
    /// Reads the first line.
    pub fn new(input: R) -> Result<Self, String> {
        let mut lines = Lines { input, text: String::new(), number: 0 };
        let none = || "line 1: is missing; an empty file is no trace".to_owned();
        let first = lines.next()?.ok_or_else(none)?;
        match serde_json::from_str(first) {
            Ok(Magic { doyen, version: VERSION }) if doyen == MAGIC => {}
            Ok(Magic { doyen, version }) if doyen == MAGIC => {
                return Err(format!(
                    "line 1: a trace of version {version}; this program reads {VERSION}"
                ));
            }
            _ => {
                return Err(r#"line 1: is not the head of a trace, {"doyen":"trace",…}"#.to_owned());
            }
        }
        let header = serde_json::from_str(first).map_err(|error| lines.error(&error))?;
        Ok(Self { header, lines, latest: Time::ZERO })
    }

    /// What was run.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn event(&mut self) -> Result<Option<TraceEvent>, String> {
        let Some(text) = self.lines.next()? else { return Ok(None) };
        let event: TraceEvent =
            serde_json::from_str(text).map_err(|error| self.lines.error(&error))?;
        if event.at < self.latest {
            let (number, earlier) = (self.lines.number, event.at);
            return Err(format!("line {number}: time runs back from {} to {earlier}", self.latest));
        }
        self.latest = event.at;
        Ok(Some(event))
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<TraceEvent, String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.event().transpose()
    }
}

/// The lines of a file, counted.
#[derive(Debug)]
struct Lines<R> {
    input: R,
    text: String,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<&str>, String> {
        self.text.clear();
        self.number += 1;
        match self.input.read_line(&mut self.text) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(self.text.trim_end())),
            Err(error) => Err(format!("line {}: {error}", self.number)),
        }
    }

    /// What is wrong with this line. Every line is one object, so the column says where the mistake is, and the line
    /// number of the JSON parser says nothing.
    fn error(&self, error: &serde_json::Error) -> String {
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or_default();
        match error.column() {
            0 => format!("line {}: {what}", self.number),
            column => format!("line {}, column {column}: {what}", self.number),
        }
    }
}

/// Reads a whole trace. Errors name the line.
pub fn read(input: impl BufRead) -> Result<(Header, Vec<TraceEvent>), String> {
    let mut reader = Reader::new(input)?;
    let events = reader.by_ref().collect::<Result<_, _>>()?;
    Ok((reader.header, events))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;

    const EVERYTHING: &str = r#"
        title = "everything at once"
        algorithm = "bully"
        mode = "hardened"
        members = [1, 2, 5, 9]
        attr = { 2 = 40 }
        ring = "random"
        leader = 2
        delay = "uniform:1ms..2ms"
        loss = "10%"
        duplicate = "10%"
        until = "200ms"
        fault = [
            { at = "5ms", crash = 2 },
            { at = "5ms", campaign = 5 },
            { at = "30ms", restart = 2, disk = false },
            { at = "40ms", pause = 9, for = "9ms" },
            { at = "60ms", partition = [[1, 2], [5, 9]] },
            { at = "80ms", heal = true },
            { at = "90ms", cut = [1, 2] },
            { at = "95ms", mend = [1, 2] },
            { at = "99ms", clock = 1, rate = 0.9, skew = "3ms" },
        ]
    "#;

    fn trace(text: &str) -> (Case, Vec<TraceEvent>, Vec<u8>) {
        let case = Scenario::from_toml("test", text).unwrap();
        let (mut events, mut bytes) = (Vec::new(), Vec::new());
        let mut writer = Writer::new(&Header::of(&case), &mut bytes);
        run::run(&case, Some(&mut Observers(vec![&mut events, &mut writer])));
        writer.finish().unwrap();
        (case, events, bytes)
    }

    #[test]
    fn what_is_written_is_read_back() {
        let (case, events, bytes) = trace(EVERYTHING);
        let (header, read) = read(&bytes[..]).unwrap();
        assert_eq!(header, Header::of(&case));
        assert_eq!(header.info(), Ok(RunInfo::of(&case)));
        assert!(events.len() > 100);
        assert_eq!(read, events);
    }

    #[test]
    fn a_large_group_takes_no_more_room_than_a_small_one() {
        let head = |members: &str| {
            let text = format!("algorithm = \"bully\"\nmembers = {members}");
            let case = Scenario::from_toml("test", &text).unwrap();
            serde_json::to_string(&Header::of(&case)).unwrap()
        };
        let header = head("8");
        assert_eq!(
            header,
            r#"{"doyen":"trace","version":3,"algorithm":"bully","mode":"textbook","convention":"live","#
                .to_owned()
                + r#""members":"1..8","ring":"ascending","transmission":1000000,"seed":1}"#
        );
        assert_eq!(head("1000000").len(), header.len() + 6);
    }

    #[test]
    fn errors_name_the_line() {
        let (_, _, bytes) = trace("algorithm = \"bully\"\nmembers = 3");
        let text = String::from_utf8(bytes).unwrap();
        let spoilt = |number: usize, line: &str| {
            let mut lines: Vec<&str> = text.lines().collect();
            lines[number - 1] = line;
            read(lines.join("\n").as_bytes()).unwrap_err()
        };
        assert_eq!(spoilt(3, "{"), "line 3, column 1: EOF while parsing an object");
        let danced = spoilt(2, r#"{"at":1,"event":"danced"}"#);
        assert!(danced.starts_with("line 2, ") && danced.contains("unknown variant `danced`"));
        let late = r#"{"at":9000000000,"event":"healed"}"#;
        assert_eq!(spoilt(4, late), "line 5: time runs back from 9s to 0");
        assert!(spoilt(1, "{}").starts_with("line 1: is not the head of a trace"));
        assert!(spoilt(1, r#"{"doyen":"trace","version":9}"#).contains("version 9"));
        let headless = r#"{"doyen":"trace","version":3}"#;
        assert!(spoilt(1, headless).contains("missing field `algorithm`"));
        assert!(read(&b""[..]).unwrap_err().starts_with("line 1: is missing"));
        assert!(read(&b"\xff\n"[..]).unwrap_err().starts_with("line 1: "));
    }

    #[test]
    fn the_first_failure_to_write_is_reported_at_the_end() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(io::Error::other("flushed"))
            }
        }
        let case = Scenario::from_toml("test", EVERYTHING).unwrap();
        let mut full = Full(10_000);
        let mut writer = Writer::new(&Header::of(&case), &mut full);
        run::run(&case, Some(&mut writer));
        assert_eq!(writer.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
