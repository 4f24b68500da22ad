//! How tasks wait at a meeting, by polling. Threads do as a select with one arm.

use std::task::{Context, Poll};

use super::{Meeting, Offered, Seat, Wished};
use crate::channel::error::{RecvError, SendError};
use crate::wait::Signal;

impl<T> Meeting<T> {
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
