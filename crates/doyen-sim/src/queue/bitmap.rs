//! Which buckets of the wheel are not empty.

/// A set of bucket numbers, with two levels above it telling which words are
/// not zero, so that finding the next member is quick in a sparse wheel too.
pub(super) struct Bitmap {
    levels: [Vec<u64>; 3],
}

impl Bitmap {
    pub(super) fn new(buckets: usize) -> Self {
        let words = buckets.div_ceil(64);
        Self {
            levels: [vec![0; words], vec![0; words.div_ceil(64)], vec![0; words.div_ceil(64 * 64)]],
        }
    }

    #[inline]
    pub(super) fn set(&mut self, mut index: usize) {
        for level in &mut self.levels {
            let word = &mut level[index / 64];
            let before = *word;
            *word |= 1 << (index % 64);
            if before != 0 {
                break;
            }
            index /= 64;
        }
    }

    /// Takes out `members` of one word, given as [`word_from`](Self::word_from) gives them.
    #[inline]
    pub(super) fn clear(&mut self, mut index: usize, mut members: u64) {
        for level in &mut self.levels {
            let word = &mut level[index / 64];
            *word &= !(members << (index % 64));
            if *word != 0 {
                break;
            }
            index /= 64;
            members = 1;
        }
    }

    /// The members from `index` to the end of its word, `index` being the lowest bit.
    pub(super) fn word_from(&self, index: usize) -> u64 {
        self.levels[0][index / 64] >> (index % 64)
    }

    /// The least member not below `start`.
    pub(super) fn next(&self, start: usize) -> Option<usize> {
        let mut index = start;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(index / 64)? & (u64::MAX << (index % 64));
            if word != 0 {
                let found = index / 64 * 64 + word.trailing_zeros() as usize;
                return Some(self.descend(height, found));
            }
            index = index / 64 + 1;
        }
        let top = self.levels[2].get(index..)?;
        let ahead = top.iter().position(|&word| word != 0)?;
        let found = (index + ahead) * 64 + top[ahead].trailing_zeros() as usize;
        Some(self.descend(2, found))
    }

    /// The least member under bit `index` of the level at `height`.
    fn descend(&self, height: usize, index: usize) -> usize {
        self.levels[..height]
            .iter()
            .rev()
            .fold(index, |index, level| index * 64 + level[index].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bitmap_finds_the_next_member_across_all_levels() {
        let mut bitmap = Bitmap::new(1 << 21);
        let members = [0, 63, 64, 4095, 4096, 262_143, 262_144, 1_500_000, (1 << 21) - 1];
        for member in members {
            bitmap.set(member);
        }
        let mut found = Vec::new();
        let mut start = 0;
        while let Some(member) = bitmap.next(start) {
            found.push(member);
            start = member + 1;
        }
        assert_eq!(found, members);
        for member in members {
            assert_eq!(bitmap.next(member), Some(member));
            bitmap.clear(member, 1);
        }
        assert_eq!(bitmap.next(0), None);
        assert!(bitmap.levels.iter().flatten().all(|&word| word == 0));
    }
}
