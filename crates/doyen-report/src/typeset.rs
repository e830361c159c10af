//! Formulas as a book prints them: `(N-r)^2+N-1` becomes `(N − r)² + N − 1`, and with numbers `(8 − 5)² + 8 − 1`.

use crate::expression::{Variables, evaluate};

/// Sums over more initiators than this are not written out.
const MOST_TERMS: usize = 6;

/// The `expression` as a book prints it; with the numbers of `variables` instead of the letters, if there are any.
pub(crate) fn typeset(expression: &str, variables: Option<&Variables>) -> String {
    let mut setter = Setter { rest: expression, variables, initiator: None, text: String::new() };
    while !setter.rest.is_empty() {
        setter.token();
    }
    setter.text
}

struct Setter<'a> {
    rest: &'a str,
    variables: Option<&'a Variables>,
    /// Which initiator `rj` and `dj` are about.
    initiator: Option<usize>,
    text: String,
}

impl<'a> Setter<'a> {
    fn token(&mut self) {
        if let Some(rest) = self.rest.strip_prefix("sum(") {
            return self.sum(rest);
        }
        for (sign, printed) in [
            ("+", " + "),
            ("-", " − "),
            ("*", "·"),
            ("/", "/"),
            ("^2", "²"),
            ("^", "^"),
            (")", ")"),
        ] {
            if let Some(rest) = self.rest.strip_prefix(sign) {
                self.rest = rest;
                return self.text.push_str(printed);
            }
        }
        if let Some(rest) = self.rest.strip_prefix('(') {
            self.rest = rest;
            return self.text.push('(');
        }
        let length = match self.rest.as_bytes() {
            [b'r', b'1' | b'j', ..] | [b'd', b'j', ..] => 2,
            [first, ..] if first.is_ascii_digit() => {
                self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len())
            }
            _ => self.rest.chars().next().map_or(1, char::len_utf8),
        };
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        self.word(word);
    }

    /// A number or a letter.
    fn word(&mut self, word: &str) {
        let value = self.variables.filter(|_| word != "rj" && word != "dj");
        let value = value.and_then(|variables| evaluate(word, variables).ok());
        let value = value.or_else(|| self.of_initiator(word));
        // A product needs no sign between letters, and one between numbers.
        let follows = self.text.ends_with(|c: char| c.is_ascii_digit() || c == ')');
        match value {
            Some(value) => {
                let sign = if follows { "·" } else { "" };
                self.text.push_str(&format!("{sign}{value}"));
            }
            None => self.text.push_str(match word {
                "r1" => "r₁",
                "rj" => "rⱼ",
                "dj" => "dⱼ",
                letter => letter,
            }),
        }
    }

    fn of_initiator(&self, word: &str) -> Option<f64> {
        let (variables, initiator) = (self.variables?, self.initiator?);
        match word {
            "rj" => variables.ranks.get(initiator).copied(),
            "dj" => variables.distances.get(initiator).copied(),
            _ => None,
        }
    }

    /// A sum over all initiators, written out if there are few.
    fn sum(&mut self, rest: &'a str) {
        let end = rest.find(')').unwrap_or(rest.len());
        let (inner, rest) = (&rest[..end], &rest[(end + 1).min(rest.len())..]);
        let count = self.variables.map_or(0, |variables| variables.ranks.len());
        if count == 0 || count > MOST_TERMS {
            let inner = typeset(inner, None);
            self.text.push_str(&format!("Σ({inner})"));
        } else {
            let term = |initiator| {
                let mut setter = Setter {
                    rest: inner,
                    variables: self.variables,
                    initiator: Some(initiator),
                    text: String::new(),
                };
                while !setter.rest.is_empty() {
                    setter.token();
                }
                format!("({})", setter.text)
            };
            let terms: Vec<String> = (0..count).map(term).collect();
            self.text.push_str(&terms.join(" + "));
        }
        self.rest = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_look_as_in_a_book_with_letters_and_with_numbers() {
        let variables = Variables {
            n: 5.0,
            configured: 8.0,
            voting_set: 4.0,
            d: 7.0,
            ranks: vec![1.0, 3.0],
            distances: vec![4.0, 2.0],
        };
        for (text, letters, numbers) in [
            ("(N-r)^2+N-1", "(N − r)² + N − 1", "(8 − 1)² + 8 − 1"),
            ("(n-r+1)(n-r)+n-1", "(n − r + 1)(n − r) + n − 1", "(5 − 1 + 1)(5 − 1) + 5 − 1"),
            ("(n-r1)+sum(n-rj)+n", "(n − r₁) + Σ(n − rⱼ) + n", "(5 − 1) + (5 − 1) + (5 − 3) + 5"),
            ("2mn", "2mn", "2·2·5"),
            ("n(n+1)/2+n", "n(n + 1)/2 + n", "5(5 + 1)/2 + 5"),
            ("2(2^(n-r)-1)", "2(2^(n − r) − 1)", "2(2^(5 − 1) − 1)"),
            ("sum(dj+2n)", "Σ(dⱼ + 2n)", "(4 + 2·5) + (2 + 2·5)"),
        ] {
            assert_eq!(typeset(text, None), letters);
            assert_eq!(typeset(text, Some(&variables)), numbers);
        }
    }
}
