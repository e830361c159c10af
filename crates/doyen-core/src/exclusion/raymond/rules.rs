//! The rules of Raymond's algorithm in words.

rule_texts! {
    "Y1" "wants the token":
        "{m} wants to enter and puts itself into its queue.",
    "Y2" "a neighbour wants the token":
        "{m} puts the neighbour into its queue.",
    "Y3" "gets the token":
        "The token is at {m} now.",
    "Y4" "leaves":
        "{m} has left; the token is idle.",
    "Y5" "serves its queue":
        "The token is at {m} and idle. The first in its queue gets it: {m} itself enters, a neighbour receives TOKEN.",
}
