//! Foreign code that panics at its n-th call: wakers, and whatever else a test has burn.

use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

/// Counts calls of foreign code, and panics at one of them.
#[derive(Debug, Default)]
pub struct Fuse {
    at: u64,
    calls: AtomicU64,
    /// Wakers there are.
    wakers: AtomicI64,
}

impl Fuse {
    /// Counts a call of foreign code, and panics, without the noise of a hook, if it is the one.
    pub fn burn(&self) {
        // ORDERING: SeqCst, a test's count.
        let call = self.calls.fetch_add(1, SeqCst) + 1;
        if call == self.at && !std::thread::panicking() {
            resume_unwind(Box::new("the fuse"));
        }
    }

    /// Returns the number of wakers that were not dropped.
    #[must_use]
    pub fn wakers(&self) -> i64 {
        // ORDERING: SeqCst, a test's count.
        self.wakers.load(SeqCst)
    }

    /// Returns a waker whose clone, wake and drop burn.
    #[must_use]
    pub fn waker(self: &Arc<Self>) -> Waker {
        self.counted();
        // SAFETY: the functions of `VTABLE` keep the contract: the pointer is an `Arc`'s, and
        // counted for each waker.
        unsafe { Waker::from_raw(raw(Arc::clone(self))) }
    }

    fn counted(&self) {
        // ORDERING: SeqCst, a test's count.
        self.wakers.fetch_add(1, SeqCst);
    }

    /// Polls with a new waker; `None` if that panics, or the future is pending.
    pub fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Option<F::Output> {
        let waker = self.waker();
        let polled = attempt(|| Pin::new(future).poll(&mut Context::from_waker(&waker)));
        attempt(|| drop(waker));
        match polled {
            Some(Poll::Ready(output)) => Some(output),
            _ => None,
        }
    }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

fn raw(fuse: Arc<Fuse>) -> RawWaker {
    RawWaker::new(Arc::into_raw(fuse).cast(), &VTABLE)
}

/// # Safety
/// Called by a waker of `VTABLE` only, with its pointer.
unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the waker that is cloned holds the `Arc`.
    let fuse = unsafe { ManuallyDrop::new(Arc::from_raw(data.cast::<Fuse>())) };
    fuse.burn();
    fuse.counted();
    raw(Arc::clone(&fuse))
}

/// # Safety
/// Called by a waker of `VTABLE` only, with its pointer.
unsafe fn wake(data: *const ()) {
    // SAFETY: as in `clone`; the waker is used up, which its drop does, also if this panics.
    let own = unsafe { Waker::from_raw(RawWaker::new(data, &VTABLE)) };
    own.wake_by_ref();
}

/// # Safety
/// Called by a waker of `VTABLE` only, with its pointer.
unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: as in `clone`.
    unsafe { ManuallyDrop::new(Arc::from_raw(data.cast::<Fuse>())) }.burn();
}

/// # Safety
/// Called by a waker of `VTABLE` only, with its pointer.
unsafe fn drop_waker(data: *const ()) {
    // SAFETY: this waker's `Arc`, given up here.
    let fuse = unsafe { Arc::from_raw(data.cast::<Fuse>()) };
    // ORDERING: SeqCst, a test's count.
    fuse.wakers.fetch_sub(1, SeqCst);
    fuse.burn();
}

/// Returns the result of `run`, unless it panics.
pub fn attempt<R>(run: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}

/// Runs a case with a fuse that burns at the first call of foreign code, the second, and so on,
/// until it is not reached; then there were `calls_min` at least.
pub fn at_every_call(calls_min: u64, case: impl Fn(&Arc<Fuse>)) {
    for at in 1.. {
        let fuse = Arc::new(Fuse {
            at,
            ..Fuse::default()
        });
        case(&fuse);
        assert_eq!(fuse.wakers(), 0, "wakers are dropped once; burnt at {at}");
        // ORDERING: SeqCst, a test's count.
        if fuse.calls.load(SeqCst) < at {
            assert!(at > calls_min, "{at} calls of foreign code");
            return;
        }
    }
}
