//! The rules of the bank in words.

rule_texts! {
    "B1" "pays money out":
        "{m} pays 10 out: they leave the system.",
    "B2" "pays the member before it":
        "{m} pays ten times its place to the member before it.",
    "B3" "receives money":
        "PAYMENT: {m} adds the amount to its balance.",
}
