//! The content of a frame, and the operations on it that depend on its type.

use std::alloc::Layout;
use std::cell::Cell;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, offset_of};
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::task::{Context, Poll};

use super::hub::{self, Hub};
use super::pool::Place;
use super::scheduler::{Scheduler, SeatId};
use super::thread::Thread;
use super::waiter::Waiter;
use super::{FUTURE, OUTPUT, waker};
use crate::sync::{AtomicBool, AtomicUsize, UnsafeCell, order};
use crate::task_error::TaskError;
use crate::wheel::Timer;

/// The part of a frame that is the same for tasks of all types. The fields that a poll touches are
/// last, beside the body.
#[repr(C)]
pub(crate) struct Header {
    pub(super) hub: NonNull<Hub>,
    /// Counted while the task is not over.
    pub(super) scheduler: NonNull<Scheduler>,
    /// The waiter for its end.
    pub(super) joiner: Cell<Option<Waiter>>,
    /// Its deadline.
    pub(super) timer: Cell<Option<Timer>>,
    pub(super) place: Cell<SeatId>,
    pub(super) below: UnsafeCell<Option<NonNull<Header>>>,
    /// Read where a waker is used, and written where the frame ends, so that a model sees whether
    /// the one comes before the other.
    #[cfg(loom)]
    pub(super) used: UnsafeCell<()>,
    /// The one behind it in the run list.
    pub(super) next: Cell<Option<NonNull<Header>>>,
    pub(super) refs: AtomicUsize,
    pub(super) owner: Thread,
    pub(super) body: &'static Body,
    pub(super) pushed: AtomicBool,
    /// Why it is cancelled, or was.
    pub(super) late: Cell<bool>,
    pub(super) flags: Cell<u8>,
    pub(super) locals: Cell<usize>,
}

/// The operations on the body of a frame, by its type: by rule 3 only for the code that set
/// `RUNNING`, except for the output of a task that is over, which is its handle's.
pub(super) struct Body {
    pub(super) place: Place,
    /// Polls the future; when it is ready, drops it and leaves its output.
    pub(super) poll: unsafe fn(NonNull<Header>),
    pub(super) drop_future: unsafe fn(NonNull<Header>),
    pub(super) drop_output: unsafe fn(NonNull<Header>),
    /// Leaves an error instead of an output.
    pub(super) fail: unsafe fn(NonNull<Header>, TaskError),
    /// Where the output is.
    pub(super) output: unsafe fn(NonNull<Header>) -> NonNull<()>,
}

/// The outcome of a task.
pub(super) type Outcome<T> = Result<T, TaskError>;

#[cfg(all(target_pointer_width = "64", not(loom)))]
const _: () = assert!(
    size_of::<Header>() <= 112,
    "a small task fits into two lines"
);

#[repr(C)]
struct Frame<F: Future> {
    header: Header,
    future_or_output: FutureOrOutput<F>,
}

/// Room for one or the other; only pointers to it are used.
#[allow(dead_code)] // the fields are for their size
union FutureOrOutput<F: Future> {
    future: ManuallyDrop<F>,
    output: ManuallyDrop<Outcome<F::Output>>,
}

/// The functions of a [`Body`] for frames of one type.
pub(super) struct Of<F>(PhantomData<F>);

impl<F: Future> Of<F> {
    pub(super) const BODY: Body = Self::body(Place::of::<Frame<F>>());
    /// Where the core is gone, and its pool takes nothing back.
    pub(super) const LATE: Body = Self::body(Place::Own(Layout::new::<Frame<F>>()));

    const fn body(place: Place) -> Body {
        Body {
            place,
            poll: Self::poll,
            drop_future: Self::drop_future,
            drop_output: Self::drop_output,
            fail: Self::fail,
            output: Self::output,
        }
    }

    pub(super) fn inside<T>(node: NonNull<Header>) -> NonNull<T> {
        // SAFETY: the header is the first field of the frame, so this stays inside it.
        unsafe { node.byte_add(offset_of!(Frame<F>, future_or_output)).cast() }
    }

    /// # Safety
    /// As the field of [`Body`] says.
    unsafe fn poll(node: NonNull<Header>) {
        // Made here, beside the future's own code: one that waits for a slot only does without it.
        let waker = waker::lend(node);
        let mut context = Context::from_waker(&waker);
        // SAFETY: rule 3; the future is there, and does not move until it is dropped.
        let future = unsafe { Pin::new_unchecked(Self::inside::<F>(node).as_mut()) };
        if let Poll::Ready(output) = future.poll(&mut context) {
            // SAFETY: rule 3.
            unsafe {
                Self::drop_future(node);
                Self::leave(node, Ok(output));
            }
        }
    }

    /// # Safety
    /// As the field of [`Body`] says.
    unsafe fn leave(node: NonNull<Header>, outcome: Outcome<F::Output>) {
        // SAFETY: rule 3; the future is not there any more, and the union has room for either.
        unsafe {
            Self::inside(node).write(outcome);
            let flags = &node.as_ref().flags;
            flags.set(flags.get() | OUTPUT);
        }
    }

    /// # Safety
    /// As the field of [`Body`] says.
    unsafe fn drop_future(node: NonNull<Header>) {
        // SAFETY: rule 3. It counts as dropped even if that panics.
        unsafe {
            let flags = &node.as_ref().flags;
            flags.set(flags.get() & !FUTURE);
            ptr::drop_in_place(Self::inside::<F>(node).as_ptr());
        }
    }

    /// # Safety
    /// As the field of [`Body`] says.
    unsafe fn drop_output(node: NonNull<Header>) {
        // SAFETY: the caller has found `OUTPUT`, and is the only one. It counts as dropped even if
        // that panics.
        unsafe {
            let flags = &node.as_ref().flags;
            flags.set(flags.get() & !OUTPUT);
            ptr::drop_in_place(Self::inside::<Outcome<F::Output>>(node).as_ptr());
        }
    }

    /// # Safety
    /// As the field of [`Body`] says.
    unsafe fn fail(node: NonNull<Header>, error: TaskError) {
        // SAFETY: as the caller says.
        unsafe { Self::leave(node, Err(error)) };
    }

    /// # Safety
    /// As the field of [`Body`] says.
    unsafe fn output(node: NonNull<Header>) -> NonNull<()> {
        Self::inside(node)
    }
}

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
        unsafe { waker::drop_ref(node) };
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
    // SAFETY: the core is there, so its scheduler is; the frame is of its pool.
    unsafe {
        #[cfg(loom)]
        node.as_ref().used.with_mut(|_| ());
        ptr::drop_in_place(node.as_ptr());
        scheduler.as_ref().take_back(body.place, node.cast());
    }
}

/// Ends a frame whose core is gone, on any thread.
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
