//! A buffer of records that are built in place.

/// A buffer for a fixed number of records, which hands them over when it is full.
///
/// Records are built in the buffer, and never moved: a record that is made elsewhere and copied is
/// written by narrow stores and read again at once by wide loads, and a processor that cannot
/// forward a store to such a load waits until the store has reached the cache.
///
/// As in a ring, a slot holds what was there a lap before; the code that builds a record sets all
/// its fields.
///
/// ```
/// use thalweg_journal::AppendBuffer;
///
/// let mut sent = Vec::new();
/// let mut buffer = AppendBuffer::new(2, || [0_u32; 7], |records| sent.extend_from_slice(records));
/// for number in 0..3 {
///     buffer.append_with(|record| record[0] = number);
/// }
/// buffer.flush();
/// drop(buffer);
/// assert_eq!(sent.len(), 3);
/// ```
#[derive(Debug)]
pub struct AppendBuffer<T, F: FnMut(&mut [T])> {
    records: Box<[T]>,
    used: usize,
    full: F,
}

impl<T, F: FnMut(&mut [T])> AppendBuffer<T, F> {
    /// Makes a buffer of `records` records, made by `make`; `full` is called with all of them when
    /// there is no room for another one.
    ///
    /// # Panics
    /// If `records` is 0.
    pub fn new(records: usize, make: impl FnMut() -> T, full: F) -> Self {
        assert!(records > 0, "a buffer has room for at least one record");
        let records = std::iter::repeat_with(make).take(records).collect();
        AppendBuffer {
            records,
            used: 0,
            full,
        }
    }

    /// Builds the next record in its place.
    ///
    /// # Cost
    /// A compare and the stores of `build`.
    #[inline]
    pub fn append_with(&mut self, build: impl FnOnce(&mut T)) {
        if self.used == self.records.len() {
            self.flush();
        }
        if let Some(slot) = self.records.get_mut(self.used) {
            build(slot);
            self.used += 1;
        }
    }

    /// Hands over the records that there are, if any. Each is handed over once, also if that
    /// panics.
    pub fn flush(&mut self) {
        let used = std::mem::take(&mut self.used);
        if used > 0 {
            (self.full)(&mut self.records[..used]);
        }
    }

    /// Records that were not handed over yet.
    #[must_use]
    pub fn pending(&self) -> &[T] {
        &self.records[..self.used]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_buffers_are_handed_over_in_order() {
        let mut seen = Vec::new();
        let mut buffer = AppendBuffer::new(3, || 0, |records| seen.push(records.to_vec()));
        for number in 1..=7 {
            buffer.append_with(|slot| *slot = number);
        }
        assert_eq!(buffer.pending(), [7]);
        buffer.flush();
        buffer.flush();
        drop(buffer);
        assert_eq!(seen, [vec![1, 2, 3], vec![4, 5, 6], vec![7]]);
    }

    #[test]
    fn each_record_is_handed_over_once_whatever_panics() {
        use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
        let fuse = |left: &std::cell::Cell<u32>| {
            left.set(left.get().wrapping_sub(1));
            if left.get() == 0 {
                resume_unwind(Box::new("the fuse"));
            }
        };
        for at in 1..=13 {
            let left = std::cell::Cell::new(at);
            let (mut seen, mut appended) = (Vec::new(), Vec::new());
            let mut buffer = AppendBuffer::new(
                3,
                || 0,
                |records| {
                    seen.extend_from_slice(records);
                    fuse(&left);
                },
            );
            for number in 1..=9 {
                let append = AssertUnwindSafe(|| {
                    buffer.append_with(|slot| {
                        *slot = number;
                        fuse(&left);
                    });
                });
                if catch_unwind(append).is_ok() {
                    appended.push(number);
                }
            }
            let _ = catch_unwind(AssertUnwindSafe(|| buffer.flush()));
            buffer.flush();
            drop(buffer);
            assert_eq!(seen, appended, "burnt at {at}");
        }
    }
}
