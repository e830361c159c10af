//! The rules of the lock service in words, without those of the quorum below. G11 is the resource's.

rule_texts! {
    "G1" "asks for the lock":
        "The program on {m} wants the lock: {m} notes the time from which a grant would count, then calls the leader.",
    "G2" "grants the lock or queues the claim":
        "{m} leads: it gives the claim a ticket, and grants the lock, if it is free, to the claim with the lowest \
         one.",
    "G3" "takes the grant":
        "The grant answers a call whose time is not over: {m} holds the lock for one lease from the sending of that \
         call.",
    "G4" "keeps the claim alive":
        "Every third of a lease the client calls again, and the leader counts a new lease of its claim.",
    "G5" "the lease of the lock is over":
        "No answer has come in time: {m} does not hold the lock any more, and what ran under it has ended.",
    "G6" "the claim is gone":
        "It was released, or its client has not called for a lease: the next one gets the lock.",
    "G7" "begins with an empty table":
        "{m} leads in a new term: it forgets its table and grants nothing until what earlier leaders granted is over.",
    "G8" "turns to the new leader":
        "{m} shows the new leader what it holds or waits for. Answers of earlier terms count for nothing from then \
         on.",
    "G9" "claims are shown":
        "A leader that settles enters what clients show it. A holder that it does not know later has lost the lock.",
    "G10" "grants nothing without a lease":
        "{m} does not lead, or holds no valid lease: it answers nothing but that.",
}
