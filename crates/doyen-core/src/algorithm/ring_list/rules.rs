//! The rules of the rings with a circulating list, `ring-list` and `ring-resilient`, in words.

rule_texts! {
    "L1" "starts an election":
        "{m} misses the coordinator. It sends ELECTION round the ring, with a list that holds its own number alone.",
    "L2" "adds itself to the list":
        "The ELECTION of another member passes: {m} adds its own number to the list and passes it on.",
    "L2a" "points to the leader":
        "Hardened: {m} leads, or knows a confirmed leader above the asker. It answers ALIVE with the name of that \
         leader, and the list ends here.",
    "L3" "the list is complete":
        "The list of {m} is back and holds every member that is up. Its highest has won, and {m} sends that name \
         round with COORDINATOR.",
    "L4" "learns who leads":
        "The COORDINATOR of another member passes: {m} follows the winner and passes it on.",
    "L4a" "does not follow a failed winner":
        "Hardened: COORDINATOR names a winner that {m} takes for down. {m} passes it on and waits for another end of \
         the election.",
    "L5" "the result is back":
        "The COORDINATOR of {m} is back, so every member knows the winner. {m} removes it from the ring.",
    "L6" "the winner has failed":
        "The COORDINATOR of {m} is back without the winner's signature: the winner has failed. {m} starts the \
         election again (L1).",
    "L7" "the round did not end in time":
        "An election in which {m} takes part did not end within T_re, because a member with its list has failed. {m} \
         starts an election (L1).",
    "L8" "drops an old list":
        "A list of an earlier round, one that has been here before, or one that has travelled too far: {m} removes it \
         from the ring.",
}
