//! The rules of the bully in words.

rule_texts! {
    "R1" "starts an election":
        "{m} misses the coordinator, or was asked by a lower member. It sends ELECTION to every higher member and \
         waits T1 for an OK.",
    "R2" "asked by a lower member":
        "Asked by a lower member: {m} answers OK. Unless it already holds an election or leads, it starts one (R1).",
    "R2'" "ignores a higher asker":
        "ELECTION from a higher member: {m} ignores it, because only higher members are asked.",
    "R2a" "points to the leader":
        "Hardened: {m} follows a leader that is up, so it answers ALIVE with the name of that leader, and the asker \
         defers.",
    "R3" "no answer in time":
        "No OK arrived within T1, so no higher member is up. {m} leads and announces itself with COORDINATOR.",
    "R4" "a higher member is up":
        "An OK arrived: a higher member is up and takes over. {m} waits T2 for its COORDINATOR.",
    "R4'" "ignores an OK":
        "An OK that belongs to no election of {m}, or to an earlier one: {m} ignores it.",
    "R5" "learns who leads":
        "COORDINATOR from a higher member: {m} follows it. From a lower one: {m} starts an election, the rule the \
         algorithm is named after.",
    "R6" "the leader announces itself again":
        "{m} leads and is asked. It answers OK and sends the asker COORDINATOR again; otherwise the asker would ask \
         forever.",
    "R7" "no announcement in time":
        "No COORDINATOR arrived within T2: the member that answered has failed. {m} starts the election again (R1).",
}
