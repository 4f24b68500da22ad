//! A channel for one value at a time, between coroutines.
//!
//! A [`SlotSender`] puts a value into the slot, a [`SlotReceiver`] takes it out; then the slot is
//! empty and can be used again. On one thread ([`Local`](crate::Local)) nothing in it is atomic,
//! and [`SlotSender::send_now`] runs the receiver at once, as a call would.
//!
//! ```
//! use thalweg_task::{LocalExecutor, Local, slot};
//!
//! let executor = LocalExecutor::new();
//! let (tx, mut rx) = slot::<u64, Local>();
//! let sum = executor.spawn(async move {
//!     let mut sum = 0;
//!     while let Ok(value) = rx.recv().await {
//!         sum += value;
//!     }
//!     sum
//! });
//! while executor.poll() {} // the task waits for its first value now
//! for value in 1..=100 {
//!     assert_eq!(tx.send_now(value), Ok(true)); // the task has run when this returns
//! }
//! drop(tx);
//! assert_eq!(executor.block_on(sum), Ok(5050));
//! ```
//!
//! # Ends
//! A slot's end that is dropped is closed, and the other end gets *closed*. A value that was sent
//! before is received first. [`SlotSender::cancel`] and [`SlotReceiver::cancel`] say instead that
//! the value is not wanted any more: a value in the slot is dropped, and the other end gets
//! *cancelled* at once.
//!
//! A send that was `Ok` says that the value is in the slot, not that it was received: a value that
//! is there when the receiver is dropped is dropped with it, also where its task is cancelled or
//! ends at its deadline. Where that matters, have the receiver answer.
//!
//! # Memory ordering
//! All that a thread did before it sent a value is visible, after the receive, to the thread that
//! received it.

mod error;
#[cfg(all(test, loom))]
mod models;
mod recv;
mod send;
pub(crate) mod waiting;

pub use error::{RecvError, SendError, TryRecvError, WaitEmptyError};
pub use recv::{Recv, SlotReceiver};
pub use send::{SlotSender, WaitEmpty};
pub use waiting::{Many, One};

use crate::family::Family;
use crate::family::sealed::{Guarded, Sealed, Wakes};
use crate::sync::fault;
use waiting::Waiting;

/// The state of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Closed,
    Cancelled,
}

type WaiterOf<F> = <F as Sealed>::Waiter;

/// The state that both ends share.
struct State<T, F: Family, W> {
    value: Option<T>,
    receivers: W,
    /// The waiter for the slot to be empty.
    vacancy: Option<WaiterOf<F>>,
    sender: End,
    receiver: End,
    /// Whether an end is not open, or a sender waits for the slot to be empty; it may stay set a
    /// while longer. One look shows that there is only the value to handle.
    is_rare: bool,
    /// Receivers there are.
    count: usize,
}

impl<T, F: Family, W> State<T, F, W> {
    /// Returns whether an end has anything to drop, or a waiter to wake. Most often it has not, and
    /// to move nothing would cost as much as to move something.
    fn has_rest<V: Wakes>(&self) -> bool
    where
        W: Waiting<V>,
    {
        self.value.is_some() || self.vacancy.is_some() || !self.receivers.is_idle()
    }

    /// Finds out whether [`is_rare`](Self::is_rare) still holds.
    fn settle(&mut self) {
        let are_open = self.sender == End::Open && self.receiver == End::Open;
        self.is_rare = !are_open || self.vacancy.is_some();
    }
}

/// Wakes all of them.
// Inlined, so that an empty list is not passed through memory: most ends have no waiter to wake.
#[inline(always)]
fn wake_all<W: Wakes>(waiting: impl IntoIterator<Item = W>) {
    for waiter in waiting {
        if !fault::is("slot_end") {
            waiter.wake();
        }
    }
}

/// A slot, guarded as its family does it.
struct Slot<T, F: Family, W> {
    state: F::Guarded<State<T, F, W>>,
}

type Shared<T, F, W> = <F as Family>::Strong<Slot<T, F, W>>;

/// The two ends of a slot.
pub type Ends<T, F, W> = (SlotSender<T, F, W>, SlotReceiver<T, F, W>);

impl<T, F: Family, W: Waiting<WaiterOf<F>>> Default for Slot<T, F, W> {
    #[inline(always)]
    fn default() -> Self {
        let state = State {
            value: None,
            receivers: W::default(),
            vacancy: None,
            sender: End::Open,
            receiver: End::Open,
            is_rare: false,
            count: 1,
        };
        Self {
            state: Guarded::new(state),
        }
    }
}

#[inline]
fn pair<T, F: Family, W: Waiting<WaiterOf<F>>>() -> Ends<T, F, W> {
    let slot = F::strong_default::<Slot<T, F, W>>();
    (SlotSender::new(slot.clone()), SlotReceiver::new(slot))
}

/// Returns a slot with one receiver. Allocates once. For the cost of a message, see
/// [`SlotSender::send_now`].
pub fn slot<T, F: Family>() -> (SlotSender<T, F>, SlotReceiver<T, F>) {
    pair()
}

/// Returns a slot whose receiver can be cloned. A value wakes the one that has waited longest. That
/// one keeps its turn if another takes the value before it looks, and passes it on if it never
/// looks.
pub fn slot_many<T, F: Family>() -> Ends<T, F, Many<F>> {
    pair()
}
