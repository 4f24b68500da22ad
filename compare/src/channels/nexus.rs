//! `nexus-queue`: queues for each shape, without waiting.

use nexus_queue::{mpsc, spmc, spsc};

use super::yielding::{self, YieldingRecv, YieldingSend};
use super::{Crowd, Element, Pair, Shape, TryRecv, TrySend, copies};

/// One to one.
#[derive(Debug)]
pub(crate) struct Spsc;

/// Many to one.
#[derive(Debug)]
pub(crate) struct Mpsc;

/// One to many.
#[derive(Debug)]
pub(crate) struct Spmc;

impl<M: Element> Pair<M> for Spsc {
    const NAME: &'static str = "nexus spsc";
    type Tx = spsc::Producer<M>;
    type Rx = spsc::Consumer<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        spsc::ring_buffer(capacity)
    }
}

impl<M: Element> Crowd<M> for Mpsc {
    const NAME: &'static str = "nexus mpsc (try, yield)";
    type Tx = YieldingSend<mpsc::Producer<M>>;
    type Rx = YieldingRecv<mpsc::Consumer<M>>;
    fn fits(shape: Shape) -> bool {
        shape.receivers == 1
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, rx) = mpsc::ring_buffer(capacity);
        yielding::crowd(copies(tx, shape.senders), vec![rx])
    }
}

impl<M: Element> Crowd<M> for Spmc {
    const NAME: &'static str = "nexus spmc (try, yield)";
    type Tx = YieldingSend<spmc::Producer<M>>;
    type Rx = YieldingRecv<spmc::Consumer<M>>;
    fn fits(shape: Shape) -> bool {
        shape.senders == 1 && shape.receivers > 1
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, rx) = spmc::ring_buffer(capacity);
        yielding::crowd(vec![tx], copies(rx, shape.receivers))
    }
}

macro_rules! tries {
    ($shape:ident) => {
        impl<M: Element> TrySend<M> for $shape::Producer<M> {
            #[inline]
            fn try_send(&mut self, message: M) -> bool {
                self.push(message).is_ok()
            }
        }

        impl<M: Element> TryRecv<M> for $shape::Consumer<M> {
            #[inline]
            fn try_recv(&mut self) -> Option<M> {
                self.pop()
            }
        }
    };
}

tries!(spsc);
tries!(mpsc);
tries!(spmc);
