//! Seeded random numbers for schedules and resampling, the same on every machine.

/// SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
/// 2014): 64 bits of state, some 1 ns a number. Not for secrets.
#[derive(Clone, Debug)]
pub struct SplitMix {
    state: u64,
}

impl SplitMix {
    /// Returns the sequence that belongs to this seed; every seed is as good as another.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        SplitMix { state: seed }
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to below `bound`, by the high half of a product (D. Lemire, 2019),
    /// whose bias of `bound` / 2^64 does not matter here. 0 for a bound of 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number above 0, up to and with 1, in steps of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Returns an exponentially distributed number of mean 1: the gap between events of a Poisson
    /// process.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_numbers_of_the_published_sequence() {
        let mut random = SplitMix::new(1_234_567);
        let found: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        let published = [
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
        ];
        assert_eq!(found, published);
    }

    #[test]
    fn ranges_hold_and_are_filled() {
        let mut random = SplitMix::new(5);
        let mut seen = [0_u32; 7];
        for _ in 0..7_000 {
            seen[random.below(7) as usize] += 1;
            let unit = random.unit();
            assert!(unit > 0.0 && unit <= 1.0, "{unit}");
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
        assert_eq!(random.below(0), 0);
        let mean = (0..100_000).map(|_| random.exponential()).sum::<f64>() / 100_000.0;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
    }
}
