//! Giving up references to a frame; the last one ends it.

use std::ptr::{self, NonNull};

use super::{Header, hub};
use crate::sync::order;

/// Gives up the owner's share of a frame.
///
/// # Safety
/// Rule 2: on the owner's thread, once.
pub(super) unsafe fn give_up(node: NonNull<Header>) {
    // SAFETY: the owner's share keeps it alive.
    // ORDERING: `alone`, pairs with `leave`: alone, there is no other reference left from which one
    // could be made.
    if unsafe { node.as_ref() }.refs.load(order::alone()) == 1 {
        // SAFETY: rule 2.
        unsafe { free(node) };
    } else {
        // SAFETY: the share is the caller's.
        unsafe { drop_ref(node) };
    }
}

/// Ends a frame on the owner's thread.
///
/// # Safety
/// Rule 2: no one else has it.
pub(super) unsafe fn free(node: NonNull<Header>) {
    // SAFETY: the caller has it alone. By rule 6 the hub is there.
    let (body, hub, scheduler) = unsafe {
        let header = node.as_ref();
        (header.body, header.hub, header.scheduler)
    };
    // SAFETY: rule 6.
    if unsafe { hub.as_ref() }.is_closed() {
        // SAFETY: as above.
        return unsafe { end_orphan(node) };
    }
    // SAFETY: the executor is there, so its scheduler is; the frame is of its pool.
    unsafe {
        #[cfg(loom)]
        node.as_ref().used.with_mut(|_| ());
        ptr::drop_in_place(node.as_ptr());
        scheduler.as_ref().take_back(body.place, node.cast());
    }
}

/// Ends a frame whose executor is gone, on any thread.
///
/// # Safety
/// Rule 2: no one else has it; and its hub is closed.
pub(super) unsafe fn end_orphan(node: NonNull<Header>) {
    // SAFETY: as the caller says.
    let (place, hub) = unsafe { (node.as_ref().body.place, node.as_ref().hub) };
    // SAFETY: the caller has it alone. The fields of the header that have a destructor are `None`
    // since the task was over: its joiner was on the owner's thread.
    unsafe {
        ptr::drop_in_place(node.as_ptr());
        hub::leave_orphan(hub, node.cast(), place.own());
    }
}

/// Gives up a counted reference.
///
/// # Safety
/// It must be the caller's.
pub(super) unsafe fn drop_ref(node: NonNull<Header>) {
    // SAFETY: the reference keeps the frame alive up to here.
    let (owner, hub) = unsafe { (node.as_ref().owner, node.as_ref().hub) };
    #[cfg(loom)]
    // SAFETY: as above.
    unsafe { node.as_ref() }.used.with(|_| ());
    // SAFETY: as above.
    // ORDERING: `leave`: the last one sees what the others did.
    if unsafe { node.as_ref() }.refs.fetch_sub(1, order::leave()) != 1 {
        return;
    }
    // No one else has the node any more, so the rest of it is ours (rule 2).
    if owner.is_current() {
        // SAFETY: rule 2, on the owner's thread.
        unsafe { free(node) };
    // SAFETY: rule 6: the frame is not freed, so its hub is there; rule 5 for the push.
    } else if !unsafe { hub.as_ref().push(node) } {
        // SAFETY: rule 6: the executor is gone, and left the frame to its last holder.
        unsafe { end_orphan(node) };
    }
}
