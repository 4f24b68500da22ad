//! Which thread this is, and how deep it is in tasks that resume each other.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tasks that may be resumed within each other, by `send_now`, before that is put off: each takes
/// stack.
const NESTED_MAX: u32 = 32;

/// The state that a thread keeps of itself.
struct ThreadState {
    /// The number of the thread, 0 until it is asked for.
    number: Cell<u64>,
    /// Tasks that may still be resumed within the present one.
    room: Cell<u32>,
}

impl ThreadState {
    const fn new() -> Self {
        Self {
            number: Cell::new(0),
            room: Cell::new(NESTED_MAX),
        }
    }
}

#[cfg(not(loom))]
std::thread_local! {
    static STATE: ThreadState = const { ThreadState::new() };
}
// loom runs all threads of a model on one thread of the system.
#[cfg(loom)]
loom::thread_local! {
    static STATE: ThreadState = ThreadState::new();
}

/// A thread, by a number that no other thread of this process ever has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thread(u64);

impl Thread {
    /// Returns the calling thread.
    #[inline]
    pub(crate) fn current() -> Self {
        STATE.with(|state| match state.number.get() {
            0 => number(state),
            number => Self(number),
        })
    }

    /// Returns whether this is the calling thread.
    #[inline(always)]
    pub(crate) fn is_current(self) -> bool {
        // A thread without a number is no thread that has one.
        STATE.with(|state| state.number.get() == self.0)
    }
}

#[cold]
fn number(state: &ThreadState) -> Thread {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // ORDERING: Relaxed: a counter; each thread gets another number.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    state.number.set(number);
    Thread(number)
}

/// Runs `nested` one level deeper; `None` where this is too deep already.
#[inline(always)]
pub(crate) fn deeper<R>(nested: impl FnOnce() -> R) -> Option<R> {
    let left = STATE.with(|state| state.room.get()).checked_sub(1)?;
    STATE.with(|state| state.room.set(left));
    let _guard = DepthGuard(1);
    Some(nested())
}

/// Runs `inner` as one level deeper, also where there is no room for another.
pub(crate) fn nested<R>(inner: impl FnOnce() -> R) -> R {
    let left = STATE.with(|state| state.room.get());
    let taken = left.min(1);
    STATE.with(|state| state.room.set(left - taken));
    let _guard = DepthGuard(taken);
    inner()
}

/// Returns whether this is called, however deep, by what [`deeper`], [`nested`] or [`without_room`]
/// runs.
pub(crate) fn is_nested() -> bool {
    STATE.with(|state| state.room.get()) < NESTED_MAX
}

/// Runs `inner` on a stack that has no room for other tasks.
#[inline(always)]
pub(crate) fn without_room<R>(inner: impl FnOnce() -> R) -> R {
    let _guard = DepthGuard(STATE.with(|state| state.room.replace(0)));
    inner()
}

/// Gives room back when it is dropped, also by a panic.
struct DepthGuard(u32);

impl Drop for DepthGuard {
    #[inline(always)]
    fn drop(&mut self) {
        STATE.with(|state| state.room.set(state.room.get() + self.0));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_a_number_of_its_own() {
        let mine = Thread::current();
        assert!(mine.is_current());
        assert_eq!(mine, Thread::current());
        let other = std::thread::spawn(move || (Thread::current(), mine.is_current()));
        let (other, is_mine) = other.join().unwrap();
        assert!(other != mine && !is_mine && !other.is_current());
    }

    #[test]
    fn nesting_ends_and_comes_back_after_a_panic() {
        fn down() -> u32 {
            deeper(down).map_or(0, |below| below + 1)
        }
        assert_eq!(down(), NESTED_MAX);
        let caught = std::panic::catch_unwind(|| deeper(|| panic!("within")));
        assert!(caught.is_err());
        assert_eq!(down(), NESTED_MAX);
        assert_eq!(without_room(down), 0);
        assert_eq!(nested(down), NESTED_MAX - 1);
        assert_eq!(without_room(|| nested(down)), 0);
        assert_eq!(down(), NESTED_MAX);
        assert!(!is_nested() && nested(is_nested) && without_room(is_nested));
        assert_eq!(deeper(is_nested), Some(true));
    }
}
