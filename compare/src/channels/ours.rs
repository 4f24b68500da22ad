//! This project's rings and channels.

use thalweg::channel::{self, Builder};
use thalweg::ring::{self, Consumer, Layout, Producer};
use thalweg::wait::Mode;

use super::{BlockingRecv, BlockingSend, TryRecv, TrySend, copies};
use super::{Crowd, Element, Pair, RecvBatch, SendBatch, Shape};

const CAPACITY_FITS: &str = "the experiments' capacities are within the limits";

/// Rings of this layout.
macro_rules! rings {
    ($($subject:ident $name:literal: $layout:expr;)*) => {$(
        #[doc = concat!("`", $name, "`.")]
        #[derive(Debug)]
        pub(crate) struct $subject;

        impl<M: Element> Pair<M> for $subject {
            const NAME: &'static str = $name;
            type Tx = Producer<M>;
            type Rx = Consumer<M>;
            fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
                ring::spsc(capacity, $layout).expect(CAPACITY_FITS)
            }
        }
    )*};
}

rings! {
    RingPacked "thalweg ring packed": Layout::Packed;
    RingSlotted "thalweg ring slotted": Layout::Slotted;
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

impl<M: Element> TryRecv<M> for Consumer<M> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        self.try_pop().ok()
    }
}

impl<M: Element> RecvBatch<M> for Consumer<M> {
    #[inline]
    fn recv_batch(&mut self, max: usize, take: impl FnMut(M)) -> usize {
        let batch = self.batch(max);
        let count = batch.len();
        batch.for_each(take);
        count
    }
}

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
    /// The defaults.
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

/// The narrowest shape that fits, with these options.
macro_rules! crowds {
    ($($(#[$doc:meta])* $subject:ident $name:literal: $options:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $subject;

        impl<M: Element> Crowd<M> for $subject {
            const NAME: &'static str = $name;
            type Tx = AnySender<M>;
            type Rx = AnyReceiver<M>;
            fn fits(_: Shape) -> bool {
                true
            }
            fn crowd(capacity: usize, shape: Shape) -> Ends<M> {
                let options: fn(Builder) -> Builder = $options;
                own(options, capacity, shape)
            }
        }
    )*};
}

crowds! {
    /// The defaults.
    Own "thalweg": |builder| builder;
    /// With a soft limit in any shape, which is the default where there are several senders.
    Balanced "thalweg soft limit": |builder| builder.soft_limit(2048);
}

/// Many senders, one receiver, and a lane for each sender.
#[derive(Debug)]
pub(crate) struct Lanes;

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
