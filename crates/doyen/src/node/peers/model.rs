//! Three members over a network that loses, doubles, reorders and repeats, and that restarts them: nothing from an
//! earlier life ever counts, nothing counts twice, and when the network calms down all find each other.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::NonZeroU64;

use doyen_core::time::Span;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

const MEMBERS: u32 = 3;

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    /// A datagram that was sent some time arrives, perhaps not for the first time.
    Deliver(Index),
    /// The datagram that was sent last arrives.
    DeliverLatest,
    /// A member sends another a message.
    Send(u32, u32),
    /// Time passes.
    Wait(u64),
    /// A member crashes and comes back, here or elsewhere.
    Restart(u32, bool),
}

fn any_step() -> impl Strategy<Value = Step> {
    let member = 0..MEMBERS;
    prop_oneof![
        6 => any::<Index>().prop_map(Step::Deliver),
        6 => Just(Step::DeliverLatest),
        4 => (member.clone(), member.clone()).prop_map(|(from, to)| Step::Send(from, to)),
        3 => (1..400_u64).prop_map(Step::Wait),
        1 => (member, any::<bool>()).prop_map(|(member, moves)| Step::Restart(member, moves)),
    ]
}

/// A message of the election that says all about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Note {
    number: u32,
    from_life: u32,
    to_life: u32,
}

impl Note {
    fn bytes(self) -> Vec<u8> {
        [self.number, self.from_life, self.to_life].map(u32::to_le_bytes).concat()
    }

    fn of(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(bytes[4 * at..][..4].try_into().unwrap());
        Self { number: word(0), from_life: word(1), to_life: word(2) }
    }
}

struct World {
    now: Moment,
    hosts: Vec<Host>,
    /// Every datagram that was ever sent: from where, to where.
    sent: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
    notes: u32,
    delivered: BTreeSet<u32>,
    out: Outbox,
}

struct Host {
    peers: Peers,
    life: u32,
    address: SocketAddr,
    /// The latest life of each member that this one has met.
    met: [u32; MEMBERS as usize],
}

fn address(member: u32, moved: u32) -> SocketAddr {
    SocketAddr::from(([127, 0, moved as u8, member as u8], 7400))
}

fn start(member: u32, life: u32, now: Moment) -> Peers {
    let keys = Keyring::parse(&format!("doyen-key-1:{}", "5a".repeat(32))).unwrap();
    let number = u64::from(member * 1000 + life) + 1;
    let identity = Identity {
        me: NodeId(member),
        incarnation: Incarnation(life),
        session: Session::new(NonZeroU64::new(number).unwrap()),
        configuration: 1,
    };
    let sealer = Sealer::new(&keys, "model");
    let mut peers = Peers::new(identity, (0..MEMBERS).map(NodeId), sealer, now);
    for other in (0..MEMBERS).filter(|&other| other != member) {
        // The configured names lead to where everybody was at first.
        peers.resolved(now, NodeId(other), address(other, 0));
    }
    peers
}

impl World {
    fn new() -> Self {
        let now = Moment::from_nanos(1);
        let host = |member| Host {
            peers: start(member, 1, now),
            life: 1,
            address: address(member, 0),
            met: [0; MEMBERS as usize],
        };
        Self {
            now,
            hosts: (0..MEMBERS).map(host).collect(),
            sent: Vec::new(),
            notes: 0,
            delivered: BTreeSet::new(),
            out: Outbox::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Deliver(index) if !self.sent.is_empty() => {
                self.deliver(index.index(self.sent.len()));
            }
            Step::DeliverLatest if !self.sent.is_empty() => self.deliver(self.sent.len() - 1),
            Step::Deliver(_) | Step::DeliverLatest => {}
            Step::Send(from, to) => self.send(*from, *to),
            Step::Wait(millis) => self.wait(*millis),
            Step::Restart(member, moves) => self.restart(*member, *moves),
        }
    }

    fn deliver(&mut self, index: usize) {
        let (source, target, mut datagram) = self.sent[index].clone();
        let there = |host: &Host| host.address == target;
        let Some(member) = self.hosts.iter().position(there) else { return };
        let host = &mut self.hosts[member];
        let received = host.peers.on_datagram(self.now, source, &mut datagram, &mut self.out);
        match received {
            Ok(Received::Election { from, bytes }) => {
                let note = Note::of(bytes);
                assert_eq!(note.to_life, host.life, "{note:?} was for an earlier life");
                let met = host.met[from.0 as usize];
                assert_eq!(note.from_life, met, "{note:?} is not from the life that was met");
                assert!(self.delivered.insert(note.number), "{note:?} counts twice");
            }
            Ok(Received::Met(peer)) => {
                let life = host.life_met(peer).expect("it was met just now");
                let before = std::mem::replace(&mut host.met[peer.0 as usize], life);
                assert!(life > before, "{life} of {peer} was met after {before}");
            }
            Ok(Received::StateIsOld { .. }) => panic!("nobody runs an old state here"),
            Ok(Received::Nothing) | Err(_) => {}
        }
        assert!(self.out.iter().len() <= 1, "one datagram is answered with one");
        self.post(member);
    }

    fn send(&mut self, from: u32, to: u32) {
        let host = &mut self.hosts[from as usize];
        let Some(to_life) = host.life_met(NodeId(to)) else { return };
        self.notes += 1;
        let note = Note { number: self.notes, from_life: host.life, to_life };
        let sent = host.peers.send(self.now, NodeId(to), &note.bytes(), &mut self.out);
        assert_eq!(sent, Ok(()));
        self.post(from as usize);
    }

    fn wait(&mut self, millis: u64) {
        self.now = self.now.after(Span::from_millis(millis));
        for member in 0..self.hosts.len() {
            self.hosts[member].peers.on_time(self.now, &mut self.out);
            self.post(member);
        }
    }

    fn restart(&mut self, member: u32, moves: bool) {
        let host = &mut self.hosts[member as usize];
        host.life += 1;
        host.met = [0; MEMBERS as usize];
        host.peers = start(member, host.life, self.now);
        if moves {
            host.address = address(member, host.life);
        }
    }

    /// Puts what `member` wants sent on its way.
    fn post(&mut self, member: usize) {
        let source = self.hosts[member].address;
        self.sent.extend(self.out.iter().map(|(to, bytes)| (source, to, bytes.to_owned())));
        self.out.clear();
    }

    /// For a while everything that is sent arrives, at once and in order.
    fn calm_down(&mut self) {
        for _ in 0..60 {
            let mut next = self.sent.len();
            self.wait(100);
            while next < self.sent.len() {
                self.deliver(next);
                next += 1;
            }
        }
    }
}

impl Host {
    fn life_met(&self, peer: NodeId) -> Option<u32> {
        let contact = self.peers.contacts().find(|contact| contact.id == peer)?;
        contact.incarnation.map(|incarnation| incarnation.0)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_earlier_life_counts_and_all_find_each_other(steps in vec(any_step(), 0..300)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        // Two who have both moved while neither heard the other can only be found by their names.
        let names: Vec<SocketAddr> = world.hosts.iter().map(|host| host.address).collect();
        for host in &mut world.hosts {
            for (member, &name) in (0..).zip(&names) {
                host.peers.resolved(world.now, NodeId(member), name);
            }
        }
        world.calm_down();
        for from in 0..MEMBERS {
            for to in (0..MEMBERS).filter(|&to| to != from) {
                let host = &world.hosts[from as usize];
                let life = world.hosts[to as usize].life;
                prop_assert_eq!(host.life_met(NodeId(to)), Some(life), "{} of {}", from, to);
                world.send(from, to);
                let before = world.delivered.len();
                world.deliver(world.sent.len() - 1);
                prop_assert_eq!(world.delivered.len(), before + 1);
            }
        }
    }
}
