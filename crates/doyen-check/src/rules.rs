//! The rules of an exploration: which faults are possible, when timers expire, and what must hold.

use doyen_sim::scenario::{Case, ScenarioError};
use doyen_sim::time::Time;

use crate::budget::{ANY, Budget};
use crate::part::{Part, Scope};
use crate::property::Property;
use crate::scene::requests_of;
use crate::timers::Timers;

/// The members that an exploration takes at most.
pub const MAX_MEMBERS: usize = 32;

/// How often a member may ask to enter the critical section at most.
const MAX_REQUESTS: u8 = 100;

/// What is explored, and what must hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    /// The faults that are possible.
    pub budget: Budget,
    /// When timers expire.
    pub timers: Timers,
    /// Whether links keep the order of messages.
    pub fifo: bool,
    /// The properties that are checked.
    pub properties: Vec<Property>,
    /// The moment of the simulated run from which everything is explored; the initial scene without it.
    pub from: Option<Time>,
    /// The part of the quorum that is explored; the members as the case has them without it.
    pub scope: Option<Scope>,
}

impl Rules {
    /// The default rules of a part of the quorum.
    pub fn of(scope: Scope, wrong_clocks: bool) -> Self {
        Self {
            budget: scope.budget(),
            timers: scope.timers(wrong_clocks),
            fifo: false,
            properties: scope.properties(),
            from: None,
            scope: Some(scope),
        }
    }

    /// Whether a message that was sent may arrive at any later moment, any number of times, or never. Nothing can then be
    /// said about how runs end.
    pub fn messages_last(&self) -> bool {
        let Budget { losses, duplications, .. } = self.budget;
        let is_unbounded = !matches!(self.timers, Timers::Bounded { .. });
        losses == ANY && duplications == ANY && is_unbounded && !self.fifo
    }

    /// Rejects cases that no exploration can judge. The key of an error is a flag.
    pub fn suit(&self, case: &Case) -> Result<(), ScenarioError> {
        let wrong = |key: &str, problem: String| Err(ScenarioError::new(key, problem));
        let count = case.members().len();
        if count > MAX_MEMBERS {
            let problem =
                format!("{count} members are too many to explore; use at most {MAX_MEMBERS}");
            return wrong("members", problem);
        }
        match self.scope.map(|scope| scope.part) {
            Some(Part::Locks) => return self.suit_locks(case),
            Some(_) => return Ok(()),
            None => {}
        }
        if !case.algorithm.elects() {
            self.suit_clients(case)?;
        }
        let tells_in_vain = !self.properties.contains(&Property::CausalOrder);
        if self.budget.tells > 0 && tells_in_vain {
            let problem =
                "only causal-order is about application messages; add --property causal-order";
            return wrong("tells", problem.to_owned());
        }
        let Budget { crashes, restarts, campaigns, transfers, commands, rejoins, .. } = self.budget;
        if transfers + commands + rejoins > 0 && !case.algorithm.has_leases() {
            let problem = "only a quorum has these; add --algorithm quorum".to_owned();
            return wrong("transfers, --commands, --rejoins", problem);
        }
        if self.budget.snapshots > 0 && case.sessions {
            let problem =
                "a snapshot needs a fixed set of processes; leave out --sessions".to_owned();
            return wrong("snapshots", problem);
        }
        self.timers.suit(case).map_err(|problem| ScenarioError::new("timers", problem))?;
        let is_called = case.leader.is_some() || !case.initiators.is_empty();
        // The members of a quorum call elections on their own.
        if !is_called && campaigns == 0 && !case.algorithm.has_leases() && case.algorithm.elects() {
            let problem =
                "without a leader and an initiator nothing happens; name an initiator".to_owned();
            return wrong("initiators", problem);
        }
        if restarts > 0 && crashes == 0 && case.dead.is_empty() {
            let problem = "no member is down or crashes; add --crashes 1 or --dead".to_owned();
            return wrong("restarts", problem);
        }
        Ok(())
    }

    /// Rejects what means nothing to the lock service under leaders that succeed each other.
    fn suit_locks(&self, case: &Case) -> Result<(), ScenarioError> {
        let Budget { crashes, restarts, losses, duplications, .. } = self.budget;
        let of_locks = Budget { crashes, restarts, losses, duplications, ..Budget::default() };
        let others = self.budget.items().into_iter().zip(of_locks.items());
        let problem = "lock-service is explored beneath leaders that succeed each other, without their election; leave this \
                       out, or use quorum";
        if let Some(((flag, _), _)) = others.into_iter().find(|(all, own)| all != own) {
            return Err(ScenarioError::new(flag, problem));
        }
        if self.from.is_some() {
            return Err(ScenarioError::new("from", problem));
        }
        if case.leader != Some(case.members().highest()) {
            let problem = "lock-service is explored with the highest member as the first leader";
            return Err(ScenarioError::new("leader", problem));
        }
        self.suit_clients(case)
    }

    /// Rejects what means nothing to an algorithm that elects no leader: its members do what their clients ask for.
    fn suit_clients(&self, case: &Case) -> Result<(), ScenarioError> {
        let algorithm = case.algorithm;
        let wrong = |key: &str, problem: String| Err(ScenarioError::new(key, problem));
        if self.budget.campaigns > 0 && !algorithm.heeds_campaigns() {
            return wrong("campaigns", format!("{algorithm} elects no leader; leave this out"));
        }
        if self.budget.suspicions > 0 && !algorithm.heeds_reports(case.mode()) {
            let problem = format!("{algorithm} ignores failure reports; leave this out");
            return wrong("suspicions", problem);
        }
        let requests = requests_of(case);
        if requests.is_empty() {
            let problem = "no member asks for anything, so nothing happens; name one".to_owned();
            return wrong("requests", problem);
        }
        match requests.into_iter().find(|&(_, count)| count > MAX_REQUESTS) {
            Some((id, _)) => {
                let problem = format!("{id} asks too often; use at most {MAX_REQUESTS} requests");
                wrong("repeat", problem)
            }
            None => Ok(()),
        }
    }
}
