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

/// Several senders or receivers: the shape, when it is taken, and how the builder is called.
macro_rules! crowds {
    ($($(#[$doc:meta])* $subject:ident $name:literal: $shape:ident, $fits:expr,
        |$capacity:ident, $of:ident| $builder:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $subject;

        impl<M: Element> Crowd<M> for $subject {
            const NAME: &'static str = $name;
            type Tx = channel::$shape::Sender<M>;
            type Rx = channel::$shape::Receiver<M>;
            fn fits(shape: Shape) -> bool {
                let fits: fn(Shape) -> bool = $fits;
                fits(shape)
            }
            fn crowd($capacity: usize, $of: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
                let (tx, rx) = $builder.$shape().expect(CAPACITY_FITS);
                crowds!(@ends $shape tx rx $of)
            }
        }
    )*};
    (@ends spsc $tx:ident $rx:ident $shape:ident) => {{
        debug_assert_eq!($shape.senders, 1);
        (vec![$tx], vec![$rx])
    }};
    (@ends mpsc $tx:ident $rx:ident $shape:ident) => {
        (copies($tx, $shape.senders), vec![$rx])
    };
    (@ends mpmc $tx:ident $rx:ident $shape:ident) => {
        (copies($tx, $shape.senders), copies($rx, $shape.receivers))
    };
}

fn is_fan_in(shape: Shape) -> bool {
    shape.senders > 1 && shape.receivers == 1
}

// Users take the narrowest shape that fits.
crowds! {
    OneToOne "thalweg": spsc, |shape| shape.senders == 1 && shape.receivers == 1,
        |capacity, shape| Builder::new(capacity);
    FanIn "thalweg": mpsc, is_fan_in, |capacity, shape| Builder::new(capacity);
    FanOut "thalweg": mpmc, |shape| shape.receivers > 1, |capacity, shape| Builder::new(capacity);
    /// A lane for each sender, which share the capacity.
    Lanes "thalweg lanes": mpsc, is_fan_in,
        |capacity, shape| Builder::new(capacity / shape.senders).lanes();
    /// With a soft limit, which is the default where there are several senders.
    Balanced "thalweg soft limit": mpmc, |shape| shape.senders == 1,
        |capacity, shape| Builder::new(capacity).soft_limit(2048);
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
