//! The rules of the ring of all ids in words.

rule_texts! {
    "AI1" "starts an election":
        "{m} misses the coordinator. It sends its ELECT-ME round the ring and collects those of the others.",
    "AI2" "the first ELECT-ME arrives":
        "The first ELECT-ME of the election reaches {m}: it sends its own and then passes the other on.",
    "AI3" "another ELECT-ME passes":
        "{m} collects the number and passes it on.",
    "AI4" "has all numbers":
        "{m} started the election, and its ELECT-ME is back last: it has the numbers of all members. It elects the \
         highest and sends NEW-COORDINATOR round.",
    "AI5" "its own ELECT-ME is back":
        "The ELECT-ME of {m} is back, but another member started the election: {m} removes it from the ring.",
    "AI6" "learns who leads":
        "NEW-COORDINATOR passes: {m} follows the member that it names and passes it on.",
    "AI7" "the result is back":
        "The NEW-COORDINATOR of {m} is back, or the same result has passed before: {m} removes it from the ring.",
    "AI8" "no winner in time":
        "Hardened: {m} learned of no winner in time, because the initiator or the winner has failed or a message is \
         lost. It starts a new round (AI1).",
    "AI9" "points to the leader":
        "Hardened: {m} leads, or follows a leader above the member that started this round. It answers ALIVE, and the \
         ELECT-ME ends here.",
    "AI10" "an ELECT-ME of an old round":
        "Hardened: {m} knows of a later round. It answers NACK, so that the next round of the sender is a higher one.",
}
