//! The texts of a page that are in no other place.

use doyen_core::config::Mode;
use doyen_core::members::NodeId;
use doyen_core::protocol::RuleText;
use doyen_sim::words::{grouped, listed};

use crate::record::Step;

/// A step as a few sentences: the rules that fired, in words, and their result. Nothing if that says no more than the
/// step's text.
pub(crate) fn sentence(step: &Step, rules: &[&RuleText]) -> String {
    let Some(member) = step.member else { return String::new() };
    let fired = step.rules.iter().filter_map(|id| rules.iter().find(|rule| rule.id == id));
    let mut sentences: Vec<String> =
        fired.map(|rule| rule.text.replace("{m}", &member.to_string())).collect();
    for deed in &step.deeds {
        if !sentences.iter().any(|said| said.contains(deed)) {
            sentences.push(format!("{deed}."));
        }
    }
    sentences.join(" ")
}

/// A mode in a few words, and what it means.
pub(crate) fn mode(mode: Mode) -> (&'static str, &'static str) {
    match mode {
        Mode::Textbook => ("textbook", "as the source describes it, exact to the message"),
        Mode::Hardened => ("hardened", "with numbered elections, re-announcement and back-off"),
        Mode::Literal(variant) => (variant.name(), variant.summary()),
    }
}

/// `1 step`, `7 steps`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// `5, 6 and 7`.
pub(crate) fn ids(ids: &[NodeId]) -> String {
    listed(&ids.iter().map(ToString::to_string).collect::<Vec<_>>())
}
