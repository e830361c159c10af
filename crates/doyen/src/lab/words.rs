//! Lengths and numbers as people write them.

/// A length of time: `0.8 ms`, `243 ms`, `1.4 s`, `2 min`.
pub(crate) fn length(micros: u64) -> String {
    let millis = micros as f64 / 1e3;
    match micros {
        0..10_000 => format!("{millis:.1} ms"),
        10_000..1_000_000 => format!("{millis:.0} ms"),
        1_000_000..10_000_000 => format!("{:.1} s", millis / 1e3),
        10_000_000..120_000_000 => format!("{:.0} s", millis / 1e3),
        _ => format!("{} min", micros / 60_000_000),
    }
}

/// `one`, `two`, … `twelve`, `13`.
pub(crate) fn number(count: usize) -> String {
    const WORDS: [&str; 13] = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    WORDS.get(count).map_or_else(|| count.to_string(), |&word| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_a_unit_that_suits_them() {
        for (micros, text) in [
            (0, "0.0 ms"),
            (812, "0.8 ms"),
            (9_940, "9.9 ms"),
            (243_400, "243 ms"),
            (1_449_000, "1.4 s"),
            (61_000_000, "61 s"),
            (150_000_000, "2 min"),
        ] {
            assert_eq!(length(micros), text);
        }
    }

    #[test]
    fn small_numbers_are_words() {
        assert_eq!((number(5), number(40)), ("five".to_owned(), "40".to_owned()));
    }
}
