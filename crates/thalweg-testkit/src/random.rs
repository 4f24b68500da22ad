//! Seeded numbers.

/// SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
/// 2014), from a seed: the same numbers on every machine. Seeds of failures are written down, and
/// hashes of what follows from some; so it never changes.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// Returns a number from 0 to below `bound`, which is above 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// Returns `true` once in `chances` times.
    pub fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

#[test]
fn first_numbers_of_the_published_sequence() {
    let mut random = Random(1_234_567);
    let published = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
    assert_eq!(published, [random.next_u64(), random.next_u64()]);
    assert_eq!(random.below(10), 9_817_491_932_198_370_423 % 10);
}
