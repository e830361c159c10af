//! Numbers and lists as people write them.

use doyen_core::time::Span;

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

/// A time in the unit that suits it, with the three digits that matter: `17.2 ms`, `250 µs`.
pub fn time(nanos: u64) -> String {
    let text = Span::from_nanos(nanos).rounded_to(3).to_string();
    match text.split_at(text.find(char::is_alphabetic).unwrap_or(text.len())) {
        (number, "") => format!("{number} ms"),
        (number, "us") => format!("{number} µs"),
        (number, unit) => format!("{number} {unit}"),
    }
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
    fn times_are_in_the_units_of_people() {
        for (nanos, text) in [
            (0, "0 ms"),
            (999, "999 ns"),
            (250_000, "250 µs"),
            (3_450_000, "3.45 ms"),
            (17_181_818, "17.2 ms"),
            (100_000_000, "100 ms"),
            (1_500_000_000, "1.5 s"),
            (7_200_000_000_000, "7200 s"),
        ] {
            assert_eq!(time(nanos), text);
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
