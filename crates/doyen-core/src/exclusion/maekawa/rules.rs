//! The rules of Maekawa's algorithm in words.

rule_texts! {
    "K1" "asks its arbiters":
        "{m} wants to enter and asks every arbiter of its set for its vote.",
    "K2" "votes":
        "The vote of {m} is free: it gives it to this request.",
    "K3" "an earlier request comes first":
        "An earlier request has the vote of {m} or waits for it. {m} queues this one and answers FAIL.",
    "K4" "the earliest request":
        "This request is earlier than all that {m} knows. It asks the holder of its vote to give it back, and tells \
         an overtaken request FAIL.",
    "K5" "gets a vote":
        "An arbiter has voted for {m}. With the votes of its whole set it enters.",
    "K6" "fails or is inquired":
        "{m} notes that an arbiter prefers an earlier request, or would like its vote back.",
    "K7" "gives votes back":
        "{m} cannot win now: it gives back the votes that arbiters have inquired about.",
    "K8" "its vote is given back":
        "The holder gives the vote of {m} back and keeps waiting. {m} votes for the first in its queue.",
    "K9" "its vote is free again":
        "The holder of the vote of {m} has left. {m} votes for the first in its queue, if there is one.",
    "K10" "leaves":
        "{m} has left and gives all its votes back.",
}
