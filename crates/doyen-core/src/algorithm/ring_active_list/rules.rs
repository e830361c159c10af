//! The rules of the ring with active lists in words.

rule_texts! {
    "AL1" "starts an election":
        "{m} misses the coordinator. It begins an active list with its own number and sends that round the ring with \
         ELECT.",
    "AL2" "the first number arrives":
        "The first number of the election reaches {m}: it begins its list with both, sends its own number and then \
         passes the other on.",
    "AL3" "another number passes":
        "{m} enters the number into its active list and passes it on.",
    "AL4" "its own number is back":
        "The number of {m} is back, so its list is complete: the highest on it has won. Hardened, the winner \
         announces itself and the others wait for it.",
    "AL5" "no winner in time":
        "Hardened: {m} learned of no winner in time, because the winner has failed or a number is lost. It starts a \
         new round (AL1).",
    "AL6" "points to the leader":
        "Hardened: {m} leads, or follows a leader above the member that started this round. It answers ALIVE, and the \
         number ends here.",
    "AL7" "a number of an old round":
        "Hardened: {m} knows of a later round. It answers NACK, so that the next round of the sender is a higher one.",
}
