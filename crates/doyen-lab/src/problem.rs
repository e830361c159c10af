//! Why a request has no answer: it is rejected, or was stopped.

use doyen_sim::scenario::ScenarioError;
use serde::Serialize;

/// Why a request has no answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Problem {
    /// The kind of problem, the same for all problems of the kind.
    title: &'static str,
    /// What is wrong, and how to correct it.
    detail: String,
    /// The flag or the key of the scenario at fault.
    key: Option<String>,
}

impl Problem {
    pub(crate) fn new(title: &'static str, detail: impl Into<String>) -> Self {
        Self { title, detail: detail.into(), key: None }
    }

    /// The scenario makes no sense, or is too large.
    pub(crate) fn of_scenario(key: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { title: "This scenario cannot run", detail: detail.into(), key: Some(key.into()) }
    }

    /// The caller has stopped it.
    pub(crate) fn stopped() -> Self {
        Self::new("Stopped", "this was stopped before it was done")
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl From<ScenarioError> for Problem {
    fn from(error: ScenarioError) -> Self {
        Self::of_scenario(error.flag(), error.to_string())
    }
}
