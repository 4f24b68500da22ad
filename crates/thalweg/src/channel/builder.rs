//! Making channels.

use std::fmt;

use super::Ends;
use super::gap::Gaps;
use super::hub::{Gate, Habits, Hub, Overflow};
use super::lanes;
use super::locked::Locked;
use super::meeting::Meeting;
use super::receiver::Receiver;
use super::recv_end::RecvEnd;
use super::send_end::SendEnd;
use super::sender::Sender;
use super::shape::{Mpmc, Mpsc, Shape, Spsc};
use crate::ring::sync::Arc;
use crate::ring::{CAPACITY_MAX, CapacityError, Layout, Ticket, TicketEnd, spsc};
use crate::wait::Mode;

/// Elements above this size, in bytes, are laid out side by side: beside a sequence they would
/// take more lines than they need.
const SLOTTED_BYTES_MAX: usize = 56;
/// Channels up to this capacity are for latency, larger ones for throughput, if nobody says.
const SLOTTED_CAPACITY_MAX: usize = 64;
/// Shared rings up to this capacity give each element lines of its own, if nobody says: neighbours
/// are written by different threads. (2-core Intel virtual machine, 1,024 elements: 4 → 1 25.7 ns a
/// message instead of 32.0, 20 → 1 36.4 instead of 40.5, 2 × 2 30.9 instead of 32.0.)
const SHARED_SLOTTED_CAPACITY_MAX: usize = 1024;

/// Why a channel can't be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The capacity, or the limit of an unbounded channel, is out of range.
    Capacity {
        /// What was asked for, in elements.
        asked: usize,
    },
    /// The options contradict each other.
    Options {
        /// The option that can't be had.
        option: &'static str,
        /// With what it can't be combined.
        with: &'static str,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity { asked } => write!(
                f,
                "channel capacity {asked} is outside 0 to {CAPACITY_MAX} elements"
            ),
            Self::Options { option, with } => {
                write!(f, "a channel can't have {option} together with {with}")
            }
        }
    }
}

impl std::error::Error for BuildError {}

impl From<CapacityError> for BuildError {
    fn from(error: CapacityError) -> Self {
        Self::Capacity { asked: error.asked }
    }
}

/// How the elements are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    Bounded(usize),
    Unbounded(usize),
}

/// Options of a channel, and the shapes it can be made in.
///
/// ```
/// use thalweg::channel::{Builder, Overflow};
///
/// let (mut tx, mut rx) = Builder::new(2).overflow(Overflow::DropOldest).spsc()?;
/// for n in 1..=5 {
///     tx.send(n).expect("the receiver is there");
/// }
/// assert_eq!(rx.recv(), Ok(4));
/// assert_eq!(rx.lost_before(), 3);
/// # Ok::<(), thalweg::channel::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    storage: Storage,
    is_ordered: bool,
    layout: Option<Layout>,
    habits: Habits,
}

impl Builder {
    fn with(storage: Storage) -> Self {
        Self {
            storage,
            is_ordered: false,
            layout: None,
            habits: Habits {
                overflow: Overflow::Block,
                mode: Mode::Balanced,
                soft_limit: None,
            },
        }
    }

    /// A channel of up to `capacity` elements; 0 for a rendezvous, where a send waits for a
    /// receiver to take the element. All memory is allocated when the channel is made.
    ///
    /// Where each sender has a lane of its own ([`mpsc`](Self::mpsc)), the capacity is that of each
    /// lane.
    pub fn new(capacity: usize) -> Self {
        Self::with(Storage::Bounded(capacity))
    }

    /// A channel that allocates as it grows, in segments, up to `limit` elements; then it is full
    /// as a bounded one is.
    pub fn unbounded(limit: usize) -> Self {
        Self::with(Storage::Unbounded(limit))
    }

    /// What a sender does when the channel is full; default [`Overflow::Block`].
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.habits.overflow = overflow;
        self
    }

    /// How endpoints wait; default [`Mode::Balanced`].
    pub fn mode(mut self, mode: Mode) -> Self {
        self.habits.mode = mode;
        self
    }

    /// The layout of the ring. By default slotted for small elements (up to 56 bytes) in channels
    /// of up to 64 elements, or 1,024 where several threads share a ring; packed for others.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// Rate balance: a sender that finds more than `elements` waiting gives its turn away, some
    /// times, before it goes on. Keeps queues, and with them latencies, short where senders are
    /// faster than receivers; costs them time. Counted in
    /// [`Counters::balanced`](super::Counters::balanced).
    pub fn soft_limit(mut self, elements: usize) -> Self {
        self.habits.soft_limit = Some(elements);
        self
    }

    /// All senders into one ring, so that elements come out in the order in which sends took
    /// effect, whoever sent them, and the capacity is that of all together. Many-to-many channels
    /// have that anyway.
    pub fn ordered(mut self) -> Self {
        self.is_ordered = true;
        self
    }

    /// One sender, one receiver.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn spsc<T: Send>(self) -> Result<Ends<T, Spsc>, BuildError> {
        let Some(capacity) = self.ring_capacity()? else {
            return self.shared();
        };
        // What the plain ring spares each element to look at is left to a lane.
        if self.habits.overflow.is_lossy() || self.habits.soft_limit.is_some() {
            return self.lanes(capacity);
        }
        let (producer, consumer) = spsc(capacity, self.layout_of::<T>(capacity))?;
        let gate = self.gate(capacity);
        let rx = RecvEnd::Ring(consumer, Arc::clone(&gate));
        Ok(self.ends(SendEnd::Ring(producer), rx, gate))
    }

    /// Many senders, one receiver: a lane for each sender, or one ring for all if
    /// [`ordered`](Self::ordered).
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn mpsc<T: Send>(self) -> Result<Ends<T, Mpsc>, BuildError> {
        match self.ring_capacity()? {
            Some(capacity) if !self.is_ordered => self.lanes(capacity),
            _ => self.shared(),
        }
    }

    /// Many senders, many receivers: one ring for all.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn mpmc<T: Send>(self) -> Result<Ends<T, Mpmc>, BuildError> {
        self.ring_capacity()?;
        self.shared()
    }

    /// A lane for each sender.
    fn lanes<T: Send, S: Shape>(self, capacity: usize) -> Result<Ends<T, S>, BuildError> {
        let gate = self.gate(capacity);
        let (tx, rx) = lanes::pair(capacity, self.layout_of::<T>(capacity), Arc::clone(&gate))?;
        Ok(self.ends(SendEnd::Lane(tx), RecvEnd::Lanes(rx), gate))
    }

    /// One store that any number of endpoints may use.
    fn shared<T: Send, S: Shape>(self) -> Result<Ends<T, S>, BuildError> {
        let (tx, rx, gate) = match self.storage {
            Storage::Bounded(capacity) if capacity > 0 => {
                let ring = Ticket::new(capacity, self.shared_layout_of::<T>(capacity))?;
                let ring = TicketEnd::new(Arc::new(ring));
                let gate = self.gate(capacity);
                let rx = RecvEnd::Ticket(ring.clone(), Arc::clone(&gate));
                (SendEnd::Ticket(ring), rx, gate)
            }
            Storage::Bounded(_) => {
                let meeting = Arc::new(Meeting::new());
                let gate = self.gate(0);
                let rx = RecvEnd::Meeting(Arc::clone(&meeting), Arc::clone(&gate));
                (SendEnd::Meeting(meeting), rx, gate)
            }
            Storage::Unbounded(limit) => {
                let store = Arc::new(Locked::new(limit));
                let gate = self.gate(limit);
                let rx = RecvEnd::Locked(Arc::clone(&store), Arc::clone(&gate));
                (SendEnd::Locked(store), rx, gate)
            }
        };
        Ok(self.ends(tx, rx, gate))
    }

    fn ends<T, S: Shape>(&self, tx: SendEnd<T>, rx: RecvEnd<T>, gate: Arc<Gate>) -> Ends<T, S> {
        let hub = Arc::new(Hub::new(self.habits));
        let tx = Sender::new(tx, Arc::clone(&hub), gate);
        (tx, Receiver::new(rx, hub))
    }

    /// The capacity if a ring with its own sender will do; nothing if the store must be one that
    /// several may take from.
    fn ring_capacity(&self) -> Result<Option<usize>, BuildError> {
        let (Storage::Bounded(asked) | Storage::Unbounded(asked)) = self.storage;
        if asked > CAPACITY_MAX {
            return Err(BuildError::Capacity { asked });
        }
        let is_locked = !matches!(self.storage, Storage::Bounded(1..));
        if asked == 0 && (self.habits.overflow.is_lossy() || self.storage == Storage::Unbounded(0))
        {
            return Err(BuildError::Options {
                option: "a capacity of 0",
                with: "a policy that drops, or unbounded storage",
            });
        }
        let takes_back = self.habits.overflow == Overflow::DropOldest;
        Ok((!is_locked && !takes_back).then_some(asked))
    }

    fn layout_of<T>(&self, capacity: usize) -> Layout {
        self.layout_up_to::<T>(capacity, SLOTTED_CAPACITY_MAX)
    }

    fn shared_layout_of<T>(&self, capacity: usize) -> Layout {
        self.layout_up_to::<T>(capacity, SHARED_SLOTTED_CAPACITY_MAX)
    }

    fn layout_up_to<T>(&self, capacity: usize, capacity_max: usize) -> Layout {
        self.layout.unwrap_or({
            if size_of::<T>() <= SLOTTED_BYTES_MAX && capacity <= capacity_max {
                Layout::Slotted
            } else {
                Layout::Packed
            }
        })
    }

    fn gate(&self, capacity: usize) -> Arc<Gate> {
        let tells = self.habits.overflow == Overflow::DropNewest;
        let gaps = || match self.storage {
            Storage::Bounded(_) => Gaps::new(capacity),
            Storage::Unbounded(_) => Gaps::growing(),
        };
        Arc::new(Gate::new(tells.then(gaps)))
    }
}
