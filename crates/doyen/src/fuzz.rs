//! Fuzz targets, for a fuzzer (`fuzz/` at the top of the repository) and for tests, which run them on random bytes for a
//! limited time.
//!
//! - [`datagram`]: bytes from the network, and bytes that a sender with the key has sealed;
//! - [`election`]: three members of any algorithm as they run on a node. Messages are lost, duplicated, delayed, altered and
//!   forged, timers fire in any order, members crash and restart, and operators give any command.
//!
//! Nothing may panic, and nothing may be answered that must not be. The result of the election does not matter: a sender
//! with the key can ruin an election, like a user with root access.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;

use doyen_core::config::{Config, Mode, Timing};
use doyen_core::host::{Host, apply};
use doyen_core::layers::Layers;
use doyen_core::members::{Incarnation, Members, NodeId, SessionId};
use doyen_core::node::{Node, NodeConfig};
use doyen_core::protocol::{
    AdminCommand, Boot, Effect, EffectOf, Effects, Event, Notice, Origin, Protocol, View,
};
use doyen_core::registry::{Algorithm, AnyConfig, AnyProtocol, EarlierMessage};
use doyen_core::session::{PLAUSIBLE_TIMES, Session, SessionConfig};
use doyen_core::time::{Delay, Span};

use crate::key::Keyring;
use crate::node::wire::{Content, EARLIEST, Sealer, VERSION};

/// Enough members for a majority, and for a ring with a member between two others.
const MEMBERS: u32 = 3;

/// How many steps a run has at most.
const STEPS: usize = 400;

/// How many messages are in flight at most; the oldest are lost.
const IN_FLIGHT: usize = 64;

/// The largest number of 64 bits, as messages write it.
const LARGEST_64: [u8; 10] = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];

/// The largest number of 32 bits, as messages write it.
const LARGEST_32: [u8; 5] = [255, 255, 255, 255, 15];

const CLUSTER: &str = "fuzz";

/// The commands, each after its name. One that is left out does not compile.
macro_rules! every_command {
    ($($name:ident: $command:expr),* $(,)?) => {{
        let _ = |command| match command {
            $(AdminCommand::$name { .. } => {})*
        };
        [$($command),*]
    }};
}

/// An algorithm as it runs on a node.
type Process = Session<Node<AnyProtocol>>;

/// Receives bytes from the network: unsealed, and sealed by a sender with the key. Panics if a rule is broken.
pub fn datagram(bytes: &[u8]) {
    let mut raw = bytes.to_vec();
    assert!(sealer().open(&mut raw).is_err(), "{bytes:?} was taken for a datagram");
    let (config, both) = acquainted();
    for version in EARLIEST..=VERSION {
        let mut sealed = Vec::new();
        let write = |out: &mut Vec<u8>| out.extend_from_slice(bytes);
        sealer().enclose(version, &mut sealed, write).expect("there are random numbers");
        let Ok(opened) = sealer().open(&mut sealed) else { continue };
        let of_election = match opened.content {
            Content::Election(bytes) => {
                Algorithm::ALL.into_iter().for_each(|algorithm| decode(algorithm, bytes));
                true
            }
            Content::Greeting(_) | Content::Roster(_) | Content::Relay(_) | Content::Rider(_) => {
                false
            }
        };
        let from = opened.envelope.from;
        let letter = opened.into_letter_and_rider(Algorithm::Quorum, Some(address(from.0)));
        let Some((message, _)) = letter else { continue };
        for mut process in both.clone() {
            let mut out = Effects::new();
            process.handle(&config, Event::Message { from, message: message.clone() }, &mut out);
            let is_drop = |effect: &EffectOf<Process>| {
                matches!(effect, Effect::Inform(Notice::Dropped { .. }))
            };
            let dropped = out.list().iter().any(is_drop);
            let sent = out.list().iter().filter(|it| matches!(it, Effect::Send { .. })).count();
            let limit = if of_election && !dropped { usize::MAX } else { 3 };
            assert!(sent <= limit, "a question, an answer and a roster: {:?}", out.list());
        }
    }
}

/// Drives three members that run `algorithm` in hardened mode. Panics if a member does.
pub fn election(algorithm: Algorithm, bytes: &[u8]) {
    let mut tape = Tape(bytes);
    let mut world = World::new(algorithm, tape.next());
    for _ in 0..STEPS {
        if tape.0.is_empty() {
            return;
        }
        world.step(&mut tape);
    }
}

/// A message that can be decoded can be encoded, in no more bytes.
fn decode(algorithm: Algorithm, bytes: &[u8]) {
    if let Ok(packet) = algorithm.read_packet(&mut postcard::Deserializer::from_bytes(bytes)) {
        let again = postcard::to_allocvec(&packet).expect("what was decoded can be encoded");
        assert!(again.len() <= bytes.len(), "{packet:?} has grown");
    }
    let earlier = algorithm.read_earlier_packet(&mut postcard::Deserializer::from_bytes(bytes));
    if let Ok(packet) = earlier {
        let again = postcard::to_allocvec(&packet.map(EarlierMessage));
        assert!(
            again.expect("what was decoded can be encoded").len() <= bytes.len(),
            "it has grown"
        );
    }
}

fn sealer() -> Sealer {
    Sealer::new(&Keyring::open_to_all(), CLUSTER)
}

fn address(member: u32) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7400_u16.wrapping_add(member as u16)))
}

/// Two members of a quorum that have met. Their sessions have small numbers, which a fuzzer finds.
fn acquainted() -> (SessionConfig<NodeConfig<AnyConfig>>, [Process; 2]) {
    let config = config(Algorithm::Quorum, 0, 2);
    let mut letters = VecDeque::new();
    let mut both = [1_u32, 2].map(|member| {
        let boot = Boot::new(Incarnation(2), None, Origin::Joining);
        let boot = Boot { session: SessionId::from_random(u64::from(member)), ..boot };
        let mut out = Effects::new();
        let process = Process::start(NodeId(member), &config, boot, &mut out);
        letters.extend(out.drain().filter_map(|effect| match effect {
            Effect::Send { to, message } => Some((NodeId(member), to, message)),
            _ => None,
        }));
        process
    });
    for _ in 0..100 {
        let Some((from, to, message)) = letters.pop_front() else { break };
        let mut out = Effects::new();
        both[to.0 as usize - 1].handle(&config, Event::Message { from, message }, &mut out);
        letters.extend(out.drain().filter_map(|effect| match effect {
            Effect::Send { to: next, message } => Some((to, next, message)),
            _ => None,
        }));
    }
    assert!(both[0].contact(NodeId(2)).is_some() && both[1].contact(NodeId(1)).is_some());
    (config, both)
}

/// Bytes that are read as decisions; zeros at the end.
struct Tape<'a>(&'a [u8]);

impl<'a> Tape<'a> {
    fn next(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first
    }

    fn member(&mut self) -> usize {
        usize::from(self.next()) % MEMBERS as usize
    }

    fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Three members, their messages and their durable states.
struct World {
    config: SessionConfig<NodeConfig<AnyConfig>>,
    members: Vec<Member>,
    in_flight: VecDeque<Letter>,
    effects: Effects<Process>,
    /// How often members have been started.
    starts: u64,
}

struct Member {
    node: Process,
    armed: BTreeSet<<Process as Protocol>::Timer>,
    stored: Option<<Process as Protocol>::Durable>,
    incarnation: u32,
}

/// An encoded message, with sender and receiver.
struct Letter {
    from: NodeId,
    to: usize,
    bytes: Vec<u8>,
}

impl World {
    fn new(algorithm: Algorithm, flags: u8) -> Self {
        let config = config(algorithm, flags, MEMBERS);
        let mut effects = Effects::new();
        let mut in_flight = VecDeque::new();
        let members = (0..MEMBERS as usize).map(|position| {
            let boot = Boot::new(Incarnation(1), None, Origin::Joining);
            let boot = Boot { session: SessionId::from_random(position as u64 + 1), ..boot };
            let node = Process::start(id(position), &config, boot, &mut effects);
            let mut member = Member { node, armed: BTreeSet::new(), stored: None, incarnation: 1 };
            member.carry_out(algorithm, position, &mut effects, &mut in_flight);
            member
        });
        let members = members.collect();
        Self { config, members, in_flight, effects, starts: MEMBERS.into() }
    }

    fn step(&mut self, tape: &mut Tape<'_>) {
        match tape.next() % 10 {
            0..=2 => self.deliver(tape.next(), |_| {}),
            3 => {
                let (place, change) = (usize::from(tape.next()), tape.next());
                self.deliver(tape.next(), |bytes| alter(bytes, place, change));
            }
            4 => {
                let (from, to) = (NodeId(u32::from(tape.next() % 5)), tape.member());
                let length = usize::from(tape.next() % 64);
                let bytes = tape.take(length).to_vec();
                self.receive(&Letter { from, to, bytes });
            }
            5 | 6 => self.fire(tape.member(), tape.next()),
            7 => self.report(tape.member(), tape.next()),
            8 => self.command(tape.member(), tape.next(), tape.next()),
            _ => self.restart(tape.member(), tape.next()),
        }
    }

    /// Delivers a message, perhaps altered; sometimes it stays in flight, to arrive again.
    fn deliver(&mut self, which: u8, alter: impl FnOnce(&mut Vec<u8>)) {
        let Some(place) = usize::from(which).checked_rem(self.in_flight.len()) else { return };
        let Some(mut letter) = self.in_flight.remove(place) else { return };
        if which % 8 == 7 {
            let again = Letter { bytes: letter.bytes.clone(), ..letter };
            self.in_flight.push_back(again);
        }
        alter(&mut letter.bytes);
        self.receive(&letter);
    }

    fn receive(&mut self, letter: &Letter) {
        if let Some(message) = read(self.config.inner.inner.algorithm, &letter.bytes) {
            self.handle(letter.to, Event::Message { from: letter.from, message });
        }
    }

    fn fire(&mut self, member: usize, which: u8) {
        let armed = &mut self.members[member].armed;
        let Some(place) = usize::from(which).checked_rem(armed.len()) else { return };
        let timer = armed.iter().nth(place).copied();
        if let Some(timer) = timer.filter(|timer| armed.remove(timer)) {
            self.handle(member, Event::Timer(timer));
        }
    }

    fn report(&mut self, member: usize, what: u8) {
        let peer = id(usize::from(what) % MEMBERS as usize);
        let down = what >= 128;
        self.handle(member, if down { Event::PeerDown(peer) } else { Event::PeerUp(peer) });
    }

    fn command(&mut self, member: usize, what: u8, how: u8) {
        let to = NodeId(u32::from(how % 5));
        let lasting = Span::from_millis(u64::from(how) << 8);
        let commands = every_command! {
            Resign: AdminCommand::Resign,
            ShutDown: AdminCommand::ShutDown,
            GiveUp: AdminCommand::GiveUp,
            Transfer: AdminCommand::Transfer { to },
            Drain: AdminCommand::Drain {
                lasting: (how > 100).then_some(lasting),
                never: how > 200,
            },
            Undrain: AdminCommand::Undrain,
            Prefer: AdminCommand::Prefer { member: to, lasting },
            Attribute: AdminCommand::Attribute(i64::from_le_bytes([how; 8])),
            Pause: AdminCommand::Pause { lasting },
            Resume: AdminCommand::Resume,
            Snapshot: AdminCommand::Snapshot,
            Tell: AdminCommand::Tell { to },
        };
        let requests = [Event::Campaign, Event::Retired, Event::Request, Event::Exit];
        let mut events = requests.into_iter().chain(commands.map(Event::Command));
        let which = usize::from(what) % events.clone().count();
        let event = events.nth(which).expect("it is one of them");
        self.handle(member, event);
    }

    fn restart(&mut self, position: usize, how: u8) {
        let member = &mut self.members[position];
        // At the highest incarnation a member cannot start again.
        let Some(next) = member.incarnation.checked_add(1) else { return };
        member.incarnation = next;
        member.armed.clear();
        let origin = match how {
            0..16 => {
                member.stored = None;
                Origin::Rejoining
            }
            _ => Origin::Joining,
        };
        let incarnation = Incarnation(member.incarnation);
        self.starts += 1;
        let boot = Boot {
            session: SessionId::from_random(self.starts),
            time_of_day: PLAUSIBLE_TIMES.start,
            ..Boot::new(incarnation, member.stored.clone(), origin)
        };
        member.node = Process::start(id(position), &self.config, boot, &mut self.effects);
        let algorithm = self.config.inner.inner.algorithm;
        member.carry_out(algorithm, position, &mut self.effects, &mut self.in_flight);
    }

    fn handle(
        &mut self,
        position: usize,
        event: Event<<Process as Protocol>::Message, <Process as Protocol>::Timer>,
    ) {
        let member = &mut self.members[position];
        member.node.handle(&self.config, event, &mut self.effects);
        let algorithm = self.config.inner.inner.algorithm;
        member.carry_out(algorithm, position, &mut self.effects, &mut self.in_flight);
    }
}

impl Member {
    /// Carries out the effects of the member at `position`.
    fn carry_out(
        &mut self,
        algorithm: Algorithm,
        position: usize,
        effects: &mut Effects<Process>,
        in_flight: &mut VecDeque<Letter>,
    ) {
        let mut host = MemberHost { member: self, id: id(position), algorithm, in_flight };
        let Ok(()) = apply(effects.drain(), &mut host);
        effects.clear();
    }
}

/// The host of one member, for one event.
struct MemberHost<'w> {
    member: &'w mut Member,
    id: NodeId,
    algorithm: Algorithm,
    in_flight: &'w mut VecDeque<Letter>,
}

impl Host<Process> for MemberHost<'_> {
    type Error = Infallible;

    fn persist(&mut self, durable: <Process as Protocol>::Durable) -> Result<(), Infallible> {
        // Every start stores its incarnation, even one that has to ask for it.
        self.member.incarnation = durable.incarnation.0;
        self.member.stored = Some(durable);
        Ok(())
    }

    fn send(
        &mut self,
        to: NodeId,
        message: <Process as Protocol>::Message,
    ) -> Result<(), Infallible> {
        let bytes = postcard::to_allocvec(&message).expect("messages can be encoded");
        assert_eq!(read(self.algorithm, &bytes), Some(message), "and decoded");
        if self.in_flight.len() == IN_FLIGHT {
            self.in_flight.pop_front();
        }
        let to = (to.0 as usize - 1).min(MEMBERS as usize - 1);
        self.in_flight.push_back(Letter { from: self.id, to, bytes });
        Ok(())
    }

    fn arm(&mut self, timer: <Process as Protocol>::Timer, _: Delay) {
        self.member.armed.insert(timer);
    }

    fn cancel(&mut self, timer: <Process as Protocol>::Timer) {
        self.member.armed.remove(&timer);
    }

    fn announce(&mut self, _: View) {}

    fn inform(&mut self, _: Notice) -> Result<(), Infallible> {
        Ok(())
    }
}

fn read(algorithm: Algorithm, bytes: &[u8]) -> Option<<Process as Protocol>::Message> {
    algorithm.read_letter(&mut postcard::Deserializer::from_bytes(bytes)).ok()
}

/// Changes one byte, replaces it by the largest number, or cuts off the rest.
fn alter(bytes: &mut Vec<u8>, place: usize, change: u8) {
    let Some(place) = place.checked_rem(bytes.len()) else { return };
    match change {
        0 => drop(bytes.splice(place..=place, LARGEST_64)),
        1 => drop(bytes.splice(place..=place, LARGEST_32)),
        2 => bytes.truncate(place),
        _ => bytes[place] ^= change,
    }
}

fn id(position: usize) -> NodeId {
    NodeId(position as u32 + 1)
}

/// The configuration of a node; `flags` select variants.
fn config(algorithm: Algorithm, flags: u8, members: u32) -> SessionConfig<NodeConfig<AnyConfig>> {
    let members = Members::range(1, members).expect("there are some");
    let bare = Timing::for_transmission(Span::from_millis(10));
    let mut layers = Layers::of_node(algorithm, bare);
    if flags & 2 != 0 {
        // A quorum does not need these layers, but must work with them.
        (layers.link, layers.detector) = (true, Some(bare.heartbeat));
    }
    let timing = Timing { transmission: layers.transmission(), ..bare };
    let mut inner = Config::new(members, timing, Mode::Hardened);
    if flags & 1 != 0 {
        inner.quorum.probe = Some(Span::from_millis(100));
        inner.quorum.witnesses.insert(NodeId(1));
    }
    layers.process(AnyConfig { algorithm, inner })
}

#[cfg(test)]
mod tests;
