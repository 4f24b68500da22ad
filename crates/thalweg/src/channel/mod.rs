//! Channels: the names of `std::sync::mpsc` and `crossbeam-channel`, over the rings of
//! [`ring`](crate::ring).
//!
//! ```
//! let (mut tx, mut rx) = thalweg::channel::spsc(1024);
//! std::thread::spawn(move || {
//!     for n in 1..=100u64 {
//!         tx.send(n).expect("the receiver is there");
//!     }
//! });
//! assert_eq!(rx.iter().sum::<u64>(), 5050);
//! ```
//!
//! | | senders | receivers | order | capacity |
//! |---|---|---|---|---|
//! | [`spsc()`] | one | one | total | exact |
//! | [`mpsc()`] | many | one | total | exact |
//! | [`mpmc()`] | many | many | total (*) | exact |
//! | [`unbounded()`] | many | many | total | a limit, allocated as needed |
//! | [`oneshot()`] | one | one | | one element, once |
//!
//! (*) Except at capacity 0 with several receivers, if a receive future that was already handed an
//! element is dropped: see [`Receiver::recv_async`].
//!
//! [`Builder`] has the options, and other combinations, such as an unbounded channel with one
//! receiver. [`Overflow`] says what becomes of an element when the channel is full.
//!
//! Choose the narrowest shape that fits: what two sides do not share costs nothing. Endpoints are
//! `Send` and not `Sync`, and their operations take `&mut self`: a thread has its own, and clones
//! one for another; [`Sender::share`] makes a sender for `&self`. Methods of other crates, and how
//! ends are shared: [`porting`].
//!
//! # Disconnecting
//! When the last sender is dropped, receivers get what was sent, then an error. When the last
//! receiver is dropped, senders get an error with their element, and what is still in the channel
//! is dropped at once, by that receiver. [`Receiver::close`] ends sending and keeps what is there.
//!
//! A send that is under way while the last receiver leaves either gives its element back, or says
//! `Ok`: the channel took it, and it is dropped before the send returns, or by the receiver that is
//! leaving, as if that had received and dropped it. Nothing waits in a channel without receivers,
//! so an element may hold the sender of a reply: a thread that waits for that reply learns that
//! none comes. (The exception is a [`Claim`] that is kept: what others send behind it waits until
//! it is committed or dropped.) All elements without a receiver are counted in
//! [`Counters::discarded`]. If the drop of one panics, the others are dropped all the same, and the
//! first panic goes on in the thread that dropped it, which may be a sender's.
//!
//! # Async
//! [`Sender::send_async`], [`Sender::claim_async`], [`Receiver::recv_async`],
//! [`Receiver::recv_many_async`], [`Sender::closed`] and [`Select::wait_async`]
//! are futures, which need nothing of a runtime but its `Waker`. A future
//! takes its element when it is polled, not when it is made. One that is done panics when it is
//! polled again, as that of an `async fn` does; a [`OneshotReceiver`], which is an end and a
//! future, says once more that nothing comes. With the feature `stream`, off by default, ends
//! become a `futures_core::Stream` and a `futures_sink::Sink`: [`Receiver::stream`],
//! [`Receiver::into_stream`], `Sender::into_sink`.
//!
//! # Futures that wait and are not polled
//! A notification wakes the waiter that came first. That may be a task which keeps its future
//! without polling it: an arm of a loop around `select!` whose other arm is at work, say. No other
//! *task* is woken instead, so one can sleep though an element, or room, is available, until the
//! future is polled or dropped. Poll a future that waits, or drop it. A *thread* that waits beside
//! it is woken all the same. At a rendezvous, an element is handed to the receiver that came first,
//! and is in its future until then.
//!
//! A future or a guard that is forgotten ([`std::mem::forget`]) is one that is kept, until its
//! endpoint is used again, or dropped. Then its wait is over, and its notification goes to another;
//! a [`Claim`] is given up; the room of a [`Batch`] comes back. The elements inside are leaked.
//!
//! # Memory ordering
//! All that a thread did before it sent an element is visible, after the receive, to the thread
//! that received it.

mod builder;
mod claim;
mod error;
mod future;
mod hub;
mod locked;
mod meeting;
#[cfg(all(test, loom))]
pub(crate) mod models;
mod named;
mod oneshot;
#[cfg(any(doc, doctest))]
#[doc = include_str!("porting.md")]
pub mod porting {}
mod receiver;
pub mod select;
mod sender;
mod shared;
mod slip;
mod stores;
mod weak;
mod within;
pub(crate) use within::{Express, Place};

pub use builder::{BuildError, Builder};
pub use claim::Claim;
pub use error::{
    ClaimError, RecvError, RecvTimeoutError, SendError, SendManyError, SendTimeoutError,
    TryRecvError, TrySendError,
};
#[cfg(feature = "stream")]
pub use future::SendSink;
pub use future::{RecvFuture, RecvStream, SendFuture};
pub use hub::{Counters, ManyReceivers, ManySenders, Mpmc, Mpsc, Overflow, Shape, Spsc};
pub use named::Named;
pub use oneshot::{OneshotReceiver, OneshotSender, oneshot};
pub use receiver::{Batch, IntoIter, Iter, Receiver, TryIter};
pub use select::{Select, SelectEmpty, SelectList, SelectTimeout, Timer, after, at, never, tick};
pub use sender::{Closed, Sender};
pub use shared::SharedSender;
pub use weak::{WeakReceiver, WeakSender};

macro_rules! shape {
    ($(#[$doc:meta])* $name:ident, $shape:ident) => {
        $(#[$doc])*
        ///
        /// # Panics
        /// If `capacity` is above [`CAPACITY_MAX`](crate::ring::CAPACITY_MAX), or there is no
        /// memory for that many; [`Builder`] gives an error instead.
        pub fn $name<T: Send>(capacity: usize) -> Ends<T, $shape> {
            match Builder::new(capacity).$name() {
                Ok(ends) => ends,
                Err(error) => panic!("{error}"),
            }
        }

        /// The endpoints of this shape by name.
        pub mod $name {
            /// The sending end.
            pub type Sender<T> = super::Sender<T, super::$shape>;
            /// The receiving end.
            pub type Receiver<T> = super::Receiver<T, super::$shape>;
        }
    };
}

shape!(
    /// A channel of up to `capacity` elements between one sender and one receiver; 0 for a
    /// rendezvous.
    spsc,
    Spsc
);
shape!(
    /// A channel of up to `capacity` elements from many senders to one receiver; 0 for a
    /// rendezvous. Elements have one order for all: that in which sends took effect.
    ///
    /// If `capacity` is above 2,048, that is its [soft limit](Builder::soft_limit): senders that
    /// find more elements queued yield for a while.
    mpsc,
    Mpsc
);
shape!(
    /// A channel of up to `capacity` elements between many senders and many receivers; 0 for a
    /// rendezvous.
    ///
    /// Elements have one order for all, in which receivers take them. At a rendezvous an element
    /// can come after a later one, also one of the same sender, if the receive that it was handed
    /// to is given up; see [`Receiver::recv_async`].
    ///
    /// If `capacity` is above 2,048, that is its [soft limit](Builder::soft_limit), as in
    /// [`mpsc()`].
    mpmc,
    Mpmc
);

/// The two ends of a channel of shape `S`.
pub type Ends<T, S> = (Sender<T, S>, Receiver<T, S>);

/// Returns a channel that allocates as it grows, up to `limit` elements, for any number of
/// endpoints. Slower than a bounded one: a lock, some 20 ns an operation.
///
/// For one receiver in the type: [`Builder::unbounded(limit).mpsc()`](Builder::mpsc), or `.spsc()`
/// for one sender, too. The cost is the same.
///
/// # Panics
/// If `limit` is 0 or above [`CAPACITY_MAX`](crate::ring::CAPACITY_MAX); [`Builder`] gives an error
/// instead.
pub fn unbounded<T: Send>(limit: usize) -> Ends<T, Mpmc> {
    match Builder::unbounded(limit).mpmc() {
        Ok(ends) => ends,
        Err(error) => panic!("{error}"),
    }
}
