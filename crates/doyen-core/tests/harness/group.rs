//! A host for a whole group: virtual clock, perfect network, disks that a command can lose.

use std::collections::{BTreeMap, BTreeSet};

use doyen_core::config::Config;
use doyen_core::host::{self, apply};
use doyen_core::members::{Incarnation, NodeId};
use doyen_core::protocol::{
    Boot, Class, Effect, Effects, Event, Kind, Message, Notice, Origin, Protocol, View, name_of,
};
use doyen_core::registry::{AnyConfig, AnyDurable, AnyMessage, AnyProtocol, AnyTimer};
use doyen_core::time::{Delay, Span};

use super::stored;
use super::time::{D, Time};
use super::transcript::{Line, Scene, Transcript, moves, noun, verb};

/// A run that is not quiet after this many events is ended.
const PATIENCE: usize = 2_000;

/// The members, the messages in flight, and the transcript.
#[derive(Debug)]
pub(super) struct Group {
    config: AnyConfig,
    /// These are configured for another cluster.
    foreign: BTreeSet<NodeId>,
    foreign_config: AnyConfig,
    now: Time,
    hosts: BTreeMap<NodeId, Host>,
    in_flight: Vec<Flight>,
    links: BTreeMap<(NodeId, NodeId), Link>,
    effects: Effects<AnyProtocol>,
    tally: Tally,
    elections: u32,
    /// Whether a member has asked to enter the critical section.
    has_section: bool,
    /// Numbers messages and timers, so that the older comes first.
    sequence: u64,
    transcript: Transcript,
}

#[derive(Debug)]
struct Host {
    /// The member, if it is alive.
    member: Option<AnyProtocol>,
    incarnation: Incarnation,
    disk: Option<AnyDurable>,
    /// Its disk was lost, and it has stored nothing since.
    lost: bool,
    /// A copy of the disk, made earlier.
    copy: Option<AnyDurable>,
    timers: BTreeMap<AnyTimer, Alarm>,
    /// It crashes after this many sends and stores caused by the next event.
    doom: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Alarm {
    at: Time,
    sequence: u64,
}

#[derive(Clone, Debug)]
struct Flight {
    arrives: Time,
    sequence: u64,
    from: NodeId,
    to: NodeId,
    /// The incarnation it was sent to: the same member after a restart does not get it.
    incarnation: Incarnation,
    message: AnyMessage,
}

/// The disk of a member that starts again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Disk {
    /// The disk as it was.
    #[default]
    Kept,
    /// An empty disk.
    Fresh,
    /// The copy.
    Old,
}

/// How a link differs from "everything takes D".
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Link {
    /// Everything takes this long.
    Delay(Span),
    /// Messages of these kinds do not pass.
    Loses(Vec<String>),
    /// Nothing passes.
    Cut,
}

/// Messages sent, by kind, and whether their receiver was dead.
type Tally = BTreeMap<(usize, bool), u32>;

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Arrival(usize),
    Timer(NodeId, AnyTimer),
}

impl Group {
    /// Founds a group: all but the `dead` start at time zero.
    pub(super) fn found(
        config: AnyConfig,
        dead: &BTreeSet<NodeId>,
        foreign: BTreeSet<NodeId>,
        leader: Option<NodeId>,
    ) -> Self {
        let absent = || Host {
            member: None,
            incarnation: Incarnation::default(),
            disk: None,
            lost: false,
            copy: None,
            timers: BTreeMap::new(),
            doom: None,
        };
        let hosts = config.inner.members.iter().map(|id| (id, absent())).collect();
        let mut foreign_config = config.clone();
        foreign_config.inner.quorum.cluster += 1;
        let mut group = Self {
            config,
            foreign,
            foreign_config,
            now: Time::default(),
            hosts,
            in_flight: Vec::new(),
            links: BTreeMap::new(),
            effects: Effects::new(),
            tally: Tally::new(),
            elections: 0,
            has_section: false,
            sequence: 0,
            transcript: Transcript::default(),
        };
        // A founding leader starts last, so that all members receive its first message.
        let mut founders: Vec<NodeId> = group.hosts.keys().copied().collect();
        founders.sort_by_key(|&id| Some(id) == leader);
        for id in founders.into_iter().filter(|id| !dead.contains(id)) {
            group.start(id, Origin::Founding { leader }, "started");
        }
        group.transcript.drop_uneventful();
        group
    }

    /// The configuration of the members.
    pub(super) fn config(&self) -> &Config {
        &self.config.inner
    }

    /// The transcript since the last call.
    pub(super) fn take_transcript(&mut self) -> String {
        self.transcript.take()
    }

    /// Lets `event` happen to `id`; the transcript calls it `what`.
    pub(super) fn happen(
        &mut self,
        id: NodeId,
        what: String,
        event: Event<AnyMessage, AnyTimer>,
    ) -> Result<(), String> {
        self.alive(id)?;
        self.handle(id, Scene::Happened(vec![id], what), event);
        Ok(())
    }

    /// Ends `id`. Its timers end with it; what it has sent is still in flight.
    pub(super) fn crash(&mut self, id: NodeId) -> Result<(), String> {
        self.alive(id)?;
        self.end(id);
        self.tell_of(vec![id], "crashed");
        Ok(())
    }

    /// Lets `id` crash in the middle of the next event: after this many sends and stores.
    pub(super) fn doom(&mut self, id: NodeId, acts: usize) -> Result<(), String> {
        self.host(id).doom = Some(acts);
        Ok(())
    }

    /// Keeps a copy of the disk of `id`.
    pub(super) fn snapshot(&mut self, id: NodeId) {
        let host = self.host(id);
        host.copy = host.disk.clone();
    }

    /// Starts `id` again, with this `disk`.
    pub(super) fn restart(&mut self, id: NodeId, disk: Disk) -> Result<(), String> {
        if self.alive(id).is_ok() {
            return Err(format!("{id} is alive"));
        }
        let host = self.host(id);
        let (origin, what) = match disk {
            Disk::Kept if host.lost => (Origin::Rejoining, "restarted, its disk still lost"),
            Disk::Kept => (Origin::Joining, "restarted"),
            Disk::Fresh => {
                (host.disk, host.lost) = (None, true);
                (Origin::Rejoining, "restarted, its disk lost")
            }
            Disk::Old => {
                (host.disk, host.lost) = (host.copy.clone(), false);
                (Origin::Joining, "restarted, its disk an old copy")
            }
        };
        self.start(id, origin, what);
        Ok(())
    }

    /// Loses the first message in flight that matches.
    pub(super) fn drop(
        &mut self,
        from: NodeId,
        to: NodeId,
        kind: Option<&str>,
    ) -> Result<(), String> {
        let index = self.find(from, to, kind)?;
        let lost = self.in_flight.remove(index);
        self.tell_of_message(&lost, "is lost".to_owned());
        Ok(())
    }

    /// Lets the first message in flight that matches arrive now, even if its receiver has restarted. If it `stays`, it
    /// will arrive again.
    pub(super) fn deliver(
        &mut self,
        from: NodeId,
        to: NodeId,
        what: Option<&str>,
        stays: bool,
    ) -> Result<(), String> {
        let index = self.find(from, to, what)?;
        self.in_flight[index].incarnation = self.hosts[&to].incarnation;
        if stays {
            let double = self.in_flight[index].clone();
            self.in_flight.insert(index + 1, double);
        }
        self.play(self.now, Next::Arrival(index));
        Ok(())
    }

    /// Lets a timer of `id` fire now, whenever it is due.
    pub(super) fn expire(&mut self, id: NodeId, wanted: &str) -> Result<(), String> {
        let is_wanted = |timer: &AnyTimer| name(timer) == wanted || format!("{timer:?}") == wanted;
        let timer = self.hosts[&id].timers.keys().copied().find(is_wanted);
        let timer = timer.ok_or_else(|| format!("{id} has no timer {wanted} armed"))?;
        self.play(self.now, Next::Timer(id, timer));
        Ok(())
    }

    /// Lets the first message in flight that matches arrive at `arrives`.
    pub(super) fn delay(
        &mut self,
        from: NodeId,
        to: NodeId,
        kind: &str,
        arrives: Time,
    ) -> Result<(), String> {
        if arrives < self.now {
            return Err(format!("it is {} already", self.now));
        }
        let index = self.find(from, to, Some(kind))?;
        self.in_flight[index].arrives = arrives;
        let line = Line {
            at: self.now,
            scene: Scene::Message(vec![from], vec![to], self.in_flight[index].message.to_string()),
            rules: vec![],
            outcome: vec![format!("will arrive at {arrives}")],
        };
        self.transcript.tell(line);
        Ok(())
    }

    /// Sets the link from `from` to `to`; `None` is "everything takes D".
    pub(super) fn set_link(&mut self, from: NodeId, to: NodeId, link: Option<Link>) {
        match link {
            Some(link) => self.links.insert((from, to), link),
            None => self.links.remove(&(from, to)),
        };
    }

    /// Cuts every link between `side` and the other members.
    pub(super) fn partition(&mut self, side: &BTreeSet<NodeId>) {
        let ids: Vec<NodeId> = self.hosts.keys().copied().collect();
        for &from in &ids {
            for &to in &ids {
                if side.contains(&from) != side.contains(&to) {
                    self.set_link(from, to, Some(Link::Cut));
                }
            }
        }
    }

    /// Makes every link take D again.
    pub(super) fn heal(&mut self) {
        self.links.clear();
    }

    /// Runs until it is quiet, or up to and including `until`.
    pub(super) fn run(&mut self, until: Option<Time>) -> String {
        for _ in 0..PATIENCE {
            let due = match until {
                Some(until) => self.next().filter(|&(at, _)| at <= until),
                None if self.is_quiet() => None,
                None => self.next(),
            };
            let Some((at, next)) = due else {
                let ending = until.is_none().then(|| format!("t={}  quiet\n", self.now));
                self.now = until.unwrap_or_default().max(self.now);
                return self.transcript.take() + &ending.unwrap_or_default();
            };
            self.play(at, next);
        }
        format!("{}t={}  still busy after {PATIENCE} events\n", self.transcript.take(), self.now)
    }

    /// Runs `count` events.
    pub(super) fn step(&mut self, count: usize) -> Result<(), String> {
        for _ in 0..count {
            let (at, next) = self.next().ok_or("nothing is left to happen")?;
            self.play(at, next);
        }
        Ok(())
    }

    /// The view of each member.
    pub(super) fn views(&self) -> String {
        let mut text = String::new();
        for (id, host) in &self.hosts {
            let belief =
                host.member.as_ref().map_or("dead".to_owned(), |m| match self.has_section {
                    true => m.view().section.to_string(),
                    false => noun(m.view()),
                });
            text += &format!("{id}: {belief}\n");
        }
        text
    }

    /// Messages sent, by class, and elections called.
    pub(super) fn count(&self) -> String {
        let kinds = AnyProtocol::kinds(&self.config);
        let mut text =
            self.account("messages", |kind, dead| kind.class == Class::Algorithm && !dead);
        for (name, class) in [("link", Class::Link), ("detector", Class::Detector)] {
            if self.tally.keys().any(|&(kind, dead)| !dead && kinds[kind].class == class) {
                text += &self.account(name, |kind, dead| kind.class == class && !dead);
            }
        }
        if self.tally.keys().any(|&(_, dead)| dead) {
            text += &self.account("to dead members", |_, dead| dead);
        }
        text + &format!("elections: {}\n", self.elections)
    }

    fn account(&self, title: &str, counts: impl Fn(Kind, bool) -> bool) -> String {
        let mut total = 0;
        let mut parts = Vec::new();
        let kinds = AnyProtocol::kinds(&self.config);
        for (&(kind, dead), &sent) in &self.tally {
            if counts(kinds[kind], dead) {
                total += sent;
                parts.push(format!("{sent} {}", kinds[kind].name));
            }
        }
        match parts.as_slice() {
            [] => format!("{title}: 0\n"),
            [part] => format!("{title}: {part}\n"),
            _ => format!("{title}: {total} = {}\n", parts.join(" + ")),
        }
    }

    fn host(&mut self, id: NodeId) -> &mut Host {
        self.hosts.get_mut(&id).expect("commands name members")
    }

    fn alive(&self, id: NodeId) -> Result<(), String> {
        match self.hosts[&id].member {
            Some(_) => Ok(()),
            None => Err(format!("{id} is dead")),
        }
    }

    /// The first message in flight from `from` to `to`, of this kind or with this text, if one is given.
    fn find(&self, from: NodeId, to: NodeId, what: Option<&str>) -> Result<usize, String> {
        let fits = |message: &AnyMessage, what: &str| {
            name_of(message) == what || message.to_string() == what
        };
        self.in_flight
            .iter()
            .position(|flight| {
                (flight.from, flight.to) == (from, to)
                    && what.is_none_or(|what| fits(&flight.message, what))
            })
            .ok_or_else(|| format!("no {} is in flight {from}→{to}", what.unwrap_or("message")))
    }

    /// Removes all of `id` but its disk.
    fn end(&mut self, id: NodeId) {
        let host = self.host(id);
        host.member = None;
        host.timers.clear();
    }

    fn is_quiet(&self) -> bool {
        let mut armed = self.hosts.values().flat_map(|host| host.timers.keys());
        self.in_flight.is_empty() && armed.all(|&timer| AnyProtocol::is_background(timer))
    }

    /// The next event and its time: messages first, by kind and age, then timers by age.
    fn next(&self) -> Option<(Time, Next)> {
        let arrivals = self.in_flight.iter().enumerate().map(|(index, flight)| {
            let kind = AnyProtocol::kind_index(&self.config, &flight.message);
            ((flight.arrives, 0, kind, flight.sequence), Next::Arrival(index))
        });
        let alarms = self.hosts.iter().flat_map(|(&id, host)| {
            host.timers.iter().map(move |(&timer, alarm)| {
                ((alarm.at, 1, 0, alarm.sequence), Next::Timer(id, timer))
            })
        });
        let (order, next) = arrivals.chain(alarms).min_by_key(|&(order, _)| order)?;
        Some((order.0, next))
    }

    fn play(&mut self, at: Time, next: Next) {
        self.now = at;
        match next {
            Next::Timer(id, timer) => {
                self.host(id).timers.remove(&timer);
                let scene = Scene::Happened(vec![id], format!("⏲{} fires", name(timer)));
                self.handle(id, scene, Event::Timer(timer));
            }
            Next::Arrival(index) => {
                let flight = self.in_flight.remove(index);
                let (from, to) = (flight.from, flight.to);
                let host = self.host(to);
                if host.member.is_none() {
                    self.tell_of_message(&flight, format!("in vain: {to} is dead"));
                } else if host.incarnation != flight.incarnation {
                    self.tell_of_message(&flight, format!("in vain: {to} has restarted since"));
                } else {
                    let scene = Scene::Message(vec![from], vec![to], flight.message.to_string());
                    self.handle(to, scene, Event::Message { from, message: flight.message });
                }
            }
        }
    }

    fn start(&mut self, id: NodeId, origin: Origin, what: &str) {
        let host = self.hosts.get_mut(&id).expect("commands name members");
        host.incarnation.0 += 1;
        let boot = Boot::new(host.incarnation, host.disk.clone(), origin);
        let config = match self.foreign.contains(&id) {
            true => &self.foreign_config,
            false => &self.config,
        };
        let member = AnyProtocol::start(id, config, boot, &mut self.effects);
        let belief = (!matches!(origin, Origin::Founding { .. })).then(|| verb(member.view()));
        host.member = Some(member);
        self.carry_out(id, Scene::Happened(vec![id], what.to_owned()), belief);
    }

    fn handle(&mut self, id: NodeId, scene: Scene, event: Event<AnyMessage, AnyTimer>) {
        let host = self.hosts.get_mut(&id).expect("commands name members");
        let member = host.member.as_mut().expect("only live members are told of anything");
        let before = member.view();
        self.has_section |= event == Event::Request;
        let config = match self.foreign.contains(&id) {
            true => &self.foreign_config,
            false => &self.config,
        };
        member.handle(config, event, &mut self.effects);
        let after = member.view();
        let announced = self.effects.list().iter().rev().find_map(|effect| match effect {
            Effect::Announce(view) => Some(*view),
            _ => None,
        });
        let expected = (after != before).then_some(after);
        assert_eq!(announced, expected, "{id} must announce its view when it changes");
        let belief = announced.map(|view| match view.section == before.section {
            true => verb(view),
            false => moves(view.section),
        });
        self.carry_out(id, scene, belief);
    }

    /// Carries out the effects of `id`, and records them.
    fn carry_out(&mut self, id: NodeId, scene: Scene, belief: Option<String>) {
        let rules = self.effects.rules().to_vec();
        self.elections += self.effects.elections();
        let mut effects = std::mem::take(&mut self.effects);
        let crash_after = self.host(id).doom.take();
        let mut host = MemberHost {
            group: self,
            id,
            crash_after,
            outcome: Vec::from_iter(belief),
            sends: Vec::new(),
            timers: BTreeMap::new(),
        };
        let crashed = apply(effects.drain(), &mut host).is_err();
        let MemberHost { mut outcome, sends, timers, .. } = host;
        outcome.extend(sends.iter().map(|(text, to)| format!("{text} →{}", to.join(","))));
        if crashed {
            self.end(id);
            outcome.push("crashed on the way".to_owned());
        } else {
            outcome.extend(timers.into_values());
        }
        effects.clear();
        self.effects = effects;
        self.transcript.tell(Line { at: self.now, scene, rules, outcome });
    }

    /// Sends, and returns whether the link lets it pass.
    fn send(&mut self, from: NodeId, to: NodeId, message: AnyMessage) -> bool {
        let encoded = postcard::to_allocvec(&message).expect("messages can be encoded");
        assert_eq!(message.encoded_len(), encoded.len(), "the computed size of {message}");
        let dead = self.alive(to).is_err();
        *self.tally.entry((AnyProtocol::kind_index(&self.config, &message), dead)).or_default() +=
            1;
        let takes = match self.links.get(&(from, to)) {
            Some(Link::Cut) => return false,
            Some(Link::Loses(kinds)) if kinds.iter().any(|kind| kind == name_of(&message)) => {
                return false;
            }
            Some(Link::Delay(takes)) => *takes,
            Some(Link::Loses(_)) | None => D,
        };
        let flight = Flight {
            arrives: self.now.after(takes),
            sequence: self.number(),
            from,
            to,
            incarnation: self.hosts[&to].incarnation,
            message,
        };
        self.in_flight.push(flight);
        true
    }

    fn arm(&mut self, id: NodeId, timer: AnyTimer, after: Span) -> Time {
        let alarm = Alarm { at: self.now.after(after), sequence: self.number() };
        self.host(id).timers.insert(timer, alarm);
        alarm.at
    }

    fn number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn tell_of(&mut self, who: Vec<NodeId>, what: &str) {
        let scene = Scene::Happened(who, what.to_owned());
        self.transcript.tell(Line { at: self.now, scene, rules: vec![], outcome: vec![] });
    }

    fn tell_of_message(&mut self, flight: &Flight, outcome: String) {
        let scene = Scene::Message(vec![flight.from], vec![flight.to], flight.message.to_string());
        let line = Line { at: self.now, scene, rules: vec![], outcome: vec![outcome] };
        self.transcript.tell(line);
    }
}

/// The host of one member, for one event.
struct MemberHost<'g> {
    group: &'g mut Group,
    id: NodeId,
    /// It crashes after this many more sends and stores.
    crash_after: Option<usize>,
    /// What is recorded about it: in order, but messages and timers come last.
    outcome: Vec<String>,
    sends: Vec<(String, Vec<String>)>,
    timers: BTreeMap<AnyTimer, String>,
}

/// The member crashes in the middle of an event.
struct Crashed;

impl MemberHost<'_> {
    fn count(&mut self) -> Result<(), Crashed> {
        let Some(left) = &mut self.crash_after else { return Ok(()) };
        *left -= 1;
        if *left == 0 { Err(Crashed) } else { Ok(()) }
    }
}

impl host::Host<AnyProtocol> for MemberHost<'_> {
    type Error = Crashed;

    fn persist(&mut self, durable: AnyDurable) -> Result<(), Crashed> {
        self.outcome.push(format!("stores {}", stored(&durable)));
        let host = self.group.host(self.id);
        (host.disk, host.lost) = (Some(durable), false);
        self.count()
    }

    fn send(&mut self, to: NodeId, message: AnyMessage) -> Result<(), Crashed> {
        let text = message.to_string();
        let receiver = match self.group.send(self.id, to, message) {
            true => to.to_string(),
            false => format!("{to}(cut)"),
        };
        match self.sends.iter_mut().find(|(sent, _)| *sent == text) {
            Some((_, receivers)) => receivers.push(receiver),
            None => self.sends.push((text, vec![receiver])),
        }
        self.count()
    }

    fn arm(&mut self, timer: AnyTimer, after: Delay) {
        let at = self.group.arm(self.id, timer, after.min);
        self.timers.insert(timer, format!("⏲{}@{at}", name(timer)));
    }

    fn cancel(&mut self, timer: AnyTimer) {
        if self.group.host(self.id).timers.remove(&timer).is_some() {
            self.timers.insert(timer, format!("⏲{} off", name(timer)));
        }
    }

    fn announce(&mut self, _: View) {}

    fn inform(&mut self, notice: Notice) -> Result<(), Crashed> {
        self.outcome.push(told(notice));
        Ok(())
    }
}

/// The text of a notice.
fn told(notice: Notice) -> String {
    match notice {
        Notice::Down(peer) => format!("gives {peer} up"),
        Notice::Up(peer) => format!("hears {peer} again"),
        Notice::Changed(change) => format!("({change})"),
        Notice::Refused(why) => format!("refuses: {why}"),
        Notice::ForeignConfiguration(peer) => format!("ignores {peer}, configured otherwise"),
        Notice::StateIsOld { seen, by } => format!("halts: {by} has heard it in term {seen}"),
        Notice::NoOtherMember => {
            "halts: no other member knows which terms there have been".to_owned()
        }
        Notice::Paused { by, left } => format!("elections are paused for {left} (command at {by})"),
        Notice::Resumed { by: Some(by) } => format!("elections are resumed (command at {by})"),
        Notice::Resumed { by: None } => "elections are resumed: the pause is over".to_owned(),
        Notice::Recorded { .. } | Notice::ChannelRecorded { .. } => "records".to_owned(),
        Notice::OutOfTerms => "no term is left".to_owned(),
        Notice::Replaced { seen, by } => format!("halts: {by} has met incarnation {}", seen.0),
        Notice::WrongClock => "halts: its clock is wrong".to_owned(),
        Notice::Dropped { from, why } => format!("drops a letter of {from}: {why:?}"),
        Notice::Unsent(peer) => format!("has not met {peer} yet"),
    }
}

/// The name of a timer; that of a background timer without the wrapper.
fn name<T: std::fmt::Debug>(timer: T) -> String {
    let name = format!("{timer:?}");
    let name = match name.split_once("NodeId(") {
        Some((kind, id)) => kind.to_owned() + &id.replacen(')', "", 1),
        None => name,
    };
    match name.strip_prefix("Background(").and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => inner.to_owned(),
        None => name,
    }
}
