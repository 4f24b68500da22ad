//! `crossfire`, its blocking endpoints, with the back-off that it finds out for this machine.

use std::sync::Once;

use crossfire::{BlockingRxTrait, BlockingTxTrait, MRx, MTx, Rx, Tx, mpmc, mpsc, spsc};

use super::{BlockingRecv, BlockingSend, Crowd, Element, Pair, Shape, TryRecv, TrySend, copies};

/// One to one.
#[derive(Debug)]
pub(crate) struct Spsc;

/// Many to one.
#[derive(Debug)]
pub(crate) struct Mpsc;

/// Many to many.
#[derive(Debug)]
pub(crate) struct Mpmc;

/// Its documentation asks for this call at the begin of a program.
fn set_up() {
    static ONCE: Once = Once::new();
    ONCE.call_once(crossfire::detect_backoff_cfg);
}

impl<M: Element> Pair<M> for Spsc {
    const NAME: &'static str = "crossfire spsc";
    type Tx = Tx<spsc::Array<M>>;
    type Rx = Rx<spsc::Array<M>>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        set_up();
        spsc::bounded_blocking(capacity)
    }
}

impl<M: Element> Pair<M> for Mpmc {
    const NAME: &'static str = "crossfire mpmc";
    type Tx = MTx<mpmc::Array<M>>;
    type Rx = MRx<mpmc::Array<M>>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        set_up();
        mpmc::bounded_blocking(capacity)
    }
}

impl<M: Element> Crowd<M> for Mpsc {
    const NAME: &'static str = "crossfire mpsc";
    type Tx = MTx<mpsc::Array<M>>;
    type Rx = Rx<mpsc::Array<M>>;
    fn fits(shape: Shape) -> bool {
        shape.receivers == 1
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        set_up();
        let (tx, rx) = mpsc::bounded_blocking(capacity);
        (copies(tx, shape.senders), vec![rx])
    }
}

impl<M: Element> Crowd<M> for Mpmc {
    const NAME: &'static str = "crossfire mpmc";
    type Tx = MTx<mpmc::Array<M>>;
    type Rx = MRx<mpmc::Array<M>>;
    fn fits(_: Shape) -> bool {
        true
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, rx) = <Self as Pair<M>>::pair(capacity);
        (copies(tx, shape.senders), copies(rx, shape.receivers))
    }
}

macro_rules! calls {
    ($tx:ty, $rx:ty) => {
        impl<M: Element> TrySend<M> for $tx {
            #[inline]
            fn try_send(&mut self, message: M) -> bool {
                BlockingTxTrait::try_send(self, message).is_ok()
            }
        }

        impl<M: Element> BlockingSend<M> for $tx {
            #[inline]
            fn send(&mut self, message: M) {
                // A receiver that is gone shows in the count of what came.
                let _ = BlockingTxTrait::send(self, message);
            }
        }

        impl<M: Element> TryRecv<M> for $rx {
            #[inline]
            fn try_recv(&mut self) -> Option<M> {
                BlockingRxTrait::try_recv(self).ok()
            }
        }

        impl<M: Element> BlockingRecv<M> for $rx {
            #[inline]
            fn recv(&mut self) -> Option<M> {
                BlockingRxTrait::recv(self).ok()
            }
        }
    };
}

calls!(Tx<spsc::Array<M>>, Rx<spsc::Array<M>>);
calls!(MTx<mpsc::Array<M>>, Rx<mpsc::Array<M>>);
calls!(MTx<mpmc::Array<M>>, MRx<mpmc::Array<M>>);
