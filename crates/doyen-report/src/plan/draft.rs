//! A run that is being assembled: the base, and one value for each swept key.

use toml::{Table, Value};

use super::axis::text;
use super::{Axis, Result};
use doyen_sim::random::{Random, splitmix};
use doyen_sim::scenario::{Case, Initiators, Scenario, ScenarioError};

/// The most initiators that are listed one by one.
const MAX_LISTED: i64 = 10_000;

/// The keys of a scenario that can be swept, besides algorithm, mode and seed, in the order in which they change: the
/// first most slowly.
pub(super) const KEYS: &[&str] = &[
    "convention",
    "contact_dead",
    "ring",
    "announce",
    "faults",
    "delay",
    "processing",
    "bound",
    "window",
    "heartbeat",
    "preempt",
    "detector",
    "reliable",
    "fifo",
    "loss",
    "duplicate",
    "sets",
    "tree",
    "hold",
    "think",
    "repeat",
    "requests",
    "members",
    "initiator",
    "initiators",
];

/// The values of a key, each once.
pub(super) fn values(key: &str, axis: &Axis) -> Result<Vec<Value>> {
    let values = match key {
        "members" => axis.numbers(&[]),
        "initiator" => axis.numbers(&["lowest", "middle", "highest", "random"]),
        "repeat" => axis.numbers(&[]),
        "initiators" => axis.numbers(&["all", "none"]),
        _ => axis.distinct(),
    };
    values.map_err(|problem| ScenarioError::new(key, problem))
}

/// A run that is being assembled: a scenario as a table.
pub(super) struct Draft {
    pub(super) table: Table,
    pub(super) faults: String,
    initiator: Option<Value>,
    initiators: Option<Value>,
    seed: u64,
}

impl Draft {
    pub(super) fn new(base: &Table, algorithm: &str, mode: &str, seed: u64) -> Self {
        let mut table = base.clone();
        table.insert("algorithm".to_owned(), algorithm.into());
        table.insert("mode".to_owned(), mode.into());
        table.insert("seed".to_owned(), Value::Integer(seed as i64));
        let faulty = base.contains_key("fault") || base.contains_key("chaos");
        let faults = if faulty { "base" } else { "none" }.to_owned();
        Self { table, faults, initiator: None, initiators: None, seed }
    }

    pub(super) fn set(&mut self, key: &str, value: &Value) -> Result<()> {
        match key {
            "faults" => self.faults = text(value),
            "initiator" => self.initiator = Some(value.clone()),
            "initiators" => self.initiators = Some(value.clone()),
            _ => {
                let alone = Table::from_iter([(key.to_owned(), value.clone())]);
                let read = Scenario::from_table(&alone);
                read.map_err(|error| {
                    let problem = error.message().lines().next().unwrap_or_default();
                    let named = format!("`{}`", text(value));
                    match problem.starts_with(&named) {
                        true => ScenarioError::new(key, problem),
                        false => ScenarioError::new(key, format!("{named}: {problem}")),
                    }
                })?;
                self.table.insert(key.to_owned(), value.clone());
            }
        }
        Ok(())
    }

    /// Adds a set of faults to those of the base; its chaos takes the place of the base's.
    pub(super) fn add_faults(&mut self, set: &Table) {
        for (key, value) in set {
            match (self.table.get_mut(key), value) {
                (Some(Value::Array(faults)), Value::Array(more)) => faults.extend(more.clone()),
                _ => drop(self.table.insert(key.clone(), value.clone())),
            }
        }
    }

    /// The faults' name, the scenario and the case.
    pub(super) fn finish(mut self) -> Result<(String, Scenario, Case)> {
        let initiators = match (self.initiator.take(), self.initiators.take()) {
            (None, None) => None,
            (Some(_), Some(_)) => {
                let problem =
                    "is swept beside initiators; sweep one of them: who notices, or how many";
                return Err(ScenarioError::new("initiator", problem));
            }
            (Some(who), None) => Some(self.pick_one(&who)?),
            (None, Some(Value::Integer(count))) => Some(self.pick_many(count)?),
            (None, all_or_none) => all_or_none,
        };
        self.table.extend(initiators.map(|value| ("initiators".to_owned(), value)));
        let scenario = self.scenario()?;
        let case = scenario.resolve()?;
        Ok((self.faults, scenario, case))
    }

    fn scenario(&self) -> Result<Scenario> {
        let read = Scenario::from_table(&self.table);
        read.map_err(|error| ScenarioError::new("faults", error.message()))
    }

    /// The live members, lowest first.
    fn live(&self) -> Result<Vec<u32>> {
        let mut scenario = self.scenario()?;
        scenario.initiators = Some(Initiators::None);
        Ok(scenario.resolve()?.live_by_rank().into_iter().map(|id| id.0).collect())
    }

    fn pick_one(&self, who: &Value) -> Result<Value> {
        let live = self.live()?;
        let last = live.len() as u64;
        let rank = match who {
            Value::Integer(rank) => *rank as u64,
            Value::String(word) if word == "lowest" => 1,
            Value::String(word) if word == "middle" => last.div_ceil(2),
            Value::String(word) if word == "highest" => last,
            _ => self.random().between(1, last),
        };
        let id = rank.checked_sub(1).and_then(|place| live.get(place as usize));
        let id = id.ok_or_else(|| {
            let problem =
                format!("there is no live member number {rank}; they are numbered 1 to {last}");
            ScenarioError::new("initiator", problem)
        })?;
        Ok(listed(&[*id]))
    }

    fn pick_many(&self, count: i64) -> Result<Value> {
        let wrong = |problem: String| Err(ScenarioError::new("initiators", problem));
        let mut live = self.live()?;
        if count > live.len() as i64 {
            return wrong(format!("{count} cannot notice; only {} are alive", live.len()));
        }
        if count > MAX_LISTED {
            return wrong(format!("{count} are too many to draw; at most {MAX_LISTED}, or all"));
        }
        self.random().shuffle(&mut live);
        live.truncate(count as usize);
        live.sort_unstable();
        Ok(listed(&live))
    }

    /// A separate random stream: the initiators do not depend on what the run draws.
    fn random(&self) -> Random {
        Random::new(splitmix(!self.seed))
    }
}

fn listed(ids: &[u32]) -> Value {
    Value::Array(ids.iter().map(|&id| Value::Integer(i64::from(id))).collect())
}
