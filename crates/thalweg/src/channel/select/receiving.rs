//! The receiving arm of a select.

use std::task::Waker;

use super::arm::{Arm, Listed};
use crate::channel::error::RecvError;
use crate::channel::meeting::{Stake, Token, Wished};
use crate::channel::receiver::Receiver;
use crate::channel::shape::Shape;
use crate::ring::PopError;
use crate::ring::sync::{Arc, is_model_over};
use crate::wait::Pace;

/// Receiving.
#[doc(hidden)]
#[derive(Debug)]
pub struct RecvArm<'a, T, S: Shape, F> {
    receiver: &'a mut Receiver<T, S>,
    then: Option<F>,
    outcome: Option<Result<T, RecvError>>,
    listed: Listed,
}

impl<'a, T, S: Shape, F> RecvArm<'a, T, S, F> {
    pub(super) fn new(receiver: &'a mut Receiver<T, S>, then: F) -> Self {
        Self {
            receiver,
            then: Some(then),
            outcome: None,
            listed: Listed::default(),
        }
    }

    fn unlist(&mut self) {
        let source = &self.receiver.source;
        self.listed.unlist(&source.hub.readable);
        if let Some(seat) = self.listed.seat.take()
            && let Some((meeting, _)) = source.end.meeting()
            && let Some(value) = meeting.leave_wish(seat)
        {
            self.outcome = Some(Ok(value));
        }
    }
}

#[allow(private_interfaces)] // as `Arms`
impl<R, T, S: Shape, F: FnOnce(Result<T, RecvError>) -> R> Arm<R> for RecvArm<'_, T, S, F> {
    #[inline]
    fn attempt(&mut self) -> bool {
        self.listed.owed = false;
        let outcome = match self.receiver.source.pop() {
            Ok(value) => Ok(value),
            Err(PopError::Closed) => Err(RecvError),
            Err(PopError::Empty) => return false,
        };
        self.outcome = Some(outcome);
        true
    }

    fn list(&mut self, at: usize, waker: &Waker, token: Option<&Arc<Token>>) -> bool {
        let source = &self.receiver.source;
        let Some((meeting, gate)) = source.end.meeting() else {
            self.listed.entry = Some(source.hub.readable.register(waker));
            return false;
        };
        match meeting.wish(waker, Stake::of(token, at)) {
            Wished::Listed(seat) => {
                self.listed.seat = Some(seat);
                gate.writable.notify_all();
                return false;
            }
            Wished::Met(value) => self.outcome = Some(Ok(value)),
            Wished::Closed | Wished::Gone => {}
        }
        true
    }

    fn is_ready(&mut self) -> bool {
        // At a meeting, it has looked when it was listed.
        self.listed.entry.is_some() && self.receiver.source.end.is_ready()
    }

    fn stay(&mut self, waker: &Waker) -> bool {
        let source = &self.receiver.source;
        match (self.listed.seat, source.end.meeting()) {
            (Some(seat), Some((meeting, _))) => meeting.stay_wish(seat, waker),
            _ => self.listed.stay(&source.hub.readable, waker),
        }
    }

    fn unlist(&mut self) {
        self.unlist();
    }

    fn settle(&mut self, is_fired: bool) {
        let source = &self.receiver.source;
        self.listed.pass_on(&source.hub.readable);
        if is_fired {
            source.pass_on();
        }
    }

    fn meets(&self) -> bool {
        self.receiver.source.end.meeting().is_some()
    }

    fn finish(&mut self) -> R {
        match (self.then.take(), self.outcome.take()) {
            (Some(then), Some(outcome)) => then(outcome),
            _ => unreachable!("the attempt left an outcome, and it is used once"),
        }
    }

    fn pace(&mut self) -> &mut Pace {
        &mut self.receiver.pace
    }
}

impl<T, S: Shape, F> Drop for RecvArm<'_, T, S, F> {
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        self.unlist();
        let source = &self.receiver.source;
        self.listed.pass_on(&source.hub.readable);
        // Given up: what it got at a meeting goes to another, or back.
        if let Some(Ok(value)) = self.outcome.take()
            && let Some((meeting, _)) = source.end.meeting()
        {
            meeting.give_back(value);
            source.hub.readable.notify_all();
        }
    }
}
