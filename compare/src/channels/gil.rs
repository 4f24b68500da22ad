//! `gil`. Its waiting calls spin and yield, and know no end, so that these adapters bring one.
//!
//! Its parking queues would wait on a futex, but lose wake-ups: who publishes stores with Release
//! and then loads the waiter's flag, and nothing keeps the load from going first. A round trip over
//! two of them did not end here (0.9.0, x86-64: each thread asleep with a message before it). So
//! they only try.

use std::num::NonZeroUsize;

use gil::{mpmc, mpsc, spmc, spsc};

use super::yielding::{self, YieldingRecv, YieldingSend};
use super::{
    BlockingRecv, BlockingSend, Crowd, Element, Pair, RecvBatch, SendBatch, Shape, TryRecv,
    TrySend, copies,
};

/// One to one.
#[derive(Debug)]
pub(crate) struct Spsc;

/// One to one, the queue that can park.
#[derive(Debug)]
pub(crate) struct SpscParking;

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

impl<M: Element> Pair<M> for SpscParking {
    const NAME: &'static str = "gil spsc parking";
    type Tx = spsc::parking::Sender<M>;
    type Rx = spsc::parking::Receiver<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        spsc::parking::channel(size(capacity))
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
    spsc::parking::Sender<M>, spsc::parking::Receiver<M>;
    mpsc::Sender<M>, mpsc::Receiver<M>;
    mpsc::sharded::Sender<M>, mpsc::sharded::Receiver<M>;
    spmc::Sender<M>, spmc::Receiver<M>;
    mpmc::Sender<M>, mpmc::Receiver<M>;
    mpmc::sharded::Sender<M>, mpmc::sharded::Receiver<M>;
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
    Mpmc, "gil mpmc", gil::mpmc, |_| true, |capacity, shape: Shape| {
        let (tx, rx) = mpmc::channel(size(capacity));
        (copies(tx, shape.senders), copies(rx, shape.receivers))
    };
    MpscSharded, "gil mpsc sharded", gil::mpsc::sharded, |shape| shape.receivers == 1,
    |capacity, shape: Shape| {
        let (tx, rx) = mpsc::sharded::channel(shards(shape), lane(capacity, shape));
        let txs = each_own(tx, shape.senders, |tx| tx.clone());
        (txs, vec![rx])
    };
    MpmcSharded, "gil mpmc sharded", gil::mpmc::sharded, |_| true, |capacity, shape: Shape| {
        let (tx, rx) = mpmc::sharded::channel(shards(shape), lane(capacity, shape));
        let txs = each_own(tx, shape.senders, |tx| tx.try_clone());
        let rxs = each_own(rx, shape.receivers, |rx| rx.try_clone());
        (txs, rxs)
    };
}

/// Each sender's share of the capacity.
fn lane(capacity: usize, shape: Shape) -> NonZeroUsize {
    size(capacity.div_ceil(shape.senders))
}

/// Shards are a power of two, and as many as the larger side has ends.
fn shards(shape: Shape) -> NonZeroUsize {
    size(shape.senders.max(shape.receivers).next_power_of_two())
}

/// So many ends, each with a shard of its own.
fn each_own<T>(first: T, count: usize, next: impl Fn(&T) -> Option<T>) -> Vec<T> {
    let mut ends = vec![first];
    while ends.len() < count {
        ends.push(next(&ends[0]).expect("there are as many shards as ends"));
    }
    ends
}
