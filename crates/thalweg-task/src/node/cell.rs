//! State of one thread, without a flag that says whether it is being changed.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;

use crate::family::sealed::{Guarded, Key};

/// A `RefCell` for code that never reaches for it while it changes it. Debug builds check that.
/// Without the flag a message through a slot costs 1.6 ns less (Zen 5, November 2026).
#[allow(unreachable_pub)] // a sealed trait of a public type names it
pub struct OneAtATime<S> {
    #[cfg(debug_assertions)]
    is_busy: std::cell::Cell<bool>,
    state: UnsafeCell<S>,
}

impl<S> Guarded<S> for OneAtATime<S> {
    #[inline]
    fn new(state: S) -> Self {
        Self {
            #[cfg(debug_assertions)]
            is_busy: std::cell::Cell::new(false),
            state: UnsafeCell::new(state),
        }
    }

    #[inline(always)]
    fn with<R>(&self, _: Key, change: impl FnOnce(&mut S) -> R) -> R {
        #[cfg(debug_assertions)]
        assert!(!self.is_busy.replace(true), "reached for while it changes");
        // SAFETY: rule 8: `change` does not get here again, and no other thread does.
        let outcome = change(unsafe { &mut *self.state.get() });
        #[cfg(debug_assertions)]
        self.is_busy.set(false);
        outcome
    }
}

/// The unit of word-by-word copies: bytes of any kind, padding and pointers among them.
type Word = MaybeUninit<usize>;

/// Values of more words than this are copied as the compiler likes.
const WORDS_MAX: usize = 8;

/// Takes the value out, each word by a load of its own. Its sender stored it field by field a
/// moment ago, and a load that is wider than those stores waits until they are in the cache: 32
/// bytes took 11.4 ns a message that way, and 9.2 so (Zen 4, November 2026).
#[inline(always)]
pub(crate) fn take_by_words<T>(kept: &mut Option<T>) -> Option<T> {
    let is_words = size_of::<T>() <= WORDS_MAX * size_of::<Word>()
        && size_of::<T>().is_multiple_of(size_of::<Word>())
        && align_of::<T>() == align_of::<Word>();
    if !is_words {
        return kept.take();
    }
    let from = ptr::from_mut(kept.as_mut()?);
    let mut value = MaybeUninit::<T>::uninit();
    for word in 0..size_of::<T>() / size_of::<Word>() {
        // SAFETY: both are `T`s, which are this number of aligned words. The reads are volatile so
        // that they are not made one.
        unsafe {
            let read = from.cast::<Word>().add(word).read_volatile();
            value.as_mut_ptr().cast::<Word>().add(word).write(read);
        }
    }
    // SAFETY: it was moved out of `kept`, which counts as empty from here on without a drop.
    unsafe {
        ptr::write(kept, None);
        Some(value.assume_init())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::rc::Rc;

    use super::*;
    #[cfg(debug_assertions)]
    use crate::family::sealed::KEY;

    /// Taken as it was, and once: what it counts is dropped once.
    fn taken<T: Clone + PartialEq + std::fmt::Debug>(value: T) {
        let counted = Rc::new(());
        let mut kept = Some((value.clone(), Rc::clone(&counted)));
        let (took, _) = take_by_words(&mut kept).expect("there is one");
        assert_eq!(took, value);
        assert!(kept.is_none() && take_by_words(&mut kept).is_none());
        assert_eq!(Rc::strong_count(&counted), 1);
        let mut kept = Some(value.clone());
        assert_eq!(take_by_words(&mut kept), Some(value));
        assert_eq!(take_by_words(&mut kept), None);
    }

    #[test]
    fn values_of_all_shapes_are_taken_whole_and_once() {
        taken(());
        taken(7_u8);
        taken([3_u16; 5]);
        taken((1_u8, 2_u64, 3_u16));
        taken(Some(Box::new(5)));
        taken(String::from("a string"));
        taken([u64::MAX; 7]);
        taken([u64::MAX; 20]);
        taken(u128::MAX);
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic = "reached for while it changes"]
    fn a_second_reach_within_the_first_is_caught() {
        let cell = OneAtATime::new(1);
        assert_eq!(cell.with(KEY, |state| std::mem::replace(state, 2)), 1);
        cell.with(KEY, |_| cell.with(KEY, |state| *state));
    }
}
