//! One thread records, any number of threads read while it does.
//!
//! State: an array of bucket counts, a running sum ([`WideSum`]), count, minimum and maximum.
//! Rules:
//! 1. One thread at a time writes; so each update is a plain load and store, no locked
//!    instruction (6.6 ns here, more than the whole of `record_n`).
//! 2. The extremes come first, then the bucket, the sum, and the count last; bucket and count with
//!    Release. A thread that reads the count with Acquire finds all values that it counts in the
//!    buckets, the sum and the extremes; and the extremes enclose every bucket seen before them.
//!
//! Each bucket alone only grows, and one thread never sees it shrink, so a snapshot never holds
//! less than an earlier one. A snapshot is not one moment: values recorded while it is taken may
//! or may not be in it.

use super::Histogram;
use super::buckets::{self, BUCKETS, VALUE_MAX, bucket_of};
use super::wide_sum::WideSum;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A histogram that one thread writes while others read, without locks or allocation.
///
/// Values are `u64` without a unit (ticks, as a rule), kept to 0.8 % in 38 KiB. Only one thread at
/// a time may record; more would leave counts and the sum wrong, though nothing worse: no reader
/// waits for them.
///
/// ```
/// # use std::sync::Arc;
/// let recorder = Arc::new(thalweg_measure::histogram::Recorder::new());
/// let writer = Arc::clone(&recorder);
/// std::thread::spawn(move || writer.record_n(1_200, 64)).join().expect("no panic");
/// assert_eq!(recorder.count(), 64);
/// assert_eq!(recorder.snapshot(|ticks| ticks).summary().max, 1_200);
/// ```
#[derive(Debug)]
#[repr(align(128))]
pub struct Recorder {
    count: AtomicU64,
    sum: WideSum,
    min: AtomicU64,
    max: AtomicU64,
    counts: Box<[AtomicU64; BUCKETS]>,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder::new()
    }
}

impl Recorder {
    /// Returns an empty recorder; all the memory it will ever have.
    #[must_use]
    pub fn new() -> Self {
        let counts: Box<[AtomicU64]> = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Recorder {
            count: AtomicU64::new(0),
            sum: WideSum::new(),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            counts: counts
                .try_into()
                .expect("collected from exactly BUCKETS elements"),
        }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts `n` events that all have this value; nothing for `n` = 0. Some 3 ns when warm. A
    /// value above [`VALUE_MAX`] goes to the top bucket; sum and maximum hold it
    /// exactly.
    #[inline]
    pub fn record_n(&self, value: u64, n: u64) {
        if n == 0 {
            return;
        }
        // ORDERING: Relaxed, this thread wrote it last (rule 1).
        if value > self.max.load(Ordering::Relaxed) {
            // ORDERING: Relaxed, published by the Release of `count` below.
            self.max.store(value, Ordering::Relaxed);
        }
        // ORDERING: Relaxed, this thread wrote it last (rule 1).
        if value < self.min.load(Ordering::Relaxed) {
            // ORDERING: Relaxed, published by the Release of `count` below.
            self.min.store(value, Ordering::Relaxed);
        }
        let bucket = &self.counts[bucket_of(value.min(VALUE_MAX))];
        // ORDERING: Release, pairs with the Acquire fence in snapshot(); publishes the extremes.
        add(bucket, n, Ordering::Release);
        self.sum.add(u128::from(value) * u128::from(n));
        // ORDERING: Release, pairs with the Acquire in count(); publishes all of the above.
        add(&self.count, n, Ordering::Release);
    }

    /// Returns how many values were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        // ORDERING: Acquire, pairs with the Release in record_n() (rule 2).
        self.count.load(Ordering::Acquire)
    }

    /// Returns the exact sum of all recorded values, below 2^127.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum.get()
    }

    /// Returns all that was recorded so far, as a [`Histogram`] of scaled values.
    ///
    /// `scale` turns a recorded value into the unit of the result and must be a multiplication by
    /// a constant, give or take rounding: `|ticks| clock.ns(ticks)`, or `|ticks| ticks`. Each value
    /// comes out within 0.8 % (half a bucket here, three digits there), and one above
    /// [`VALUE_MAX`] as about that. The extremes are exact. So is the mean,
    /// unless the writer is at work, where it is within 0.8 % of the values in range. Takes some
    /// 20 µs where the values span 2^20.
    #[must_use]
    pub fn snapshot(&self, scale: impl Fn(u64) -> u64) -> Histogram {
        // Pairs with the Release of the writer: what is counted by now is in this snapshot.
        if self.count() == 0 {
            return Histogram::new();
        }
        let sum = self.sum();
        let counts: Vec<(usize, u64)> = self
            .counts
            .iter()
            .enumerate()
            // ORDERING: Relaxed, made Acquire by the fence below.
            .map(|(bucket, count)| (bucket, count.load(Ordering::Relaxed)))
            .filter(|&(_, count)| count > 0)
            .collect();
        // ORDERING: Acquire, pairs with the Release of the buckets in record_n(): the extremes read
        // below enclose all that was read above.
        fence(Ordering::Acquire);
        // ORDERING: Relaxed, ordered by the fence above.
        let min = self.min.load(Ordering::Relaxed);
        // ORDERING: Relaxed, as for `min`.
        let max = self.max.load(Ordering::Relaxed);
        let (mut sum_low, mut sum_high) = (0_u128, 0_u128);
        let mut histogram = Histogram::new();
        // From the top, so that the histogram grows once.
        for (bucket, count) in counts.into_iter().rev() {
            let n = u128::from(count);
            let bucket_high = if bucket == BUCKETS - 1 {
                max
            } else {
                buckets::value_high(bucket)
            };
            sum_low = sum_low.saturating_add(u128::from(buckets::value_low(bucket)) * n);
            sum_high = sum_high.saturating_add(u128::from(bucket_high) * n);
            let middle = buckets::value_middle(bucket).max(min).min(max);
            histogram.record_n(scale(middle), count);
        }
        // A sum read beside a writer may lag or lead; the buckets bound it, all but the top one.
        let sum = sum.min(sum_high).max(sum_low);
        // Shifted so that `scale` can take it: 64 bits of a sum are more than enough.
        let shift = (u128::BITS - sum.leading_zeros()).saturating_sub(48);
        let sum_scaled = u128::from(scale((sum >> shift) as u64)) << shift;
        histogram.set_exact(scale(min), scale(max), sum_scaled);
        histogram
    }
}

/// Adds to a counter that only this thread writes. The load is Relaxed (own value); the caller
/// names the ordering of the store.
#[inline(always)]
fn add(counter: &AtomicU64, n: u64, store: Ordering) {
    // ORDERING: Relaxed, this thread wrote it last (rule 1); the store is explained at each call.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), store);
}
