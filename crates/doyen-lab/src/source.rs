//! Where a run comes from: a scenario of the gallery or a text, and flags on top of it.

use std::fmt::Write;

use doyen_check::counterexample::{Counterexample, Course};
use doyen_sim::scenario::{Case, MemberList, Scenario};
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::{flags, gallery, limits, schedule};

/// The flags of `doyen sim` that an exploration cannot use. `doyen check` does not have them, because the fault budget
/// replaces them, or has them for random runs only.
#[rustfmt::skip]
pub const OF_SIM_ALONE: [&str; 22] = [
    "delay", "processing", "bound", "loss", "duplicate", "seed", "until", "crash", "restart", "pause", "clock", "cut",
    "partition", "heal", "drop", "late", "twice", "snapshot", "tell", "hold", "think", "grant",
];

/// The source of a run, as requests and addresses name it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Source {
    /// A scenario of the gallery.
    pub(crate) gallery: Option<String>,
    /// The text of a scenario.
    pub(crate) toml: Option<String>,
    /// Names and values of flags, applied in order.
    pub(crate) flags: Vec<(String, String)>,
}

/// A valid source.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) source: Source,
    pub(crate) scenario: Scenario,
    pub(crate) case: Case,
}

impl Source {
    /// Reads the scenario, applies the flags and checks the result.
    pub(crate) fn open(&self) -> Result<Opened, Problem> {
        let written = self.written()?;
        let mut scenario = written.clone();
        if self.flags.len() > limits::FLAGS {
            let detail = format!("more than {} flags; use a scenario instead", limits::FLAGS);
            return Err(Problem::of_scenario("flags", detail));
        }
        for (name, value) in &self.flags {
            flags::apply(&mut scenario, name, value)?;
        }
        if scenario != written {
            // The expectations of the text refer to the run without the flags.
            scenario.expect = None;
        }
        check_size(&scenario)?;
        let case = scenario.resolve()?;
        if case.memory_estimate() > limits::MEMORY {
            let detail = format!(
                "{} members with {} need too much memory; use fewer members, or an initiator with a higher number",
                case.members().len(),
                case.algorithm
            );
            return Err(Problem::of_scenario("members", detail));
        }
        Ok(Opened { source: self.clone(), scenario, case })
    }

    /// The scenario without the flags.
    fn written(&self) -> Result<Scenario, Problem> {
        let (name, text) = match (&self.gallery, &self.toml) {
            (Some(_), Some(_)) => {
                return Err(Problem::of_scenario("toml", "give either `gallery` or `toml`"));
            }
            (Some(name), None) => {
                let entry = gallery::find(name)
                    .map_err(|detail| Problem::of_scenario("gallery", detail))?;
                (entry.name, entry.text)
            }
            (None, Some(text)) => {
                if let Some(file) = counterexample(text)? {
                    return Ok(file.scenario);
                }
                ("scenario.toml", text.as_str())
            }
            (None, None) => return Ok(Scenario::default()),
        };
        check_length(text)?;
        Scenario::parse(name, text).map_err(|detail| Problem::of_scenario("toml", detail))
    }

    /// The counterexample that the source is, if it is one of the checker: a schedule, not a scenario. A counterexample of a
    /// random run is a scenario.
    pub(crate) fn schedule(&self) -> Result<Option<Counterexample>, Problem> {
        let Some(file) = self.toml.as_deref().map(counterexample).transpose()?.flatten() else {
            return Ok(None);
        };
        let Course::Schedule { rules, .. } = &file.course else { return Ok(None) };
        if let Some((name, _)) = self.flags.first() {
            let detail = "a counterexample is one schedule, and flags would change it";
            return Err(Problem::of_scenario(name, detail));
        }
        let problem = match (rules.from, rules.scope) {
            (Some(_), _) => Some(("from", "begins in the middle of a run")),
            (_, Some(_)) => Some(("part", "is about a part of the quorum")),
            (None, None) => None,
        };
        if let Some((key, what)) = problem {
            let detail = format!("this counterexample {what}; `doyen replay` shows it");
            return Err(Problem::of_scenario(key, detail));
        }
        Ok(Some(file))
    }

    /// The name of files that are made from it, without the extension.
    pub(crate) fn base_name(&self) -> &str {
        let name = self.gallery.as_deref().unwrap_or("scenario");
        name.rsplit('/').next().unwrap_or(name)
    }

    /// The command that repeats the run.
    pub(crate) fn command(&self) -> String {
        self.command_of("sim")
    }

    /// The same for another command that takes a scenario.
    pub(crate) fn command_of(&self, name: &str) -> String {
        let mut command = format!("doyen {name}");
        let takes = |flag: &str| name == "sim" || !OF_SIM_ALONE.contains(&flag);
        // No flag unsets what a scenario sets. The resulting scenario, as a file, says everything.
        let is_said = |(flag, value): &(String, String)| !value.is_empty() && takes(flag);
        if !self.flags.iter().all(is_said) {
            return command + " scenario.toml";
        }
        match (&self.gallery, &self.toml) {
            (Some(name), _) => _ = write!(command, " {}", quoted(name)),
            (None, Some(_)) => command.push_str(" scenario.toml"),
            (None, None) => {}
        }
        for (name, value) in &self.flags {
            let is_switch = flags::SWITCHES.contains(&name.as_str());
            _ = match is_switch {
                true if value == "true" => write!(command, " --{name}"),
                true => write!(command, " --{name}={value}"),
                false => write!(command, " --{name} {}", quoted(value)),
            };
        }
        command
    }
}

/// The counterexample that a text is, if it is one.
fn counterexample(text: &str) -> Result<Option<Counterexample>, Problem> {
    check_length(text)?;
    if !Counterexample::is_one(text) {
        return Ok(None);
    }
    let file = Counterexample::parse(schedule::FILE, text);
    file.map(Some).map_err(|detail| Problem::of_scenario("toml", detail))
}

fn check_length(text: &str) -> Result<(), Problem> {
    if text.len() > limits::TEXT {
        let detail = format!("the scenario is longer than {} bytes", limits::TEXT);
        return Err(Problem::of_scenario("toml", detail));
    }
    Ok(())
}

impl Opened {
    /// The scenario with the values of the flags.
    pub(crate) fn toml(&self) -> String {
        self.scenario.to_toml()
    }
}

/// Rejects a group that is too large before anything is made for each member.
fn check_size(scenario: &Scenario) -> Result<(), Problem> {
    let count = match &scenario.members {
        Some(MemberList::Count(count)) => *count,
        Some(MemberList::Range(range)) => {
            let ends = range.split_once("..").map(|(first, last)| {
                [first, last.trim_start_matches('=')].map(|end| end.trim().parse::<u64>().ok())
            });
            match ends {
                Some([Some(first), Some(last)]) => last.saturating_sub(first),
                _ => 0, // which is rejected with a better message
            }
        }
        Some(MemberList::Listed(ids)) => ids.len() as u64,
        None => 0,
    };
    if count > limits::MEMBERS {
        let detail = format!("{count} members are too many; at most {}", limits::MEMBERS);
        return Err(Problem::of_scenario("members", detail));
    }
    Ok(())
}

/// As a word for a shell.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.,:@%=+/".contains(c);
    match !value.is_empty() && value.chars().all(is_plain) {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\'', r"'\''")),
    }
}
