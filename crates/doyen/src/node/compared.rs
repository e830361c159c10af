//! The settings of a node that should be the same on all members, for `doyen doctor`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use doyen_core::group::{self, Group};
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use serde::{Deserialize, Serialize};

use crate::config::Settings;
use crate::mutex::lock;

/// Settings that members compare. Members that differ in them work together, but not as one of their operators meant.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
pub struct Compared {
    /// The priority of each member by its name, as this member's list has it.
    pub priorities: BTreeMap<String, i64>,
    /// The timing, the preemption and the groups by the names of their settings.
    pub timing: BTreeMap<String, String>,
}

impl Compared {
    /// Those of a configuration.
    pub fn of(settings: &Settings) -> Self {
        let priorities = settings.members.iter().map(|it| (it.name.clone(), it.priority));
        let timing = match settings.algorithm {
            Algorithm::Quorum => timing(settings),
            _ => Vec::new(),
        };
        let timing = timing.into_iter().map(|(name, value)| (name.to_owned(), value));
        Self { priorities: priorities.collect(), timing: timing.collect() }
    }
}

fn timing(settings: &Settings) -> Vec<(&'static str, String)> {
    let (timing, quorum) = (&settings.core.timing, &settings.core.quorum);
    let time = |it: Span| it.rounded().to_string();
    let groups = settings.groups.iter().flat_map(group::Config::groups);
    let groups: Vec<String> = groups.map(|group| as_configured(group, settings)).collect();
    vec![
        ("groups", groups.join(", ")),
        ("timing.transmission", time(timing.transmission)),
        ("timing.processing", time(timing.processing)),
        ("timing.heartbeat", time(quorum.pace.heartbeat)),
        ("timing.vote_lease", time(quorum.pace.vote_lease)),
        ("timing.drift", (f64::from(quorum.pace.drift) / 1000.0).to_string()),
        ("timing.jitter", time(quorum.jitter)),
        ("timing.stagger", time(quorum.stagger)),
        ("timing.tenure", time(quorum.tenure)),
        ("timing.penalty_decay", time(quorum.penalty_decay)),
        ("timing.probe", quorum.probe.map_or("off".to_owned(), time)),
        ("preemption.policy", quorum.preemption.to_string()),
        ("preemption.delay", time(timing.preempt)),
        ("preemption.margin", quorum.margin.to_string()),
    ]
}

/// `orders` or `billing=n2,n1`.
fn as_configured(group: &Group, settings: &Settings) -> String {
    let preferred: Vec<&str> = group.preferred.iter().map(|&id| settings.name_of(id)).collect();
    match preferred.is_empty() {
        true => group.name.to_string(),
        false => format!("{}={}", group.name, preferred.join(",")),
    }
}

/// The settings of a node that runs, which may change.
#[derive(Clone, Debug, Default)]
pub(super) struct Current(Arc<Mutex<Compared>>);

impl Current {
    pub(super) fn new(settings: &Settings) -> Self {
        Self(Arc::new(Mutex::new(Compared::of(settings))))
    }

    pub(super) fn get(&self) -> Compared {
        lock(&self.0).clone()
    }

    pub(super) fn set(&self, compared: Compared) {
        *lock(&self.0) = compared;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Configuration;

    #[test]
    fn groups_are_compared_with_their_preferred_members() {
        let groups = |listed: &str| {
            let text = format!(
                "cluster = \"c\"\nid = 1\nstate_dir = \"/tmp\"\ngroups = [{listed}]\n\
                 [[member]]\nid = 1\naddress = \"127.0.0.1:7401\"\n\
                 [[member]]\nid = 2\naddress = \"127.0.0.1:7402\"\n"
            );
            let configuration = Configuration::parse("doyen.toml", &text).expect("a configuration");
            Compared::of(&configuration.settings).timing["groups"].clone()
        };
        assert_eq!(groups("\"orders\", \"billing=n2,n1\""), "billing=n2,n1, orders");
        assert_ne!(groups("\"billing=n2,n1\""), groups("\"billing=n1,n2\""));
    }
}
