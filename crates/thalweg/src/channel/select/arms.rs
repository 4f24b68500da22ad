//! The arms of a select: one that receives, one that sends, and one that waits for a moment.

use std::borrow::BorrowMut;
use std::task::Waker;
use std::time::Instant;

use super::round::{Arm, Choice, Untimed};
use super::{Select, SelectTimeout, Timer};
use crate::channel::error::{RecvError, RecvTimeoutError, SendError, SendTimeoutError};
use crate::channel::hub::{Overflow, Shape};
use crate::channel::receiver::Receiver;
use crate::channel::rendezvous::ArmRef;
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
        self.receiver.registration.in_event_count.mark_used();
        let outcome = match self.receiver.source.pop() {
            Ok(value) => Ok(value),
            Err(PopError::Closed) => Err(RecvError),
            Err(PopError::Empty) => return false,
        };
        self.outcome = Some(outcome);
        true
    }

    fn is_unchanged(&mut self) -> bool {
        let source = &self.receiver.source;
        let now = match source.end.rendezvous() {
            Some((rendezvous, _)) => rendezvous.pop_version(),
            // Only this receiver pops elements, so they stay, and an arm that is not ready now was
            // not ready before.
            None if !S::SHARES_RECEIVER && source.keeps() => Some(0),
            // It stops being ready only when other receivers pop.
            None => Some(source.end.moves()),
        };
        self.receiver.registration.is_same(now)
    }

    fn is_rendezvous(&self) -> bool {
        self.receiver.source.end.rendezvous().is_some()
    }

    fn register(&mut self, waker: &Waker, kind: Kind, arm_ref: Option<ArmRef>) -> bool {
        let (is_over, got) = self.receiver.request(waker, kind, arm_ref);
        self.outcome = got.map(Ok);
        is_over
    }

    fn update(&mut self, waker: &Waker) -> bool {
        self.receiver.update_waker(waker)
    }

    fn unregister(&mut self) {
        if let Some(value) = self.receiver.unregister() {
            self.outcome = Some(Ok(value));
        }
    }

    fn finish_wait(&mut self, is_fired: bool) {
        self.receiver.pass_on_notification();
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
        self.unregister();
        self.receiver.cancel_wait();
        // The select was dropped: an element that it got at a rendezvous goes to another receiver,
        // or back.
        if let Some(Ok(value)) = self.outcome.take() {
            self.receiver.give_back(value);
        }
    }
}

impl<T, S: Shape> Receiver<T, S> {
    /// Receives at a rendezvous: waits for a sender.
    pub(in crate::channel) fn rendezvous(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<T, RecvTimeoutError> {
        match Select::new()
            .recv(self, |got| got)
            .wait_after_check(deadline)
        {
            Ok(got) => Ok(got?),
            Err(SelectTimeout) => Err(RecvTimeoutError::Timeout),
        }
    }

    /// Lends the receiver to a wait, after an earlier one that was forgotten is cancelled.
    pub(in crate::channel) fn lend(&mut self) -> &mut Self {
        self.cancel_forgotten();
        self.registration.is_lent = true;
        self
    }

    /// Cancels a wait that was forgotten, if there is one.
    #[inline]
    pub(in crate::channel) fn cancel_forgotten(&mut self) {
        if self.registration.is_lent {
            self.cancel_wait();
        }
    }

    /// Registers a wait; returns whether it is over, and the element that was received at a
    /// rendezvous.
    pub(in crate::channel) fn request(
        &mut self,
        waker: &Waker,
        kind: Kind,
        arm_ref: Option<ArmRef>,
    ) -> (bool, Option<T>) {
        let registration = &mut self.registration;
        let Some((rendezvous, _)) = self.source.end.rendezvous() else {
            registration
                .in_event_count
                .register(&self.source.hub.readable, waker, kind);
            return (false, None);
        };
        match rendezvous.request(waker, arm_ref) {
            Err(entry) => {
                registration.at_rendezvous = Some(entry);
                (false, None)
            }
            Ok(got) => (true, got),
        }
    }

    /// Unregisters a wait; returns the element that it received at a rendezvous.
    pub(in crate::channel) fn unregister(&mut self) -> Option<T> {
        self.registration
            .in_event_count
            .unregister(&self.source.hub.readable);
        let entry = self.registration.at_rendezvous.take()?;
        let (rendezvous, _) = self.source.end.rendezvous()?;
        rendezvous.leave_request(entry)
    }

    /// Replaces the waker; returns whether the wait is still registered.
    pub(in crate::channel) fn update_waker(&mut self, waker: &Waker) -> bool {
        match (
            self.registration.at_rendezvous,
            self.source.end.rendezvous(),
        ) {
            (Some(entry), Some((rendezvous, _))) => rendezvous.stay_request(entry, waker),
            _ => self
                .registration
                .in_event_count
                .update(&self.source.hub.readable, waker),
        }
    }

    /// Cancels a wait: an element that it received at a rendezvous goes to another receiver, or
    /// back.
    #[inline(never)]
    pub(in crate::channel) fn cancel_wait(&mut self) {
        self.registration.is_lent = false;
        let got = self.unregister();
        got.into_iter().for_each(|value| self.give_back(value));
        self.pass_on_notification();
    }

    fn pass_on_notification(&mut self) {
        self.registration
            .in_event_count
            .pass_on(&self.source.hub.readable);
    }

    fn give_back(&self, value: T) {
        if let Some((rendezvous, _)) = self.source.end.rendezvous() {
            rendezvous.give_back(value);
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
        self.sender.registration.in_event_count.mark_used();
        let outcome = match self.sender.push_once(value) {
            Ok(()) => Ok(()),
            Err(SendError::Disconnected(value)) => {
                *self.value = Some(value);
                Err(SendError::Disconnected(()))
            }
            Err(SendError::Full(value)) => {
                *self.value = Some(value);
                if self.sender.hub.settings.overflow != Overflow::Reject {
                    return false;
                }
                self.sender.gate.refused.add(1);
                Err(SendError::Full(()))
            }
        };
        self.outcome = Some(outcome);
        true
    }

    fn is_unchanged(&mut self) -> bool {
        let now = match self.sender.end.rendezvous() {
            Some(rendezvous) => rendezvous.push_version(),
            // Only this sender takes slots, so free ones stay, and an arm that is not ready now was
            // not ready before.
            None if !S::SHARES_SENDER => Some(0),
            // It stops being ready only when other senders push.
            None => Some(self.sender.end.pushed()),
        };
        self.value.is_none() || self.sender.registration.is_same(now)
    }

    fn is_rendezvous(&self) -> bool {
        self.value.is_some() && self.sender.end.rendezvous().is_some()
    }

    fn register(&mut self, waker: &Waker, kind: Kind, arm_ref: Option<ArmRef>) -> bool {
        let is_over = (self.sender).offer(self.value, waker, kind, arm_ref);
        if is_over && self.value.is_none() {
            self.outcome = Some(Ok(()));
        }
        is_over
    }

    fn update(&mut self, waker: &Waker) -> bool {
        self.sender.update_waker(waker)
    }

    fn unregister(&mut self) {
        if self.sender.unregister(self.value) {
            self.outcome = Some(Ok(()));
        }
    }

    fn finish_wait(&mut self, is_fired: bool) {
        self.sender.pass_on_notification();
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
        self.sender.cancel_wait(self.value);
    }
}

impl<T, S: Shape> Sender<T, S> {
    /// Sends at a rendezvous: waits for a receiver.
    pub(in crate::channel) fn rendezvous(
        &mut self,
        value: T,
        deadline: Option<Instant>,
    ) -> Result<(), SendTimeoutError<T>> {
        let mut value = Some(value);
        let select = Select::new().send(self, &mut value, |sent| sent);
        let outcome = select.wait_after_check(deadline);
        let Some(value) = value else {
            return Ok(());
        };
        if outcome == Err(SelectTimeout) {
            self.gate.refused.add(1);
            return Err(SendTimeoutError::Timeout(value));
        }
        Err(SendTimeoutError::Disconnected(value))
    }

    /// Lends the sender to a wait or a claim, after an earlier one that was forgotten is cancelled.
    pub(in crate::channel) fn lend(&mut self) -> &mut Self {
        self.cancel_forgotten();
        self.registration.is_lent = true;
        self
    }

    /// Cancels a wait or a claim that was forgotten, if there is one.
    #[inline]
    pub(in crate::channel) fn cancel_forgotten(&mut self) {
        if self.registration.is_lent {
            self.cancel_lent();
        }
    }

    /// Cancels what was forgotten. Not inlined: it needs stack for an element, which may be too
    /// much for a thread that drops a sender.
    #[cold]
    #[inline(never)]
    fn cancel_lent(&mut self) {
        self.give_up_claim();
        self.cancel_wait(&mut None);
    }

    /// Registers a wait for a slot for the element in `value`; at a rendezvous it takes the
    /// element. Returns whether the wait is over: then the element is back, unless a receiver has
    /// it.
    pub(in crate::channel) fn offer(
        &mut self,
        value: &mut Option<T>,
        waker: &Waker,
        kind: Kind,
        arm_ref: Option<ArmRef>,
    ) -> bool {
        let registration = &mut self.registration;
        if value.is_none() {
            return false;
        }
        let Some(rendezvous) = self.end.rendezvous() else {
            registration
                .in_event_count
                .register(&self.gate.writable, waker, kind);
            return false;
        };
        // The waker is cloned before the element is taken, since that may panic.
        let (waker, Some(element)) = (waker.clone(), value.take()) else {
            return false;
        };
        match rendezvous.offer(element, waker, arm_ref) {
            Ok(entry) => registration.at_rendezvous = entry,
            Err(back) => *value = Some(back),
        }
        registration.at_rendezvous.is_none()
    }

    /// Unregisters a wait; returns whether a receiver has the element. Else it is back in `value`.
    pub(in crate::channel) fn unregister(&mut self, value: &mut Option<T>) -> bool {
        self.registration
            .in_event_count
            .unregister(&self.gate.writable);
        let (Some(entry), Some(rendezvous)) = (
            self.registration.at_rendezvous.take(),
            self.end.rendezvous(),
        ) else {
            return false;
        };
        *value = rendezvous.leave_offer(entry);
        value.is_none()
    }

    /// Replaces the waker; returns whether the wait is still registered.
    pub(in crate::channel) fn update_waker(&mut self, waker: &Waker) -> bool {
        match (self.registration.at_rendezvous, self.end.rendezvous()) {
            (Some(entry), Some(rendezvous)) => rendezvous.stay_offer(entry, waker),
            _ => self
                .registration
                .in_event_count
                .update(&self.gate.writable, waker),
        }
    }

    /// Cancels a wait; an element that waited at a rendezvous is put back into `value`.
    #[inline(never)]
    pub(in crate::channel) fn cancel_wait(&mut self, value: &mut Option<T>) {
        self.registration.is_lent = false;
        if self.registration.at_rendezvous.is_some() {
            self.unregister(value);
        }
        self.registration.in_event_count.cancel(&self.gate.writable);
    }

    fn pass_on_notification(&mut self) {
        self.registration
            .in_event_count
            .pass_on(&self.gate.writable);
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

    fn is_unchanged(&mut self) -> bool {
        // No other thread uses the timer.
        true
    }

    fn is_rendezvous(&self) -> bool {
        false
    }

    fn register(&mut self, _: &Waker, _: Kind, _: Option<ArmRef>) -> bool {
        false
    }

    fn update(&mut self, _: &Waker) -> bool {
        true
    }

    fn unregister(&mut self) {}

    fn finish_wait(&mut self, _: bool) {}

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
