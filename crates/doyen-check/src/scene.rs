//! Where an exploration begins.

use std::collections::BTreeMap;

use doyen_core::members::{Members, NodeId};
use doyen_sim::run;
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;
use doyen_sim::trace::{EventKind, TraceEvent};

/// The initial scene.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scene<'c> {
    /// The members.
    pub members: &'c Members,
    /// The leader.
    pub leader: Option<NodeId>,
    /// The members that are down.
    pub dead: Vec<NodeId>,
    /// Whether all members know which ones are down.
    pub dead_known: bool,
    /// The members that have called an election.
    pub initiators: Vec<NodeId>,
    /// How often the client of each member may ask to enter the critical section, at any moment.
    pub requests: BTreeMap<NodeId, u8>,
    /// How often one member may enter while another one waits, if the algorithm bounds that.
    pub most_overtaking: Option<u32>,
}

impl<'c> Scene<'c> {
    /// All `members` are up, without a leader, an election or a client.
    pub fn new(members: &'c Members) -> Self {
        Self {
            members,
            leader: None,
            dead: Vec::new(),
            dead_known: true,
            initiators: Vec::new(),
            requests: BTreeMap::new(),
            most_overtaking: None,
        }
    }

    /// The scene of `case`. A member that calls an election at any time there has called it here; one that asks to enter the
    /// critical section at some time there may do so at any time here.
    pub fn of(case: &'c Case) -> Self {
        Self {
            members: case.members(),
            leader: case.leader,
            dead: case.dead.clone(),
            dead_known: !case.contact_dead,
            initiators: case.initiators.iter().map(|(id, _)| id).collect(),
            requests: requests_of(case),
            most_overtaking: case.algorithm.most_overtaking(case.network.fifo),
        }
    }

    /// The same for the simulation of `case` at a moment: clients have asked by then.
    pub(crate) fn at(case: &'c Case, at: Time) -> Self {
        let mut scene = Self::of(case);
        if !scene.requests.is_empty() {
            for record in trace_until(case, at) {
                if let EventKind::Request { member, .. } = record.kind
                    && let Some(left) = scene.requests.get_mut(&member)
                {
                    *left = left.saturating_sub(1);
                }
            }
        }
        scene
    }

    /// How often the client of a member may ask.
    pub(crate) fn requests_of(&self, member: NodeId) -> u8 {
        self.requests.get(&member).copied().unwrap_or_default()
    }
}

/// The trace of the simulation of `case` up to a moment.
pub(crate) fn trace_until(case: &Case, at: Time) -> Vec<TraceEvent> {
    let mut records: Vec<TraceEvent> = Vec::new();
    run::run(case, Some(&mut records));
    records.retain(|record| record.at <= at);
    records
}

/// How often each member asks to enter the critical section, multicasts or pays; as often as can be counted, if that is less.
pub(crate) fn requests_of(case: &Case) -> BTreeMap<NodeId, u8> {
    let mut counts: BTreeMap<NodeId, u8> = BTreeMap::new();
    let requests = case.requests.iter().filter(|_| !case.algorithm.elects());
    for (requests, (id, _)) in requests.flat_map(|it| it.who.iter().map(move |who| (it, who))) {
        let count = counts.entry(id).or_default();
        *count = count.saturating_add(u8::try_from(requests.repeat).unwrap_or(u8::MAX));
    }
    counts
}
