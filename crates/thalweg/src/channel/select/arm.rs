//! The arms of a select, as a list in a type.

use std::task::Waker;

use crate::channel::error::{RecvError, SendError, TrySendError};
use crate::channel::hub::Overflow;
use crate::channel::meeting::{Offered, Seat, Stake, Token, Wished};
use crate::channel::receiver::Receiver;
use crate::channel::sender::Sender;
use crate::channel::shape::Shape;
use crate::ring::PopError;
use crate::ring::sync::Arc;
use crate::wait::{Entry, Pace, Signal};

/// What a select does with its arms. Not to be implemented elsewhere, and not to be called.
#[doc(hidden)]
#[allow(private_interfaces)] // sealed: nobody outside can name what is asked for
pub trait Arms<R> {
    const COUNT: usize;

    /// Does the operation if it can be done now, and keeps the outcome.
    fn attempt(&mut self, at: usize) -> bool;
    /// Lists the arm; gives whether there is something to do at once. `token` only if some arm
    /// meets.
    fn list(&mut self, at: usize, waker: &Waker, token: Option<&Arc<Token>>) -> bool;
    /// Whether an attempt at some arm that is listed may succeed.
    fn is_ready(&mut self) -> bool;
    /// Has `waker` woken from now on; gives whether all arms are still listed.
    fn stay(&mut self, waker: &Waker) -> bool;
    /// Takes all arms off their lists.
    fn unlist(&mut self);
    /// Passes on the notifications that were not used; `fired` is the arm that did something.
    fn settle(&mut self, fired: usize);
    /// Whether an arm takes part in a rendezvous.
    fn meets(&self) -> bool;
    /// Calls the closure of the arm that did something.
    fn finish(&mut self, at: usize) -> R;
    /// How the first arm's endpoint waits.
    fn pace(&mut self) -> Option<&mut Pace>;
}

/// No arms yet.
#[doc(hidden)]
#[derive(Debug)]
pub struct NoArms;

#[allow(private_interfaces)] // as the trait
impl<R> Arms<R> for NoArms {
    const COUNT: usize = 0;

    fn attempt(&mut self, _: usize) -> bool {
        false
    }

    fn list(&mut self, _: usize, _: &Waker, _: Option<&Arc<Token>>) -> bool {
        false
    }

    fn is_ready(&mut self) -> bool {
        false
    }

    fn stay(&mut self, _: &Waker) -> bool {
        true
    }

    fn unlist(&mut self) {}

    fn settle(&mut self, _: usize) {}

    fn meets(&self) -> bool {
        false
    }

    fn finish(&mut self, at: usize) -> R {
        unreachable!("arm {at} was not found by an attempt")
    }

    fn pace(&mut self) -> Option<&mut Pace> {
        None
    }
}

/// One arm more.
#[doc(hidden)]
#[derive(Debug)]
pub struct List<N, A> {
    pub(super) rest: A,
    pub(super) arm: N,
}

#[allow(private_interfaces)] // as the trait
impl<R, N: Arm<R>, A: Arms<R>> Arms<R> for List<N, A> {
    const COUNT: usize = A::COUNT + 1;

    #[inline]
    fn attempt(&mut self, at: usize) -> bool {
        if at == A::COUNT {
            self.arm.attempt()
        } else {
            self.rest.attempt(at)
        }
    }

    fn list(&mut self, at: usize, waker: &Waker, token: Option<&Arc<Token>>) -> bool {
        if at == A::COUNT {
            self.arm.list(at, waker, token)
        } else {
            self.rest.list(at, waker, token)
        }
    }

    fn is_ready(&mut self) -> bool {
        self.arm.is_ready() || self.rest.is_ready()
    }

    fn stay(&mut self, waker: &Waker) -> bool {
        // Both, so that every list has the waker.
        let stays = self.arm.stay(waker);
        self.rest.stay(waker) && stays
    }

    fn unlist(&mut self) {
        self.arm.unlist();
        self.rest.unlist();
    }

    fn settle(&mut self, fired: usize) {
        self.arm.settle(fired == A::COUNT);
        self.rest.settle(fired);
    }

    fn meets(&self) -> bool {
        self.arm.meets() || self.rest.meets()
    }

    fn finish(&mut self, at: usize) -> R {
        if at == A::COUNT {
            self.arm.finish()
        } else {
            self.rest.finish(at)
        }
    }

    fn pace(&mut self) -> Option<&mut Pace> {
        self.rest.pace().or_else(|| Some(self.arm.pace()))
    }
}

/// One arm; see [`Arms`].
#[doc(hidden)]
#[allow(private_interfaces)] // as `Arms`
pub trait Arm<R> {
    fn attempt(&mut self) -> bool;
    fn list(&mut self, at: usize, waker: &Waker, token: Option<&Arc<Token>>) -> bool;
    fn is_ready(&mut self) -> bool;
    fn stay(&mut self, waker: &Waker) -> bool;
    fn unlist(&mut self);
    fn settle(&mut self, is_fired: bool);
    fn meets(&self) -> bool;
    fn finish(&mut self) -> R;
    fn pace(&mut self) -> &mut Pace;
}

/// Where an arm is listed.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) entry: Option<Entry>,
    seat: Option<Seat>,
    /// A notification that no look at this arm has used up.
    pub(super) owed: bool,
}

impl Listed {
    fn stay(&mut self, signal: &Signal, waker: &Waker) -> bool {
        match self.entry {
            Some(entry) if !signal.update(entry, waker) => {
                self.entry = None;
                self.owed = true;
                false
            }
            _ => !self.owed,
        }
    }

    pub(super) fn unlist(&mut self, signal: &Signal) {
        if let Some(entry) = self.entry.take() {
            self.owed |= !signal.unregister(entry);
        }
    }

    pub(super) fn pass_on(&mut self, signal: &Signal) {
        if std::mem::take(&mut self.owed) {
            signal.notify_one();
        }
    }
}

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
        self.unlist();
        self.listed.pass_on(&self.sender.gate.writable);
    }
}
