//! The rules of the token ring in words.

use crate::protocol::RuleText;

/// The rules, in the order of the table.
pub const RULES: &[RuleText] = &[
    RuleText::new(
        "T1",
        "starts the token",
        "{m} is the first member. It has the token and passes it on.",
    ),
    RuleText::new(
        "T2",
        "enters with the token",
        "The token reaches {m}, which waits for it: it enters.",
    ),
    RuleText::new(
        "T3",
        "passes the token on",
        "{m} does not want to enter and passes the token to its successor.",
    ),
    RuleText::new(
        "T4",
        "leaves",
        "{m} has left and passes the token on, even if it wants to enter again.",
    ),
];
