//! The arms of a select: one that receives, one that sends, and one that waits for a moment.

use std::borrow::BorrowMut;
use std::task::Waker;
use std::time::Instant;

use super::round::{Arm, Choice, Untimed};
use super::{Select, SelectTimeout, Timer};
use crate::channel::error::{RecvError, RecvTimeoutError, SendError, SendTimeoutError};
use crate::channel::hub::{Overflow, Shape};
use crate::channel::meeting::Stake;
use crate::channel::receiver::Receiver;
use crate::channel::sender::Sender;
use crate::ring::PopError;
use crate::ring::sync::is_model_over;
use crate::wait::{Kind, Pace};

/// An arm that receives.
#[doc(hidden)]
#[derive(Debug)]
pub struct RecvArm<'a, T, S: Shape, F> {
    receiver: &'a mut Receiver<T, S>,
    then: Option<F>,
    outcome: Option<Result<T, RecvError>>,
}

impl<'a, T, S: Shape, F> RecvArm<'a, T, S, F> {
    pub(super) fn new(receiver: &'a mut Receiver<T, S>, then: F) -> Self {
        Self {
            receiver: receiver.lend(),
            then: Some(then),
            outcome: None,
        }
    }
}

#[allow(private_interfaces)] // as `Arm`
impl<T, S: Shape, F> Arm for RecvArm<'_, T, S, F> {
    #[inline]
    fn attempt(&mut self) -> bool {
        if self.outcome.is_some() {
            // Another thread has fired it.
            return true;
        }
        self.receiver.listed.on.used_up();
        let outcome = match self.receiver.source.pop() {
            Ok(value) => Ok(value),
            Err(PopError::Closed) => Err(RecvError),
            Err(PopError::Empty) => return false,
        };
        self.outcome = Some(outcome);
        true
    }

    fn glance(&mut self) -> bool {
        let source = &self.receiver.source;
        let now = match source.end.meeting() {
            Some((meeting, _)) => meeting.glance_pop(),
            // Only this receiver takes elements, so they stay, and an arm that is not ready now
            // never was.
            None if !S::SHARES_RECEIVER && source.keeps() => Some(0),
            // It stops being ready only by what others take.
            None => Some(source.end.moves()),
        };
        self.receiver.listed.is_same(now)
    }

    fn meets(&self) -> bool {
        self.receiver.source.end.meeting().is_some()
    }

    fn list(&mut self, waker: &Waker, kind: Kind, stake: Option<Stake>) -> bool {
        let (is_over, got) = self.receiver.request(waker, kind, stake);
        self.outcome = got.map(Ok);
        is_over
    }

    fn stay(&mut self, waker: &Waker) -> bool {
        self.receiver.stays(waker)
    }

    fn unlist(&mut self) {
        if let Some(value) = self.receiver.withdraw() {
            self.outcome = Some(Ok(value));
        }
    }

    fn settle(&mut self, is_fired: bool) {
        self.receiver.pass_on_unused();
        if is_fired {
            self.receiver.source.pass_on();
        }
    }

    fn pace(&mut self) -> Option<&mut Pace> {
        Some(&mut self.receiver.pace)
    }
}

impl<R, T, S: Shape, F: FnOnce(Result<T, RecvError>) -> R> Choice<R> for RecvArm<'_, T, S, F> {
    fn finish(&mut self) -> R {
        match (self.then.take(), self.outcome.take()) {
            (Some(then), Some(outcome)) => then(outcome),
            _ => unreachable!("the attempt left an outcome, and it is used once"),
        }
    }
}

impl<T, S: Shape, F> Untimed for RecvArm<'_, T, S, F> {}

impl<T, S: Shape, F> Drop for RecvArm<'_, T, S, F> {
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        self.unlist();
        self.receiver.leave();
        // Given up: what it got at a meeting goes to another, or back.
        if let Some(Ok(value)) = self.outcome.take() {
            self.receiver.give_back(value);
        }
    }
}

impl<T, S: Shape> Receiver<T, S> {
    /// Waits for a sender at a rendezvous.
    pub(in crate::channel) fn meet(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<T, RecvTimeoutError> {
        match Select::new().recv(self, |got| got).wait_listed(deadline) {
            Ok(got) => Ok(got?),
            Err(SelectTimeout) => Err(RecvTimeoutError::Timeout),
        }
    }

    /// For something that borrows the receiver and waits, and then leaves. An earlier one that was
    /// forgotten is ended.
    pub(in crate::channel) fn lend(&mut self) -> &mut Self {
        self.settle();
        self.listed.is_lent = true;
        self
    }

    /// Ends a wait that was forgotten, if there is one.
    #[inline]
    pub(in crate::channel) fn settle(&mut self) {
        if self.listed.is_lent {
            self.leave();
        }
    }

    /// Lists a wait; returns whether it is over, and what was got at a meeting.
    pub(in crate::channel) fn request(
        &mut self,
        waker: &Waker,
        kind: Kind,
        stake: Option<Stake>,
    ) -> (bool, Option<T>) {
        let listed = &mut self.listed;
        let Some((meeting, _)) = self.source.end.meeting() else {
            listed.on.register(&self.source.hub.readable, waker, kind);
            return (false, None);
        };
        match meeting.request(waker, stake) {
            Err(seat) => {
                listed.seat = Some(seat);
                (false, None)
            }
            Ok(got) => (true, got),
        }
    }

    /// Ends a wait; gives what it got at a meeting.
    pub(in crate::channel) fn withdraw(&mut self) -> Option<T> {
        self.listed.on.unregister(&self.source.hub.readable);
        let seat = self.listed.seat.take()?;
        let (meeting, _) = self.source.end.meeting()?;
        meeting.leave_request(seat)
    }

    /// Returns whether the wait is still listed; has `waker` woken from now on.
    pub(in crate::channel) fn stays(&mut self, waker: &Waker) -> bool {
        match (self.listed.seat, self.source.end.meeting()) {
            (Some(seat), Some((meeting, _))) => meeting.stay_request(seat, waker),
            _ => self.listed.on.stay(&self.source.hub.readable, waker),
        }
    }

    /// Gives a wait up: what it got at a meeting goes to another, or back.
    #[inline(never)]
    pub(in crate::channel) fn leave(&mut self) {
        self.listed.is_lent = false;
        let got = self.withdraw();
        got.into_iter().for_each(|value| self.give_back(value));
        self.pass_on_unused();
    }

    fn pass_on_unused(&mut self) {
        self.listed.on.pass_on(&self.source.hub.readable);
    }

    fn give_back(&self, value: T) {
        if let Some((meeting, _)) = self.source.end.meeting() {
            meeting.give_back(value);
        }
    }
}

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
        let now = match self.sender.end.meeting() {
            Some(meeting) => meeting.glance_push(),
            // Room that only this sender takes stays, so if there is none now, there was none.
            None if !S::SHARES_SENDER => Some(0),
            // It stops being ready only by what others push.
            None => Some(self.sender.end.pushed()),
        };
        self.value.is_none() || self.sender.listed.is_same(now)
    }

    fn meets(&self) -> bool {
        self.value.is_some() && self.sender.end.meeting().is_some()
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

/// An arm that waits for a moment.
#[doc(hidden)]
#[derive(Debug)]
pub struct TimerArm<M, F> {
    timer: M,
    then: Option<F>,
    came: Option<Instant>,
}

impl<M, F> TimerArm<M, F> {
    pub(super) fn new(timer: M, then: F) -> Self {
        Self {
            timer,
            then: Some(then),
            came: None,
        }
    }
}

#[allow(private_interfaces)] // as `Arm`
impl<M: BorrowMut<Timer>, F> Arm for TimerArm<M, F> {
    fn attempt(&mut self) -> bool {
        self.came = self.timer.borrow_mut().try_recv().ok();
        self.came.is_some()
    }

    fn glance(&mut self) -> bool {
        // No other receiver can take its element.
        true
    }

    fn meets(&self) -> bool {
        false
    }

    fn list(&mut self, _: &Waker, _: Kind, _: Option<Stake>) -> bool {
        false
    }

    fn stay(&mut self, _: &Waker) -> bool {
        true
    }

    fn unlist(&mut self) {}

    fn settle(&mut self, _: bool) {}

    fn due(&self) -> Option<Instant> {
        self.timer.borrow().due
    }
}

impl<R, M: BorrowMut<Timer>, F: FnOnce(Instant) -> R> Choice<R> for TimerArm<M, F> {
    fn finish(&mut self) -> R {
        match (self.then.take(), self.came.take()) {
            (Some(then), Some(came)) => then(came),
            _ => unreachable!("the attempt left a moment, and it is used once"),
        }
    }
}
