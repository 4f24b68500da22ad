//! Sending several elements at a time.

use super::error::SendManyError;
use super::hub::{Gate, Hub, Overflow};
use super::send_end::SendEnd;
use super::sender::Sender;
use super::shape::Shape;

impl<T, S: Shape> Sender<T, S> {
    /// Sends all elements of an iterator, in batches where there is room; waits as needed. One
    /// wake-up and one look at the receiver's index serve a whole batch.
    ///
    /// Under [`Overflow::Reject`] it stops at the first that does not fit; policies that drop are
    /// applied element by element.
    ///
    /// # Errors
    /// How many were sent before the channel was disconnected (or full, under `Reject`), and the
    /// element after those. Pass `&mut iterator` to keep the rest.
    pub fn send_many(
        &mut self,
        values: impl IntoIterator<Item = T>,
    ) -> Result<(), SendManyError<T>> {
        let mut values = values.into_iter();
        let mut sent = 0;
        loop {
            sent += self.push_some(&mut values);
            // Full, closed, or no more values: only the next value can tell.
            let Some(value) = values.next() else {
                return Ok(());
            };
            self.send(value)
                .map_err(|error| SendManyError { sent, error })?;
            sent += 1;
        }
    }

    /// Sends elements of an iterator while there is room; gives how many. Takes nothing from the
    /// iterator that is not sent. A disconnected channel takes 0, and so does a rendezvous, which
    /// has no room; [`try_send_slice`](Self::try_send_slice) sends to those who wait there.
    pub fn try_send_many(&mut self, values: impl IntoIterator<Item = T>) -> usize {
        self.push_some(&mut values.into_iter())
    }

    fn push_some(&mut self, values: &mut impl Iterator<Item = T>) -> usize {
        if self.hub.habits.overflow == Overflow::DropOldest {
            return self.push_each(values);
        }
        let rescue = Rescue {
            end: &mut self.end,
            hub: &self.hub,
            gate: &self.gate,
        };
        let pushed = rescue.end.push_iter(values);
        std::mem::forget(rescue);
        match self.end {
            // Room that was set aside and not used may have made another sender wait.
            SendEnd::Locked(_) => self.pass_on(),
            SendEnd::Ticket(_) => {
                self.gate.notify_room(1);
                if pushed == 0 && must_tell_unhidden() {
                    // It may also have hidden what others sent behind it.
                    self.tell(1);
                }
            }
            _ => {}
        }
        self.sent(pushed)
    }

    /// One by one: room that is claimed and not used would look like elements that were dropped.
    fn push_each(&mut self, values: &mut impl Iterator<Item = T>) -> usize {
        let mut pushed = 0;
        while self.end.is_ready()
            && !self.end.is_closed()
            && let Some(value) = values.next()
            // Fails only if the channel is closed at this very moment.
            && self.try_send(value).is_ok()
        {
            pushed += 1;
        }
        pushed
    }

    fn sent(&mut self, count: usize) -> usize {
        if count > 0 {
            self.tell(count);
            if self.soft_limit != usize::MAX {
                self.balance();
            }
        }
        count
    }

    /// Wakes receivers for so many elements.
    #[inline]
    fn tell(&mut self, count: usize) {
        if self.hub.readable.notify_or_shut(count) {
            self.discard_late();
        }
    }

    /// Sends all elements of a slice; as [`send_many`](Self::send_many).
    ///
    /// # Errors
    /// How many were sent before the channel was disconnected (or full, under `Reject`), and the
    /// element after those.
    pub fn send_slice(&mut self, values: &[T]) -> Result<(), SendManyError<T>>
    where
        T: Copy,
    {
        let mut sent = 0;
        while sent < values.len() {
            sent += self.try_send_slice(&values[sent..]);
            if let Some(&value) = values.get(sent) {
                self.send(value)
                    .map_err(|error| SendManyError { sent, error })?;
                sent += 1;
            }
        }
        Ok(())
    }

    /// Sends elements from the front of a slice while there is room; gives how many.
    pub fn try_send_slice(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        let pushed = self.end.push_slice(values);
        self.sent(pushed)
    }
}

fn must_tell_unhidden() -> bool {
    #[cfg(any(loom, shuttle))]
    if crate::ring::sync::fault::is("unhidden_untold") {
        return false;
    }
    true
}

/// When the caller's iterator panics: what it gave before is sent, and room that was set aside for
/// more has come back; nobody may sleep on.
struct Rescue<'s, T> {
    end: &'s mut SendEnd<T>,
    hub: &'s Hub,
    gate: &'s Gate,
}

impl<T> Drop for Rescue<'_, T> {
    fn drop(&mut self) {
        if self.hub.readable.notify_or_shut(usize::MAX) {
            self.end.discard_late(self.gate);
        }
        self.gate.writable.notify_all();
    }
}
