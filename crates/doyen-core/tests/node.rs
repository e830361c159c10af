//! Nodes in a small simulation: an event loop with a virtual clock, disks, and a network that is reliable or not.

use std::collections::BTreeMap;
use std::convert::Infallible;

use doyen_core::algorithm::bully::Bully;
use doyen_core::config::{Config, Mode, Timing};
use doyen_core::detector::DetectorConfig;
use doyen_core::host::{Host, apply};
use doyen_core::link::LinkConfig;
use doyen_core::members::{Incarnation, Members, NodeId};
use doyen_core::node::{Node, NodeConfig};
use doyen_core::protocol::{
    Boot, Class, Effects, Event, Message, Notice, Origin, Protocol, Role, View,
};
use doyen_core::time::{Delay, Span};
use proptest::collection::vec;
use proptest::prelude::*;

/// The longest one-way time that members assume.
const D: Span = Span::from_millis(1);

/// What the network does to messages.
#[derive(Clone, Copy, Debug)]
struct Network {
    /// The range of delays.
    delay: (Span, Span),
    /// The percentage of messages lost.
    loss: u64,
    /// The percentage of messages duplicated.
    duplication: u64,
}

const RELIABLE: Network = Network { delay: (D, D), loss: 0, duplication: 0 };
const CUT: Network = Network { loss: 100, ..RELIABLE };
const LOSSY: Network =
    Network { delay: (Span::ZERO, Span::from_millis(9)), loss: 40, duplication: 20 };

/// What is due at one instant: messages before timers, then in the order in which they were planned.
type Due = (Span, Order, u64);

type EventOf<P> = Event<<P as Protocol>::Message, <P as Protocol>::Timer>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    Message,
    Timer,
}

struct World<P: Protocol> {
    config: P::Config,
    now: Span,
    planned: u64,
    agenda: BTreeMap<Due, (NodeId, EventOf<P>)>,
    timers: BTreeMap<(NodeId, P::Timer), Due>,
    members: BTreeMap<NodeId, P>,
    disks: BTreeMap<NodeId, (Incarnation, Option<P::Durable>)>,
    network: Network,
    /// The state of a small generator of random numbers.
    random: u64,
    sent: Vec<(Span, NodeId, NodeId, P::Message)>,
    notices: Vec<(Span, NodeId, Notice)>,
}

impl<P: Protocol> World<P> {
    /// `count` members that start together under the highest.
    fn new(config: P::Config, count: u32, network: Network) -> Self {
        let mut world = Self {
            config,
            now: Span::ZERO,
            planned: 0,
            agenda: BTreeMap::new(),
            timers: BTreeMap::new(),
            members: BTreeMap::new(),
            disks: BTreeMap::new(),
            network,
            random: 0,
            sent: Vec::new(),
            notices: Vec::new(),
        };
        let origin = Origin::Founding { leader: Some(NodeId(count)) };
        for id in (1..=count).map(NodeId) {
            world.start(id, origin);
        }
        world
    }

    fn start(&mut self, id: NodeId, origin: Origin) {
        let (incarnation, durable) = self.disks.entry(id).or_default();
        incarnation.0 += 1;
        let boot = Boot::new(*incarnation, durable.clone(), origin);
        let mut out = Effects::new();
        let member = P::start(id, &self.config, boot, &mut out);
        self.members.insert(id, member);
        self.carry_out(id, &mut out);
    }

    fn stop(&mut self, id: NodeId) {
        self.members.remove(&id);
        self.timers.retain(|&(owner, _), due| owner != id || self.agenda.remove(due).is_none());
    }

    fn tell(&mut self, id: NodeId, event: EventOf<P>) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let mut out = Effects::new();
        member.handle(&self.config, event, &mut out);
        self.carry_out(id, &mut out);
    }

    fn run_until(&mut self, end: Span) {
        while let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= end
        {
            let (due, (id, event)) = entry.remove_entry();
            self.now = due.0;
            if let Event::Timer(timer) = event {
                self.timers.remove(&(id, timer));
            }
            self.tell(id, event);
        }
        self.now = end;
    }

    fn carry_out(&mut self, id: NodeId, out: &mut Effects<P>) {
        let Ok(()) = apply(out.drain(), &mut MemberHost { world: self, id });
    }

    fn transmit(&mut self, from: NodeId, to: NodeId, message: &P::Message) {
        let Network { delay: (shortest, longest), loss, duplication } = self.network;
        let copies = if self.draw(100) < duplication { 2 } else { 1 };
        for _ in 0..copies {
            let spread = longest.as_nanos() - shortest.as_nanos();
            let delay = shortest + Span::from_nanos(self.draw(spread + 1));
            if self.draw(100) >= loss {
                let event = Event::Message { from, message: message.clone() };
                self.plan(delay, Order::Message, to, event);
            }
        }
    }

    /// A number below `end`, by splitmix64.
    fn draw(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn plan(&mut self, after: Span, order: Order, id: NodeId, event: EventOf<P>) -> Due {
        self.planned += 1;
        let due = (self.now + after, order, self.planned);
        self.agenda.insert(due, (id, event));
        due
    }

    fn disarm(&mut self, id: NodeId, timer: P::Timer) {
        if let Some(due) = self.timers.remove(&(id, timer)) {
            self.agenda.remove(&due);
        }
    }

    /// All members follow `leader`, and none takes part in an election.
    fn all_follow(&self, leader: NodeId) -> bool {
        self.members.iter().all(|(&id, member)| {
            let role = if id == leader { Role::Leader } else { Role::Follower };
            member.view().leader == Some(leader) && member.view().role == role
        })
    }

    /// How many messages of `class` were sent to live members.
    fn count(&self, class: Class) -> usize {
        let of_class = |message: &P::Message| message.kind().class == class;
        let counts = self
            .sent
            .iter()
            .filter(|(_, _, to, message)| self.members.contains_key(to) && of_class(message));
        counts.count()
    }
}

/// The host of one member, for one event.
struct MemberHost<'w, P: Protocol> {
    world: &'w mut World<P>,
    id: NodeId,
}

impl<P: Protocol> Host<P> for MemberHost<'_, P> {
    type Error = Infallible;

    fn persist(&mut self, durable: P::Durable) -> Result<(), Infallible> {
        self.world.disks.entry(self.id).or_default().1 = Some(durable);
        Ok(())
    }

    fn send(&mut self, to: NodeId, message: P::Message) -> Result<(), Infallible> {
        self.world.transmit(self.id, to, &message);
        self.world.sent.push((self.world.now, self.id, to, message));
        Ok(())
    }

    fn arm(&mut self, timer: P::Timer, after: Delay) {
        self.world.disarm(self.id, timer);
        let due = self.world.plan(after.min, Order::Timer, self.id, Event::Timer(timer));
        self.world.timers.insert((self.id, timer), due);
    }

    fn cancel(&mut self, timer: P::Timer) {
        self.world.disarm(self.id, timer);
    }

    fn announce(&mut self, _: View) {}

    fn inform(&mut self, notice: Notice) -> Result<(), Infallible> {
        self.world.notices.push((self.world.now, self.id, notice));
        Ok(())
    }
}

fn detector() -> DetectorConfig {
    DetectorConfig { heartbeat: D * 5, transmission: D, jitter: D, losses: 0 }
}

fn config(count: u32, mode: Mode) -> NodeConfig<Config> {
    let members = Members::range(1, count).unwrap();
    NodeConfig {
        inner: Config::new(members.clone(), Timing::for_transmission(D), mode),
        members,
        filter: true,
        link: Some(LinkConfig::for_round_trip(D * 2)),
        detector: Some(detector()),
    }
}

#[test]
fn a_node_with_nothing_switched_on_is_its_algorithm() {
    let with = config(5, Mode::Textbook);
    let inner = with.inner.clone();
    let bare = NodeConfig { filter: false, link: None, detector: None, ..with };
    let mut nodes: World<Node<Bully>> = World::new(bare, 5, RELIABLE);
    let mut bullies: World<Bully> = World::new(inner, 5, RELIABLE);
    nodes.stop(NodeId(5));
    bullies.stop(NodeId(5));
    nodes.tell(NodeId(1), Event::Campaign);
    bullies.tell(NodeId(1), Event::Campaign);
    nodes.run_until(D * 50);
    bullies.run_until(D * 50);
    assert!(nodes.all_follow(NodeId(4)));
    let said = |world: &World<Bully>| -> Vec<String> {
        world.sent.iter().map(|(at, from, to, what)| format!("{at} {from} {to} {what}")).collect()
    };
    let sent: Vec<String> = (nodes.sent.iter())
        .map(|(at, from, to, what)| format!("{at} {from} {to} {what}"))
        .collect();
    assert_eq!(sent, said(&bullies));
}

#[test]
fn without_failures_no_member_is_suspected() {
    let mut world: World<Node<Bully>> = World::new(config(4, Mode::Hardened), 4, RELIABLE);
    world.run_until(D * 1000);
    assert_eq!(world.notices, []);
    assert!(world.all_follow(NodeId(4)));
}

#[test]
fn a_leader_that_stops_is_noticed_in_time_and_the_next_best_leads() {
    let mut world: World<Node<Bully>> = World::new(config(4, Mode::Hardened), 4, RELIABLE);
    world.run_until(D * 100);
    world.stop(NodeId(4));
    let noticed = world.now + D + detector().patience();
    world.run_until(noticed);
    assert_eq!(world.notices.len(), 3, "{:?}", world.notices);
    assert!(world.notices.iter().all(|&(_, _, notice)| notice == Notice::Down(NodeId(4))));
    world.run_until(noticed + Timing::for_transmission(D).announcement());
    assert!(world.all_follow(NodeId(3)));
}

#[test]
fn a_lossy_network_does_not_change_the_election_message_count() {
    let mut config = config(5, Mode::Textbook);
    // The algorithm's D includes retransmissions, and the detector tolerates the loss of heartbeats.
    config.inner.timing = Timing::for_transmission(D * 50);
    config.detector = Some(DetectorConfig { losses: 15, ..detector() });
    let mut world: World<Node<Bully>> = World::new(config, 5, Network { loss: 33, ..RELIABLE });
    world.stop(NodeId(5));
    world.run_until(D * 1000);
    assert!(world.all_follow(NodeId(4)));
    let live = 4;
    assert_eq!(world.count(Class::Algorithm), live * live - 1);
    assert!(world.count(Class::Link) > world.count(Class::Algorithm));
}

#[test]
fn a_restart_before_a_suspicion_still_counts_as_down() {
    let mut world: World<Node<Bully>> = World::new(config(3, Mode::Hardened), 3, RELIABLE);
    world.run_until(D * 100);
    world.stop(NodeId(3));
    world.run_until(world.now + D);
    world.start(NodeId(3), Origin::Joining);
    world.run_until(world.now + D * 4);
    for witness in [NodeId(1), NodeId(2)] {
        let seen: Vec<Notice> = (world.notices.iter())
            .filter(|&&(_, member, _)| member == witness)
            .map(|&(_, _, notice)| notice)
            .collect();
        assert_eq!(seen, [Notice::Down(NodeId(3)), Notice::Up(NodeId(3))]);
    }
    world.run_until(world.now + D * 200);
    assert!(world.all_follow(NodeId(3)));
}

#[test]
fn a_cut_member_and_the_others_find_each_other_again() {
    let mut world: World<Node<Bully>> = World::new(config(3, Mode::Hardened), 3, RELIABLE);
    world.run_until(D * 100);
    world.network = CUT;
    world.run_until(D * 200);
    assert!(world.members.values().all(|member| member.view().role == Role::Leader));
    world.network = RELIABLE;
    world.run_until(D * 400);
    assert!(world.all_follow(NodeId(3)));
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Stop(NodeId),
    Start(NodeId),
    Lossy,
    Cut,
    Reliable,
}

fn fault() -> impl Strategy<Value = Fault> {
    let id = || (1..=4_u32).prop_map(NodeId);
    prop_oneof![
        id().prop_map(Fault::Stop),
        id().prop_map(Fault::Start),
        Just(Fault::Lossy),
        Just(Fault::Cut),
        Just(Fault::Reliable),
    ]
}

proptest! {
    #[test]
    fn after_any_faults_all_follow_the_best_once_the_network_behaves(
        seed in any::<u64>(),
        faults in vec((fault(), 0..60_u64), 0..20),
    ) {
        let mut world: World<Node<Bully>> = World::new(config(4, Mode::Hardened), 4, RELIABLE);
        world.random = seed;
        for (fault, pause) in faults {
            match fault {
                Fault::Stop(id) => world.stop(id),
                Fault::Start(id) if world.members.contains_key(&id) => {}
                Fault::Start(id) => world.start(id, Origin::Joining),
                Fault::Lossy => world.network = LOSSY,
                Fault::Cut => world.network = CUT,
                Fault::Reliable => world.network = RELIABLE,
            }
            world.run_until(world.now + Span::from_micros(500) * pause);
        }
        world.network = Network { delay: (Span::ZERO, D), ..RELIABLE };
        world.run_until(world.now + D * 1000);
        if let Some((&best, _)) = world.members.last_key_value() {
            prop_assert!(world.all_follow(best), "{:?}", world.members);
        }
    }
}
