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

/// A time in the unit that suits it, with the three digits that matter: `17.2 ms`, `250 µs`.
pub fn time(nanos: u64) -> String {
    let (unit, name) = match nanos {
        0 => return "0 ms".to_owned(),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let value = nanos as f64 / f64::from(unit);
    let digits = match value {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let number = format!("{value:.digits$}");
    let number = match digits {
        0 => &*number,
        _ => number.trim_end_matches('0').trim_end_matches('.'),
    };
    format!("{number} {name}")
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
