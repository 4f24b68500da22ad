//! The store of a channel of capacity 0, a rendezvous: a sender hands its element to a receiver,
//! and no element is stored.
//!
//! # State
//! Under one lock: *offers*, senders that wait, with their elements; *requests*, receivers that
//! wait; elements that were *handed* to requests whose receivers have not collected them; elements
//! that came *back*, since the receiver that had them was dropped before it collected them.
//!
//! # Rules
//! 1. An endpoint first looks for a counterpart, and is listed only if there is none, all under one
//!    lock. So a sender and a receiver of which each is the other's counterpart never both wait.
//! 2. An element is handed over by removing the sender's offer, or by removing a request and
//!    storing the element under its entry. The waiter is woken outside of the lock.
//! 3. An endpoint that leaves removes its entry under the lock: if an offer is not there any more,
//!    its element was taken; if a request is not there, it was fulfilled. The element of a
//!    fulfilled request whose future was dropped goes to the next request, or to those that came
//!    back, which are taken first.
//! 4. If an endpoint waits in a select, its [`Token`](token::Token) is claimed first.
//! 5. No foreign code (`Clone` and `Drop` of a waker, `Drop` of an element) runs under the lock.

use std::collections::VecDeque;
use std::task::Waker;

use crate::ring::sync::{Mutex, fault, lock};
use crate::ring::{PopError, PushError};
use crate::wait::{Entry, Wait, WaitQueue, let_go, renew, wake};
use token::{Claim, claim, is_open};

pub(super) use token::{ArmRef, LentToken, lend};

#[cfg(all(test, loom))]
mod models;
mod token;

#[cfg(all(test, not(loom)))]
mod tests;

pub(super) struct Rendezvous<T> {
    state: Mutex<State<T>>,
}

impl<T> Rendezvous<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State::new()),
        }
    }

    /// Hands the element to a receiver that waits; returns `Full` if there is none.
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

    /// Takes the element of a sender that waits, with its number; returns `Empty` if there is none.
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

    /// Hands the element to a receiver, or lists the sender and returns its entry.
    ///
    /// # Errors
    /// Returns the element if there will be no receiver, or another arm of its select fires.
    pub(super) fn offer(
        &self,
        value: T,
        waker: Waker,
        arm_ref: Option<ArmRef>,
    ) -> Result<Option<Entry>, T> {
        let mut waker = Some(waker);
        let outcome = self.offer_listing(value, &mut waker, arm_ref);
        // A waker that is not listed is dropped outside of the lock.
        let_go(waker);
        outcome
    }

    fn offer_listing(
        &self,
        value: T,
        waker: &mut Option<Waker>,
        arm_ref: Option<ArmRef>,
    ) -> Result<Option<Entry>, T> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(value);
        }
        let handed = if fault::is("rendezvous_look") {
            // The fault: it does not look for a counterpart again.
            Handed::NoReceiver(value)
        } else {
            state.hand(value, arm_ref.as_ref())
        };
        match handed {
            Handed::To(theirs) => {
                drop(state);
                wake(theirs);
                Ok(None)
            }
            Handed::Gone(value) => Err(value),
            Handed::NoReceiver(value) => {
                Ok(Some(state.offers.push(waker.take(), (value, arm_ref))))
            }
        }
    }

    /// Removes a sender; returns the element unless a receiver took it.
    pub(super) fn leave_offer(&self, entry: Entry) -> Option<T> {
        let offer = lock(&self.state).offers.remove(entry);
        // The waker is dropped here, outside of the lock.
        offer.map(|offer| {
            let_go(offer.waker);
            offer.element.0
        })
    }

    /// Replaces the waker of a task that is polled again. Returns whether it still waits; if not,
    /// it has to leave.
    pub(super) fn stay_offer(&self, entry: Entry, waker: &Waker) -> bool {
        renew(
            &self.state,
            |state| (!state.is_closed).then_some(&mut state.offers),
            entry,
            waker,
        )
    }

    /// Takes the element of a sender; `None` if there will be no sender, or another arm of its
    /// select fires.
    ///
    /// # Errors
    /// The entry of the receiver, which was listed.
    pub(super) fn request(
        &self,
        waker: &Waker,
        arm_ref: Option<ArmRef>,
    ) -> Result<Option<T>, Entry> {
        let mut waker = Some(waker.clone());
        let mut state = lock(&self.state);
        let (got, theirs) = match state.take(arm_ref.as_ref()) {
            Taken::From(value, theirs) => (Ok(Some(value)), theirs),
            Taken::NoSender if !state.is_closed => {
                (Err(state.requests.push(waker.take(), ((), arm_ref))), None)
            }
            Taken::NoSender | Taken::Gone => (Ok(None), None),
        };
        drop(state);
        wake(theirs);
        // A waker that is not listed is dropped outside of the lock.
        let_go(waker);
        got
    }

    /// Removes a receiver; returns the element that it got.
    pub(super) fn leave_request(&self, entry: Entry) -> Option<T> {
        let mut state = lock(&self.state);
        let request = state.requests.remove(entry);
        if request.is_none() {
            return state.collect(entry);
        }
        drop(state);
        // The waker is dropped here, outside of the lock.
        let_go(request);
        None
    }

    /// See [`stay_offer`](Self::stay_offer).
    pub(super) fn stay_request(&self, entry: Entry, waker: &Waker) -> bool {
        renew(
            &self.state,
            |state| (!state.is_closed).then_some(&mut state.requests),
            entry,
            waker,
        )
    }

    /// Takes back the element of a receiver that was dropped (rule 3).
    pub(super) fn give_back(&self, value: T) {
        if fault::is("rendezvous_give_back") {
            return;
        }
        let waker = lock(&self.state).give_back(value);
        wake(waker);
    }

    /// Closes the channel, and wakes all waiters. Elements that came back can still be taken.
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

    /// Returns whether a receiver waits that is still available, or there will be none.
    pub(super) fn is_requested(&self) -> bool {
        let state = lock(&self.state);
        state.is_closed || state.can_push()
    }

    /// Returns whether a sender waits that is still available, or an element came back.
    #[cfg(all(test, loom))]
    pub(super) fn can_pop(&self) -> bool {
        lock(&self.state).can_pop()
    }

    /// Returns `None` if a sender would find a receiver; else a version, which differs from the
    /// last one if a sender would have found a receiver in between.
    pub(super) fn push_version(&self) -> Option<u64> {
        let state = lock(&self.state);
        (!state.can_push()).then(|| state.moves())
    }

    /// Works as [`push_version`](Self::push_version), for a receiver.
    pub(super) fn pop_version(&self) -> Option<u64> {
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
        lock(&self.state).handed_over
    }

    pub(super) fn popped(&self) -> u64 {
        lock(&self.state).popped()
    }

    /// Returns how often an endpoint was listed, and how many of them were woken.
    pub(super) fn waits(&self) -> (u64, u64) {
        let state = lock(&self.state);
        (state.listed(), state.woken)
    }
}

/// The number of elements in a hand-over for which there is memory from the beginning.
const WAITS_MIN: usize = 8;

struct State<T> {
    /// Senders with their elements, and receivers; each perhaps as an arm of a select.
    offers: WaitQueue<(T, Option<ArmRef>)>,
    requests: WaitQueue<((), Option<ArmRef>)>,
    /// The elements of fulfilled requests that were not collected yet.
    handed: Vec<(Entry, T)>,
    back: VecDeque<T>,
    /// Elements handed over.
    handed_over: u64,
    /// Elements that came back, ever.
    returned: u64,
    woken: u64,
    is_closed: bool,
}

/// The outcome of a sender's search for a receiver.
enum Handed<T> {
    To(Option<Waker>),
    NoReceiver(T),
    Gone(T),
}

/// The outcome of a receiver's search for a sender.
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
            handed_over: 0,
            returned: 0,
            woken: 0,
            is_closed: false,
        }
    }

    /// Hands the element to the first receiver that is still available.
    fn hand(&mut self, value: T, own: Option<&ArmRef>) -> Handed<T> {
        let request = match take_available(&mut self.requests, own) {
            Ok(Some(request)) => request,
            Ok(None) => return Handed::NoReceiver(value),
            Err(OwnGone) => return Handed::Gone(value),
        };
        self.handed.push((request.entry, value));
        self.handed_over += 1;
        self.woken += 1;
        Handed::To(request.waker)
    }

    /// Takes the element of the first sender that is still available.
    fn take(&mut self, own: Option<&ArmRef>) -> Taken<T> {
        if !self.back.is_empty() {
            if claim(own, None) != Claim::Both {
                return Taken::Gone;
            }
            if let Some(value) = self.back.pop_front() {
                return Taken::From(value, None);
            }
        }
        if self.is_closed {
            // Senders that are still listed were woken, and take their elements back.
            return Taken::NoSender;
        }
        match take_available(&mut self.offers, own) {
            Ok(Some(offer)) => {
                self.handed_over += 1;
                self.woken += 1;
                Taken::From(offer.element.0, offer.waker)
            }
            Ok(None) => Taken::NoSender,
            Err(OwnGone) => Taken::Gone,
        }
    }

    /// Takes the element of a request that is not in the queue any more.
    fn collect(&mut self, entry: Entry) -> Option<T> {
        let at = self.handed.iter().position(|(of, _)| *of == entry)?;
        Some(self.handed.swap_remove(at).1)
    }

    /// Takes back the element of a receiver that was dropped.
    fn give_back(&mut self, value: T) -> Option<Waker> {
        match self.hand(value, None) {
            Handed::To(waker) => {
                // It is counted already.
                self.handed_over -= 1;
                waker
            }
            Handed::NoReceiver(value) | Handed::Gone(value) => {
                self.back.push_back(value);
                self.returned += 1;
                None
            }
        }
    }

    /// Returns whether a receiver waits that is still available.
    fn can_push(&self) -> bool {
        self.requests.waits().any(is_available)
    }

    /// Returns whether a sender waits that is still available, or an element came back.
    fn can_pop(&self) -> bool {
        !self.back.is_empty() || (!self.is_closed && self.offers.waits().any(is_available))
    }

    /// Returns the number of elements that came back and are still there.
    fn len(&self) -> usize {
        self.back.len()
    }

    /// Returns the number of elements that receivers got.
    fn popped(&self) -> u64 {
        self.handed_over - self.back.len() as u64
    }

    /// Returns the number of waits that were listed so far.
    fn listed(&self) -> u64 {
        self.offers.listed + self.requests.listed
    }

    /// Returns a count that grows with everything that makes either side ready.
    fn moves(&self) -> u64 {
        self.listed() + self.returned
    }
}

/// Another arm of this thread's select has fired.
struct OwnGone;

/// Returns whether a waiter is still available: its select has not fired.
fn is_available<E>(wait: &Wait<(E, Option<ArmRef>)>) -> bool {
    is_open(wait.element.1.as_ref())
}

/// A waiter with its element and its [`ArmRef`].
type Counterpart<E> = Wait<(E, Option<ArmRef>)>;

/// Takes the first waiter that is still available.
fn take_available<E>(
    queue: &mut WaitQueue<(E, Option<ArmRef>)>,
    own: Option<&ArmRef>,
) -> Result<Option<Counterpart<E>>, OwnGone> {
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
