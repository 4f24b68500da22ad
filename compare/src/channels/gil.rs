//! `gil`. Its waiting calls spin and yield, and know no end, so that these adapters bring one.
//!
//! Its parking queues are left out, since they lose wake-ups: a round trip over two of them did not
//! end here (0.9.0, x86-64: each thread asleep with a message before it).

use std::num::NonZeroUsize;

use gil::{mpsc, spmc, spsc};

use super::yielding::{self, YieldingRecv, YieldingSend};
use super::{
    BlockingRecv, BlockingSend, Crowd, Element, Pair, RecvBatch, SendBatch, Shape, TryRecv,
    TrySend, copies,
};

/// One to one.
#[derive(Debug)]
pub(crate) struct Spsc;

fn size(capacity: usize) -> NonZeroUsize {
    NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN)
}

impl<M: Element> Pair<M> for Spsc {
    const NAME: &'static str = "gil spsc";
    type Tx = spsc::Sender<M>;
    type Rx = spsc::Receiver<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        spsc::channel(size(capacity))
    }
}

macro_rules! tries {
    ($($tx:ty, $rx:ty;)*) => {$(
        impl<M: Element> TrySend<M> for $tx {
            #[inline]
            fn try_send(&mut self, message: M) -> bool {
                <$tx>::try_send(self, message).is_ok()
            }
        }

        impl<M: Element> TryRecv<M> for $rx {
            #[inline]
            fn try_recv(&mut self) -> Option<M> {
                <$rx>::try_recv(self)
            }
        }
    )*};
}

tries! {
    spsc::Sender<M>, spsc::Receiver<M>;
    mpsc::Sender<M>, mpsc::Receiver<M>;
    mpsc::sharded::Sender<M>, mpsc::sharded::Receiver<M>;
    spmc::Sender<M>, spmc::Receiver<M>;
}

impl<M: Element> BlockingSend<M> for spsc::Sender<M> {
    #[inline]
    fn send(&mut self, message: M) {
        spsc::Sender::send(self, message);
    }
}

impl<M: Element> BlockingRecv<M> for spsc::Receiver<M> {
    #[inline]
    fn recv(&mut self) -> Option<M> {
        Some(spsc::Receiver::recv(self))
    }
}

impl<M: Element> SendBatch<M> for spsc::Sender<M> {
    #[inline]
    #[allow(unsafe_code)] // the peer has no other way to send a batch
    fn send_batch(&mut self, count: usize, mut make: impl FnMut(usize) -> M) -> usize {
        let room = self.write_buffer();
        let count = count.min(room.len());
        for (at, slot) in room[..count].iter_mut().enumerate() {
            slot.write(make(at));
        }
        // SAFETY: the first `count` slots of the write buffer were written just now.
        unsafe { self.commit(count) };
        count
    }
}

impl<M: Element> RecvBatch<M> for spsc::Receiver<M> {
    #[inline]
    fn recv_batch(&mut self, max: usize, take: impl FnMut(M)) -> usize {
        let mut guard = self.read_guard();
        let count = guard.len().min(max);
        guard.as_slice()[..count].iter().copied().for_each(take);
        guard.advance(count);
        count
    }
}

/// The shapes whose waiting calls spin and yield: as the peer does it, and with an end.
macro_rules! crowds {
    ($($name:ident, $label:literal, $module:path, $fits:expr, $make:expr;)*) => {$(
        #[doc = concat!("`", $label, "`, which spins and yields.")]
        #[derive(Debug)]
        pub(crate) struct $name;

        const _: () = {
            use $module as shape;
            impl<M: Element> Crowd<M> for $name {
                const NAME: &'static str = $label;
                type Tx = YieldingSend<shape::Sender<M>>;
                type Rx = YieldingRecv<shape::Receiver<M>>;
                fn fits(shape: Shape) -> bool {
                    let fits: fn(Shape) -> bool = $fits;
                    fits(shape)
                }
                fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
                    let (txs, rxs) = $make(capacity, shape);
                    yielding::crowd(txs, rxs)
                }
            }
        };
    )*};
}

crowds! {
    Mpsc, "gil mpsc", gil::mpsc, |shape| shape.receivers == 1, |capacity, shape: Shape| {
        let (tx, rx) = mpsc::channel(size(capacity));
        (copies(tx, shape.senders), vec![rx])
    };
    Spmc, "gil spmc", gil::spmc, |shape| shape.senders == 1, |capacity, shape: Shape| {
        let (tx, rx) = spmc::channel(size(capacity));
        (vec![tx], copies(rx, shape.receivers))
    };
    MpscSharded, "gil mpsc sharded", gil::mpsc::sharded, |shape| shape.receivers == 1,
    |capacity: usize, shape: Shape| {
        // Shards are a power of two, and share the capacity.
        let lane = size(capacity.div_ceil(shape.senders));
        let (tx, rx) = mpsc::sharded::channel(size(shape.senders.next_power_of_two()), lane);
        let mut txs = vec![tx];
        while txs.len() < shape.senders {
            txs.push(txs[0].clone().expect("there are as many shards as senders"));
        }
        (txs, vec![rx])
    };
}
