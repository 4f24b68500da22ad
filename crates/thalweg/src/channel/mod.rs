//! Channels with the names of `std::sync::mpsc` and `crossbeam-channel`, over the rings of
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
//! Where the table says *many*, the end implements [`Clone`]; where it says *one*, it does not.
//!
//! [`Builder`] has the options, and other combinations, such as an unbounded channel with one
//! receiver. [`Overflow`] is the policy for an element when the channel is full.
//!
//! Choose the narrowest shape that fits: the fewer endpoints share, the less an operation costs.
//! Endpoints are `Send` and not `Sync`, and their operations take `&mut self`: each thread has its
//! own, and clones it for another; [`Sender::into_shared`] makes a sender for `&self`. [`porting`]
//! maps the methods of other crates to these, and shows how to share endpoints.
//!
//! `send`, `recv`, `claim`, `iter` and the other forms that wait block the thread. In a task use
//! those whose names end in `_async`, a [`stream`](Receiver::stream) or a
//! [`closed`](Sender::closed).
//!
//! # Fairness
//! Waiting threads and tasks are woken in the order in which they began to wait. An element, or a
//! free slot, is not reserved for the one that is woken: a newcomer may take it first, and then the
//! woken one waits again, behind the others. At a rendezvous an element is handed directly to the
//! receiver that has waited longest, and no newcomer comes between.
//!
//! # Disconnecting
//! When the last sender is dropped, receivers get the elements that were sent, then an error. When
//! the last receiver is dropped, senders get an error with their element, and the elements that are
//! still in the channel are dropped at once, by that receiver. [`Receiver::close`] ends sending and
//! keeps the elements.
//!
//! A send that runs while the last receiver is dropped either returns its element in an error, or
//! returns `Ok`: then the channel accepted the element, and it is dropped before the send returns,
//! or by the receiver, as if that had received and dropped it. No element stays in a channel
//! without receivers, so an element may hold the sender of a reply: a thread that waits for that
//! reply gets an error. (The exception is a [`Claim`] that is held: elements which others send
//! after it stay until it is committed or dropped.) All elements without a receiver are counted in
//! [`Counters::discarded`]. If the drop of one panics, the others are dropped all the same, and the
//! first panic is resumed in the thread that dropped it, which may be a sender's.
//!
//! # Async
//! [`Sender::send_async`], [`Sender::claim_async`], [`Receiver::recv_async`],
//! [`Receiver::recv_many_async`], [`Sender::closed`] and [`Select::wait_async`] are futures, which
//! need only a `Waker` of the runtime. A future sends or receives when it is polled, not when it is
//! made. One that was ready panics when it is polled again, as that of an `async fn` does; a
//! [`OneshotReceiver`], which is an endpoint and a future, is ready with an error again.
//! [`Receiver::stream`] and [`Receiver::into_stream`] poll by `poll_recv`; with the feature
//! `stream`, off by default, they are a `futures_core::Stream`.
//!
//! Dropping a future of a receive, a claim or `closed` loses nothing, nor does dropping one of
//! [`Sender::send_from_async`]. The futures of [`Sender::send_async`] and
//! [`SharedSender::send_async`] drop their element with themselves, so they are not for an arm of a
//! `select!`.
//!
//! # Futures that wait and are not polled
//! A notification wakes the waiter that came first. That may be a task which keeps its future
//! without polling it: an arm of a loop around `select!` whose other arm is running, say. No other
//! *task* is woken instead, so one can sleep though an element, or a slot, is available, until the
//! future is polled or dropped. Poll a future that waits, or drop it. A *thread* that waits for the
//! same is woken all the same. At a rendezvous, an element is handed to the receiver that came
//! first, and is in its future until that is polled or dropped.
//!
//! A future or a guard that is forgotten ([`std::mem::forget`]) counts as held until its endpoint
//! is used again, or dropped. Then its wait is over, and its notification is passed to another
//! waiter; a [`Claim`] is cancelled; the slots of a [`Batch`] are freed. The elements inside are
//! leaked.
//!
//! # Memory ordering
//! All that a thread did before it sent an element is visible, after the receive, to the thread
//! that received it.
//!
//! # Memory
//! A bounded channel allocates all of its memory when it is made, for a number of slots that is the
//! capacity, rounded up to a power of two (it still holds exactly `capacity` elements). On a 64-bit
//! system:
//!
//! | channel | bytes |
//! |---|---|
//! | `spsc`, packed (*) | some 3,500, and the size of an element for each slot |
//! | any other bounded one, packed | some 3,000, and the size of an element and 8 for each slot |
//! | slotted (*) | some 3,500, and 64 for each slot (**) |
//! | capacity 0 | some 4,500 |
//! | unbounded | some 2,600, and segments of 512 elements (***) |
//! | [`oneshot()`] | 48, and the size of an element |
//!
//! (*) See [`Builder::layout`]. (**) A multiple of 64 for elements of more than 56 bytes. (***)
//! They are allocated as it grows, and freed as it empties; one empty segment is kept.
//!
//! [`Overflow::DropNewest`] takes 16 more for each element of the capacity. A clone of a sender or
//! receiver allocates nothing. A sender or receiver is a struct of some 400 bytes, and 16 for a
//! oneshot channel.

mod builder;
mod claim;
mod error;
mod future;
mod hub;
mod locked;
#[cfg(all(test, loom))]
pub(crate) mod models;
mod named;
mod oneshot;
mod rendezvous;
#[cfg(any(doc, doctest))]
#[doc = include_str!("porting.md")]
pub mod porting {}
mod bus_ops;
mod receiver;
pub mod select;
mod sender;
mod shared;
mod slip;
mod stores;
mod weak;
pub(crate) use bus_ops::{Express, ReservedSlot};

pub use builder::{BuildError, Builder};
pub use claim::Claim;
pub use error::{
    ClaimError, RecvError, RecvTimeoutError, SendError, SendManyError, SendTimeoutError,
    TryRecvError, TrySendError,
};
pub use future::{RecvFuture, RecvStream, SendFuture};
pub use hub::{Counters, ManyReceivers, ManySenders, Mpmc, Mpsc, Overflow, Shape, Spsc};
pub use named::NamedBuilder;
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

        /// Names for the endpoint types of this shape.
        pub mod $name {
            /// The sending end.
            pub type Sender<T> = super::Sender<T, super::$shape>;
            /// The receiving end.
            pub type Receiver<T> = super::Receiver<T, super::$shape>;
        }
    };
}

shape!(
    /// Returns the two ends of a channel of up to `capacity` elements between one sender and one
    /// receiver; 0 for a rendezvous.
    spsc,
    Spsc
);
shape!(
    /// Returns the two ends of a channel of up to `capacity` elements from many senders to one
    /// receiver; 0 for a rendezvous. Elements have one order for all: that in which sends took
    /// effect.
    ///
    /// A channel with a `capacity` above 2,048 has a [soft limit](Builder::soft_limit) of 2,048
    /// elements: senders that find more elements queued yield for a while.
    mpsc,
    Mpsc
);
shape!(
    /// Returns the two ends of a channel of up to `capacity` elements between many senders and many
    /// receivers; 0 for a rendezvous.
    ///
    /// Elements have one order for all, in which receivers take them. At a rendezvous an element
    /// can be received after a later one, also one of the same sender, if the receive future that
    /// it was handed to is dropped; see [`Receiver::recv_async`].
    ///
    /// A channel with a `capacity` above 2,048 has a [soft limit](Builder::soft_limit) of 2,048
    /// elements, as that of [`mpsc()`].
    mpmc,
    Mpmc
);

/// The two ends of a channel of shape `S`.
pub type Ends<T, S> = (Sender<T, S>, Receiver<T, S>);

/// Returns the two ends of a channel that allocates as it grows, for any number of senders and
/// receivers. It is bounded all the same: at `limit` elements it is full, and a send then blocks,
/// or does what [`Builder::overflow`] says. It is slower than a channel of a fixed capacity: each
/// operation takes a lock, some 20 ns.
///
/// [`Builder::unbounded(limit).mpsc()`](Builder::mpsc) returns one whose type has a single
/// receiver, and `.spsc()` one with a single sender, too. They cost the same.
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
