//! The bytes of a state, field by field.

use super::SnapshotError;

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

    #[inline]
    pub(super) fn take<const N: usize>(&mut self, what: &'static str) -> Read<[u8; N]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let field = rest.first_chunk().ok_or(SnapshotError::EndsEarly {
            what,
            at: self.at,
            bytes: N,
            length: self.bytes.len(),
        })?;
        self.at += N;
        Ok(*field)
    }

    #[inline]
    pub(super) fn byte(&mut self, what: &'static str) -> Read<u8> {
        Ok(self.take::<1>(what)?[0])
    }

    pub(super) fn word(&mut self, what: &'static str) -> Read<u32> {
        self.take(what).map(u32::from_le_bytes)
    }

    pub(super) fn int(&mut self, what: &'static str) -> Read<i32> {
        self.take(what).map(i32::from_le_bytes)
    }

    #[inline]
    pub(super) fn long(&mut self, what: &'static str) -> Read<i64> {
        self.take(what).map(i64::from_le_bytes)
    }

    pub(super) fn wide(&mut self, what: &'static str) -> Read<i128> {
        self.take(what).map(i128::from_le_bytes)
    }

    /// Reads `N` 64-bit fields with one check of the length. `what` is the first.
    #[inline]
    pub(super) fn longs<const N: usize>(&mut self, what: &'static str) -> Read<[i64; N]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let fields: &[[u8; 8]; N] =
            rest.as_chunks()
                .0
                .first_chunk()
                .ok_or(SnapshotError::EndsEarly {
                    what,
                    at: self.at,
                    bytes: 8 * N,
                    length: self.bytes.len(),
                })?;
        self.at += 8 * N;
        Ok(fields.map(i64::from_le_bytes))
    }

    /// A byte that is at most `max`.
    #[inline]
    pub(super) fn small(&mut self, what: &'static str, max: u8) -> Read<u8> {
        let at = self.at;
        let value = self.byte(what)?;
        within(what, at, value, 0, max)?;
        Ok(value)
    }

    /// A field that means something only where `is_there`, and is 0 elsewhere.
    pub(super) fn optional(&mut self, what: &'static str, is_there: bool) -> Read<Option<i64>> {
        let at = self.at;
        let value = self.long(what)?;
        if is_there {
            return Ok(Some(value));
        }
        within(what, at, value, 0, 0)?;
        Ok(None)
    }

    /// The length of a list whose entries take `item_bytes` at least: never more than fit.
    pub(super) fn count(&mut self, what: &'static str, item_bytes: usize) -> Read<usize> {
        let at = self.at;
        let count = self.word(what)? as usize;
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
            bytes => Err(SnapshotError::Surplus { at: self.at, bytes }),
        }
    }
}

/// The error of a number that must be from `min` to `max`.
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
