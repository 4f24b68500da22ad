//! The sending arm of a select.

use std::task::Waker;
use std::time::Instant;

use super::arm::{Arm, Choice, Listed, Untimed};
use super::ready::Watched;
use super::{Select, SelectTimeout};
use crate::channel::error::{SendError, SendTimeoutError, TrySendError};
use crate::channel::hub::Overflow;
use crate::channel::meeting::{Offered, Stake};
use crate::channel::sender::Sender;
use crate::channel::shape::Shape;
use crate::ring::sync::is_model_over;
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
}

#[allow(private_interfaces)] // as `Arm`
impl<T, S: Shape, F> Arm for SendArm<'_, T, S, F> {
    fn attempt(&mut self) -> bool {
        if self.outcome.is_some() {
            // Somebody else has fired it.
            return true;
        }
        let Some(value) = self.value.take() else {
            return false;
        };
        self.listed.used_up();
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

    fn glance(&mut self) -> bool {
        self.value.is_none() || self.listed.is_same(self.sender.glance())
    }

    fn meets(&self) -> bool {
        self.value.is_some() && self.sender.end.meeting().is_some()
    }

    fn list(&mut self, waker: &Waker, stake: Option<Stake>) -> bool {
        let Some(meeting) = self.sender.end.meeting() else {
            if self.value.is_some() {
                self.listed.register(&self.sender.gate.writable, waker);
            }
            return false;
        };
        let Some(value) = self.value.take() else {
            return false;
        };
        match meeting.offer(value, waker, stake) {
            Offered::Listed(seat) => {
                self.listed.seat = Some(seat);
                return false;
            }
            Offered::Met => self.outcome = Some(Ok(())),
            Offered::Closed(value) | Offered::Gone(value) => *self.value = Some(value),
        }
        true
    }

    fn stay(&mut self, waker: &Waker) -> bool {
        match (self.listed.seat, self.sender.end.meeting()) {
            (Some(seat), Some(meeting)) => meeting.stay_offer(seat, waker),
            _ => self.listed.stay(&self.sender.gate.writable, waker),
        }
    }

    fn unlist(&mut self) {
        self.listed.unregister(&self.sender.gate.writable);
        if let Some(seat) = self.listed.seat.take()
            && let Some(meeting) = self.sender.end.meeting()
        {
            match meeting.leave_offer(seat) {
                Some(value) => *self.value = Some(value),
                None => self.outcome = Some(Ok(())),
            }
        }
    }

    fn settle(&mut self, is_fired: bool) {
        self.sender.pass_on_of(&mut self.listed);
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
        self.unlist();
        self.sender.pass_on_of(&mut self.listed);
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
            self.gate.count_refused();
            return Err(SendTimeoutError::Timeout(value));
        }
        Err(SendTimeoutError::Disconnected(value))
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
            // It stops being ready only by what others push.
            None => Some(self.end.pushed()),
        }
    }

    fn meets(&self) -> bool {
        // It has nothing to offer, and watches for wishes.
        false
    }

    fn list(&mut self, listed: &mut Listed, waker: &Waker, _: Option<Stake>) -> bool {
        listed.register(&self.gate.writable, waker);
        false
    }

    fn stay(&self, listed: &mut Listed, waker: &Waker) -> bool {
        listed.stay(&self.gate.writable, waker)
    }

    fn unlist(&mut self, listed: &mut Listed) {
        listed.unregister(&self.gate.writable);
    }

    fn pass_on_of(&self, listed: &mut Listed) {
        listed.pass_on(&self.gate.writable);
    }
}
