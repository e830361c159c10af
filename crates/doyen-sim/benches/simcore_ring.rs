//! The Chang–Roberts ring, all members starting at once, on the simulator [`simcore`].
//!
//! Two ways to write it: [`by_member`] as its users would, one component with a context of its own per member;
//! [`whole_ring`] with a single component for all of them, which spares it a million contexts and names. Both do
//! less than doyen does: links keep no order, nothing is accounted for but the messages. So ELECTED may overtake an
//! ELECTION, which a member that no longer takes part would answer with its own: here members take part for good, and
//! the messages are the same in any order.
//!
//! Clocks stop before the simulation is torn down, which takes a while with a million components.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::Serialize;
use simcore::{Event, EventHandler, Id, Simulation, SimulationContext, cast};

const SEED: u64 = 7;
/// The delay of a link in seconds, uniformly distributed.
const DELAY: std::ops::Range<f64> = 0.001..0.002;

/// What a run came to.
#[derive(Clone, Copy)]
pub(crate) struct Outcome {
    /// How long setting up and running took.
    pub(crate) time: Duration,
    pub(crate) messages: u64,
    pub(crate) leader: Option<u32>,
}

#[derive(Clone, Serialize)]
struct Election {
    key: u32,
}

#[derive(Clone, Serialize)]
struct Elected {
    key: u32,
}

struct Member {
    id: u32,
    next: Id,
    participant: bool,
    leads: bool,
    sent: u64,
    context: SimulationContext,
}

impl Member {
    fn elect(&mut self, key: u32) {
        self.sent += 1;
        self.participant = true;
        self.context.emit(Election { key }, self.next, self.context.gen_range(DELAY));
    }

    fn announce(&mut self, key: u32) {
        self.sent += 1;
        self.context.emit(Elected { key }, self.next, self.context.gen_range(DELAY));
    }
}

impl EventHandler for Member {
    fn on(&mut self, event: Event) {
        cast!(match event.data {
            Election { key } => {
                if key > self.id {
                    self.elect(key);
                } else if key == self.id {
                    self.leads = true;
                    self.announce(key);
                } else if !self.participant {
                    self.elect(self.id);
                }
            }
            Elected { key } => {
                if key != self.id {
                    self.announce(key);
                }
            }
        });
    }
}

/// Runs the ring of these ids, clockwise, with one component per member.
pub(crate) fn by_member(ids: &[u32]) -> Outcome {
    let start = Instant::now();
    let mut simulation = Simulation::new(SEED);
    let mut join = |(place, &id): (usize, &u32)| {
        let name = place.to_string();
        let context = simulation.create_context(&name);
        // Contexts are numbered in the order in which they are made.
        let next = ((place + 1) % ids.len()) as Id;
        let member = Member { id, next, participant: false, leads: false, sent: 0, context };
        let member = Rc::new(RefCell::new(member));
        simulation.add_handler(&name, Rc::<RefCell<Member>>::clone(&member));
        member
    };
    let members: Vec<_> = ids.iter().enumerate().map(&mut join).collect();
    for member in &members {
        let mut member = member.borrow_mut();
        let id = member.id;
        member.elect(id);
    }
    simulation.step_until_no_events();
    let time = start.elapsed();
    Outcome {
        time,
        messages: members.iter().map(|member| member.borrow().sent).sum(),
        leader: members.iter().map(|member| member.borrow()).find(|it| it.leads).map(|it| it.id),
    }
}

#[derive(Clone, Serialize)]
struct Passed {
    key: u32,
    /// To whom, by place in the ring.
    to: u32,
    elected: bool,
}

struct Ring {
    /// Ids, and who takes part, by place in the ring.
    members: Vec<(u32, bool)>,
    messages: u64,
    leader: Option<u32>,
    context: SimulationContext,
}

impl Ring {
    fn send(&mut self, from: u32, elected: bool, key: u32) {
        self.messages += 1;
        self.members[from as usize].1 = true;
        let to = if from as usize + 1 == self.members.len() { 0 } else { from + 1 };
        self.context.emit_self(Passed { key, to, elected }, self.context.gen_range(DELAY));
    }
}

impl EventHandler for Ring {
    fn on(&mut self, event: Event) {
        cast!(match event.data {
            Passed { key, to, elected } => {
                let (id, participant) = self.members[to as usize];
                if elected {
                    if key != id {
                        self.send(to, true, key);
                    }
                } else if key > id {
                    self.send(to, false, key);
                } else if key == id {
                    self.leader = Some(id);
                    self.send(to, true, key);
                } else if !participant {
                    self.send(to, false, id);
                }
            }
        });
    }
}

/// Runs the ring of these ids, clockwise, with one component for all members.
pub(crate) fn whole_ring(ids: &[u32]) -> Outcome {
    let start = Instant::now();
    let mut simulation = Simulation::new(SEED);
    let context = simulation.create_context("ring");
    let members = ids.iter().map(|&id| (id, false)).collect();
    let ring = Ring { members, messages: 0, leader: None, context };
    let ring = Rc::new(RefCell::new(ring));
    simulation.add_handler("ring", Rc::<RefCell<Ring>>::clone(&ring));
    for (place, &id) in ids.iter().enumerate() {
        ring.borrow_mut().send(place as u32, false, id);
    }
    simulation.step_until_no_events();
    let time = start.elapsed();
    let ring = ring.borrow();
    Outcome { time, messages: ring.messages, leader: ring.leader }
}
