//! The rules that hardened mode adds to every algorithm of the sources, in words.

rule_texts! {
    "H1" "listens first":
        "{m} has just started: it listens for a leader before it starts an election.",
    "H2" "follows a claim":
        "The claim to lead is at least as large as the last that {m} accepted, by term and then by number: {m} \
         follows.",
    "H3" "an old claim":
        "A claim of an earlier term, or of a lower leader in the same term, is refused with the larger one. A leader \
         that learns of a larger term starts an election in a higher one.",
    "H4" "tolerates a lower leader":
        "{m} is higher than the leader. It follows for the preempt delay before it contests, so that a member that \
         comes and goes does not move leadership each time.",
    "H5" "the leader shows that it is up":
        "{m} leads and sends ALIVE: to all members at every heartbeat, and at once to one that was away. So two \
         leaders meet as soon as they reach each other.",
    "H6" "defers to a leader":
        "{m} asked for an election and is told that a higher leader is up: it waits, and asks again later.",
    "H7" "listens once more":
        "{m} knows no leader, and a member is gone that may have been about to win: {m} listens before it starts an \
         election.",
}
