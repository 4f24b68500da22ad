//! Which one of a list of endpoints to look at.

use std::task::Waker;
use std::time::{Duration, Instant};

use super::round::{Arm, Arms, Listed, Meets, Round};
use super::{SelectEmpty, SelectTimeout};
use crate::channel::hub::Shape;
use crate::channel::meeting::{LentToken, Stake, lend};
use crate::channel::receiver::Receiver;
use crate::channel::sender::Sender;
use crate::ring::sync::is_model_over;
use crate::wait::{Kind, Mode, Pace};

/// An endpoint, as a list of watched endpoints uses it. It is not to be implemented elsewhere, and
/// not to be called.
#[doc(hidden)]
#[allow(private_interfaces)] // sealed: the type is not nameable outside
pub trait Watched {
    /// Returns whether a try would not say empty, or full.
    fn is_ready(&mut self) -> bool;
    /// For a caller that checks twice: `None` if it is ready at a rendezvous, else a count that is
    /// another if it was ready in between and is not any more.
    fn glance(&self) -> Option<u64>;
    fn meets(&self) -> Meets;
    fn listed(&mut self) -> &mut Listed;
    /// Lists a wait; returns whether it is over.
    fn list(&mut self, waker: &Waker, kind: Kind, stake: Option<Stake>) -> bool;
    fn stay(&mut self, waker: &Waker) -> bool;
    fn unlist(&mut self);
    /// Passes on a notification that this wait has not used.
    fn pass_on_unused(&mut self);
    fn lend(&mut self);
    fn leave(&mut self);
}

/// An endpoint in a list for [`Ready`]: a [`Receiver`], or a [`Sender`], of any elements and shape.
/// It is `Send`, so that [`Ready::wait_async`] can be awaited in a task that changes threads.
pub trait Source: Send {
    /// Not to be called or implemented elsewhere: only this module has a key.
    #[doc(hidden)]
    fn watched(&mut self, key: Key) -> &mut dyn Watched;
}

/// A key that the methods of a supertrait ask for, since a bound alone makes them callable.
#[doc(hidden)]
#[derive(Debug)]
pub struct Key(());

impl<T: Send, S: Shape> Source for Receiver<T, S> {
    fn watched(&mut self, _: Key) -> &mut dyn Watched {
        self
    }
}

impl<T: Send, S: Shape> Source for Sender<T, S> {
    fn watched(&mut self, _: Key) -> &mut dyn Watched {
        self
    }
}

shown!([] dyn Source + '_, "Source", _this);

/// Waits until one endpoint of a list is ready: a list of any length, of receivers and
/// senders of any types.
///
/// It does nothing itself: try, and expect that another end may have been faster, where the
/// endpoint's side of the channel is shared. At a rendezvous a receiver in the list waits as
/// [`Receiver::recv`] does, and what it is handed comes with the next receive; so a sender that
/// waits until it can send, in a list too, finds it.
///
/// Each of the endpoints that are ready is returned with the same probability. The call allocates
/// nothing.
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
/// let at = at.expect("the list is not empty");
/// assert_eq!((at, list[at].try_recv()), (1, Ok(7)));
/// ```
pub struct Ready {
    pace: Pace,
}

impl Default for Ready {
    fn default() -> Self {
        Self::new()
    }
}

impl Ready {
    /// Returns an empty list that waits in [`Mode::Balanced`].
    pub fn new() -> Self {
        Self::with_mode(Mode::Balanced)
    }

    /// Returns an empty list that waits in this way.
    pub fn with_mode(mode: Mode) -> Self {
        Self {
            pace: Pace::new(mode),
        }
    }

    /// Waits until an endpoint is ready; gives its place in the list. An endpoint whose channel is
    /// disconnected is ready.
    ///
    /// # Errors
    /// [`SelectEmpty`], at once, if the list is empty.
    pub fn wait(&mut self, sources: &mut [&mut dyn Source]) -> Result<usize, SelectEmpty> {
        if sources.is_empty() {
            return Err(SelectEmpty);
        }
        let found = self.wait_until(sources, None);
        Ok(found.unwrap_or_else(|_| unreachable!("there is no time limit")))
    }

    /// Works as [`wait`](Self::wait), but no longer than `timeout`. With an empty list, that long.
    ///
    /// # Errors
    /// [`SelectTimeout`].
    pub fn wait_timeout(
        &mut self,
        sources: &mut [&mut dyn Source],
        timeout: Duration,
    ) -> Result<usize, SelectTimeout> {
        // Beyond what the clock can say: for ever.
        self.wait_until(sources, Instant::now().checked_add(timeout))
    }

    /// Works as [`wait`](Self::wait), but no longer than until `deadline`. With an empty list,
    /// until then.
    ///
    /// # Errors
    /// [`SelectTimeout`].
    pub fn wait_deadline(
        &mut self,
        sources: &mut [&mut dyn Source],
        deadline: Instant,
    ) -> Result<usize, SelectTimeout> {
        self.wait_until(sources, Some(deadline))
    }

    /// Returns an endpoint that is ready now. `None` says that at one moment none was; see [the
    /// module](super#nothing-is-ready).
    pub fn try_now(&mut self, sources: &mut [&mut dyn Source]) -> Option<usize> {
        Watch::new(sources).round().look_surely()
    }

    /// Works as [`wait`](Self::wait), as a future for any runtime.
    ///
    /// Cancel-safe: dropping it loses no element, and no wake-up that another needs. If it is kept
    /// unpolled, or forgotten, it is as [`Receiver::recv_async`] and [`Sender::send_async`].
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub async fn wait_async(
        &mut self,
        sources: &mut [&mut dyn Source],
    ) -> Result<usize, SelectEmpty> {
        if sources.is_empty() {
            return Err(SelectEmpty);
        }
        let mut watch = Watch::new(sources);
        Ok(watch.round().wait_async().await)
    }

    fn wait_until(
        &mut self,
        sources: &mut [&mut dyn Source],
        deadline: Option<Instant>,
    ) -> Result<usize, SelectTimeout> {
        let mut watch = Watch::new(sources);
        let mut round = watch.round();
        let found = round.look_at_all();
        let found = found.or_else(|| round.wait(&mut self.pace, deadline));
        found.ok_or(SelectTimeout)
    }
}

shown!([] Ready, "Ready", this, "pace": this.pace);

/// A wait for the endpoints of a list.
struct Watch<'w, 's> {
    arms: Watches<'w, 's>,
    token: LentToken,
}

/// The endpoints.
struct Watches<'w, 's>(&'w mut [&'s mut dyn Source]);

impl<'w, 's> Watch<'w, 's> {
    fn new(sources: &'w mut [&'s mut dyn Source]) -> Self {
        let each = sources.iter_mut();
        each.for_each(|source| source.watched(Key(())).lend());
        Self {
            arms: Watches(sources),
            token: lend(),
        }
    }

    fn round(&mut self) -> Round<'_, Watches<'w, 's>> {
        Round {
            arms: &mut self.arms,
            token: &mut self.token,
            is_biased: false,
        }
    }
}

impl Drop for Watch<'_, '_> {
    fn drop(&mut self) {
        if !is_model_over() {
            self.round().leave_unseen();
            let each = self.arms.0.iter_mut();
            each.for_each(|source| source.watched(Key(())).leave());
        }
    }
}

impl Arms for Watches<'_, '_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn with<O>(&mut self, at: usize, work: impl FnOnce(&mut dyn Arm) -> O) -> O {
        work(&mut WatchArm(self.0[at].watched(Key(()))))
    }
}

/// Waiting until an endpoint is ready: what is there is left there.
struct WatchArm<'a>(&'a mut dyn Watched);

#[allow(private_interfaces)] // as `Arm`
impl Arm for WatchArm<'_> {
    fn attempt(&mut self) -> bool {
        let is_ready = self.0.is_ready();
        if !is_ready {
            // There is nothing to be notified of. If there is, other waiters that were to be
            // notified still are.
            self.0.listed().on.used_up();
        }
        is_ready
    }

    fn glance(&mut self) -> bool {
        let now = self.0.glance();
        self.0.listed().is_same(now)
    }

    fn meets(&self) -> Meets {
        self.0.meets()
    }

    fn list(&mut self, waker: &Waker, kind: Kind, stake: Option<Stake>) -> bool {
        self.0.list(waker, kind, stake)
    }

    fn stay(&mut self, waker: &Waker) -> bool {
        self.0.stay(waker)
    }

    fn unlist(&mut self) {
        self.0.unlist();
    }

    fn settle(&mut self, _: bool) {
        self.0.pass_on_unused();
    }
}
