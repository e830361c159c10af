//! The rules of the token ring in words.

rule_texts! {
    "T1" "starts the token":
        "{m} is the first member. It has the token and passes it on.",
    "T2" "enters with the token":
        "The token reaches {m}, which waits for it: it enters.",
    "T3" "passes the token on":
        "{m} does not want to enter and passes the token to its successor.",
    "T4" "leaves":
        "{m} has left and passes the token on, even if it wants to enter again.",
}
