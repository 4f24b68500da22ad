//! The switch between stacks, over [corosensei]: the one file of fibers with unsafe code.
//!
//! [corosensei]: https://docs.rs/corosensei
//!
//! *State.* A [`Switch`] owns a coroutine and its stack. `resume` lends the code on that stack a
//! reference for the time of the call: a waker to a fiber, a cell with a value to a generator. The
//! value that crosses the switch is a pointer, none where the stack is to be unwound. The code
//! holds a [`Suspender`], which lends the reference on.
//!
//! *Rules.*
//! 1. A stack is resumed through `&mut Switch`, and by no other way. Neither `Switch` nor
//!    `Suspender` is `Send`, so all of it happens on one thread.
//! 2. The pointer that `resume` passes points to what its caller borrowed for the call. Code on the
//!    stack reads it only between the switch in and the next switch out, and both lie in the call.
//!    `Suspender::passed` borrows the suspender, and `suspend` needs it mutably: no reference to
//!    what one resume passed is alive during the next.
//! 3. A body is `'static`, and takes its suspender for any lifetime whatever: so a suspender never
//!    leaves its stack for another fiber's body, for a result or for a static. Code that holds one
//!    all the same (a future polled here, another library's coroutine) runs on top of this stack's
//!    frames, inside of the resume that rule 2 speaks of. If it suspends, it suspends whatever runs
//!    on top of this stack as well, and those frames stay where they are until it is resumed.
//! 4. A stack leaves a `Switch` only when its coroutine has returned or unwound to the root. One
//!    that cannot be unwound is leaked with all that is on it, as by `mem::forget`: its memory is
//!    never unmapped or reused.
//! 5. The top of a [`PooledStack`] lies at most [`COLOUR_BYTES_MAX`] below the end of a mapping
//!    that is longer by as much, and by a multiple of [`COLOUR_BYTES`], which is one of 16. The
//!    guard page is that of the mapping.

use super::error::StackError;
use super::mappings::Claim;
use crate::node::thread::without_room;
use corosensei::stack::{DefaultStack, STACK_ALIGNMENT, Stack, StackPointer};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::thread;

/// Tops of stacks differ by multiples of a cache line: their colours. Were all at the ends of
/// pages, they would share a few sets of each cache.
const COLOUR_BYTES: usize = 64;
/// How many colours there are: as many as a page has lines. A poll of one of 30,000 fibers in turn
/// cost 5.7 ns with 64 colours, 6.0 with 16, 9 to 14 with 8 and 60 to 160 with one; of 1,000 fibers
/// 3.2 ns with 64 and 7.0 with one. Measured on an AMD EPYC 9005.
const COLOURS: usize = 64;
const COLOUR_BYTES_MAX: usize = (COLOURS - 1) * COLOUR_BYTES;
const _: () = assert!(COLOUR_BYTES.is_multiple_of(STACK_ALIGNMENT));

/// corosensei copies a body onto its stack, and panics over one of more than 1,024 bytes.
const BODY_BYTES_MAX: usize = 512;
/// How often a body may catch the unwinding of its stack and wait again, until it is leaked.
const UNWINDS_MAX: u32 = 64;

/// The payload that unwinds the stack of a fiber that is dropped while it waits.
///
/// Code that catches panics can distinguish it from them by `payload.is::<Unwound>()`, and should
/// let it go on, with `resume_unwind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unwound;

/// A stack with a guard page below it. It is small, since a fiber's beginning and end move it.
pub(super) struct PooledStack {
    top: StackPointer,
    mapping: Box<Mapping>,
}

/// A stack's memory, and its place in the count of this process's stacks.
struct Mapping {
    memory: DefaultStack,
    // After the memory, so that it is unmapped when the claim ends.
    _claim: Claim,
}

impl PooledStack {
    /// Maps a stack of `size_bytes`, or some more, in whole pages; `number` chooses its colour.
    pub(super) fn map(size_bytes: usize, number: usize) -> Result<Self, StackError> {
        let claim = Claim::new()?;
        let memory = DefaultStack::new(size_bytes + COLOUR_BYTES_MAX).map_err(|source| {
            let stacks = claim.stacks();
            StackError::System {
                size_bytes,
                stacks,
                source,
            }
        })?;
        let top = memory.base().get() - number % COLOURS * COLOUR_BYTES;
        let top = StackPointer::new(top).expect("a colour is less than a mapping");
        let mapping = Mapping {
            memory,
            _claim: claim,
        };
        Ok(Self {
            top,
            mapping: Box::new(mapping),
        })
    }
}

// SAFETY: rule 5: a guard page, more than MIN_STACK_SIZE bytes above it, and an aligned top.
unsafe impl Stack for PooledStack {
    #[inline]
    fn base(&self) -> StackPointer {
        self.top
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        self.mapping.memory.limit()
    }

    #[cfg(windows)]
    #[inline]
    fn teb_fields(&self) -> corosensei::stack::StackTebFields {
        self.mapping.memory.teb_fields()
    }

    #[cfg(windows)]
    #[inline]
    fn update_teb_fields(&mut self, stack_limit: usize, guaranteed_stack_bytes: usize) {
        self.mapping
            .memory
            .update_teb_fields(stack_limit, guaranteed_stack_bytes);
    }
}

/// The value that crosses a switch: a pointer to the input that is lent; nothing if the stack is to
/// be unwound.
type Passed<In> = Option<NonNull<In>>;

type Body<In, Out, R> = dyn FnOnce(Suspender<'_, In, Out>) -> R;

/// A body on a stack of its own: outside, the end that resumes it.
pub(super) struct Switch<In: 'static, Out: 'static, R: 'static> {
    // A body that was never started and is dropped returns nothing.
    coroutine: Coroutine<Passed<In>, Out, Option<R>, PooledStack>,
}

/// Where a resume ended: the body yielded, or it returned.
pub(super) enum Reached<Out, R> {
    Yielded(Out),
    Returned(R),
}

/// How a stack came to its end before its body did.
pub(super) enum Ending {
    /// It is empty.
    Unwound(PooledStack),
    /// It is empty, and a destructor panicked.
    Panicked(PooledStack, Box<dyn Any + Send>),
    /// The body went on waiting. The stack is leaked.
    Leaked,
}

impl<In, Out, R> Switch<In, Out, R> {
    /// Puts `body` on `stack`. It starts with the first `resume`.
    pub(super) fn new<F>(stack: PooledStack, body: F) -> Self
    where
        F: FnOnce(Suspender<'_, In, Out>) -> R + 'static,
    {
        if size_of::<F>() > BODY_BYTES_MAX || align_of::<F>() > COLOUR_BYTES {
            let body: Box<Body<In, Out, R>> = Box::new(body);
            Self::on_stack(stack, body)
        } else {
            Self::on_stack(stack, body)
        }
    }

    fn on_stack<F>(stack: PooledStack, body: F) -> Self
    where
        F: FnOnce(Suspender<'_, In, Out>) -> R + 'static,
    {
        let root = move |yielder: &Yielder<Passed<In>, Out>, passed: Passed<In>| {
            passed.map(|_| {
                body(Suspender {
                    yielder,
                    passed,
                    unwinding: None,
                })
            })
        };
        Self {
            coroutine: Coroutine::with_stack(stack, root),
        }
    }

    /// Runs the body until it suspends or returns; a panic of the body goes on from here.
    ///
    /// # Panics
    /// If the body has returned or panicked before.
    #[inline]
    pub(super) fn resume(&mut self, passed: &In) -> Reached<Out, R> {
        match self.coroutine.resume(Some(NonNull::from(passed))) {
            CoroutineResult::Yield(out) => Reached::Yielded(out),
            CoroutineResult::Return(Some(value)) => Reached::Returned(value),
            CoroutineResult::Return(None) => {
                unreachable!("the body ran, since something was passed")
            }
        }
    }

    /// Gives back the stack of a body that has returned or panicked, and unwinds that of another.
    pub(super) fn end(mut self) -> Ending {
        if self.coroutine.done() {
            return Ending::Unwound(self.coroutine.into_stack());
        }
        // Destructors on this stack have no room on it for other tasks' polls.
        let unwind = || without_room(|| self.coroutine.resume(None));
        match catch_unwind(AssertUnwindSafe(unwind)) {
            Ok(CoroutineResult::Return(value)) => {
                // Its destructor is the caller's code, and may panic like any.
                match catch_unwind(AssertUnwindSafe(|| drop(value))) {
                    Ok(()) => Ending::Unwound(self.coroutine.into_stack()),
                    Err(payload) => Ending::Panicked(self.coroutine.into_stack(), payload),
                }
            }
            // Rule 4. The value has no other owner, and its destructor may run.
            Ok(CoroutineResult::Yield(out)) => {
                mem::forget(self.coroutine);
                drop(out);
                Ending::Leaked
            }
            Err(payload) if payload.is::<Unwound>() => Ending::Unwound(self.coroutine.into_stack()),
            Err(payload) => Ending::Panicked(self.coroutine.into_stack(), payload),
        }
    }
}

/// A body on a stack of its own: inside, the end that suspends it.
pub(super) struct Suspender<'s, In: 'static, Out: 'static> {
    yielder: &'s Yielder<Passed<In>, Out>,
    passed: Passed<In>,
    unwinding: Option<Unwinding>,
}

/// The state of a stack that is being unwound.
#[derive(Clone, Copy)]
struct Unwinding {
    /// How often it was begun.
    unwinds: u32,
    /// Was the thread panicking before?
    panicking: bool,
}

impl<In, Out> Suspender<'_, In, Out> {
    /// Returns the input that the present resume passed; none while the stack is being unwound.
    #[inline]
    pub(super) fn passed(&self) -> Option<&In> {
        // SAFETY: rule 2: this code runs, so the resume that passed it has not returned; the
        // reference ends before the next `suspend`.
        self.passed.map(|passed| unsafe { passed.as_ref() })
    }

    /// Gives `out` to the resume, which returns, and comes back with the next; unwinds the stack
    /// instead of coming back if the body is to end.
    ///
    /// # Panics
    /// In a destructor that runs while the stack is being unwound, which aborts the process.
    #[inline]
    pub(super) fn suspend(&mut self, out: Out) {
        if self.passed.is_some() {
            self.passed = self.yielder.suspend(out);
            if self.passed.is_some() {
                return;
            }
            self.unwind();
        }
        self.unwind_again(out);
    }

    #[cold]
    fn unwind(&mut self) -> ! {
        let panicking = thread::panicking();
        self.unwinding = Some(Unwinding {
            unwinds: 1,
            panicking,
        });
        resume_unwind(Box::new(Unwound));
    }

    /// The body waits once more while it is being unwound: it caught [`Unwound`], or it waits in a
    /// destructor.
    #[cold]
    fn unwind_again(&mut self, out: Out) -> ! {
        let Some(unwinding) = &mut self.unwinding else {
            unreachable!("nothing is passed only to a stack that is being unwound");
        };
        assert!(
            unwinding.panicking || !thread::panicking(),
            "a destructor waits in a fiber that is being dropped: it would have to wait for ever"
        );
        unwinding.unwinds += 1;
        if unwinding.unwinds > UNWINDS_MAX {
            // It is never resumed after that: rule 4.
            self.yielder.suspend(out);
        }
        resume_unwind(Box::new(Unwound));
    }
}
