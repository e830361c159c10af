//! X6.9: what entries cost in *every* schedule of a small group, not only in timed ones. The state machine itself is explored:
//! a request, an exit or the first message of a link may come next.

use std::collections::{BTreeMap, HashMap, VecDeque};

use doyen_core::config::exclusion::Sets;
use doyen_core::config::{Config, Mode, Timing};
use doyen_core::exclusion::maekawa::{Maekawa, Message};
use doyen_core::members::{Incarnation, Members, NodeId};
use doyen_core::protocol::{Boot, Effect, Effects, Event, Origin, Protocol};
use doyen_core::time::Span;

/// A group at one moment of a schedule.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Group {
    members: Vec<Maekawa>,
    links: BTreeMap<(usize, usize), VecDeque<Message>>,
    /// How often each member will still ask.
    requests: Vec<u8>,
}

/// The fewest and the most messages from a state to the end of every schedule.
type Extremes = (u64, u64);

struct Explorer {
    config: Config,
    known: HashMap<Group, Extremes>,
}

impl Explorer {
    /// The state after an event, and how many messages it sent.
    fn after(&self, group: &Group, at: usize, event: Event<Message, NoTimer>) -> (Group, u64) {
        let mut next = group.clone();
        let mut out = Effects::unexplained();
        next.members[at].handle(&self.config, event, &mut out);
        let mut sent = 0;
        for effect in out.drain() {
            if let Effect::Send { to, message } = effect {
                let to = self.config.members.position(to).expect("a member");
                next.links.entry((at, to)).or_default().push_back(message);
                sent += 1;
            }
        }
        let inside = next.members.iter().filter(|it| it.view().section.is_inside()).count();
        assert!(inside <= 1, "two members are inside");
        (next, sent)
    }

    fn steps(&self, group: &Group) -> Vec<(Group, u64)> {
        let mut steps = Vec::new();
        for at in 0..group.members.len() {
            let section = group.members[at].view().section;
            if section.is_outside() && group.requests[at] > 0 {
                let (mut next, sent) = self.after(group, at, Event::Request);
                next.requests[at] -= 1;
                steps.push((next, sent));
            }
            if section.is_inside() {
                steps.push(self.after(group, at, Event::Exit));
            }
        }
        for &(from, to) in group.links.keys() {
            let mut taken = group.clone();
            let link = taken.links.get_mut(&(from, to)).expect("it is there");
            let message = link.pop_front().expect("empty links are removed");
            if link.is_empty() {
                taken.links.remove(&(from, to));
            }
            let from = self.config.members.at(from);
            steps.push(self.after(&taken, to, Event::Message { from, message }));
        }
        steps
    }

    fn extremes(&mut self, group: Group) -> Extremes {
        if let Some(&known) = self.known.get(&group) {
            return known;
        }
        let ends: Vec<Extremes> = (self.steps(&group).into_iter())
            .map(|(next, sent)| {
                let (fewest, most) = self.extremes(next);
                (fewest + sent, most + sent)
            })
            .collect();
        if ends.is_empty() {
            let waiting = group.members.iter().any(|it| !it.view().section.is_outside());
            assert!(!waiting, "a schedule ends while a member waits");
        }
        let fewest = ends.iter().map(|end| end.0).min().unwrap_or_default();
        let most = ends.iter().map(|end| end.1).max().unwrap_or_default();
        self.known.insert(group, (fewest, most));
        (fewest, most)
    }
}

type NoTimer = <Maekawa as Protocol>::Timer;

/// The fewest and the most messages of an entry in every schedule, for each other arbiter, and how many states there are.
fn measure(sets: Sets, requests: &[u8]) -> (f64, f64, usize) {
    let members = Members::range(1, requests.len() as u32).unwrap();
    let timing = Timing::for_transmission(Span::from_millis(1));
    let mut config = Config::new(members, timing, Mode::Textbook);
    config.exclusion.sets = sets;
    let start = |id: NodeId| {
        let boot = Boot::new(Incarnation(1), None, Origin::Founding { leader: None });
        Maekawa::start(id, &config, boot, &mut Effects::unexplained())
    };
    let group = Group {
        members: config.members.iter().map(start).collect(),
        links: BTreeMap::new(),
        requests: requests.to_vec(),
    };
    let others = sets.of(NodeId(1), &config.members).len() - 1;
    let entries: u8 = requests.iter().sum();
    let mut explorer = Explorer { config, known: HashMap::new() };
    let (fewest, most) = explorer.extremes(group);
    let each = |messages: u64| messages as f64 / f64::from(entries) / others as f64;
    (each(fewest), each(most), explorer.known.len())
}

#[test]
fn x6_9_an_entry_of_maekawa_costs_3_to_4_17_for_each_other_arbiter_in_every_schedule() {
    for (sets, requests, fewest, most) in [
        (Sets::Cyclic, &[1, 1, 1][..], 3.0, 3.67),
        (Sets::Cyclic, &[2, 2, 2], 3.0, 3.67),
        (Sets::Grid, &[1, 1, 1, 0], 3.0, 4.17),
        (Sets::Cyclic, &[1, 1, 0, 1, 0, 0, 0], 3.0, 3.5),
    ] {
        let (least, largest, states) = measure(sets, requests);
        println!("{sets} {requests:?}: {least} to {largest}, {states} states");
        assert!((least - fewest).abs() < 0.01, "{sets} {requests:?}: {least} instead of {fewest}");
        assert!((largest - most).abs() < 0.01, "{sets} {requests:?}: {largest} instead of {most}");
    }
}
