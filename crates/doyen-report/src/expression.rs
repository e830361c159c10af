//! Formulas as the literature prints them: `(n-r+1)(n-r)+n-1`. The text that is shown is the text that is evaluated.
//!
//! A number, a letter, or a sum, difference, product (also without a sign: `2n`), quotient or power of them. `H(n)` is
//! the n-th harmonic number, `sqrt(n)` the square root. `sum(n-rj)` adds up over all initiators.

/// What the letters stand for.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// `n`: the members, as the formula's source counts them.
    pub n: f64,
    /// `N`: all configured members.
    pub configured: f64,
    /// `K`: the members of a voting set.
    pub voting_set: f64,
    /// `d`: hops to the first higher member.
    pub d: f64,
    /// `rj`: the ranks of the initiators; `r` and `r1` are the lowest of them, `m` is how many there are.
    pub ranks: Vec<f64>,
    /// `dj`: hops from each initiator to the highest member.
    pub distances: Vec<f64>,
}

/// The value of `text`; the error names what is not understood.
pub fn evaluate(text: &str, variables: &Variables) -> Result<f64, String> {
    let mut parser = Parser { rest: text, variables, initiator: None };
    let value = parser.sum();
    match (value, parser.rest.trim_start()) {
        (Some(value), "") => Ok(value),
        (_, rest) => Err(format!("`{text}`: cannot read `{rest}`")),
    }
}

struct Parser<'a> {
    rest: &'a str,
    variables: &'a Variables,
    /// Which initiator `rj` and `dj` are about.
    initiator: Option<usize>,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(text) {
            Some(rest) => self.rest = rest,
            None => return false,
        }
        true
    }

    fn sum(&mut self) -> Option<f64> {
        let mut value = self.product()?;
        loop {
            if self.take("+") {
                value += self.product()?;
            } else if self.take("-") {
                value -= self.product()?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<f64> {
        let mut value = self.power()?;
        loop {
            if self.take("/") {
                value /= self.power()?;
            } else if self.take("*") || self.peek().is_some_and(|c| c == '(' || c.is_alphabetic()) {
                value *= self.power()?;
            } else {
                return Some(value);
            }
        }
    }

    fn power(&mut self) -> Option<f64> {
        let base = self.atom()?;
        if !self.take("^") {
            return Some(base);
        }
        Some(base.powi(self.power()? as i32))
    }

    fn atom(&mut self) -> Option<f64> {
        if self.take("-") {
            return self.atom().map(|value| -value);
        }
        if self.take("sum(") {
            return self.over_initiators();
        }
        if self.take("sqrt(") {
            return self.closed().map(f64::sqrt);
        }
        if self.take("H(") {
            let last = self.closed()? as u64;
            return Some((1..=last).map(|k| 1.0 / k as f64).sum());
        }
        if self.take("(") {
            return self.closed();
        }
        match self.peek()? {
            c if c.is_ascii_digit() => self.number(),
            _ => self.letter(),
        }
    }

    fn closed(&mut self) -> Option<f64> {
        let value = self.sum()?;
        self.take(")").then_some(value)
    }

    fn over_initiators(&mut self) -> Option<f64> {
        let (start, mut total) = (self.rest, 0.0);
        for initiator in 0..self.variables.ranks.len() {
            (self.rest, self.initiator) = (start, Some(initiator));
            total += self.closed()?;
        }
        self.initiator = None;
        Some(total)
    }

    fn number(&mut self) -> Option<f64> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        number.parse().ok()
    }

    fn letter(&mut self) -> Option<f64> {
        let variables = self.variables;
        let of_initiator = |list: &[f64], initiator: Option<usize>| list.get(initiator?).copied();
        if self.take("rj") {
            return of_initiator(&variables.ranks, self.initiator);
        }
        if self.take("dj") {
            return of_initiator(&variables.distances, self.initiator);
        }
        if self.take("r1") || self.take("r") {
            return variables.ranks.iter().copied().reduce(f64::min);
        }
        [
            ("n", variables.n),
            ("N", variables.configured),
            ("K", variables.voting_set),
            ("m", variables.ranks.len() as f64),
            ("d", variables.d),
        ]
        .into_iter()
        .find_map(|(letter, value)| self.take(letter).then_some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_read_as_the_literature_writes_them() {
        let variables = Variables {
            n: 10.0,
            configured: 11.0,
            voting_set: 4.0,
            d: 7.0,
            ranks: vec![3.0, 4.0],
            distances: vec![7.0, 6.0],
        };
        for (text, value) in [
            ("(n-r+1)(n-r)+n-1", 65.0),
            ("2(n - r) + n", 24.0),
            ("3(K-1)", 9.0),
            ("3*sqrt(n+6)", 12.0),
            ("(n-r1)+sum(n-rj)+n", 30.0),
            ("(N-r)^2+N-2", 73.0),
            ("2mn", 40.0),
            ("n^2+mn", 120.0),
            ("n(n+1)/2+n", 65.0),
            ("2n-1-1/n", 18.9),
            ("2(2^(n-r)-1)+(n-1)*2^(n-r-1)", 830.0),
            ("d+2n", 27.0),
            ("sum(dj+2n)", 53.0),
            ("4H(4)", 25.0 / 3.0),
            ("-1", -1.0),
            ("n-0.5", 9.5),
        ] {
            let evaluated = evaluate(text, &variables).unwrap();
            assert!((evaluated - value).abs() < 1e-12, "{text}: {evaluated}");
        }
        for text in ["", "2x", "(n", "n-", "rj", "n)", "1 2"] {
            assert!(evaluate(text, &variables).is_err(), "{text}");
        }
    }
}
