//! Where a sender and a receiver meet, and an element goes from one to the other without being
//! stored: a channel of capacity 0.
//!
//! # State
//! Under one short lock: *offers*, senders that wait, with their elements; *wishes*, receivers that
//! wait, each with a place for an element; elements that came *back*, since who had them in its
//! place was dropped before it knew.
//!
//! # Rules
//! 1. Who comes looks for its counterpart first, and lists itself only if there is none, all under
//!    one lock. So never do a sender and a receiver wait that could meet.
//! 2. A sender's element is handed over by taking its offer off the list, or by putting it into the
//!    place of a wish that leaves the queue. The one that waits is woken outside of the lock.
//! 3. Who leaves takes its entry back under the lock: an offer that is not there any more was
//!    taken; a wish with something in its place was fulfilled. A wish that is fulfilled and not
//!    wanted any more (a future that was dropped) gives its element to the next one, or leaves it
//!    with those that came back, and they are taken first.
//! 4. If who waits does so in a select, its [`Token`](token::Token) decides first.
//! 5. No foreign code (`Clone` and `Drop` of a waker, `Drop` of an element) runs under the lock.

mod ends;
#[cfg(all(test, loom))]
mod models;
mod roster;
mod state;
mod token;

#[cfg(all(test, not(loom)))]
mod tests;

pub(super) use roster::Seat;
pub(super) use token::{Lent, Stake, Token};

use crate::ring::sync::{Mutex, MutexGuard};
use crate::ring::{PopError, PushError};
use state::{Handed, Offer, State, Taken, Waiting, Wish};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::PoisonError;
use std::task::Waker;
use token::is_open;

pub(super) struct Meeting<T> {
    state: Mutex<State<T>>,
}

/// What became of a sender that came.
pub(super) enum Offered<T> {
    /// A receiver has the element.
    Met,
    /// It waits.
    Listed(Seat),
    /// There will be no receiver any more.
    Closed(T),
    /// Another arm of its select fires.
    Gone(T),
}

/// What became of a receiver that came.
pub(super) enum Wished<T> {
    Met(T),
    Listed(Seat),
    /// There will be no sender any more.
    Closed,
    /// Another arm of its select fires.
    Gone,
}

impl<T> Meeting<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State::new()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        // Rule 5: nothing of the user's panics there.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the element to a receiver that waits; `Full` if there is none.
    pub(super) fn try_push(&self, value: T) -> Result<(), PushError<T>> {
        let mut state = self.state();
        if state.is_closed {
            return Err(PushError::Closed(value));
        }
        match state.hand(value, None) {
            Handed::To(waker) => {
                drop(state);
                wake(waker);
                Ok(())
            }
            Handed::ToNobody(value) | Handed::Gone(value) => Err(PushError::Full(value)),
        }
    }

    /// Gives elements to receivers that wait; gives how many. There is no room for more.
    pub(super) fn push_slice(&self, values: &[T]) -> usize
    where
        T: Copy,
    {
        let pushed = values
            .iter()
            .take_while(|value| self.try_push(**value).is_ok());
        pushed.count()
    }

    /// Takes the element of a sender that waits, with its number; `Empty` if there is none.
    pub(super) fn try_pop_at(&self) -> Result<(u64, T), PopError> {
        let mut state = self.state();
        match state.take(None) {
            Taken::From(value, waker) => {
                let popped = state.popped();
                drop(state);
                wake(waker);
                Ok((popped - 1, value))
            }
            Taken::FromNobody | Taken::Gone if state.is_closed => Err(PopError::Closed),
            Taken::FromNobody | Taken::Gone => Err(PopError::Empty),
        }
    }

    /// Gives the element to a receiver, or lists the sender. The caller tells those who watch.
    pub(super) fn offer(&self, value: T, waker: &Waker, stake: Option<Stake>) -> Offered<T> {
        let waker = waker.clone();
        let mut state = self.state();
        if state.is_closed {
            drop(state);
            return Offered::Closed(value);
        }
        #[cfg(any(loom, shuttle))]
        if crate::ring::sync::fault::is("meeting_look") {
            // Looked before it came, and does not look again.
            let waker = Some(waker);
            let who = Waiting { waker, stake };
            return Offered::Listed(state.offers.push(Offer { value, who }));
        }
        match state.hand(value, stake.as_ref()) {
            Handed::To(theirs) => {
                drop(state);
                wake(theirs);
                Offered::Met
            }
            Handed::Gone(value) => {
                drop(state);
                Offered::Gone(value)
            }
            Handed::ToNobody(value) => {
                let waker = Some(waker);
                let who = Waiting { waker, stake };
                Offered::Listed(state.offers.push(Offer { value, who }))
            }
        }
    }

    /// Takes a sender off the list; gives the element unless it was taken.
    pub(super) fn leave_offer(&self, seat: Seat) -> Option<T> {
        let offer = self.state().offers.remove(seat);
        // The waker is dropped here, outside of the lock.
        offer.map(|offer| offer.value)
    }

    /// For a task that is polled again: has `waker` woken from now on. Gives whether it still
    /// waits; if not, it should leave.
    pub(super) fn stay_offer(&self, seat: Seat, waker: &Waker) -> bool {
        self.stay(waker, |state| Some(&mut state.offers.get_mut(seat)?.who))
    }

    /// Takes the element of a sender, or lists the receiver. The caller tells those who watch.
    pub(super) fn wish(&self, waker: &Waker, stake: Option<Stake>) -> Wished<T> {
        let waker = waker.clone();
        let mut state = self.state();
        match state.take(stake.as_ref()) {
            Taken::From(value, theirs) => {
                drop(state);
                wake(theirs);
                Wished::Met(value)
            }
            Taken::Gone => {
                drop(state);
                Wished::Gone
            }
            Taken::FromNobody if state.is_closed => {
                drop(state);
                Wished::Closed
            }
            Taken::FromNobody => {
                let waker = Some(waker);
                let who = Waiting { waker, stake };
                Wished::Listed(state.wishes.push(Wish { place: None, who }))
            }
        }
    }

    /// Takes a receiver off the list; gives the element that it got.
    pub(super) fn leave_wish(&self, seat: Seat) -> Option<T> {
        let wish = self.state().wishes.remove(seat);
        // The waker is dropped here, outside of the lock.
        wish.and_then(|wish| wish.place)
    }

    /// See [`stay_offer`](Self::stay_offer).
    pub(super) fn stay_wish(&self, seat: Seat, waker: &Waker) -> bool {
        self.stay(waker, |state| {
            let wish = state.wishes.get_mut(seat)?;
            wish.place.is_none().then_some(&mut wish.who)
        })
    }

    fn stay(&self, waker: &Waker, find: impl Fn(&mut State<T>) -> Option<&mut Waiting>) -> bool {
        let is_same = |who: &Waiting| who.waker.as_ref().is_some_and(|old| old.will_wake(waker));
        {
            let mut state = self.state();
            if state.is_closed {
                return false;
            }
            match find(&mut state) {
                None => return false,
                Some(who) if is_same(who) => return true,
                Some(_) => {}
            }
        }
        // Outside of the lock: the clone, and below the drop of the old one.
        let mut waker = Some(waker.clone());
        let mut state = self.state();
        if state.is_closed {
            drop(state);
            return false;
        }
        let who = find(&mut state);
        let is_there = who.is_some();
        if let Some(who) = who {
            std::mem::swap(&mut who.waker, &mut waker);
        }
        drop(state);
        is_there
    }

    /// Takes an element back that somebody got who does not want it any more (rule 3).
    pub(super) fn give_back(&self, value: T) {
        let mut state = self.state();
        match state.hand(value, None) {
            Handed::To(waker) => {
                // It was counted when it was handed over first.
                state.met -= 1;
                drop(state);
                wake(waker);
            }
            Handed::ToNobody(value) | Handed::Gone(value) => state.back.push_back(value),
        }
    }

    /// Ends meeting, and wakes all that wait. What came back can still be taken.
    pub(super) fn close(&self) {
        let mut wakers = Vec::new();
        {
            let mut state = self.state();
            state.is_closed = true;
            (state.offers).for_each(|offer| wakers.extend(offer.who.waker.take()));
            (state.wishes).for_each(|wish| wakers.extend(wish.who.waker.take()));
            state.woken += wakers.len() as u64;
        }
        let mut panic = None;
        for waker in wakers {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                panic.get_or_insert(payload);
            }
        }
        match panic {
            // A second panic while the first unwinds would end the process.
            Some(payload) if !std::thread::panicking() => resume_unwind(payload),
            _ => {}
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Whether a receiver waits that can be had.
    pub(super) fn can_push(&self) -> bool {
        let state = self.state();
        state.wishes.any(|wish| is_open(wish.who.stake.as_ref()))
    }

    /// Whether a sender waits that can be had.
    pub(super) fn can_pop(&self) -> bool {
        let state = self.state();
        let is_had = |offer: &Offer<T>| is_open(offer.who.stake.as_ref());
        !state.back.is_empty() || (!state.is_closed && state.offers.any(is_had))
    }

    /// Elements that came back; nothing else is ever in the channel.
    pub(super) fn len(&self) -> usize {
        self.state().back.len()
    }

    pub(super) fn pushed(&self) -> u64 {
        self.state().met
    }

    pub(super) fn popped(&self) -> u64 {
        self.state().popped()
    }

    /// How often somebody was listed, and how many of them were woken.
    pub(super) fn waits(&self) -> (u64, u64) {
        let state = self.state();
        (state.offers.seated() + state.wishes.seated(), state.woken)
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
