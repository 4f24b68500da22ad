//! The waiters for a slot's value: one receiver, or several in the order in which they came.

use std::collections::VecDeque;
use std::task::Waker;

use crate::family::Family;
use crate::family::sealed::{Key, Mark, Sealed, WakeOnce, Wakes};

/// A place in the list of waiters; 0: in none.
type Place = u64;

impl Mark for Place {
    #[inline(always)]
    fn set(&mut self, may_wait: bool) {
        if !may_wait {
            *self = 0;
        }
    }

    #[inline(always)]
    fn is_set(&self) -> bool {
        *self != 0
    }
}

/// The list of waiters. Sealed: [`One`] or [`Many`].
pub trait Waiting<W: Wakes>: Default + Kind {
    /// The waiters, taken out.
    type All: IntoIterator<Item = W>;
    /// The mark that a receive keeps, to be found by when it leaves.
    type Place: Mark;
    /// The receiver that is notified of a value.
    type Next: WakeOnce;

    /// Returns whether the one in this place waits already, to be woken by `waker`: all that is to
    /// do.
    fn stays(&mut self, place: &mut Self::Place, waker: &Waker) -> bool;
    /// Returns whether there is one receiver, and it waits: so the slot is empty, and the receiver
    /// there.
    fn waits_alone(&self) -> bool;
    /// Has `waiter` wait in this place, or a new one; gives back what is not needed any more.
    fn enqueue(&mut self, place: &mut Self::Place, waiter: W) -> Option<W>;
    /// Takes the receiver that has waited longest off the list. The caller wakes it before it does
    /// anything else.
    fn next(&mut self, key: Key) -> Option<Self::Next>;
    /// Ends a wait; returns whether it was notified meanwhile, and the waiter that it leaves.
    fn leave(&mut self, place: &mut Self::Place) -> (bool, Option<W>);
    /// Returns whether no receiver waits.
    fn is_idle(&self) -> bool;
    /// Returns all that are left.
    fn all(&mut self) -> Self::All;
}

/// The kind of receivers that a slot has.
pub trait Kind {
    /// Whether there may be several.
    const IS_MANY: bool;
}

/// One receiver, of slots of family `F`.
pub struct One<F: Family> {
    /// Stays when it has been woken: most often it waits again.
    waiter: Option<<F as Sealed>::Waiter>,
    waits: bool,
}

impl<F: Family> Default for One<F> {
    fn default() -> Self {
        let (waiter, waits) = (None, false);
        Self { waiter, waits }
    }
}

shown!([F: Family] One<F>, "One", this, "waits": this.waits);

impl<F: Family> Kind for One<F> {
    const IS_MANY: bool = false;
}

impl<F: Family> Waiting<<F as Sealed>::Waiter> for One<F> {
    type All = Option<<F as Sealed>::Waiter>;
    type Place = F::Mark;
    type Next = <<F as Sealed>::Waiter as Wakes>::BorrowedWaiter;

    #[inline(always)]
    fn stays(&mut self, place: &mut F::Mark, waker: &Waker) -> bool {
        place.set(true);
        self.waits = Wakes::keeps(&mut self.waiter, waker);
        self.waits
    }

    #[inline(always)]
    fn waits_alone(&self) -> bool {
        self.waits
    }

    fn enqueue(
        &mut self,
        place: &mut F::Mark,
        waiter: <F as Sealed>::Waiter,
    ) -> Option<<F as Sealed>::Waiter> {
        place.set(true);
        self.waits = true;
        self.waiter.replace(waiter)
    }

    #[inline(always)]
    fn next(&mut self, key: Key) -> Option<Self::Next> {
        if !std::mem::take(&mut self.waits) {
            return None;
        }
        Wakes::lend(key, &mut self.waiter)
    }

    fn leave(&mut self, _: &mut F::Mark) -> (bool, Option<<F as Sealed>::Waiter>) {
        // The value that it was notified of is for itself, whenever it looks again.
        if self.waits {
            self.waits = false;
        }
        (false, None)
    }

    #[inline]
    fn is_idle(&self) -> bool {
        !self.waits
    }

    // A receiver that has been notified looks by itself, and is kept until the slot goes.
    #[inline]
    fn all(&mut self) -> Self::All {
        if std::mem::take(&mut self.waits) {
            return self.waiter.take();
        }
        None
    }
}

/// Any number of receivers, of slots of family `F`.
pub struct Many<F: Family> {
    /// In the order of their numbers.
    list: VecDeque<(u64, <F as Sealed>::Waiter)>,
    last: u64,
}

impl<F: Family> Default for Many<F> {
    fn default() -> Self {
        let list = VecDeque::new();
        Self { list, last: 0 }
    }
}

shown!([F: Family] Many<F>, "Many", this, "waiting": this.list.len());

impl<F: Family> Many<F> {
    /// Returns where it is, or where it belongs.
    fn search(&self, place: &Place) -> Result<usize, usize> {
        self.list.binary_search_by_key(place, |&(number, _)| number)
    }

    fn find(&self, place: &Place) -> Option<usize> {
        self.search(place).ok()
    }
}

impl<F: Family> Kind for Many<F> {
    const IS_MANY: bool = true;
}

impl<F: Family> Waiting<<F as Sealed>::Waiter> for Many<F> {
    type All = Vec<<F as Sealed>::Waiter>;
    type Place = Place;
    type Next = <F as Sealed>::Waiter;

    fn stays(&mut self, place: &mut Place, waker: &Waker) -> bool {
        self.find(place).is_some_and(|at| self.list[at].1.is(waker))
    }

    fn waits_alone(&self) -> bool {
        false
    }

    fn enqueue(
        &mut self,
        place: &mut Place,
        waiter: <F as Sealed>::Waiter,
    ) -> Option<<F as Sealed>::Waiter> {
        if *place == 0 {
            self.last += 1;
            *place = self.last;
        }
        match self.search(place) {
            Ok(at) => return Some(std::mem::replace(&mut self.list[at].1, waiter)),
            // It was notified of a value that another took: its turn is where it was.
            Err(at) => self.list.insert(at, (*place, waiter)),
        }
        None
    }

    fn next(&mut self, _: Key) -> Option<Self::Next> {
        self.list.pop_front().map(|(_, waiter)| waiter)
    }

    fn leave(&mut self, place: &mut Place) -> (bool, Option<<F as Sealed>::Waiter>) {
        let had_place = *place != 0;
        let left = self.find(place).and_then(|at| self.list.remove(at));
        *place = 0;
        (had_place && left.is_none(), left.map(|(_, waiter)| waiter))
    }

    fn is_idle(&self) -> bool {
        self.list.is_empty()
    }

    fn all(&mut self) -> Self::All {
        self.list.drain(..).map(|(_, waiter)| waiter).collect()
    }
}
