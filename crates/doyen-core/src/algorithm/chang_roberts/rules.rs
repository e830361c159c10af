//! The rules of Chang–Roberts in words.

rule_texts! {
    "CR1" "starts an election":
        "{m} misses the coordinator. It takes part and sends ELECTION with its own number to its neighbour.",
    "CR2" "passes a higher number on":
        "ELECTION with a number higher than that of {m}: it takes part and passes the message on.",
    "CR3" "puts in its own number":
        "ELECTION with a lower number, and {m} has sent none yet: it takes part and sends its own number instead.",
    "CR4" "swallows a lower number":
        "ELECTION with a lower number, and {m} has sent a higher one already: it swallows the message.",
    "CR5" "its own number is back":
        "The number of {m} went round the whole ring, so no member is higher. {m} leads and sends ELECTED round.",
    "CR6" "learns who leads":
        "ELECTED with the number of another member: {m} follows it and passes the message on. Hardened, it does not \
         follow a winner that it takes for down.",
    "CR7" "the result is back":
        "The ELECTED of {m} is back, or the same result has passed before: {m} removes it from the ring.",
    "CR8" "no winner in time":
        "Hardened: {m} took part and learned of no winner in time. It starts an election in a higher term (CR1).",
    "CR9" "points to the leader":
        "Hardened: {m} leads, or follows a leader above the number that arrived. It answers ALIVE, and the number \
         ends here.",
    "CR10" "a number of an old election":
        "Hardened: {m} knows of a later term. It answers NACK, so that the next ELECTION of the sender has a higher \
         one.",
}
