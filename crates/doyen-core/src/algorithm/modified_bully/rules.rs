//! The rules of the modified bully in words.

rule_texts! {
    "M1" "starts an election":
        "{m} misses the coordinator. It sends ELECTION to every higher member and collects their OKs until T_ok is \
         over.",
    "M2" "asked by a lower member":
        "Asked by a lower member: {m} waits for the window W, in case an even lower one asks too.",
    "M2'" "ignores a higher asker":
        "ELECTION from a higher member: {m} ignores it, because only higher members are asked.",
    "M2a" "points to the leader":
        "Hardened: {m} follows a leader that is up, so it answers ALIVE with the name of that leader, and the asker \
         defers.",
    "M2b" "the leader announces itself again":
        "Hardened: {m} leads and is asked. It sends the asker COORDINATOR again and takes part in no election.",
    "M3" "asked once more":
        "Another member asks during the window: {m} remembers the lowest of those that asked.",
    "M4" "answers the lowest asker":
        "The window W is over. {m} answers the lowest member that asked with OK and its priority, and waits T_h for a \
         COORDINATOR.",
    "M5" "gives up its own election":
        "{m} holds an election and is asked by a lower member: it stops its own and takes part in that one (M2).",
    "M6" "a lower member asks later":
        "{m} has answered one member, and a lower one asks. It tells the first to STOP and answers the lower one.",
    "M7" "asked again by the same member":
        "The member that {m} has answered asks again. The paper has no second answer; hardened, {m} answers again.",
    "M8" "asked by a higher one later":
        "{m} has answered a lower member already. The paper has no answer; hardened, {m} answers OK and says that it \
         is busy with the lower one.",
    "M9" "a higher member is up":
        "An OK arrived: {m} remembers the priority in it. If it says busy, {m} waits for the end of the other \
         election.",
    "M9'" "ignores an OK":
        "An OK that belongs to no election of {m}, or speaks for another member: {m} ignores it.",
    "M10" "the time for answers is over":
        "T_ok is over: {m} sends GRANT to the highest member that answered and waits T_g for its COORDINATOR. If none \
         answered, {m} leads.",
    "M11" "is granted":
        "{m} is the highest member that answered. It leads and announces itself with COORDINATOR.",
    "M11'" "is granted too late":
        "Hardened: the election is over for {m}, so it takes a late GRANT for a question and points to the leader.",
    "M12" "the granted member is silent":
        "No COORDINATOR arrived within T_g: the granted member has failed. {m} starts again (M1); hardened, it first \
         grants the next highest that answered.",
    "M13" "no announcement in time":
        "{m} has answered, and no COORDINATOR arrived within T_h: the asker or the granted member has failed. {m} \
         starts an election (M1).",
    "M14" "is told to stop":
        "STOP: a lower member holds the election. {m} stops its own; hardened, it waits for the end of the other.",
    "M14'" "ignores a STOP":
        "A STOP that belongs to no election of {m}, or to an earlier one: {m} ignores it.",
    "M15" "learns who leads":
        "COORDINATOR from a higher member: {m} follows it. From a lower one: {m} starts an election, unless it takes \
         part in one.",
}
