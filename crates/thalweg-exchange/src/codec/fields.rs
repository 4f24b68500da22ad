//! Fields by their place in a frame, and one after another.

use super::error::CodecError;
use super::frame::Head;
use crate::command::{Action, OrderType};

/// The 64-bit field at `at`; both numbers are known when this is compiled, so nothing is checked.
#[inline(always)]
pub(super) fn long<const N: usize>(frame: &[u8; N], at: usize) -> i64 {
    let mut field = [0; 8];
    field.copy_from_slice(&frame[at..at + 8]);
    i64::from_le_bytes(field)
}

/// As [`long`], 32 bits.
#[inline(always)]
pub(super) fn int<const N: usize>(frame: &[u8; N], at: usize) -> i32 {
    let mut field = [0; 4];
    field.copy_from_slice(&frame[at..at + 4]);
    i32::from_le_bytes(field)
}

/// Writes 64-bit fields one after another from `at` on.
#[inline(always)]
pub(super) fn put_longs<const N: usize, const F: usize>(
    frame: &mut [u8; N],
    at: usize,
    fields: [i64; F],
) {
    for (field, value) in fields.into_iter().enumerate() {
        let at = at + field * 8;
        frame[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
}

#[inline(always)]
pub(super) fn put_int<const N: usize>(frame: &mut [u8; N], at: usize, value: i32) {
    frame[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

#[inline]
pub(super) const fn action(code: u8) -> Action {
    if code & 1 == 0 {
        Action::Ask
    } else {
        Action::Bid
    }
}

#[inline]
pub(super) const fn order_type(code: u8) -> Option<OrderType> {
    Some(match code {
        0 => OrderType::Gtc,
        1 => OrderType::Ioc,
        2 => OrderType::IocBudget,
        3 => OrderType::Fok,
        4 => OrderType::FokBudget,
        5 => OrderType::Market,
        _ => return None,
    })
}

/// The error of a byte that must be at most `max`.
pub(super) fn small(what: &'static str, at: usize, value: u8, max: u8) -> Result<u8, CodecError> {
    if value > max {
        return Err(CodecError::OutOfRange {
            what,
            at,
            value: value.into(),
            max: max.into(),
        });
    }
    Ok(value)
}

/// The error of a field that must be 0, since it means nothing.
pub(super) const fn nothing(what: &'static str, at: usize, value: i64) -> Result<(), CodecError> {
    if value == 0 {
        return Ok(());
    }
    Err(CodecError::OutOfRange {
        what,
        at,
        value: value as u64,
        max: 0,
    })
}

/// Reads a frame field by field.
#[derive(Debug)]
pub(super) struct Reader<'f> {
    frame: &'f [u8],
    at: usize,
}

impl<'f> Reader<'f> {
    pub(super) const fn new(frame: &'f [u8], at: usize) -> Self {
        Self { frame, at }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// The next byte, without a step.
    #[inline]
    pub(super) fn next(&self) -> Option<u8> {
        self.frame.get(self.at).copied()
    }

    /// Bytes that are left.
    pub(super) const fn left(&self) -> usize {
        self.frame.len() - self.at
    }

    /// The frame is all there, so that no further bytes can mend it.
    const fn ends_early(&self, bytes: usize) -> CodecError {
        CodecError::EndsEarly {
            at: self.at,
            bytes,
            length: self.frame.len(),
        }
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let rest = self.frame.get(self.at..).unwrap_or_default();
        let field = rest.first_chunk().ok_or(self.ends_early(N))?;
        self.at += N;
        Ok(*field)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, CodecError> {
        Ok(self.take::<1>()?[0])
    }

    #[inline]
    pub(super) fn int(&mut self) -> Result<i32, CodecError> {
        self.take().map(i32::from_le_bytes)
    }

    #[inline]
    pub(super) fn long(&mut self) -> Result<i64, CodecError> {
        self.take().map(i64::from_le_bytes)
    }

    /// Reads `N` 64-bit fields with one check of the length.
    #[inline]
    pub(super) fn longs<const N: usize>(&mut self) -> Result<[i64; N], CodecError> {
        let rest = self.frame.get(self.at..).unwrap_or_default();
        let fields: &[[u8; 8]; N] =
            (rest.as_chunks().0.first_chunk()).ok_or(self.ends_early(8 * N))?;
        self.at += 8 * N;
        Ok(fields.map(i64::from_le_bytes))
    }

    /// A byte that must be at most `max`.
    #[inline]
    pub(super) fn small(&mut self, what: &'static str, max: u8) -> Result<u8, CodecError> {
        let at = self.at;
        small(what, at, self.byte()?, max)
    }

    /// A field that means something only where `is_there`, and is 0 elsewhere.
    pub(super) fn optional(
        &mut self,
        what: &'static str,
        is_there: bool,
    ) -> Result<Option<i64>, CodecError> {
        let at = self.at;
        let value = self.long()?;
        if is_there {
            return Ok(Some(value));
        }
        nothing(what, at, value)?;
        Ok(None)
    }

    /// The length of a list whose items take `item_bytes` at least: never more than fit.
    pub(super) fn count(
        &mut self,
        what: &'static str,
        item_bytes: usize,
    ) -> Result<usize, CodecError> {
        let at = self.at;
        let count = u32::from_le_bytes(self.take()?) as usize;
        let max = self.left() / item_bytes;
        if count > max {
            return Err(CodecError::TooMany {
                what,
                at,
                count,
                max,
            });
        }
        Ok(count)
    }

    /// A number that must be at least `min`.
    pub(super) fn at_least(&mut self, what: &'static str, min: u64) -> Result<u64, CodecError> {
        let at = self.at;
        let value = self.long()? as u64;
        if value >= min {
            return Ok(value);
        }
        Err(CodecError::BelowLeast {
            what,
            at,
            value,
            min,
        })
    }

    /// All bytes that are left.
    pub(super) fn rest(&mut self) -> &'f [u8] {
        let rest = self.frame.get(self.at..).unwrap_or_default();
        self.at = self.frame.len();
        rest
    }

    /// Nothing may follow.
    pub(super) const fn end(&self) -> Result<(), CodecError> {
        match self.left() {
            0 => Ok(()),
            bytes => Err(CodecError::Surplus { at: self.at, bytes }),
        }
    }
}

/// Writes a frame field by field, into bytes whose number was counted before.
#[derive(Debug)]
pub(super) struct Writer<'f> {
    frame: &'f mut [u8],
    at: usize,
}

impl<'f> Writer<'f> {
    pub(super) const fn new(frame: &'f mut [u8]) -> Self {
        Self { frame, at: 0 }
    }

    /// The head, with one own byte.
    pub(super) fn head(&mut self, length: usize, kind: u8, own: u8) {
        self.bytes(Head::new(length, kind, [own, 0]).0.to_le_bytes());
    }

    #[inline]
    pub(super) fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        self.frame[self.at..self.at + N].copy_from_slice(&bytes);
        self.at += N;
    }

    pub(super) fn slice(&mut self, bytes: &[u8]) {
        self.frame[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    #[inline]
    pub(super) fn int(&mut self, value: i32) {
        self.bytes(value.to_le_bytes());
    }

    #[inline]
    pub(super) fn long(&mut self, value: i64) {
        self.bytes(value.to_le_bytes());
    }

    #[inline]
    pub(super) fn longs<const N: usize>(&mut self, values: [i64; N]) {
        for value in values {
            self.long(value);
        }
    }

    /// The length of a list. Frames have less than 2³² bytes, so that it fits.
    #[inline]
    pub(super) fn count(&mut self, count: usize) {
        self.bytes((count as u32).to_le_bytes());
    }
}
