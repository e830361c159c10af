//! The rules of decentralised voting in words.

rule_texts! {
    "V1" "asks for votes":
        "{m} wants to enter and asks the voters, all at once or one after the other.",
    "V2" "votes":
        "The vote of {m} is free: it gives it to the member that asks, until that gives it back.",
    "V3" "denies":
        "Another member has the vote of {m}: it answers DENY.",
    "V4" "has enough votes":
        "All voters that {m} asked have answered, and enough of them have voted for it: it enters.",
    "V5" "has too few votes":
        "All voters that {m} asked have answered. It gives its votes back and waits for a random time.",
    "V6" "a voter is late":
        "A voter did not answer {m} in time. It counts as a DENY, and its vote is given back, should it come.",
    "V7" "tries again":
        "The wait of {m} after a failed attempt is over.",
    "V8" "leaves":
        "{m} has left and gives its votes back.",
    "V9" "its vote is back":
        "{m} gets its vote back and may give it to another member.",
}
