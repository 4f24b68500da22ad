//! A ring for one element: a slot for it, two wakers and a word, in one allocation.
//!
//! # State
//! `word` has bits that are set and never cleared: the producer has written the slot ([`SENT`]) or
//! was dropped without ([`GONE`]); the consumer accepts no later element ([`CLOSED`]); a side has
//! accessed the memory for the last time (`done`). One more bit a side is set and cleared: its
//! waker is registered (`waits`).
//!
//! # Rules
//! 1. The slot is the producer's until `SENT` is set, and the consumer's from then on. `SENT` is
//!    never set after `CLOSED`, so that a consumer that closed and saw no element gets none.
//! 2. The cell of a side's waker is its own while its `waits` is clear. It sets `waits` after it
//!    has stored the waker, and checks again: it then sees what the other side did before. The one
//!    step of the other side that sets `SENT`, `GONE` or `CLOSED` returns to that side whether
//!    `waits` was set; if so, the other side takes the waker. A side that clears its own `waits`
//!    before that step owns the cell again, and otherwise never accesses it any more.
//! 3. `done` is the last access of a side. The side that finds the other's set frees the memory.
//! 4. User code (of a waker, the drop of an element) runs when the side is done, or where its state
//!    is consistent even if that code panics.
//!
//! # Why it works
//! All steps on `word` but loads are read-modify-write, so they have one order, and each acquires
//! what the earlier ones released. Either "the waker is registered" or "the element is written"
//! comes first, and the other side sees it: no fence is needed. An element for which no consumer
//! waits costs the producer one such step, and the consumer a load.

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
    /// The bits of which the side sets at most one, once.
    acts: u32,
    waits: u32,
    done: u32,
    /// The index of its waker's cell.
    at: usize,
}

const PRODUCER: Side = Side {
    acts: SENT | GONE,
    waits: 8,
    done: 16,
    at: 0,
};
const CONSUMER: Side = Side {
    acts: CLOSED,
    waits: 32,
    done: 64,
    at: 1,
};

struct Shared<T> {
    word: AtomicU32,
    slot: UnsafeCell<Option<T>>,
    wakers: [UnsafeCell<Option<Waker>>; 2],
    /// A value by which loom sees memory that is never freed.
    #[cfg(loom)]
    _life: crate::ring::sync::Arc<()>,
}

/// One side's reference to the shared memory.
struct Hold<T> {
    shared: NonNull<Shared<T>>,
    /// This side's `waits` is set, as far as this side knows.
    is_registered: bool,
}

impl<T> Hold<T> {
    fn shared(&self) -> &Shared<T> {
        // SAFETY: this side is not done, so the memory is there (rule 3).
        unsafe { self.shared.as_ref() }
    }

    fn load(&self) -> u32 {
        // ORDERING: Acquire (order::observe), pairs with the Release of the step that set what is
        // found.
        self.shared().word.load(order::observe())
    }

    /// Sets the bit `act` of `side`. Returns the word before, and the waker of the other side if
    /// that waits.
    fn act(&self, act: u32, side: &Side, other: &Side) -> (u32, Option<Waker>) {
        // ORDERING: AcqRel (order::exchange), pairs with itself in `register`, and with the Acquire
        // in `load`.
        let before = self.shared().word.fetch_or(act, order::exchange());
        let is_first = before & side.acts == 0;
        let waker = is_first.then(|| self.waker_of(other, before)).flatten();
        (before, waker)
    }

    /// Takes the waker of the other side, if it was registered at the step that found `before`.
    fn waker_of(&self, other: &Side, before: u32) -> Option<Waker> {
        if before & other.waits == 0 {
            return None;
        }
        // SAFETY: the waker is this side's to take (rule 2).
        self.shared().wakers[other.at].with_mut(|slot| unsafe { (*slot).take() })
    }

    /// Registers the waker of `side` in place of an earlier one; returns `false` if the other side
    /// has acted before that and will wake no waker.
    fn register(&mut self, waker: Waker, side: &Side, other: &Side) -> bool {
        let_go(self.unregister(side, other));
        // If the other side acted while this one was registered, the cell is the other's (rule 2).
        // Then this load sees it, since `unregister` has seen it.
        if self.load() & other.acts != 0 && !fault::is("oneshot_listed_anyway") {
            let_go(Some(waker));
            return false;
        }
        let shared = self.shared();
        let old = shared.wakers[side.at].with_mut(|slot| {
            // SAFETY: `waits` is clear, and was when the other acted, if it has (rule 2).
            unsafe { (*slot).replace(waker) }
        });
        // ORDERING: AcqRel (order::exchange), pairs with itself in `act` and `send`: they see the
        // waker, or this sees what they did.
        let before = shared.word.fetch_or(side.waits, order::exchange());
        self.is_registered = before & other.acts == 0;
        let_go(old);
        if fault::is("oneshot_look_again") {
            return true;
        }
        self.is_registered
    }

    /// Unregisters the waker of `side`, and returns it if it is still its own.
    fn unregister(&mut self, side: &Side, other: &Side) -> Option<Waker> {
        if !std::mem::take(&mut self.is_registered) {
            return None;
        }
        let shared = self.shared();
        // ORDERING: AcqRel (order::exchange), pairs with itself in `act` and `send`.
        let before = shared.word.fetch_and(!side.waits, order::exchange());
        if before & other.acts != 0 && !fault::is("oneshot_taken_anyway") {
            return None;
        }
        // SAFETY: the other has not acted, and will find `waits` clear (rule 2).
        shared.wakers[side.at].with_mut(|slot| unsafe { (*slot).take() })
    }

    /// Marks `side` as done, and frees the memory if the other side is. `self` must not be used
    /// afterwards.
    fn finish(&self, side: &Side, other: &Side) {
        let word = &self.shared().word;
        // ORDERING: Acquire (order::observe), pairs with the Release of the step that set `done`:
        // the other side has ended its accesses before.
        let is_last = word.load(order::observe()) & other.done != 0
            // ORDERING: AcqRel (order::leave), pairs with itself on the other side.
            || word.fetch_or(side.done, order::leave()) & other.done != 0;
        if is_last && !fault::is("oneshot_kept") {
            // SAFETY: made by `Box::new`, and both sides are done; only the second of them finds
            // the other's `done` (rule 3).
            let shared = unsafe { Box::from_raw(self.shared.as_ptr()) };
            // Accesses by which loom checks that the other side has ended its own.
            shared.slot.with_mut(|_| ());
            shared
                .wakers
                .iter()
                .for_each(|waker| waker.with_mut(|_| ()));
            // With a waker, if a side has registered one and was never woken.
            let_go(Some(shared));
        }
    }

    /// Takes the element out of the slot.
    ///
    /// # Safety
    /// The slot is this side's by rule 1.
    unsafe fn take(&self) -> Option<T> {
        // SAFETY: the caller's.
        self.shared()
            .slot
            .with_mut(|slot| unsafe { (*slot).take() })
    }
}

/// The sending side.
pub struct OneshotProducer<T>(Hold<T>);

/// The receiving side.
pub struct OneshotConsumer<T>(Hold<T>);

// SAFETY: of the two sides, one accesses the element at a time (rule 1), and one a waker (rule 2);
// the rest is atomic. By shared reference, only the word is loaded.
unsafe impl<T: Send> Send for OneshotProducer<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for OneshotProducer<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for OneshotConsumer<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for OneshotConsumer<T> {}

/// Returns the two sides of a slot for one element, in one allocation.
pub fn oneshot<T>() -> (OneshotProducer<T>, OneshotConsumer<T>) {
    let shared = Box::new(Shared {
        word: AtomicU32::new(0),
        slot: UnsafeCell::new(None),
        wakers: [UnsafeCell::new(None), UnsafeCell::new(None)],
        #[cfg(loom)]
        _life: crate::ring::sync::Arc::new(()),
    });
    let shared = NonNull::from(Box::leak(shared));
    let hold = || Hold {
        shared,
        is_registered: false,
    };
    (OneshotProducer(hold()), OneshotConsumer(hold()))
}

impl<T> OneshotProducer<T> {
    /// Sends the element and wakes the consumer if that waits.
    ///
    /// # Errors
    /// Returns the element if the consumer was dropped or closed.
    #[inline]
    pub fn send(self, value: T) -> Result<(), T> {
        // `send_slow` or the step below do the work of its drop.
        let this = ManuallyDrop::new(self);
        let hold = &this.0;
        let shared = hold.shared();
        // SAFETY: `SENT` is clear, so the slot is the producer's (rule 1); and it is empty.
        shared
            .slot
            .with_mut(|slot| unsafe { slot.write(Some(value)) });
        let word = &shared.word;
        // ORDERING: Release (order::publish), pairs with the Acquire in `load`; where it fails,
        // Relaxed, since the loop that follows acquires.
        match word.compare_exchange(0, SENT | PRODUCER.done, order::publish(), Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(word) => hold.send_slow(word),
        }
    }

    /// Returns whether a send would fail, because the consumer was dropped or closed.
    pub fn is_closed(&self) -> bool {
        self.0.load() & CLOSED != 0
    }

    /// Registers `waker`, in place of an earlier one, to be woken when the consumer closes or is
    /// dropped. Returns `false` if that has happened already.
    pub fn register(&mut self, waker: Waker) -> bool {
        self.0.register(waker, &PRODUCER, &CONSUMER)
    }

    /// Removes the waker that was registered.
    pub fn unregister(&mut self) {
        let_go(self.0.unregister(&PRODUCER, &CONSUMER));
    }
}

impl<T> Hold<T> {
    /// Publishes the element, which is written, where the word was `before`.
    #[cold]
    fn send_slow(&self, mut before: u32) -> Result<(), T> {
        let word = &self.shared().word;
        while before & CLOSED == 0 || fault::is("oneshot_closed") {
            // ORDERING: AcqRel (order::exchange), pairs with itself in `register`, and with the
            // Acquire in `load`. Relaxed where it fails; nothing is taken from what that finds.
            let step = word.compare_exchange_weak(
                before,
                before | SENT,
                order::exchange(),
                Ordering::Relaxed,
            );
            match step {
                Ok(_) => {
                    let waker = self.waker_of(&CONSUMER, before);
                    self.finish(&PRODUCER, &CONSUMER);
                    wake(waker);
                    return Ok(());
                }
                Err(now) => before = now,
            }
        }
        // SAFETY: `SENT` is clear, so the slot is the producer's (rule 1).
        let back = unsafe { self.take() };
        self.finish(&PRODUCER, &CONSUMER);
        back.map_or(Ok(()), Err)
    }
}

impl<T> Drop for OneshotProducer<T> {
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        let own = self.0.unregister(&PRODUCER, &CONSUMER);
        let (_, waker) = self.0.act(GONE, &PRODUCER, &CONSUMER);
        self.0.finish(&PRODUCER, &CONSUMER);
        // User code runs last.
        wake(waker);
        let_go(own);
    }
}

impl<T> OneshotConsumer<T> {
    /// Takes the element, if it was sent.
    ///
    /// # Errors
    /// [`PopError::Empty`] if it may still be sent, [`PopError::Closed`] if not, or if it was taken
    /// before.
    #[inline]
    pub fn try_pop(&mut self) -> Result<T, PopError> {
        match self.0.load() {
            // SAFETY: `SENT` is set, so the slot is the consumer's (rule 1).
            word if word & SENT != 0 => unsafe { self.0.take() }.ok_or(PopError::Closed),
            word if word & (GONE | CLOSED) != 0 => Err(PopError::Closed),
            _ => Err(PopError::Empty),
        }
    }

    /// Closes the channel: a later send fails. It wakes a producer that waits for this.
    pub fn close(&mut self) {
        wake(self.0.act(CLOSED, &CONSUMER, &PRODUCER).1);
    }

    /// Returns whether nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.0.load() & (SENT | GONE | CLOSED) != 0
    }

    /// Registers `waker`, in place of an earlier one, to be woken when the element is sent or the
    /// producer is dropped. Returns `false` if that has happened already.
    pub fn register(&mut self, waker: Waker) -> bool {
        self.0.register(waker, &CONSUMER, &PRODUCER)
    }

    /// Removes the waker that was registered.
    pub fn unregister(&mut self) {
        let_go(self.0.unregister(&CONSUMER, &PRODUCER));
    }
}

impl<T> Drop for OneshotConsumer<T> {
    #[inline]
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        let own = self.0.unregister(&CONSUMER, &PRODUCER);
        let (mut word, mut waker) = (self.0.load(), None);
        if word & PRODUCER.acts == 0 {
            (word, waker) = self.0.act(CLOSED, &CONSUMER, &PRODUCER);
        }
        // SAFETY: `SENT` is set, so the slot is the consumer's (rule 1).
        let _value = (word & SENT != 0).then(|| unsafe { self.0.take() });
        self.0.finish(&CONSUMER, &PRODUCER);
        // User code runs last.
        wake(waker);
        let_go(own);
    }
}
