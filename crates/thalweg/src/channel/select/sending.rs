//! The sending arm of a select.

use std::task::Waker;

use super::arm::{Arm, Listed};
use crate::channel::error::{SendError, TrySendError};
use crate::channel::hub::Overflow;
use crate::channel::meeting::{Offered, Stake, Token};
use crate::channel::sender::Sender;
use crate::channel::shape::Shape;
use crate::ring::sync::{Arc, is_model_over};
use crate::wait::Pace;

/// Sending.
#[doc(hidden)]
#[derive(Debug)]
pub struct SendArm<'a, T, S: Shape, F> {
    sender: &'a mut Sender<T, S>,
    value: &'a mut Option<T>,
    then: Option<F>,
    outcome: Option<Result<(), SendError<()>>>,
    listed: Listed,
}

impl<'a, T, S: Shape, F> SendArm<'a, T, S, F> {
    pub(super) fn new(sender: &'a mut Sender<T, S>, value: &'a mut Option<T>, then: F) -> Self {
        Self {
            sender,
            value,
            then: Some(then),
            outcome: None,
            listed: Listed::default(),
        }
    }

    fn unlist(&mut self) {
        self.listed.unlist(&self.sender.gate.writable);
        if let Some(seat) = self.listed.seat.take()
            && let Some(meeting) = self.sender.end.meeting()
        {
            match meeting.leave_offer(seat) {
                Some(value) => *self.value = Some(value),
                None => self.outcome = Some(Ok(())),
            }
        }
    }
}

#[allow(private_interfaces)] // as `Arms`
impl<R, T, S: Shape, F> Arm<R> for SendArm<'_, T, S, F>
where
    F: FnOnce(Result<(), SendError<()>>) -> R,
{
    fn attempt(&mut self) -> bool {
        let Some(value) = self.value.take() else {
            return false;
        };
        self.listed.owed = false;
        let outcome = match self.sender.push_once(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(value)) => {
                *self.value = Some(value);
                Err(SendError::Disconnected(()))
            }
            Err(TrySendError::Full(value)) => {
                *self.value = Some(value);
                if self.sender.hub.habits.overflow != Overflow::Reject {
                    return false;
                }
                self.sender.gate.count_refused();
                Err(SendError::Full(()))
            }
        };
        self.outcome = Some(outcome);
        true
    }

    fn list(&mut self, at: usize, waker: &Waker, token: Option<&Arc<Token>>) -> bool {
        let Some(meeting) = self.sender.end.meeting() else {
            if self.value.is_some() {
                self.listed.entry = Some(self.sender.gate.writable.register(waker));
            }
            return false;
        };
        let Some(value) = self.value.take() else {
            return false;
        };
        match meeting.offer(value, waker, Stake::of(token, at)) {
            Offered::Listed(seat) => {
                self.listed.seat = Some(seat);
                self.sender.hub.readable.notify_all();
                return false;
            }
            Offered::Met => self.outcome = Some(Ok(())),
            Offered::Closed(value) | Offered::Gone(value) => *self.value = Some(value),
        }
        true
    }

    fn is_ready(&mut self) -> bool {
        // At a meeting, it has looked when it was listed.
        self.listed.entry.is_some() && self.sender.end.is_ready()
    }

    fn stay(&mut self, waker: &Waker) -> bool {
        match (self.listed.seat, self.sender.end.meeting()) {
            (Some(seat), Some(meeting)) => meeting.stay_offer(seat, waker),
            _ => self.listed.stay(&self.sender.gate.writable, waker),
        }
    }

    fn unlist(&mut self) {
        self.unlist();
    }

    fn settle(&mut self, is_fired: bool) {
        self.listed.pass_on(&self.sender.gate.writable);
        if is_fired {
            self.sender.pass_on();
        }
    }

    fn meets(&self) -> bool {
        self.sender.end.meeting().is_some() && self.value.is_some()
    }

    fn finish(&mut self) -> R {
        match (self.then.take(), self.outcome.take()) {
            (Some(then), Some(outcome)) => then(outcome),
            _ => unreachable!("the attempt left an outcome, and it is used once"),
        }
    }

    fn pace(&mut self) -> &mut Pace {
        &mut self.sender.pace
    }
}

impl<T, S: Shape, F> Drop for SendArm<'_, T, S, F> {
    fn drop(&mut self) {
        if is_model_over() {
            return;
        }
        self.unlist();
        self.listed.pass_on(&self.sender.gate.writable);
    }
}
