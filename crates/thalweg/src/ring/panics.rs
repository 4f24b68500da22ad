//! Panics of user code: they are caught, and resumed when the work around them is complete.

use super::sync::IS_MODEL;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

/// The first panic of several pieces of work.
#[derive(Default)]
pub(crate) struct Panics(Option<Box<dyn Any + Send>>);

impl Panics {
    /// Calls `work`, catches its panic, and returns its result. In a model a panic is not caught:
    /// the model may have failed, and then its objects may not be accessed.
    pub(crate) fn catch<R>(&mut self, work: impl FnOnce() -> R) -> Option<R> {
        if IS_MODEL {
            return Some(work());
        }
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(result) => Some(result),
            Err(payload) => {
                match &self.0 {
                    None => self.0 = Some(payload),
                    Some(_) => discard(payload),
                }
                None
            }
        }
    }

    /// Resumes the first panic, if there was one.
    pub(crate) fn resume(self) {
        match self.0 {
            // A second panic while the first unwinds would end the process.
            Some(payload) if !std::thread::panicking() => resume_unwind(payload),
            Some(payload) => discard(payload),
            None => {}
        }
    }
}

/// The number of times that a panic, thrown by the drop of a thrown value, is itself dropped.
const THROWN_MAX: u32 = 16;

/// Drops the payload of a panic. If that panics, the panic is caught, and its payload is dropped as
/// well; after 16 such payloads the last one leaks, since there need be no end of them.
pub(crate) fn discard(mut payload: Box<dyn Any + Send>) {
    for _ in 0..THROWN_MAX {
        match catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            Ok(()) => return,
            Err(next) => payload = next,
        }
    }
    std::mem::forget(payload);
}

/// Runs user code and catches its panic: the panic hook has reported it, and the caller may hold an
/// element that must not be lost.
pub(crate) fn quietly<R>(work: impl FnOnce() -> R) -> Option<R> {
    let mut panics = Panics::default();
    let result = panics.catch(work);
    panics.0.into_iter().for_each(discard);
    result
}

/// Wakes, [quietly].
pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        quietly(|| waker.wake());
    }
}

/// Drops a waker, or a value that holds one, [quietly].
pub(crate) fn let_go<W>(waker: Option<W>) {
    if waker.is_some() {
        quietly(|| drop(waker));
    }
}

/// Drops each element that `take` returns. If a drop panics, the others are dropped all the same,
/// and the first panic is resumed at the end.
pub(crate) fn drop_each<T>(mut take: impl FnMut() -> Option<T>) {
    let mut panics = Panics::default();
    while let Some(value) = take() {
        panics.catch(|| drop(value));
    }
    panics.resume();
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::panic::panic_any;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::task::Wake;

    /// A value that is thrown, and throws another one when it is dropped, this number of times.
    struct Thrown(u32, Arc<AtomicU32>);

    impl Drop for Thrown {
        fn drop(&mut self) {
            self.1.fetch_add(1, SeqCst);
            if let Some(more) = self.0.checked_sub(1) {
                panic_any(Thrown(more, Arc::clone(&self.1)));
            }
        }
    }

    struct Throws(Arc<AtomicU32>);

    impl Wake for Throws {
        fn wake(self: Arc<Self>) {
            panic_any(Thrown(2, Arc::clone(&self.0)));
        }
    }

    #[test]
    fn a_waker_that_throws_what_panics_when_it_is_dropped_stops_no_thread() {
        let drops = Arc::new(AtomicU32::new(0));
        wake(Some(Waker::from(Arc::new(Throws(Arc::clone(&drops))))));
        assert_eq!(drops.load(SeqCst), 3, "what is thrown then is dropped, too");
    }

    #[test]
    fn all_is_done_whatever_is_thrown_and_the_first_goes_on() {
        let drops = Arc::new(AtomicU32::new(0));
        let mut panics = Panics::default();
        for _ in 0..3 {
            panics.catch(|| panic_any(Thrown(2, Arc::clone(&drops))));
        }
        assert_eq!(drops.load(SeqCst), 6, "all of the second and the third");
        assert_eq!(panics.catch(|| 7), Some(7));
        let first = catch_unwind(AssertUnwindSafe(|| panics.resume()));
        let first = first.expect_err("the first goes on");
        assert!(first.is::<Thrown>());
        discard(first);
    }
}
