//! What somebody may have meant who wrote a word that does not exist.

/// The word that is nearest to `word`, if one is so near that it was probably meant.
pub(super) fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters may be wrong; of a short word, one.
    let bound = (word.chars().count() / 3).max(1);
    let distances = words.into_iter().map(|known| (distance(word, known), known));
    distances.filter(|&(distance, _)| distance <= bound).min().map(|(_, known)| known)
}

/// How many letters have to be added, removed, replaced or exchanged with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // The rows of the usual table: the one before the last, the last, and the one that is made.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, &letter) in one.iter().enumerate() {
        let mut made = vec![row + 1];
        for (column, &opposite) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != opposite);
            let mut least = replaced.min(last[column + 1] + 1).min(made[column] + 1);
            let crossed = |row: usize, column: usize| {
                one[row - 1] == other[column] && one[row] == other[column - 1]
            };
            if row > 0 && column > 0 && crossed(row, column) {
                least = least.min(before[column - 1] + 1);
            }
            made.push(least);
        }
        before = std::mem::replace(&mut last, made);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_letters() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("cluster", "cluster", 0),
            ("clustre", "cluster", 1),
            ("heart_beat", "heartbeat", 1),
            ("adress", "address", 1),
            ("kitten", "sitting", 3),
            ("ca", "ac", 1),
            ("größe", "grosse", 3),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn only_what_is_near_was_meant() {
        let words = ["id", "http", "listen", "state_dir", "key_file"];
        for (word, expected) in [
            ("statedir", Some("state_dir")),
            ("lisen", Some("listen")),
            ("ids", Some("id")),
            ("htp", Some("http")),
            ("log_level", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, words), expected, "{word}");
        }
    }
}
