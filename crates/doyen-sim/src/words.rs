//! Numbers and lists as people write them.

/// `2,104,332`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `one`, `one and two`, `one, two and three`.
pub fn listed(texts: &[impl AsRef<str>]) -> String {
    match texts {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [most @ .., last] => {
            let most: Vec<&str> = most.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", most.join(", "), last.as_ref())
        }
    }
}

/// With a capital letter.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_kept_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (2_104_332, "2,104,332")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn lists_end_with_and() {
        assert_eq!(listed(&[""; 0]), "");
        assert_eq!(listed(&["n1"]), "n1");
        assert_eq!(listed(&["n1", "n2"]), "n1 and n2");
        assert_eq!(listed(&["n1", "n2", "n3"]), "n1, n2 and n3");
    }

    #[test]
    fn sentences_begin_with_a_capital_letter() {
        assert_eq!(capitalized("one more"), "One more");
        assert_eq!(capitalized(""), "");
    }
}
