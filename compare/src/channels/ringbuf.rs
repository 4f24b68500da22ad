//! `ringbuf`: one to one, on the heap, split into endpoints that cache the other's index.

use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use super::{Element, Pair, RecvBatch, SendBatch, TryRecv, TrySend};

/// The most that [`RecvBatch`] takes at once.
const BATCH_MAX: usize = 64;

/// Its ring on the heap.
#[derive(Debug)]
pub(crate) struct Ringbuf;

/// The receiver, and where it puts a batch.
pub(crate) struct Inlet<M: Element> {
    rx: HeapCons<M>,
    batch: [M; BATCH_MAX],
}

impl<M: Element> Pair<M> for Ringbuf {
    const NAME: &'static str = "ringbuf";
    type Tx = HeapProd<M>;
    type Rx = Inlet<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        let (tx, rx) = HeapRb::new(capacity).split();
        let batch = [M::default(); BATCH_MAX];
        (tx, Inlet { rx, batch })
    }
}

impl<M: Element> TrySend<M> for HeapProd<M> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        self.try_push(message).is_ok()
    }
}

impl<M: Element> TryRecv<M> for Inlet<M> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        self.rx.try_pop()
    }
}

impl<M: Element> SendBatch<M> for HeapProd<M> {
    #[inline]
    fn send_batch(&mut self, count: usize, make: impl FnMut(usize) -> M) -> usize {
        self.push_iter((0..count).map(make))
    }
}

impl<M: Element> RecvBatch<M> for Inlet<M> {
    #[inline]
    fn recv_batch(&mut self, max: usize, take: impl FnMut(M)) -> usize {
        // Not `pop_iter`, which tells the producer of every single element.
        let count = self.rx.pop_slice(&mut self.batch[..max.min(BATCH_MAX)]);
        self.batch[..count].iter().copied().for_each(take);
        count
    }
}
