//! A rehearsal: the cluster as it is now, in the simulator, and somebody dies.
//!
//! The state machines are those that the nodes run, so what comes out is what would happen, as far as this node knows the
//! scene: who is alive, who hears whom, who would not lead, and in which order the others would. That order is the
//! node's own, in which priorities, the operator's preference and losses of office have been weighed already, so a
//! member's place in it is its attribute in the rehearsal. The cluster's timing is not known, and decides nothing.
//! Nobody is displaced by a better one that waits for its turn: only the death is to make a difference.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use doyen::node::status::{MemberStatus, Status};
use doyen_core::algorithm::quorum::settings::{Preemption, Profile};
use doyen_core::config::Mode;
use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_sim::fault::{Action, Fault};
use doyen_sim::run;
use doyen_sim::scenario::{MemberList, QuorumOptions, Scenario};
use doyen_sim::time::Time;

/// How long everything runs before somebody dies: long enough for all to notice who hears whom.
const BEFORE: Span = Span::from_millis(5_000);

/// When the curtain falls. All is settled long before.
const END: Span = Span::from_millis(30_000);

/// What came out of a rehearsal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rehearsal {
    /// Who died.
    pub(super) dying: Vec<NodeId>,
    /// Who led in the end; more than one where the algorithm does not survive a partition.
    pub(super) leaders: Vec<NodeId>,
    /// How many were left.
    pub(super) left: usize,
}

impl Rehearsal {
    /// Plays what would happen if `dying` died now.
    pub(super) fn play(status: &Status, dying: &[NodeId]) -> Result<Self> {
        let scene = Scene::new(status);
        let case = scene.script(dying)?.resolve().map_err(|error| {
            anyhow!("--if-dies: this cluster cannot be rehearsed: {}: {}", error.key, error.problem)
        })?;
        let outcome = run::run(&case, None);
        let leads = |(id, view): (NodeId, &Option<doyen_core::protocol::View>)| {
            view.is_some_and(|view| view.role.leads()).then_some(id)
        };
        let leaders = case.config.members.iter().zip(&outcome.views).filter_map(leads).collect();
        let gone: BTreeSet<NodeId> = scene.dead.iter().chain(dying).copied().collect();
        Ok(Self { dying: dying.to_vec(), leaders, left: status.members.len() - gone.len() })
    }
}

/// How many must agree, where a majority must.
pub(super) fn needed(status: &Status) -> Option<usize> {
    is_quorum(status).then(|| status.members.len() / 2 + 1)
}

fn is_quorum(status: &Status) -> bool {
    status.algorithm == Algorithm::Quorum.name()
}

/// What this node knows of the cluster.
struct Scene<'a> {
    status: &'a Status,
    dead: Vec<NodeId>,
}

impl<'a> Scene<'a> {
    fn new(status: &'a Status) -> Self {
        let alive = |it: &MemberStatus| it.reachable || heard_by_others(status, it);
        let dead = status.members.iter().filter(|member| !alive(member)).map(|member| member.id);
        Self { status, dead: dead.collect() }
    }

    fn script(&self, dying: &[NodeId]) -> Result<Scenario> {
        let status = self.status;
        let leader = status.leader.filter(|leader| !self.dead.contains(leader));
        let algorithm = status.algorithm.parse();
        let algorithm: Algorithm = algorithm.map_err(|problem: String| anyhow!(problem))?;
        let mut scenario = Scenario {
            algorithm: Some(algorithm),
            members: Some(MemberList::Listed(status.members.iter().map(|it| it.id.0).collect())),
            attr: status.members.iter().map(|it| (it.id.to_string(), self.attr(it))).collect(),
            dead: self.dead.iter().map(|id| id.0).collect(),
            leader: leader.map(|leader| leader.0),
            until: Some(END),
            fault: self.cuts().chain(self.deaths(dying)).collect(),
            ..Scenario::default()
        };
        if is_quorum(status) {
            scenario.quorum = Some(self.settings());
        } else {
            scenario.mode = Some(Mode::Hardened);
            scenario.detector = Some(Span::from_millis(50));
            scenario.reliable = true;
        }
        Ok(scenario)
    }

    /// How good a member is: by its place in line, where there is one.
    fn attr(&self, member: &MemberStatus) -> i64 {
        let line = &self.status.succession;
        let place = line.iter().rev().position(|&id| id == member.id);
        match line.is_empty() {
            true => member.priority,
            false => place.map_or(0, |place| place as i64 + 1),
        }
    }

    fn settings(&self) -> QuorumOptions {
        let those = |wanted: fn(&MemberStatus) -> bool| {
            self.status.members.iter().filter(|it| wanted(it)).map(|it| it.id.0).collect()
        };
        QuorumOptions {
            profile: Some(Profile::Lan),
            preemption: Some(Preemption::Never),
            witnesses: those(|member| member.witness),
            reluctant: those(|member| !member.eligible && !member.witness),
            ..QuorumOptions::default()
        }
    }

    /// Nothing gets from a member to one that does not hear it, though both are alive.
    fn cuts(&self) -> impl Iterator<Item = Fault> {
        let alive = || self.status.members.iter().filter(|member| !self.dead.contains(&member.id));
        let pairs = alive().flat_map(move |from| alive().map(move |to| (from, to)));
        let cut = pairs.filter(|(from, to)| self.status.reaches(to, from) == Some(false));
        cut.map(|(from, to)| Fault::at(Time::ZERO, Action::Cut { from: from.id, to: to.id }))
    }

    fn deaths(&self, dying: &[NodeId]) -> impl Iterator<Item = Fault> {
        let living: BTreeSet<NodeId> =
            dying.iter().filter(|id| !self.dead.contains(id)).copied().collect();
        let crash = |member| Action::Crash { member, forwards: false };
        living.into_iter().map(move |id| Fault::at(Time::ZERO + BEFORE, crash(id)))
    }
}

/// Whether one of the others says that it hears `member`. Where none of them is heard, none vouches for it.
fn heard_by_others(status: &Status, member: &MemberStatus) -> bool {
    let others = status.members.iter().filter(|it| it.id != status.id && it.id != member.id);
    others.into_iter().any(|other| status.reaches(other, member) == Some(true))
}
