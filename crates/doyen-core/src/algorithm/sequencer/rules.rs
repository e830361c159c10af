//! The rules of the sequencer in words.

rule_texts! {
    "Q1" "submits a message":
        "{m} sends its program's message to the leader, to be ordered.",
    "Q2" "orders a message":
        "{m} leads: it appends the message to its log and sends ORDER to all others.",
    "Q3" "takes the next position":
        "ORDER of the next position: {m} appends the message. Eager: it delivers it. Stable: it stores it and says \
         so.",
    "Q4" "a majority has it":
        "A majority has the log up to a position: {m} delivers up to there and sends COMMIT to all others.",
    "Q5" "takes over":
        "{m} takes over in a term of its own: it asks all others for their logs. What answers accepts no lower term \
         any more.",
    "Q6" "has the logs it needs":
        "{m} has the logs of all live members (eager) or of a majority (stable): it installs the latest one \
         everywhere.",
    "Q7" "installs a log":
        "INSTALL: {m} takes over the log. If it has delivered something else, its program must take over the state.",
}
