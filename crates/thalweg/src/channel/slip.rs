//! Keeping a distance in a dense stream.
//!
//! A receiver that is faster than its sender finds the ring empty after every few elements, and
//! each look at the sender's index takes that line away from the sender, which needs it for the
//! next element: 100 to 200 ns for both. In a stream it pays to look less often: who has just moved
//! many elements without a wait, and now finds nothing, pauses for a moment before it looks again,
//! and then finds many. A message that comes alone is not kept waiting, since nothing moved before
//! it. (The slip of FastForward, Giacomoni, Moseley and Vachharajani, 2008.)

use crate::ring::sync::spin_hint;
use crate::wait::Pace;

/// Elements since the last wait that make a stream.
const STREAM: u64 = 16;

/// How long to pause, in turns of some 10 ns: 32 of them take 32-byte elements through a ring of
/// 1024 in 6.2 ns instead of 8.7 (2-core EPYC virtual machine); 8 and 16 are between the two.
const PAUSES: u32 = 32;

#[derive(Debug)]
pub(super) struct Slip {
    /// How many elements had moved when this endpoint waited last.
    moved_before: u64,
}

impl Slip {
    pub(super) fn new() -> Self {
        Self { moved_before: 0 }
    }

    /// The endpoint has moved `moved` elements so far and has to wait now.
    #[inline]
    pub(super) fn wait(&mut self, moved: u64, pace: &Pace) {
        let run = moved - std::mem::replace(&mut self.moved_before, moved);
        if run >= STREAM && pace.may_spin() {
            for _ in 0..PAUSES {
                spin_hint();
            }
        }
    }
}
