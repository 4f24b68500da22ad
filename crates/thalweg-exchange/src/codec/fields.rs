//! Frames of variable length, one struct after another.

use zerocopy::{Immutable, IntoBytes};

use super::error::CodecError;
use crate::ids::CurrencyId;
use crate::wire::{AmountForm, Form, Plain, Wire};

/// Returns an error if a number at this place is below `min`.
pub(super) const fn at_least(
    what: &'static str,
    at: usize,
    value: u64,
    min: u64,
) -> Result<(), CodecError> {
    if value >= min {
        return Ok(());
    }
    Err(CodecError::TooSmall {
        what,
        at,
        value,
        min,
    })
}

/// Reads a frame, struct by struct.
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

    /// Returns how many bytes are left.
    const fn left(&self) -> usize {
        self.frame.len() - self.at
    }

    /// Takes a struct. The frame is all there, so that no further bytes can mend one that ends.
    #[inline]
    pub(super) fn get<T: Plain>(&mut self) -> Result<&'f T, CodecError> {
        let rest = self.frame.get(self.at..).unwrap_or_default();
        let (form, _) = T::ref_from_prefix(rest).map_err(|_| CodecError::Truncated {
            at: self.at,
            bytes: size_of::<T>(),
            length: self.frame.len(),
        })?;
        self.at += size_of::<T>();
        Ok(form)
    }

    /// Takes a struct without small bytes, and decodes it.
    #[inline]
    pub(super) fn value<F: Form>(&mut self) -> Result<F::Value, CodecError> {
        let at = self.at;
        self.get::<F>()?.value([0; 2], [at, at])
    }

    /// Takes a list of structs without small bytes, and decodes them.
    pub(super) fn values<F: Form>(&mut self, count: usize) -> Result<Vec<F::Value>, CodecError> {
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(self.value::<F>()?);
        }
        Ok(values)
    }

    /// Takes a list of amounts by currency.
    pub(super) fn amounts<T: Wire>(
        &mut self,
        count: usize,
    ) -> Result<Vec<(CurrencyId, T)>, CodecError> {
        let mut amounts = Vec::with_capacity(count);
        for _ in 0..count {
            amounts.push(self.get::<AmountForm<T::Bytes>>()?.amount()?);
        }
        Ok(amounts)
    }

    /// Returns the length of a list whose items take `item_bytes` at least: never more than fit.
    pub(super) fn count(
        &mut self,
        what: &'static str,
        item_bytes: usize,
    ) -> Result<usize, CodecError> {
        let at = self.at;
        let count = u32::value(*self.get()?, at)? as usize;
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

    /// Returns all bytes that are left.
    pub(super) fn rest(&mut self) -> &'f [u8] {
        let rest = self.frame.get(self.at..).unwrap_or_default();
        self.at = self.frame.len();
        rest
    }

    /// Nothing may follow.
    pub(super) const fn end(&self) -> Result<(), CodecError> {
        match self.left() {
            0 => Ok(()),
            bytes => Err(CodecError::TrailingBytes { at: self.at, bytes }),
        }
    }
}

/// Writes a frame, struct by struct, into bytes whose number was counted before.
#[derive(Debug)]
pub(super) struct Writer<'f>(&'f mut [u8]);

impl<'f> Writer<'f> {
    pub(super) const fn new(frame: &'f mut [u8]) -> Self {
        Self(frame)
    }

    #[inline]
    pub(super) fn put<T: IntoBytes + Immutable + ?Sized>(&mut self, form: &T) {
        let bytes = form.as_bytes();
        let (place, rest) = std::mem::take(&mut self.0)
            .split_at_mut_checked(bytes.len())
            .expect("the bytes of all fields were counted");
        place.copy_from_slice(bytes);
        self.0 = rest;
    }

    /// Writes a value whose struct has no small bytes.
    #[inline]
    pub(super) fn value<F: Form>(&mut self, value: &F::Value) {
        self.put(&F::of(value).1);
    }

    /// The length of a list. Frames have less than 2³² bytes, so that it fits.
    #[inline]
    pub(super) fn count(&mut self, count: usize) {
        self.put(&(count as u32).bytes());
    }
}
