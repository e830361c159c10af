//! The rules of an exploration: which faults are possible, when timers expire, and what must hold.

use doyen_core::registry::Algorithm;
use doyen_sim::scenario::{Case, ScenarioError};
use doyen_sim::time::Time;

use crate::budget::{ANY, Budget};
use crate::part::Scope;
use crate::property::Property;
use crate::timers::Timers;

/// The members that an exploration takes at most.
pub const MAX_MEMBERS: usize = 32;

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

    /// Rejects what no exploration can say anything about. The key of an error is a flag.
    pub fn suit(&self, case: &Case) -> Result<(), ScenarioError> {
        let wrong = |key: &str, problem: String| Err(ScenarioError::new(key, problem));
        let count = case.members().len();
        if count > MAX_MEMBERS {
            let problem =
                format!("{count} members are too many to explore; use at most {MAX_MEMBERS}");
            return wrong("members", problem);
        }
        if self.scope.is_some() {
            return Ok(());
        }
        if !case.algorithm.elects() {
            return wrong("algorithm", only_elections(case.algorithm));
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
        if !is_called && campaigns == 0 && !case.algorithm.has_leases() {
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
}

/// Why an algorithm that does not elect is not checked.
pub(crate) fn only_elections(algorithm: Algorithm) -> String {
    format!(
        "{algorithm} elects no leader, and only elections are checked like this; `doyen sim` judges each of its runs"
    )
}
