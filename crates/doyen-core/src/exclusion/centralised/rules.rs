//! The rules of centralised exclusion in words.

use crate::protocol::RuleText;

/// The rules, in the order of the table.
pub const RULES: &[RuleText] = &[
    RuleText::new(
        "C1",
        "asks the coordinator",
        "{m} wants to enter and sends REQUEST to the coordinator.",
    ),
    RuleText::new(
        "C2",
        "a request reaches the coordinator",
        "{m} coordinates. If the section is free it grants it, otherwise it queues the request.",
    ),
    RuleText::new("C3", "enters", "The coordinator has granted {m} the section: it enters."),
    RuleText::new("C4", "leaves", "{m} has left and gives the section back with RELEASE."),
    RuleText::new(
        "C5",
        "the next one",
        "The holder has left. {m} grants the section to the first in its queue, if there is one.",
    ),
];
