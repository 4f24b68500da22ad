//! One producer, one consumer.
//!
//! *State.* A power of two of cells; position p lives in cell p mod that. `head`: positions below
//! it are released.
//! *Published*: in the packed core positions below a shared `tail`, in the slotted core those
//! whose slot says p + 1. The producer keeps its tail (the next position to publish) and the last
//! head it saw; the consumer keeps its head (the next position to take) and the last published
//! position it saw.
//!
//! *Rules.*
//! 1. There is one producer and one consumer, each on one thread at a time (neither `Clone` nor
//!    `Sync`).
//! 2. The producer owns the cells of positions from its tail up to head + capacity, by any head it
//!    acquired. It writes only there, and publishes a position only after it wrote the element.
//! 3. The consumer owns the cells of positions from head up to any published position it acquired.
//!    It only reads there, and releases a position only after it took the element.
//! 4. An element is counted as gone (the consumer's head moves on, the claim's count goes down)
//!    before the value is read, and one that was read is never counted back. So code that panics
//!    or forgets a guard can leak elements, not see one twice.
//! 5. The allocation lives until both endpoints have left; leaving is the last access
//!    (`shared.rs`).
//!
//! *Why it works.* head ≤ published ≤ tail ≤ head + capacity ≤ head + cells, and all of them only
//! grow, so the ranges of rules 2 and 3 never meet in a cell: a position that is owned by the
//! producer is not published, and the one before it in the same cell is released. Each range is
//! passed on by a release store that the other side acquires (published: producer to consumer;
//! head: back), so the two accesses of a cell on both sides of the hand-over are ordered. An old
//! copy of the other's index only makes a range smaller. Rule 4 gives each element one taker: the
//! consumer, the dropped claim, or the last owner.
//!
//! *Close.* A flag set by either side. The consumer reports `Closed` only if it found nothing,
//! then saw the flag, then found nothing again: the flag's release comes after the last publish of
//! the side that set it, so the second look sees it.
//!
//! *Two layouts, one type.* Endpoints find cells by a base, a mask and a stride, and branch where
//! an element is published, because the layout of a ring should not spread through the types of
//! every struct that holds an endpoint. The branch goes the same way for the whole life of a ring.
//! Both cores give cells back through the same head, so the slotted one has an exact capacity too,
//! and its slots are written by one side only.
//!
//! *Release.* A pop releases its cell at once, a batch all its cells at its end. A pop that gave
//! cells back only now and then could leave the producer at a full ring and the consumer waiting
//! for it. It would not pay either: one release in 32 pops was no faster (4.6 to 5.3 ns a message
//! both ways), since the producer looks at the head only when its copy says full, and finds many.
//!
//! *Prefetch.* A push of one element asks for the line 512 bytes ahead (`prefetchw`), in packed
//! rings of up to 256 KiB: in those, the consumer still has it. 32-byte elements through a ring of
//! 1024: 8.7 to 4.7 ns; through one of 65,536 it made 3.5 into 4.4, so not there.
//!
//! *Distance.* See `shared.rs`.
//!
//! The figures: 8-byte elements, 1024 of them, on a virtual machine with two cores of an AMD EPYC.
//!
//! Errors of the operations, and the marker that makes an end of a ring or a channel `!Sync`, are
//! here, too.

use alloc::boxed::Box;
use core::ptr::NonNull;

use super::sequence::{CapacityError, memory_for, slots_for};
use shared::Shared;

pub use ends::{SpscBatch, SpscClaim};
pub use ends::{SpscConsumer, SpscProducer};

mod ends;
#[cfg(all(test, loom))]
mod models;
mod shared;

/// The layout of a ring's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Elements side by side: for throughput, and for batches.
    #[default]
    Packed,
    /// Each element in 64-byte lines of its own together with its sequence: for the latency of
    /// single elements. Takes at least 64 bytes an element.
    Slotted,
}

/// Makes a ring for one producer and one consumer that holds up to `capacity` elements.
///
/// All memory is allocated and touched here: the number of slots is `capacity`, rounded up to a
/// power of two. The ring never holds more than `capacity` elements.
///
/// # Errors
/// [`CapacityError`] if `capacity` is 0 or above [`CAPACITY_MAX`](super::CAPACITY_MAX), or there is
/// no memory for that many.
pub fn spsc<T>(
    capacity: usize,
    layout: Layout,
) -> Result<(SpscProducer<T>, SpscConsumer<T>), CapacityError> {
    let slots = slots_for(capacity)?;
    match layout {
        Layout::Packed => memory_for::<shared::Cell<T>>(capacity, slots),
        Layout::Slotted => memory_for::<shared::Slot<T>>(capacity, slots),
    }?;
    let shared = Shared::new(layout, capacity, slots);
    let shared = NonNull::from(Box::leak(Box::new(shared)));
    Ok((SpscProducer::new(shared), SpscConsumer::new(shared)))
}

/// The reason why an element was not pushed, which it returns.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushError<T> {
    /// The ring holds as many elements as it can. Try again when the consumer has taken some.
    Full(T),
    /// The ring is closed. It will never take an element again.
    Closed(T),
}

giving_back!(PushError,
    /// Whether the ring was full, so that a later try can succeed.
    is_full Full:
    Full "push to a full ring", Closed "push to a closed ring");

/// The reason why no element came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PopError {
    /// The ring is empty now.
    Empty,
    /// The ring is closed and everything published before the close has been taken.
    Closed,
}

errors!(PopError {
    Self::Empty => "pop from an empty ring";
    Self::Closed => "pop from a closed and drained ring";
});

/// The reason why slots were not claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingClaimError {
    /// Fewer slots are free now than were asked for.
    Full {
        /// The claim that was asked for, in elements.
        asked: usize,
        /// The room that was free, in elements.
        free: usize,
    },
    /// More was asked for than the capacity, so no later try can succeed.
    TooLarge {
        /// The claim that was asked for, in elements.
        asked: usize,
        /// The capacity of the ring, in elements.
        capacity: usize,
    },
    /// The ring is closed.
    Closed,
}

errors!(RingClaimError {
    Self::Full { asked, free } => "claim of {asked} elements in a ring with {free} free";
    Self::TooLarge { asked, capacity } =>
        "claim of {asked} elements in a ring that holds {capacity}";
    Self::Closed => "claim in a closed ring";
});

/// Nothing implements it, and nothing outside can: neither it nor the type below is theirs.
#[diagnostic::on_unimplemented(
    message = "an end of a ring, a channel or a bus can't be shared between threads",
    label = "shared between threads",
    note = "each thread has an end of its own: `move` it there, or a clone where there can be one",
    note = "a `Mutex` around an end can be shared"
)]
pub trait SharedByThreads {}

/// A field of this type makes an end `!Sync`. The compiler names it in the one error that it gives,
/// in place of each pointer inside that is not `Sync`.
#[derive(Debug)]
pub struct UsedByOneThreadAtATime;

// SAFETY: it has no state; and the condition never holds. (It has to be one for every lifetime, as
// the compiler refuses one that it finds false here.)
unsafe impl Sync for UsedByOneThreadAtATime where for<'a> UsedByOneThreadAtATime: SharedByThreads {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_operation_and_the_limit() {
        assert_eq!(PushError::Full(1).to_string(), "push to a full ring");
        assert_eq!(PushError::Closed(1).to_string(), "push to a closed ring");
        assert_eq!(format!("{:?}", PushError::Full(1)), "Full(..)");
        assert_eq!(PopError::Empty.to_string(), "pop from an empty ring");
        assert_eq!(
            PopError::Closed.to_string(),
            "pop from a closed and drained ring"
        );
        let full = RingClaimError::Full { asked: 3, free: 1 };
        assert_eq!(
            full.to_string(),
            "claim of 3 elements in a ring with 1 free"
        );
        let large = RingClaimError::TooLarge {
            asked: 9,
            capacity: 8,
        };
        assert_eq!(
            large.to_string(),
            "claim of 9 elements in a ring that holds 8"
        );
        assert_eq!(RingClaimError::Closed.to_string(), "claim in a closed ring");
    }

    #[test]
    fn a_refused_element_comes_back() {
        assert_eq!(PushError::Full(7).into_inner(), 7);
        assert_eq!(PushError::Closed(8).into_inner(), 8);
        assert!(PushError::Full(7).is_full() && !PushError::Closed(8).is_full());
    }
}
