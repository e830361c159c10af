//! The simulator's only source of randomness: seeded, and the same on every machine.
//!
//! The generator (PCG, 64-bit output) and what is drawn from it are fixed here: integer arithmetic and `libm`, whose
//! results do not depend on the target, the compiler or a library's version.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// The stream number `seed`.
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring streams: spread them over the state.
        let low = splitmix(seed);
        let high = splitmix(low);
        Self(Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low)))
    }

    /// Any 64-bit number.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from `min..=max`, each equally likely (up to one part in 2⁶⁴ of the width).
    #[inline]
    pub fn between(&mut self, min: u64, max: u64) -> u64 {
        assert!(min <= max, "the bounds are the wrong way round");
        let bits = self.bits();
        match (max - min).checked_add(1) {
            Some(width) => min + ((u128::from(bits) * u128::from(width)) >> 64) as u64,
            None => bits,
        }
    }

    /// A fraction, at least 0 and below 1, in steps of 2⁻⁵³.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Whether something of this probability happens.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// A waiting time with this mean, exponentially distributed.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        let wait = -libm::log(1.0 - self.fraction()) * mean as f64;
        wait as u64
    }

    /// Puts `items` into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.between(0, last as u64) as usize;
            items.swap(last, other);
        }
    }
}

/// One step of splitmix64.
pub fn splitmix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut random = Random::new(1);
        let drawn = (random.bits(), random.between(10, 20), random.exponential(1_000_000));
        assert_eq!(drawn, (11_457_823_803_899_489_000, 20, 1_021_301));
    }

    #[test]
    fn between_reaches_both_ends_and_nothing_else() {
        let mut random = Random::new(7);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            seen[(random.between(3, 7) - 3) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
        assert_eq!(random.between(u64::MAX, u64::MAX), u64::MAX);
        random.between(0, u64::MAX);
    }
}
