//! A stride, and where in it a stream is.

use core::fmt;
use core::str::FromStr;

use crate::kernel::{GROUP_BYTES, Sectors};

/// A repeating pattern: `take` bytes that count, then `skip` bytes that do not.
///
/// Sectors of 512 bytes with 8 bytes of protection information are `512:8`.
///
/// The pattern runs over the whole list as if it were one buffer: a sector may begin in one slice
/// and end in the next. It may end anywhere: what is there of the last `take` counts, what is
/// there of the last `skip` does not. Without a `skip` everything counts; with a `take` of 0
/// nothing does.
///
/// ```
/// use thalweg_hash::{Stride, xxh64, xxh64_strided};
///
/// let stride: Stride = "2:3".parse()?;
/// assert_eq!(stride, Stride { take: 2, skip: 3 });
/// // ab---cd---e, in two slices
/// let slices: [&[u8]; 2] = [b"ab--", b"-cd---e"];
/// assert_eq!(xxh64_strided(0, slices, stride), xxh64(0, b"abcde"));
/// # Ok::<(), thalweg_hash::StrideError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stride {
    /// The number of bytes that are taken.
    pub take: usize,
    /// The number of bytes behind them that are skipped.
    pub skip: usize,
}

/// The reason why a text is no [`Stride`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StrideError {
    /// It is not two numbers with a colon between them.
    Form,
    /// Nothing would be taken.
    TakesNothing,
}

impl fmt::Display for StrideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "a stride is two numbers of bytes with a colon between them, like 512:8",
            Self::TakesNothing => "a stride takes at least 1 byte",
        })
    }
}

impl core::error::Error for StrideError {}

impl FromStr for Stride {
    type Err = StrideError;

    fn from_str(text: &str) -> Result<Self, StrideError> {
        let (take, skip) = text.split_once(':').ok_or(StrideError::Form)?;
        let bytes = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().map_err(|_| StrideError::Form),
            false => Err(StrideError::Form),
        };
        let stride = Self {
            take: bytes(take)?,
            skip: bytes(skip)?,
        };
        match stride.take {
            0 => Err(StrideError::TakesNothing),
            _ => Ok(stride),
        }
    }
}

impl fmt::Display for Stride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.take, self.skip)
    }
}

/// A stride, and where in it we are.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    stride: Stride,
    taking: bool,
    /// Bytes that are left of what is taken or skipped now.
    left: usize,
}

impl Pattern {
    pub(crate) const fn new(stride: Stride) -> Self {
        Self {
            stride,
            taking: true,
            left: stride.take,
        }
    }

    fn turn(&mut self) {
        self.taking = !self.taking;
        self.left = match self.taking {
            true => self.stride.take,
            false => self.stride.skip,
        };
    }

    /// Returns the next run to take, which may be empty, and the rest behind it.
    pub(crate) fn next_run<'a>(&mut self, data: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        if self.stride.take == 0 {
            return (&[], &[]);
        }
        if self.left == 0 {
            self.turn();
        }
        let bytes = self.left.min(data.len());
        let (run, rest) = data.split_at(bytes);
        self.left -= bytes;
        if self.taking {
            (run, rest)
        } else {
            (&[], rest)
        }
    }

    /// Returns the sectors that `data` begins with, if one begins here, is whole, and is made of
    /// groups.
    pub(crate) fn whole_sectors<'a>(&self, data: &'a [u8]) -> Option<Sectors<'a>> {
        let Stride { take, skip } = self.stride;
        let begins = if self.taking {
            self.left == take
        } else {
            self.left == 0
        };
        if skip == 0 && take > 0 {
            // Without gaps there are no sectors either: everything counts.
            return Sectors::one(data);
        }
        if !begins || take == 0 || !take.is_multiple_of(GROUP_BYTES) || data.len() < take {
            return None;
        }
        let apart = take.saturating_add(skip);
        // The last one need not have all of its gap behind it.
        let count = 1 + (data.len() - take) / apart;
        let data = &data[..(count - 1) * apart + take];
        Some(Sectors {
            data,
            take,
            apart,
            count,
        })
    }

    /// Returns the rest behind sectors that `data` began with.
    pub(crate) fn behind<'a>(&mut self, sectors: &Sectors<'_>, data: &'a [u8]) -> &'a [u8] {
        (self.taking, self.left) = (true, 0);
        &data[sectors.data.len()..]
    }
}
