//! The rules of the snapshot in words.

rule_texts! {
    "D1" "starts a snapshot":
        "{m} records its state, opens all incoming channels and sends MARKER on every outgoing one.",
    "D2" "records at the first marker":
        "The first MARKER: {m} records its state and sends MARKER to all others. The channel on which it came is \
         recorded as empty.",
    "D3" "closes a channel":
        "MARKER on an open channel: what {m} has recorded on this channel is all that was under way.",
    "D4" "records a message under way":
        "A message on an open channel: {m} adds it to what was under way on this channel, and handles it.",
    "D5" "has recorded its part":
        "The marker has come on every channel: {m} has recorded its part of the snapshot.",
}
