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
        let (form, _) = T::read_from_prefix(rest).map_err(|_| SnapshotError::Truncated {
            what,
            at: self.at,
            bytes: size_of::<T>(),
            length: self.bytes.len(),
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
            return Err(SnapshotError::TooMany {
                what,
                at,
                count,
                max,
            });
        }
        Ok(count)
    }

    /// Nothing may follow.
    pub(super) const fn end(&self) -> Read<()> {
        match self.left() {
            0 => Ok(()),
            bytes => Err(SnapshotError::TrailingBytes { at: self.at, bytes }),
        }
    }
}

/// Returns the error of a number that must be from `min` to `max`.
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
    Err(SnapshotError::OutOfRange {
        what,
        at,
        value: value.into(),
        min: min.into(),
        max: max.into(),
    })
}

/// Returns the error of a number that must be at least `min`.
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
        return Err(SnapshotError::OutOfOrder {
            what,
            at,
            value: next.into(),
            before: before.into(),
        });
    }
    Ok(())
}
