//! The rules of Raymond's algorithm in words.

use crate::protocol::RuleText;

/// The rules, in the order of the table.
pub const RULES: &[RuleText] = &[
    RuleText::new("Y1", "wants the token", "{m} wants to enter and puts itself into its queue."),
    RuleText::new("Y2", "a neighbour wants the token", "{m} puts the neighbour into its queue."),
    RuleText::new("Y3", "gets the token", "The token is at {m} now."),
    RuleText::new("Y4", "leaves", "{m} has left; the token is idle."),
    RuleText::new(
        "Y5",
        "serves its queue",
        "The token is at {m} and idle. The first in its queue gets it: {m} itself enters, a neighbour receives TOKEN.",
    ),
];
