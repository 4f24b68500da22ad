//! Channels and queues, ours and others', behind one set of roles, so that an experiment is written
//! once and a peer is a few lines.
//!
//! A peer plays the roles that its own documented interface has: it is not given a batch or a
//! blocking call that it does not offer. Two adapters say so in the name: `blocking` for the calls
//! that wait, `(try, yield)` for a queue without waiting calls in a test that needs them.

mod bounded;
mod cacheline;
mod crossbeam;
mod crossfire;
mod disruptor;
mod gil;
mod list;
mod message;
mod nexus;
mod omango;
mod oneshot;
mod ringbuf;
mod rtrb;
mod thalweg;
mod thingbuf;
mod tokio;
mod yielding;

pub(crate) use cacheline::CacheLine;
pub(crate) use list::{BatchPairs, BlockingPairs, Crowds, TryPairs};
pub(crate) use list::{WITHOUT_BATCHES, WITHOUT_WAITING};
pub(crate) use list::{each_batch_pair, each_blocking_pair, each_crowd, each_try_pair};
pub(crate) use message::{Element, Message, Order, Wide};
pub(crate) use oneshot::{Oneshot, Oneshots, each_oneshot};
pub(crate) use thalweg::OURS;

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
    /// Whether there can be so many of each.
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

/// So many clones of an endpoint.
fn copies<T: Clone>(first: T, count: usize) -> Vec<T> {
    vec![first; count]
}
