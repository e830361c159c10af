//! What happened to a member, again: its trace fed to the same state machine.
//!
//! The member is started as it was and told the same events in the same order. It must want the same things done; where
//! it does not, this is another program, or the trace is not what it says, and the replay ends: whatever the member does
//! after that says nothing. Meanwhile the promises are checked that one
//! member alone can break:
//!
//! - a stored term never falls, and a vote in a term never changes;
//! - what a message binds its sender to was stored before;
//! - a lease that is published has not run out.
//!
//! Two members together can break one more: at no instant do two leases run. Traces of one machine share its clock, so
//! several of them can be compared ([`overlaps`]).

use std::collections::BTreeMap;
use std::fmt::Debug;

use doyen_core::members::{Epoch, NodeId};
use doyen_core::protocol::{
    Boot, Durable, Effect, EffectOf, Effects, Event, Message as _, Pledge, Protocol,
};

use super::host::Process;
use super::start::process;
use super::trace::{Header, MAGIC, Record, VERSION, What, told, unhex};
use crate::config::{Configuration, Settings};

/// A trace that was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// What it begins with.
    pub header: Header,
    /// What happened.
    pub records: Vec<Record>,
    /// What is missing at its end, if anything is.
    pub missing: Option<Finding>,
}

/// What came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Replayed {
    /// What people call the member.
    pub name: String,
    /// Every event, in order, to the first with which something is wrong.
    pub steps: Vec<Step>,
    /// What is wrong with the last of them, if anything is.
    pub findings: Vec<Finding>,
    /// How often the member came to follow another leader than before.
    pub leaders: usize,
}

/// One event, and what the member made of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// When, in nanoseconds since the machine booted.
    pub at: u64,
    /// What happened, in words.
    pub event: String,
    /// The rules that fired.
    pub rules: Vec<&'static str>,
    /// What the member wanted done.
    pub did: Vec<String>,
}

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// On which line of the trace.
    pub line: usize,
    /// What.
    pub what: String,
}

/// Reads a trace. A last line that was cut short, as a crash leaves it, is left out and said to be missing.
pub fn read(text: &str) -> Result<Trace, String> {
    let mut lines = text.lines().enumerate().peekable();
    let (_, first) = lines.next().ok_or("line 1: is missing; an empty file is no trace")?;
    let head = |error| format!("line 1: is not the head of a node's trace: {error}");
    // Another version has other fields.
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
    let mut records: Vec<Record> = Vec::new();
    let mut cut_at = None;
    while let Some((number, line)) = lines.next() {
        match serde_json::from_str::<Record>(line) {
            Ok(record) => {
                check_number(number + 1, record.line)?;
                records.push(record);
            }
            Err(_) if lines.peek().is_none() && !text.ends_with('\n') => cut_at = Some(number + 1),
            Err(error) => return Err(format!("line {}: {error}", number + 1)),
        }
    }
    let missing = missing_of(&records, cut_at);
    Ok(Trace { header, records, missing })
}

/// Whether a line is where it was written: a trace with a gap cannot be replayed.
fn check_number(here: usize, written: Option<u64>) -> Result<(), String> {
    let here = here as u64;
    let Some(written) = written.filter(|&written| written != here) else { return Ok(()) };
    let why = match written.checked_sub(here) {
        Some(1) => "a line is missing before it".to_owned(),
        Some(missing) => format!("{missing} lines are missing before it"),
        None => "lines stand there twice, or in another order".to_owned(),
    };
    Err(format!("line {here}: was written as line {written}, so {why}; copy the whole file again"))
}

/// What is missing at the end of a trace, of which the line `cut_at` was cut short.
fn missing_of(records: &[Record], cut_at: Option<usize>) -> Option<Finding> {
    let line = cut_at.unwrap_or(records.len() + 1);
    let what = match (cut_at, records.last().map(|record| &record.what)) {
        (Some(_), _) => "is cut short, and nothing follows",
        (None, Some(What::Ended { .. })) => return None,
        (None, _) => "is the last, and does not say that the member stopped",
    };
    let why = "its process was killed or still runs, or the file was cut";
    Some(Finding { line, what: format!("{what}: {why}") })
}

/// Tells the member the same events again.
pub fn replay(trace: &Trace) -> Result<Replayed, String> {
    let settings = Configuration::parse("configuration", &trace.header.config)
        .map_err(|error| format!("line 1: its configuration cannot be used: {error}"))?
        .settings;
    let mut desk = Desk::start(trace, &settings)?;
    for (place, record) in trace.records.iter().enumerate() {
        if !desk.findings.is_empty() {
            break;
        }
        desk.line = place + 2;
        desk.take(record)?;
    }
    let name = settings.name_of(trace.header.member).to_owned();
    let Desk { steps, findings, leaders, .. } = desk;
    Ok(Replayed { name, steps, findings, leaders })
}

type DurableOf = <Process as Protocol>::Durable;

/// A member at a desk.
struct Desk {
    config: <Process as Protocol>::Config,
    member: Process,
    effects: Effects<Process>,
    /// The timers that are armed, by the names that a trace gives them.
    armed: BTreeMap<String, <Process as Protocol>::Timer>,
    stored: Option<DurableOf>,
    line: usize,
    has_ended: bool,
    steps: Vec<Step>,
    findings: Vec<Finding>,
    /// Whom it followed last.
    leader: Option<NodeId>,
    leaders: usize,
    /// The version that wrote the trace.
    program: String,
}

impl Desk {
    fn start(trace: &Trace, settings: &Settings) -> Result<Self, String> {
        let Header { member, incarnation, session, time_of_day, origin, durable, did, .. } =
            &trace.header;
        let unreadable = || "line 1: what its disk held cannot be read".to_owned();
        let stored: Option<DurableOf> = match durable {
            None => None,
            Some(digits) => {
                let bytes = unhex(digits).ok_or_else(unreadable)?;
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
        let member = Process::start(*member, &config, boot, &mut effects);
        let mut desk = Self {
            config,
            member,
            effects,
            armed: BTreeMap::new(),
            stored,
            line: 1,
            has_ended: false,
            steps: Vec::new(),
            findings: Vec::new(),
            leader: None,
            leaders: 0,
            program: trace.header.program.clone(),
        };
        desk.conclude(0, format!("start {}", incarnation.0), did);
        Ok(desk)
    }

    fn take(&mut self, record: &Record) -> Result<(), String> {
        let at = record.at;
        if self.has_ended {
            self.find("something happens after the end".to_owned());
        }
        let (event, text, did) = match &record.what {
            What::Received { from, text, bytes, did, .. } => {
                let algorithm = self.config.inner.inner.algorithm;
                let read = |bytes: Vec<u8>| {
                    algorithm.read_letter(&mut postcard::Deserializer::from_bytes(&bytes)).ok()
                };
                let message = unhex(bytes).and_then(read);
                let message = message.ok_or_else(|| self.misread("the message"))?;
                (Event::Message { from: *from, message }, format!("{from} says {text}"), did)
            }
            What::Fired { timer, did, .. } => {
                let Some(tag) = self.armed.remove(timer) else {
                    let wrong = format!("the timer {timer} fires, which was not armed");
                    self.find(format!("{wrong}; {}", self.why_it_differs()));
                    return Ok(());
                };
                (Event::Timer(tag), format!("{timer} fires"), did)
            }
            What::Campaign { did, .. } => (Event::Campaign, "is to call an election".into(), did),
            What::Ordered { order, did, .. } => {
                (Event::Order(*order), format!("is ordered to {order}"), did)
            }
            What::Retired { did, .. } => (Event::Retired, "has stopped what ran".into(), did),
            What::Ended { .. } => {
                self.has_ended = true;
                return Ok(());
            }
            What::Leased { until, .. } => {
                if until.is_some_and(|until| until <= at) {
                    self.find("a lease is published that has run out".to_owned());
                }
                return Ok(());
            }
        };
        self.member.handle(&self.config, event, &mut self.effects);
        self.conclude(at, text, did);
        Ok(())
    }

    /// Compares what the member wants done with what it wanted then, and checks its promises.
    fn conclude(&mut self, at: u64, event: String, then: &[String]) {
        let did = told::<Process>(self.effects.list());
        if let Some(difference) = difference(then, &did) {
            self.find(format!("{event}: {difference}; {}", self.why_it_differs()));
        }
        let effects: Vec<EffectOf<Process>> = self.effects.drain().collect();
        for effect in &effects {
            self.check(effect);
        }
        let rules = self.effects.rules().to_vec();
        self.effects.clear();
        self.steps.push(Step { at, event, rules, did });
    }

    fn check(&mut self, effect: &EffectOf<Process>) {
        match effect {
            Effect::Persist(durable) => {
                let before = self.stored.replace(durable.clone());
                let Some(before) = before else { return };
                if durable.term() < before.term() {
                    self.find(format!(
                        "its term falls from {} to {}",
                        before.term(),
                        durable.term()
                    ));
                }
                let same_term = durable.term() == before.term();
                if same_term && before.vote().is_some() && durable.vote() != before.vote() {
                    self.find(format!("its vote of term {} changes", before.term()));
                }
            }
            Effect::Send { to, message } => self.check_pledge(*to, message.pledge()),
            Effect::SetTimer { timer, .. } => {
                self.armed.insert(name(timer), *timer);
            }
            Effect::CancelTimer(timer) => {
                self.armed.remove(&name(timer));
            }
            Effect::Announce(view) => {
                if view.leader.is_some() && view.leader != self.leader {
                    self.leader = view.leader;
                    self.leaders += 1;
                }
            }
            Effect::Inform(_) => {}
        }
    }

    /// What a message binds its sender to was stored before it.
    fn check_pledge(&mut self, to: NodeId, pledge: Option<Pledge>) {
        let stored = self.stored.as_ref();
        let term: Epoch = stored.map(Durable::term).unwrap_or_default();
        let vote = stored.and_then(Durable::vote);
        let kept = match pledge {
            Some(Pledge::Vote { term: of }) => term > of || (term == of && vote == Some(to)),
            Some(Pledge::Candidacy { term: of } | Pledge::Promise { term: of }) => term >= of,
            Some(Pledge::Release { .. }) | None => true,
        };
        if !kept {
            self.find(format!("a message to {to} leaves before what it depends on is stored"));
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

/// The first thing that a member did then and does not now, or the other way round.
fn difference(then: &[String], now: &[String]) -> Option<String> {
    let place = (0..then.len().max(now.len())).find(|&place| then.get(place) != now.get(place))?;
    let said = |effects: &[String]| {
        effects.get(place).map_or("nothing".to_owned(), |it| format!("`{it}`"))
    };
    let nth = place + 1;
    Some(format!("of what it did, number {nth} was {} then, and is {} now", said(then), said(now)))
}

fn name(timer: &impl Debug) -> String {
    format!("{timer:?}")
}

/// A lease, by its holder's own record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Whose.
    pub member: NodeId,
    /// Since when.
    pub from: u64,
    /// Until when: its deadline, or the moment at which its holder gave it up.
    pub until: u64,
}

/// The leases in a trace, one after the other. Renewals lengthen one.
pub fn leases(trace: &Trace) -> Vec<Held> {
    let mut held: Vec<Held> = Vec::new();
    let mut running = false;
    for record in &trace.records {
        let What::Leased { member, until } = record.what else { continue };
        match (until, held.last_mut().filter(|_| running)) {
            (Some(until), Some(last)) if record.at <= last.until => last.until = until,
            (Some(until), _) => held.push(Held { member, from: record.at, until }),
            (None, Some(last)) => last.until = last.until.min(record.at),
            (None, None) => {}
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
