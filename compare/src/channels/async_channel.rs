//! `async-channel`, with its blocking calls.

use async_channel::{Receiver, Sender};

use super::{BlockingRecv, BlockingSend, Crowd, Element, Pair, Shape, TryRecv, TrySend, copies};

/// Its bounded channel.
#[derive(Debug)]
pub(crate) struct AsyncChannel;

impl<M: Element> Pair<M> for AsyncChannel {
    const NAME: &'static str = "async-channel";
    type Tx = Sender<M>;
    type Rx = Receiver<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        async_channel::bounded(capacity)
    }
}

impl<M: Element> Crowd<M> for AsyncChannel {
    const NAME: &'static str = "async-channel";
    type Tx = Sender<M>;
    type Rx = Receiver<M>;
    fn fits(_: Shape) -> bool {
        true
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, rx) = async_channel::bounded(capacity);
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
        let _ = self.send_blocking(message);
    }
}

impl<M: Element> BlockingRecv<M> for Receiver<M> {
    #[inline]
    fn recv(&mut self) -> Option<M> {
        self.recv_blocking().ok()
    }
}
