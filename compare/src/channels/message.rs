//! What is sent.

use std::fmt::Debug;
use std::time::Duration;

/// What every peer can carry.
pub(crate) trait Element:
    Copy + Default + PartialEq + Send + Sync + Unpin + 'static
{
}

impl<T: Copy + Default + PartialEq + Send + Sync + Unpin + 'static> Element for T {}

/// A message that tells which one it is, and whether it is whole.
pub(crate) trait Message: Element + Debug {
    /// Its size, as it stands in names of cases.
    const SIZE: &'static str;
    /// How many words of [`words`](Self::words) it has.
    const WORDS: usize;
    /// The message that says that no other will follow.
    const LAST: u64 = u64::MAX;
    /// The message of this value; all of its words are determined by it.
    fn of(value: u64) -> Self;
    /// Its value.
    fn value(&self) -> u64;
    /// Depends on every word, and adds up: for sums of messages whose order is not known.
    fn digest(&self) -> u64 {
        let words = self.words();
        words[..Self::WORDS]
            .iter()
            .fold(0, |sum: u64, word| sum.wrapping_mul(3).wrapping_add(*word))
    }
    fn words(&self) -> [u64; 4];
    fn from_words(words: [u64; 4]) -> Self;
}

impl Message for u64 {
    const SIZE: &'static str = "8B";
    const WORDS: usize = 1;

    #[inline]
    fn of(value: u64) -> Self {
        value
    }
    #[inline]
    fn value(&self) -> u64 {
        *self
    }
    #[inline]
    fn words(&self) -> [u64; 4] {
        [*self, 0, 0, 0]
    }
    #[inline]
    fn from_words(words: [u64; 4]) -> Self {
        words[0]
    }
}

/// 32 bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wide([u64; 4]);

// By words: as derived, it would write one of them into memory in four pieces and read it back in
// two, which the store buffer can't forward, and cost more than a queue does.
impl PartialEq for Wide {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        ((a ^ e) | (b ^ f)) | ((c ^ g) | (d ^ h)) == 0
    }
}

impl Eq for Wide {}

impl Message for Wide {
    const SIZE: &'static str = "32B";
    const WORDS: usize = 4;

    #[inline]
    fn of(value: u64) -> Self {
        Self([value, !value, value.wrapping_add(7), value.rotate_left(32)])
    }
    #[inline]
    fn value(&self) -> u64 {
        self.0[0]
    }
    #[inline]
    fn words(&self) -> [u64; 4] {
        self.0
    }
    #[inline]
    fn from_words(words: [u64; 4]) -> Self {
        Self(words)
    }
}

/// An order as programs of the kind send them; 32 bytes with a time stamp of 16.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Order {
    pub(crate) id: i32,
    pub(crate) price: f64,
    pub(crate) amount: u32,
    /// Since the run's begin.
    pub(crate) timestamp: Duration,
}

impl Order {
    /// The order of this number.
    #[inline]
    pub(crate) fn numbered(id: i32, timestamp: Duration) -> Self {
        Self {
            id,
            price: f64::from(id) * 0.25,
            amount: id.unsigned_abs() & 0xFFFF,
            timestamp,
        }
    }

    /// Whether it is as it was made.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        *self == Self::numbered(self.id, self.timestamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<M: Message>() {
        for value in [0, 1, 7, 1 << 40, u64::MAX] {
            let message = M::of(value);
            assert_eq!(message.value(), value);
            assert_eq!(M::from_words(message.words()), message);
            for word in 0..M::WORDS {
                let mut torn = message.words();
                torn[word] ^= 1 << 20;
                assert_ne!(M::from_words(torn).digest(), message.digest());
                assert_ne!(M::from_words(torn), message);
            }
        }
    }

    #[test]
    fn every_word_of_a_message_counts() {
        check::<u64>();
        check::<Wide>();
    }

    #[test]
    fn sizes_are_as_told() {
        assert_eq!((size_of::<u64>(), size_of::<Wide>()), (8, 32));
        assert_eq!(size_of::<Order>(), 32);
        let mut order = Order::numbered(77, Duration::from_nanos(5));
        assert!(order.is_whole());
        order.price += 1.0;
        assert!(!order.is_whole());
    }
}
