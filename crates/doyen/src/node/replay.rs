//! Replays a trace: feeds its events to the same state machine.
//!
//! The member is started with the same state and gets the same events in the same order. It must produce the same effects;
//! if it does not, this is another program, or the trace was altered, and the replay ends, because later events would
//! prove nothing. Meanwhile the [ledger] checks the rules that one member alone can break:
//!
//! - a stored term never falls, and a vote in a term never changes;
//! - a message that binds its sender leaves in the term that is stored at that moment, and a vote as it is stored;
//! - a vote lease is kept, by the clock of the node;
//! - a lease is in the stored term, and the terms of leases rise; one that is published has not run out.
//!
//! Two members together can break one more rule: at no instant do two leases run. Traces of one machine share its clock, so
//! they can be compared ([`overlaps`]).

mod words;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Debug;

use doyen_core::host::{Host, apply};
use doyen_core::ledger::{self, Contradiction, Entry, Stored};
use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::{Boot, Effects, Event, Message as _, Notice, Pledge, Protocol, View};
use doyen_core::time::{Delay, Span};
use doyen_core::trace::timer_words;

use super::host::Process;
use super::start::process;
use super::trace::{Header, MAGIC, Record, VERSION, What, told};
use crate::config::{Configuration, Settings};
use crate::hex;

/// A parsed trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// Its first line. If its number is not 1, the beginning of the trace is missing.
    pub header: Header,
    /// Its events.
    pub records: Vec<Record>,
    /// What is missing at its end, if anything.
    pub missing: Option<Finding>,
}

impl Trace {
    /// Whether its first files are missing. Then its events cannot be replayed.
    pub fn is_beheaded(&self) -> bool {
        self.header.line > 1
    }

    /// The number of its last line, with the first lines of all its files.
    fn last_line(&self) -> u64 {
        self.records.last().and_then(|record| record.line).unwrap_or(self.header.line)
    }

    fn is_continued(&self) -> bool {
        matches!(self.records.last(), Some(Record { what: What::Continued { .. }, .. }))
    }

    /// Adds the next file of the same trace.
    fn extend(&mut self, next: Self) -> Result<(), String> {
        let head = |header: &Header| (header.member, header.incarnation, header.session);
        let (last, first) = (self.last_line(), next.header.line);
        if head(&self.header) != head(&next.header) {
            return Err("line 1: this is a file of another trace, of another start".to_owned());
        }
        if !self.is_continued() || first != last + 1 {
            return Err(format!(
                "line 1: was written as line {first}, but the file before it ends with line {last}; copy all files again"
            ));
        }
        self.records.extend(next.records);
        self.missing = next.missing;
        Ok(())
    }
}

/// The result of a replay.
#[derive(Clone, PartialEq, Debug)]
pub struct Replayed {
    /// The name of the member.
    pub name: String,
    /// Every event, in order, up to the first one with a finding.
    pub steps: Vec<Step>,
    /// What is wrong with the last step, if anything.
    pub findings: Vec<Finding>,
    /// How often the member's leader changed.
    pub leaders: usize,
}

/// One event and its effects.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The time, in nanoseconds since the machine booted.
    pub at: u64,
    /// The event as text.
    pub event: String,
    /// The rules that fired.
    pub rules: Vec<&'static str>,
    /// The effects, in words.
    pub did: Vec<String>,
}

/// Something that is wrong with a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The line of the trace.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// Parses the files of a trace, in order: the name and the text of each. The first ones may be missing.
pub fn read_files(
    files: impl IntoIterator<Item = Result<(String, String), String>>,
) -> Result<Trace, String> {
    let mut whole: Option<Trace> = None;
    for file in files {
        let (name, text) = file?;
        let in_file = |error: String| format!("{name}: {error}");
        let trace = read(&text).map_err(in_file)?;
        match &mut whole {
            None => whole = Some(trace),
            Some(whole) => whole.extend(trace).map_err(in_file)?,
        }
    }
    whole.ok_or_else(|| "there is no such file".to_owned())
}

/// Parses one file of a trace. A last line that was cut short, as by a crash, is reported as missing.
pub fn read(text: &str) -> Result<Trace, String> {
    let mut lines = text.lines().enumerate().peekable();
    let (_, first) = lines.next().ok_or("line 1: is missing; an empty file is no trace")?;
    let head = |error| format!("line 1: is not the head of a node's trace: {error}");
    // Other versions have other fields, so check the version first.
    let value: serde_json::Value = serde_json::from_str(first).map_err(head)?;
    if let (Some(MAGIC), Some(theirs)) = (value["doyen"].as_str(), value["version"].as_u64())
        && theirs != u64::from(VERSION)
    {
        return Err(format!("line 1: a trace of version {theirs}; this program reads {VERSION}"));
    }
    let header: Header = serde_json::from_str(first).map_err(head)?;
    if header.doyen != MAGIC {
        return Err(format!(
            "line 1: is not the head of a node's trace, but of a {}",
            header.doyen
        ));
    }
    if header.line == 0 {
        return Err("line 1: its number is 0; lines are counted from 1".to_owned());
    }
    let mut records: Vec<Record> = Vec::new();
    let mut cut_at = None;
    while let Some((number, line)) = lines.next() {
        match serde_json::from_str::<Record>(line) {
            Ok(record) => {
                check_number(number + 1, header.line, record.line)?;
                records.push(record);
            }
            Err(_) if lines.peek().is_none() && !text.ends_with('\n') => cut_at = Some(number + 1),
            Err(error) => return Err(format!("line {}: {error}", number + 1)),
        }
    }
    let missing = missing_of(&header, &records, cut_at);
    Ok(Trace { header, records, missing })
}

/// Whether a line is at its place: a trace with a gap cannot be replayed. `first`: the number of the first line of its file.
fn check_number(here: usize, first: u64, written: Option<u64>) -> Result<(), String> {
    let expected = first.saturating_add(here as u64 - 1);
    let Some(written) = written.filter(|&written| written != expected) else { return Ok(()) };
    let why = match written.checked_sub(expected) {
        Some(1) => "a line is missing before it".to_owned(),
        Some(missing) => format!("{missing} lines are missing before it"),
        None => "lines stand there twice, or in another order".to_owned(),
    };
    Err(format!("line {here}: was written as line {written}, so {why}; copy the whole file again"))
}

/// What is missing at the end of a trace; `cut_at`: the line that was cut short.
fn missing_of(header: &Header, records: &[Record], cut_at: Option<usize>) -> Option<Finding> {
    let line = header.line as usize - 1 + cut_at.unwrap_or(records.len() + 1);
    let what = match (cut_at, records.last().map(|record| &record.what)) {
        (None, Some(What::Continued { .. })) => {
            let what = "is the last, and says that another file continues the trace; it is missing";
            return Some(Finding { line, what: what.to_owned() });
        }
        (Some(_), _) => "is cut short, and nothing follows",
        (None, Some(What::Ended { .. })) => return None,
        (None, _) => "is the last, and does not say that the member stopped",
    };
    let why = "its process was killed or still runs, or the file was cut";
    Some(Finding { line, what: format!("{what}: {why}") })
}

/// Replays a trace. Of one without its beginning nothing can be replayed.
pub fn replay(trace: &Trace) -> Result<Replayed, String> {
    let settings = Configuration::parse("configuration", &trace.header.config)
        .map_err(|error| format!("line 1: its configuration cannot be used: {error}"))?
        .settings;
    let name = settings.name_of(trace.header.member).to_owned();
    if trace.is_beheaded() {
        let (steps, findings, leaders) = (Vec::new(), Vec::new(), 0);
        return Ok(Replayed { name, steps, findings, leaders });
    }
    let mut replayer = Replayer::start(trace, &settings)?;
    for (place, record) in trace.records.iter().enumerate() {
        if !replayer.findings.is_empty() {
            break;
        }
        replayer.line = record.line.map_or(place + 2, |line| line as usize);
        replayer.take(record)?;
    }
    let Replayer { steps, findings, leaders, .. } = replayer;
    Ok(Replayed { name, steps, findings, leaders })
}

type DurableOf = <Process as Protocol>::Durable;
type LetterOf = <Process as Protocol>::Message;
type TimerOf = <Process as Protocol>::Timer;

/// A member whose trace is being replayed.
struct Replayer {
    config: <Process as Protocol>::Config,
    member: Process,
    effects: Effects<Process>,
    /// The armed timers, by their names in the trace.
    armed: BTreeMap<String, TimerOf>,
    /// The member's entry in the ledger; times are since the machine booted.
    entry: Entry<Span>,
    /// The length of the vote lease that the current message asks for.
    asked: Option<Span>,
    /// The term of its last lease.
    leased: Option<Term>,
    /// The time of the current event.
    now: Span,
    line: usize,
    has_ended: bool,
    steps: Vec<Step>,
    findings: Vec<Finding>,
    /// Its last leader.
    leader: Option<NodeId>,
    leaders: usize,
    /// The version of the program that wrote the trace.
    program: String,
    names: BTreeMap<NodeId, String>,
}

impl Replayer {
    fn start(trace: &Trace, settings: &Settings) -> Result<Self, String> {
        let Header { member, incarnation, session, time_of_day, origin, durable, did, .. } =
            &trace.header;
        let unreadable = || "line 1: what its disk held cannot be read".to_owned();
        let stored: Option<DurableOf> = match durable {
            None => None,
            Some(digits) => {
                let bytes = hex::decode(digits).ok_or_else(unreadable)?;
                let mut encoded = postcard::Deserializer::from_bytes(&bytes);
                Some(settings.algorithm.read_kept(&mut encoded).map_err(|_| unreadable())?)
            }
        };
        let config = process(settings);
        let mut effects = Effects::new();
        let boot = Boot {
            incarnation: *incarnation,
            durable: stored.clone(),
            origin: (*origin).into(),
            session: *session,
            time_of_day: *time_of_day,
        };
        let id = *member;
        let member = Process::start(id, &config, boot, &mut effects);
        let mut replayer = Self {
            config,
            member,
            effects,
            armed: BTreeMap::new(),
            entry: Entry { stored: Stored::on(stored.as_ref()), ..Entry::new(id) },
            asked: None,
            leased: None,
            now: Span::ZERO,
            line: 1,
            has_ended: false,
            steps: Vec::new(),
            findings: Vec::new(),
            leader: None,
            leaders: 0,
            program: trace.header.program.clone(),
            names: settings.members.iter().map(|it| (it.id, it.name.clone())).collect(),
        };
        replayer.conclude(0, format!("start {}", incarnation.0), did);
        Ok(replayer)
    }

    fn take(&mut self, record: &Record) -> Result<(), String> {
        let at = record.at;
        (self.now, self.asked) = (Span::from_nanos(at), None);
        if self.has_ended {
            self.find("something happens after the end".to_owned());
        }
        let (event, text, did) = match &record.what {
            What::Received { from, text, bytes, did, .. } => {
                let algorithm = self.config.inner.inner.algorithm;
                let read = |bytes: Vec<u8>| {
                    algorithm.read_letter(&mut postcard::Deserializer::from_bytes(&bytes)).ok()
                };
                let message = hex::decode(bytes).and_then(read);
                let message: LetterOf = message.ok_or_else(|| self.misread("the message"))?;
                let says = message.commitments();
                self.asked = says.requested;
                if let Some(term) = says.released {
                    self.entry.release(term);
                }
                (
                    Event::Message { from: *from, message },
                    format!("from {}: {text}", name_in(&self.names, *from)),
                    did,
                )
            }
            What::Fired { timer, did, .. } => {
                let Some(tag) = self.armed.remove(timer) else {
                    let wrong =
                        format!("the {} timer fires, which was not armed", timer_words(timer));
                    self.find(format!("{wrong}; {}", self.why_it_differs()));
                    return Ok(());
                };
                (Event::Timer(tag), format!("{} timer fires", timer_words(timer)), did)
            }
            What::Campaign { did, .. } => (Event::Campaign, "calls an election".into(), did),
            What::Commanded { command, did, .. } => {
                (Event::Command(*command), format!("receives the command {command}"), did)
            }
            What::Retired { did, .. } => (Event::Retired, "its work has stopped".into(), did),
            What::Request { did, .. } => (Event::Request, "is to enter".into(), did),
            What::Exit { did, .. } => (Event::Exit, "is to leave".into(), did),
            What::Continued { .. } => return Ok(()),
            What::Ended { .. } => {
                self.has_ended = true;
                return Ok(());
            }
            What::Leased { until, .. } => {
                self.publish(at, *until);
                return Ok(());
            }
        };
        self.member.handle(&self.config, event, &mut self.effects);
        self.conclude(at, text, did);
        Ok(())
    }

    /// A lease runs until another time than before.
    fn publish(&mut self, at: u64, until: Option<u64>) {
        let Some(until) = until else { return };
        if until <= at {
            self.find("a lease is published that has run out".to_owned());
        }
        let (id, term) = (self.entry.id, self.member.view().term);
        let before = self.leased.replace(term).filter(|&before| before != term);
        self.judge(self.entry.lead(term));
        self.judge(ledger::rises(id, term, before.map(|before| (id, before))));
    }

    /// Compares the effects with those in the trace, and checks them.
    fn conclude(&mut self, at: u64, event: String, then: &[String]) {
        let now = told::<Process>(self.effects.list());
        let name = |id| name_in(&self.names, id);
        let describe = |effect| words::describe(effect, &name);
        let did: Vec<String> = self.effects.list().iter().map(describe).collect();
        if let Some(difference) = difference(then, &now, &did) {
            self.find(format!("{event}: {difference}; {}", self.why_it_differs()));
        }
        let mut effects = std::mem::take(&mut self.effects);
        let Ok(()) = apply(effects.drain(), self);
        let rules = effects.rules().to_vec();
        effects.clear();
        self.effects = effects;
        self.steps.push(Step { at, event, rules, did });
    }

    fn judge(&mut self, found: impl IntoIterator<Item = Contradiction>) {
        for Contradiction { facts, .. } in found {
            let facts: Vec<String> = facts.iter().map(ToString::to_string).collect();
            self.find(facts.join("; "));
        }
    }

    fn find(&mut self, what: String) {
        self.findings.push(Finding { line: self.line, what });
    }

    fn why_it_differs(&self) -> String {
        format!(
            "a line above is missing or was altered, or doyen {}, which wrote this, is not this doyen",
            self.program
        )
    }

    fn misread(&self, what: &str) -> String {
        format!("line {}: {what} cannot be read", self.line)
    }
}

impl Host<Process> for Replayer {
    type Error = Infallible;

    fn persist(&mut self, durable: DurableOf) -> Result<(), Infallible> {
        let found = self.entry.store(Stored::on(Some(&durable)));
        self.judge(found);
        Ok(())
    }

    fn send(&mut self, to: NodeId, message: LetterOf) -> Result<(), Infallible> {
        let Some(pledge) = message.commitments().pledge else { return Ok(()) };
        // Messages of earlier incarnations are not in this trace.
        self.judge(self.entry.send(self.now, to, pledge, None));
        if let (Pledge::VoteLease { term }, Some(length)) = (pledge, self.asked) {
            self.entry.bind(term, self.now + length);
        }
        Ok(())
    }

    fn arm(&mut self, timer: TimerOf, _: Delay) {
        self.armed.insert(name(&timer), timer);
    }

    fn cancel(&mut self, timer: TimerOf) {
        self.armed.remove(&name(&timer));
    }

    fn announce(&mut self, view: View) {
        if view.leader.is_some() && view.leader != self.leader {
            self.leader = view.leader;
            self.leaders += 1;
        }
    }

    fn inform(&mut self, _: Notice) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The name of a member; its id, if there is no such member.
fn name_in(names: &BTreeMap<NodeId, String>, id: NodeId) -> String {
    names.get(&id).cloned().unwrap_or_else(|| id.to_string())
}

/// The first effect that differs: its kind in the trace, and what it is `now`, in words.
fn difference(then: &[String], now: &[String], in_words: &[String]) -> Option<String> {
    let place = (0..then.len().max(now.len())).find(|&place| then.get(place) != now.get(place))?;
    let nth = place + 1;
    let kind = |text: &String| {
        let name = text.split(|it: char| !it.is_alphanumeric()).next().unwrap_or_default();
        name.to_lowercase()
    };
    Some(match (then.get(place).map(kind), in_words.get(place)) {
        (Some(then), Some(now)) => {
            format!("effect {nth} is not the one in the trace ({then}); now: {now}")
        }
        (Some(then), None) => format!("effect {nth} of the trace ({then}) does not follow now"),
        (None, now) => {
            let now = now.map_or("nothing", String::as_str);
            format!("effect {nth} is not in the trace; now: {now}")
        }
    })
}

fn name(timer: &impl Debug) -> String {
    format!("{timer:?}")
}

/// A lease, as its holder recorded it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// The holder.
    pub member: NodeId,
    /// Its start.
    pub from: u64,
    /// Its deadline, or the time at which its holder gave it up.
    pub until: u64,
}

/// The leases in a trace, in order. A renewal extends a lease. A published deadline is binding, whatever happens to the
/// leader, unless all permits under the lease have ended.
pub fn leases(trace: &Trace) -> Vec<Held> {
    let mut held: Vec<Held> = Vec::new();
    let (mut running, mut retired) = (false, false);
    for record in &trace.records {
        retired |= matches!(record.what, What::Retired { .. });
        let What::Leased { member, until } = record.what else { continue };
        retired &= until.is_none();
        match (until, held.last_mut().filter(|_| running)) {
            (Some(until), Some(last)) if record.at <= last.until => last.until = until,
            (Some(until), _) => held.push(Held { member, from: record.at, until }),
            (None, Some(last)) if retired => last.until = last.until.min(record.at),
            (None, _) => {}
        }
        running = until.is_some();
    }
    held
}

/// The pairs of leases of different members that run at the same instant, in traces of one machine.
pub fn overlaps(traces: &[Trace]) -> Vec<(Held, Held)> {
    let mut all: Vec<Held> = traces.iter().flat_map(leases).collect();
    all.sort_by_key(|lease| lease.from);
    let mut found = Vec::new();
    for (place, &one) in all.iter().enumerate() {
        let later = all[place + 1..].iter().take_while(|other| other.from < one.until);
        found.extend(later.filter(|other| other.member != one.member).map(|&other| (one, other)));
    }
    found
}

#[cfg(test)]
mod tests {
    use doyen_core::algorithm::quorum::{Body, Message, Stored as Ballot};
    use doyen_core::members::{Incarnation, SessionId};
    use doyen_core::node::{Body as Carried, Packet};
    use doyen_core::registry::{AnyDurable, AnyMessage};
    use doyen_core::session::{Content, Kept, Letter, Roster};

    use super::*;

    const TRACE: &str = include_str!("../../tests/cli/files/node.trace");
    const LEADER: NodeId = NodeId(2);

    /// Member 1 of a quorum of two. The effects in the trace are of another algorithm and do not count.
    fn replayer() -> Replayer {
        let mut trace = read(TRACE).unwrap();
        trace.header.config = trace.header.config.replace("\"bully\"", "\"quorum\"");
        let settings = Configuration::parse("test", &trace.header.config).unwrap().settings;
        let mut replayer = Replayer::start(&trace, &settings).unwrap();
        replayer.findings.clear();
        replayer
    }

    fn store(replayer: &mut Replayer, term: u64, voted: Option<NodeId>) {
        let inner =
            Some(AnyDurable::Quorum(Ballot { term: Term(term), voted, ..Ballot::default() }));
        let (incarnation, roster) = (Incarnation(1), Roster::default());
        let Ok(()) = replayer.persist(Kept { incarnation, rejoining: false, roster, inner });
    }

    fn vote(replayer: &mut Replayer, term: u64) {
        let message = AnyMessage::Quorum(Message {
            config: 0,
            term: Term(term),
            pause: None,
            body: Body::Vote,
        });
        let life = Incarnation(1);
        let packet = Packet { from: life, to: life, body: Carried::Plain(message) };
        let (session, content) = (SessionId::from_random(1), Content::Inner(packet));
        let letter = Letter { at: None, session, known: None, counter: 1, content };
        let Ok(()) = replayer.send(LEADER, letter);
    }

    fn found(replayer: &Replayer) -> Vec<&str> {
        replayer.findings.iter().map(|finding| finding.what.as_str()).collect()
    }

    #[test]
    fn a_vote_leaves_only_in_the_term_that_is_stored_at_that_moment() {
        let mut replayer = replayer();
        store(&mut replayer, 4, Some(LEADER));
        vote(&mut replayer, 4);
        assert_eq!(found(&replayer), [""; 0]);
        store(&mut replayer, 5, Some(LEADER));
        vote(&mut replayer, 4);
        let contradiction =
            "1 has stored term 5, and its vote for 2; 1 tells 2 that it votes for 2 in term 4";
        assert_eq!(found(&replayer), [contradiction]);
    }

    #[test]
    fn a_vote_lease_is_kept_by_the_clock_of_the_node() {
        let mut replayer = replayer();
        replayer.entry.bind(Term(4), Span::from_millis(30));
        store(&mut replayer, 5, Some(LEADER));
        replayer.now = Span::from_millis(30);
        vote(&mut replayer, 5);
        assert_eq!(found(&replayer), [""; 0]);
        replayer.now = Span::from_millis(29);
        vote(&mut replayer, 5);
        assert_eq!(found(&replayer).len(), 1);
        assert!(found(&replayer)[0].contains("a vote lease until 30ms"), "{:?}", found(&replayer));
    }
}
