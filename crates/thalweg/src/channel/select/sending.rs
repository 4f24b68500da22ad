//! The sending arm of a select.

use std::task::Waker;
use std::time::Instant;

use super::arm::{Arm, Choice, Listed, Meets, Untimed};
use super::ready::Watched;
use super::{Select, SelectTimeout};
use crate::channel::error::{SendError, SendTimeoutError};
use crate::channel::hub::Overflow;
use crate::channel::meeting::Stake;
use crate::channel::sender::Sender;
use crate::channel::shape::Shape;
use crate::ring::sync::is_model_over;
use crate::wait::{Kind, Pace};

/// An arm that sends.
#[doc(hidden)]
#[derive(Debug)]
pub struct SendArm<'a, T, S: Shape, F> {
    sender: &'a mut Sender<T, S>,
    value: &'a mut Option<T>,
    then: Option<F>,
    outcome: Option<Result<(), SendError<()>>>,
}

impl<'a, T, S: Shape, F> SendArm<'a, T, S, F> {
    pub(super) fn new(sender: &'a mut Sender<T, S>, value: &'a mut Option<T>, then: F) -> Self {
        Self {
            sender: sender.lend(),
            value,
            then: Some(then),
            outcome: None,
        }
    }
}

#[allow(private_interfaces)] // as `Arm`
impl<T, S: Shape, F> Arm for SendArm<'_, T, S, F> {
    fn attempt(&mut self) -> bool {
        if self.outcome.is_some() {
            // Another thread has fired it.
            return true;
        }
        let Some(value) = self.value.take() else {
            return false;
        };
        self.sender.listed.on.used_up();
        let outcome = match self.sender.push_once(value) {
            Ok(()) => Ok(()),
            Err(SendError::Disconnected(value)) => {
                *self.value = Some(value);
                Err(SendError::Disconnected(()))
            }
            Err(SendError::Full(value)) => {
                *self.value = Some(value);
                if self.sender.hub.habits.overflow != Overflow::Reject {
                    return false;
                }
                self.sender.gate.refused.add(1);
                Err(SendError::Full(()))
            }
        };
        self.outcome = Some(outcome);
        true
    }

    fn glance(&mut self) -> bool {
        let now = self.sender.glance();
        self.value.is_none() || self.sender.listed.is_same(now)
    }

    fn meets(&self) -> Meets {
        match self.sender.end.meeting() {
            Some(_) if self.value.is_some() => Meets::Yes,
            _ => Meets::No,
        }
    }

    fn list(&mut self, waker: &Waker, kind: Kind, stake: Option<Stake>) -> bool {
        let is_over = (self.sender).offer(self.value, waker, kind, stake);
        if is_over && self.value.is_none() {
            self.outcome = Some(Ok(()));
        }
        is_over
    }

    fn stay(&mut self, waker: &Waker) -> bool {
        self.sender.stays(waker)
    }

    fn unlist(&mut self) {
        if self.sender.withdraw(self.value) {
            self.outcome = Some(Ok(()));
        }
    }

    fn settle(&mut self, is_fired: bool) {
        self.sender.pass_on_unused();
        if is_fired {
            self.sender.pass_on();
        }
    }

    fn pace(&mut self) -> Option<&mut Pace> {
        Some(&mut self.sender.pace)
    }
}

impl<R, T, S: Shape, F: FnOnce(Result<(), SendError<()>>) -> R> Choice<R> for SendArm<'_, T, S, F> {
    fn finish(&mut self) -> R {
        match (self.then.take(), self.outcome.take()) {
            (Some(then), Some(outcome)) => then(outcome),
            _ => unreachable!("the attempt left an outcome, and it is used once"),
        }
    }
}

impl<T, S: Shape, F> Untimed for SendArm<'_, T, S, F> {}

impl<T, S: Shape, F> Drop for SendArm<'_, T, S, F> {
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        self.sender.leave(self.value);
    }
}

impl<T, S: Shape> Sender<T, S> {
    /// Waits for a receiver at a rendezvous.
    pub(in crate::channel) fn meet(
        &mut self,
        value: T,
        deadline: Option<Instant>,
    ) -> Result<(), SendTimeoutError<T>> {
        let mut value = Some(value);
        let select = Select::new().send(self, &mut value, |sent| sent);
        let outcome = select.wait_listed(deadline);
        let Some(value) = value else {
            return Ok(());
        };
        if outcome == Err(SelectTimeout) {
            self.gate.refused.add(1);
            return Err(SendTimeoutError::Timeout(value));
        }
        Err(SendTimeoutError::Disconnected(value))
    }

    /// For something that borrows the sender and waits or holds room, and then leaves. An earlier
    /// one that was forgotten is ended.
    pub(in crate::channel) fn lend(&mut self) -> &mut Self {
        self.settle();
        self.listed.is_lent = true;
        self
    }

    /// Ends a wait or a claim that was forgotten, if there is one.
    #[inline]
    pub(in crate::channel) fn settle(&mut self) {
        if self.listed.is_lent {
            self.leave_lent();
        }
    }

    /// Gives up a wait that was forgotten. Not inlined: it has room for an element on the stack,
    /// which may be too much for a thread that drops a sender.
    #[cold]
    #[inline(never)]
    fn leave_lent(&mut self) {
        self.give_up_claim();
        self.leave(&mut None);
    }

    /// Lists a wait for room for the element in `value`; at a rendezvous the element goes with it.
    /// Returns whether the wait is over: then the element is back, unless a receiver has it.
    pub(in crate::channel) fn offer(
        &mut self,
        value: &mut Option<T>,
        waker: &Waker,
        kind: Kind,
        stake: Option<Stake>,
    ) -> bool {
        let listed = &mut self.listed;
        if value.is_none() {
            return false;
        }
        let Some(meeting) = self.end.meeting() else {
            listed.on.register(&self.gate.writable, waker, kind);
            return false;
        };
        // Cloned while the element is in its place: that may panic.
        let (waker, Some(element)) = (waker.clone(), value.take()) else {
            return false;
        };
        match meeting.offer(element, waker, stake) {
            Ok(seat) => listed.seat = seat,
            Err(back) => *value = Some(back),
        }
        listed.seat.is_none()
    }

    /// Ends a wait; returns whether a receiver has the element. Else it is back.
    pub(in crate::channel) fn withdraw(&mut self, value: &mut Option<T>) -> bool {
        self.listed.on.unregister(&self.gate.writable);
        let (Some(seat), Some(meeting)) = (self.listed.seat.take(), self.end.meeting()) else {
            return false;
        };
        *value = meeting.leave_offer(seat);
        value.is_none()
    }

    /// Returns whether the wait is still listed; has `waker` woken from now on.
    pub(in crate::channel) fn stays(&mut self, waker: &Waker) -> bool {
        match (self.listed.seat, self.end.meeting()) {
            (Some(seat), Some(meeting)) => meeting.stay_offer(seat, waker),
            _ => self.listed.on.stay(&self.gate.writable, waker),
        }
    }

    /// Gives a wait up; an element that waited at a meeting comes back.
    #[inline(never)]
    pub(in crate::channel) fn leave(&mut self, value: &mut Option<T>) {
        self.listed.is_lent = false;
        if self.listed.seat.is_some() {
            self.withdraw(value);
        }
        self.listed.on.leave(&self.gate.writable);
    }

    fn pass_on_unused(&mut self) {
        self.listed.on.pass_on(&self.gate.writable);
    }
}

#[allow(private_interfaces)] // as `Arm`
impl<T, S: Shape> Watched for Sender<T, S> {
    fn is_ready(&mut self) -> bool {
        // Policies other than to block never wait.
        self.hub.habits.overflow != Overflow::Block || self.end.is_ready()
    }

    fn glance(&self) -> Option<u64> {
        match self.end.meeting() {
            Some(meeting) => meeting.glance_push(),
            // Room that only this sender takes stays, so if there is none now, there was none.
            None if !S::SHARES_SENDER => Some(0),
            // It stops being ready only by what others push.
            None => Some(self.end.pushed()),
        }
    }

    fn meets(&self) -> Meets {
        match self.end.meeting() {
            // It has nothing to offer.
            Some(_) => Meets::Watches,
            None => Meets::No,
        }
    }

    fn listed(&mut self) -> &mut Listed {
        &mut self.listed
    }

    fn list(&mut self, waker: &Waker, kind: Kind, stake: Option<Stake>) -> bool {
        (self.listed.on).register(&self.gate.writable, waker, kind);
        // Requests listed from now on notify it; those of its own select were listed before.
        let meeting = self.end.meeting();
        meeting.is_some_and(|meeting| meeting.is_requested(stake.as_ref()))
    }

    fn stay(&mut self, waker: &Waker) -> bool {
        self.listed.on.stay(&self.gate.writable, waker)
    }

    fn unlist(&mut self) {
        self.listed.on.unregister(&self.gate.writable);
    }

    fn pass_on_unused(&mut self) {
        self.pass_on_unused();
    }

    fn lend(&mut self) {
        self.lend();
    }

    fn leave(&mut self) {
        self.leave(&mut None);
    }
}
