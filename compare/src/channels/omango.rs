//! `omango`. Its waiting calls spin a little and then wait on a futex, and lose wake-ups: who waits
//! looks at the slot, then stores that it is parked, and a wake-up in between finds nobody. Round
//! trips over two of its queues did not end here (0.2.6, x86-64: each thread asleep with a message
//! before it). So they only try.

use omango::queue::{mpmc, spsc};

use super::yielding::{self, YieldingRecv, YieldingSend};
use super::{Crowd, Element, Pair, Shape, TryRecv, TrySend, copies};

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

macro_rules! tries {
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
    };
}

tries!(spsc);
tries!(mpmc);

impl<M: Element> Crowd<M> for Mpmc {
    const NAME: &'static str = "omango mpmc (try, yield)";
    type Tx = YieldingSend<mpmc::BSender<M>>;
    type Rx = YieldingRecv<mpmc::BReceiver<M>>;
    fn fits(_: Shape) -> bool {
        true
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, rx) = <Self as Pair<M>>::pair(capacity);
        yielding::crowd(copies(tx, shape.senders), copies(rx, shape.receivers))
    }
}
