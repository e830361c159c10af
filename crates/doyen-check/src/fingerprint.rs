//! Fingerprints: sixty-four bits that stand for a state.
//!
//! A search remembers fingerprints, not states. Two states with the same one would be taken for the same, and what lies
//! behind the second would be missed: with `n` states the chance is about n²/2⁶⁵, one in 370,000 for ten million.
//! [`chance_of_omission`] says it for a search that has ended.
//!
//! The same state has the same fingerprint in every run, on one thread or many.

use std::hash::{Hash, Hasher};

/// Hashes well: each word is multiplied into 128 bits, and both halves count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprinter(u64);

impl Fingerprinter {
    pub(crate) fn new() -> Self {
        Self(0x243f_6a88_85a3_08d3)
    }
}

/// The fingerprint of one thing.
pub(crate) fn fingerprint(thing: &impl Hash) -> u64 {
    let mut hasher = Fingerprinter::new();
    thing.hash(&mut hasher);
    hasher.finish()
}

/// Mixes two words into one.
#[inline]
pub(crate) fn mix(one: u64, other: u64) -> u64 {
    let product = u128::from(one ^ 0x1319_8a2e_0370_7344) * u128::from(other | 1);
    (product as u64) ^ ((product >> 64) as u64)
}

/// How likely it is that among `states` states two have the same fingerprint.
pub fn chance_of_omission(states: u64) -> f64 {
    let states = states as f64;
    states * states / 2.0 / 2_f64.powi(64)
}

impl Hasher for Fingerprinter {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
        // Or `[1]` and `[1, 0]` would be the same.
        self.write_u64(bytes.len() as u64);
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0 ^ value, 0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        mix(self.0, 0xd6e8_feb8_6659_fd93)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_small_things_have_a_million_fingerprints() {
        let mut seen: Vec<u64> = (0..1000_u32)
            .flat_map(|one| {
                (0..1000_u16).map(move |other| fingerprint(&(one, Some(other), [0_u8; 3])))
            })
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 1_000_000);
    }

    /// The birthday bound, counted: fingerprints cut down to twenty bits collide about as often as it says.
    #[test]
    fn fingerprints_collide_as_often_as_random_numbers() {
        let (count, bits) = (20_000_u64, 20);
        let mut seen = vec![false; 1 << bits];
        let print = |number: u64| (fingerprint(&number) >> (64 - bits)) as usize;
        let collisions = (0..count).filter(|&it| std::mem::replace(&mut seen[print(it)], true));
        let expected = chance_of_omission(count) * 2_f64.powi(64 - bits);
        let ratio = collisions.count() as f64 / expected;
        assert!((0.8..1.2).contains(&ratio), "{ratio} times the {expected} that are expected");
    }

    #[test]
    fn the_order_and_the_place_of_parts_count() {
        let things: [&[u64]; 7] = [&[], &[0], &[0, 0], &[1, 2], &[2, 1], &[1, 2, 0], &[0, 1, 2]];
        let mut prints: Vec<u64> = things.iter().map(fingerprint).collect();
        prints.sort_unstable();
        prints.dedup();
        assert_eq!(prints.len(), things.len());
    }
}
