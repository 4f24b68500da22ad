//! The one node type: a task's header, and its future or output behind it, in one frame of a pool.
//!
//! # State
//! `flags` says what a task does: in the run list (`QUEUED`), being polled or taken down
//! (`RUNNING`), woken meanwhile (`WOKEN`), over (`DONE`); and what is in the frame: its `FUTURE`,
//! then its `OUTPUT`. `locals` counts what the owner's thread has of the frame, `refs` the wakers
//! that were cloned, and one for all `locals` together.
//!
//! # Rules
//! 1. All of a header but `refs`, `pushed` and `below`, and all of a scheduler, is touched on the
//!    owner's thread only: a waker compares the thread's number first, and a [`NodeRef`], which is
//!    `!Send`, is made on that thread only.
//! 2. A frame is alive while `refs` is not 0. The owner's share of it is given up when `locals`
//!    gets 0, once and for all: that is after `DONE`, and no `NodeRef` is made of a waker whose
//!    task is over. So the thread that takes `refs` to 0 has the frame for itself.
//! 3. A future is polled, and dropped, only by the call that set `RUNNING`, and not while another
//!    has set it. So there is one `&mut` to it at a time, however tasks resume, wake and cancel
//!    each other.
//! 4. A hub's `head`, `holders` and `event_count` may be used by any thread, and its number never
//!    changes; its `chunks` are the owner's, and the last holder's.
//! 5. `below` belongs to the thread that marked the node as pushed, or took `refs` to 0, until the
//!    node is on the stack; then to the owner, which takes it off.
//! 6. While an executor is there it holds its hub, and all frames of its tasks with it. When it
//!    goes it first ends all its tasks, then grants the hub a share for each frame that is still
//!    held, then closes the stack. A thread that ends a frame and finds the stack closed gives such
//!    a share up.
//! 7. A hub is freed by its last holder; by rule 6 no frame is alive then.
//! 8. Only code of this crate changes the state of a [`OneAtATime`], which is `!Sync`: it needs a
//!    key that no other crate has. It moves values in and out, and compares wakers; it runs nothing
//!    of the caller's, which might reach for the state again: no destructor, no `clone`, no `wake`.
//! 9. A [`BorrowedWaiter`] is a node without a count. The lender has a counted one and keeps that
//!    until the lent one is woken or resumed, which is the next thing that is done. From there on
//!    the task's own hold keeps the frame: it is given up at the end of [`NodeRef::finish`], which
//!    only the runner calls while the task is polled, as the last that it does with the frame.
//!
//! # Why it works
//! A poll may run anything: wake its own task (`WOKEN`), cancel it (`CANCELLED`, done after the
//! poll), resume another, drop the executor. No reference to a scheduler's or node's insides is
//! held meanwhile, only `NodeRef`s and counted pointers. A task holds its scheduler until it is
//! over.

mod cell;
mod frame;
mod hub;
#[cfg(all(test, loom))]
mod models;
mod pool;
mod release;
mod scheduler;
mod task;
pub(crate) mod thread;
mod waiter;
mod waker;

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::Waker;

pub(crate) use cell::{OneAtATime, take_by_words};
pub(crate) use hub::HubRef;
pub(crate) use scheduler::{Expiry, Scheduler};
pub use scheduler::{Status, TaskId};
pub use task::Task;
pub(crate) use waiter::{BorrowedWaiter, ForeignWaker, Waiter};

use crate::sync::{AtomicBool, AtomicUsize, UnsafeCell};
use crate::task_error::{TaskError, panic_text};
use crate::wheel::Timer;
use frame::{Body, Of};
use hub::Hub;
use release::give_up;
use scheduler::SlabKey;
use thread::Thread;

const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const WOKEN: u8 = 4;
const DONE: u8 = 8;
/// To be ended after this poll.
const CANCELLED: u8 = 16;
const FUTURE: u8 = 32;
const OUTPUT: u8 = 64;
/// The output may still be asked for.
const WANTED: u8 = 128;

/// The part of a frame that is the same for tasks of all types. The fields that a poll touches are
/// last, beside the body.
#[repr(C)]
struct Header {
    hub: NonNull<Hub>,
    /// Counted while the task is not over.
    scheduler: NonNull<Scheduler>,
    /// The waiter for its end.
    joiner: Cell<Option<Waiter>>,
    /// Its deadline.
    timer: Cell<Option<Timer>>,
    place: Cell<SlabKey>,
    below: UnsafeCell<Option<NonNull<Header>>>,
    /// Read where a waker is used, and written where the frame ends, so that a model sees whether
    /// the one comes before the other.
    #[cfg(loom)]
    used: UnsafeCell<()>,
    /// The one behind it in the run list.
    next: Cell<Option<NonNull<Header>>>,
    refs: AtomicUsize,
    owner: Thread,
    body: &'static Body,
    pushed: AtomicBool,
    /// Why it is cancelled, or was.
    late: Cell<bool>,
    flags: Cell<u8>,
    locals: Cell<usize>,
}

#[cfg(all(target_pointer_width = "64", not(loom)))]
const _: () = assert!(
    size_of::<Header>() <= 112,
    "a small task fits into two lines"
);

/// A task, as the owner's thread has it. `!Send`.
pub(crate) struct NodeRef(NonNull<Header>);

impl Clone for NodeRef {
    #[inline(always)]
    fn clone(&self) -> Self {
        Self::hold(self.0)
    }
}

impl Drop for NodeRef {
    #[inline(always)]
    fn drop(&mut self) {
        let locals = &self.header().locals;
        locals.set(locals.get() - 1);
        if locals.get() == 0 {
            // SAFETY: rule 2: the last of the owner's thread.
            unsafe { give_up(self.0) };
        }
    }
}

impl NodeRef {
    /// Returns the task that `waker` wakes, if it is this thread's, and not over.
    pub(crate) fn of(waker: &Waker) -> Option<Self> {
        waker::local(waker)
    }

    /// Returns whether the task is over, or will be after the poll that is under way.
    #[inline(always)]
    pub(crate) fn is_to_end(&self) -> bool {
        self.has(CANCELLED | DONE)
    }

    /// Makes a task of `future`, not in the run list yet. Gives it to `scheduler`, too.
    pub(crate) fn spawn<F: Future + 'static>(scheduler: &Rc<Scheduler>, future: F) -> Self {
        let body: &'static Body = if scheduler.hub().is_closed() {
            const { &Of::<F>::LATE }
        } else {
            const { &Of::<F>::BODY }
        };
        let frame = scheduler.frame(body.place);
        let node = frame.cast::<Header>();
        let held = Rc::into_raw(Rc::clone(scheduler));
        let header = Header {
            body,
            owner: scheduler.owner(),
            flags: Cell::new(FUTURE | WANTED),
            late: Cell::new(false),
            // The caller's, and the task's own until it is over.
            locals: Cell::new(2),
            place: Cell::new(SlabKey::default()),
            next: Cell::new(None),
            scheduler: NonNull::new(held.cast_mut()).expect("an Rc's pointer is not null"),
            joiner: Cell::new(None),
            timer: Cell::new(None),
            hub: scheduler.hub().as_ptr(),
            refs: AtomicUsize::new(1),
            pushed: AtomicBool::new(false),
            below: UnsafeCell::new(None),
            #[cfg(loom)]
            used: UnsafeCell::new(()),
        };
        // SAFETY: the frame is large enough, aligned, and not in use.
        unsafe {
            node.write(header);
            Of::<F>::inside(node).write(future);
        }
        let this = Self(node);
        this.header().place.set(scheduler.enter(node));
        this
    }

    /// Returns one more hold on a node that is alive, on its owner's thread; its task is not over,
    /// or another `NodeRef` is there.
    #[inline(always)]
    fn hold(node: NonNull<Header>) -> Self {
        let this = Self(node);
        let locals = &this.header().locals;
        locals.set(locals.get() + 1);
        this
    }

    /// Returns the node without a count: rule 9.
    #[inline(always)]
    fn lend(&self) -> ManuallyDrop<Self> {
        ManuallyDrop::new(Self(self.0))
    }

    #[inline(always)]
    fn header(&self) -> &Header {
        // SAFETY: rule 2: this is counted in `locals`; or rule 9.
        unsafe { self.0.as_ref() }
    }

    #[inline(always)]
    fn has(&self, flags: u8) -> bool {
        self.header().flags.get() & flags != 0
    }

    #[inline(always)]
    fn mark(&self, flags: u8) {
        self.header().flags.set(self.header().flags.get() | flags);
    }

    #[inline(always)]
    fn unmark(&self, flags: u8) {
        self.header().flags.set(self.header().flags.get() & !flags);
    }

    pub(crate) fn id(&self) -> TaskId {
        let header = self.header();
        // SAFETY: rule 6: the frame is there, and so is its hub.
        let executor = unsafe { header.hub.as_ref() }.executor;
        TaskId::new(executor, header.place.get())
    }

    /// Puts the task into the run list, if it is not there and not over.
    #[inline]
    pub(crate) fn wake(&self) {
        let flags = self.header().flags.get();
        if flags & (QUEUED | RUNNING | DONE) == 0 {
            self.header().flags.set(flags | QUEUED);
            // SAFETY: a task that is not over holds its scheduler.
            unsafe { self.header().scheduler.as_ref() }.push(self.clone());
        } else if flags & RUNNING != 0 {
            self.mark(WOKEN);
        }
    }

    /// Polls the task here and now; puts that off where it is running, or this is too deep in tasks
    /// that resume each other. Returns whether it was polled.
    #[inline(always)]
    pub(crate) fn resume(&self) -> bool {
        // SAFETY: `self` is counted, or lent: rule 9.
        unsafe { resume(self.0) }
    }

    /// Polls the task, which is neither running nor over.
    #[inline(always)]
    fn run(&self) {
        let header = self.header();
        header.flags.set(header.flags.get() | RUNNING);
        // SAFETY: rule 3: `RUNNING` is set here, and was not.
        let poll = || unsafe { (header.body.poll)(self.0) };
        let polled = catch_unwind(AssertUnwindSafe(poll));
        if polled.is_ok() && !self.has(OUTPUT | WOKEN | CANCELLED) {
            self.unmark(RUNNING);
        } else {
            // SAFETY: rule 9: the task is not over, so its own hold is there.
            unsafe { after(self.0, polled) };
        }
    }

    /// Does the work after a poll, except in the common case.
    fn after(&self, polled: Result<(), Box<dyn Any + Send>>) {
        if let Err(payload) = polled {
            self.end(TaskError::Panicked(panic_text(payload)));
        } else if self.has(OUTPUT) {
            self.finish();
        } else if self.has(CANCELLED) {
            self.end(self.cause());
        } else {
            self.unmark(RUNNING | WOKEN);
            self.wake();
        }
    }

    fn cause(&self) -> TaskError {
        if self.header().late.get() {
            TaskError::TimedOut
        } else {
            TaskError::Cancelled
        }
    }

    /// Ends the task: its future is dropped now, or after the poll that is under way. Returns
    /// whether it was not over yet.
    pub(crate) fn cancel(&self, is_late: bool) -> bool {
        if self.has(DONE | CANCELLED) {
            return false;
        }
        self.header().late.set(is_late);
        if self.has(RUNNING) {
            self.mark(CANCELLED);
        } else {
            self.mark(RUNNING | CANCELLED);
            // So a destructor that would run the executor finds that there is a task around it.
            thread::nested(|| self.end(self.cause()));
        }
        true
    }

    /// Drops the future, if it is there, and leaves `error`. `RUNNING` is set.
    fn end(&self, mut error: TaskError) {
        let header = self.header();
        if self.has(FUTURE) {
            // SAFETY: rule 3.
            let drop_future = || unsafe { (header.body.drop_future)(self.0) };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(drop_future)) {
                error = TaskError::Panicked(panic_text(payload));
            }
        }
        // SAFETY: rule 3.
        unsafe { (header.body.fail)(self.0, error) };
        self.finish();
    }

    /// The task is over: its output is there. After this, `self` may be the frame's only hold, or
    /// lent and its frame gone.
    fn finish(&self) {
        let header = self.header();
        self.unmark(RUNNING | WOKEN | CANCELLED);
        self.mark(DONE);
        // SAFETY: counted when the task was made, and taken over here, once.
        let scheduler = unsafe { Rc::from_raw(header.scheduler.as_ptr().cast_const()) };
        scheduler.leave(header.place.get(), header.timer.take());
        if !self.has(WANTED) {
            catch_panic(|| self.drop_output());
        }
        if let Some(joiner) = header.joiner.take() {
            joiner.wake();
        }
        if scheduler.has_ended_unseen() {
            scheduler.notify_driver();
        }
        // The task's own hold, given up here, once.
        drop(Self(self.0));
    }

    fn drop_output(&self) {
        if self.has(OUTPUT) {
            // SAFETY: it is there, and by rule 1 no one else uses it.
            unsafe { (self.header().body.drop_output)(self.0) };
        }
    }
}

/// See [`NodeRef::resume`]. A function of its own, so that each `send_now` is short.
///
/// # Safety
/// The frame is alive, on its owner's thread.
unsafe fn resume(node: NonNull<Header>) -> bool {
    // Kept by the caller's hold, and then by the task's own: rule 9.
    let node = ManuallyDrop::new(NodeRef(node));
    if !node.has(RUNNING | DONE) && thread::deeper(|| node.run()).is_some() {
        return true;
    }
    node.wake();
    false
}

/// See [`NodeRef::after`]. A function of its own, and by value, so that the common case keeps the
/// node in a register.
///
/// # Safety
/// The frame is alive, on its owner's thread.
#[cold]
unsafe fn after(node: NonNull<Header>, polled: Result<(), Box<dyn Any + Send>>) {
    ManuallyDrop::new(NodeRef(node)).after(polled);
}

/// Runs code that may panic; only the panic hook is notified of it.
pub(crate) fn catch_panic(run: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
        drop(panic_text(payload));
    }
}
