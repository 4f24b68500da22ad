//! `thingbuf`, its blocking channel: many to one, elements stay in their slots.

use thingbuf::mpsc::blocking::{Receiver, Sender, channel};

use super::{BlockingRecv, BlockingSend, Crowd, Element, Pair, Shape, TryRecv, TrySend, copies};

/// Its blocking channel.
#[derive(Debug)]
pub(crate) struct Thingbuf;

impl<M: Element> Pair<M> for Thingbuf {
    const NAME: &'static str = "thingbuf";
    type Tx = Sender<M>;
    type Rx = Receiver<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        channel(capacity)
    }
}

impl<M: Element> Crowd<M> for Thingbuf {
    const NAME: &'static str = "thingbuf";
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

// By reference to the slot, which is what it is made for.

impl<M: Element> TrySend<M> for Sender<M> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        match self.try_send_ref() {
            Ok(mut slot) => {
                *slot = message;
                true
            }
            Err(_) => false,
        }
    }
}

impl<M: Element> TryRecv<M> for Receiver<M> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        self.try_recv_ref().ok().map(|slot| *slot)
    }
}

impl<M: Element> BlockingSend<M> for Sender<M> {
    #[inline]
    fn send(&mut self, message: M) {
        // A receiver that is gone shows in the count of what came.
        if let Ok(mut slot) = self.send_ref() {
            *slot = message;
        }
    }
}

impl<M: Element> BlockingRecv<M> for Receiver<M> {
    #[inline]
    fn recv(&mut self) -> Option<M> {
        self.recv_ref().map(|slot| *slot)
    }
}
