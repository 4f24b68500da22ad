//! Channels and queues of this project and of others have one set of roles, so that an experiment
//! is written once and a peer is a few lines.
//!
//! A peer has the roles of its documented interface: no batch or blocking call is added to it.

/// Declares channels: the name in tables, the endpoints, the possible shapes, and a function that
/// makes one of a capacity and a shape.
macro_rules! channels {
    ($bound:ident; $(
        $(#[$doc:meta])*
        $name:ident $label:literal: $tx:ty, $rx:ty, $fits:expr, $open:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name;

        impl<M: $bound> $crate::channels::Channel<M> for $name {
            const NAME: &'static str = $label;
            type Tx = $tx;
            type Rx = $rx;
            fn fits(shape: Topology) -> bool {
                let fits: fn(Topology) -> bool = $fits;
                fits(shape)
            }
            fn open(capacity: usize, shape: Topology) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
                let open: fn(usize, Topology) -> (Vec<Self::Tx>, Vec<Self::Rx>) = $open;
                open(capacity, shape)
            }
        }
    )*};
}

/// Declares the roles of endpoints. `Self::` calls the peer's own function, not that of the role.
macro_rules! ends {
    (@try_send $($rest:tt)*) => { ends!(@impl TrySend try_send bool, $($rest)*); };
    (@send $bound:ident $end:ty, $this:ident [$message:ident] $body:expr) => {
        // A receiver that is gone shows in the count of what came.
        ends!(@impl BlockingSend send (), $bound $end, $this [$message] { let _ = $body; });
    };
    (@try_recv $($rest:tt)*) => { ends!(@impl TryRecv try_recv Option<M>, $($rest)*); };
    (@recv $($rest:tt)*) => { ends!(@impl BlockingRecv recv Option<M>, $($rest)*); };
    (@impl $role:ident $call:ident $out:ty,
        $bound:ident $end:ty, $this:ident [$($message:ident)?] $body:expr) => {
        impl<M: $bound> $crate::channels::$role<M> for $end {
            #[inline]
            fn $call(&mut self $(, $message: M)?) -> $out {
                let $this = self;
                $body
            }
        }
    };
    ($bound:ident; $($end:ty: $($role:ident |$it:ident $(, $message:ident)?| $body:expr),+;)*) => {
        $($(ends!(@$role $bound $end, $it [$($message)?] $body);)+)*
    };
}

/// Returns the channels that are possible in a shape, as subjects of a job: a function that is
/// generic over the channel.
macro_rules! subjects {
    ($job:ident, $message:ty, $shape:expr; $($channel:ty),* $(,)?) => {{
        let wanted = $shape;
        let mut all = Vec::new();
        {
            use $crate::channels::*;
            $(if <$channel as Channel<$message>>::fits(wanted) {
                let name = <$channel as Channel<$message>>::NAME;
                all.push($crate::runner::subject(name, $job::<$channel>));
            })*
        }
        all
    }};
}

/// Returns the pairs that try, as subjects of a job.
macro_rules! each_try {
    ($job:ident) => {
        subjects! {
            $job, u64, $crate::channels::PAIR; ours::Spsc, ours::SpscSlotted, ours::RingPacked,
            ours::RingSlotted, bounded::Crossbeam, bounded::Flume, bounded::Kanal, bounded::Std,
            bounded::Tokio, rings::Rtrb, gil::Spsc, rings::Omango,
        }
    };
}

/// Returns the pairs whose two sides wait.
macro_rules! each_blocking {
    ($job:ident) => {
        subjects! {
            $job, u64, $crate::channels::PAIR; ours::Spsc, ours::SpscLatency, ours::SpscPower,
            bounded::Crossbeam, bounded::Flume, bounded::Kanal, bounded::Std, bounded::Tokio,
            gil::Spsc,
        }
    };
}

/// Returns the channels whose several senders or receivers wait; each message goes to one receiver.
macro_rules! each_crowd {
    ($job:ident, $shape:expr) => {
        subjects! {
            $job, u64, $shape; ours::OneToOne, ours::FanIn, ours::FanOut,
            ours::Balanced, bounded::Crossbeam, bounded::Flume, bounded::Kanal, bounded::Std,
            bounded::Tokio, gil::Mpsc, gil::MpscSharded, gil::Spmc,
        }
    };
}

pub(crate) use {channels, each_blocking, each_crowd, each_try, ends, subjects};

pub(crate) mod bounded;
pub(crate) mod gil;
pub(crate) mod ours;
pub(crate) mod rings;
pub(crate) mod yielding;

pub(crate) use yielding::insist;

/// Every peer can carry elements.
pub(crate) trait Element:
    Copy + Default + PartialEq + Send + Sync + Unpin + 'static
{
}

impl<T: Copy + Default + PartialEq + Send + Sync + Unpin + 'static> Element for T {}

/// This message is the last.
pub const LAST: u64 = u64::MAX;

/// A shape is a number of senders and of receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Topology {
    pub(crate) senders: usize,
    pub(crate) receivers: usize,
}

pub(crate) const PAIR: Topology = shape(1, 1);

pub(crate) const fn shape(senders: usize, receivers: usize) -> Topology {
    Topology { senders, receivers }
}

/// A channel type makes channels.
pub(crate) trait Channel<M>: 'static {
    /// Tables have this name.
    const NAME: &'static str;
    type Tx: Send + 'static;
    type Rx: Send + 'static;
    /// Returns whether the peer has such a shape.
    fn fits(shape: Topology) -> bool;
    /// Returns the ends of a new channel with room for `capacity` messages in all, or for more
    /// where the peer rounds up.
    fn open(capacity: usize, shape: Topology) -> (Vec<Self::Tx>, Vec<Self::Rx>);
    /// Returns the ends of a channel with a single sender and receiver.
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        let (mut txs, mut rxs) = Self::open(capacity, PAIR);
        txs.pop().zip(rxs.pop()).expect("there is one of each")
    }
}

/// Sends without waiting.
pub(crate) trait TrySend<M>: Send + 'static {
    /// Returns `false` if there was no room.
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
    /// Returns `None` when all senders are gone and everything was received. A pair that cannot
    /// detect that may wait for ever; [`LAST`] ends it.
    fn recv(&mut self) -> Option<M>;
}

fn is_pair(shape: Topology) -> bool {
    shape == PAIR
}

/// Returns the ends of a pair as the lists of ends of a shape.
fn alone<T, R>((tx, rx): (T, R)) -> (Vec<T>, Vec<R>) {
    (vec![tx], vec![rx])
}

/// Clones the sender as often as there are senders.
fn fan_in<T: Clone, R>((tx, rx): (T, R), shape: Topology) -> (Vec<T>, Vec<R>) {
    (vec![tx; shape.senders], vec![rx])
}

/// Clones both ends.
fn fan<T: Clone, R: Clone>((tx, rx): (T, R), shape: Topology) -> (Vec<T>, Vec<R>) {
    (vec![tx; shape.senders], vec![rx; shape.receivers])
}
