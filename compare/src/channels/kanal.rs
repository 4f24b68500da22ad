//! `kanal`.

use kanal::{Receiver, Sender};

use super::{BlockingRecv, BlockingSend, Crowd, Element, Pair, Shape, TryRecv, TrySend, copies};

/// Its bounded channel.
#[derive(Debug)]
pub(crate) struct Kanal;

impl<M: Element> Pair<M> for Kanal {
    const NAME: &'static str = "kanal";
    type Tx = Sender<M>;
    type Rx = Receiver<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        kanal::bounded(capacity)
    }
}

impl<M: Element> Crowd<M> for Kanal {
    const NAME: &'static str = "kanal";
    type Tx = Sender<M>;
    type Rx = Receiver<M>;
    fn fits(_: Shape) -> bool {
        true
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, rx) = kanal::bounded(capacity);
        (copies(tx, shape.senders), copies(rx, shape.receivers))
    }
}

impl<M: Element> TrySend<M> for Sender<M> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        matches!(Sender::try_send(self, message), Ok(true))
    }
}

impl<M: Element> TryRecv<M> for Receiver<M> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        Receiver::try_recv(self).ok().flatten()
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
