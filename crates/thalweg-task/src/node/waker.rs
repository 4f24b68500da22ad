//! A task's `Waker`: without atomics on the owner's thread, with them elsewhere.

use std::mem::ManuallyDrop;
use std::process::abort;
use std::ptr::NonNull;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::release::drop_ref;
use super::{DONE, Header, NodeRef};
use crate::sync::{Ordering, order};

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// Returns the node's waker, lent: it must not outlive the caller's hold on the node, and is not
/// dropped.
#[inline(always)]
pub(super) fn lend(node: NonNull<Header>) -> ManuallyDrop<Waker> {
    let data = node.as_ptr().cast_const().cast();
    // SAFETY: the functions below keep the contract of a waker; it is `Send` and `Sync` since they
    // touch what is the owner's on the owner's thread only (rule 1).
    ManuallyDrop::new(unsafe { Waker::new(data, &VTABLE) })
}

/// Returns the waker with these parts, lent.
///
/// # Safety
/// They are those of a waker that outlives this one.
pub(super) unsafe fn of_parts(
    data: *const (),
    vtable: &'static RawWakerVTable,
) -> ManuallyDrop<Waker> {
    // SAFETY: as that one keeps the contract, so does this one, which is not dropped.
    ManuallyDrop::new(unsafe { Waker::new(data, vtable) })
}

/// Returns the node that `waker` wakes, if it is one of ours, without a hold on it.
#[inline(always)]
fn node_of(waker: &Waker) -> Option<NonNull<Header>> {
    let is_ours = std::ptr::eq(waker.vtable(), &VTABLE);
    let data = waker.data().cast::<Header>().cast_mut();
    is_ours.then(|| NonNull::new(data)).flatten()
}

/// Returns whether `waker` is that of `node`.
#[inline(always)]
pub(super) fn is_of(waker: &Waker, node: &NodeRef) -> bool {
    let is_ours = std::ptr::eq(waker.vtable(), &VTABLE);
    is_ours && std::ptr::addr_eq(waker.data(), node.0.as_ptr())
}

/// Returns the node that `waker` wakes, if it is one of the calling thread's, and not over.
#[inline]
pub(super) fn local(waker: &Waker) -> Option<NodeRef> {
    let node = node_of(waker)?;
    // SAFETY: a waker, or the poll that lends it, keeps its node alive.
    let header = unsafe { node.as_ref() };
    let is_mine = header.owner.is_current() && header.flags.get() & DONE == 0;
    is_mine.then(|| NodeRef::hold(node))
}

fn header(data: &*const ()) -> NonNull<Header> {
    // SAFETY: wakers are made of pointers to headers only.
    unsafe { NonNull::new_unchecked(data.cast::<Header>().cast_mut()) }
}

/// # Safety
/// As `RawWakerVTable` says: `data` is a waker's, which is there.
unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the waker that is cloned keeps the frame alive (rule 2).
    let node = unsafe { header(&data).as_ref() };
    // ORDERING: Relaxed: the owner of a reference may make another.
    if node.refs.fetch_add(1, Ordering::Relaxed) > isize::MAX as usize {
        abort(); // as `Arc` does: that many can only be leaked ones
    }
    RawWaker::new(data, &VTABLE)
}

/// # Safety
/// As `RawWakerVTable` says: `data` is a waker's, which is there, and the caller's.
unsafe fn wake(data: *const ()) {
    // SAFETY: the caller's reference is given up after it was used.
    unsafe {
        wake_by_ref(data);
        drop_waker(data);
    }
}

/// # Safety
/// As `RawWakerVTable` says: `data` is a waker's, which is there.
unsafe fn wake_by_ref(data: *const ()) {
    let node = header(&data);
    // SAFETY: the waker keeps the frame alive.
    let header = unsafe { node.as_ref() };
    if header.owner.is_current() {
        // The owner's share of a task that is over may be gone (rule 2).
        if header.flags.get() & DONE == 0 {
            NodeRef::hold(node).wake();
        }
    } else {
        wake_remote(node);
    }
}

#[cold]
fn wake_remote(node: NonNull<Header>) {
    // SAFETY: called with a waker, which keeps the frame alive, and with it the hub (rule 6).
    let (header, hub) = unsafe { (node.as_ref(), node.as_ref().hub.as_ref()) };
    // ORDERING: `mark`, pairs with `again`: where it is marked already, the poll to come sees what
    // was done before this.
    if header.pushed.swap(true, order::mark()) {
        return;
    }
    // ORDERING: Relaxed: the waker is a reference. This one is the stack's.
    header.refs.fetch_add(1, Ordering::Relaxed);
    // SAFETY: rule 5: marked here.
    if unsafe { hub.push(node) } {
        hub.notify();
    } else {
        // ORDERING: Relaxed: not the last, since the waker is one.
        header.refs.fetch_sub(1, Ordering::Relaxed);
    }
}

/// # Safety
/// As `RawWakerVTable` says: `data` is a waker's, which is there, and the caller's.
unsafe fn drop_waker(data: *const ()) {
    // SAFETY: this waker's reference, given up here.
    unsafe { drop_ref(header(&data)) };
}
