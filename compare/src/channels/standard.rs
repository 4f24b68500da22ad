//! `std::sync::mpsc`, its bounded channel.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::{BlockingRecv, BlockingSend, Crowd, Element, Pair, Shape, TryRecv, TrySend, copies};

/// Its `sync_channel`.
#[derive(Debug)]
pub(crate) struct Std;

impl<M: Element> Pair<M> for Std {
    const NAME: &'static str = "std";
    type Tx = SyncSender<M>;
    type Rx = Receiver<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        sync_channel(capacity)
    }
}

impl<M: Element> Crowd<M> for Std {
    const NAME: &'static str = "std";
    type Tx = SyncSender<M>;
    type Rx = Receiver<M>;
    fn fits(shape: Shape) -> bool {
        shape.receivers == 1
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, rx) = sync_channel(capacity);
        (copies(tx, shape.senders), vec![rx])
    }
}

impl<M: Element> TrySend<M> for SyncSender<M> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        SyncSender::try_send(self, message).is_ok()
    }
}

impl<M: Element> TryRecv<M> for Receiver<M> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        Receiver::try_recv(self).ok()
    }
}

impl<M: Element> BlockingSend<M> for SyncSender<M> {
    #[inline]
    fn send(&mut self, message: M) {
        // A receiver that is gone shows in the count of what came.
        let _ = SyncSender::send(self, message);
    }
}

impl<M: Element> BlockingRecv<M> for Receiver<M> {
    #[inline]
    fn recv(&mut self) -> Option<M> {
        Receiver::recv(self).ok()
    }
}
