//! The receiving end.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::waiting::Waiting;
use super::{End, Many, One, RecvError, Shared, State, TryRecvError, WaiterOf, wake_all};
use crate::family::Family;
use crate::family::sealed::{Guarded, KEY, Mark, WakeOnce, Wakes};
use crate::fiber::FiberContext;
use crate::node::take_by_words;
use crate::sync::{fault, is_model_over};

/// Takes values out of a slot.
pub struct SlotReceiver<T, F: Family, W: Waiting<WaiterOf<F>> = One<F>> {
    slot: Shared<T, F, W>,
    /// Where it waits, if it is one of many; also after a receive that was forgotten.
    place: W::Place,
}

/// The outcome of a look at a slot, and the sender that waits for it to be empty.
type Look<T, V> = Result<(T, Option<V>), RecvError>;

impl<T, F: Family, W: Waiting<WaiterOf<F>>> State<T, F, W> {
    #[inline(always)]
    fn take(&mut self) -> Option<Look<T, WaiterOf<F>>> {
        if let Some(value) = self.value.take() {
            let vacancy = self.vacancy.take();
            self.settle();
            return Some(Ok((value, vacancy)));
        }
        // A receiver that looks is there: its end is open, or another receiver has cancelled.
        match (self.receiver, self.sender) {
            (End::Cancelled, _) | (_, End::Cancelled) => Some(Err(RecvError::Cancelled)),
            (_, End::Closed) => Some(Err(RecvError::Closed)),
            (_, End::Open) => None,
        }
    }
}

/// Notifies the sender that waits, and returns the value.
fn taken<T, V: WakeOnce>((value, vacancy): (T, Option<V>)) -> T {
    if let Some(sender) = vacancy
        && !fault::is("slot_vacancy")
    {
        sender.wake();
    }
    value
}

impl<T, F: Family, W: Waiting<WaiterOf<F>>> SlotReceiver<T, F, W> {
    pub(super) fn new(slot: Shared<T, F, W>) -> Self {
        let place = W::Place::default();
        Self { slot, place }
    }

    /// Waits for a value. Cancel-safe: a receive that is dropped has taken nothing.
    ///
    /// Where the receiver was cloned, poll the future or drop it: one that is kept unpolled may
    /// have been woken in the place of another, which goes on waiting. One that was forgotten
    /// (`std::mem::forget`) does so until this receiver is used again, or dropped.
    ///
    /// # Errors
    /// [`RecvError`], from the future: nothing comes any more, and why.
    #[inline]
    pub fn recv(&mut self) -> Recv<'_, T, F, W> {
        self.leave_forgotten();
        let place = W::Place::default();
        Recv {
            receiver: self,
            place,
        }
    }

    /// Ends a receive that was forgotten. One of a single receiver keeps no other one waiting.
    #[inline(always)]
    fn leave_forgotten(&mut self) {
        if W::IS_MANY && self.place.is_set() {
            leave::<T, F, W>(&self.slot, &mut self.place);
        }
    }

    /// Works as [`recv`](Self::recv), in a fiber: its stack is suspended meanwhile.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_fiber(&mut self, ctx: &mut FiberContext<'_>) -> Result<T, RecvError> {
        ctx.wait(self.recv())
    }

    /// Takes the value that is there.
    ///
    /// # Errors
    /// [`TryRecvError`]: none is there, or comes.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.leave_forgotten();
        match self.slot.state.with(KEY, State::take) {
            Some(look) => Ok(taken(look?)),
            None => Err(TryRecvError::Empty),
        }
    }

    /// Cancels the slot: a value in it is dropped, and the sender gets
    /// [`SendError::Cancelled`](super::SendError::Cancelled). Where the receiver was cloned this is
    /// for all of them, and the others get [`RecvError::Cancelled`].
    pub fn cancel(self) {
        self.end(End::Cancelled);
    }

    fn end(&self, end: End) {
        let rest = self.slot.state.with(KEY, |state| {
            if state.receiver == End::Open {
                state.receiver = end;
            }
            state.is_rare = true;
            state.has_rest().then(|| {
                let waiting = state.receivers.all();
                (state.value.take(), waiting, state.vacancy.take())
            })
        });
        if let Some((value, waiting, sender)) = rest {
            wake_all(waiting);
            wake_all(sender);
            drop(value);
        }
    }
}

impl<T, F: Family> Clone for SlotReceiver<T, F, Many<F>> {
    fn clone(&self) -> Self {
        self.slot.state.with(KEY, |state| state.count += 1);
        Self::new(self.slot.clone())
    }
}

impl<T, F: Family, W: Waiting<WaiterOf<F>>> Drop for SlotReceiver<T, F, W> {
    fn drop(&mut self) {
        if is_model_over() {
            // The value that it holds can't be dropped any more either.
            return std::mem::forget(self.slot.clone());
        }
        self.leave_forgotten();
        let is_last = self.slot.state.with(KEY, |state| {
            state.count -= 1;
            state.count == 0
        });
        if is_last {
            self.end(End::Closed);
        }
    }
}

shown!([T, F: Family, W: Waiting<WaiterOf<F>>] SlotReceiver<T, F, W>, "SlotReceiver", _this);

/// The future of [`SlotReceiver::recv`].
#[must_use = "a future does nothing until it is polled"]
pub struct Recv<'r, T, F: Family, W: Waiting<WaiterOf<F>> = One<F>> {
    receiver: &'r mut SlotReceiver<T, F, W>,
    /// The place of a single receiver: the fast path is a few instructions shorter with it here.
    place: W::Place,
}

impl<T, F: Family, W: Waiting<WaiterOf<F>>> Recv<'_, T, F, W> {
    #[inline(always)]
    fn parts(&mut self) -> (&Shared<T, F, W>, &mut W::Place) {
        let SlotReceiver { slot, place } = &mut *self.receiver;
        (slot, if W::IS_MANY { place } else { &mut self.place })
    }
}

impl<T, F: Family, W: Waiting<WaiterOf<F>>> Unpin for Recv<'_, T, F, W> {}

impl<T, F: Family, W: Waiting<WaiterOf<F>>> Future for Recv<'_, T, F, W> {
    type Output = Result<T, RecvError>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        let (slot, place) = self.parts();
        let mut waits = false;
        let value = slot.state.with(KEY, |state| {
            // With many receivers, another may have been notified of the value, and has to be
            // notified of the next.
            if state.is_rare || W::IS_MANY && state.value.is_some() {
                return None;
            }
            let value = take_by_words(&mut state.value);
            if value.is_none() {
                waits = state.receivers.stays(place, context.waker());
            }
            value
        });
        if let Some(value) = value {
            // It waits no more, so there is nothing to leave.
            place.set(false);
            return Poll::Ready(Ok(value));
        }
        if waits {
            return Poll::Pending;
        }
        let waiter = WaiterOf::<F>::of(context.waker());
        look::<T, F, W>(slot, place, waiter)
    }
}

/// Handles the rare cases; and where there is no value, it lists the waker, cloned outside of the
/// guard since that is foreign code.
#[cold]
#[inline(never)]
fn look<T, F: Family, W: Waiting<WaiterOf<F>>>(
    slot: &Shared<T, F, W>,
    place: &mut W::Place,
    waiter: WaiterOf<F>,
) -> Poll<Result<T, RecvError>> {
    let looks = !fault::is("slot_look_again");
    let (look, spare, left) = slot.state.with(KEY, |state| match state.take() {
        Some(look) if looks => (Some(look), Some(waiter), state.receivers.leave(place).1),
        _ => (None, state.receivers.enqueue(place, waiter), None),
    });
    drop((spare, left));
    match look {
        Some(look) => Poll::Ready(look.map(taken)),
        None => Poll::Pending,
    }
}

impl<T, F: Family, W: Waiting<WaiterOf<F>>> Drop for Recv<'_, T, F, W> {
    #[inline]
    fn drop(&mut self) {
        let (slot, place) = self.parts();
        if place.is_set() && !is_model_over() {
            leave::<T, F, W>(slot, place);
        }
    }
}

/// Waits no more.
fn leave<T, F: Family, W: Waiting<WaiterOf<F>>>(slot: &Shared<T, F, W>, place: &mut W::Place) {
    let (next, left) = slot.state.with(KEY, |state| {
        let (was_notified, left) = state.receivers.leave(place);
        // It was notified, and went without a look: the next receiver is notified instead.
        let is_owed = was_notified && state.value.is_some() && !fault::is("slot_pass_on");
        (
            if is_owed {
                state.receivers.next(KEY)
            } else {
                None
            },
            left,
        )
    });
    drop(left);
    if let Some(next) = next {
        next.wake();
    }
}
