//! A run in the making: the base, and one value for each swept key.

use std::str::FromStr;

use doyen_core::algorithm::Algorithm;
use doyen_core::config::Mode;

use super::{Axis, Result, Setting};
use crate::random::{Random, splitmix};
use crate::scenario::{Case, Initiator, Initiators, MemberList, Scenario, ScenarioError};
use crate::text::Share;

/// More initiators than are written down one by one.
const MAX_LISTED: u64 = 10_000;

/// A run in the making.
pub(super) struct Draft {
    pub(super) scenario: Scenario,
    pub(super) faults: String,
    initiator: Option<Setting>,
    initiators: Option<Setting>,
    seed: u64,
}

/// A key that can be swept, besides algorithm, mode and seed.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// Whether its values are numbers, and which words stand beside them.
    words: Option<&'static [&'static str]>,
    apply: fn(&mut Draft, &Setting) -> std::result::Result<(), String>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Key {
    const fn other(
        name: &'static str,
        apply: fn(&mut Draft, &Setting) -> std::result::Result<(), String>,
    ) -> Self {
        Self { name, words: None, apply }
    }

    /// What the key runs through, each value once.
    pub(super) fn values(&self, axis: &Axis) -> Result<Vec<Setting>> {
        if let Some(words) = self.words {
            return axis.numbers(words).map_err(|problem| ScenarioError::new(self.name, problem));
        }
        let mut values: Vec<Setting> = Vec::new();
        for setting in axis.settings() {
            if !values.contains(setting) {
                values.push(setting.clone());
            }
        }
        Ok(values)
    }
}

/// Every key that can be swept, in the order in which they change: the first most slowly.
pub(super) const KEYS: &[Key] = &[
    Key::other("convention", |draft, value| set(&mut draft.scenario.convention, value)),
    Key::other("contact_dead", |draft, value| set_flag(&mut draft.scenario.contact_dead, value)),
    Key::other("ring", |draft, value| set(&mut draft.scenario.ring, value)),
    Key::other("announce", |draft, value| set(&mut draft.scenario.announce, value)),
    Key::other("faults", |draft, value| {
        draft.faults = text(value)?;
        Ok(())
    }),
    Key::other("delay", |draft, value| set(&mut draft.scenario.delay, value)),
    Key::other("processing", |draft, value| set(&mut draft.scenario.processing, value)),
    Key::other("bound", |draft, value| set(&mut draft.scenario.bound, value)),
    Key::other("window", |draft, value| set(&mut draft.scenario.window, value)),
    Key::other("heartbeat", |draft, value| set(&mut draft.scenario.heartbeat, value)),
    Key::other("preempt", |draft, value| set(&mut draft.scenario.preempt, value)),
    Key::other("detector", |draft, value| set(&mut draft.scenario.detector, value)),
    Key::other("reliable", |draft, value| set_flag(&mut draft.scenario.reliable, value)),
    Key::other("fifo", |draft, value| {
        let mut fifo = false;
        set_flag(&mut fifo, value)?;
        draft.scenario.fifo = Some(fifo);
        Ok(())
    }),
    Key::other("loss", |draft, value| set_share(&mut draft.scenario.loss, value)),
    Key::other("duplicate", |draft, value| set_share(&mut draft.scenario.duplicate, value)),
    Key {
        name: "members",
        words: Some(&[]),
        apply: |draft, value| {
            draft.scenario.members = Some(MemberList::Count(number(value)?));
            Ok(())
        },
    },
    Key {
        name: "initiator",
        words: Some(&["lowest", "middle", "highest", "random"]),
        apply: |draft, value| {
            draft.initiator = Some(value.clone());
            Ok(())
        },
    },
    Key {
        name: "initiators",
        words: Some(&["all", "none"]),
        apply: |draft, value| {
            draft.initiators = Some(value.clone());
            Ok(())
        },
    },
];

impl Draft {
    pub(super) fn new(base: &Scenario, algorithm: Algorithm, mode: Mode, seed: u64) -> Self {
        let mut scenario = base.clone();
        scenario.algorithm = Some(algorithm);
        scenario.mode = Some(mode);
        scenario.seed = Some(seed);
        let faulty = !base.fault.is_empty() || base.chaos.is_some();
        let faults = if faulty { "base" } else { "none" }.to_owned();
        Self { scenario, faults, initiator: None, initiators: None, seed }
    }

    pub(super) fn set(&mut self, key: &Key, setting: &Setting) -> Result<()> {
        (key.apply)(self, setting).map_err(|problem| ScenarioError::new(key.name, problem))
    }

    /// The faults' name, the scenario and the case.
    pub(super) fn finish(mut self) -> Result<(String, Scenario, Case)> {
        match (self.initiator.take(), self.initiators.take()) {
            (None, None) => {}
            (Some(_), Some(_)) => {
                let problem =
                    "stands beside initiators; sweep one of them: who notices, or how many";
                return Err(ScenarioError::new("initiator", problem));
            }
            (Some(who), None) => self.scenario.initiators = Some(self.pick_one(&who)?),
            (None, Some(Setting::Text(word))) => {
                let wrong = |problem| ScenarioError::new("initiators", problem);
                self.scenario.initiators = Some(word.parse().map_err(wrong)?);
            }
            (None, Some(count)) => self.scenario.initiators = Some(self.pick_many(&count)?),
        }
        let case = self.scenario.resolve()?;
        Ok((self.faults, self.scenario, case))
    }

    /// The live members, lowest first.
    fn live(&self) -> Result<Vec<u32>> {
        let mut scenario = self.scenario.clone();
        scenario.initiators = Some(Initiators::None);
        Ok(scenario.resolve()?.live_by_rank().into_iter().map(|id| id.0).collect())
    }

    fn pick_one(&self, who: &Setting) -> Result<Initiators> {
        let live = self.live()?;
        let last = live.len() as u64;
        let rank = match who {
            Setting::Number(rank) => *rank,
            Setting::Text(word) if word == "lowest" => 1,
            Setting::Text(word) if word == "middle" => last.div_ceil(2),
            Setting::Text(word) if word == "highest" => last,
            _ => self.random().between(1, last),
        };
        let id =
            rank.checked_sub(1).and_then(|place| live.get(place as usize)).ok_or_else(|| {
                let problem =
                    format!("there is no live member number {rank}; they are numbered 1 to {last}");
                ScenarioError::new("initiator", problem)
            })?;
        Ok(Initiators::Listed(vec![Initiator::AtOnce(*id)]))
    }

    fn pick_many(&self, count: &Setting) -> Result<Initiators> {
        let wrong = |problem: String| ScenarioError::new("initiators", problem);
        let count = number(count).map_err(wrong)?;
        let mut live = self.live()?;
        if count > live.len() as u64 {
            return Err(wrong(format!("{count} cannot notice; only {} are alive", live.len())));
        }
        if count > MAX_LISTED {
            return Err(wrong(format!(
                "{count} are too many to draw; at most {MAX_LISTED}, or all"
            )));
        }
        self.random().shuffle(&mut live);
        live.truncate(count as usize);
        live.sort_unstable();
        Ok(Initiators::Listed(live.into_iter().map(Initiator::AtOnce).collect()))
    }

    /// A stream of its own: who notices does not depend on what the run draws.
    fn random(&self) -> Random {
        Random::new(splitmix(!self.seed))
    }
}

fn number(value: &Setting) -> std::result::Result<u64, String> {
    match value {
        Setting::Number(number) => Ok(*number),
        other => Err(format!("`{other}` is not a whole number")),
    }
}

fn text(value: &Setting) -> std::result::Result<String, String> {
    match value {
        Setting::Text(text) => Ok(text.clone()),
        Setting::Number(0) => Ok("0".to_owned()),
        other => Err(format!("`{other}` must be a text, in quotation marks")),
    }
}

fn set<T: FromStr<Err = E>, E: ToString>(
    target: &mut Option<T>,
    value: &Setting,
) -> std::result::Result<(), String> {
    *target = Some(text(value)?.parse().map_err(|problem: E| problem.to_string())?);
    Ok(())
}

fn set_flag(target: &mut bool, value: &Setting) -> std::result::Result<(), String> {
    match value {
        Setting::Flag(flag) => *target = *flag,
        other => return Err(format!("`{other}` is neither true nor false")),
    }
    Ok(())
}

fn set_share(target: &mut Option<Share>, value: &Setting) -> std::result::Result<(), String> {
    *target = Some(match value {
        Setting::Number(number) => Share::new(*number as f64)?,
        Setting::Fraction(fraction) => Share::new(*fraction)?,
        Setting::Text(text) => text.parse()?,
        Setting::Flag(flag) => return Err(format!("`{flag}` is not a share; write 5% or 0.05")),
    });
    Ok(())
}
