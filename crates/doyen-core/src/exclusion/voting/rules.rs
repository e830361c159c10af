//! The rules of decentralised voting in words.

use crate::protocol::RuleText;

/// The rules, in the order of the table.
pub const RULES: &[RuleText] = &[
    RuleText::new(
        "V1",
        "asks for votes",
        "{m} wants to enter and asks the voters, all at once or one after the other.",
    ),
    RuleText::new(
        "V2",
        "votes",
        "The vote of {m} is free: it gives it to the member that asks, until that gives it back.",
    ),
    RuleText::new("V3", "denies", "Another member has the vote of {m}: it answers DENY."),
    RuleText::new(
        "V4",
        "has enough votes",
        "All voters that {m} asked have answered, and enough of them have voted for it: it enters.",
    ),
    RuleText::new(
        "V5",
        "has too few votes",
        "All voters that {m} asked have answered. It gives its votes back and waits for a random time.",
    ),
    RuleText::new(
        "V6",
        "a voter is late",
        "A voter did not answer {m} in time. It counts as a DENY, and its vote is given back, should it come.",
    ),
    RuleText::new("V7", "tries again", "The wait of {m} after a failed attempt is over."),
    RuleText::new("V8", "leaves", "{m} has left and gives its votes back."),
    RuleText::new(
        "V9",
        "its vote is back",
        "{m} gets its vote back and may give it to another member.",
    ),
];
