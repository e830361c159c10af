//! Three members over a network that loses, duplicates, reorders and replays, whose processes are restarted, moved and
//! replaced while old ones still run.

mod recordings;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::algorithm::quorum::Stored;
use crate::algorithm::quorum::voter::{Message, Voter};
use crate::config::{Config, Mode, Timing};
use crate::host;
use crate::protocol::Message as _;
use crate::time::{Delay, Span};

const MEMBERS: u32 = 3;

type Process = Session<Voter>;
type Mail = Letter<Message>;

fn config() -> SessionConfig<Config> {
    let members = Members::range(1, MEMBERS).unwrap();
    let timing = Timing::for_transmission(Span::from_millis(1));
    let inner = Config::new(members.clone(), timing, Mode::Hardened);
    let round_trip = timing.reply();
    SessionConfig { inner, members, round_trip, background: true, rules: Rules::default() }
}

/// A process and the state of its host.
struct Host {
    process: Process,
    id: NodeId,
    address: SocketAddr,
    disk: Option<Kept<Stored>>,
    armed: BTreeSet<Timer<<Voter as Protocol>::Timer>>,
    notices: Vec<Notice>,
    /// What it has sent and the network has not yet taken.
    sent: Vec<(SocketAddr, NodeId, NodeId, Mail)>,
    /// Messages of the layer above that were passed on: those that it stored a vote for.
    runs: bool,
}

/// The first three hosts are the members' own; replaced processes follow them.
struct World {
    config: SessionConfig<Config>,
    hosts: Vec<Host>,
    starts: u64,
    /// Everything that was ever sent, with address, sender and receiver.
    sent: Vec<(SocketAddr, NodeId, NodeId, Mail)>,
    /// How much of it had been sent when the network last settled.
    settled: usize,
}

fn address(member: NodeId, moved: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, moved, member.0 as u8], 7400))
}

impl World {
    fn new() -> Self {
        Self::with(Rules::default())
    }

    fn with(rules: Rules) -> Self {
        let config = SessionConfig { rules, ..config() };
        let mut world = Self { config, hosts: Vec::new(), starts: 0, sent: Vec::new(), settled: 0 };
        for id in (1..=MEMBERS).map(NodeId) {
            let boot = Boot::new(Incarnation(1), None, Origin::Joining);
            let host = world.started(id, boot, address(id, 0));
            world.hosts.push(host);
        }
        world
    }

    fn started(&mut self, id: NodeId, boot: Boot<Kept<Stored>>, address: SocketAddr) -> Host {
        self.starts += 1;
        let session = SessionId::from_random(self.starts * 1_000 + u64::from(id.0));
        let disk = boot.durable.clone();
        let boot = Boot { session, time_of_day: PLAUSIBLE_TIMES.start, ..boot };
        let mut out = Effects::new();
        let process = Session::start(id, &self.config, boot, &mut out);
        let (armed, notices, sent) = (BTreeSet::new(), Vec::new(), Vec::new());
        let mut host = Host { process, id, address, disk, armed, notices, sent, runs: true };
        let Ok(()) = host::apply(out.drain(), &mut host);
        self.sent.append(&mut host.sent);
        host
    }

    fn happen(&mut self, place: usize, event: Event<Mail, Timer<<Voter as Protocol>::Timer>>) {
        let host = &mut self.hosts[place];
        if !host.runs {
            return;
        }
        let mut out = Effects::new();
        host.process.handle(&self.config, event, &mut out);
        let Ok(()) = host::apply(out.drain(), host);
        self.sent.append(&mut host.sent);
    }

    /// Delivers the letter with this number to the process at its destination.
    fn deliver(&mut self, number: usize) {
        self.deliver_from(Some(self.sent[number].0), number);
    }

    /// Delivers the letter with this number, as it arrives from `source`.
    fn deliver_from(&mut self, source: Option<SocketAddr>, number: usize) {
        let (_, from, to, mail) = self.sent[number].clone();
        let named = to.0 as usize - 1;
        let at = mail.destination();
        let is_there = |host: &Host| host.id == to && at.is_none_or(|at| host.address == at);
        let by_address = self.hosts.iter().position(is_there);
        if let Some(place) = if at.is_none() { Some(named) } else { by_address } {
            let message = mail.posted_from(source);
            self.happen(place, Event::Message { from, message });
        }
    }

    /// Delivers the next letter; if there is none, lets time pass. Returns the number of the one after it.
    fn deliver_next(&mut self, number: usize) -> usize {
        if number == self.sent.len() {
            self.fire_all();
        }
        self.deliver(number);
        number + 1
    }

    /// A time without faults: everything sent since the last one arrives, and all that follows from it.
    fn settle(&mut self) {
        for _ in 0..20 {
            while self.settled < self.sent.len() {
                self.settled += 1;
                self.deliver(self.settled - 1);
            }
            self.fire_all();
        }
    }

    fn fire_all(&mut self) {
        for place in 0..self.hosts.len() {
            for timer in self.hosts[place].armed.clone() {
                self.hosts[place].armed.remove(&timer);
                self.happen(place, Event::Timer(timer));
            }
        }
    }

    fn restart(&mut self, member: NodeId, moves: bool) {
        let place = member.0 as usize - 1;
        let Host { disk, address: at, .. } = &self.hosts[place];
        let (disk, mut at) = (disk.clone(), *at);
        if moves {
            at = address(member, 1 + self.starts as u8);
        }
        // Every start stores its incarnation; one that has not found it out yet has nothing to store.
        let last = self.hosts[place].process.kept.incarnation.0;
        let rejoins = self.hosts[place].process.kept.rejoining;
        let origin = if rejoins { Origin::Rejoining } else { Origin::Joining };
        let lost = rejoins && disk.is_none();
        let incarnation = Incarnation(if lost { 1 } else { last + 1 });
        let boot = Boot::new(incarnation, disk, origin);
        self.hosts[place] = self.started(member, boot, at);
    }

    /// The member's machine is replaced by one without a state, and still runs.
    fn replace(&mut self, member: NodeId) {
        let place = member.0 as usize - 1;
        let boot = Boot::new(Incarnation(1), None, Origin::Rejoining);
        let at = address(member, 1 + self.starts as u8);
        let new = self.started(member, boot, at);
        let old = std::mem::replace(&mut self.hosts[place], new);
        self.hosts.push(old);
    }

    fn have_all_met(&self) -> bool {
        let hosts = &self.hosts[..MEMBERS as usize];
        hosts.iter().all(|one| {
            hosts.iter().filter(|other| other.id != one.id).all(|other| {
                one.process.contact(other.id).is_some_and(|contact| {
                    contact.met.session == other.process.session
                        && contact.met.incarnation == other.process.incarnation()
                        && contact.address == Some(other.address)
                })
            })
        })
    }
}

impl host::Host<Process> for Host {
    type Error = Infallible;

    fn persist(&mut self, kept: <Process as Protocol>::Durable) -> Result<(), Infallible> {
        self.disk = Some(kept);
        Ok(())
    }

    fn send(&mut self, to: NodeId, message: Mail) -> Result<(), Infallible> {
        self.sent.push((self.address, self.id, to, message));
        Ok(())
    }

    fn arm(&mut self, timer: <Process as Protocol>::Timer, _: Delay) {
        self.armed.insert(timer);
    }

    fn cancel(&mut self, timer: <Process as Protocol>::Timer) {
        self.armed.remove(&timer);
    }

    fn announce(&mut self, _: View) {}

    fn inform(&mut self, notice: Notice) -> Result<(), Infallible> {
        self.runs &= !matches!(notice, Notice::Replaced { .. } | Notice::WrongClock);
        self.notices.push(notice);
        Ok(())
    }
}

#[test]
fn members_meet_store_that_and_find_each_other_after_a_move() {
    let mut world = World::new();
    assert!(!world.have_all_met());
    world.settle();
    assert!(world.have_all_met());
    let stored = world.hosts[0].disk.as_ref().unwrap().roster.get(NodeId(2)).unwrap();
    assert_eq!(stored.incarnation, Incarnation(1));
    assert_eq!(stored.session, world.hosts[1].process.session);
    world.restart(NodeId(2), true);
    world.settle();
    assert!(world.have_all_met(), "it has moved");
}

/// Where an attacker is, who has no key and answers nothing.
fn attacker() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 9999))
}

#[test]
fn a_meeting_is_stored_before_anything_is_said_in_it() {
    let mut world = World::new();
    for number in 0.. {
        if world.have_all_met() {
            break;
        }
        let (_, from, to, mail) = world.sent[number].clone();
        let place = to.0 as usize - 1;
        let before = world.hosts[place].process.contact(from);
        let mut out = Effects::new();
        let (source, _, _, _) = world.sent[number];
        let message = mail.posted_from(Some(source));
        world.hosts[place].process.handle(
            &world.config,
            Event::Message { from, message },
            &mut out,
        );
        if before.is_none() && world.hosts[place].process.contact(from).is_some() {
            let first = out.list().first();
            assert!(matches!(first, Some(Effect::Persist(_))), "{first:?}");
        }
        let Ok(()) = host::apply(out.drain(), &mut world.hosts[place]);
        world.sent.append(&mut world.hosts[place].sent);
    }
}

#[test]
fn a_peer_that_restarts_is_met_again_by_those_that_have_stored_its_session() {
    let mut world = World::new();
    world.settle();
    let session = world.hosts[1].process.session;
    world.restart(NodeId(1), false);
    world.settle();
    assert!(world.have_all_met());
    assert_eq!(world.hosts[0].process.contact(NodeId(2)).unwrap().met.session, session);
}

#[test]
fn a_member_that_is_founded_again_is_refused_though_all_others_have_restarted() {
    let mut world = World::new();
    world.settle();
    world.restart(NodeId(1), false);
    world.restart(NodeId(3), false);
    world.settle();
    world.hosts[1].disk = None;
    world.hosts[1].process.kept.incarnation = Incarnation(0);
    world.restart(NodeId(2), false);
    assert_eq!(world.hosts[1].process.incarnation(), Incarnation(1));
    world.settle();
    let refused = |notice: &Notice| matches!(notice, Notice::Replaced { .. });
    assert!(world.hosts[1].notices.iter().any(refused));
    assert!(!world.hosts[1].runs);
}

#[test]
fn of_a_clone_and_its_original_the_original_stops() {
    let mut world = World::new();
    world.settle();
    let disk = world.hosts[1].disk.clone();
    let incarnation = Incarnation(disk.as_ref().unwrap().incarnation.0 + 1);
    let boot = Boot::new(incarnation, disk, Origin::Joining);
    let clone = world.started(NodeId(2), boot, address(NodeId(2), 77));
    world.hosts.push(clone);
    world.settle();
    assert!(!world.hosts[1].runs && world.hosts[3].runs);
}

#[test]
fn a_rejoining_member_takes_an_incarnation_above_all_and_runs_when_all_have_stored_it() {
    let mut world = World::new();
    world.settle();
    for _ in 0..3 {
        world.restart(NodeId(2), false);
        world.settle();
    }
    // The members that have met it restart, and its machine is replaced; the old process still runs.
    world.restart(NodeId(1), false);
    world.restart(NodeId(3), false);
    world.replace(NodeId(2));
    assert_eq!(world.hosts[1].process.incarnation(), Incarnation(0));
    let mut next = 0;
    while world.hosts[1].process.inner().is_none() {
        next = world.deliver_next(next);
        if world.hosts[1].process.inner().is_some() {
            let mine = world.hosts[1].process.session;
            for other in [0, 2] {
                let stored = world.hosts[other].disk.as_ref().unwrap().roster.get(NodeId(2));
                assert_eq!(stored.unwrap().session, mine, "before it may vote");
            }
        }
    }
    assert_eq!(world.hosts[1].process.incarnation(), Incarnation(PLAUSIBLE_TIMES.start));
    world.settle();
    assert!(world.have_all_met());
    assert!(!world.hosts[3].runs, "the old process has been told to stop");
}

#[test]
fn a_restart_in_the_middle_of_rejoining_goes_on_from_what_was_stored() {
    let mut world = World::new();
    world.settle();
    world.replace(NodeId(2));
    let mut next = 0;
    while world.hosts[1].process.incarnation() == Incarnation(0) {
        next = world.deliver_next(next);
    }
    assert!(world.hosts[1].disk.as_ref().unwrap().rejoining);
    world.restart(NodeId(2), false);
    assert_eq!(world.hosts[1].process.incarnation(), Incarnation(PLAUSIBLE_TIMES.start + 1));
    assert!(world.hosts[1].process.inner().is_none(), "nobody has stored that one yet");
    world.settle();
    assert!(world.have_all_met() && world.hosts[1].process.inner().is_some());
}

#[test]
fn a_plainly_wrong_clock_is_refused() {
    for time_of_day in [PLAUSIBLE_TIMES.start - 1, PLAUSIBLE_TIMES.end, u32::MAX] {
        let boot = Boot::new(Incarnation(1), None, Origin::Rejoining);
        let mut out = Effects::new();
        let process = Process::start(NodeId(2), &config(), Boot { time_of_day, ..boot }, &mut out);
        assert_eq!(process.stage, Stage::Halted);
        assert_eq!(out.list(), [Effect::Inform(Notice::WrongClock)]);
    }
}

#[test]
fn a_single_member_waits_for_no_other() {
    let boot = Boot::new(Incarnation(1), None, Origin::Rejoining);
    let members = Members::range(2, 1).unwrap();
    let config = SessionConfig { members, ..config() };
    let boot = Boot { time_of_day: PLAUSIBLE_TIMES.start, ..boot };
    let process = Process::start(NodeId(2), &config, boot, &mut Effects::new());
    assert!(process.inner().is_some());
    assert_eq!(process.incarnation(), Incarnation(PLAUSIBLE_TIMES.start));
}

#[test]
fn two_that_rejoin_at_the_same_time_are_told_of_each_other() {
    // 1's list has been read before 3 is replaced; the old process of 3 answers in its place.
    let mut world = World::new();
    world.settle();
    world.replace(NodeId(2));
    world.settle();
    world.replace(NodeId(3));
    world.settle();
    assert!(world.have_all_met());
    assert!(world.hosts[..3].iter().all(|host| host.process.inner().is_some()));
    assert!(world.hosts[3..].iter().all(|host| !host.runs));
}

#[test]
fn the_fiftieth_member_fits_into_the_record() {
    let met = Met { incarnation: Incarnation(u32::MAX), session: SessionId::from_random(u64::MAX) };
    let roster: Roster = (1..=64).map(|id| (NodeId(u32::MAX - id), met)).collect();
    let stored = Stored::default();
    let kept = Kept { incarnation: met.incarnation, rejoining: true, roster, inner: Some(stored) };
    let bytes = postcard::to_allocvec(&kept).unwrap();
    assert!(bytes.len() < 1_300, "{} bytes", bytes.len());
    assert_eq!(postcard::from_bytes::<Kept<Stored>>(&bytes), Ok(kept));
}

/// One step of a random run.
#[derive(Clone, Debug)]
enum Step {
    /// A letter sent at any earlier time arrives, perhaps not for the first time.
    Deliver(Index),
    /// The letter sent last arrives.
    DeliverLatest,
    /// Every armed timer fires.
    Fire,
    /// The same, from the address of an attacker.
    Divert(Index),
    /// A member gets another address while it runs.
    Move(u32),
    /// A member crashes and comes back, here or elsewhere.
    Restart(u32, bool),
    /// A member's machine is replaced; the old one still runs.
    Replace(u32),
    /// A member campaigns, which all others learn.
    Campaign(u32),
}

fn any_step() -> impl Strategy<Value = Step> {
    let member = 1..=MEMBERS;
    prop_oneof![
        12 => any::<Index>().prop_map(Step::Deliver),
        16 => Just(Step::DeliverLatest),
        6 => any::<Index>().prop_map(Step::Divert),
        1 => member.clone().prop_map(Step::Move),
        3 => Just(Step::Fire),
        2 => (member.clone(), any::<bool>()).prop_map(|(member, moves)| Step::Restart(member, moves)),
        1 => member.clone().prop_map(Step::Replace),
        3 => member.prop_map(Step::Campaign),
    ]
}

proptest! {
    /// Under loss, duplication, delay, restarts and replacement, what was stored about a member never falls; and when
    /// the network settles, all present processes find each other and all old ones stop.
    #[test]
    fn in_the_end_all_find_each_other(steps in vec(any_step(), 1..150)) {
        let mut world = World::new();
        let mut stored = vec![Roster::default(); MEMBERS as usize];
        for step in steps {
            match step {
                Step::Deliver(index) => world.deliver(index.index(world.sent.len())),
                Step::DeliverLatest => world.deliver(world.sent.len() - 1),
                Step::Divert(index) => {
                    world.deliver_from(Some(attacker()), index.index(world.sent.len()));
                }
                Step::Move(member) => {
                    let at = address(NodeId(member), 100 + world.starts as u8);
                    world.hosts[member as usize - 1].address = at;
                }
                Step::Fire => world.fire_all(),
                Step::Restart(member, moves) => world.restart(NodeId(member), moves),
                // Two members that have lost their states wait for each other forever.
                Step::Replace(member) => {
                    let whole = |host: &Host| host.disk.is_some() && host.process.inner().is_some();
                    if world.hosts[..MEMBERS as usize].iter().all(whole) {
                        world.replace(NodeId(member));
                        stored[member as usize - 1] = Roster::default();
                    }
                }
                Step::Campaign(member) => world.happen(member as usize - 1, Event::Campaign),
            }
            for (before, host) in stored.iter_mut().zip(&world.hosts) {
                let Some(disk) = &host.disk else { continue };
                for (id, met) in before.iter() {
                    let now = disk.roster.get(id);
                    let same = now == Some(met);
                    prop_assert!(same || now.is_some_and(|now| now.incarnation > met.incarnation));
                }
                *before = disk.roster.clone();
            }
            for process in world.hosts.iter().map(|host| &host.process) {
                let addresses = (1..=MEMBERS).filter_map(|id| process.contact(NodeId(id))?.address);
                prop_assert!({ addresses }.all(|at| at != attacker()), "diverted");
            }
        }
        world.settle();
        world.settle();
        for place in 0..MEMBERS as usize {
            // A process that was refused, because a copy of it was met, is not started again.
            prop_assert!(world.hosts[place].runs, "{:?}", world.hosts[place].notices);
        }
        prop_assert!(world.have_all_met());
        prop_assert!(world.hosts[MEMBERS as usize..].iter().all(|old| !old.runs));
    }
}
