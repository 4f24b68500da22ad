//! `tokio::sync::mpsc`, with its blocking calls and outside of any runtime.

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::{BlockingRecv, BlockingSend, Crowd, Element, Pair, Shape, TryRecv, TrySend, copies};

/// Its bounded channel.
#[derive(Debug)]
pub(crate) struct Tokio;

impl<M: Element> Pair<M> for Tokio {
    const NAME: &'static str = "tokio";
    type Tx = Sender<M>;
    type Rx = Receiver<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        channel(capacity)
    }
}

impl<M: Element> Crowd<M> for Tokio {
    const NAME: &'static str = "tokio";
    type Tx = Sender<M>;
    type Rx = Receiver<M>;
    fn fits(shape: Shape) -> bool {
        shape.receivers == 1
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, rx) = channel(capacity);
        (copies(tx, shape.senders), vec![rx])
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
        let _ = self.blocking_send(message);
    }
}

impl<M: Element> BlockingRecv<M> for Receiver<M> {
    #[inline]
    fn recv(&mut self) -> Option<M> {
        self.blocking_recv()
    }
}
