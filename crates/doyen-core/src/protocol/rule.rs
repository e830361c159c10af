//! The words of a rule, for people who read a run.

use serde::Serialize;

/// A rule of an algorithm, in words. Handlers note its id when it fires
/// ([`Effects::rule`](super::Effects::rule)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct RuleText {
    /// Its name in the algorithm's table, such as `R3`.
    pub id: &'static str,
    /// What happens, in a few words.
    pub title: &'static str,
    /// One or two sentences. `{m}` stands for the member to which it happens.
    pub text: &'static str,
}

impl RuleText {
    /// The words of the rule `id`.
    pub const fn new(id: &'static str, title: &'static str, text: &'static str) -> Self {
        Self { id, title, text }
    }
}
