//! This project's rings and channels. A new one needs a type with a name, its roles, and a line in
//! the lists at the end.

use thalweg::ring::{self, Batch, Consumer, LaneConsumer, Layout, Producer};

use super::list::{BatchPairs, BlockingPairs, Crowds, TryPairs};
use super::yielding::{self, YieldingRecv, YieldingSend};
use super::{Crowd, Element, Message, Pair, RecvBatch, SendBatch, Shape, TryRecv, TrySend};

/// What all names of this project begin with.
pub(crate) const OURS: &str = "thalweg";

/// `ring::spsc`, elements side by side.
#[derive(Debug)]
pub(crate) struct RingPacked;

/// `ring::spsc`, the sequence beside each element.
#[derive(Debug)]
pub(crate) struct RingSlotted;

/// `ring::mpsc`: a lane for each sender.
#[derive(Debug)]
pub(crate) struct RingLanes;

const CAPACITY_FITS: &str = "the experiments' capacities are within the limits";

impl<M: Element> Pair<M> for RingPacked {
    const NAME: &'static str = "thalweg ring packed";
    type Tx = Producer<M>;
    type Rx = Consumer<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        ring::spsc(capacity, Layout::Packed).expect(CAPACITY_FITS)
    }
}

impl<M: Element> Pair<M> for RingSlotted {
    const NAME: &'static str = "thalweg ring slotted";
    type Tx = Producer<M>;
    type Rx = Consumer<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        ring::spsc(capacity, Layout::Slotted).expect(CAPACITY_FITS)
    }
}

impl<M: Element> Pair<M> for RingLanes {
    const NAME: &'static str = "thalweg ring lanes";
    type Tx = Producer<M>;
    type Rx = LaneConsumer<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        let (mut txs, rx) = ring::mpsc(1, capacity, Layout::Packed).expect(CAPACITY_FITS);
        (txs.pop().expect("one lane was asked for"), rx)
    }
}

impl<M: Element> Crowd<M> for RingLanes {
    const NAME: &'static str = "thalweg ring lanes (try, yield)";
    type Tx = YieldingSend<Producer<M>>;
    type Rx = YieldingRecv<LaneConsumer<M>>;
    fn fits(shape: Shape) -> bool {
        shape.receivers == 1
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let lane = capacity.div_ceil(shape.senders);
        let (txs, rx) = ring::mpsc(shape.senders, lane, Layout::Packed).expect(CAPACITY_FITS);
        yielding::crowd(txs, vec![rx])
    }
}

impl<M: Element> TrySend<M> for Producer<M> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        self.try_push(message).is_ok()
    }
}

impl<M: Element> SendBatch<M> for Producer<M> {
    #[inline]
    fn send_batch(&mut self, count: usize, make: impl FnMut(usize) -> M) -> usize {
        self.push_iter((0..count).map(make))
    }
}

fn drain<M>(batch: Batch<'_, M>, take: impl FnMut(M)) -> usize {
    let count = batch.len();
    batch.for_each(take);
    count
}

macro_rules! receives {
    ($($consumer:ident),*) => {$(
        impl<M: Element> TryRecv<M> for $consumer<M> {
            #[inline]
            fn try_recv(&mut self) -> Option<M> {
                self.try_pop().ok()
            }
        }

        impl<M: Element> RecvBatch<M> for $consumer<M> {
            #[inline]
            fn recv_batch(&mut self, max: usize, take: impl FnMut(M)) -> usize {
                drain(self.batch(max), take)
            }
        }
    )*};
}

receives!(Consumer, LaneConsumer);

pub(super) fn try_pairs<M: Message>(to: &mut impl TryPairs<M>) {
    to.meet::<RingPacked>();
    to.meet::<RingSlotted>();
    to.meet::<RingLanes>();
}

pub(super) fn batch_pairs<M: Message>(to: &mut impl BatchPairs<M>) {
    to.meet::<RingPacked>();
    to.meet::<RingSlotted>();
    to.meet::<RingLanes>();
}

/// Rings do not wait; channels will stand here.
pub(super) fn blocking_pairs<M: Message>(_: &mut impl BlockingPairs<M>) {}

pub(super) fn crowds<M: Element>(to: &mut impl Crowds<M>) {
    to.meet::<RingLanes>();
}
