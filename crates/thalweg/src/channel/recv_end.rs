//! The stores behind receivers, one face for all; senders' are in `send_end`. The ring of one
//! sender and one receiver comes first in every `match`, and the rest is kept off its path.

use super::hub::Gate;
use super::lanes::{Lane, LaneReceiver};
use super::locked::Locked;
use super::meeting::Meeting;
use super::send_end::{counted, discard_tickets};
use crate::ring::panics::drop_each;
use crate::ring::sync::{Arc, fault};
use crate::ring::{Consumer, PopError, TicketEnd};

/// Where a receiver takes elements from.
#[repr(u8)] // as there
pub(super) enum RecvEnd<T> {
    Ring(Consumer<T>, Arc<Gate>),
    Lanes(LaneReceiver<T>),
    Ticket(TicketEnd<T>, Arc<Gate>),
    Locked(Arc<Locked<T>>, Arc<Gate>),
    Meeting(Arc<Meeting<T>>, Arc<Gate>),
    /// A ring of which the end was reported: what comes late is its sender's to drop.
    Ended(Consumer<T>, Arc<Gate>),
}

/// Does the same with whichever store it is.
macro_rules! with_store {
    ($end:expr, $store:ident => $do:expr) => {
        match $end {
            Self::Ring($store, _) | Self::Ended($store, _) => $do,
            Self::Lanes($store) => $do,
            Self::Ticket($store, _) => $do,
            Self::Locked($store, _) => $do,
            Self::Meeting($store, _) => $do,
        }
    };
}

impl<T> RecvEnd<T> {
    /// Takes an element and wakes a sender that waits for the room. `Closed` says that a closer
    /// look is needed, where this is a ring or has lanes: see [`end`](Self::end).
    #[inline(always)]
    pub(super) fn try_pop(&mut self) -> Result<T, PopError> {
        match self {
            Self::Ring(consumer, gate) => {
                let value = consumer.try_pop_nearly()?;
                gate.writable.notify_one();
                Ok(value)
            }
            Self::Lanes(receiver) => {
                let value = receiver.try_pop()?;
                receiver.gate().writable.notify_one();
                Ok(value)
            }
            _ => Ok(self.try_pop_shared()?.1),
        }
    }

    /// Works as [`try_pop`](Self::try_pop), with the element's position in its store.
    pub(super) fn try_pop_at(&mut self) -> Result<(u64, T), PopError> {
        match self {
            Self::Ring(consumer, gate) => {
                let value = consumer.try_pop_nearly()?;
                gate.writable.notify_one();
                Ok((consumer.popped() - 1, value))
            }
            _ => self.try_pop_shared(),
        }
    }

    #[inline(never)]
    fn try_pop_shared(&mut self) -> Result<(u64, T), PopError> {
        match self {
            Self::Ticket(ring, gate) => {
                let found = ring.try_pop_at();
                // Also if there was nothing: room that claims left unused may have come back.
                gate.notify_room(1);
                found
            }
            Self::Locked(store, gate) => {
                let found = store.try_pop_at()?;
                if fault::is("locked_room") {
                    return Ok(found);
                }
                gate.writable.notify_one();
                Ok(found)
            }
            Self::Meeting(meeting, _) => meeting.try_pop_at(),
            Self::Lanes(receiver) => {
                let value = receiver.try_pop()?;
                receiver.gate().writable.notify_one();
                Ok((receiver.last_position(), value))
            }
            Self::Ring(..) | Self::Ended(..) => Err(PopError::Closed),
        }
    }

    /// Looks closer where a pop returned `Closed`: `Ok` if there is an element, `Closed` if a
    /// sender would have to come late to bring one. If there are senders, their signal was shut and
    /// the heavy barrier passed; `is_final` says so, or that there is none.
    #[cold]
    pub(super) fn end(&mut self, is_final: bool) -> Result<(), PopError> {
        match self {
            Self::Ring(consumer, gate) => {
                if consumer.take_back() {
                    gate.writable.notify_one();
                }
                match consumer.observe() {
                    Err(PopError::Closed) if is_final => consumer.end(),
                    outcome => outcome,
                }
            }
            Self::Lanes(receiver) if is_final => receiver.end(),
            _ => Err(PopError::Closed),
        }
    }

    /// After [`end`](Self::end) has returned `Closed` finally: nothing is taken any more.
    pub(super) fn retire(&mut self) {
        if let Self::Ring(..) = self {
            let nowhere = Self::Meeting(Arc::new(Meeting::new()), Arc::default());
            if let Self::Ring(consumer, gate) = std::mem::replace(self, nowhere) {
                *self = Self::Ended(consumer, gate);
            }
        }
    }

    /// Moves up to `max` elements to the end of `out` and wakes senders; returns how many, at least
    /// one unless `max` is 0.
    pub(super) fn pop_into(&mut self, out: &mut Vec<T>, max: usize) -> Result<usize, PopError> {
        if max == 0 {
            return Ok(0);
        }
        let before = out.len();
        match self {
            Self::Ring(consumer, gate) => {
                let mut count = consumer.pop_into(out, max);
                if count == 0 {
                    // That may have given the room of a forgotten batch back.
                    gate.writable.notify_one();
                    // Distinguishes empty from closed.
                    out.push(consumer.try_pop_nearly()?);
                    count = 1 + consumer.pop_into(out, max - 1);
                }
                gate.writable.notify(count);
            }
            Self::Lanes(receiver) => receiver.pop_into(out, max)?,
            Self::Locked(..) | Self::Meeting(..) => {
                out.push(self.try_pop()?);
                while out.len() - before < max
                    && let Ok(value) = self.try_pop()
                {
                    out.push(value);
                }
            }
            Self::Ticket(ring, gate) => {
                let taken = ring.pop_into(out, max);
                gate.notify_room(taken.unwrap_or(1));
                taken?;
            }
            Self::Ended(..) => return Err(PopError::Closed),
        }
        Ok(out.len() - before)
    }

    /// Returns the store for another receiver, where receivers may share it.
    pub(super) fn shared(&self) -> Option<Self> {
        match self {
            Self::Ticket(ring, gate) => Some(Self::Ticket(ring.clone(), Arc::clone(gate))),
            Self::Locked(store, gate) => Some(Self::Locked(Arc::clone(store), Arc::clone(gate))),
            Self::Meeting(meeting, gate) => {
                Some(Self::Meeting(Arc::clone(meeting), Arc::clone(gate)))
            }
            Self::Ring(..) | Self::Ended(..) | Self::Lanes(_) => None,
        }
    }

    /// Looks once more into a store that is this receiver's own, where no sender is left.
    pub(super) fn look(&mut self) -> Result<(), PopError> {
        match self {
            Self::Ring(consumer, _) => consumer.observe(),
            Self::Lanes(receiver) => receiver.look(),
            _ => Err(PopError::Closed),
        }
    }

    /// Returns whether another receiver should look, too. A wake-up may stand for more than one
    /// element, since a sender that is late with an earlier one hides those behind it; and for the
    /// end, if the ring was closed meanwhile.
    #[inline]
    pub(super) fn has_more(&self) -> bool {
        match self {
            Self::Ring(..) | Self::Ended(..) | Self::Lanes(_) => false,
            Self::Ticket(ring, _) => {
                ring.can_pop() || (ring.is_closed() && !fault::is("end_unreported"))
            }
            Self::Locked(store, _) => store.len() > 0,
            // A wake-up there is for the one receiver that waits, and no other.
            Self::Meeting(..) => false,
        }
    }

    pub(super) fn len(&self) -> usize {
        with_store!(self, store => store.len())
    }

    /// Returns how many elements there may be to take now, at least 1.
    pub(super) fn held_max(&self) -> usize {
        match self {
            // Their limit may be far away, and one more that comes meanwhile is one too many.
            Self::Locked(store, _) => store.len().max(1),
            Self::Meeting(meeting, _) => meeting.offered().max(1),
            _ => self.capacity(),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        with_store!(self, store => store.capacity())
    }

    pub(super) fn is_closed(&self) -> bool {
        with_store!(self, store => store.is_closed())
    }

    /// Returns the number of elements taken out of the store, by all receivers.
    pub(super) fn popped(&self) -> u64 {
        match self {
            Self::Ticket(ring, _) => ring.received(),
            _ => self.moves(),
        }
    }

    /// Returns a count that grows with each element that is taken out, in one step with that.
    pub(super) fn moves(&self) -> u64 {
        with_store!(self, store => store.popped())
    }

    /// Calls `look` with each gate of the channel.
    pub(super) fn for_each_gate(&self, look: &mut dyn FnMut(&Gate)) {
        match self {
            Self::Lanes(receiver) => receiver.for_each(|lane| look(&lane.gate)),
            _ => look(self.gate()),
        }
    }

    /// Returns the gate of the element that came last.
    fn gate(&self) -> &Gate {
        match self {
            Self::Ring(_, gate)
            | Self::Ended(_, gate)
            | Self::Ticket(_, gate)
            | Self::Locked(_, gate)
            | Self::Meeting(_, gate) => gate,
            Self::Lanes(receiver) => receiver.gate(),
        }
    }

    /// Returns the number of elements lost before the one at `position`, which came last, as far as
    /// they were not reported yet.
    #[cold]
    pub(super) fn lost_before(&self, position: u64) -> u64 {
        let gate = self.gate();
        let noted = gate.gaps.as_ref().map_or(0, |gaps| gaps.take(position));
        noted + gate.unreported.take()
    }

    /// Closes the store and wakes the senders.
    pub(super) fn close(&mut self) {
        with_store!(self, store => {
            store.close();
        });
        self.gate().writable.notify_all();
    }

    /// Where senders and receivers meet, if they do, and the gate there.
    #[inline]
    pub(super) fn meeting(&self) -> Option<(&Arc<Meeting<T>>, &Arc<Gate>)> {
        match self {
            Self::Meeting(meeting, gate) => Some((meeting, gate)),
            _ => None,
        }
    }
}

impl<T> RecvEnd<T> {
    /// Drops the elements that are left: no receiver will take them. The store is closed, and its
    /// signal is shut unless no sender is there. Not inlined: an element on the stack of a caller
    /// that never gets here may be too large for it.
    #[cold]
    #[inline(never)]
    pub(super) fn discard(&mut self) {
        match self {
            Self::Ended(..) => {}
            Self::Ring(consumer, gate) => drop_each(|| counted(gate, consumer.take_last())),
            Self::Lanes(receiver) => {
                let mut lanes = receiver.lanes.iter_mut();
                let mut lane = lanes.next();
                drop_each(|| {
                    while let Some(Lane { ring, gate }) = &mut lane {
                        let last = counted(gate, ring.take_last());
                        if last.is_some() {
                            return last;
                        }
                        lane = lanes.next();
                    }
                    None
                });
            }
            Self::Ticket(ring, gate) => discard_tickets(ring, gate),
            Self::Locked(store, gate) => drop_each(|| counted(gate, store.try_pop().ok())),
            Self::Meeting(meeting, gate) => drop_each(|| {
                let (_, value) = meeting.try_pop_at().ok()?;
                counted(gate, Some(value))
            }),
        }
    }
}
