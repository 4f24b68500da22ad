//! One element, once, from one thread to another: a place for it, two wakers and a word, in one
//! allocation.
//!
//! # State
//! `word` has bits that are set and never cleared: the giver has put the element in its place
//! ([`SENT`]) or has left without ([`GONE`]); the taker takes nothing that comes later
//! ([`CLOSED`]); a side has touched the memory for the last time (`done`). And one bit a side that
//! comes and goes: its waker is there to be woken (`waits`).
//!
//! # Rules
//! 1. The place is the giver's until `SENT` is set, and the taker's from then on. `SENT` is never
//!    set after `CLOSED`, so that a taker that closed and saw no element will have none.
//! 2. The place of a side's waker is its own while its `waits` is clear. It sets `waits` after it
//!    has put the waker there, and looks again: it then sees what the other side did before. The
//!    one step of the other side that sets `SENT`, `GONE` or `CLOSED` returns to that side whether
//!    `waits` was set; if so, the waker is the other side's to take. A side that clears its own
//!    `waits` before that step has its place back, and otherwise leaves it alone from then on.
//! 3. `done` is the last access of a side. The side that finds the other's set frees the memory.
//! 4. Foreign code (a waker's, the drop of an element) runs when the side is done, or where the
//!    side is whole whatever that code does.
//!
//! # Why it works
//! All steps on `word` but plain looks are read-modify-write, so they have one order, and each
//! acquires what the earlier ones released. Either "the waker is there" or "the element is there"
//! comes first, and the other sees it: no fence is needed. An element for which no receiver waits
//! costs its sender one such step, and its receiver a load.

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::task::Waker;

use crate::ring::PopError;
use crate::ring::panics::{let_go, wake};
use crate::ring::sync::{AtomicU32, Ordering, UnsafeCell, fault, is_model_over, order};

const SENT: u32 = 1;
const GONE: u32 = 2;
const CLOSED: u32 = 4;

/// The bits of one side.
struct Side {
    /// The actions that the side takes at most once.
    acts: u32,
    waits: u32,
    done: u32,
    /// Its waker's place.
    at: usize,
}

const GIVER: Side = Side {
    acts: SENT | GONE,
    waits: 8,
    done: 16,
    at: 0,
};
const TAKER: Side = Side {
    acts: CLOSED,
    waits: 32,
    done: 64,
    at: 1,
};

struct Shared<T> {
    word: AtomicU32,
    place: UnsafeCell<Option<T>>,
    wakers: [UnsafeCell<Option<Waker>>; 2],
    /// A value by which loom sees memory that is never freed.
    #[cfg(loom)]
    _life: crate::ring::sync::Arc<()>,
}

/// One side's hold on what both share.
struct Hold<T> {
    shared: NonNull<Shared<T>>,
    /// This side's `waits` is set, as far as it knows.
    is_listed: bool,
}

impl<T> Hold<T> {
    fn shared(&self) -> &Shared<T> {
        // SAFETY: this side is not done, so the memory is there (rule 3).
        unsafe { self.shared.as_ref() }
    }

    fn look(&self) -> u32 {
        // ORDERING: Acquire (order::observe), pairs with the Release of the step that set what is
        // found.
        self.shared().word.load(order::observe())
    }

    /// Does what `side` does once. Gives what the word was, and the waker of the other side if that
    /// waits.
    fn act(&self, act: u32, side: &Side, other: &Side) -> (u32, Option<Waker>) {
        // ORDERING: AcqRel (order::exchange), pairs with itself in `list`, and with the Acquire in
        // `look`.
        let before = self.shared().word.fetch_or(act, order::exchange());
        let is_first = before & side.acts == 0;
        let waker = is_first.then(|| self.waker_of(other, before)).flatten();
        (before, waker)
    }

    /// Returns the waker of the other side, if that was there at the step that found `before`.
    fn waker_of(&self, other: &Side, before: u32) -> Option<Waker> {
        if before & other.waits == 0 {
            return None;
        }
        // SAFETY: the other side has left its waker to this one (rule 2).
        self.shared().wakers[other.at].with_mut(|place| unsafe { (*place).take() })
    }

    /// Lists the waker of `side` in the place of an earlier one; `false` if the other side has
    /// acted before that and will wake no one.
    fn list(&mut self, waker: Waker, side: &Side, other: &Side) -> bool {
        let_go(self.unlist(side, other));
        // If the other acted while this was listed, the place is the other's (rule 2). Then this
        // look sees it, since `unlist` has.
        if self.look() & other.acts != 0 && !fault::is("oneshot_listed_anyway") {
            let_go(Some(waker));
            return false;
        }
        let shared = self.shared();
        let old = shared.wakers[side.at].with_mut(|place| {
            // SAFETY: `waits` is clear, and was when the other acted, if it has (rule 2).
            unsafe { (*place).replace(waker) }
        });
        // ORDERING: AcqRel (order::exchange), pairs with itself in `act` and `send`: they see the
        // waker, or this sees what they did.
        let before = shared.word.fetch_or(side.waits, order::exchange());
        self.is_listed = before & other.acts == 0;
        let_go(old);
        if fault::is("oneshot_look_again") {
            return true;
        }
        self.is_listed
    }

    /// Takes the waker of `side` back, if it is listed and still its own.
    fn unlist(&mut self, side: &Side, other: &Side) -> Option<Waker> {
        if !std::mem::take(&mut self.is_listed) {
            return None;
        }
        let shared = self.shared();
        // ORDERING: AcqRel (order::exchange), pairs with itself in `act` and `send`.
        let before = shared.word.fetch_and(!side.waits, order::exchange());
        if before & other.acts != 0 && !fault::is("oneshot_taken_anyway") {
            return None;
        }
        // SAFETY: the other has not acted, and will find `waits` clear (rule 2).
        shared.wakers[side.at].with_mut(|place| unsafe { (*place).take() })
    }

    /// Does the rest of what `side` has to do; nothing of this may be used afterwards.
    fn finish(&self, side: &Side, other: &Side) {
        let word = &self.shared().word;
        // ORDERING: Acquire (order::observe), pairs with the Release of whatever set `done`: the
        // other side has let go of everything before.
        let is_last = word.load(order::observe()) & other.done != 0
            // ORDERING: AcqRel (order::leave), pairs with itself on the other side.
            || word.fetch_or(side.done, order::leave()) & other.done != 0;
        if is_last && !fault::is("oneshot_kept") {
            // SAFETY: made by `Box::new`, and both sides are done; only the second of them finds
            // the other's `done` (rule 3).
            let shared = unsafe { Box::from_raw(self.shared.as_ptr()) };
            // By which loom sees whether the other side has let go.
            shared.place.with_mut(|_| ());
            shared
                .wakers
                .iter()
                .for_each(|waker| waker.with_mut(|_| ()));
            // With a waker, if a side has listed one and was never woken.
            let_go(Some(shared));
        }
    }

    /// Takes the element in the place.
    ///
    /// # Safety
    /// The place is this side's by rule 1.
    unsafe fn take(&self) -> Option<T> {
        // SAFETY: the caller's.
        self.shared()
            .place
            .with_mut(|place| unsafe { (*place).take() })
    }
}

/// The sending side.
pub struct Giver<T>(Hold<T>);

/// The receiving side.
pub struct Taker<T>(Hold<T>);

// SAFETY: of the two sides, one touches the element at a time (rule 1), and one a waker (rule 2);
// what both use otherwise is atomic. By shared reference, the word is looked at and nothing else.
unsafe impl<T: Send> Send for Giver<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Giver<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Taker<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Taker<T> {}

/// Returns the two sides of a slot for one element, in one allocation.
pub fn oneshot<T>() -> (Giver<T>, Taker<T>) {
    let shared = Box::new(Shared {
        word: AtomicU32::new(0),
        place: UnsafeCell::new(None),
        wakers: [UnsafeCell::new(None), UnsafeCell::new(None)],
        #[cfg(loom)]
        _life: crate::ring::sync::Arc::new(()),
    });
    let shared = NonNull::from(Box::leak(shared));
    let hold = || Hold {
        shared,
        is_listed: false,
    };
    (Giver(hold()), Taker(hold()))
}

impl<T> Giver<T> {
    /// Sends the element and wakes the taker if that waits.
    ///
    /// # Errors
    /// Returns the element if the taker was dropped or closed.
    #[inline]
    pub fn send(self, value: T) -> Result<(), T> {
        // The work of its drop is done here.
        let this = ManuallyDrop::new(self);
        let hold = &this.0;
        let shared = hold.shared();
        // SAFETY: `SENT` is clear, so the place is the giver's (rule 1); and it is empty.
        shared
            .place
            .with_mut(|place| unsafe { place.write(Some(value)) });
        let word = &shared.word;
        // ORDERING: Release (order::publish), pairs with the Acquire in `look`; where it fails,
        // Relaxed, since the loop that follows acquires.
        match word.compare_exchange(0, SENT | GIVER.done, order::publish(), Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(word) => hold.send_slow(word),
        }
    }

    /// Returns whether a send would fail, because the taker was dropped or closed.
    pub fn is_closed(&self) -> bool {
        self.0.look() & CLOSED != 0
    }

    /// Registers `waker`, in place of an earlier one, to be woken when the taker closes or is
    /// dropped. Returns `false` if that has happened already.
    pub fn list(&mut self, waker: Waker) -> bool {
        self.0.list(waker, &GIVER, &TAKER)
    }

    /// Removes the waker that was registered.
    pub fn unlist(&mut self) {
        let_go(self.0.unlist(&GIVER, &TAKER));
    }
}

impl<T> Hold<T> {
    /// The element is in its place, and the word was `before`.
    #[cold]
    fn send_slow(&self, mut before: u32) -> Result<(), T> {
        let word = &self.shared().word;
        while before & CLOSED == 0 || fault::is("oneshot_closed") {
            // ORDERING: AcqRel (order::exchange), pairs with itself in `list`, and with the Acquire
            // in `look`. Relaxed where it fails; nothing is taken from what that finds.
            let step = word.compare_exchange_weak(
                before,
                before | SENT,
                order::exchange(),
                Ordering::Relaxed,
            );
            match step {
                Ok(_) => {
                    let waker = self.waker_of(&TAKER, before);
                    self.finish(&GIVER, &TAKER);
                    wake(waker);
                    return Ok(());
                }
                Err(now) => before = now,
            }
        }
        // SAFETY: `SENT` is clear, so the place is the giver's (rule 1).
        let back = unsafe { self.take() };
        self.finish(&GIVER, &TAKER);
        back.map_or(Ok(()), Err)
    }
}

impl<T> Drop for Giver<T> {
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        let own = self.0.unlist(&GIVER, &TAKER);
        let (_, waker) = self.0.act(GONE, &GIVER, &TAKER);
        self.0.finish(&GIVER, &TAKER);
        // Foreign code comes last.
        wake(waker);
        let_go(own);
    }
}

impl<T> Taker<T> {
    /// Takes the element, if it was sent.
    ///
    /// # Errors
    /// [`PopError::Empty`] if it may still be sent, [`PopError::Closed`] if not, or if it was taken
    /// before.
    #[inline]
    pub fn try_take(&mut self) -> Result<T, PopError> {
        match self.0.look() {
            // SAFETY: `SENT` is set, so the place is the taker's (rule 1).
            word if word & SENT != 0 => unsafe { self.0.take() }.ok_or(PopError::Closed),
            word if word & (GONE | CLOSED) != 0 => Err(PopError::Closed),
            _ => Err(PopError::Empty),
        }
    }

    /// Closes the channel: a later send fails. It wakes a giver that waits for this.
    pub fn close(&mut self) {
        wake(self.0.act(CLOSED, &TAKER, &GIVER).1);
    }

    /// Returns whether nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.0.look() & (SENT | GONE | CLOSED) != 0
    }

    /// Registers `waker`, in place of an earlier one, to be woken when the element is sent or the
    /// giver is dropped. Returns `false` if that has happened already.
    pub fn list(&mut self, waker: Waker) -> bool {
        self.0.list(waker, &TAKER, &GIVER)
    }

    /// Removes the waker that was registered.
    pub fn unlist(&mut self) {
        let_go(self.0.unlist(&TAKER, &GIVER));
    }
}

impl<T> Drop for Taker<T> {
    #[inline]
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        let own = self.0.unlist(&TAKER, &GIVER);
        let (mut word, mut waker) = (self.0.look(), None);
        if word & GIVER.acts == 0 {
            (word, waker) = self.0.act(CLOSED, &TAKER, &GIVER);
        }
        // SAFETY: `SENT` is set, so the place is the taker's (rule 1).
        let _value = (word & SENT != 0).then(|| unsafe { self.0.take() });
        self.0.finish(&TAKER, &GIVER);
        // Foreign code comes last.
        wake(waker);
        let_go(own);
    }
}
