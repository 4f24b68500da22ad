//! Waits for several channel operations at once, and performs the first that is ready.
//!
//! [`Select`] has its arms in its type: receivers, senders and timers, of any element types and
//! shapes, each with a closure that gets the outcome. [`Select::dynamic`] takes arms whose number
//! is known at run time only.
//!
//! ```
//! use thalweg::channel::{mpmc, spsc, Select};
//! use std::time::Duration;
//!
//! let (mut orders, mut incoming) = spsc(8);
//! let (_stop, mut stopped) = mpmc::<()>(0);
//! let (mut log, _lines) = spsc(8);
//! orders.send(40).expect("the receiver is there");
//!
//! let mut line = Some("idle");
//! let mut seen = Vec::new();
//! while seen.len() < 2 {
//!     let what = Select::new()
//!         .recv(&mut incoming, |order| format!("order {}", order.expect("the sender is there")))
//!         .recv(&mut stopped, |_| "stopped".to_string())
//!         .send(&mut log, &mut line, |sent| format!("sent: {sent:?}"))
//!         .after(Duration::from_secs(60), |_| "nothing for a minute".to_string())
//!         .wait();
//!     seen.push(what);
//! }
//! seen.sort();
//! assert_eq!(seen, ["order 40", "sent: Ok(())"]);
//! assert_eq!(line, None, "it was sent");
//! ```
//!
//! # From crossbeam
//! | there | here |
//! |---|---|
//! | `recv(r) -> msg => ..` | `.recv(&mut r, \|msg\| ..)` |
//! | `send(s, v) -> res => ..` | `.send(&mut s, &mut Some(v), \|res\| ..)` (*) |
//! | `default => ..` | [`or_else`](Select::or_else), [`try_wait`](Select::try_wait) |
//! | `default(timeout) => ..` | [`wait_timeout`](Select::wait_timeout), which gives an error |
//! | `recv(after(timeout)) -> _ => ..` | [`after`](Select::after) |
//! | `select_biased!`, `Select::new_biased` | [`biased`](Select::biased) |
//! | the struct `Select`, `SelectedOperation::index` | [`Select::dynamic`] |
//! | `Select::ready`, `try_ready`, `ready_timeout` | [`Select::dynamic`], which uses it |
//! | `after`, `at`, `tick` | [`after`], [`at`], [`tick`]: a [`Timer`] for [`Select::timer`] |
//! | `never` | [`never()`]; for an arm that sends, an empty `Option` |
//! | a panic where there is no operation | does not compile, or gives [`SelectEmpty`] |
//!
//! (*) crossbeam evaluates `v` only when `s` can take it. Here the value is computed before the
//! select, which takes it out of the `Option` if it is sent.
//!
//! A branch of `select!` may `return`, `break` or use `?`; a closure can't: have the closures
//! return values of an enum, and `match` the value that [`Select::wait`] returns.
//!
//! A consumer of a [bus](crate::bus) can't be an arm: give it a thread that sends into a channel.
//!
//! # Which arm
//! A select chooses among the arms that are ready, each with the same probability, so that none
//! starves, whatever pending arms there are; or the first that is ready, if the select is
//! [`biased`](Select::biased). An arm whose channel is disconnected is ready, with an error; so is
//! a sending arm under a policy that does not wait. A sending arm without an element takes no part,
//! nor does a timer that has expired.
//!
//! A disconnected arm would be ready in each turn of a loop. To switch it off, put [`never()`] in
//! the receiver's place:
//!
//! ```
//! use thalweg::channel::{Select, never, spsc};
//!
//! let (mut tx, mut numbers) = spsc(8);
//! let (_, mut words) = spsc::<&str>(8); // its sender is gone
//! tx.send_many([1, 2]).expect("room for both");
//! drop(tx);
//!
//! enum Got { Number(Option<u32>), Word(Option<&'static str>) }
//! let (mut sum, mut connected) = (0, 2);
//! while connected > 0 {
//!     let got = Select::new()
//!         .recv(&mut numbers, |number| Got::Number(number.ok()))
//!         .recv(&mut words, |word| Got::Word(word.ok()))
//!         .wait();
//!     match got {
//!         Got::Number(Some(number)) => sum += number,
//!         Got::Word(Some(word)) => println!("{word}"),
//!         Got::Number(None) => (numbers, connected) = (never(), connected - 1),
//!         Got::Word(None) => (words, connected) = (never(), connected - 1),
//!     }
//! }
//! assert_eq!(sum, 3);
//! ```
//!
//! # Nothing is ready
//! If [`Select::try_wait`] or [`Select::or_else`] finds nothing, there was one instant during the
//! call at which no arm was ready: an element that others move from channel to channel, so that it
//! is in one of them all the time, is not missed. The same holds at the end of a wait with a time
//! limit. Where a CPU may show a thread's writes to another one out of order (x86 does not), the
//! instant is as exact as that. Slots that another sender claims and releases meanwhile count as
//! taken.
//!
//! # Async
//! [`Select::wait_async`] needs nothing but a `Waker`, and so has no timers: a select with
//! [`after`](Select::after) or [`timer`](Select::timer) has no `wait_async`, which the compiler
//! says. Use the runtime's timeout around it, or its interval beside it.
//!
//! ```compile_fail,E0277
//! use std::time::Duration;
//! use thalweg::channel::{Select, spsc};
//! let (_tx, mut rx) = spsc::<u8>(1);
//! Select::new().recv(&mut rx, |_| ()).after(Duration::ZERO, |_| ()).wait_async();
//! ```

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use super::error::{RecvError, SendError, TryRecvError};
use super::hub::{Hub, Settings, Shape};
use super::receiver::Receiver;
use super::rendezvous::{LentToken, Rendezvous, lend};
use super::sender::Sender;
use super::stores::RecvEnd;
use crate::ring::sync::Arc;
use crate::wait::{Pace, WaitMode};
use arms::{RecvArm, SendArm, TimerArm};
use round::{Arm, Arms, Choice, Choices, List, NoArms, Round, Untimed, Waits};

pub(super) use round::EndRegistration;

mod arms;
#[cfg(all(test, loom))]
mod models;
mod round;

/// No arm was ready before the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectTimeout;

/// The error of a wait without arms and without a time limit, which would never end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectEmpty;

errors! {
    SelectTimeout {
        Self => "selecting among channels of which none was ready until the time limit";
    }
    SelectEmpty {
        Self => "selecting among no channels at all, without a time limit";
    }
}

/// A select over several operations, of which it performs one, the first that is ready; see the
/// [module](self) for an example.
///
/// Each arm has a closure. That of the arm that was done is called after the other arms were
/// cancelled, and returns the result of the select. Two closures can't borrow the same value
/// mutably: have them return a value of an enum, and `match`.
///
/// Nothing is allocated, but for a thread's first wait and by a [`dynamic`](Self::dynamic). A check
/// of an arm costs as much as a `try_recv` or `try_send`; a wait registers the thread with every
/// arm, some 50 ns each. It waits by the [`WaitMode`] of the channel of its first arm that is not a
/// timer.
#[must_use = "nothing is selected before `wait` or one of its kin"]
pub struct Select<R, A = NoArms> {
    arms: A,
    token: LentToken,
    is_biased: bool,
    result: PhantomData<fn() -> R>,
}

impl<R> Select<R> {
    /// Returns a select without arms.
    pub fn new() -> Self {
        Self::with_arms(NoArms)
    }
}

impl<R> Default for Select<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R, A: Choices<R>> Select<R, A> {
    fn with_arms(arms: A) -> Self {
        Self {
            arms,
            token: lend(),
            is_biased: false,
            result: PhantomData,
        }
    }

    /// Adds an arm that receives from `receiver`; `then` gets the oldest element, or [`RecvError`]
    /// if the channel is disconnected.
    pub fn recv<'a, T, S: Shape, F>(
        self,
        receiver: &'a mut Receiver<T, S>,
        then: F,
    ) -> Select<R, List<RecvArm<'a, T, S, F>, A>>
    where
        F: FnOnce(Result<T, RecvError>) -> R,
    {
        self.and(RecvArm::new(receiver, then))
    }

    /// Adds an arm that sends the element in `value`, which is taken out of the `Option` only if it
    /// is sent; `then` gets the outcome. With `None`, the arm is never ready.
    ///
    /// While the select waits at a rendezvous the element is in the channel; it is back in `value`
    /// when the select returns or is dropped, unless a receiver took it. Errors are those of
    /// [`Sender::send`]: [`SendError::Disconnected`] if every receiver was dropped or the channel
    /// was closed, and [`SendError::Full`], at once, under
    /// [`Overflow::Reject`](super::Overflow::Reject). They hold `()` in place of the element, which
    /// is still in `value`.
    pub fn send<'a, T, S: Shape, F>(
        self,
        sender: &'a mut Sender<T, S>,
        value: &'a mut Option<T>,
        then: F,
    ) -> Select<R, List<SendArm<'a, T, S, F>, A>>
    where
        F: FnOnce(Result<(), SendError<()>>) -> R,
    {
        self.and(SendArm::new(sender, value, then))
    }

    /// Adds an arm that is ready when `timeout` has passed since this call; `then` gets that
    /// instant. It costs a read of the clock for each check of the arms.
    pub fn after<F>(self, timeout: Duration, then: F) -> Select<R, List<TimerArm<Timer, F>, A>>
    where
        F: FnOnce(Instant) -> R,
    {
        self.and(TimerArm::new(after(timeout), then))
    }

    /// Adds an arm that is ready at the next instant of `timer`, which `then` gets. It is never
    /// ready if the timer has expired.
    pub fn timer<F>(self, timer: &mut Timer, then: F) -> Select<R, List<TimerArm<&mut Timer, F>, A>>
    where
        F: FnOnce(Instant) -> R,
    {
        self.and(TimerArm::new(timer, then))
    }

    fn and<N: Choice<R>>(self, arm: N) -> Select<R, List<N, A>> {
        Select {
            arms: List {
                rest: self.arms,
                arm,
            },
            token: self.token,
            is_biased: self.is_biased,
            result: PhantomData,
        }
    }

    /// Makes the select choose, among arms that are ready, the one that was added first. Bias only
    /// affects the choice among ready arms: a select that waits is woken by whichever comes first.
    /// An arm that is always ready starves later ones.
    pub fn biased(mut self) -> Self {
        self.is_biased = true;
        self
    }

    #[inline]
    fn round(&mut self) -> Round<'_, A> {
        Round {
            arms: &mut self.arms,
            token: &mut self.token,
            is_biased: self.is_biased,
        }
    }

    /// Waits until an arm is ready, and returns the result of its closure: `R`, or `Result<R,
    /// SelectEmpty>` for a [`SelectList`], which is [`SelectEmpty`], at once, without arms.
    ///
    /// If no arm can ever be ready, `wait` blocks for ever: if arms that send have no element,
    /// timers have expired, and nothing comes for those that receive.
    ///
    /// # Panics
    /// If the closure does; all arms were cancelled then.
    pub fn wait(self) -> A::Waited
    where
        A: Waits<R>,
    {
        let is_empty = self.arms.count() == 0;
        A::waited(if is_empty {
            None
        } else {
            self.wait_until(None).ok()
        })
    }

    /// Works as [`wait`](Self::wait), but waits no longer than `timeout`; without arms, exactly
    /// that long. A timeout beyond the range of the clock, such as [`Duration::MAX`], is no limit.
    ///
    /// # Errors
    /// [`SelectTimeout`]; nothing was received or sent then.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(self, timeout: Duration) -> Result<R, SelectTimeout> {
        // Beyond what the clock can say: for ever.
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// Works as [`wait`](Self::wait), but waits no longer than until `deadline`. With a deadline
    /// that has passed, this is a [`try_wait`](Self::try_wait).
    ///
    /// # Errors
    /// [`SelectTimeout`]; nothing was received or sent then.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_deadline(self, deadline: Instant) -> Result<R, SelectTimeout> {
        self.wait_until(Some(deadline))
    }

    fn wait_until(mut self, deadline: Option<Instant>) -> Result<R, SelectTimeout> {
        match self.round().check_all() {
            Some(at) => Ok(self.arms.finish(at)),
            None => self.wait_after_check(deadline),
        }
    }

    /// Works as [`wait_deadline`](Self::wait_deadline), for a caller that has checked already.
    #[cold]
    fn wait_after_check(mut self, deadline: Option<Instant>) -> Result<R, SelectTimeout> {
        let mut pace = Pace::new(WaitMode::LowPower);
        // Lent while the arms are in use.
        self.with_pace(|own| pace = std::mem::replace(own, Pace::new(own.mode())));
        let found = self.round().wait(&mut pace, deadline);
        self.with_pace(|own| std::mem::swap(own, &mut pace));
        Ok(self.arms.finish(found.ok_or(SelectTimeout)?))
    }

    /// The pace of the first arm that has one.
    fn with_pace(&mut self, mut work: impl FnMut(&mut Pace)) {
        let mut work = |arm: &mut dyn Arm| arm.pace().map(&mut work).is_some();
        let _ = (0..self.arms.count()).any(|at| self.arms.with(at, &mut work));
    }

    /// Does one operation if an arm is ready now. Returns `None` if at one instant none was: see
    /// [the module](self#nothing-is-ready).
    ///
    /// # Panics
    /// If the closure does.
    pub fn try_wait(mut self) -> Option<R> {
        let at = self.round().check_at_one_instant()?;
        Some(self.arms.finish(at))
    }

    /// Works as [`try_wait`](Self::try_wait), but returns the result of `fallback` if no arm is
    /// ready.
    ///
    /// ```
    /// use thalweg::channel::{spsc, Select};
    /// let (_tx, mut rx) = spsc::<u8>(1);
    /// let got = Select::new().recv(&mut rx, |byte| byte.ok()).or_else(|| None);
    /// assert_eq!(got, None);
    /// ```
    ///
    /// # Panics
    /// If the closure does.
    pub fn or_else(self, fallback: impl FnOnce() -> R) -> R {
        self.try_wait().unwrap_or_else(fallback)
    }

    /// Works as [`wait`](Self::wait), as a future for any runtime; not with a timer.
    ///
    /// Cancel-safe: dropping it loses no element and no wake-up, and elements to be sent are back
    /// in their `Option`s. One that is kept unpolled, or forgotten: see [futures that wait and are
    /// not polled](super#futures-that-wait-and-are-not-polled).
    pub async fn wait_async(mut self) -> A::Waited
    where
        A: Waits<R> + Untimed,
    {
        if self.arms.count() == 0 {
            return A::waited(None);
        }
        let at = self.round().wait_async().await;
        A::waited(Some(self.arms.finish(at)))
    }
}

shown!([R, A] Select<R, A>, "Select", _this);

/// A select whose number of arms is known at run time only; see [`Select::dynamic`].
pub type SelectList<'a, R> = Select<R, ArmList<'a, R>>;

type ArmList<'a, R> = Vec<Box<dyn Choice<R> + 'a>>;

impl<'a, R> SelectList<'a, R> {
    /// Returns a select for any number of arms, which [`push_recv`](Self::push_recv) and
    /// [`push_send`](Self::push_send) add. Their closures get the index of the arm, from 0. Arms
    /// added by [`recv`](Self::recv) or [`send`](Self::send) may follow, and have later indexes.
    ///
    /// Allocates for each arm.
    ///
    /// ```
    /// use thalweg::channel::{Select, mpmc};
    ///
    /// let mut channels: Vec<_> = (0..3).map(|_| mpmc::<u8>(1)).collect();
    /// channels[2].0.send(9)?;
    ///
    /// let mut select = Select::dynamic();
    /// for (_, rx) in &mut channels {
    ///     select.push_recv(rx, |at, got| (at, got));
    /// }
    /// assert_eq!(select.wait(), Ok((2, Ok(9))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dynamic() -> Self {
        Self::with_arms(Vec::new())
    }

    /// Adds an arm that receives, as [`recv`](Self::recv) does; returns its index.
    pub fn push_recv<T, S: Shape>(
        &mut self,
        receiver: &'a mut Receiver<T, S>,
        then: impl FnOnce(usize, Result<T, RecvError>) -> R + 'a,
    ) -> usize {
        let at = self.arms.len();
        self.push(RecvArm::new(receiver, move |got| then(at, got)))
    }

    /// Adds an arm that sends, as [`send`](Self::send) does; returns its index.
    pub fn push_send<T, S: Shape>(
        &mut self,
        sender: &'a mut Sender<T, S>,
        value: &'a mut Option<T>,
        then: impl FnOnce(usize, Result<(), SendError<()>>) -> R + 'a,
    ) -> usize {
        let at = self.arms.len();
        self.push(SendArm::new(sender, value, move |sent| then(at, sent)))
    }

    fn push(&mut self, arm: impl Choice<R> + 'a) -> usize {
        self.arms.push(Box::new(arm));
        self.arms.len() - 1
    }
}

impl<R> Arms for ArmList<'_, R> {
    fn count(&self) -> usize {
        self.len()
    }

    fn with<O>(&mut self, at: usize, work: impl FnOnce(&mut dyn Arm) -> O) -> O {
        work(&mut *self[at])
    }
}

impl<R> Choices<R> for ArmList<'_, R> {
    fn finish(&mut self, at: usize) -> R {
        self[at].finish()
    }
}

impl<R> Waits<R> for ArmList<'_, R> {
    type Waited = Result<R, SelectEmpty>;

    fn waited(result: Option<R>) -> Self::Waited {
        result.ok_or(SelectEmpty)
    }
}

// A list that arms can be pushed to needs no clock.
impl<R> Untimed for ArmList<'_, R> {}

/// A source of instants, made by [`after`], [`at`] and [`tick`]: for an arm of a select
/// ([`Select::timer`]), or to receive from directly.
///
/// It has no thread and no list of timers: it is a point in time, and a thread that waits for it
/// sleeps no longer than until then. A timer for which no thread waits costs nothing.
///
/// ```
/// use std::time::{Duration, Instant};
/// use thalweg::channel::{Select, spsc, tick};
///
/// let (_tx, mut rx) = spsc::<u8>(8);
/// let mut ticks = tick(Duration::from_millis(1));
/// let begin = Instant::now();
/// for _ in 0..3 {
///     Select::new()
///         .recv(&mut rx, |_| unreachable!("nothing is sent"))
///         .timer(&mut ticks, |_due| ())
///         .wait();
/// }
/// assert!(begin.elapsed() >= Duration::from_millis(3));
/// ```
#[derive(Clone)]
#[must_use = "a timer does nothing unless somebody waits for it"]
pub struct Timer {
    due: Option<Instant>,
    period: Option<Duration>,
}

/// Returns a timer for one instant, `duration` from now.
///
/// It works as the receiver of this name in `crossbeam-channel`, but is disconnected when it has
/// expired. With a duration beyond the range of the clock it never fires.
pub fn after(duration: Duration) -> Timer {
    at(later(Instant::now(), duration))
}

/// Returns the moment `duration` after `now`, or the last that the clock can say, which does not
/// come.
fn later(now: Instant, duration: Duration) -> Instant {
    let mut shorter = std::iter::successors(Some(duration), |longer| Some(*longer / 2));
    (shorter.find_map(|duration| now.checked_add(duration))).unwrap_or(now)
}

/// Returns a timer for the instant `when`.
pub fn at(when: Instant) -> Timer {
    Timer {
        due: Some(when),
        period: None,
    }
}

/// Returns a timer for an instant every `period`, the first of them one period from now.
///
/// The next period begins when an instant is received, so that there is never more than one to
/// receive: a late receiver does not find a queue of them. A period of 0 makes it always ready.
pub fn tick(period: Duration) -> Timer {
    Timer {
        period: Some(period),
        ..after(period)
    }
}

/// Returns a receiver that stays empty and is never disconnected: for an arm of a select that is
/// switched off.
///
/// ```
/// use std::time::Duration;
/// use thalweg::channel::{RecvTimeoutError, Spsc, never};
/// let mut nothing = never::<u8, Spsc>();
/// let outcome = nothing.recv_timeout(Duration::from_millis(1));
/// assert_eq!(outcome, Err(RecvTimeoutError::Timeout));
/// ```
pub fn never<T: Send, S: Shape>() -> Receiver<T, S> {
    let end = RecvEnd::Rendezvous(Arc::new(Rendezvous::new()), Arc::default());
    // The hub counts a sender that does not exist.
    Receiver::new(end, Arc::new(Hub::new(Settings::default())))
}

impl Timer {
    /// Returns the next instant at which it is due; `None` if it has expired.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns the instant at which it was due, if that has passed.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] before that, and [`TryRecvError::Disconnected`] if the timer has
    /// expired.
    pub fn try_recv(&mut self) -> Result<Instant, TryRecvError> {
        let due = self.due.ok_or(TryRecvError::Disconnected)?;
        let now = Instant::now();
        if now < due {
            return Err(TryRecvError::Empty);
        }
        self.due = self.period.map(|period| later(now, period));
        Ok(due)
    }

    /// Blocks the thread until the timer is due, and returns the instant at which it was.
    ///
    /// # Errors
    /// [`RecvError`] if the timer has expired.
    pub fn recv(&mut self) -> Result<Instant, RecvError> {
        self.due.ok_or(RecvError)?;
        Ok(Select::new().timer(self, |due| due).wait())
    }
}

/// Iterates over the instants, and blocks the thread until each of them.
impl Iterator for Timer {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        self.recv().ok()
    }
}

shown!([] Timer, "Timer", this, "due": this.due, "period": this.period);
