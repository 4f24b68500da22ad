//! XXH64 itself, as its specification has it: the arithmetic that every kernel shares.
//!
//! Source: xxHash by Yann Collet, `doc/xxhash_spec.md`, "XXH64 algorithm description".

pub(crate) const PRIME_1: u64 = 0x9E37_79B1_85EB_CA87;
pub(crate) const PRIME_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
pub(crate) const PRIME_3: u64 = 0x1656_67B1_9E37_79F9;
pub(crate) const PRIME_4: u64 = 0x85EB_CA77_C2B2_AE63;
pub(crate) const PRIME_5: u64 = 0x27D4_EB2F_1656_67C5;

/// Bytes that one step of the four accumulators takes.
pub(crate) const STRIPE_BYTES: usize = 32;

/// Four words, one for each accumulator.
pub(crate) type Stripe = [u8; STRIPE_BYTES];

/// The four accumulators. Word `i` of every stripe goes into number `i`.
pub(crate) type Accumulators = [u64; 4];

#[inline(always)]
pub(crate) const fn start(seed: u64) -> Accumulators {
    [
        seed.wrapping_add(PRIME_1).wrapping_add(PRIME_2),
        seed.wrapping_add(PRIME_2),
        seed,
        seed.wrapping_sub(PRIME_1),
    ]
}

/// Mixes one word into one accumulator: two multiplies, of which the first does not depend on the
/// accumulator. That is what the hybrid kernels live on.
#[inline(always)]
pub(crate) const fn round(accumulator: u64, word: u64) -> u64 {
    chain(accumulator, word.wrapping_mul(PRIME_2))
}

/// Does the part of [`round`] that has to wait for the accumulator.
#[inline(always)]
pub(crate) const fn chain(accumulator: u64, product: u64) -> u64 {
    accumulator
        .wrapping_add(product)
        .rotate_left(31)
        .wrapping_mul(PRIME_1)
}

#[inline(always)]
pub(crate) const fn merge(accumulators: Accumulators) -> u64 {
    let [a, b, c, d] = accumulators;
    let mut hash = a.rotate_left(1).wrapping_add(b.rotate_left(7));
    hash = hash.wrapping_add(c.rotate_left(12).wrapping_add(d.rotate_left(18)));
    hash = merge_one(hash, a);
    hash = merge_one(hash, b);
    hash = merge_one(hash, c);
    merge_one(hash, d)
}

#[inline(always)]
const fn merge_one(hash: u64, accumulator: u64) -> u64 {
    let mixed = hash ^ round(0, accumulator);
    mixed.wrapping_mul(PRIME_1).wrapping_add(PRIME_4)
}

/// Returns the word that stands for the accumulators in an input of less than a stripe.
#[inline(always)]
pub(crate) const fn start_short(seed: u64) -> u64 {
    seed.wrapping_add(PRIME_5)
}

/// Mixes in the rest behind the last whole stripe, less than a stripe, and does the avalanche.
///
/// Steps one inside the other, not loops: a compiler makes loops of these that cost more than they
/// do, and short inputs are little else.
#[inline(always)]
pub(crate) fn finish(merged: u64, all_bytes: u64, mut tail: &[u8]) -> u64 {
    let mut hash = merged.wrapping_add(all_bytes);
    if let Some((word, behind)) = tail.split_first_chunk() {
        (hash, tail) = (finish_word(hash, u64::from_le_bytes(*word)), behind);
        if let Some((word, behind)) = tail.split_first_chunk() {
            (hash, tail) = (finish_word(hash, u64::from_le_bytes(*word)), behind);
            if let Some((word, behind)) = tail.split_first_chunk() {
                (hash, tail) = (finish_word(hash, u64::from_le_bytes(*word)), behind);
            }
        }
    }
    if let Some((half, behind)) = tail.split_first_chunk() {
        let half = u64::from(u32::from_le_bytes(*half));
        hash = (hash ^ half.wrapping_mul(PRIME_1)).rotate_left(23);
        hash = hash.wrapping_mul(PRIME_2).wrapping_add(PRIME_3);
        tail = behind;
    }
    if let [first, behind @ ..] = tail {
        hash = finish_byte(hash, *first);
        if let [second, behind @ ..] = behind {
            hash = finish_byte(hash, *second);
            if let [third, ..] = behind {
                hash = finish_byte(hash, *third);
            }
        }
    }
    avalanche(hash)
}

#[inline(always)]
const fn finish_byte(hash: u64, byte: u8) -> u64 {
    let mixed = hash ^ (byte as u64).wrapping_mul(PRIME_5);
    mixed.rotate_left(11).wrapping_mul(PRIME_1)
}

#[inline(always)]
const fn finish_word(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ round(0, word)).rotate_left(27);
    mixed.wrapping_mul(PRIME_1).wrapping_add(PRIME_4)
}

#[inline(always)]
const fn avalanche(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(PRIME_2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(PRIME_3);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_the_product_and_the_chain() {
        let (accumulator, word) = (0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210);
        let by_the_book = PRIME_2.wrapping_mul(word).wrapping_add(accumulator);
        let by_the_book = by_the_book.rotate_left(31).wrapping_mul(PRIME_1);
        assert_eq!(round(accumulator, word), by_the_book);
    }
}
