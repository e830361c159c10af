//! The rules of the quorum in words.

rule_texts! {
    "Q1" "enters hold-down":
        "{m} has restarted and may have given a vote lease before. Until that is certainly over it neither votes nor \
         campaigns.",
    "Q1a" "rejoins without its disk":
        "{m} has lost its disk. It asks all other members, adopts the latest term that any of them knows, and votes in \
         none up to it.",
    "Q1b" "halts":
        "The disk of {m} is an old copy, or no other member knows which terms there have been. {m} must not vote \
         again, and its process should stop.",
    "Q1c" "ignores an answer to an earlier start":
        "A WELCOME that answers an earlier start of {m} does not know what {m} has done since: {m} ignores it.",
    "Q2" "asks for pre-votes":
        "No contact with a leader and no vote lease left: {m} waits for its turn, then asks whether others would vote \
         for it (PRE-VOTE), without raising the term.",
    "Q3" "answers a pre-vote":
        "{m} is asked whether it would vote. It says no while it is bound; \"higher\" if it ranks higher, and \
         campaigns itself; else yes.",
    "Q4" "opens a term":
        "A majority would vote for {m}, or it is the successor. It opens a new term, votes for itself, stores both and \
         asks for votes (REQUEST).",
    "Q5" "asked for its vote":
        "{m} is not bound: it gives its one vote of the term to the first candidate that asks. A candidate of an \
         earlier term is refused with NACK.",
    "Q5a" "bound, does not vote":
        "{m} is bound by hold-down, a vote lease or its own lease: it ignores the candidate and does not even adopt \
         its term.",
    "Q6" "a majority has voted":
        "A majority has voted for {m}: it is elected, without a lease yet, and sends its first heartbeat \
         (COORDINATOR).",
    "Q7" "the lease lapses":
        "No majority acknowledged in time, so {m} must not act. It asks on in the same term for a short while, then \
         steps down and tells its followers.",
    "Q8" "gives a vote lease":
        "Heartbeat of the leader: {m} follows it, promises to vote for no other member for the length of a vote lease, \
         and acknowledges.",
    "Q8a" "an old heartbeat":
        "Heartbeat of an earlier term: {m} refuses it with NACK and gives no vote lease.",
    "Q9" "holds a lease":
        "A majority acknowledged a heartbeat: {m} may act as leader, for the length of a lease counted from when that \
         heartbeat was sent.",
    "Q10" "a later term":
        "{m} learns of a later term: it steps down as candidate or leader and adopts that term.",
    "Q12" "wants to take over":
        "{m} has ranked above its leader for a while. It asks all members, and with a majority it asks the leader for \
         a transfer (PREEMPT).",
    "Q13" "transfers leadership":
        "{m} is to go. It stops its work, gives up its lease, tells its successor to campaign (TIMEOUT-NOW) and \
         releases the others (RELEASE).",
    "Q14" "is released":
        "The leader gave up its lease, so no vote lease binds {m} any more. The successor campaigns at once; the \
         others let it go first.",
    "Q15" "counts a failure of its own":
        "{m} was chosen as successor or lost its lease, and another member leads: {m} counts that as a failure of its \
         own and ranks lower for a while.",
    "Q16" "hands over after a crash":
        "The process of the leader {m} has died, and nothing relies on its lease any more: its host sends TIMEOUT-NOW \
         and RELEASE in its name.",
    "Q17" "elections are paused or resumed":
        "An operator has paused or resumed elections, or the time of the pause is over. While they are paused, {m} \
         campaigns only as the successor of a leader that transferred leadership.",
}
