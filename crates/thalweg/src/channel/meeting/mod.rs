//! Where a sender and a receiver meet, and an element goes from one to the other without being
//! stored: a channel of capacity 0.
//!
//! # State
//! Under one short lock: *offers*, senders that wait, with their elements; *requests*, receivers
//! that wait; what was *handed* to requests that have not left yet; elements that came *back*,
//! since the receiver that had them was dropped before it knew.
//!
//! # Rules
//! 1. An endpoint that comes looks for its counterpart first, and lists itself only if there is
//!    none, all under one lock. So a sender and a receiver that could meet never both wait.
//! 2. A sender's element is handed over by taking its offer off the list, or by taking a request
//!    off the list and leaving the element under its number. The one that waits is woken outside of
//!    the lock.
//! 3. An endpoint that leaves takes its entry back under the lock: an offer that is not there any
//!    more was taken; a request that is not there was fulfilled. One that is fulfilled and not
//!    wanted any more (a future that was dropped) gives its element to the next one, or leaves it
//!    with those that came back, and they are taken first.
//! 4. If an endpoint waits in a select, its [`Token`](token::Token) decides first.
//! 5. No foreign code (`Clone` and `Drop` of a waker, `Drop` of an element) runs under the lock.

use std::collections::VecDeque;
use std::task::Waker;

use crate::ring::sync::{Mutex, fault, lock};
use crate::ring::{PopError, PushError};
use crate::wait::{Entry, Wait, WaitQueue, let_go, renew, wake};
use token::{Claim, claim, is_open};

pub(super) use token::{LentToken, Stake, lend};

#[cfg(all(test, loom))]
mod models;
mod token;

#[cfg(all(test, not(loom)))]
mod tests;

pub(super) struct Meeting<T> {
    state: Mutex<State<T>>,
}

impl<T> Meeting<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State::new()),
        }
    }

    /// Gives the element to a receiver that waits; `Full` if there is none.
    pub(super) fn try_push(&self, value: T) -> Result<(), PushError<T>> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(PushError::Closed(value));
        }
        match state.hand(value, None) {
            Handed::To(waker) => {
                drop(state);
                wake(waker);
                Ok(())
            }
            Handed::NoReceiver(value) | Handed::Gone(value) => Err(PushError::Full(value)),
        }
    }

    /// Takes the element of a sender that waits, with its number; `Empty` if there is none.
    pub(super) fn try_pop_at(&self) -> Result<(u64, T), PopError> {
        let mut state = lock(&self.state);
        match state.take(None) {
            Taken::From(value, waker) => {
                let popped = state.popped();
                drop(state);
                wake(waker);
                Ok((popped - 1, value))
            }
            Taken::NoSender | Taken::Gone if state.is_closed => Err(PopError::Closed),
            Taken::NoSender | Taken::Gone => Err(PopError::Empty),
        }
    }

    /// Gives the element to a receiver, or lists the sender, and gives its seat then.
    ///
    /// # Errors
    /// Gives the element back if there will be no receiver, or another arm of its select fires.
    pub(super) fn offer(
        &self,
        value: T,
        waker: Waker,
        stake: Option<Stake>,
    ) -> Result<Option<Entry>, T> {
        let mut waker = Some(waker);
        let outcome = self.offer_listing(value, &mut waker, stake);
        // Dropped after the lock is let go, if it is not listed.
        let_go(waker);
        outcome
    }

    fn offer_listing(
        &self,
        value: T,
        waker: &mut Option<Waker>,
        stake: Option<Stake>,
    ) -> Result<Option<Entry>, T> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(value);
        }
        let handed = if fault::is("meeting_look") {
            // Looked before it came, and does not look again.
            Handed::NoReceiver(value)
        } else {
            state.hand(value, stake.as_ref())
        };
        match handed {
            Handed::To(theirs) => {
                drop(state);
                wake(theirs);
                Ok(None)
            }
            Handed::Gone(value) => Err(value),
            Handed::NoReceiver(value) => Ok(Some(state.offers.push(waker.take(), (value, stake)))),
        }
    }

    /// Takes a sender off the list; gives the element unless it was taken.
    pub(super) fn leave_offer(&self, seat: Entry) -> Option<T> {
        let offer = lock(&self.state).offers.remove(seat);
        // The waker is dropped here, outside of the lock.
        offer.map(|offer| {
            let_go(offer.waker);
            offer.element.0
        })
    }

    /// For a task that is polled again: has `waker` woken from now on. Returns whether it still
    /// waits; if not, it should leave.
    pub(super) fn stay_offer(&self, seat: Entry, waker: &Waker) -> bool {
        renew(
            &self.state,
            |state| (!state.is_closed).then_some(&mut state.offers),
            seat,
            waker,
        )
    }

    /// Takes the element of a sender; `None` if there will be no sender, or another arm of its
    /// select fires.
    ///
    /// # Errors
    /// The seat at which the receiver is listed.
    pub(super) fn request(&self, waker: &Waker, stake: Option<Stake>) -> Result<Option<T>, Entry> {
        let mut waker = Some(waker.clone());
        let mut state = lock(&self.state);
        let (got, theirs) = match state.take(stake.as_ref()) {
            Taken::From(value, theirs) => (Ok(Some(value)), theirs),
            Taken::NoSender if !state.is_closed => {
                (Err(state.requests.push(waker.take(), ((), stake))), None)
            }
            Taken::NoSender | Taken::Gone => (Ok(None), None),
        };
        drop(state);
        wake(theirs);
        // Dropped after the lock is let go, if it is not listed.
        let_go(waker);
        got
    }

    /// Takes a receiver off the list; gives the element that it got.
    pub(super) fn leave_request(&self, seat: Entry) -> Option<T> {
        let mut state = lock(&self.state);
        let request = state.requests.remove(seat);
        if request.is_none() {
            return state.collect(seat);
        }
        drop(state);
        // The waker is dropped here, outside of the lock.
        let_go(request);
        None
    }

    /// See [`stay_offer`](Self::stay_offer).
    pub(super) fn stay_request(&self, seat: Entry, waker: &Waker) -> bool {
        renew(
            &self.state,
            |state| (!state.is_closed).then_some(&mut state.requests),
            seat,
            waker,
        )
    }

    /// Takes an element back from a receiver that does not want it any more (rule 3).
    pub(super) fn give_back(&self, value: T) {
        if fault::is("meeting_give_back") {
            return;
        }
        let waker = lock(&self.state).give_back(value);
        wake(waker);
    }

    /// Ends meeting, and wakes all that wait. Elements that came back can still be taken.
    pub(super) fn close(&self) {
        let mut wakers = Vec::new();
        {
            let mut state = lock(&self.state);
            state.is_closed = true;
            wakers.extend(state.offers.wakers());
            wakers.extend(state.requests.wakers());
            state.woken += wakers.len() as u64;
        }
        wakers.into_iter().for_each(wake);
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.state).is_closed
    }

    /// Returns whether a receiver waits that can be had, or there will be none.
    pub(super) fn is_requested(&self) -> bool {
        let state = lock(&self.state);
        state.is_closed || state.can_push()
    }

    /// Returns whether a sender waits that can be had, or an element came back.
    #[cfg(all(test, loom))]
    pub(super) fn can_pop(&self) -> bool {
        lock(&self.state).can_pop()
    }

    /// For a caller that checks twice: `None` if a sender would find something, else a count that
    /// is another if it would have, in between.
    pub(super) fn glance_push(&self) -> Option<u64> {
        let state = lock(&self.state);
        (!state.can_push()).then(|| state.moves())
    }

    /// Works as [`glance_push`](Self::glance_push), for a receiver.
    pub(super) fn glance_pop(&self) -> Option<u64> {
        let state = lock(&self.state);
        (!state.can_pop()).then(|| state.moves())
    }

    /// Returns the number of elements that came back, and senders that wait with one.
    pub(super) fn offered(&self) -> usize {
        let state = lock(&self.state);
        state.len() + state.offers.len()
    }

    /// Returns the number of elements that came back; nothing else is ever in the channel.
    pub(super) fn capacity(&self) -> usize {
        0
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.state).len()
    }

    pub(super) fn pushed(&self) -> u64 {
        lock(&self.state).met
    }

    pub(super) fn popped(&self) -> u64 {
        lock(&self.state).popped()
    }

    /// Returns how often an endpoint was listed, and how many of them were woken.
    pub(super) fn waits(&self) -> (u64, u64) {
        let state = lock(&self.state);
        (state.seated(), state.woken)
    }
}

/// Waits of each side, and elements on their way, for which there is room without allocating.
const WAITS_MIN: usize = 8;

struct State<T> {
    /// Senders with their elements, and receivers; each perhaps as an arm of a select.
    offers: WaitQueue<(T, Option<Stake>)>,
    requests: WaitQueue<((), Option<Stake>)>,
    /// The elements that waiting receivers got, as long as these have not left.
    handed: Vec<(Entry, T)>,
    back: VecDeque<T>,
    /// Elements handed over.
    met: u64,
    /// Elements that came back, ever.
    returned: u64,
    woken: u64,
    is_closed: bool,
}

/// The outcome of a sender's look for a receiver.
enum Handed<T> {
    To(Option<Waker>),
    NoReceiver(T),
    Gone(T),
}

/// The outcome of a receiver's look for a sender.
enum Taken<T> {
    From(T, Option<Waker>),
    NoSender,
    Gone,
}

impl<T> State<T> {
    fn new() -> Self {
        Self {
            offers: WaitQueue::default(),
            requests: WaitQueue::default(),
            handed: Vec::with_capacity(WAITS_MIN),
            back: VecDeque::new(),
            met: 0,
            returned: 0,
            woken: 0,
            is_closed: false,
        }
    }

    /// Gives the element to the first receiver that can be had.
    fn hand(&mut self, value: T, own: Option<&Stake>) -> Handed<T> {
        let request = match serve(&mut self.requests, own) {
            Ok(Some(request)) => request,
            Ok(None) => return Handed::NoReceiver(value),
            Err(OwnGone) => return Handed::Gone(value),
        };
        self.handed.push((request.entry, value));
        self.met += 1;
        self.woken += 1;
        Handed::To(request.waker)
    }

    /// Takes the element of the first sender that can be had.
    fn take(&mut self, own: Option<&Stake>) -> Taken<T> {
        if !self.back.is_empty() {
            if claim(own, None) != Claim::Both {
                return Taken::Gone;
            }
            if let Some(value) = self.back.pop_front() {
                return Taken::From(value, None);
            }
        }
        if self.is_closed {
            // Senders that are still listed have been woken, and take their elements back.
            return Taken::NoSender;
        }
        match serve(&mut self.offers, own) {
            Ok(Some(offer)) => {
                self.met += 1;
                self.woken += 1;
                Taken::From(offer.element.0, offer.waker)
            }
            Ok(None) => Taken::NoSender,
            Err(OwnGone) => Taken::Gone,
        }
    }

    /// Takes the element of a request that is not in the queue any more.
    fn collect(&mut self, seat: Entry) -> Option<T> {
        let at = self.handed.iter().position(|(of, _)| *of == seat)?;
        Some(self.handed.swap_remove(at).1)
    }

    /// Takes an element back from a receiver that does not want it any more.
    fn give_back(&mut self, value: T) -> Option<Waker> {
        match self.hand(value, None) {
            Handed::To(waker) => {
                // It was counted when it was handed over first.
                self.met -= 1;
                waker
            }
            Handed::NoReceiver(value) | Handed::Gone(value) => {
                self.back.push_back(value);
                self.returned += 1;
                None
            }
        }
    }

    /// Returns whether a receiver waits that can be had.
    fn can_push(&self) -> bool {
        self.requests.waits().any(is_had)
    }

    /// Returns whether a sender waits that can be had, or an element came back.
    fn can_pop(&self) -> bool {
        !self.back.is_empty() || (!self.is_closed && self.offers.waits().any(is_had))
    }

    /// Returns the number of elements that came back and are still there.
    fn len(&self) -> usize {
        self.back.len()
    }

    /// Returns the number of elements that receivers got.
    fn popped(&self) -> u64 {
        self.met - self.back.len() as u64
    }

    /// Waits listed ever.
    fn seated(&self) -> u64 {
        self.offers.listed + self.requests.listed
    }

    /// Returns a count that grows with everything that makes either side ready.
    fn moves(&self) -> u64 {
        self.seated() + self.returned
    }
}

/// Another arm of one's own select fires.
struct OwnGone;

/// Returns whether a waiting end is still available.
fn is_had<E>(wait: &Wait<(E, Option<Stake>)>) -> bool {
    is_open(wait.element.1.as_ref())
}

/// A wait, with what it brought and its stake.
type Served<E> = Wait<(E, Option<Stake>)>;

/// Takes the first that can be had.
fn serve<E>(
    queue: &mut WaitQueue<(E, Option<Stake>)>,
    own: Option<&Stake>,
) -> Result<Option<Served<E>>, OwnGone> {
    let mut at = 0;
    for wait in queue.waits() {
        match claim(own, wait.element.1.as_ref()) {
            Claim::OtherGone => at += 1,
            Claim::OwnGone => return Err(OwnGone),
            Claim::Both => break,
        }
    }
    Ok(queue.take(at))
}
