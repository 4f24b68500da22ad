//! Receiving several messages at once.

use super::consumer::Consumer;
use super::delivery::Delivery;
use super::topic::Message;
use crate::channel::RecvError;

impl<M: Message> Consumer<M> {
    /// Calls `work` with up to `max` messages that are there now; returns how many. It takes them
    /// out of the inbox in batches, whose size follows what waits, up to
    /// [`BATCH_MAX`](super::BATCH_MAX) and a quarter of the capacity: room comes back by batches,
    /// and in a group the others cannot have what is in one. A message of the [express
    /// lane](super::Subscription::express) that comes meanwhile is the next; what is left of a
    /// batch when `max` is reached then stays with this consumer, for its next call.
    ///
    /// If `work` panics, the message that it has is gone, and the others are still there.
    pub fn recv_each(&mut self, max: usize, mut work: impl FnMut(Delivery<M>)) -> usize {
        let max = max.min(self.inbox.batch_max(&self.ahead));
        // Where little comes, the first is all.
        if max == 0 || self.try_recv().map(&mut work).is_err() {
            return 0;
        }
        let count = 1 + self.recv_more(max - 1, work);
        if count < max && self.is_busy {
            self.end_busy();
        }
        count
    }

    /// Works as [`recv_each`](Self::recv_each), but waits for the first of them. Unless `max` is 0,
    /// there is at least one.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn wait_each(
        &mut self,
        max: usize,
        mut work: impl FnMut(Delivery<M>),
    ) -> Result<usize, RecvError> {
        if max == 0 {
            return Ok(0);
        }
        work(self.recv()?);
        let max = max.min(self.inbox.batch_max(&self.ahead));
        // The wait that comes next ends the busy time.
        Ok(1 + self.recv_more(max - 1, work))
    }

    #[inline]
    fn recv_more(&mut self, max: usize, mut work: impl FnMut(Delivery<M>)) -> usize {
        let mut count = 0;
        while count < max && (!self.ahead.is_empty() || self.take_batch(max - count)) {
            // Messages in the express lane overtake the rest of the batch.
            let delivery = match self.express {
                None => self.deliver_ahead(),
                Some(_) => None,
            };
            let Some(delivery) = delivery.or_else(|| self.next().ok()) else {
                break;
            };
            work(delivery);
            count += 1;
        }
        count
    }

    /// Takes what may be taken at once, up to `max`, out of the inbox; `false` if nothing is there.
    /// A batch of one is left there.
    fn take_batch(&mut self, max: usize) -> bool {
        let waiting = self.receiver.len();
        if waiting == 0 {
            return self.has_express();
        }
        let size = self.batching.look(waiting);
        // Members of a group leave each other their share.
        let share = waiting.div_ceil(self.receiver.members().max(1));
        let size = size.min(max).min(share);
        if size > 1 {
            // Before the ring is empty: see `Inbox::is_taken`.
            self.meter.held.set(size as u64);
            let mut batch = Vec::from(std::mem::take(&mut self.ahead));
            // Nothing is taken if a publisher is late with the first.
            let _ = self.receiver.try_recv_many(&mut batch, size);
            self.ahead = batch.into();
            self.meter.held.set(self.ahead.len() as u64);
        }
        true
    }
}
