//! Notifying waiters that they may find what they wait for.
//!
//! A [`Signal`] is a list of wakers with a word in front, for threads and tasks alike, first come
//! first served. While there
//! is no waiter, a notification costs a load and a branch, and no fence.
//!
//! # State
//! `word` is the number of listed waiters times [`WAITER`], plus [`ARMED`], plus [`WAKING`], plus
//! [`OLD`], plus [`SHUT`]. It changes under the lock of the list only. `idle` counts notifications
//! on end that met an armed signal and no waiter.
//!
//! # Rules
//! 1. A thread that makes something publishes it, passes the light barrier, and loads the word. If
//!    that is 0, it is done. Else it passes a sequentially consistent fence and loads the word
//!    again; if waiters are listed, it takes the first off the list and wakes it.
//! 2. A waiter takes the lock. If the signal is not armed, it arms it: it sets `ARMED`, then
//!    passes the heavy barrier. Then it lists itself, gives the lock back, passes a sequentially
//!    consistent fence, and looks again; only if there is nothing does it sleep.
//! 3. `ARMED` is set by rules 2 and 6 and by nothing else, and cleared only under the lock, while
//!    no waiter is listed, no thread is on its way as one of a chain, and the signal is not shut.
//! 4. A chained notification wakes no thread while the last one that such a notification woke has
//!    not looked yet (`WAKING`); that thread clears the mark, passes a fence, looks, and if there
//!    is more, notifies the next. Its look comes after what the notifier made, by the argument
//!    below.
//! 5. A notification is used up by a check that comes after it, and by nothing else. A waiter that
//!    leaves without one passes it on.
//! 6. A thread that looks for the last time shuts the signal before: it takes the lock, sets `SHUT`
//!    and, if the signal is not armed, `ARMED` and passes the heavy barrier, gives the lock back,
//!    and passes a sequentially consistent fence. `SHUT` is never cleared. A notifier that finds it
//!    after its fence has to look itself.
//! 7. A mark that has held back many notifications becomes `OLD`, under the lock, unless the signal
//!    is shut. A chained notification that sees `OLD` behind its light barrier is done without a
//!    fence. The thread that clears `OLD`, which is the one with the mark or the one that shuts the
//!    signal, passes the heavy barrier before it looks. The mark of a thread that is overdue may
//!    pass to the next waiter, which is woken; `OLD` stays with the mark.
//! 8. A notification that wakes a task wakes the first thread, too, if one is listed. A task may be
//!    kept unpolled, or forgotten while it is listed, and then uses nothing up; a thread looks,
//!    whatever happens. So what was made waits beside tasks at most. A thread that looks in vain
//!    has cost its wake-up; where all waiters are threads, or all are tasks, there is none more.
//!
//! # Why it works
//! By the lock, a waiter is listed after the heavy barrier of the last arming, which comes after
//! the last clearing. Take a notifier that makes something and loads the word. If its light barrier
//! comes before that heavy barrier, the waiter, which looks later still, sees what was made. If it
//! comes after, the notifier sees `ARMED` set (or, later, cleared, but rule 3 excludes that while
//! the waiter is listed) and goes on to the fence. Either that fence or the waiter's comes first:
//! if the waiter's, the notifier sees it listed, and if the notifier's, the waiter sees what was
//! made (Dekker's argument).
//!
//! By the same argument, with the one that shuts the signal in the place of the waiter: either its
//! last look sees what was made, or the notifier finds `SHUT`; or both. Two notifiers that both
//! find it have passed a fence each, between publishing and looking: at least one of them sees
//! what the other made.
//!
//! Rule 7 is the argument of arming: a notifier whose light barrier comes after the heavy barrier
//! of the one that cleared `OLD` does not see `OLD` any more, and passes its fence; what the others
//! made is seen by the look behind that heavy barrier. A thread that is woken and gets no core is
//! the common case in a crowd, and each notification would pay for a fence, which waits until the
//! store of the element is out. (1 sender, 20 receivers, 2-core Intel virtual machine, November
//! 2026: a message took some 58 ns with it, and 33 to 45 without.)
//!
//! So dense traffic, where the receiver hardly ever sleeps, pays no fence; sparse traffic, where it
//! sleeps every time, stays armed and pays no heavy barrier. A signal on which no thread has slept
//! for [`IDLE_MAX`] notifications is cleared by the notifier. Where the system has no heavy
//! barrier, a signal is armed for ever. Asymmetric barriers for this purpose: Dice, Huang and Yang,
//! "Asymmetric Dekker synchronization" (2001); folly's `AsymmetricThreadFence`.

use std::task::Waker;

use thalweg_measure::clock::Clock;

use super::wait_queue::{Entry, Wait, WaitQueue, renew};
use super::{barrier, let_go, wake};
use crate::ring::sync::{
    AtomicU32, AtomicU64, IS_MODEL, Mutex, MutexGuard, Ordering, fault, fence, lock, order,
};

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

/// Notifiers must look twice.
const ARMED: u32 = 1;
/// A thread has been woken as one of a chain, and has not looked yet.
const WAKING: u32 = 2;
/// Set once no thread will look again.
const SHUT: u32 = 4;
/// The mark has been there for long.
const OLD: u32 = 8;
/// One listed waiter.
const WAITER: u32 = 16;
/// The number of notifications on end that find no waiter before the signal is cleared. That number
/// of fences (7 ns each) costs as much as one to five heavy barriers.
#[cfg(not(any(loom, shuttle)))]
const IDLE_MAX: u32 = 256;
#[cfg(any(loom, shuttle))]
const IDLE_MAX: u32 = 1;

/// A list of waiters (threads or tasks) that are woken when they may find what they wait for, in
/// the order in which they registered.
///
/// Notifying costs a load and a branch while no thread or task has waited for a while, a fence (7
/// ns) more while one has, and the cost of the waker (2 µs for a thread) where one waits.
/// Registering costs an uncontended lock, a fence and the clone of a waker, some 40 ns. Where none
/// has waited for a while it also costs an asymmetric fence, the system call `membarrier` (0.4 to
/// 10 µs): notifiers pay no fence until then. Nothing is allocated after construction, as long as
/// no more than 16 wait together.
///
/// A signal stores no notification: a waiter checks its condition itself, *after* it has
/// registered. Threads use [`block`](super::block), which does all that.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use thalweg::wait::{Mode, Pace, Signal, block};
/// let (done, signal) = (AtomicBool::new(false), Signal::new());
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         done.store(true, Ordering::Release);
///         signal.notify_one();
///     });
///     let look = || done.load(Ordering::Acquire).then_some(());
///     block(&signal, &mut Pace::new(Mode::Balanced), None, look)
/// })
/// .expect("without a deadline, it comes");
/// ```
#[derive(Debug)]
pub struct Signal {
    front: Front,
    back: Back,
}

/// The word that every notifier reads, alone on its line.
#[derive(Debug)]
#[repr(align(128))]
struct Front {
    word: AtomicU32,
}

/// The part that only waiters, and the threads that wake them, touch.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Back {
    idle: AtomicU32,
    /// Chained notifications that were held back since the last look at the mark.
    held: AtomicU32,
    /// When the mark was set, in ticks.
    since: AtomicU64,
    list: Mutex<List>,
}

impl Default for Signal {
    fn default() -> Self {
        Self::new()
    }
}

impl Signal {
    /// Returns a signal without waiters. It allocates the list. The first one of a process
    /// registers the process for the OS's asymmetric fence (`membarrier`); that takes 6 µs while
    /// the process has one thread, and 8 to 12 ms afterwards.
    pub fn new() -> Self {
        let armed = if barrier::is_available() { 0 } else { ARMED };
        Self {
            front: Front {
                word: AtomicU32::new(armed),
            },
            back: Back::default(),
        }
    }

    /// Wakes the waiter that registered first, if there is one. All that this thread did before is
    /// visible to the waiter that is woken, and to one that registers too late to be woken.
    ///
    /// Returns `true` if no waiter will ever check again, so that the caller has to drop what it
    /// published. Only channels end their own signals like that: for one made by [`new`](Self::new)
    /// it is always `false`.
    #[inline(always)]
    pub fn notify_one(&self) -> bool {
        self.is_armed() && self.notify_listed(1).1
    }

    /// Works as [`notify_one`](Self::notify_one) for up to `count` waiters; returns how many there
    /// were.
    #[inline(always)]
    pub(crate) fn notify(&self, count: usize) -> usize {
        if self.is_armed() {
            self.notify_listed(count).0
        } else {
            0
        }
    }

    /// Works as [`notify`](Self::notify) for all that wait now.
    #[inline]
    pub(crate) fn notify_all(&self) -> usize {
        self.notify(usize::MAX)
    }

    /// Registers a waiter. It must check its condition *after* this, and sleep only if that does
    /// not hold; and it must [`unregister`](Self::unregister) before it does anything else,
    /// whatever wakes it. It blocks only for the lock, briefly.
    pub fn register(&self, waker: &Waker) -> Entry {
        self.list(waker, Kind::Task)
    }

    /// Works as [`register`](Self::register), for any kind of waiter. A thread does nothing but
    /// wait: it will unregister as soon as it is woken, which
    /// [`notify_chained`](Self::notify_chained) counts on.
    pub(crate) fn list(&self, waker: &Waker, kind: Kind) -> Entry {
        // Foreign code runs outside of the lock: here the clone.
        let waker = waker.clone();
        let mut list = self.lock();
        // ORDERING: Relaxed; the word changes under the lock only.
        if self.front.word.load(Ordering::Relaxed) & ARMED == 0 {
            // ORDERING: Relaxed; the heavy barrier orders it against the light one in `is_armed`.
            self.front.word.store(ARMED, Ordering::Relaxed);
            barrier::heavy();
        }
        let entry = list.push(waker, kind);
        self.publish(&list);
        drop(list);
        // ORDERING: SeqCst (order::dekker), pairs with the fence in `notify_listed` (rules 1 and
        // 2).
        fence(order::dekker());
        entry
    }

    /// Ends a registration, and returns whether it was still registered:
    /// - `true`: it was not notified, and nothing is left to do;
    /// - `false`: it was notified, and the waiter has to check its condition. If the caller does
    ///   not do so now (since it gives up, or since it found what it waits for *before* this call),
    ///   it must pass the notification on by [`notify_one`](Self::notify_one). An extra one does no
    ///   harm.
    #[must_use = "a notification that is not used must be passed on"]
    pub fn unregister(&self, entry: Entry) -> bool {
        let mut list = self.lock();
        let wait = list.remove(entry);
        let mark = list.unmark(entry);
        if wait.is_some() || mark.is_some() {
            self.publish(&list);
        }
        drop(list);
        if let Some(mark) = mark {
            mark.pass();
        }
        let is_listed = wait.is_some();
        // The waker is dropped outside of the lock, and the caller may have an element in hand.
        let_go(wait);
        is_listed
    }

    /// Replaces the waker of a registration, for a task that is polled again, and returns whether
    /// it is still registered:
    /// - `true`: it is, in its old position;
    /// - `false`: it has been notified, and has ended: check the condition, and register again
    ///   before the next sleep.
    #[must_use = "a wait that has been notified is over"]
    pub fn update(&self, entry: Entry, waker: &Waker) -> bool {
        renew(&self.back.list, |list| Some(list.waits()), entry, waker)
    }

    /// Returns the number of waiters, which may have changed by the time it is read.
    pub(crate) fn waiting(&self) -> usize {
        // ORDERING: Relaxed; a figure to look at, nothing follows from it.
        (self.front.word.load(Ordering::Relaxed) / WAITER) as usize
    }

    /// Returns the number of registrations so far: of waits that found nothing by checking and
    /// spinning. It takes the lock.
    pub fn registrations(&self) -> u64 {
        self.lock().listed()
    }

    /// Returns how many waits a notification has ended so far. Takes the lock.
    pub(crate) fn woken(&self) -> u64 {
        self.lock().woken
    }

    /// Does the first half of rule 1: returns whether the word is not 0.
    #[inline(always)]
    fn is_armed(&self) -> bool {
        self.word_behind_light() != 0
    }

    #[inline(always)]
    fn word_behind_light(&self) -> u32 {
        barrier::light();
        // ORDERING: Relaxed; the barrier above orders it after what was published, against the
        // heavy ones in `list` and `Mark::pass`.
        self.front.word.load(Ordering::Relaxed)
    }

    /// Does the second half of rule 1: returns how many were woken, and whether the signal is shut
    /// (rule 6).
    #[cold]
    #[inline(never)]
    fn notify_listed(&self, count: usize) -> (usize, bool) {
        // ORDERING: SeqCst (order::dekker), pairs with the fence in `list` (rules 1 and 2).
        fence(order::dekker());
        // ORDERING: Relaxed; ordered by the fence.
        let listed = (self.front.word.load(Ordering::Relaxed) / WAITER) as usize;
        if listed == 0 {
            self.count_idle();
            return (0, self.is_shut());
        }
        // ORDERING: Relaxed; a guess at how busy waiters are, and losing some is fine.
        self.back.idle.store(0, Ordering::Relaxed);
        (self.wake(count.min(listed)), self.is_shut())
    }

    /// Counts a notification that found no waiter; clears the signal after many.
    fn count_idle(&self) {
        // ORDERING: Relaxed, as in `notify_listed`.
        let idle = self.back.idle.load(Ordering::Relaxed) + 1;
        // ORDERING: Relaxed, as in `notify_listed`.
        self.back.idle.store(idle % IDLE_MAX, Ordering::Relaxed);
        if idle >= IDLE_MAX
            && barrier::is_available()
            && let Ok(list) = self.back.list.try_lock()
            && list.is_idle()
        {
            // ORDERING: Relaxed; the word changes under the lock only.
            let word = self.front.word.load(Ordering::Relaxed);
            let word = word * u32::from(!crate::ring::sync::fault::is("shut_cleared"));
            if word & SHUT == 0 {
                // ORDERING: Relaxed; under the lock, so that the next waiter arms it again (rule
                // 3).
                self.front.word.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Puts the number of waiters where notifiers look, after it has changed; that says that the
    /// signal is armed. If it has not changed, the signal may have been cleared since the caller
    /// looked, and this would arm it without the heavy barrier (rule 3).
    fn publish(&self, list: &List) {
        // ORDERING: Relaxed; the word changes under the lock only.
        let old = self.front.word.load(Ordering::Relaxed);
        debug_assert!(old & ARMED != 0);
        let word = ARMED + list.mark() + (old & SHUT) + list.len() * WAITER;
        // ORDERING: Release (order::carry_end), pairs with the Acquire in `is_shut`, if it is. Else
        // nothing is passed on: the caller holds the lock, and a new waiter passes the fence in
        // `list` afterwards.
        self.front.word.store(word, order::carry_end());
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        // No foreign code runs under the lock.
        lock(&self.back.list)
    }
}

/// The kind of waiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A task, which may be kept unpolled, or forgotten.
    Task,
    /// A thread that waits for other things, too: it will run and look, whatever happens.
    Select,
    /// A thread that waits for this alone, and leaves as soon as it is woken.
    Thread,
}

#[derive(Debug, Default)]
struct List {
    waits: WaitQueue<Kind>,
    /// How many of them are threads.
    threads: usize,
    /// Waits taken off by a notification, ever.
    woken: u64,
    /// A thread that was woken as one of a chain and has not looked yet.
    waking: Option<Entry>,
    /// Notifications have passed that mark without a fence.
    is_old: bool,
}

impl List {
    fn len(&self) -> u32 {
        self.waits.len() as u32
    }

    /// Returns whether no waiter is listed, and none is on its way.
    fn is_idle(&self) -> bool {
        self.len() == 0 && (self.waking.is_none() || fault::is("chain_cleared"))
    }

    /// Lists a waiter.
    fn push(&mut self, waker: Waker, kind: Kind) -> Entry {
        self.threads += usize::from(kind != Kind::Task);
        self.waits.push(Some(waker), kind)
    }

    /// Takes a waiter that leaves; `None` if it was taken.
    fn remove(&mut self, entry: Entry) -> Option<Wait<Kind>> {
        let wait = self.waits.remove(entry)?;
        self.threads -= usize::from(wait.element != Kind::Task);
        Some(wait)
    }

    /// Returns its waiters, for [`renew`](crate::wait::renew).
    fn waits(&mut self) -> &mut WaitQueue<Kind> {
        &mut self.waits
    }

    /// Waits listed ever.
    fn listed(&self) -> u64 {
        self.waits.listed
    }

    /// Takes the waiter that came first, to be woken; and if that is a task, the first thread, too
    /// (rule 8). Remembers a thread as waking if it is one of a chain.
    fn pop(&mut self, is_of_chain: bool) -> Option<[Option<Waker>; 2]> {
        let first = self.take(0, is_of_chain)?;
        let mut second = None;
        if first.element == Kind::Task && self.threads > 0 && !fault::is("task_trusted") {
            let at = (self.waits.waits()).position(|wait| wait.element != Kind::Task);
            second = at.and_then(|at| self.take(at, is_of_chain));
        }
        Some([first.waker, second.and_then(|wait| wait.waker)])
    }

    fn take(&mut self, at: usize, is_of_chain: bool) -> Option<Wait<Kind>> {
        let wait = self.waits.take(at)?;
        self.threads -= usize::from(wait.element != Kind::Task);
        if is_of_chain && wait.element == Kind::Thread {
            self.waking = Some(wait.entry);
        }
        self.woken += 1;
        Some(wait)
    }

    /// Returns whether a thread of a chain is on its way.
    fn is_marked(&self) -> bool {
        self.waking.is_some()
    }

    /// Returns the mark as notifiers see it.
    fn mark(&self) -> u32 {
        match self.waking {
            None => 0,
            Some(_) if self.is_old => WAKING + OLD,
            Some(_) => WAKING,
        }
    }

    fn make_old(&mut self) {
        self.is_old = true;
    }

    /// Makes an old mark a fresh one; returns whether it was old.
    fn renew(&mut self) -> bool {
        std::mem::take(&mut self.is_old)
    }

    /// Takes the mark off the waiter that was woken as `entry`, which looks next, if it has it
    /// still.
    fn unmark(&mut self, entry: Entry) -> Option<Mark> {
        if self.waking != Some(entry) {
            return None;
        }
        if fault::is("chain_kept") {
            return Some(Mark::Fresh);
        }
        self.waking = None;
        Some(if self.renew() { Mark::Old } else { Mark::Fresh })
    }
}

/// A thread that has not looked so long after its wake-up has no core, and the next is woken. In a
/// crowd that happens all the time, and each wake-up is 2 µs of the sender's: no less than this.
const OVERDUE_NS: u64 = if cfg!(test) { 10_000_000_000 } else { 250_000 };
/// Notifications that a mark holds back between two looks at it: then it is old, and they cost no
/// fence any more.
const HELD: u32 = 16;

/// A mark that was taken off.
#[derive(Debug, Clone, Copy)]
#[must_use = "its thread must pass a barrier"]
enum Mark {
    Fresh,
    Old,
}

impl Mark {
    /// The thread that had it passes the barrier between that and its look.
    fn pass(self) {
        if matches!(self, Self::Old) && is_passed_over() {
            return barrier::heavy();
        }
        if fault::is("chain_fence") {
            return;
        }
        // ORDERING: SeqCst (order::dekker), pairs with the fence in `notify_next` (rule 4).
        fence(order::dekker());
    }
}

impl Signal {
    /// Works as [`notify_one`](Self::notify_one) where waiters wake each other: no thread is woken
    /// while a thread that this woke less than 0.25 ms ago has not looked yet. A thread that finds
    /// something after a wait must notify the next if there may be more. A sender that is faster
    /// than threads wake up so pays for one wake-up (2 µs), not for one per element, and there is
    /// no herd.
    ///
    /// Waiters must be content with anything that comes, and an attempt that takes long, or waits
    /// itself, holds up the others for as long.
    ///
    /// Gives what [`notify_one`](Self::notify_one) does.
    #[inline(always)]
    pub(crate) fn notify_chained(&self) -> bool {
        match self.word_behind_light() {
            0 => false,
            word => self.notify_next(word),
        }
    }

    #[cold]
    #[inline(never)]
    fn notify_next(&self, word: u32) -> bool {
        self.continue_chain(word);
        self.is_shut()
    }

    /// The second half of rule 1, with rules 4 and 7; `word` was seen behind a light barrier.
    fn continue_chain(&self, mut word: u32) {
        if word & OLD == 0 {
            // ORDERING: SeqCst (order::dekker), pairs with the fences in `list` and `Mark::pass`
            // (rules 1, 2 and 4).
            fence(order::dekker());
            // ORDERING: Relaxed; ordered by the fence.
            word = self.front.word.load(Ordering::Relaxed);
        }
        if word & WAKING != 0 {
            return self.hold_back(word);
        }
        if word / WAITER == 0 {
            return self.count_idle();
        }
        // ORDERING: Relaxed; a guess at how busy waiters are, and losing some is fine.
        self.back.idle.store(0, Ordering::Relaxed);
        self.wake_next(false);
    }

    /// A thread is on its way: looks now and then whether it has been for too long.
    fn hold_back(&self, word: u32) {
        // ORDERING: Relaxed; a count that may miss some.
        let held = self.back.held.load(Ordering::Relaxed) + 1;
        // ORDERING: Relaxed, as above.
        self.back.held.store(held % HELD, Ordering::Relaxed);
        let is_old = word & OLD != 0;
        let is_turn = held >= HELD;
        if word / WAITER > 0 && (is_turn || !is_old) && self.is_overdue() {
            self.wake_next(true);
        } else if is_turn && !is_old {
            self.make_old();
        }
    }

    /// Returns whether the thread with the mark should long have looked.
    fn is_overdue(&self) -> bool {
        // ORDERING: Relaxed; a stamp that says how long ago something was.
        let since = self.back.since.load(Ordering::Relaxed);
        let clock = Clock::global();
        !IS_MODEL && clock.ticks().saturating_sub(since) > clock.ticks_from_ns(OVERDUE_NS)
    }

    /// From here on notifications pass the mark, if there is one, without a fence.
    fn make_old(&self) {
        let mut list = self.lock();
        // ORDERING: Relaxed; the word changes under the lock only.
        let is_shut = self.front.word.load(Ordering::Relaxed) & SHUT != 0;
        if list.is_marked() && !is_shut && barrier::is_available() {
            list.make_old();
            self.publish(&list);
        }
    }

    /// Takes one waiter off the list and wakes it, unless a thread of the chain is on its way and
    /// not overdue.
    fn wake_next(&self, is_overdue: bool) {
        let mut list = self.lock();
        // Another notifier may have been faster.
        let is_overdue = is_overdue && !fault::is("overdue");
        let wakers = if !list.is_marked() || (is_overdue && (IS_MODEL || self.is_overdue())) {
            list.pop(true)
        } else {
            None
        };
        if wakers.is_some() && !IS_MODEL {
            // ORDERING: Relaxed, as in `is_overdue` and `hold_back`.
            self.back
                .since
                .store(Clock::global().ticks(), Ordering::Relaxed);
            // ORDERING: Relaxed, as above.
            self.back.held.store(0, Ordering::Relaxed);
        }
        if must_publish(wakers.is_some()) {
            self.publish(&list);
        }
        drop(list);
        wakers.into_iter().flatten().for_each(wake);
    }
}

/// Returns whether notifiers have passed an old mark without a fence: they do.
fn is_passed_over() -> bool {
    !fault::is("old_mark")
}

impl Signal {
    /// Takes up to `wanted` waiters off the list, and wakes each outside of the lock.
    fn wake(&self, wanted: usize) -> usize {
        (0..wanted).take_while(|_| self.wake_first()).count()
    }

    fn wake_first(&self) -> bool {
        let mut list = self.lock();
        let wakers = list.pop(false);
        let is_woken = wakers.is_some();
        if must_publish(is_woken) {
            self.publish(&list);
        }
        drop(list);
        wakers.into_iter().flatten().for_each(wake);
        is_woken
    }
}

/// Returns whether to signal that the list has changed: only if it has.
fn must_publish(is_changed: bool) -> bool {
    is_changed || fault::is("publish_unchanged")
}

impl Signal {
    /// Shuts the signal: no thread will look again after the look that follows (rule 6). That look
    /// sees what was published by a thread that has passed the barrier of its notification; the
    /// notifications of all other threads return that the signal is shut.
    ///
    /// It stays shut for ever. The call costs an uncontended lock and a fence, and the heavy
    /// barrier where the signal is not armed (0.4 to 10 µs).
    pub(crate) fn shut(&self) {
        if fault::is("shut") {
            return;
        }
        let mut list = self.lock();
        let was_old = list.renew();
        // ORDERING: Relaxed; the word changes under the lock only.
        let word = self.front.word.load(Ordering::Relaxed) & !OLD;
        // ORDERING: Release (order::end), pairs with the Acquire in `is_shut`: what the caller did
        // before, its close above all, is visible to a thread that sees `SHUT`.
        let shut = word | ARMED | SHUT;
        self.front.word.store(shut, order::end());
        if word & ARMED == 0 || (was_old && is_passed_over()) {
            barrier::heavy();
        }
        drop(list);
        // ORDERING: SeqCst (order::dekker), pairs with the fences of notifiers (rules 1 and 6).
        fence(order::dekker());
    }

    /// Returns whether the signal is shut. A notifier calls it after its barrier, which is a fence
    /// or, beside an old mark or without waiters, the heavy barrier of `shut`.
    #[inline]
    pub(crate) fn is_shut(&self) -> bool {
        // ORDERING: Acquire (order::ended), pairs with the Release in `shut`, which the store of
        // `publish` carries on; the notifier's fence orders it after what it published.
        self.front.word.load(order::ended()) & SHUT != 0
    }
}
