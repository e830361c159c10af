//! The rules of the bank in words.

use crate::protocol::RuleText;

/// The rules, in the order of the table.
pub const RULES: &[RuleText] = &[
    RuleText::new("B1", "pays money out", "{m} pays 10 out: they leave the system."),
    RuleText::new(
        "B2",
        "pays the member before it",
        "{m} pays ten times its place to the member before it.",
    ),
    RuleText::new("B3", "receives money", "PAYMENT: {m} adds the amount to its balance."),
];
