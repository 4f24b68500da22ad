//! This project's rings and channels. A new one needs a type with a name, its roles, and a line in
//! the lists at the end.

use thalweg::channel::{self, Builder};
use thalweg::ring::{self, Batch, Consumer, Layout, Producer};
use thalweg::wait::Mode;

use super::list::{BatchPairs, BlockingPairs, Crowds, TryPairs};
use super::{BlockingRecv, BlockingSend, TryRecv, TrySend, copies};
use super::{Crowd, Element, Message, Pair, RecvBatch, SendBatch, Shape};

/// What all names of this project begin with.
pub(crate) const OURS: &str = "thalweg";

/// `ring::spsc`, elements side by side.
#[derive(Debug)]
pub(crate) struct RingPacked;

/// `ring::spsc`, the sequence beside each element.
#[derive(Debug)]
pub(crate) struct RingSlotted;

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

receives!(Consumer);

/// One sender and one receiver, with these options.
macro_rules! pairs {
    ($($(#[$doc:meta])* $subject:ident $name:literal: $options:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $subject;

        impl<M: Element> Pair<M> for $subject {
            const NAME: &'static str = $name;
            type Tx = channel::spsc::Sender<M>;
            type Rx = channel::spsc::Receiver<M>;
            fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
                let options: fn(Builder) -> Builder = $options;
                options(Builder::new(capacity)).spsc().expect(CAPACITY_FITS)
            }
        }
    )*};
}

pairs! {
    /// As it comes.
    Spsc "thalweg spsc": |builder| builder;
    /// The sequence beside each element.
    SpscSlotted "thalweg spsc slotted": |builder| builder.layout(Layout::Slotted);
    /// Spins for up to 5 ms.
    SpscLatency "thalweg spsc latency": |builder| {
        builder.layout(Layout::Slotted).mode(Mode::Latency)
    };
    /// Never spins.
    SpscPower "thalweg spsc power": |builder| builder.mode(Mode::Power);
}

/// The narrowest shape that fits, as it comes.
#[derive(Debug)]
pub(crate) struct Own;
/// Many senders, one receiver, and a lane for each sender.
#[derive(Debug)]
pub(crate) struct Lanes;
/// As [`Own`], without a soft limit.
#[derive(Debug)]
pub(crate) struct Unlimited;
/// As [`Own`], with a soft limit in any shape.
#[derive(Debug)]
pub(crate) struct Balanced;

/// As many messages as wait by default where there are several senders.
const SOFT_LIMIT: usize = 2048;

/// A sender of any shape.
#[derive(Debug)]
pub(crate) enum AnySender<M> {
    One(channel::spsc::Sender<M>),
    ToOne(channel::mpsc::Sender<M>),
    Shared(channel::mpmc::Sender<M>),
}

/// A receiver of any shape.
#[derive(Debug)]
pub(crate) enum AnyReceiver<M> {
    One(channel::spsc::Receiver<M>),
    FromMany(channel::mpsc::Receiver<M>),
    Shared(channel::mpmc::Receiver<M>),
}

type Ends<M> = (Vec<AnySender<M>>, Vec<AnyReceiver<M>>);

/// The narrowest shape; `capacity` in all.
fn own<M: Element>(options: impl Fn(Builder) -> Builder, capacity: usize, shape: Shape) -> Ends<M> {
    if shape.receivers > 1 {
        let (tx, rx) = options(Builder::new(capacity)).mpmc().expect(CAPACITY_FITS);
        let txs = copies(tx, shape.senders).into_iter();
        let rxs = copies(rx, shape.receivers).into_iter();
        (
            txs.map(AnySender::Shared).collect(),
            rxs.map(AnyReceiver::Shared).collect(),
        )
    } else if shape.senders > 1 {
        let (tx, rx) = options(Builder::new(capacity)).mpsc().expect(CAPACITY_FITS);
        let txs = copies(tx, shape.senders).into_iter();
        (
            txs.map(AnySender::ToOne).collect(),
            vec![AnyReceiver::FromMany(rx)],
        )
    } else {
        let (tx, rx) = options(Builder::new(capacity)).spsc().expect(CAPACITY_FITS);
        (vec![AnySender::One(tx)], vec![AnyReceiver::One(rx)])
    }
}

impl<M: Element> Crowd<M> for Own {
    const NAME: &'static str = "thalweg";
    type Tx = AnySender<M>;
    type Rx = AnyReceiver<M>;
    fn fits(_: Shape) -> bool {
        true
    }
    fn crowd(capacity: usize, shape: Shape) -> Ends<M> {
        own(|builder| builder, capacity, shape)
    }
}

impl<M: Element> Crowd<M> for Balanced {
    const NAME: &'static str = "thalweg soft limit";
    type Tx = AnySender<M>;
    type Rx = AnyReceiver<M>;
    fn fits(_: Shape) -> bool {
        true
    }
    fn crowd(capacity: usize, shape: Shape) -> Ends<M> {
        own(|builder| builder.soft_limit(SOFT_LIMIT), capacity, shape)
    }
}

impl<M: Element> Crowd<M> for Unlimited {
    const NAME: &'static str = "thalweg no soft limit";
    type Tx = AnySender<M>;
    type Rx = AnyReceiver<M>;
    fn fits(shape: Shape) -> bool {
        shape.senders > 1 || shape.receivers > 1
    }
    fn crowd(capacity: usize, shape: Shape) -> Ends<M> {
        own(|builder| builder.soft_limit(None), capacity, shape)
    }
}

impl<M: Element> Crowd<M> for Lanes {
    const NAME: &'static str = "thalweg lanes";
    type Tx = channel::mpsc::Sender<M>;
    type Rx = channel::mpsc::Receiver<M>;
    fn fits(shape: Shape) -> bool {
        shape.senders > 1 && shape.receivers == 1
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let builder = Builder::new(capacity / shape.senders).lanes();
        let (tx, rx) = builder.mpsc().expect(CAPACITY_FITS);
        (copies(tx, shape.senders), vec![rx])
    }
}

impl<M: Element> BlockingSend<M> for AnySender<M> {
    #[inline]
    fn send(&mut self, message: M) {
        // A receiver that is gone shows in the count of what came.
        let _ = match self {
            Self::One(tx) => tx.send(message),
            Self::ToOne(tx) => tx.send(message),
            Self::Shared(tx) => tx.send(message),
        };
    }
}

impl<M: Element> BlockingRecv<M> for AnyReceiver<M> {
    #[inline]
    fn recv(&mut self) -> Option<M> {
        match self {
            Self::One(rx) => rx.recv().ok(),
            Self::FromMany(rx) => rx.recv().ok(),
            Self::Shared(rx) => rx.recv().ok(),
        }
    }
}

impl<M: Element, S: channel::Shape> TrySend<M> for channel::Sender<M, S> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        channel::Sender::try_send(self, message).is_ok()
    }
}

impl<M: Element, S: channel::Shape> TryRecv<M> for channel::Receiver<M, S> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        channel::Receiver::try_recv(self).ok()
    }
}

impl<M: Element, S: channel::Shape> BlockingSend<M> for channel::Sender<M, S> {
    #[inline]
    fn send(&mut self, message: M) {
        // A receiver that is gone shows in the count of what came.
        let _ = channel::Sender::send(self, message);
    }
}

impl<M: Element, S: channel::Shape> BlockingRecv<M> for channel::Receiver<M, S> {
    #[inline]
    fn recv(&mut self) -> Option<M> {
        channel::Receiver::recv(self).ok()
    }
}

impl<M: Element, S: channel::Shape> SendBatch<M> for channel::Sender<M, S> {
    #[inline]
    fn send_batch(&mut self, count: usize, mut make: impl FnMut(usize) -> M) -> usize {
        let free = self.capacity() - self.len();
        let Ok(mut claim) = self.try_claim(count.min(free)) else {
            return 0;
        };
        // There is room for them.
        (0..claim.len()).for_each(|n| _ = claim.push(make(n)));
        claim.commit()
    }
}

impl<M: Element, S: channel::Shape> RecvBatch<M> for channel::Receiver<M, S> {
    #[inline]
    fn recv_batch(&mut self, max: usize, mut take: impl FnMut(M)) -> usize {
        let mut count = 0;
        self.batch(max).for_each(|message| {
            count += 1;
            take(message);
        });
        count
    }
}

pub(super) fn try_pairs<M: Message>(to: &mut impl TryPairs<M>) {
    to.meet::<Spsc>();
    to.meet::<SpscSlotted>();
    to.meet::<RingPacked>();
    to.meet::<RingSlotted>();
}

pub(super) fn batch_pairs<M: Message>(to: &mut impl BatchPairs<M>) {
    to.meet::<Spsc>();
    to.meet::<RingPacked>();
    to.meet::<RingSlotted>();
}

pub(super) fn blocking_pairs<M: Message>(to: &mut impl BlockingPairs<M>) {
    to.meet::<Spsc>();
    to.meet::<SpscLatency>();
    to.meet::<SpscPower>();
}

pub(super) fn crowds<M: Element>(to: &mut impl Crowds<M>) {
    to.meet::<Own>();
    to.meet::<Lanes>();
    to.meet::<Unlimited>();
    to.meet::<Balanced>();
}
