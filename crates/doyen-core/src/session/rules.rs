//! The rules of sessions in words, those that a run notes.

rule_texts! {
    "S1" "meets a process":
        "A process has answered the open question of {m}, so it is the present one of its member. {m} stores its \
         session before anything from it counts.",
    "S9" "an old process stops":
        "Another process of {m} has been met, in this incarnation or a later one: this one is an old copy, and halts.",
    "J1" "asks who it has been":
        "{m} has lost its state. It asks every other member which incarnations of it they have met, and takes a \
         higher one.",
    "J2" "every member knows it":
        "Every other member has stored the new incarnation of {m} and accepts no earlier process: {m} takes part \
         again.",
}
