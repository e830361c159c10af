//! The rules of Chang–Roberts in words.

use crate::protocol::RuleText;

/// The rules, in the order of the table.
pub const RULES: &[RuleText] = &[
    RuleText::new(
        "CR1",
        "starts an election",
        "{m} misses the coordinator. It takes part and sends ELECTION with its own number to \
         its neighbour.",
    ),
    RuleText::new(
        "CR2",
        "passes a higher number on",
        "ELECTION with a number higher than that of {m}: it takes part and passes the message \
         on.",
    ),
    RuleText::new(
        "CR3",
        "puts in its own number",
        "ELECTION with a lower number, and {m} has sent none yet: it takes part and sends its \
         own number instead.",
    ),
    RuleText::new(
        "CR4",
        "swallows a lower number",
        "ELECTION with a lower number, and {m} has sent a higher one already: it swallows the \
         message.",
    ),
    RuleText::new(
        "CR5",
        "its own number is back",
        "The number of {m} went round the whole ring, so no member is higher. {m} leads and \
         sends ELECTED round.",
    ),
    RuleText::new(
        "CR6",
        "learns who leads",
        "ELECTED with the number of another member: {m} follows it and passes the message on. \
         Hardened, it does not follow a winner that it takes for down.",
    ),
    RuleText::new(
        "CR7",
        "the result is back",
        "The ELECTED of {m} is back, or the same result has passed before: {m} removes it \
         from the ring.",
    ),
    RuleText::new(
        "CR8",
        "no winner in time",
        "Hardened: {m} took part and learned of no winner in time. It starts an election in a \
         higher term (CR1).",
    ),
    RuleText::new(
        "CR9",
        "points to the leader",
        "Hardened: {m} leads, or follows a leader above the number that arrived. It answers \
         ALIVE, and the number ends here.",
    ),
    RuleText::new(
        "CR10",
        "a number of an old election",
        "Hardened: {m} knows of a later term. It answers NACK, so that the next ELECTION of \
         the sender has a higher one.",
    ),
];
