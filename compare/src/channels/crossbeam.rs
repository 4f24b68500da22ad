//! `crossbeam-channel` and the queues of `crossbeam-queue`.

use crossbeam_channel::{Receiver, Sender};

use std::sync::Arc;

use super::yielding::{self, YieldingRecv, YieldingSend};
use super::{BlockingRecv, BlockingSend, Crowd, Element, Pair, Shape, TryRecv, TrySend, copies};

/// Its bounded channel.
#[derive(Debug)]
pub(crate) struct Channel;

impl<M: Element> Pair<M> for Channel {
    const NAME: &'static str = "crossbeam";
    type Tx = Sender<M>;
    type Rx = Receiver<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        crossbeam_channel::bounded(capacity)
    }
}

impl<M: Element> Crowd<M> for Channel {
    const NAME: &'static str = "crossbeam";
    type Tx = Sender<M>;
    type Rx = Receiver<M>;
    fn fits(_: Shape) -> bool {
        true
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, rx) = crossbeam_channel::bounded(capacity);
        (copies(tx, shape.senders), copies(rx, shape.receivers))
    }
}

impl<M: Element> TrySend<M> for Sender<M> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        Sender::try_send(self, message).is_ok()
    }
}

impl<M: Element> TryRecv<M> for Receiver<M> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        Receiver::try_recv(self).ok()
    }
}

impl<M: Element> BlockingSend<M> for Sender<M> {
    #[inline]
    fn send(&mut self, message: M) {
        // A receiver that is gone shows in the count of what came.
        let _ = Sender::send(self, message);
    }
}

impl<M: Element> BlockingRecv<M> for Receiver<M> {
    #[inline]
    fn recv(&mut self) -> Option<M> {
        Receiver::recv(self).ok()
    }
}

/// A bounded queue without waiting.
#[derive(Debug)]
pub(crate) struct ArrayQueue;

impl<M: Element> Pair<M> for ArrayQueue {
    const NAME: &'static str = "ArrayQueue";
    type Tx = Arc<crossbeam_queue::ArrayQueue<M>>;
    type Rx = Arc<crossbeam_queue::ArrayQueue<M>>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        let queue = Arc::new(crossbeam_queue::ArrayQueue::new(capacity));
        (Arc::clone(&queue), queue)
    }
}

impl<M: Element> Crowd<M> for ArrayQueue {
    const NAME: &'static str = "ArrayQueue (try, yield)";
    type Tx = YieldingSend<Arc<crossbeam_queue::ArrayQueue<M>>>;
    type Rx = YieldingRecv<Arc<crossbeam_queue::ArrayQueue<M>>>;
    fn fits(_: Shape) -> bool {
        true
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, rx) = <Self as Pair<M>>::pair(capacity);
        yielding::crowd(copies(tx, shape.senders), copies(rx, shape.receivers))
    }
}

impl<M: Element> TrySend<M> for Arc<crossbeam_queue::ArrayQueue<M>> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        self.push(message).is_ok()
    }
}

impl<M: Element> TryRecv<M> for Arc<crossbeam_queue::ArrayQueue<M>> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        self.pop()
    }
}

/// An unbounded queue without waiting: `capacity` means nothing to it.
#[derive(Debug)]
pub(crate) struct SegQueue;

impl<M: Element> Pair<M> for SegQueue {
    const NAME: &'static str = "SegQueue";
    type Tx = Arc<crossbeam_queue::SegQueue<M>>;
    type Rx = Arc<crossbeam_queue::SegQueue<M>>;
    fn pair(_: usize) -> (Self::Tx, Self::Rx) {
        let queue = Arc::new(crossbeam_queue::SegQueue::new());
        (Arc::clone(&queue), queue)
    }
}

impl<M: Element> Crowd<M> for SegQueue {
    const NAME: &'static str = "SegQueue (try, yield)";
    type Tx = YieldingSend<Arc<crossbeam_queue::SegQueue<M>>>;
    type Rx = YieldingRecv<Arc<crossbeam_queue::SegQueue<M>>>;
    fn fits(_: Shape) -> bool {
        true
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, rx) = <Self as Pair<M>>::pair(capacity);
        yielding::crowd(copies(tx, shape.senders), copies(rx, shape.receivers))
    }
}

impl<M: Element> TrySend<M> for Arc<crossbeam_queue::SegQueue<M>> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        self.push(message);
        true
    }
}

impl<M: Element> TryRecv<M> for Arc<crossbeam_queue::SegQueue<M>> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        self.pop()
    }
}
