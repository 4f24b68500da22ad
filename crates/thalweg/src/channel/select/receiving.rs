//! The receiving arm of a select.

use std::task::Waker;
use std::time::Instant;

use super::arm::{Arm, Choice, Listed, Meets, Untimed};
use super::ready::Watched;
use super::{Select, SelectTimeout};
use crate::channel::error::{RecvError, RecvTimeoutError};
use crate::channel::meeting::Stake;
use crate::channel::receiver::Receiver;
use crate::channel::shape::Shape;
use crate::ring::PopError;
use crate::ring::sync::{fault, is_model_over};
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
        let now = self.receiver.glance();
        self.receiver.listed.is_same(now)
    }

    fn meets(&self) -> Meets {
        self.receiver.meets()
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
        let Some((meeting, gate)) = self.source.end.meeting() else {
            listed.on.register(&self.source.hub.readable, waker, kind);
            return (false, None);
        };
        match meeting.request(waker, stake) {
            Err(seat) => {
                listed.seat = Some(seat);
                if fault::is("request_unnotified") {
                    return (false, None);
                }
                gate.writable.notify_all();
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

#[allow(private_interfaces)] // as `Arm`
impl<T, S: Shape> Watched for Receiver<T, S> {
    fn is_ready(&mut self) -> bool {
        self.source.is_ready()
    }

    fn glance(&self) -> Option<u64> {
        match self.source.end.meeting() {
            Some((meeting, _)) => meeting.glance_pop(),
            // Only this receiver takes elements, so they stay, and an arm that is not ready now
            // never was.
            None if !S::SHARES_RECEIVER && self.source.keeps() => Some(0),
            // It stops being ready only by what others take.
            None => Some(self.source.end.moves()),
        }
    }

    fn meets(&self) -> Meets {
        match self.source.end.meeting() {
            Some(_) => Meets::Yes,
            None => Meets::No,
        }
    }

    fn listed(&mut self) -> &mut Listed {
        &mut self.listed
    }

    fn list(&mut self, waker: &Waker, kind: Kind, stake: Option<Stake>) -> bool {
        if fault::is("ready_request") {
            (self.listed.on).register(&self.source.hub.readable, waker, kind);
            return false;
        }
        let (is_over, got) = self.request(waker, kind, stake);
        got.into_iter().for_each(|value| self.give_back(value));
        is_over
    }

    fn stay(&mut self, waker: &Waker) -> bool {
        self.stays(waker)
    }

    fn unlist(&mut self) {
        let got = self.withdraw();
        got.into_iter().for_each(|value| self.give_back(value));
    }

    fn pass_on_unused(&mut self) {
        self.pass_on_unused();
    }

    fn lend(&mut self) {
        self.lend();
    }

    fn leave(&mut self) {
        self.leave();
    }
}
