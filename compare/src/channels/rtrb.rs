//! `rtrb`: one to one, with chunks, without waiting.

use rtrb::{Consumer, Producer, RingBuffer};

use super::{Element, Pair, RecvBatch, SendBatch, TryRecv, TrySend};

/// Its ring.
#[derive(Debug)]
pub(crate) struct Rtrb;

impl<M: Element> Pair<M> for Rtrb {
    const NAME: &'static str = "rtrb";
    type Tx = Producer<M>;
    type Rx = Consumer<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        RingBuffer::new(capacity)
    }
}

impl<M: Element> TrySend<M> for Producer<M> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        self.push(message).is_ok()
    }
}

impl<M: Element> TryRecv<M> for Consumer<M> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        self.pop().ok()
    }
}

impl<M: Element> SendBatch<M> for Producer<M> {
    #[inline]
    fn send_batch(&mut self, count: usize, make: impl FnMut(usize) -> M) -> usize {
        match self.write_chunk_uninit(count) {
            Ok(chunk) => chunk.fill_from_iter((0..count).map(make)),
            Err(_) => 0,
        }
    }
}

impl<M: Element> RecvBatch<M> for Consumer<M> {
    #[inline]
    fn recv_batch(&mut self, max: usize, take: impl FnMut(M)) -> usize {
        // As its documentation shows for taking what there is.
        let count = self.slots().min(max);
        match self.read_chunk(count) {
            Ok(chunk) => chunk.into_iter().for_each(take),
            Err(_) => return 0,
        }
        count
    }
}
