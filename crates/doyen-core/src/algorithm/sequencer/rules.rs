//! The rules of the sequencer in words.

use crate::protocol::RuleText;

/// The rules, in the order of the table.
pub const RULES: &[RuleText] = &[
    RuleText::new(
        "Q1",
        "submits a message",
        "{m} sends its program's message to the leader, to be ordered.",
    ),
    RuleText::new(
        "Q2",
        "orders a message",
        "{m} leads: it appends the message to its log and sends ORDER to all others.",
    ),
    RuleText::new(
        "Q3",
        "takes the next position",
        "ORDER of the next position: {m} appends the message. Eager: it delivers it. Stable: it stores it and says so.",
    ),
    RuleText::new(
        "Q4",
        "a majority has it",
        "A majority has the log up to a position: {m} delivers up to there and sends COMMIT to all others.",
    ),
    RuleText::new(
        "Q5",
        "takes over",
        "{m} takes over in a term of its own: it asks all others for their logs. What answers accepts no lower term any more.",
    ),
    RuleText::new(
        "Q6",
        "has the logs it needs",
        "{m} has the logs of all live members (eager) or of a majority (stable): it installs the latest one everywhere.",
    ),
    RuleText::new(
        "Q7",
        "installs a log",
        "INSTALL: {m} takes over the log. If it has delivered something else, its program must take over the state.",
    ),
];
