//! How the two ends of a channel wait at a meeting: threads here, tasks by polling.

use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::{Meeting, Offered, Seat, Wished};
use crate::channel::error::{RecvError, RecvTimeoutError, SendError, SendTimeoutError};
use crate::ring::sync::is_model_over;
use crate::wait::{Listing, Pace, Signal, block_listed};

/// A thread that waits with an element.
struct Offering<'m, T> {
    meeting: &'m Meeting<T>,
    value: Option<T>,
    seat: Option<Seat>,
}

/// The meeting was closed.
#[derive(Debug)]
struct IsClosed;

impl<T> Listing for Offering<'_, T> {
    type Found = Result<(), IsClosed>;

    fn spins_listed(&mut self) -> bool {
        true
    }

    fn look(&mut self) -> Option<Self::Found> {
        None
    }

    fn list(&mut self, waker: &Waker) -> Option<Self::Found> {
        let value = self.value.take()?;
        match self.meeting.offer(value, waker, None) {
            Offered::Met => return Some(Ok(())),
            Offered::Closed(value) => {
                self.value = Some(value);
                return Some(Err(IsClosed));
            }
            // Only who has a token is told so.
            Offered::Gone(value) => self.value = Some(value),
            Offered::Listed(seat) => self.seat = Some(seat),
        }
        None
    }

    fn leave(&mut self) -> Option<Self::Found> {
        let seat = self.seat.take()?;
        match self.meeting.leave_offer(seat) {
            None => Some(Ok(())),
            Some(value) => {
                self.value = Some(value);
                self.meeting.is_closed().then_some(Err(IsClosed))
            }
        }
    }
}

impl<T> Drop for Offering<'_, T> {
    fn drop(&mut self) {
        if !is_model_over() {
            self.leave();
        }
    }
}

/// A thread that waits for an element.
struct Wishing<'m, T> {
    meeting: &'m Meeting<T>,
    /// Those who wait until they could send.
    watchers: &'m Signal,
    seat: Option<Seat>,
}

impl<T> Listing for Wishing<'_, T> {
    type Found = Result<T, IsClosed>;

    fn spins_listed(&mut self) -> bool {
        true
    }

    fn look(&mut self) -> Option<Self::Found> {
        None
    }

    fn list(&mut self, waker: &Waker) -> Option<Self::Found> {
        match self.meeting.wish(waker, None) {
            Wished::Met(value) => Some(Ok(value)),
            Wished::Closed => Some(Err(IsClosed)),
            // Only who has a token is told so.
            Wished::Gone => None,
            Wished::Listed(seat) => {
                self.seat = Some(seat);
                self.watchers.notify_all();
                None
            }
        }
    }

    fn leave(&mut self) -> Option<Self::Found> {
        let seat = self.seat.take()?;
        match self.meeting.leave_wish(seat) {
            Some(value) => Some(Ok(value)),
            None => self.meeting.is_closed().then_some(Err(IsClosed)),
        }
    }
}

impl<T> Drop for Wishing<'_, T> {
    fn drop(&mut self) {
        if !is_model_over()
            && let Some(Ok(value)) = self.leave()
        {
            // A panic in between.
            self.meeting.give_back(value);
        }
    }
}

impl<T> Meeting<T> {
    /// Waits until a receiver has the element.
    pub(in crate::channel) fn send(
        &self,
        value: T,
        pace: &mut Pace,
        deadline: Option<Instant>,
    ) -> Result<(), SendTimeoutError<T>> {
        let mut offering = Offering {
            meeting: self,
            value: Some(value),
            seat: None,
        };
        let outcome = block_listed(&mut offering, pace, deadline);
        match (outcome, offering.value.take()) {
            // A receiver has it.
            (_, None) => Ok(()),
            (Ok(_), Some(value)) => Err(SendTimeoutError::Disconnected(value)),
            (Err(_), Some(value)) => Err(SendTimeoutError::Timeout(value)),
        }
    }

    /// Waits for the element of a sender.
    pub(in crate::channel) fn recv(
        &self,
        pace: &mut Pace,
        deadline: Option<Instant>,
        watchers: &Signal,
    ) -> Result<T, RecvTimeoutError> {
        let mut wishing = Wishing {
            meeting: self,
            watchers,
            seat: None,
        };
        match block_listed(&mut wishing, pace, deadline) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(IsClosed)) => Err(RecvTimeoutError::Disconnected),
            Err(_) => Err(RecvTimeoutError::Timeout),
        }
    }

    /// Whether the element in `value` was sent; it is put back if not. While it waits, the element
    /// is with its offer.
    pub(in crate::channel) fn poll_send(
        &self,
        value: &mut Option<T>,
        seat: &mut Option<Seat>,
        context: &Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        let waker = context.waker();
        if let Some(listed) = *seat {
            if self.stay_offer(listed, waker) {
                return Poll::Pending;
            }
            *seat = None;
            match self.leave_offer(listed) {
                None => return Poll::Ready(Ok(())),
                back => *value = back,
            }
        }
        let Some(element) = value.take() else {
            return Poll::Ready(Ok(()));
        };
        match self.offer(element, waker, None) {
            Offered::Met => Poll::Ready(Ok(())),
            Offered::Closed(element) | Offered::Gone(element) => {
                Poll::Ready(Err(SendError::Disconnected(element)))
            }
            Offered::Listed(listed) => {
                *seat = Some(listed);
                Poll::Pending
            }
        }
    }

    pub(in crate::channel) fn poll_recv(
        &self,
        seat: &mut Option<Seat>,
        context: &Context<'_>,
        watchers: &Signal,
    ) -> Poll<Result<T, RecvError>> {
        let waker = context.waker();
        if let Some(listed) = *seat {
            if self.stay_wish(listed, waker) {
                return Poll::Pending;
            }
            *seat = None;
            if let Some(value) = self.leave_wish(listed) {
                return Poll::Ready(Ok(value));
            }
        }
        match self.wish(waker, None) {
            Wished::Met(value) => Poll::Ready(Ok(value)),
            Wished::Closed | Wished::Gone => Poll::Ready(Err(RecvError)),
            Wished::Listed(listed) => {
                *seat = Some(listed);
                watchers.notify_all();
                Poll::Pending
            }
        }
    }

    /// A task that waits for an element goes; what it got meanwhile goes to another, or back.
    pub(in crate::channel) fn cancel_recv(&self, seat: Option<Seat>) {
        if let Some(value) = seat.and_then(|seat| self.leave_wish(seat)) {
            #[cfg(any(loom, shuttle))]
            if crate::ring::sync::fault::is("meeting_give_back") {
                return;
            }
            self.give_back(value);
        }
    }
}
