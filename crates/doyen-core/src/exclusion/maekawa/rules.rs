//! The rules of Maekawa's algorithm in words.

use crate::protocol::RuleText;

/// The rules, in the order of the table.
pub const RULES: &[RuleText] = &[
    RuleText::new(
        "K1",
        "asks its arbiters",
        "{m} wants to enter and asks every arbiter of its set for its vote.",
    ),
    RuleText::new("K2", "votes", "The vote of {m} is free: it gives it to this request."),
    RuleText::new(
        "K3",
        "an earlier request comes first",
        "An earlier request has the vote of {m} or waits for it. {m} queues this one and answers FAIL.",
    ),
    RuleText::new(
        "K4",
        "the earliest request",
        "This request is earlier than all that {m} knows. It asks the holder of its vote to give it back, and tells an overtaken request FAIL.",
    ),
    RuleText::new(
        "K5",
        "gets a vote",
        "An arbiter has voted for {m}. With the votes of its whole set it enters.",
    ),
    RuleText::new(
        "K6",
        "fails or is inquired",
        "{m} notes that an arbiter prefers an earlier request, or would like its vote back.",
    ),
    RuleText::new(
        "K7",
        "gives votes back",
        "{m} cannot win now: it gives back the votes that arbiters have inquired about.",
    ),
    RuleText::new(
        "K8",
        "its vote is given back",
        "The holder gives the vote of {m} back and keeps waiting. {m} votes for the first in its queue.",
    ),
    RuleText::new(
        "K9",
        "its vote is free again",
        "The holder of the vote of {m} has left. {m} votes for the first in its queue, if there is one.",
    ),
    RuleText::new("K10", "leaves", "{m} has left and gives all its votes back."),
];
