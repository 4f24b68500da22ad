//! `tokio::sync::mpsc`, with its blocking calls and outside of any runtime.

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::{
    BlockingRecv, BlockingSend, Crowd, Element, Pair, RecvBatch, SendBatch, Shape, TryRecv,
    TrySend, copies,
};

/// Its bounded channel.
#[derive(Debug)]
pub(crate) struct Tokio;

/// The receiver, and where it puts a batch.
#[derive(Debug)]
pub(crate) struct Inlet<M> {
    rx: Receiver<M>,
    batch: Vec<M>,
}

fn make<M: Element>(capacity: usize) -> (Sender<M>, Inlet<M>) {
    let (tx, rx) = channel(capacity);
    let batch = Vec::with_capacity(64);
    (tx, Inlet { rx, batch })
}

impl<M: Element> Pair<M> for Tokio {
    const NAME: &'static str = "tokio";
    type Tx = Sender<M>;
    type Rx = Inlet<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        make(capacity)
    }
}

impl<M: Element> Crowd<M> for Tokio {
    const NAME: &'static str = "tokio";
    type Tx = Sender<M>;
    type Rx = Inlet<M>;
    fn fits(shape: Shape) -> bool {
        shape.receivers == 1
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, rx) = make(capacity);
        (copies(tx, shape.senders), vec![rx])
    }
}

impl<M: Element> TrySend<M> for Sender<M> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        Sender::try_send(self, message).is_ok()
    }
}

impl<M: Element> TryRecv<M> for Inlet<M> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        self.rx.try_recv().ok()
    }
}

impl<M: Element> SendBatch<M> for Sender<M> {
    #[inline]
    fn send_batch(&mut self, count: usize, mut make: impl FnMut(usize) -> M) -> usize {
        let Ok(permits) = self.try_reserve_many(count) else {
            return 0;
        };
        for (at, permit) in permits.enumerate() {
            permit.send(make(at));
        }
        count
    }
}

impl<M: Element> RecvBatch<M> for Inlet<M> {
    #[inline]
    fn recv_batch(&mut self, max: usize, mut take: impl FnMut(M)) -> usize {
        // It has no call that takes several and does not wait.
        let taken = self.rx.blocking_recv_many(&mut self.batch, max);
        for message in self.batch.drain(..) {
            take(message);
        }
        taken
    }
}

impl<M: Element> BlockingSend<M> for Sender<M> {
    #[inline]
    fn send(&mut self, message: M) {
        // A receiver that is gone shows in the count of what came.
        let _ = self.blocking_send(message);
    }
}

impl<M: Element> BlockingRecv<M> for Inlet<M> {
    #[inline]
    fn recv(&mut self) -> Option<M> {
        self.rx.blocking_recv()
    }
}
