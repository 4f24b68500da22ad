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

/// Returns the bucket of a value that is not above [`VALUE_MAX`].
#[inline(always)]
pub(super) const fn bucket_of(value: u64) -> usize {
    group_of::<PRECISION_BITS>(value)
}

/// Returns the group of a value where every power of two is cut into `1 << BITS` groups of equal
/// width, and values below `2 << BITS` have their own. For sums by time of which a
/// [`Histogram`](super::Histogram) would be too large. No branch: a leading-zero count, a shift and
/// an addition.
///
/// ```
/// use thalweg_measure::histogram::{group_middle, group_of};
///
/// assert_eq!([3, 4, 5, 6, 7, 8].map(group_of::<1>), [3, 4, 4, 5, 5, 6]);
/// assert_eq!(group_middle::<1>(group_of::<1>(1_000)), 895);
/// ```
#[inline(always)]
pub const fn group_of<const BITS: u32>(value: u64) -> usize {
    // The set bit makes every value that has a group of its own share the shift 0.
    let shift = (u64::BITS - 1 - BITS) - (value | 1 << BITS).leading_zeros();
    ((shift as usize) << BITS) + (value >> shift) as usize
}

/// Returns the value that stands for all of a group of [`group_of`].
pub const fn group_middle<const BITS: u32>(group: usize) -> u64 {
    let low = group_low::<BITS>(group);
    low + (group_low::<BITS>(group + 1) - 1 - low) / 2
}

const fn group_low<const BITS: u32>(group: usize) -> u64 {
    let shift = (group >> BITS).saturating_sub(1);
    ((group - (shift << BITS)) as u64) << shift
}

/// Returns the least value of a bucket.
pub(super) const fn value_low(bucket: usize) -> u64 {
    group_low::<PRECISION_BITS>(bucket)
}

/// Returns the greatest value of a bucket.
pub(super) const fn value_high(bucket: usize) -> u64 {
    value_low(bucket + 1) - 1
}

/// Returns the value that stands for all of a bucket.
pub(super) const fn value_middle(bucket: usize) -> u64 {
    group_middle::<PRECISION_BITS>(bucket)
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

    #[test]
    fn coarse_groups_hold_their_middles() {
        for value in [0, 1, 4, 5, 100, 12_345, 1 << 30, u64::MAX / 2] {
            let middle = group_middle::<2>(group_of::<2>(value));
            assert_eq!(group_of::<2>(middle), group_of::<2>(value), "{value}");
            assert!(middle.abs_diff(value) <= value / 7, "{value}: {middle}");
        }
        assert_eq!(
            (group_of::<1>(u64::MAX), group_of::<2>(u64::MAX)),
            (127, 251)
        );
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
