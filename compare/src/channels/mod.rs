//! Channels and queues, ours and others', behind one set of roles, so that an experiment is written
//! once and a peer is a few lines.
//!
//! A peer plays the roles that its own documented interface has: it is not given a batch or a
//! blocking call that it does not offer.

mod bounded;
mod disruptor;
mod gil;
mod message;
mod omango;
mod oneshot;
mod ours;
mod ringbuf;
mod rtrb;
mod tokio;
mod yielding;

use crate::runner::{Ran, Subjects, subject};

pub(crate) use message::{Element, LAST, Order};
pub(crate) use oneshot::Oneshot;

/// One sender and one receiver.
pub(crate) trait Pair<M>: Send + Sync + 'static {
    /// As it stands in tables.
    const NAME: &'static str;
    type Tx: Send + 'static;
    type Rx: Send + 'static;
    /// A new channel with room for `capacity` messages, or for more where the peer rounds up.
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx);
}

/// A pair that tries.
pub(crate) trait TryPair<M>: Pair<M, Tx: TrySend<M>, Rx: TryRecv<M>> {}

impl<M, P: Pair<M, Tx: TrySend<M>, Rx: TryRecv<M>>> TryPair<M> for P {}

/// A pair with batches on both sides.
pub(crate) trait BatchPair<M>: Pair<M, Tx: SendBatch<M>, Rx: RecvBatch<M>> {}

impl<M, P: Pair<M, Tx: SendBatch<M>, Rx: RecvBatch<M>>> BatchPair<M> for P {}

/// A pair whose two sides wait.
pub(crate) trait BlockingPair<M>: Pair<M, Tx: BlockingSend<M>, Rx: BlockingRecv<M>> {}

impl<M, P: Pair<M, Tx: BlockingSend<M>, Rx: BlockingRecv<M>>> BlockingPair<M> for P {}

/// How many senders and receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) senders: usize,
    pub(crate) receivers: usize,
}

/// Several senders or receivers, which wait. Each message goes to one receiver.
pub(crate) trait Crowd<M>: Send + Sync + 'static {
    /// As it stands in tables.
    const NAME: &'static str;
    type Tx: BlockingSend<M>;
    type Rx: BlockingRecv<M>;
    /// Returns whether the peer has such a shape.
    fn fits(shape: Shape) -> bool;
    /// A new channel; `capacity` as in [`Pair::pair`], in all: a sender's own lane gets its share.
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>);
}

/// Sends without waiting.
pub(crate) trait TrySend<M>: Send + 'static {
    /// `false` if there was no room.
    fn try_send(&mut self, message: M) -> bool;
}

/// Receives without waiting.
pub(crate) trait TryRecv<M>: Send + 'static {
    fn try_recv(&mut self) -> Option<M>;
}

/// Sends several messages in one call.
pub(crate) trait SendBatch<M>: Send + 'static {
    /// Sends up to `count` messages, `make(0)`, `make(1)` …, and returns how many; a peer may do
    /// all or nothing.
    fn send_batch(&mut self, count: usize, make: impl FnMut(usize) -> M) -> usize;
}

/// Receives several messages in one call.
pub(crate) trait RecvBatch<M>: Send + 'static {
    /// Takes up to `max` messages, and returns how many.
    fn recv_batch(&mut self, max: usize, take: impl FnMut(M)) -> usize;
}

/// Sends, and waits for room in the peer's own way.
pub(crate) trait BlockingSend<M>: Send + 'static {
    fn send(&mut self, message: M);
}

/// Receives, and waits in the peer's own way.
pub(crate) trait BlockingRecv<M>: Send + 'static {
    /// `None` when all senders are gone and everything was received. A pair that cannot tell may
    /// wait for ever; there the last message says that it is the last.
    fn recv(&mut self) -> Option<M>;
}

/// Clones an endpoint.
fn copies<T: Clone>(first: T, count: usize) -> Vec<T> {
    vec![first; count]
}

/// What is done with one of the channels, under a load.
pub(crate) trait Job: 'static {
    type Load: 'static;
}

macro_rules! roles {
    ($($(#[$doc:meta])* $each:ident, $job:ident, $role:ident: $($peer:ty),*;)*) => {$(
        $(#[$doc])*
        pub(crate) trait $job: Job {
            /// Does one run, as [`Subject::run`](crate::runner::Subject::run).
            fn run<P: $role<u64>>(load: &Self::Load) -> Ran;
        }

        /// Returns all of them as subjects of a job.
        pub(crate) fn $each<J: $job>() -> Subjects<J::Load> {
            vec![$(subject(<$peer as Pair<u64>>::NAME, <J as $job>::run::<$peer>)),*]
        }
    )*};
}

roles! {
    /// A job for pairs that try.
    each_try, TryJob, TryPair: ours::Spsc, ours::SpscSlotted, ours::RingPacked, ours::RingSlotted,
        bounded::Crossbeam, bounded::Flume, bounded::Kanal, bounded::Std, tokio::Tokio, rtrb::Rtrb,
        ringbuf::Ringbuf, gil::Spsc, omango::Spsc, disruptor::Disruptor;
    /// A job for pairs with batches on both sides.
    each_batch, BatchJob, BatchPair: ours::Spsc, ours::RingPacked, ours::RingSlotted, rtrb::Rtrb,
        ringbuf::Ringbuf, gil::Spsc;
    /// A job for pairs whose two sides wait.
    each_blocking, BlockingJob, BlockingPair: ours::Spsc, ours::SpscLatency, ours::SpscPower,
        bounded::Crossbeam, bounded::Flume, bounded::Kanal, bounded::Std, tokio::Tokio, gil::Spsc;
}

/// A job for several senders or receivers.
pub(crate) trait CrowdJob<M>: Job {
    /// Does one run, as [`Subject::run`](crate::runner::Subject::run).
    fn run<C: Crowd<M>>(load: &Self::Load) -> Ran;
}

macro_rules! add {
    ($all:ident, $shape:ident: $($crowd:ty),*;) => {$(
        if <$crowd as Crowd<M>>::fits($shape) {
            $all.push(subject(<$crowd as Crowd<M>>::NAME, J::run::<$crowd>));
        }
    )*};
}

/// Returns those that there can be in a shape, as subjects of a job.
pub(crate) fn each_crowd<M: Element, J: CrowdJob<M>>(shape: Shape) -> Subjects<J::Load> {
    let mut all: Subjects<J::Load> = Vec::new();
    add! {
        all, shape: ours::OneToOne, ours::FanIn, ours::FanOut, ours::Lanes, ours::Balanced,
        bounded::Crossbeam, bounded::Flume, bounded::Kanal, bounded::Std, tokio::Tokio, gil::Mpsc,
        gil::MpscSharded, gil::Spmc;
    }
    all
}

/// A job for channels for one element.
pub(crate) trait OneshotJob: Job {
    /// Does one run, as [`Subject::run`](crate::runner::Subject::run).
    fn run<O: Oneshot<u64>>(load: &Self::Load) -> Ran;
}

/// Returns all channels for one element as subjects of a job.
pub(crate) fn each_oneshot<J: OneshotJob>() -> Subjects<J::Load> {
    macro_rules! all {
        ($($peer:ident),*) => {
            vec![$(subject(
                <oneshot::$peer as Oneshot<u64>>::NAME,
                J::run::<oneshot::$peer>,
            )),*]
        };
    }
    all!(Thalweg, TheCrate, Tokio, Crossbeam, Std)
}
