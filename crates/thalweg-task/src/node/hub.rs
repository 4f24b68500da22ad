//! Where an executor's thread and all others meet: a stack of nodes that were woken, or left,
//! elsewhere.

use std::alloc::{Layout, dealloc};
use std::num::NonZeroU32;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use thalweg::wait::EventCount;

use super::Header;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering, UnsafeCell, order};

/// Returns the head of the stack of an executor that is gone.
fn closed() -> *mut Header {
    ptr::without_provenance_mut(1)
}

/// The part of an executor that other threads reach. Rules 4 to 7 of [`super`].
pub(crate) struct Hub {
    head: AtomicPtr<Header>,
    /// The executor, roots, and once the executor is gone each frame that is not.
    holders: AtomicUsize,
    pub(crate) event_count: EventCount,
    /// The number that distinguishes the executor from others of the process.
    pub(super) executor: NonZeroU32,
    /// The memory of frames, of which only the owner asks for more.
    chunks: UnsafeCell<Vec<Chunk>>,
}

// SAFETY: rule 4: all but `chunks` is atomic or constant, and that is the owner's until the last
// holder leaves.
unsafe impl Send for Hub {}
// SAFETY: as above.
unsafe impl Sync for Hub {}

/// Memory for frames.
pub(super) struct Chunk {
    pub(super) memory: NonNull<u8>,
    pub(super) layout: Layout,
}

impl Drop for Hub {
    fn drop(&mut self) {
        // SAFETY: rule 7: no one else holds the hub.
        let chunks = self
            .chunks
            .with_mut(|chunks| unsafe { std::mem::take(&mut *chunks) });
        for chunk in chunks {
            // SAFETY: allocated with this layout; rule 7: no frame in it is alive.
            unsafe { dealloc(chunk.memory.as_ptr(), chunk.layout) };
        }
    }
}

/// A counted reference to a hub.
pub(crate) struct HubRef(NonNull<Hub>);

// SAFETY: a hub is `Sync`, and references to it are counted atomically.
unsafe impl Send for HubRef {}
// SAFETY: as above.
unsafe impl Sync for HubRef {}

impl HubRef {
    pub(super) fn new() -> Self {
        let hub = Box::new(Hub {
            head: AtomicPtr::new(ptr::null_mut()),
            holders: AtomicUsize::new(1),
            event_count: EventCount::new(),
            executor: number(),
            chunks: UnsafeCell::new(Vec::new()),
        });
        Self(NonNull::from(Box::leak(hub)))
    }

    pub(super) fn as_ptr(&self) -> NonNull<Hub> {
        self.0
    }
}

impl std::ops::Deref for HubRef {
    type Target = Hub;

    #[inline(always)]
    fn deref(&self) -> &Hub {
        // SAFETY: rule 7: counted.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for HubRef {
    fn clone(&self) -> Self {
        // ORDERING: Relaxed: the owner of a reference may make another.
        self.holders.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Drop for HubRef {
    fn drop(&mut self) {
        // SAFETY: this reference is counted, and is given up here.
        unsafe { leave(self.0) };
    }
}

/// Returns the number of another executor.
fn number() -> NonZeroU32 {
    // It is an atomic of `std`, as it outlives what loom runs.
    static LAST: AtomicU32 = AtomicU32::new(0);
    next(&LAST)
}

/// From 1 to the greatest, then from 1 again.
fn next(last: &AtomicU32) -> NonZeroU32 {
    loop {
        // ORDERING: Relaxed: a counter; each executor gets another number.
        let last = last.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if let Some(number) = NonZeroU32::new(last.wrapping_add(1)) {
            return number;
        }
    }
}

/// Gives up one holder's share; the last one frees the hub.
///
/// # Safety
/// The share must be the caller's.
unsafe fn leave(hub: NonNull<Hub>) {
    // SAFETY: the caller's share keeps it alive up to here.
    // ORDERING: AcqRel: the last one sees what the others did.
    let before = unsafe { hub.as_ref() }.holders.fetch_sub(1, order::leave());
    if before == 1 {
        // SAFETY: made by `Box::leak`, and no one else holds it.
        drop(unsafe { Box::from_raw(hub.as_ptr()) });
    }
}

/// The end of a frame whose executor is gone.
///
/// # Safety
/// The frame must not be used any more, nor its header, which has been dropped; its memory is a
/// chunk of the hub's, or its own, of this layout.
pub(super) unsafe fn leave_orphan(hub: NonNull<Hub>, frame: NonNull<u8>, own: Option<Layout>) {
    if let Some(layout) = own {
        // SAFETY: as the caller says.
        unsafe { dealloc(frame.as_ptr(), layout) };
    }
    // SAFETY: rule 6: the executor granted a share for each frame that it left behind.
    unsafe { leave(hub) };
}

impl Hub {
    /// Puts a node onto the stack, unless the executor is gone.
    ///
    /// # Safety
    /// Rule 5: the node is marked as pushed by the caller, or it has no references left and the
    /// caller gave up the last; its hub is this one.
    pub(super) unsafe fn push(&self, node: NonNull<Header>) -> bool {
        // ORDERING: Relaxed: the exchange below checks it.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            if head == closed() {
                // ORDERING: Acquire, pairs with `take` in `close`: the share is granted.
                self.head.load(Ordering::Acquire);
                return false;
            }
            // SAFETY: rule 5: until it is on the stack, no other thread touches the link.
            let link = unsafe { &node.as_ref().below };
            // SAFETY: as above.
            link.with_mut(|below| unsafe { *below = NonNull::new(head) });
            // ORDERING: `push`, pairs with `take`; Relaxed on failure: it is tried again.
            let pushed = self.head.compare_exchange_weak(
                head,
                node.as_ptr(),
                order::push(),
                Ordering::Relaxed,
            );
            match pushed {
                Ok(_) => return true,
                Err(now) => head = now,
            }
        }
    }

    /// Notifies the executor's thread that there is something for it. A drive that was left pending
    /// may be listed as well as the thread that waits now: each is notified.
    pub(crate) fn notify(&self) {
        self.event_count.notify_one();
        self.event_count.notify_one();
    }

    /// Returns whether there is anything on the stack. The owner's question.
    #[inline]
    pub(crate) fn has_pushed(&self) -> bool {
        // ORDERING: Relaxed: `take` looks again; before it sleeps a thread passes the event count's
        // fence.
        !self.head.load(Ordering::Relaxed).is_null()
    }

    /// Takes all off the stack, first come first; for the owner.
    pub(super) fn take(&self) -> Taken {
        // ORDERING: `take`, pairs with `push`.
        Taken::reversed(self.head.swap(ptr::null_mut(), order::take()))
    }

    /// Closes the stack, with a share for each of the `frames` frames that are left behind, and
    /// takes the nodes that are there.
    pub(super) fn close(&self, frames: usize) -> Taken {
        self.grant(frames);
        // ORDERING: `take`, pairs with `push`, and for those that find it closed with the load
        // there.
        Taken::reversed(self.head.swap(closed(), order::take()))
    }

    /// Grants a share for each of `frames` frames; rule 6.
    pub(super) fn grant(&self, frames: usize) {
        // ORDERING: Relaxed: what the shares are for is published later.
        self.holders.fetch_add(frames, Ordering::Relaxed);
    }

    /// Returns whether the executor is gone. Asked on its thread.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // ORDERING: Relaxed: set by this thread.
        self.head.load(Ordering::Relaxed) == closed()
    }

    pub(super) fn keep(&self, chunk: Chunk) {
        // SAFETY: rule 4: asked by the owner alone.
        self.chunks
            .with_mut(|chunks| unsafe { (*chunks).push(chunk) });
    }
}

/// Nodes taken off the stack; each must be taken.
pub(super) struct Taken(Option<NonNull<Header>>);

impl Taken {
    fn reversed(head: *mut Header) -> Self {
        let (mut rest, mut first) = (NonNull::new(head), None);
        while let Some(node) = rest {
            // SAFETY: rule 5: the link is the owner's since the node was taken off.
            let link = unsafe { &node.as_ref().below };
            // SAFETY: as above.
            rest = link.with_mut(|below| unsafe { std::mem::replace(&mut *below, first) });
            first = Some(node);
        }
        Self(first)
    }
}

impl Iterator for Taken {
    type Item = NonNull<Header>;

    fn next(&mut self) -> Option<NonNull<Header>> {
        let node = self.0?;
        // SAFETY: as in `reversed`: the owner has not given the node on yet.
        let link = unsafe { &node.as_ref().below };
        // SAFETY: as above.
        self.0 = link.with(|below| unsafe { *below });
        Some(node)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn cores_are_numbered_from_1_again_after_the_greatest_number() {
        let last = AtomicU32::new(u32::MAX - 1);
        let numbers = [(); 3].map(|()| next(&last).get());
        assert_eq!(numbers, [u32::MAX, 1, 2]);
    }
}
