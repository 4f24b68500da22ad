//! A wait on a signal: a thread looks, spins and sleeps, by a pace or by a strategy; a task looks.

use std::borrow::BorrowMut;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use thalweg_measure::clock::Clock;

use super::parker::{self, Ended, Parker};
use super::{Entry, Kind, Mode, Pace, Signal};
use crate::ring::sync::{IS_MODEL, fault, is_model_over, spin_hint, yield_now};

/// The deadline was reached, and there was nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

errors!(TimedOut {
    Self => "nothing came before the deadline";
});

/// Calls `attempt` until it gives something: at once, then again and again for as long as `pace`
/// says, then whenever `signal` is notified. The thread that makes an attempt succeed must notify
/// afterwards.
///
/// `attempt` may wait on signals itself. If it panics, the wait is undone.
///
/// Costs nothing beyond the attempt where that succeeds; allocates nothing, but for the first wait
/// of a thread and for a wait within a wait.
///
/// # Errors
/// [`TimedOut`] when the deadline is reached and an attempt after that gives nothing. There is at
/// least one attempt.
///
/// # Panics
/// If `attempt` does.
#[inline]
pub fn block<R>(
    signal: &Signal,
    pace: &mut Pace,
    deadline: Option<Instant>,
    mut attempt: impl FnMut() -> Option<R>,
) -> Result<R, TimedOut> {
    match attempt() {
        Some(found) => Ok(found),
        None => block_listed(
            &mut wait_on(signal, Listed::default(), attempt),
            pace,
            deadline,
        ),
    }
}

/// A listed wait on a signal that is not known here.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    entry: Option<Entry>,
    /// A notification that no look has used up.
    owed: bool,
}

impl Listed {
    pub(crate) fn register(&mut self, signal: &Signal, waker: &Waker, kind: Kind) {
        self.entry = Some(signal.list(waker, kind));
    }

    /// Has `waker` woken from now on; returns whether it is still listed, or was not.
    pub(crate) fn stay(&mut self, signal: &Signal, waker: &Waker) -> bool {
        match self.entry {
            Some(entry) if !signal.update(entry, waker) => {
                self.entry = None;
                self.owed = true;
                false
            }
            _ => !self.owed,
        }
    }

    pub(crate) fn unregister(&mut self, signal: &Signal) {
        if let Some(entry) = self.entry.take() {
            self.owed |= !signal.unregister(entry);
        }
    }

    /// A look after a notification uses it up.
    #[inline]
    pub(crate) fn used_up(&mut self) {
        self.owed = false;
    }

    pub(crate) fn is_listed(&self) -> bool {
        self.entry.is_some()
    }

    /// Waits no more: what it was notified of and has not used is passed on, since what it got, if
    /// anything, it may have got before.
    pub(crate) fn leave(&mut self, signal: &Signal) {
        self.unregister(signal);
        self.pass_on(signal);
    }

    /// Passes a notification on that was not used.
    pub(crate) fn pass_on(&mut self, signal: &Signal) {
        if std::mem::take(&mut self.owed) && !fault::is("future_pass_on") {
            signal.notify_one();
        }
    }
}

/// Makes attempts for a task that waits on a signal of `owner`: what [`block`] is to a thread.
/// `place` gives the signal, and where the wait is kept; a caller that gives up must leave.
pub(crate) fn poll_on<O, R>(
    owner: &mut O,
    place: impl Fn(&mut O) -> (&Signal, &mut Listed),
    context: &Context<'_>,
    mut attempt: impl FnMut(&mut O) -> Option<R>,
) -> Poll<R> {
    let waker = context.waker();
    let (signal, listed) = place(owner);
    listed.stay(signal, waker);
    loop {
        // A wait that a notification has ended is over: the look that follows uses it up.
        place(owner).1.used_up();
        let found = attempt(owner);
        let (signal, listed) = place(owner);
        if let Some(found) = found {
            listed.leave(signal);
            return Poll::Ready(found);
        }
        // Listed since before that look, there is nothing new to look for.
        if listed.is_listed() && listed.stay(signal, waker) {
            return Poll::Pending;
        }
        listed.register(signal, waker, Kind::Task);
        if fault::is("future_look_again") {
            return Poll::Pending;
        }
    }
}

/// Works as [`block`] without a deadline, in a task. Where the wait is kept in an endpoint,
/// `listed`, that can end it when the future is forgotten.
pub(crate) fn wait_on<R, F: FnMut() -> Option<R>, L: BorrowMut<Listed>>(
    signal: &Signal,
    listed: L,
    attempt: F,
) -> OnSignal<'_, F, L> {
    OnSignal {
        signal,
        attempt,
        listed,
    }
}

/// A wait on one signal.
pub(crate) struct OnSignal<'s, F, L: BorrowMut<Listed> = Listed> {
    signal: &'s Signal,
    attempt: F,
    listed: L,
}

impl<R, F: FnMut() -> Option<R>> Listing for OnSignal<'_, F> {
    type Found = R;

    fn look(&mut self) -> Option<R> {
        (self.attempt)()
    }

    fn list(&mut self, waker: &Waker) -> Option<R> {
        self.listed.entry = Some(self.signal.list(waker, Kind::Thread));
        // A notification in between may have been for something else than was found; the drop
        // passes it on.
        (self.attempt)()
    }

    fn leave(&mut self) -> Option<R> {
        self.listed.unregister(self.signal);
        let found = (self.attempt)();
        // Also if someone else was faster: the notification was for what that one took.
        self.listed.used_up();
        found
    }
}

impl<R, F: FnMut() -> Option<R> + Unpin, L: BorrowMut<Listed> + Unpin> Future
    for OnSignal<'_, F, L>
{
    type Output = R;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        poll_on(
            self.get_mut(),
            |this| (this.signal, this.listed.borrow_mut()),
            context,
            |this| (this.attempt)(),
        )
    }
}

impl<F, L: BorrowMut<Listed>> Drop for OnSignal<'_, F, L> {
    /// Notifications that it did not use are passed on, also if an attempt panics.
    fn drop(&mut self) {
        // A model that has failed is torn down, and nothing of it may be touched.
        if !is_model_over() {
            self.listed.borrow_mut().leave(self.signal);
        }
    }
}

/// A wait that lists itself, on several signals or somewhere else.
pub(crate) trait Listing {
    type Found;

    /// Returns whether looking finds nothing unless this side is listed: then it spins afterwards.
    fn spins_listed(&mut self) -> bool {
        false
    }

    /// Looks, while it is not listed.
    fn look(&mut self) -> Option<Self::Found>;

    /// Lists this wait so that `waker` is woken when there is something to look at, and looks
    /// again. When it returns something, it is not listed any more.
    fn list(&mut self, waker: &Waker) -> Option<Self::Found>;

    /// Takes this wait off all lists, and looks. Must also happen when the owner is dropped.
    fn leave(&mut self) -> Option<Self::Found>;
}

/// Works as [`block`], for a wait that lists itself; the caller has looked once.
///
/// # Errors
/// [`TimedOut`] when the deadline is reached and there is nothing; the wait is not listed then.
#[cold]
pub(crate) fn block_listed<L: Listing>(
    listing: &mut L,
    pace: &mut Pace,
    deadline: Option<Instant>,
) -> Result<L::Found, TimedOut> {
    pace.begin(deadline);
    let mut spins_listed = listing.spins_listed();
    if !spins_listed {
        while pace.spin_more() {
            if let Some(found) = listing.look() {
                pace.found_spinning();
                return Ok(found);
            }
        }
    }
    parker::with(|parker| {
        loop {
            parker.reset();
            if let Some(found) = listing.list(parker.waker()) {
                return Ok(found);
            }
            let is_notified = std::mem::take(&mut spins_listed) && spin(parker, pace);
            let ended = if is_notified {
                Ended::Awake
            } else {
                pace.before_sleep();
                parker.park_until(deadline)
            };
            if let Ended::Asleep(woken) = ended {
                pace.woken(woken);
            }
            if let Some(found) = listing.leave() {
                return Ok(found);
            }
            let is_late = |deadline| Instant::now() >= deadline;
            if ended == Ended::TimedOut || deadline.is_some_and(is_late) {
                pace.timed_out();
                return Err(TimedOut);
            }
        }
    })
}

/// Spins until the waker is woken; returns whether it was.
fn spin(parker: &Parker, pace: &mut Pace) -> bool {
    while pace.spin_more() {
        if parker.is_woken() {
            pace.found_spinning();
            return true;
        }
    }
    false
}

/// The way in which a thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Burn the core. The shortest reaction (a cache-line hand-off, 0.1 to 0.2 µs), for a thread
    /// that has a core of its own; many times slower than the others where it has not.
    Spin,
    /// Give the turn away, again and again. Burns what is left of the core and lets others on it
    /// run.
    Yield,
    /// Sleep at once. Costs nothing while idle; a wake-up takes some 4 µs across cores, of which
    /// the waking thread pays 2.
    Park,
    /// Spin or yield for about as long as a wake-up takes, then sleep.
    #[default]
    Adaptive,
}

impl Strategy {
    /// Returns whether a waiting thread may sleep, so that another one must wake it.
    pub fn may_sleep(self) -> bool {
        matches!(self, Self::Park | Self::Adaptive)
    }
}

/// Yielding is cheap for the others on the core, so that it may last longer than spinning: two time
/// slices' worth of short turns, ns. Sleeping sooner makes every gap between events cost a wake-up.
const SHARE_NS: u64 = 200_000;
/// The time for which a thread that waits for room in a ring spins: 25 wake-ups of 2 µs, which the
/// stage that makes the room would have to pay. So waking costs a stage 4 % of its time at most.
const ROOM_NS: u64 = 50_000;
/// Time between two looks at a full ring, ns. Each look takes the line of the last stage's sequence
/// away from it (some 0.2 µs), and the less room there is, the sooner it is used up; but a waiting
/// thread must see the first free slot, and sees it later by this time at most.
const LOOK_NS: std::ops::RangeInclusive<u64> = 100..=10_000;

/// Stages publish free slots by the round, of 64 events. A thread that has waited for this time (a
/// round of 150 ns an event) looks for each single one.
const LONG_NS: u64 = 10_000;

/// A thread's way of waiting.
#[derive(Debug)]
pub(crate) struct Waiter {
    strategy: Strategy,
    /// Threads outnumber the cores.
    shares: bool,
    pace: Pace,
    clock: Clock,
    /// How long to pause between two looks at a full ring, ns.
    look_ns: u64,
}

impl Waiter {
    /// Waits by `strategy`; `shares` says that threads share cores, so that no thread may spin.
    pub(crate) fn new(strategy: Strategy, shares: bool) -> Self {
        let mode = match strategy {
            Strategy::Adaptive if !shares => Mode::Balanced,
            _ => Mode::Power,
        };
        Self {
            strategy,
            shares,
            pace: Pace::new(mode),
            clock: Clock::global(),
            look_ns: *LOOK_NS.start(),
        }
    }

    /// Has the calling thread allocate now what its first sleep would.
    pub(crate) fn prepare(&self) {
        if self.strategy.may_sleep() {
            parker::prepare();
        }
    }

    /// Returns whether pausing for a moment keeps no thread from running.
    pub(crate) fn may_pause(&self) -> bool {
        match self.strategy {
            Strategy::Spin => !IS_MODEL,
            Strategy::Adaptive => self.pace.may_spin(),
            Strategy::Yield | Strategy::Park => false,
        }
    }

    fn gives_turns(&self) -> bool {
        self.strategy == Strategy::Yield || (self.strategy == Strategy::Adaptive && self.shares)
    }

    /// Returns once `ready` returns `true`. If the strategy may sleep, the thread that makes it
    /// true must notify `signal` afterwards.
    pub(crate) fn until(&mut self, signal: &Signal, mut ready: impl FnMut() -> bool) {
        if ready() {
            return;
        }
        let awake_ns = match self.strategy {
            Strategy::Spin | Strategy::Yield => u64::MAX,
            Strategy::Adaptive if self.shares && !IS_MODEL => SHARE_NS,
            Strategy::Adaptive | Strategy::Park => 0,
        };
        let (turn, began) = (self.turn(), self.clock.ticks());
        let awake = self.clock.ticks_from_ns(awake_ns);
        while awake_ns == u64::MAX || self.clock.ticks().saturating_sub(began) < awake {
            turn();
            if ready() {
                return;
            }
        }
        // Without a deadline it returns when there is something.
        let _ = block(signal, &mut self.pace, None, || ready().then_some(()));
    }

    /// Returns the function that a thread calls while it is awake.
    fn turn(&self) -> fn() {
        if self.gives_turns() {
            yield_now
        } else {
            spin_hint
        }
    }

    /// Works as [`until`](Self::until) for room in a ring: returns once `room(is_long)` is not 0,
    /// where `is_long` asks for a check that finds any room, and costs the stage that makes it
    /// more. Looks less often if there was less than `plenty` the last time, and goes on for longer
    /// before it sleeps.
    pub(crate) fn until_room(
        &mut self,
        signal: &Signal,
        plenty: usize,
        mut room: impl FnMut(bool) -> usize,
    ) {
        let budget = if self.shares { SHARE_NS } else { ROOM_NS };
        let begin = self.clock.ticks();
        let deadline = begin + self.clock.ticks_from_ns(budget);
        let long = begin + self.clock.ticks_from_ns(LONG_NS);
        while !IS_MODEL && (self.may_pause() || self.gives_turns()) {
            let now = self.pause_for(self.look_ns);
            let found = room(now >= long);
            if found > 0 {
                let next = if found < plenty {
                    self.look_ns * 2
                } else {
                    self.look_ns / 2
                };
                self.look_ns = next.clamp(*LOOK_NS.start(), *LOOK_NS.end());
                return;
            }
            if self.strategy.may_sleep() && now >= deadline {
                break;
            }
        }
        self.until(signal, || room(true) > 0);
    }

    fn pause_for(&self, ns: u64) -> u64 {
        let end = self.clock.ticks() + self.clock.ticks_from_ns(ns);
        let turn = self.turn();
        loop {
            turn();
            let now = self.clock.ticks();
            if now >= end {
                return now;
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    #[test]
    fn every_strategy_ends_when_the_condition_holds() {
        for strategy in [
            Strategy::Spin,
            Strategy::Yield,
            Strategy::Park,
            Strategy::Adaptive,
        ] {
            for (shares, room) in [(false, 0), (true, 0), (false, 64), (true, 64)] {
                let shared = Arc::new((AtomicBool::new(false), Signal::new()));
                let waiting = Arc::clone(&shared);
                let thread = std::thread::spawn(move || {
                    let mut waiter = Waiter::new(strategy, shares);
                    let (condition, signal) = &*waiting;
                    match room {
                        0 => waiter.until(signal, || condition.load(SeqCst)),
                        _ => waiter.until_room(signal, room, |_| condition.load(SeqCst).into()),
                    }
                });
                // Mostly long enough that a thread which may sleep does.
                for _ in 0..1_000 {
                    std::thread::yield_now();
                }
                shared.0.store(true, SeqCst);
                shared.1.notify_one();
                thread.join().unwrap();
            }
        }
    }
}
