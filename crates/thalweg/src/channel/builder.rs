//! Making channels.

use super::Ends;
use super::hub::{Gaps, Gate, Hub, Mpmc, Mpsc, Overflow, Settings, Shape, Spsc};
use super::locked::Locked;
use super::receiver::Receiver;
use super::rendezvous::Rendezvous;
use super::sender::Sender;
use super::stores::{RecvEnd, SendEnd};
use crate::ring::sync::Arc;
use crate::ring::{CAPACITY_MAX, CapacityError, Layout, MpmcEnd, MpmcRing, spsc};
use crate::wait::WaitMode;

/// Elements above this size, in bytes, are laid out side by side: beside a sequence they would
/// take more lines than they need.
const SLOTTED_BYTES_MAX: usize = 56;
/// By default, SPSC rings up to this capacity are slotted, for latency; larger ones are packed, for
/// throughput.
const SLOTTED_CAPACITY_MAX: usize = 64;
/// The default number of elements that may wait before senders yield. (2-core Intel virtual
/// machine, 100,000 elements in a burst of 5, 10 and 20 senders: 512 keeps p99 below 0.15 ms, 1,024
/// below 0.24, 2,048 below 0.34; wall time is some 5 % better with the last than with the others,
/// and without a limit p99 is 4 to 6 ms.)
pub(super) const SOFT_LIMIT: usize = 2048;
const ZERO: &str = "a capacity of 0";
const UNBOUNDED: &str = "unbounded storage";

/// By default, MPMC rings up to this capacity are slotted, since adjacent elements are written by
/// different threads. (2-core Intel virtual machine, 1,024 elements: for 4 → 1,
/// 25.7 ns a message instead of 32.0, 20 → 1 36.4 instead of 40.5, 2 × 2 30.9 instead of 32.0.)
pub(super) const SHARED_SLOTTED_CAPACITY_MAX: usize = 1024;

/// The reason why a channel can't be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The capacity is above [`CAPACITY_MAX`] (2³⁰). (0 is valid: a rendezvous.)
    Capacity {
        /// The capacity that was asked for, in elements.
        asked: usize,
    },
    /// The limit of an unbounded channel is outside 1 to [`CAPACITY_MAX`] (2³⁰).
    Limit {
        /// The limit that was asked for, in elements.
        asked: usize,
    },
    /// The memory of the channel could not be allocated.
    Memory {
        /// The capacity that was asked for, in elements.
        asked: usize,
        /// The memory that this capacity takes, in bytes.
        bytes: usize,
    },
    /// The options contradict each other.
    Options {
        /// The option that is refused.
        option: &'static str,
        /// The option or property that it can't be combined with.
        with: &'static str,
    },
}

errors!(BuildError {
    Self::Capacity { asked } =>
        "channel capacity {asked} is outside 0 to {CAPACITY_MAX} elements";
    Self::Limit { asked } =>
        "limit {asked} of an unbounded channel is outside 1 to {CAPACITY_MAX} elements";
    Self::Memory { asked, bytes } =>
        "there is no memory for a channel of {asked} elements, {bytes} bytes";
    Self::Options { option, with } => "a channel can't have {option} together with {with}";
});

impl From<CapacityError> for BuildError {
    fn from(error: CapacityError) -> Self {
        let CapacityError { asked, bytes, .. } = error;
        match bytes {
            0 => Self::Capacity { asked },
            _ => Self::Memory { asked, bytes },
        }
    }
}

/// How the elements are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    Bounded(usize),
    Unbounded(usize),
}

/// Builds a channel of one of three shapes, with options.
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
    /// The limit that was asked for; `None` stands for the default of the shape.
    soft_limit: Option<Option<usize>>,
    layout: Option<Layout>,
    settings: Settings,
}

impl Builder {
    fn with(storage: Storage) -> Self {
        Self {
            storage,
            soft_limit: None,
            layout: None,
            settings: Settings::default(),
        }
    }

    /// Returns a builder of a channel of up to `capacity` elements; 0 for a rendezvous, where a
    /// send waits for a receiver to take the element. All memory is allocated when the channel is
    /// made: see [Memory](super#memory).
    pub fn new(capacity: usize) -> Self {
        Self::with(Storage::Bounded(capacity))
    }

    /// Returns a builder of a channel that allocates as it grows, in segments of 512 elements, up
    /// to `limit` elements; then it is full as a bounded one is. It may have any shape:
    /// [`mpsc`](Self::mpsc) and [`spsc`](Self::spsc), too.
    pub fn unbounded(limit: usize) -> Self {
        Self::with(Storage::Unbounded(limit))
    }

    /// Sets the policy of senders when the channel is full; default [`Overflow::Block`].
    ///
    /// [`Overflow::DropNewest`] and [`Overflow::DropOldest`] are errors with a capacity of 0
    /// ([`BuildError::Options`]).
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.settings.overflow = overflow;
        self
    }

    /// Sets how endpoints wait; default [`WaitMode::Balanced`].
    pub fn mode(mut self, mode: WaitMode) -> Self {
        self.settings.mode = mode;
        self
    }

    /// Sets the layout of the ring. By default it is slotted for small elements (up to 56 bytes):
    /// in an [`spsc`](Self::spsc) channel of up to 64 elements, and in one of up to 1,024 elements
    /// that runs on an MPMC ring, which are [`mpsc`](Self::mpsc) and [`mpmc`](Self::mpmc), and
    /// `spsc` with a policy that drops or a soft limit. Other rings are packed. A rendezvous and an
    /// unbounded channel have no ring: for these, a layout is an error ([`BuildError::Options`]).
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// Sets a soft limit: after a `send`, also each one of `send_many`, a sender that finds more
    /// than `elements` queued yields its time slice a few times, until half of `elements` are left,
    /// then continues anyway. It is best effort and no bound: it keeps queues, and with them
    /// latencies, short where senders are faster than receivers. Senders check once in up to 64
    /// sends, and ever more rarely where no receiver takes elements. A `try_send`, a send with a
    /// deadline, an async send and an arm of a select never yield.
    /// [`Counters::yields`](super::Counters::yields) counts these yields.
    ///
    /// A limit of 0 yields whenever the channel is not empty; one above the capacity never does.
    /// With a capacity of 0 a limit is an error ([`BuildError::Options`]).
    ///
    /// The default is a limit of 2,048 elements for a bounded channel with more room than that,
    /// [`Overflow::Block`] and the shape `mpsc` or `mpmc`, and no limit for any other channel.
    /// `None` sets no limit.
    pub fn soft_limit(mut self, elements: impl Into<Option<usize>>) -> Self {
        self.soft_limit = Some(elements.into());
        self
    }

    /// Makes a channel with one sender and one receiver.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn spsc<T: Send>(self) -> Result<Ends<T, Spsc>, BuildError> {
        self.check()?;
        // The SPSC ring has no checks for these on its fast path; the MPMC ring has.
        let is_checked = self.settings.overflow.is_lossy() || self.soft_limit.flatten().is_some();
        let capacity = match self.storage {
            Storage::Bounded(capacity) if capacity > 0 && !is_checked => capacity,
            _ => return self.shared(None),
        };
        let (producer, consumer) = spsc(
            capacity,
            self.layout_up_to::<T>(capacity, SLOTTED_CAPACITY_MAX),
        )?;
        let gate = self.gate()?;
        let rx = RecvEnd::Ring(consumer, Arc::clone(&gate));
        Ok(self.ends(SendEnd::Ring(producer), rx, gate))
    }

    /// Makes a channel with many senders and one receiver: one ring for all.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn mpsc<T: Send>(self) -> Result<Ends<T, Mpsc>, BuildError> {
        self.in_shared(Some(SOFT_LIMIT))
    }

    /// Makes a channel with many senders and many receivers: one ring for all.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn mpmc<T: Send>(self) -> Result<Ends<T, Mpmc>, BuildError> {
        self.in_shared(Some(SOFT_LIMIT))
    }

    /// Makes a channel with one store that any number of endpoints may use, if the options are
    /// valid.
    pub(super) fn in_shared<T: Send, S: Shape>(
        self,
        soft_limit: Option<usize>,
    ) -> Result<Ends<T, S>, BuildError> {
        self.check()?;
        self.shared(soft_limit)
    }

    /// Makes a channel with one store that any number of endpoints may use.
    fn shared<T: Send, S: Shape>(
        mut self,
        soft_limit: Option<usize>,
    ) -> Result<Ends<T, S>, BuildError> {
        self.choose_soft_limit(soft_limit);
        let gate = self.gate()?;
        let (tx, rx) = match self.storage {
            Storage::Bounded(capacity) if capacity > 0 => {
                let ring = MpmcRing::new(
                    capacity,
                    self.layout_up_to::<T>(capacity, SHARED_SLOTTED_CAPACITY_MAX),
                )?;
                let ring = MpmcEnd::new(Arc::new(ring));
                let rx = RecvEnd::Mpmc(ring.clone(), Arc::clone(&gate));
                (SendEnd::Mpmc(ring), rx)
            }
            Storage::Bounded(_) => {
                let rendezvous = Arc::new(Rendezvous::new());
                let rx = RecvEnd::Rendezvous(Arc::clone(&rendezvous), Arc::clone(&gate));
                (SendEnd::Rendezvous(rendezvous), rx)
            }
            Storage::Unbounded(limit) => {
                let store = Arc::new(Locked::new(limit));
                let rx = RecvEnd::Locked(Arc::clone(&store), Arc::clone(&gate));
                (SendEnd::Locked(store), rx)
            }
        };
        Ok(self.ends(tx, rx, gate))
    }

    fn ends<T, S: Shape>(&self, tx: SendEnd<T>, rx: RecvEnd<T>, gate: Arc<Gate>) -> Ends<T, S> {
        let hub = Arc::new(Hub::new(self.settings));
        let tx = Sender::new(tx, Arc::clone(&hub), gate);
        (tx, Receiver::new(rx, hub))
    }

    /// The soft limit that was asked for, or what fits the shape.
    fn choose_soft_limit(&mut self, default: Option<usize>) {
        let room = match self.storage {
            Storage::Bounded(capacity) if self.settings.overflow == Overflow::Block => capacity,
            _ => 0,
        };
        let default = default.filter(|&limit| limit < room);
        self.settings.soft_limit = self.soft_limit.unwrap_or(default);
    }

    /// Checks that the options are in range and go together.
    fn check(&self) -> Result<(), BuildError> {
        let (is_rendezvous, is_locked) = match self.storage {
            Storage::Unbounded(asked) if !(1..=CAPACITY_MAX).contains(&asked) => {
                return Err(BuildError::Limit { asked });
            }
            Storage::Bounded(asked) if asked > CAPACITY_MAX => {
                return Err(BuildError::Capacity { asked });
            }
            Storage::Bounded(capacity) => (capacity == 0, false),
            Storage::Unbounded(_) => (false, true),
        };
        let (has_limit, drops) = (
            self.soft_limit.flatten().is_some(),
            self.settings.overflow.is_lossy(),
        );
        for (is_given, option, is_there, with) in [
            (is_rendezvous, ZERO, drops, "a policy that drops"),
            (self.layout.is_some(), "a layout", is_rendezvous, ZERO),
            (self.layout.is_some(), "a layout", is_locked, UNBOUNDED),
            (has_limit, "a soft limit", is_rendezvous, ZERO),
        ] {
            if is_given && is_there {
                return Err(BuildError::Options { option, with });
            }
        }
        Ok(())
    }

    /// Returns the layout: the one that was asked for, or slotted up to `capacity_max` elements.
    pub(super) fn layout_up_to<T>(&self, capacity: usize, capacity_max: usize) -> Layout {
        let is_small = size_of::<T>() <= SLOTTED_BYTES_MAX && capacity <= capacity_max;
        let default = if is_small {
            Layout::Slotted
        } else {
            Layout::Packed
        };
        self.layout.unwrap_or(default)
    }

    fn gate(&self) -> Result<Arc<Gate>, CapacityError> {
        let reports = self.settings.overflow == Overflow::DropNewest;
        let gaps = || match self.storage {
            Storage::Bounded(capacity) => Gaps::new(capacity),
            Storage::Unbounded(_) => Ok(Gaps::default()),
        };
        Ok(Arc::new(Gate::new(reports.then(gaps).transpose()?)))
    }
}
