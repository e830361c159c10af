//! The rules of centralised exclusion in words.

rule_texts! {
    "C1" "asks the coordinator":
        "{m} wants to enter and sends REQUEST to the coordinator.",
    "C2" "a request reaches the coordinator":
        "{m} coordinates. If the section is free it grants it, otherwise it queues the request.",
    "C3" "enters":
        "The coordinator has granted {m} the section: it enters.",
    "C4" "leaves":
        "{m} has left and gives the section back with RELEASE.",
    "C5" "the next one":
        "The holder has left. {m} grants the section to the first in its queue, if there is one.",
}
