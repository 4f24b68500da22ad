//! The sending end.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::waiting::Waiting;
use super::{End, One, SendError, Shared, State, WaitEmptyError, WaiterOf, wake_all};
use crate::family::Family;
use crate::family::sealed::{Guarded, KEY, WakeOnce, Wakes};
use crate::sync::is_model_over;

/// Puts values into a slot.
pub struct SlotSender<T, F: Family, W: Waiting<WaiterOf<F>> = One<F>> {
    slot: Shared<T, F, W>,
}

impl<T, F: Family, W: Waiting<WaiterOf<F>>> State<T, F, W> {
    /// Puts a value into the slot if it may, and returns the receiver to notify.
    fn put(&mut self, value: T) -> Result<Option<W::Next>, SendError<T>> {
        match self.receiver {
            End::Open if self.value.is_some() => Err(SendError::Full(value)),
            End::Open => {
                self.value = Some(value);
                Ok(self.receivers.next(KEY))
            }
            End::Closed => Err(SendError::Closed(value)),
            End::Cancelled => Err(SendError::Cancelled(value)),
        }
    }
}

impl<T, F: Family, W: Waiting<WaiterOf<F>>> SlotSender<T, F, W> {
    pub(super) fn new(slot: Shared<T, F, W>) -> Self {
        Self { slot }
    }

    /// Sends a value; the receiver is woken, and runs when its executor is polled.
    ///
    /// # Errors
    /// [`SendError`] with the value: there is one already, or the receiver is gone or has
    /// cancelled.
    #[inline(always)]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if let Some(waiter) = self.put(value)? {
            waiter.wake();
        }
        Ok(())
    }

    /// Sends a value, and resumes the receiver at once, until it waits again; returns whether it
    /// ran. It does not run, and is woken instead, if it is running already, is no task of this
    /// thread, or 32 tasks that resume each other are on the stack; nor within a fiber, whose stack
    /// may be small.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[inline(always)]
    pub fn send_now(&self, value: T) -> Result<bool, SendError<T>> {
        let waiter = self.put(value)?;
        Ok(waiter.is_some_and(WakeOnce::resume))
    }

    /// Sends a value, and replaces and returns one that is in the slot: the last value wins.
    ///
    /// # Errors
    /// [`SendError`] with the new value, if the receiver is gone or has cancelled.
    pub fn replace(&self, value: T) -> Result<Option<T>, SendError<T>> {
        let (before, waiter) = self.slot.state.with(KEY, |state| match state.receiver {
            End::Open => {
                let before = state.value.replace(value);
                // A receiver was notified of the value that was there before.
                let is_first = before.is_none();
                Ok((
                    before,
                    is_first.then(|| state.receivers.next(KEY)).flatten(),
                ))
            }
            End::Closed => Err(SendError::Closed(value)),
            End::Cancelled => Err(SendError::Cancelled(value)),
        })?;
        if let Some(waiter) = waiter {
            waiter.wake();
        }
        Ok(before)
    }

    #[inline(always)]
    fn put(&self, value: T) -> Result<Option<W::Next>, SendError<T>> {
        self.slot.state.with(KEY, |state| {
            if state.receivers.waits_alone() {
                let before = state.value.replace(value);
                debug_assert!(before.is_none(), "no receiver waits beside a value");
                // Nothing is there to drop, which the compiler does not know.
                std::mem::forget(before);
                return Ok(state.receivers.next(KEY));
            }
            state.put(value)
        })
    }

    /// Returns whether a value is there that was not received yet.
    pub fn is_full(&self) -> bool {
        self.slot.state.with(KEY, |state| state.value.is_some())
    }

    /// Waits until the slot is empty. Cancel-safe.
    ///
    /// # Errors
    /// [`WaitEmptyError`], from the future: the receiver is gone or has cancelled.
    pub fn wait_empty(&mut self) -> WaitEmpty<'_, T, F, W> {
        WaitEmpty { sender: self }
    }

    /// Cancels the slot: no value will come, one in the slot is dropped, and the receiver gets
    /// [`RecvError::Cancelled`](super::RecvError::Cancelled).
    pub fn cancel(self) {
        self.end(End::Cancelled);
    }

    fn end(&self, end: End) {
        let rest = self.slot.state.with(KEY, |state| {
            if state.sender == End::Open {
                state.sender = end;
            }
            state.is_rare = true;
            state.has_rest().then(|| {
                let dropped = (end == End::Cancelled).then(|| state.value.take());
                (dropped, state.receivers.all(), state.vacancy.take())
            })
        });
        if let Some((value, waiting, own)) = rest {
            wake_all(waiting);
            drop((own, value));
        }
    }
}

impl<T, F: Family, W: Waiting<WaiterOf<F>>> Drop for SlotSender<T, F, W> {
    fn drop(&mut self) {
        if is_model_over() {
            // The value that it holds can't be dropped any more either.
            return std::mem::forget(self.slot.clone());
        }
        self.end(End::Closed);
    }
}

shown!([T, F: Family, W: Waiting<WaiterOf<F>>] SlotSender<T, F, W>, "SlotSender", _this);

/// The future of [`SlotSender::wait_empty`].
#[must_use = "a future does nothing until it is polled"]
pub struct WaitEmpty<'s, T, F: Family, W: Waiting<WaiterOf<F>> = One<F>> {
    sender: &'s mut SlotSender<T, F, W>,
}

impl<T, F: Family, W: Waiting<WaiterOf<F>>> Future for WaitEmpty<'_, T, F, W> {
    type Output = Result<(), WaitEmptyError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), WaitEmptyError>> {
        let waiter = WaiterOf::<F>::of(context.waker());
        let (outcome, spare) = self
            .sender
            .slot
            .state
            .with(KEY, |state| match state.receiver {
                End::Closed => (Poll::Ready(Err(WaitEmptyError::Closed)), Some(waiter)),
                End::Cancelled => (Poll::Ready(Err(WaitEmptyError::Cancelled)), Some(waiter)),
                End::Open if state.value.is_none() => (Poll::Ready(Ok(())), Some(waiter)),
                End::Open => {
                    state.is_rare = true;
                    (Poll::Pending, state.vacancy.replace(waiter))
                }
            });
        drop(spare);
        outcome
    }
}

impl<T, F: Family, W: Waiting<WaiterOf<F>>> Drop for WaitEmpty<'_, T, F, W> {
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        let waiter = self
            .sender
            .slot
            .state
            .with(KEY, |state| state.vacancy.take());
        drop(waiter);
    }
}
