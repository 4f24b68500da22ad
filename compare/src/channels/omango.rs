//! `omango`: queues whose calls spin a little and then wait on a futex. They are closed by hand,
//! here when the last sender goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use omango::queue::{mpmc, spsc};

use super::{BlockingRecv, BlockingSend, Crowd, Element, Pair, Shape, TryRecv, TrySend};

/// One to one.
#[derive(Debug)]
pub(crate) struct Spsc;

/// Many to many.
#[derive(Debug)]
pub(crate) struct Mpmc;

/// Capacities are `u32` there.
fn size(capacity: usize) -> u32 {
    u32::try_from(capacity).expect("the experiments ask for a million at most")
}

impl<M: Element> Pair<M> for Spsc {
    const NAME: &'static str = "omango spsc";
    type Tx = spsc::BSender<M>;
    type Rx = spsc::BReceiver<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        spsc::bounded(size(capacity))
    }
}

impl<M: Element> Pair<M> for Mpmc {
    const NAME: &'static str = "omango mpmc";
    type Tx = mpmc::BSender<M>;
    type Rx = mpmc::BReceiver<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        mpmc::bounded(size(capacity))
    }
}

macro_rules! calls {
    ($shape:ident) => {
        impl<M: Element> TrySend<M> for $shape::BSender<M> {
            #[inline]
            fn try_send(&mut self, message: M) -> bool {
                $shape::BSender::try_send(self, message).is_ok()
            }
        }

        impl<M: Element> TryRecv<M> for $shape::BReceiver<M> {
            #[inline]
            fn try_recv(&mut self) -> Option<M> {
                $shape::BReceiver::try_recv(self).ok()
            }
        }

        impl<M: Element> BlockingSend<M> for $shape::BSender<M> {
            #[inline]
            fn send(&mut self, message: M) {
                // A receiver that is gone shows in the count of what came.
                let _ = $shape::BSender::send(self, message);
            }
        }

        impl<M: Element> BlockingRecv<M> for $shape::BReceiver<M> {
            #[inline]
            fn recv(&mut self) -> Option<M> {
                $shape::BReceiver::recv(self).ok()
            }
        }
    };
}

calls!(spsc);
calls!(mpmc);

/// A sender that closes when it is the last one.
pub(crate) struct Closing<M: Element> {
    tx: mpmc::BSender<M>,
    open: Arc<AtomicUsize>,
}

impl<M: Element> Crowd<M> for Mpmc {
    const NAME: &'static str = "omango mpmc";
    type Tx = Closing<M>;
    type Rx = mpmc::BReceiver<M>;
    fn fits(_: Shape) -> bool {
        true
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, rx) = mpmc::bounded(size(capacity));
        let open = Arc::new(AtomicUsize::new(shape.senders));
        let closing = |_| Closing {
            tx: tx.clone(),
            open: Arc::clone(&open),
        };
        let txs = (0..shape.senders).map(closing).collect();
        (txs, vec![rx; shape.receivers])
    }
}

impl<M: Element> BlockingSend<M> for Closing<M> {
    #[inline]
    fn send(&mut self, message: M) {
        BlockingSend::send(&mut self.tx, message);
    }
}

impl<M: Element> Drop for Closing<M> {
    fn drop(&mut self) {
        // ORDERING: AcqRel, pairs with itself: the last one closes after what all others sent.
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.tx.close();
        }
    }
}
