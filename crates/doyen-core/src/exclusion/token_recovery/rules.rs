//! The rules of token recovery in words, without those of the ring.

rule_texts! {
    "P1" "looks for the token":
        "The token may be lost: {m} takes the next generation and asks all members whether they hold a token.",
    "P2" "answers a search":
        "{m} says whether it holds a token. From now on it takes no older one, and keeps the one that it holds.",
    "P3" "drops an old token":
        "A token of an earlier generation: {m} drops it, because another may exist.",
    "P4" "has found the token":
        "All live members have answered, one holds the token: {m} tells it to continue with it in the new generation.",
    "P5" "makes a token":
        "All live members have answered, and none holds the token: {m} makes one of the new generation.",
    "P6" "continues with its token":
        "The token of {m} belongs to the new generation now, and is no longer pinned.",
    "P7" "asks a member that is back":
        "A member has come back while {m} looks for the token: what it answered before does not count, and {m} asks \
         it again.",
}
