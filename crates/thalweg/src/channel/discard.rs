//! Dropping the elements that no receiver will take: by the last receiver as it goes, and by
//! senders that come late.
//!
//! A sender looks whether the channel is closed, and then puts its element in. In between the last
//! receiver may close the channel, drop what there is, and be gone. The element must not lie there
//! until the senders go: it may hold the one end of a reply channel at whose other end that very
//! sender waits.
//!
//! # Rules
//! 1. The last receiver closes the store, shuts the signal of the receivers, then takes out and
//!    drops what it finds ([`RecvEnd::discard`]).
//! 2. A sender notifies that signal after all that it has made visible: elements, or room for none
//!    that kept those behind it back. If the signal is shut, it drops what it finds
//!    ([`Sender::discard_late`]).
//! 3. Where only one side may take (a ring of one sender and one receiver, a lane), the two hand
//!    that over, and neither waits for the other: see "What comes late" in `ring::spsc::shared`.
//! 4. Every element is counted before it is dropped, and all are dropped, also if one panics.
//!
//! # Why nothing stays
//! By the signal's rule 6, an element that was there before a notification is seen by the last
//! receiver's look, or the notification returns "shut"; and of two senders that get "shut", one
//! sees what both made. So where an element is kept back by others before it that are still under
//! way, the sender that is the last to make its own visible finds all of them, or the receiver
//! does. A queue with a lock refuses elements once it is closed. A rendezvous stores nothing but
//! elements that came back from a receiver, which was there then.

use super::hub::Gate;
use super::lanes::Lane;
use super::recv_end::RecvEnd;
use super::send_end::SendEnd;
use super::sender::Sender;
use super::shape::Shape;
use crate::ring::panics::drop_each;
use crate::ring::{Producer, Ticket};

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

impl<T, S: Shape> Sender<T, S> {
    /// Discards after a notification that returned that no receiver will look (rule 2).
    #[cold]
    #[inline(never)]
    pub(super) fn discard_late(&mut self) {
        match &mut self.end {
            SendEnd::Ring(producer) | SendEnd::Lane(producer, _) => {
                discard_left(producer, &self.gate);
            }
            SendEnd::Ticket(ring) => discard_tickets(ring, &self.gate),
            // Refused once it is closed, and goes to a receiver that waits or is not sent.
            SendEnd::Locked(_) | SendEnd::Meeting(_) => {}
        }
    }
}

/// Works as [`SendEnd::discard_late`], for the ring of one sender and one receiver.
#[cold]
#[inline(never)]
pub(super) fn discard_left<T>(producer: &mut Producer<T>, gate: &Gate) {
    producer.come_late();
    drop_each(|| counted(gate, producer.take_left()));
}

/// Works as [`SendEnd::discard_late`], where any end may take elements.
#[cold]
#[inline(never)]
pub(super) fn discard_tickets<T>(ring: &Ticket<T>, gate: &Gate) {
    drop_each(|| counted(gate, ring.try_pop().ok()));
}

fn counted<T>(gate: &Gate, value: Option<T>) -> Option<T> {
    if value.is_some() {
        gate.discarded.add(1);
    }
    value
}
