//! What is sent.

use std::time::Duration;

/// What every peer can carry.
pub(crate) trait Element:
    Copy + Default + PartialEq + Send + Sync + Unpin + 'static
{
}

impl<T: Copy + Default + PartialEq + Send + Sync + Unpin + 'static> Element for T {}

/// The message that says that no other will follow.
pub(crate) const LAST: u64 = u64::MAX;

/// An order as programs of the kind send them; 32 bytes with a time stamp of 16.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Order {
    pub(crate) id: i32,
    price: f64,
    amount: u32,
    /// Since the run's begin.
    pub(crate) timestamp: Duration,
}

const _: () = assert!(size_of::<Order>() == 32);

impl Order {
    /// Makes the order of this number.
    #[inline]
    pub(crate) fn numbered(id: i32, timestamp: Duration) -> Self {
        Self {
            id,
            price: f64::from(id) * 0.25,
            amount: id.unsigned_abs() & 0xFFFF,
            timestamp,
        }
    }

    /// Returns whether it is as it was made.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        *self == Self::numbered(self.id, self.timestamp)
    }
}
