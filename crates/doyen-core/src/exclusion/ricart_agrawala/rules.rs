//! The rules of the algorithm of Ricart and Agrawala in words.

rule_texts! {
    "A1" "asks all others":
        "{m} wants to enter and sends all others the time of its request by Lamport's clock.",
    "A2" "defers its reply":
        "{m} is inside, or its own request is earlier: it replies when it leaves.",
    "A3" "replies":
        "{m} does not want to enter, or its own request is later: it replies at once.",
    "A4" "gets a reply":
        "{m} enters when all others have replied.",
    "A5" "leaves":
        "{m} has left and sends the replies that it deferred.",
}
