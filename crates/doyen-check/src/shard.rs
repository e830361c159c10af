//! A part of many runs, for one of several machines.

use std::fmt;
use std::str::FromStr;

/// The part of numbered runs that one machine makes: shard `2/3` has the runs 2, 5, 8 and so on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    index: u64,
    count: u64,
}

impl Shard {
    /// Everything.
    pub const ALL: Self = Self { index: 1, count: 1 };

    /// The runs of this shard if there are `runs` in all.
    pub fn numbers(self, runs: u64) -> impl Iterator<Item = u64> {
        (self.index..=runs).step_by(usize::try_from(self.count).unwrap_or(usize::MAX))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a shard; write 1/3 for the first of three");
        let (index, count) = text.split_once('/').ok_or_else(wrong)?;
        let index = index.trim().parse().map_err(|_| wrong())?;
        let count = count.trim().parse().map_err(|_| wrong())?;
        if index == 0 || index > count { Err(wrong()) } else { Ok(Self { index, count }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_shard_is_refused() {
        for bad in ["", "1", "0/3", "4/3", "a/b", "1/0", "1/3/5", "-1/3"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
        assert_eq!("2/3".parse::<Shard>().map(|shard| shard.to_string()), Ok("2/3".to_owned()));
    }
}
