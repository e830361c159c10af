//! Many groups on one set of members, each with a leader of its own (section 5.5 of the specification, way ii).
//!
//! The elected leader of the quorum assigns: it gives every group to the best member that answers. An assignment is a
//! [lock] with the name of the group, so at most one member leads a group, by rules G1 to G11 of the lock service
//! and by no others. Nothing here decides about safety: the [`Holder`] of a member drives one
//! [`Client`](crate::lock::client::Client) for each group, and the [`Assigner`] of the leader drives one
//! [`Grantor`](crate::lock::grantor::Grantor). What they add is which member asks for which lock, and one message for all.
//!
//! **Riders.** The messages of all groups travel with the heartbeat of the quorum and with its acknowledgement: a cluster
//! with a hundred groups sends no datagram more than one with a single group. Only what should not wait, a group that a
//! member is given or asked for, or the first answer of a new leader, is sent at once. A [`Rider`] from a member to the
//! leader is one call for *every* group, under one round: KEEP for those that it lists as held, with their fences, RELEASE
//! for those that it has left, and ACQUIRE for all others, which the leader answers where it chooses. Before a rider leaves,
//! the timer of its round is armed (G1); each group's lease rests on the rounds in which *this group* was answered, so every
//! group is renewed, and ends, by itself.
//!
//! | rule | what happens |
//! |---|---|
//! | A1 | The leader gives a free group to the first member in the [order](Config::order) of the group that answers and is willing: by its place among the preferred members of the group, then by rendezvous hashing of group and member, then by id. |
//! | A2 | A member that is silent for two thirds of a lease gets nothing; what it holds expires (G6) and moves to the others. Groups of other members stay where they are. |
//! | A3 | A member that is back gets back what it would have been given, after the delay of the preemption policy and a few groups at a time: the leader asks the holder, the holder ends its work, is outside, and says so; only then the group is free. |
//! | A4 | A member that is not willing (drained, a witness, about to stop) gives up what it holds, in the same way, as soon as a leader that grants (A5) has answered: so another member leads at once. |
//! | A5 | A new leader of the quorum settles (G7). Holders show their fences with their next acknowledgement and keep leading: a lease of a group lasts longer than a failover of the quorum usually takes. |
//! | A6 | Riders count in the order in which they were sent, and only between members with the same list of groups: groups are numbered by their places in it. |
//!
//! **Why A6.** A call of the lock service has a random identity for each claim, so that a late one is not taken for a later
//! request. Riders have none, to be short: a claim is a session of a member and a group. Calls that arrive in order cannot
//! be late. A member that has left a group asks for it again only when the leader knows that it left.
//!
//! **How long a group is without a leader.** If its host dies: `G·(1+ρ)/(1−ρ)` by the leader's clock from the last rider, and
//! then the grant leaves at once. [`Profile::group_lease`](crate::config::quorum::Profile::group_lease) is chosen so that this is
//! within L1, the bound of the quorum, and so that a failover of the quorum fits into `G`. If the host that dies leads the
//! quorum as well, its groups wait for the election and for the whole of Settle besides.
//!
//! **Departure from the specification.** The lock service of section 5.1 ends Settle when all members have claimed. Here it
//! always lasts its whole time, as for locks.

pub mod assigner;
pub mod holder;
pub mod rider;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::quorum::{Pace, Preemption};
use crate::lock::{self, Limits, LockName, Round};
use crate::members::{NodeId, SessionId, Term};
use crate::protocol::{Fence, Section};
use crate::time::Span;

use assigner::Assigner;
use holder::Holder;
use rider::{Body, Claims, Rider};

/// How many groups there may be.
pub const MOST_GROUPS: usize = 256;

/// How many calls a member remembers at most. Enough for a lease of a hundred heartbeats.
const MOST_ROUNDS: usize = 102;

/// A group, by its place in the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupId(pub u8);

impl GroupId {
    fn at(place: usize) -> Self {
        Self(u8::try_from(place).expect("a list of groups is no longer than MOST_GROUPS"))
    }

    fn place(self) -> usize {
        usize::from(self.0)
    }
}

/// A group as configured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Its name.
    pub name: LockName,
    /// The members that should lead it rather than any other, the first one first.
    pub preferred: Vec<NodeId>,
}

/// A rule of this module that a test can take away. Those of the locks are [`lock::Rule`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// A3: the holder is outside before it says that it has left.
    OutsideFirst,
    /// A6: a member asks again only when the leader knows that it left.
    LeavingIsHeard,
    /// A6: riders count in order.
    InOrder,
}

/// What members with groups agree on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    groups: Vec<Group>,
    /// The order of the members for each group, the best first.
    orders: Vec<Vec<NodeId>>,
    /// Identifies the list of groups.
    list: u32,
    /// The lease of a group, and the drift of clocks.
    pub lock: lock::Config,
    /// Whether groups return to a better member.
    pub preemption: Preemption,
    /// How long a member must have answered before they do.
    pub delay: Span,
    /// The rule that a test of the checks takes away.
    pub without: Option<Rule>,
}

impl Config {
    /// For these groups, in any order, of which `members` may lead any. At most [`MOST_GROUPS`] are kept. `pace`: of the
    /// quorum.
    pub fn new(mut groups: Vec<Group>, members: &[NodeId], lease: Span, pace: &Pace) -> Self {
        groups.sort_by(|a, b| a.name.cmp(&b.name));
        groups.dedup_by(|a, b| a.name == b.name);
        groups.truncate(MOST_GROUPS);
        let orders = groups.iter().map(|group| order(group, members)).collect();
        let names = groups.iter().flat_map(|group| group.name.as_str().bytes().chain([0]));
        // FNV-1a: the same on every machine and in every version.
        let list = names
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        // A member may have claims of an earlier session besides.
        let (locks, claims_per_client) = (MOST_GROUPS, 2 * MOST_GROUPS);
        let limits = Limits { locks, waiters: 1, claims_per_client };
        // A member calls with every acknowledgement: an answer counts however many calls later it comes, if in time.
        let calls = lease.as_nanos() / pace.heartbeat.as_nanos().max(1);
        let rounds = usize::try_from(calls).unwrap_or(usize::MAX).clamp(2, MOST_ROUNDS - 2) + 2;
        let lock = lock::Config { lease, rounds, limits, ..lock::Config::new(pace.drift) };
        let (preemption, delay) = (Preemption::Never, Span::ZERO);
        Self { groups, orders, list, lock, preemption, delay, without: None }
    }

    /// The groups, in the order of their names.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// A1: the members for a group, the best first.
    pub fn order(&self, group: GroupId) -> &[NodeId] {
        self.orders.get(group.place()).map_or(&[], Vec::as_slice)
    }

    /// The group with this name.
    pub fn find(&self, name: &LockName) -> Option<GroupId> {
        let place = self.groups.binary_search_by(|group| group.name.cmp(name));
        place.ok().map(GroupId::at)
    }

    fn ids(&self) -> impl Iterator<Item = GroupId> + use<> {
        (0..self.groups.len()).map(GroupId::at)
    }

    fn name(&self, group: GroupId) -> &LockName {
        &self.groups[group.place()].name
    }

    fn heeds(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}

/// A1: by the place among the preferred members, then the score, then the id.
fn order(group: &Group, members: &[NodeId]) -> Vec<NodeId> {
    let class = |id: NodeId| {
        let place = group.preferred.iter().position(|&preferred| preferred == id);
        place.map_or(0, |place| group.preferred.len() - place)
    };
    let mut order = members.to_vec();
    order.sort_by_cached_key(|&id| std::cmp::Reverse((class(id), score(&group.name, id), id)));
    order
}

/// The rendezvous score of a member for a group (Thaler and Ravishankar 1998): fixed, the same on every machine and in every
/// version. FNV-1a over name and id, then the last step of `SplitMix64`, without which members with neighbouring ids would
/// have similar scores.
pub fn score(group: &LockName, member: NodeId) -> u64 {
    let bytes = group.as_str().bytes().chain([0]).chain(member.0.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// An input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The lease of the quorum's leader, or its absence, has changed here.
    Lease,
    /// An armed timer fired.
    Timer(Timer),
    /// A rider arrived, with a heartbeat or an acknowledgement that counts.
    Rider {
        /// From this member,
        from: NodeId,
        /// and this process of it.
        session: SessionId,
        /// The rider.
        rider: Rider,
    },
    /// Whether this member would lead groups. It would, until the host says otherwise.
    Willing(bool),
    /// What ran under the lease of a group has ended, and nothing more begins: the group can move.
    Ended(GroupId),
}

/// A timer. No two groups share the end of a lease; those that were answered in one round end with one timer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The end of what the answer to a call can give.
    Hold(Round),
    /// The leader's next call to itself.
    Keep,
    /// What earlier leaders granted is over, or has been shown.
    Settle,
    /// A member has not called for a lease: this group, which it held in this process, is free.
    Expire(GroupId, NodeId, SessionId),
    /// A member has been silent for too long to be given anything.
    Silent(NodeId),
    /// A member has answered long enough to get its groups back.
    Steady(NodeId),
    /// No leader has answered for a lease by any clock: the leaders of the groups are not known any more.
    Stale,
}

impl Timer {
    /// Whether it may end a lease: such timers are handled first.
    pub fn is_lease(self) -> bool {
        matches!(self, Self::Hold(_))
    }
}

/// An output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// This member is now here with respect to the lead of a group. A barrier, as in the contract.
    Announce {
        /// The group.
        group: GroupId,
        /// Inside: it leads the group.
        section: Section,
    },
    /// Send this member its rider now, without a heartbeat.
    Ride(NodeId),
    /// End what runs under the lease of this group, let nothing more begin, and then report [`Event::Ended`].
    Yield(GroupId),
    /// Arm a timer. One that [ends a lease](Timer::is_lease) counts from when the host read the lease of the quorum.
    SetTimer {
        /// The timer.
        timer: Timer,
        /// How long it waits.
        after: Span,
    },
    /// Disarm a timer.
    CancelTimer(Timer),
}

/// The leader of each group, by place in the list, as the leader of the quorum has reported.
pub type Table = Vec<Option<(NodeId, Fence)>>;

/// The state of one member: what it holds, and what it assigns while it leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Groups {
    me: NodeId,
    session: SessionId,
    holder: Holder,
    assigner: Assigner,
    /// The term in which it makes calls to itself.
    leads_in: Option<Term>,
    /// It has called itself, and is to be answered.
    has_called: bool,
    /// What members called before it had its first lease in their term: they need not call again.
    early: BTreeMap<NodeId, (SessionId, Term, Claims)>,
}

impl Groups {
    /// For a process of member `me` that has just started.
    pub fn new(me: NodeId, session: SessionId, config: &Config) -> Self {
        let (holder, assigner) = (Holder::new(config), Assigner::default());
        let early = BTreeMap::new();
        Self { me, session, holder, assigner, leads_in: None, has_called: false, early }
    }

    /// The member.
    pub fn member(&self) -> NodeId {
        self.me
    }

    /// Where this member is with respect to the lead of a group.
    pub fn section(&self, group: GroupId) -> Section {
        self.holder.section(group)
    }

    /// The armed timer that ends its lead of a group, while it leads the group.
    pub fn hold(&self, group: GroupId) -> Option<Timer> {
        self.holder.hold(group).map(Timer::Hold)
    }

    /// Whether it leads no group, and the leader knows that.
    pub fn is_quit(&self) -> bool {
        self.holder.is_quit()
    }

    /// Who leads which group, as far as this member knows.
    pub fn table(&self) -> &Table {
        self.holder.table()
    }

    /// Whether this member leads the quorum and grants nothing yet.
    pub fn settles(&self) -> bool {
        self.leads_in.is_some() && self.assigner.settles()
    }

    /// Handles one event. `lease`: the term in which this member leads the quorum, if it holds a valid lease at this moment:
    /// timers that [end leases](Timer::is_lease) count from then at the latest, because what a leader grants itself is worth
    /// nothing if its own lease ended before.
    pub fn handle(
        &mut self,
        config: &Config,
        lease: Option<Term>,
        event: Event,
        out: &mut Vec<Effect>,
    ) {
        self.follow(config, lease, out);
        match event {
            Event::Lease => {}
            Event::Timer(Timer::Hold(round)) => self.holder.on_hold(config, round, out),
            Event::Timer(Timer::Keep) => self.call_itself(config, lease, out),
            Event::Timer(Timer::Stale) => self.holder.forget_table(),
            Event::Timer(timer) => self.assigner.on_timer(config, lease, timer, out),
            Event::Rider { from, session, rider } => {
                self.on_rider(config, lease, (from, session), rider, out);
            }
            Event::Willing(willing) => {
                self.holder.set_willing(willing);
                self.call_itself(config, lease, out);
            }
            Event::Ended(group) => {
                self.holder.leave(config, group, out);
                self.call_itself(config, lease, out);
            }
        }
        self.assigner.assign(config, lease, out);
        let mut urgent = self.assigner.take_urgent();
        let is_urgent = urgent.remove(&self.me);
        if std::mem::take(&mut self.has_called) || is_urgent {
            self.answer_itself(config, lease, out);
        }
        out.extend(urgent.into_iter().map(Effect::Ride));
    }

    /// A leader is a member, too: its first lease in a term is the first rider that it gets.
    fn follow(&mut self, config: &Config, lease: Option<Term>, out: &mut Vec<Effect>) {
        if lease.is_some() && self.leads_in != lease {
            self.leads_in = lease;
            self.assigner.begin(config, lease, out);
            self.call_itself(config, lease, out);
            for (from, (session, term, claims)) in std::mem::take(&mut self.early) {
                if lease == Some(term) {
                    self.assigner.on_claims(config, lease, (from, session), term, &claims, out);
                }
            }
        } else if lease.is_none() && self.leads_in.take().is_some() {
            out.push(Effect::CancelTimer(Timer::Keep));
        }
    }

    fn on_rider(
        &mut self,
        config: &Config,
        lease: Option<Term>,
        (from, session): (NodeId, SessionId),
        rider: Rider,
        out: &mut Vec<Effect>,
    ) {
        if rider.list != config.list || !rider.is_sound(config.groups.len()) {
            return;
        }
        match rider.body {
            Body::Claims(claims) if lease == Some(rider.term) => {
                let by = (from, session);
                self.assigner.on_claims(config, lease, by, rider.term, &claims, out);
            }
            Body::Claims(claims) => {
                self.early.insert(from, (session, rider.term, claims));
            }
            Body::Answers(answers) => self.holder.on_answers(config, rider.term, &answers, out),
        }
    }

    /// The rider of an acknowledgement in `term`: arms the timer of its round.
    pub fn ride_acknowledgement(
        &mut self,
        config: &Config,
        term: Term,
        out: &mut Vec<Effect>,
    ) -> Rider {
        let claims = self.holder.call(config, term, out);
        Rider { list: config.list, term, body: Body::Claims(claims) }
    }

    /// The rider of a heartbeat to a member, or for [`Effect::Ride`]: none while there is no lease.
    pub fn ride_heartbeat(
        &mut self,
        config: &Config,
        lease: Option<Term>,
        to: NodeId,
    ) -> Option<Rider> {
        let term = lease.filter(|_| self.leads_in == lease)?;
        let answers = self.assigner.answers_to(term, to);
        Some(Rider { list: config.list, term, body: Body::Answers(answers) })
    }

    /// A leader calls itself as a member calls it, and is answered when the event has been handled.
    fn call_itself(&mut self, config: &Config, lease: Option<Term>, out: &mut Vec<Effect>) {
        let Some(term) = lease else { return };
        self.has_called = true;
        out.push(Effect::SetTimer { timer: Timer::Keep, after: config.lock.keep_interval() });
        let claims = self.holder.call(config, term, out);
        self.assigner.on_claims(config, lease, (self.me, self.session), term, &claims, out);
    }

    fn answer_itself(&mut self, config: &Config, lease: Option<Term>, out: &mut Vec<Effect>) {
        if let Some(term) = lease {
            let answers = self.assigner.answers_to(term, self.me);
            self.holder.on_answers(config, term, &answers, out);
        }
    }
}

#[cfg(test)]
mod tests;
