//! The rules of the algorithm of Suzuki and Kasami in words.

rule_texts! {
    "S1" "enters at once":
        "{m} has the token and enters without a message.",
    "S2" "asks for the token":
        "{m} wants to enter. It numbers its request and sends it to all others.",
    "S3" "a request arrives":
        "{m} notes the number of the request. If it has the token and does not need it, it sends it there.",
    "S4" "enters with the token":
        "{m} has received the token: it enters.",
    "S5" "leaves":
        "{m} has left. It notes on the token that its request is served and passes it to the first in the queue.",
}
