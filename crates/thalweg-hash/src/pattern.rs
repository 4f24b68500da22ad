//! Where in a stride a stream is.

use crate::Stride;
use crate::kernel::{GROUP_BYTES, Sectors};

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
