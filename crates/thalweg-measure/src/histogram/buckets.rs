//! The bucket layout of the recorder: log-linear as in Gil Tene's HdrHistogram. Every power of two
//! is cut into 128 buckets of equal width, so a bucket is at most 1/128 of its values wide;
//! below 256 each value has its own.

/// Bits of a value that its bucket keeps below the leading one.
const PRECISION_BITS: u32 = 7;

/// The greatest value with a bucket of its own range: 2^44 - 1, which is two hours in ticks of a
/// 2.4 GHz counter. Greater values are counted in the top bucket.
pub const VALUE_MAX: u64 = (1 << VALUE_BITS) - 1;
const VALUE_BITS: u32 = 44;

/// Buckets up to and with the one of [`VALUE_MAX`]: 38 buckets of 128, 38 KiB.
pub(super) const BUCKETS: usize = bucket_of(VALUE_MAX) + 1;

/// Returns the bucket of a value that is not above [`VALUE_MAX`]. No branch: a leading-zero count,
/// a shift and an addition.
#[inline(always)]
pub(super) const fn bucket_of(value: u64) -> usize {
    // The set bit makes every value below 256 share the shift 0.
    let shift = (u64::BITS - 1 - PRECISION_BITS) - (value | 1 << PRECISION_BITS).leading_zeros();
    ((shift as usize) << PRECISION_BITS) + (value >> shift) as usize
}

/// Returns the least value of a bucket.
pub(super) const fn value_low(bucket: usize) -> u64 {
    let shift = (bucket >> PRECISION_BITS).saturating_sub(1);
    ((bucket - (shift << PRECISION_BITS)) as u64) << shift
}

/// Returns the greatest value of a bucket.
pub(super) const fn value_high(bucket: usize) -> u64 {
    value_low(bucket + 1) - 1
}

/// Returns the value that stands for all of a bucket.
pub(super) const fn value_middle(bucket: usize) -> u64 {
    let low = value_low(bucket);
    low + (value_high(bucket) - low) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other_without_gap() {
        assert_eq!(value_low(0), 0);
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(value_low(bucket)), bucket);
            assert_eq!(bucket_of(value_high(bucket)), bucket);
            assert!(value_low(bucket) <= value_middle(bucket));
            assert!(value_middle(bucket) <= value_high(bucket));
        }
        assert_eq!(value_high(BUCKETS - 1), VALUE_MAX);
        assert_eq!(value_high(255), 255, "small values are exact");
    }

    proptest! {
        #[test]
        fn a_bucket_is_narrow(bits in 0..=VALUE_BITS, noise in any::<u64>()) {
            let value = noise & ((1 << bits) - 1);
            let bucket = bucket_of(value);
            prop_assert!(value_low(bucket) <= value && value <= value_high(bucket));
            prop_assert!((value_high(bucket) - value_low(bucket)) * 128 <= value);
        }
    }
}
