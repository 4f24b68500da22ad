//! Fibers: code with a stack of its own, which waits without being `async`.
//!
//! A [`Fiber`] is a `Future` whose body is an ordinary closure. Wherever that closure calls
//! [`FiberContext::wait`], however deep in functions that know nothing of futures, the whole stack
//! is suspended until the future there is ready. So a fiber is spawned, joined, timed out and
//! cancelled like any other task, by any executor, and everything `async` works in it.
//!
//! ```
//! use futures::channel::oneshot;
//! use futures::executor::block_on;
//! use thalweg_task::fiber::{FiberContext, StackOptions, StackPool};
//!
//! fn deep(ctx: &mut FiberContext<'_>, levels: u32, answer: oneshot::Receiver<u32>) -> u32 {
//!     match levels {
//!         0 => ctx.wait(answer).expect("the sender is alive"),
//!         _ => deep(ctx, levels - 1, answer),
//!     }
//! }
//!
//! let stacks = StackPool::new(StackOptions::default())?;
//! let (ask, question) = oneshot::channel();
//! let (reply, answer) = oneshot::channel();
//! let asks = stacks.fiber(move |ctx| {
//!     ask.send(6).expect("the other is alive");
//!     deep(ctx, 10, answer)
//! })?;
//! let answers = stacks.fiber(move |ctx| {
//!     let number = ctx.wait(question).expect("the other is alive");
//!     reply.send(7 * number).expect("the other is alive");
//! })?;
//! let (answer, ()) = block_on(futures::future::join(asks, answers));
//! assert_eq!(answer, 42);
//! # Ok::<(), thalweg_task::fiber::StackError>(())
//! ```
//!
//! A [`Generator`] is the same without futures: it passes values in and out at each switch.
//!
//! # A fiber or `async`?
//! `async` is cheaper: a future has the size of what it keeps across waits, a fiber at least a page
//! or two. Use a fiber where waiting happens below code that is not `async` and cannot be made so:
//! callbacks, visitors, parsers, recursion, traits of other crates.

mod error;
mod generator;
mod mappings;
mod pool;
#[allow(unsafe_code)]
mod switch;

pub use error::StackError;
pub use generator::{Generator, GeneratorContext, Step};
pub use pool::{StackCounts, StackOptions, StackPool};
pub use switch::Unwound;

use crate::node::thread::without_room;
use std::future::Future;
use std::mem;
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use switch::{Ending, Reached, Suspender, Switch};

/// The sizes of stacks: see [`StackOptions::SIZE_BYTES`].
const STACK_BYTES: std::ops::RangeInclusive<usize> = 8192..=1 << 30;

impl StackPool {
    /// Returns a fiber that runs `body` on a stack of this pool. It begins with the first poll.
    ///
    /// # Errors
    /// [`StackError::Exhausted`] if all [`max`](StackOptions::max) stacks are in use,
    /// [`StackError::Mappings`] if the kernel would soon refuse to map more of them, and
    /// [`StackError::System`] if it did refuse.
    ///
    /// # Cost
    /// 16 ns with an idle stack, from here to the fiber's end, and no allocation unless `body` is
    /// larger than 512 bytes.
    pub fn fiber<T, F>(&self, body: F) -> Result<Fiber<T>, StackError>
    where
        F: FnOnce(&mut FiberContext<'_>) -> T + 'static,
        T: 'static,
    {
        let root = move |suspender: Suspender<'_, Waker, ()>| body(&mut FiberContext { suspender });
        Ok(Fiber {
            stacked: Stacked::new(self, root)?,
        })
    }
}

/// A body on its stack, and the pool to which that goes back.
struct Stacked<In: 'static, Out: 'static, T: 'static> {
    switch: Option<Switch<In, Out, T>>,
    home: StackPool,
}

impl<In, Out, T> Stacked<In, Out, T> {
    fn new<F>(home: &StackPool, root: F) -> Result<Self, StackError>
    where
        F: FnOnce(Suspender<'_, In, Out>) -> T + 'static,
    {
        let switch = Some(Switch::new(home.take()?, root));
        Ok(Self {
            switch,
            home: home.clone(),
        })
    }

    /// Works as [`Switch::resume`]; nothing if the body has ended before. The stack goes back when
    /// it does, be it by a panic.
    #[inline]
    fn resume(&mut self, passed: &In) -> Option<Reached<Out, T>> {
        let ends = Ends(self);
        let switch = ends.0.switch.as_mut()?;
        // Other tasks' polls would be on this stack, which may be small.
        let reached = without_room(|| switch.resume(passed));
        if matches!(reached, Reached::Yielded(_)) {
            mem::forget(ends);
        }
        Some(reached)
    }

    fn end(&mut self) {
        match self.switch.take().map(Switch::end) {
            None => {}
            Some(Ending::Unwound(stack)) => self.home.give(stack),
            Some(Ending::Leaked) => self.home.give_up(),
            Some(Ending::Panicked(stack, payload)) => {
                self.home.give(stack);
                resume_unwind(payload);
            }
        }
    }
}

/// Ends what it borrows, unless forgotten.
struct Ends<'s, In: 'static, Out: 'static, T: 'static>(&'s mut Stacked<In, Out, T>);

impl<In, Out, T> Drop for Ends<'_, In, Out, T> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<In, Out, T> Drop for Stacked<In, Out, T> {
    fn drop(&mut self) {
        self.end();
    }
}

/// A future whose body is a closure with a stack of its own, made by [`StackPool::fiber`].
///
/// A poll resumes the body, and is over when it waits. The stack goes back to the pool when the
/// body returns. The fiber is `Unpin`: moving it moves nothing of what is on the stack. It is not
/// `Send`, since the content of its stack is not known.
///
/// # Panics
/// A panic of the body goes out of `poll`. A poll after the end panics.
///
/// A body that runs out of stack ends the process: it reaches the guard page, and the signal is a
/// bare `SIGSEGV`, without the text that Rust has for a thread's own stack. See
/// [`StackOptions::size_bytes`] for what a panic needs.
///
/// # Dropping
/// A fiber that is dropped while it waits is unwound: what is on its stack is dropped, as by a
/// panic, but without a message. A body that catches that ([`Unwound`]) and waits again is unwound
/// again; after 64 times it is leaked with its stack ([`StackCounts::leaked`]). A destructor on the
/// stack may use futures that are ready at once; one that would have to wait, where nothing can
/// resume it any more, aborts the process, as every panic in a destructor does during unwinding.
///
/// A destructor that runs because the body panics may wait. While it does,
/// `std::thread::panicking` is true on this thread, for other tasks too; and if the fiber is
/// dropped before it is over, the process aborts. A program that is compiled with
/// `panic = "abort"` aborts when a fiber is dropped while it waits.
///
/// # Cost
/// A poll costs some 3 ns and what the future there costs, several times that where the stacks of
/// all fibers do not fit into the caches. A message by a [`slot`](mod@crate::slot) takes some 9 ns,
/// and unwinding a fiber that waits 2.5 µs. Figures with their machine are in
/// `docs/notes/results-tasks.md`; `cargo compare tasks` measures some of them.
pub struct Fiber<T: 'static> {
    stacked: Stacked<Waker, (), T>,
}

impl<T> Future for Fiber<T> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match self.stacked.resume(cx.waker()) {
            Some(Reached::Yielded(())) => Poll::Pending,
            Some(Reached::Returned(value)) => Poll::Ready(value),
            None => panic!("a fiber was polled after it had finished"),
        }
    }
}

shown!([T] Fiber<T>, "Fiber", _this);

/// The context with which the body of a [`Fiber`] waits.
///
/// It cannot leave its fiber, so none can be suspended by the code of another, whose body would
/// have to borrow it for ever; nor can it go to another thread.
pub struct FiberContext<'f> {
    suspender: Suspender<'f, Waker, ()>,
}

impl FiberContext<'_> {
    /// Suspends the fiber until `future` is ready, and gives its output. If it is ready at once,
    /// nothing is suspended.
    ///
    /// If the fiber is dropped meanwhile, this does not return: it unwinds, and drops `future` as
    /// well. So `future` is cancelled as it would be in a dropped `async` block.
    ///
    /// ```
    /// # use thalweg_task::fiber::{StackOptions, StackPool};
    /// let stacks = StackPool::new(StackOptions::default())?;
    /// let fiber = stacks.fiber(|ctx| ctx.wait(async { 40 }) + 2)?;
    /// assert_eq!(futures::executor::block_on(fiber), 42);
    /// # Ok::<(), thalweg_task::fiber::StackError>(())
    /// ```
    #[inline]
    pub fn wait<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            let mut cx = Context::from_waker(self.waker());
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            self.suspend();
        }
    }

    /// Suspends the fiber until its next poll, for which nothing is arranged: a future that is
    /// pending should have given [`waker`](Self::waker) to the code that will wake it.
    ///
    /// ```
    /// # use std::pin::pin;
    /// # use std::task::{Context, Poll, Waker};
    /// # use thalweg_task::fiber::{StackOptions, StackPool};
    /// let stacks = StackPool::new(StackOptions::default())?;
    /// let mut fiber = pin!(stacks.fiber(|ctx| ctx.suspend())?);
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert_eq!(fiber.as_mut().poll(&mut cx), Poll::Pending);
    /// assert_eq!(fiber.as_mut().poll(&mut cx), Poll::Ready(()));
    /// # Ok::<(), thalweg_task::fiber::StackError>(())
    /// ```
    #[inline]
    pub fn suspend(&mut self) {
        self.suspender.suspend(());
    }

    /// Lets other tasks run: wakes the fiber's own task, and suspends it.
    #[inline]
    pub fn yield_now(&mut self) {
        self.waker().wake_by_ref();
        self.suspend();
    }

    /// Returns the waker of the task that polls this fiber. It may be another one after each wait,
    /// and does nothing while the fiber is unwound.
    #[inline]
    pub fn waker(&self) -> &Waker {
        self.suspender.passed().unwrap_or(Waker::noop())
    }
}

shown!([] FiberContext<'_>, "FiberContext", _this);
