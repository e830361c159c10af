//! The rules of Lamport's algorithm in words.

rule_texts! {
    "L1" "asks all others":
        "{m} wants to enter. It puts its request into its queue and sends it to all others.",
    "L2" "hears something later":
        "{m} has received from this member something later than its own request: no earlier one can come from there.",
    "L3" "queues a request":
        "{m} puts the request into its queue and replies.",
    "L4" "removes a request":
        "A member has left, and {m} removes its request from the queue.",
    "L5" "enters":
        "The request of {m} is first in its queue, and it has heard from all others since: it enters.",
    "L6" "leaves":
        "{m} has left. It removes its request and tells all others to do the same.",
}
