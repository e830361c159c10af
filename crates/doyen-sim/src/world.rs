//! The world in which members live: a virtual clock, a queue of events, a network, disks and faults.
//!
//! A [`World`] runs any [`Protocol`] as its host. It keeps the contract at the head of `doyen-core` exactly, and is
//! deterministic: what happens depends on the [`Setup`] alone. Of the events of one instant, messages come first (by
//! kind, then in the order they were sent), then faults, then timers: a message that arrives exactly at a time-out is
//! in time.
//!
//! A run ends when it is **quiet**: no message of the algorithm is in flight, no member waits to enter a critical section or
//! is inside, no timer is armed but those of background work, and the schedule is done. If background work continues
//! (heartbeats, retransmissions), the run continues for `settle` longer, because that work may still start something. Time
//! and message limits end runs that are never quiet.
//!
//! Metrics are always recorded; they cost a few nanoseconds for each event. Events are recorded only if there is an
//! observer.

mod changes;
mod client;
mod faults;
mod guardian;
mod host;
mod lease;
mod messages;
mod pause;
mod process;
mod restart;
mod roster;
mod snapshot;
mod timers;
mod watch;

use std::collections::{BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use doyen_core::config::rules::Rules;
use doyen_core::members::{Incarnation, Members, NodeId};
use doyen_core::protocol::{Boot, Effects, Event, Origin, Protocol};
use doyen_core::time::Span;

use crate::fault::{Action, Chaos, ChaosKind, Fault, PaceOverride};
use crate::hash::{FastHasher, FastMap};
use crate::initiators::Initiators;
use crate::message::MessageChange;
use crate::metrics::{Ended, MemberCount, Outcome, Recorder};
use crate::monitor::Monitor;
use crate::network::{Network, NetworkModel};
use crate::queue::{Next, Queue};
use crate::random::Random;
use crate::time::Time;
use crate::trace::Observer;
use client::Clients;
use guardian::Survived;
use lease::Lease;
use pause::{Pause, Waiting};
use process::Processes;
use roster::{Roster, Status};
use watch::REPORT_EVERY;

pub use client::Requests;
pub use snapshot::{Flight, Frozen, Snapshot};
pub use watch::{Progress, Watchers};

/// A member that resumes does so before anything else of that instant; the ranks of messages are above this.
const RESUME_RANK: u8 = 0;
/// A lease that runs out at an instant has run out for everything else of that instant.
const LEASE_RANK: u8 = 0;
/// Faults happen after the messages of an instant and before its timers.
const SCRIPT_RANK: u8 = 100;
/// Timers that became due during a pause come before those that are due now.
const OVERDUE_RANK: u8 = 199;
const TIMER_RANK: u8 = 200;

/// Everything that determines a run. Members are named by their position.
#[derive(Clone, Debug)]
pub struct Setup<'c, C> {
    /// The members.
    pub members: &'c Members,
    /// What the members are configured with.
    pub config: &'c C,
    /// The configuration of a member that restarts with another timing, if members have one.
    pub with_pace: Option<fn(&C, NodeId, PaceOverride) -> C>,
    /// How the network behaves.
    pub network: NetworkModel,
    /// The rank of each kind of message among those that arrive at the same instant, by kind: from 1 to 99.
    pub ranks: Vec<u8>,
    /// The members that are dead from the beginning.
    pub dead: Vec<u32>,
    /// Whether all members know which ones are dead from the beginning.
    pub dead_known: bool,
    /// The member that leads at the beginning.
    pub leader: Option<NodeId>,
    /// The members that detect the failure of the coordinator, and when.
    pub initiators: &'c Initiators,
    /// The members that ask to enter the critical section, and how long they stay; none if there is no section.
    pub requests: Option<&'c Requests>,
    /// The fault schedule.
    pub faults: &'c [Fault],
    /// What is done to single messages.
    pub changes: &'c [MessageChange],
    /// Random faults.
    pub chaos: Option<&'c Chaos>,
    /// The random seed.
    pub seed: u64,
    /// When the run ends at the latest.
    pub until: Time,
    /// After how many election messages it ends at the latest.
    pub message_limit: u64,
    /// After how many events it ends at the latest; it also ends when a quarter of that number are pending, so that
    /// memory stays bounded, whatever multiplies.
    pub event_limit: u64,
    /// How long background work must have continued alone before the run counts as quiet; zero if it starts nothing.
    pub settle: Span,
    /// How long it takes to stop what runs under the lease of a retiring leader.
    pub retire: Span,
    /// The rules that guardians keep: all of them, unless a check removes one.
    pub rules: Rules,
}

/// The share of the events of a run that may be pending at a time, inverted.
const PENDING: u64 = 4;

/// A group of members, the network between them and the time they live in.
pub struct World<'a, 'o, P: Protocol> {
    setup: &'a Setup<'a, P::Config>,
    now: Time,
    queue: Queue<Item<P::Message, P::Timer>>,
    members: Roster<'a, P>,
    processes: Processes,
    network: Network,
    random: Random,
    armed: FastMap<(u32, P::Timer), Armed>,
    armings: u32,
    configs: Configs<'a, P::Config>,
    disks: FastMap<u32, P::Durable>,
    /// Copies of disks, each with the life in which it was made.
    copies: FastMap<u32, (Incarnation, Option<P::Durable>)>,
    /// The members that have lost their disks and have stored nothing since.
    diskless: BTreeSet<u32>,
    incarnations: FastMap<u32, Incarnation>,
    clocks: FastMap<u32, u32>,
    pauses: FastMap<u32, Pause<P::Message, P::Timer>>,
    /// Until when each leader may act, where leaders have leases.
    leases: FastMap<u32, Lease>,
    /// Leaders that have crashed and whose guardians live.
    survived: Vec<Survived<P::Message>>,
    /// Faults that wait for a message.
    watches: Vec<Watch>,
    /// How many messages have still to be sent until the one that each of the setup's changes names, itself included.
    changes_left: Vec<u32>,
    /// The kinds of which the next message is lost, and since when.
    losses: Vec<(Time, usize)>,
    /// Faults whose count was reached in the middle of an event: they are due when its effects are done.
    due: VecDeque<usize>,
    /// Whether an observer, a monitor, a fault or a change needs every message.
    watched: bool,
    /// The programs that ask to enter the critical section, where there is one.
    clients: Option<Clients>,
    metrics: Recorder,
    /// Also the number of the latest one, for observers: after four billion messages numbers repeat.
    messages_sent: u64,
    /// Messages in flight, armed timers and remaining faults that keep a run from being quiet.
    work: u64,
    /// Messages in flight and armed timers of background work.
    background: u64,
    quiet_since: Option<Time>,
    observer: Option<&'o mut dyn Observer>,
    monitor: Option<&'o mut (dyn Monitor + 'o)>,
    progress: Option<Progress<'o>>,
    /// After how many events progress is reported next, or the run ends.
    next_check: u64,
    /// How many events may be pending.
    most_pending: u64,
}

/// What each member is configured with.
struct Configs<'a, C> {
    usual: &'a C,
    /// Members that have been restarted with another timing.
    others: FastMap<u32, Rc<C>>,
}

impl<C> Configs<'_, C> {
    #[inline]
    fn of(&self, position: u32) -> &C {
        if self.others.is_empty() {
            return self.usual;
        }
        self.others.get(&position).map_or(self.usual, |config| &**config)
    }
}

#[derive(Clone, Copy)]
struct Armed {
    arming: u32,
    due: Time,
    /// Since when it waits, and for how long by its member's clock, whatever the clock's rate.
    since: Time,
    wait: u64,
}

enum Item<M, T> {
    Deliver(Delivery<M>),
    Timer {
        member: u32,
        arming: u32,
        timer: T,
    },
    /// The fault of this number.
    Fault(usize),
    Chaos(ChaosKind),
    /// A member detects that the coordinator has failed.
    Campaign(u32),
    /// The client of a member is to ask this many times to enter the critical section.
    Ask {
        member: u32,
        repeat: u32,
    },
    /// The client of a member is done inside, in this stay.
    Leave {
        member: u32,
        stay: u64,
    },
    /// Everything has been stopped that ran under the lease of a retiring leader.
    Retired(u32),
    /// The guardian of this dead leader checks what it has to do.
    Guardian(usize),
    /// A random fault is over.
    Over(Ending),
    Resume(u32),
}

impl<M, T> Item<M, T> {
    /// The member to whom it happens, if it is one.
    #[inline]
    fn member(&self) -> Option<u32> {
        match *self {
            Self::Deliver(Delivery { to: member, .. }) | Self::Timer { member, .. } => Some(member),
            _ => None,
        }
    }
}

/// A fault that waits until a member has sent or received `left` more messages of a kind.
struct Watch {
    fault: usize,
    member: u32,
    sent: bool,
    kind: usize,
    left: u32,
}

/// The end of a random fault, which must not undo what happened to the same member or link since.
enum Ending {
    /// The member restarts, if the life that the fault ended was its last.
    Crash { member: u32, life: Incarnation },
    /// The link is repaired, if nothing has healed the network meanwhile.
    Cut { from: u32, to: u32, era: u32 },
}

/// A message under way.
#[derive(Clone)]
struct Delivery<M> {
    from: NodeId,
    to: u32,
    id: u32,
    depth: u32,
    message: M,
}

/// A member reacts to its own timers and commands at once; only a receipt takes processing time.
const AT_ONCE: Span = Span::ZERO;

impl<'a, 'o, P: Protocol> World<'a, 'o, P> {
    /// A world at its beginning: all members have started, nothing has happened.
    pub fn new(setup: &'a Setup<'a, P::Config>, watchers: Watchers<'o>) -> Self {
        let Watchers { observer, monitor, progress } = watchers;
        let count = setup.members.len();
        let mut wishes = Vec::new();
        let members = Roster::new(setup.members, setup.config, |id| {
            let (protocol, wished) = found::<P>(setup, id);
            wishes.extend(wished.map(|out| (id, out)));
            protocol
        });
        let mut world = Self {
            setup,
            now: Time::ZERO,
            queue: Queue::new(setup.network.delay.range(), count),
            members,
            processes: Processes::new(count as u32, P::has_sessions(setup.config)),
            network: Network::new(setup.network.clone()),
            random: Random::new(setup.seed),
            armed: FastMap::default(),
            armings: 0,
            configs: Configs { usual: setup.config, others: FastMap::default() },
            disks: FastMap::default(),
            copies: FastMap::default(),
            diskless: BTreeSet::new(),
            incarnations: FastMap::default(),
            clocks: FastMap::default(),
            pauses: FastMap::default(),
            leases: FastMap::default(),
            survived: Vec::new(),
            watched: observer.is_some()
                || monitor.is_some()
                || !setup.changes.is_empty()
                || setup.faults.iter().any(|fault| matches!(fault.what, Action::Drop { .. })),
            watches: Vec::new(),
            changes_left: setup.changes.iter().map(|it| it.message.number).collect(),
            losses: Vec::new(),
            due: VecDeque::new(),
            clients: setup.requests.map(|_| Clients::new()),
            metrics: Recorder::new(P::kinds(setup.config)),
            messages_sent: 0,
            work: 0,
            background: 0,
            quiet_since: None,
            observer,
            monitor,
            next_check: match progress {
                Some(_) => REPORT_EVERY.min(setup.event_limit),
                None => setup.event_limit,
            },
            most_pending: setup.event_limit / PENDING,
            progress,
        };
        let mut out = world.effects();
        world.begin(wishes, &mut out);
        world.schedule(&mut out);
        world
    }

    /// Runs to the end and returns the metrics.
    pub fn run(mut self) -> Outcome {
        // Kept outside the world: a member's effects are read while the world changes.
        let mut out = self.effects();
        let ended = loop {
            if self.is_quiet() {
                break Ended::Quiet;
            }
            let members = &self.members;
            let Some(next) = self
                .queue
                .next_ahead(|queue| members.fetch(queue.opened().filter_map(Item::member)))
            else {
                break Ended::Quiet;
            };
            if next.at > self.setup.until.0 {
                self.now = self.setup.until;
                break Ended::TimeLimit;
            }
            self.happen(next, &mut out);
            if !self.due.is_empty() {
                self.catch_up(&mut out);
            }
            if self.is_near_limit()
                && let Some(ended) = self.limit()
            {
                break ended;
            }
        };
        self.close(ended)
    }

    /// Whether a limit may be reached, or progress is to be reported.
    #[inline]
    fn is_near_limit(&self) -> bool {
        self.messages_sent >= self.setup.message_limit
            || self.metrics.events >= self.next_check
            || self.queue.len() as u64 >= self.most_pending
    }

    /// The limit that is reached, if one is.
    #[cold]
    fn limit(&mut self) -> Option<Ended> {
        let Setup { message_limit, event_limit, .. } = *self.setup;
        let (events, pending) = (self.metrics.events, self.queue.len() as u64);
        if self.messages_sent >= message_limit && self.metrics.total() >= message_limit {
            Some(Ended::MessageLimit)
        } else if events >= event_limit || pending >= self.most_pending {
            Some(Ended::EventLimit)
        } else if events >= self.next_check && !self.report_progress() {
            Some(Ended::Interrupt)
        } else {
            None
        }
    }

    fn close(mut self, ended: Ended) -> Outcome {
        self.count_overdue_leases();
        let (never_sent, snapshot) = (self.never_sent(), self.recorded_cut());
        let multicast = self.delivered();
        // The pending events may be large, and so are the views of all members.
        drop(self.queue);
        let member = |member: u32| &self.members[self.processes.present(member)];
        let everybody = || (0..self.members.len()).map(member);
        let by_member = everybody()
            .map(|member| MemberCount { sent: member.sent, received: member.received })
            .collect();
        let views =
            everybody().map(|member| member.is_alive().then(|| member.protocol.view())).collect();
        let old = self.processes.old().filter(|&process| self.members[process].is_alive());
        let old_processes = old.count() as u32;
        let outcome = self.metrics.close(self.now, ended, by_member, views);
        let exclusion = self.clients.map(|clients| clients.metrics.close(self.now));
        Outcome { old_processes, never_sent, exclusion, snapshot, multicast, ..outcome }
    }

    /// Whether nothing is left but background work, and that has gone on alone for long enough.
    fn is_quiet(&mut self) -> bool {
        if self.work > 0 || P::has_sessions(self.setup.config) && self.has_unmet() {
            self.quiet_since = None;
            return false;
        }
        let since = *self.quiet_since.get_or_insert(self.now);
        let settle = self.setup.settle;
        self.background == 0 || settle == Span::ZERO || self.now - since > settle
    }

    /// All members have started; now their first effects are executed, and members that begin dead are dead already.
    fn begin(&mut self, mut wishes: Vec<(NodeId, Effects<P>)>, out: &mut Effects<P>) {
        wishes.sort_by_key(|&(id, _)| id);
        let position = |id| self.setup.members.position(id).map(|position| position as u32);
        let leader = self.setup.leader.and_then(position);
        for (id, mut wished) in wishes {
            if let Some(position) = position(id) {
                self.act(position, AT_ONCE, &mut wished);
            }
        }
        if let Some(leader) = leader {
            self.metrics.founded_by(leader);
        }
        if let Some(leader) = leader
            && self.members[leader].protocol.view().role.leads()
        {
            self.members[leader].leads = true;
            self.metrics.reign_begins(self.now, leader);
            if let Some(monitor) = &mut self.monitor {
                monitor.view_changed(self.now, leader, self.members[leader].protocol.view());
            }
        }
        for &dead in &self.setup.dead {
            self.crash(dead, false);
        }
        if self.setup.dead_known {
            for &dead in &self.setup.dead {
                let dead = self.id(dead);
                for position in 0..self.members.len() {
                    self.tell(position, Event::PeerDown(dead), out);
                }
            }
        }
    }

    /// An empty collection of effects. It records rules only if there is an observer.
    fn effects(&self) -> Effects<P> {
        if self.observer.is_some() { Effects::new() } else { Effects::unexplained() }
    }

    fn id(&self, position: u32) -> NodeId {
        let member = if P::has_sessions(self.setup.config) {
            self.processes.owner(position)
        } else {
            position
        };
        self.setup.members.at(member as usize)
    }

    /// Something happens to a member.
    fn tell(&mut self, position: u32, event: Event<P::Message, P::Timer>, out: &mut Effects<P>) {
        match self.members[position].status {
            Status::Up => {}
            Status::Paused => return self.wait(position, Waiting::News(event)),
            Status::Dead | Status::Forwarding => return,
        }
        self.hand(position, event, out);
        self.act(position, AT_ONCE, out);
    }

    #[inline(always)]
    fn happen(&mut self, next: Next, out: &mut Effects<P>) {
        if !matches!(self.queue.peek(&next), Item::Deliver(_)) {
            return self.happen_besides(next, out);
        }
        let Some(next) = self.pass_on(next) else { return };
        self.now = Time(next.at);
        if let Item::Deliver(delivery) = self.queue.take(next) {
            self.deliver(delivery, out);
        }
    }

    /// Handles an event that is not a delivery. This is a separate function, so that the code of a delivery stays
    /// short.
    #[inline(never)]
    fn happen_besides(&mut self, next: Next, out: &mut Effects<P>) {
        let at = Time(next.at);
        let item = match self.queue.take(next) {
            Item::Timer { member, arming, timer } => {
                return self.fire(at, member, arming, timer, out);
            }
            item => item,
        };
        self.now = at;
        self.work -= 1;
        match item {
            Item::Deliver(_) | Item::Timer { .. } => unreachable!("these happen elsewhere"),
            Item::Fault(number) => self.perform(&self.setup.faults[number].what, out),
            Item::Chaos(kind) => self.inject(kind),
            Item::Campaign(member) => self.campaign(self.present(member), out),
            Item::Ask { member, repeat } => self.ask(member, repeat, out),
            Item::Leave { member, stay } => self.leave(member, stay, out),
            Item::Retired(process) => self.retire(process, out),
            Item::Guardian(number) => self.look_after(number),
            Item::Over(ending) => self.end(&ending, out),
            Item::Resume(member) => self.resume(member, out),
        }
    }
}

/// A small value as one word, for the fingerprint.
#[inline]
fn digest_of(thing: impl Hash) -> u64 {
    let mut hasher = FastHasher::default();
    thing.hash(&mut hasher);
    hasher.finish()
}

/// Member `id` as it is when all start together, and its effects, if any.
fn found<P: Protocol>(setup: &Setup<'_, P::Config>, id: NodeId) -> (P, Option<Effects<P>>) {
    let origin = Origin::Founding { leader: setup.leader };
    let boot = Boot::new(Incarnation(1), None, origin);
    let mut out = Effects::new();
    let protocol = P::start(id, setup.config, boot, &mut out);
    let wishes = !out.list().is_empty() || out.elections() > 0;
    (protocol, wishes.then_some(out))
}

impl<P: Protocol> std::fmt::Debug for World<'_, '_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pending = self.queue.len();
        f.debug_struct("World").field("now", &self.now).field("pending", &pending).finish()
    }
}
