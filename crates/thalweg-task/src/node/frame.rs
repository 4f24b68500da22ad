//! The content of a frame, and the operations on it that depend on its type.

use std::alloc::Layout;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, offset_of};
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::task::{Context, Poll};

use super::pool::Place;
use super::{FUTURE, Header, OUTPUT, waker};
use crate::task_error::TaskError;

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
    /// Where the executor is gone, and its pool takes nothing back.
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
