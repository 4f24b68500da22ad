//! Which one of a list of endpoints to look at.

use std::fmt;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::SelectTimeout;
use super::arm::Listed;
use super::round::turns;
use crate::channel::hub::Overflow;
use crate::channel::receiver::Receiver;
use crate::channel::sender::Sender;
use crate::channel::shape::Shape;
use crate::wait::{Listing, Mode, Pace, Signal, block_listed};

mod sealed {
    use crate::wait::Signal;

    /// What a list asks of its endpoints.
    pub trait Watched {
        /// Whether a try would not say empty, or full.
        fn is_ready(&mut self) -> bool;
        /// Where it is told that this may have changed.
        fn signal(&self) -> &Signal;
    }
}

use sealed::Watched;

/// An endpoint in a list for [`Ready`]: a [`Receiver`], or a [`Sender`], of any elements and shape.
pub trait Source: Watched {}

impl<T, S: Shape> Source for Receiver<T, S> {}
impl<T, S: Shape> Source for Sender<T, S> {}

impl<T, S: Shape> Watched for Receiver<T, S> {
    fn is_ready(&mut self) -> bool {
        self.source.end.is_ready()
    }

    fn signal(&self) -> &Signal {
        &self.source.hub.readable
    }
}

impl<T, S: Shape> Watched for Sender<T, S> {
    fn is_ready(&mut self) -> bool {
        // Policies other than to block never wait.
        self.hub.habits.overflow != Overflow::Block || self.end.is_ready()
    }

    fn signal(&self) -> &Signal {
        &self.gate.writable
    }
}

impl fmt::Debug for dyn Source + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

/// Waits until one endpoint of a list is worth a try: a list of any length, of receivers and
/// senders of any types.
///
/// It does nothing itself: try, and mind that another may have been faster, where the endpoint's
/// side of the channel is shared. At a rendezvous only an operation that waits there makes the
/// other side ready: of two threads that wait for readiness, neither is seen by the other.
///
/// The one that is looked at first is chosen at random, so that none starves. Keeps its memory, so
/// that lists of a length that was there before allocate nothing.
///
/// ```
/// use thalweg::channel::{Ready, Source, spsc, TryRecvError};
///
/// let (_a, mut from_a) = spsc::<u8>(4);
/// let (mut b, mut from_b) = spsc::<u8>(4);
/// b.send(7).expect("the receiver is there");
///
/// let mut ready = Ready::new();
/// let mut list = [&mut from_a, &mut from_b];
/// let at = ready.wait(&mut list.each_mut().map(|rx| &mut **rx as &mut dyn Source));
/// assert_eq!((at, list[at].try_recv()), (1, Ok(7)));
/// ```
pub struct Ready {
    pace: Pace,
    places: Vec<Listed>,
}

impl Default for Ready {
    fn default() -> Self {
        Self::new()
    }
}

impl Ready {
    /// Allocates nothing before the first wait.
    pub fn new() -> Self {
        Self::with_mode(Mode::Balanced)
    }

    /// One that waits in this way.
    pub fn with_mode(mode: Mode) -> Self {
        Self {
            pace: Pace::new(mode),
            places: Vec::new(),
        }
    }

    /// Waits until an endpoint is ready; gives its place in the list. An endpoint whose channel is
    /// disconnected is ready.
    ///
    /// # Panics
    /// If the list is empty.
    pub fn wait(&mut self, sources: &mut [&mut dyn Source]) -> usize {
        match self.wait_until(sources, None) {
            Ok(at) => at,
            Err(_) => unreachable!("without a deadline, a wait ends only with an endpoint"),
        }
    }

    /// As [`wait`](Self::wait), but no longer than `timeout`.
    ///
    /// # Errors
    /// [`SelectTimeout`].
    ///
    /// # Panics
    /// If the list is empty.
    pub fn wait_timeout(
        &mut self,
        sources: &mut [&mut dyn Source],
        timeout: Duration,
    ) -> Result<usize, SelectTimeout> {
        // Beyond what the clock can say: for ever.
        self.wait_until(sources, Instant::now().checked_add(timeout))
    }

    /// As [`wait`](Self::wait), but no longer than until `deadline`.
    ///
    /// # Errors
    /// [`SelectTimeout`].
    ///
    /// # Panics
    /// If the list is empty.
    pub fn wait_deadline(
        &mut self,
        sources: &mut [&mut dyn Source],
        deadline: Instant,
    ) -> Result<usize, SelectTimeout> {
        self.wait_until(sources, Some(deadline))
    }

    /// An endpoint that is ready now.
    pub fn try_now(&mut self, sources: &mut [&mut dyn Source]) -> Option<usize> {
        look(sources)
    }

    fn wait_until(
        &mut self,
        sources: &mut [&mut dyn Source],
        deadline: Option<Instant>,
    ) -> Result<usize, SelectTimeout> {
        assert!(!sources.is_empty(), "waiting for the first of no endpoints");
        if let Some(at) = look(sources) {
            return Ok(at);
        }
        self.places.clear();
        self.places.resize_with(sources.len(), Listed::default);
        let mut watch = Watch {
            sources,
            places: &mut self.places,
        };
        block_listed(&mut watch, &mut self.pace, deadline).map_err(|_| SelectTimeout)
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready")
            .field("pace", &self.pace)
            .finish_non_exhaustive()
    }
}

/// [`Ready::wait_deadline`] for once; allocates if it has to wait.
///
/// # Errors
/// [`SelectTimeout`] if there is a deadline.
///
/// # Panics
/// If the list is empty.
pub fn ready(
    sources: &mut [&mut dyn Source],
    deadline: Option<Instant>,
) -> Result<usize, SelectTimeout> {
    Ready::new().wait_until(sources, deadline)
}

fn look(sources: &mut [&mut dyn Source]) -> Option<usize> {
    turns(sources.len()).find(|&at| sources[at].is_ready())
}

struct Watch<'w, 's> {
    sources: &'w mut [&'s mut dyn Source],
    places: &'w mut [Listed],
}

impl Watch<'_, '_> {
    fn unlist(&mut self) {
        for (source, place) in self.sources.iter().zip(self.places.iter_mut()) {
            place.unlist(source.signal());
        }
    }

    /// What is there is left there: whoever else was to be told of it still is.
    fn pass_on(&mut self) {
        for (source, place) in self.sources.iter().zip(self.places.iter_mut()) {
            place.pass_on(source.signal());
        }
    }
}

impl Listing for Watch<'_, '_> {
    type Found = usize;

    fn spins_listed(&self) -> bool {
        false
    }

    fn look(&mut self) -> Option<usize> {
        look(self.sources)
    }

    fn list(&mut self, waker: &Waker) -> Option<usize> {
        for (source, place) in self.sources.iter().zip(self.places.iter_mut()) {
            place.entry = Some(source.signal().register(waker));
        }
        let found = look(self.sources);
        if found.is_some() {
            self.unlist();
            self.pass_on();
        }
        found
    }

    fn leave(&mut self) -> Option<usize> {
        self.unlist();
        let found = look(self.sources);
        if found.is_some() {
            self.pass_on();
        } else {
            // There is nothing to be told of.
            self.places.iter_mut().for_each(|place| place.owed = false);
        }
        found
    }
}

impl Drop for Watch<'_, '_> {
    fn drop(&mut self) {
        self.unlist();
        self.pass_on();
    }
}
