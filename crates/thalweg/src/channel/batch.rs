//! Receiving several elements with one check, and giving their room back once.

use std::iter::FusedIterator;

use super::hub::Gate;
use super::receiver::{Receiver, Source};
use super::recv_end::RecvEnd;
use super::shape::Shape;
use crate::ring;

/// Elements of a channel, taken one by one through the iterator; see [`Receiver::batch`]. If it is
/// forgotten, its room comes back when the receiver is used again.
#[must_use = "elements are received only by iterating"]
pub struct Batch<'r, T>(Elements<'r, T>);

enum Elements<'r, T> {
    /// From a ring that is this receiver's alone: room goes back when the batch is dropped, and
    /// then one sender is woken.
    Own(ring::Batch<'r, T>, NotifyOnDrop<'r>),
    /// From one that others use too: each element is taken on its own.
    Shared {
        source: &'r mut Source<T>,
        left: usize,
    },
}

struct NotifyOnDrop<'r>(&'r Gate);

impl Drop for NotifyOnDrop<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.writable.notify_one();
    }
}

impl<T> Iterator for Batch<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            Elements::Own(elements, _) => elements.next(),
            Elements::Shared { source, left } => {
                *left = left.checked_sub(1)?;
                let value = source.pop().ok();
                if value.is_none() {
                    *left = 0;
                }
                value
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Elements::Own(elements, _) => elements.size_hint(),
            Elements::Shared { left, .. } => (0, Some(*left)),
        }
    }

    // So that the choice of the kind is made once for all of them.
    #[inline]
    fn fold<B, F: FnMut(B, T) -> B>(self, init: B, mut work: F) -> B {
        match self.0 {
            Elements::Own(elements, _notify) => elements.fold(init, work),
            shared => {
                let mut result = init;
                for value in Batch(shared).by_ref() {
                    result = work(result, value);
                }
                result
            }
        }
    }
}

impl<T> FusedIterator for Batch<'_, T> {}

shown!([T] Batch<'_, T>, "Batch", this, "left_at_most": this.size_hint().1);

impl<T, S: Shape> Receiver<T, S> {
    /// Takes up to `max` elements that are there now, one by one through an iterator, without
    /// copying them anywhere else. Those that it is not asked for stay in the channel.
    ///
    /// From a ring or lane that no other receiver uses, the batch is what is there when this is
    /// called (of one lane; the next batch is of another), and room is given back to the sender
    /// once, when the batch is dropped. From others, each element is taken when it is asked for.
    ///
    /// ```
    /// let (mut tx, mut rx) = thalweg::channel::spsc(8);
    /// tx.send_many([1, 2, 3]).expect("room for 3");
    /// assert_eq!(rx.batch(2).sum::<i32>(), 3);
    /// assert_eq!(rx.try_recv(), Ok(3));
    /// ```
    #[inline]
    pub fn batch(&mut self, max: usize) -> Batch<'_, T> {
        self.settle();
        let is_own = match &self.source.end {
            RecvEnd::Ring(..) => true,
            RecvEnd::Lanes(receiver) => receiver.is_open(),
            _ => false,
        };
        if !is_own || self.source.is_lossy() {
            let source = &mut self.source;
            return Batch(Elements::Shared { source, left: max });
        }
        let (elements, gate): (_, &Gate) = match &mut self.source.end {
            RecvEnd::Ring(consumer, gate) => (consumer.batch(max), gate),
            RecvEnd::Lanes(receiver) => receiver.batch(max),
            _ => unreachable!("asked above"),
        };
        Batch(Elements::Own(elements, NotifyOnDrop(gate)))
    }
}
