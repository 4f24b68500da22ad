//! The bytes of a state, struct by struct.

use zerocopy::little_endian::U32;

use super::SnapshotError;
use crate::wire::Plain;

type Read<T> = Result<T, SnapshotError>;

/// Where in the bytes the next field begins.
#[derive(Debug)]
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    const fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Takes a struct.
    #[inline]
    pub(super) fn get<T: Plain>(&mut self, what: &'static str) -> Read<T> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let (form, _) = T::read_from_prefix(rest).map_err(|_| {
            let (at, bytes, length) = (self.at, size_of::<T>(), self.bytes.len());
            let needs = format!("{what} at byte {at} needs {bytes} bytes");
            SnapshotError(format!("{needs}, the state ends after {length}"))
        })?;
        self.at += size_of::<T>();
        Ok(form)
    }

    /// Returns the length of a list whose entries take `item_bytes` at least: never more than fit.
    pub(super) fn count(&mut self, what: &'static str, item_bytes: usize) -> Read<usize> {
        let at = self.at;
        let count = self.get::<U32>(what)?.get() as usize;
        let max = self.left() / item_bytes;
        if count > max {
            let is = format!("the number of {what} at byte {at} is {count}");
            return Err(SnapshotError(format!("{is}, there is room for {max}")));
        }
        Ok(count)
    }

    /// Nothing may follow.
    pub(super) fn end(&self) -> Read<()> {
        match (self.at, self.left()) {
            (_, 0) => Ok(()),
            (at, bytes) => Err(SnapshotError(format!(
                "the state ends at byte {at}, {bytes} more are there"
            ))),
        }
    }
}

/// Checks a number that must be from `min` to `max`.
#[inline]
pub(super) fn within<T: Into<i128> + Copy + PartialOrd>(
    what: &'static str,
    at: usize,
    value: T,
    min: T,
    max: T,
) -> Read<()> {
    if min <= value && value <= max {
        return Ok(());
    }
    let limits = (min.into(), max.into());
    Err(SnapshotError::out_of_range(what, at, value.into(), limits))
}

/// Checks a number that must be at least `min`.
#[inline]
pub(super) fn at_least(what: &'static str, at: usize, value: i64, min: i64) -> Read<()> {
    within(what, at, value, min, i64::MAX)
}

/// Takes note of the next entry of a list that ascends.
pub(super) fn ascends<T: Into<i64> + Copy + PartialOrd>(
    what: &'static str,
    at: usize,
    last: &mut Option<T>,
    next: T,
) -> Read<()> {
    if let Some(before) = last.replace(next)
        && before >= next
    {
        let (next, before) = (next.into(), before.into());
        return Err(SnapshotError::out_of_order(what, at, next, before));
    }
    Ok(())
}
