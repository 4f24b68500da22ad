//! An event count: a list of waiters that check a condition of their own, and are notified when it
//! may hold.
//!
//! The list holds wakers, for threads and tasks alike, first come first served, behind a word that
//! notifiers load. While there is no waiter, a notification costs a load and a branch, and no
//! fence. (Event counts: Reed and Kanodia, 1979; with a list of waiters and a registration before
//! the last check: folly's and Eigen's `EventCount`.)
//!
//! # State
//! `word` is the number of listed waiters times [`WAITER`], plus [`ARMED`], plus [`WAKING`], plus
//! [`OLD`], plus [`SHUT`]. It changes under the lock of the list only. `idle` counts consecutive
//! notifications that found the event count armed and no waiter.
//!
//! # Rules
//! 1. A notifier has published what makes the condition true; it passes the light barrier, and
//!    loads the word. If that is 0, it is done. Else it passes a sequentially consistent fence and
//!    loads the word again; if waiters are listed, it removes the first from the list and wakes it.
//! 2. A waiter takes the lock. If the event count is not armed, it arms it: it sets `ARMED`, then
//!    passes the heavy barrier. Then it lists itself, releases the lock, passes a sequentially
//!    consistent fence, and checks the condition again; only if that does not hold does it sleep.
//! 3. `ARMED` is set by rules 2 and 6 and by nothing else, and cleared only under the lock, while
//!    no waiter is listed, no thread is woken by a chained notification, and the event count is not
//!    shut.
//! 4. A chained notification wakes no thread while the last thread that such a notification woke
//!    has not checked yet (`WAKING`, the *mark*); that thread clears the mark, passes a fence,
//!    checks, and if there may be more, notifies the next. Its check sees what the notifier
//!    published, by the argument below.
//! 5. A notification is used by a check that comes after it, and by nothing else. A waiter that
//!    leaves without one passes it on.
//! 6. A thread that checks for the last time shuts the event count before: it takes the lock, sets
//!    `SHUT` and, if the event count is not armed, `ARMED` and passes the heavy barrier, releases
//!    the lock, and passes a sequentially consistent fence. `SHUT` is never cleared. A notifier
//!    that finds it after its fence has to check itself.
//! 7. A mark that has suppressed many notifications becomes `OLD`, under the lock, unless the event
//!    count is shut. A chained notification that sees `OLD` behind its light barrier is done
//!    without a fence. The thread that clears `OLD`, which is the one with the mark or the one that
//!    shuts the event count, passes the heavy barrier before it checks. The mark of a thread that
//!    is overdue may pass to the next waiter, which is woken; `OLD` stays with the mark.
//! 8. A notification that wakes a task wakes the first thread, too, if one is listed. A task may be
//!    kept unpolled, or forgotten while it is listed, and then does not use the notification; a
//!    thread always checks. So an element can be left to waiting tasks only. A thread that finds
//!    nothing has cost its wake-up; where all waiters are threads, or all are tasks, none is woken
//!    in vain.
//!
//! # Why it works
//! By the lock, a waiter is listed after the heavy barrier of the last arming, which comes after
//! the last clearing. Take a notifier that publishes and loads the word. If its light barrier comes
//! before that heavy barrier, the waiter, which checks later still, sees what was published. If it
//! comes after, the notifier sees `ARMED` set (or, later, cleared, but rule 3 excludes that while
//! the waiter is listed) and continues to the fence. Either that fence or the waiter's comes first:
//! if the waiter's, the notifier sees it listed, and if the notifier's, the waiter sees what was
//! published (Dekker's argument).
//!
//! Shutting follows Dekker's argument too, with the thread that shuts as the waiter: its last check
//! sees what was published, or the notifier finds `SHUT`, or both. Two notifiers that both find it
//! have passed a fence each, between publishing and checking: at least one of them sees what the
//! other published.
//!
//! Rule 7 rests on the argument of arming: a notifier whose light barrier comes after the heavy
//! barrier of the thread that cleared `OLD` does not see `OLD` any more, and passes its fence; the
//! check behind that heavy barrier sees what the other notifiers published. A thread that is woken
//! and gets no core is the common case in a crowd, where each notification would pay for a fence,
//! which waits until the element's store is visible. (1 sender, 20 receivers, 2-core Intel virtual
//! machine, November 2026: a message took some 58 ns with the fence, and 33 to 45 without.)
//!
//! So dense traffic, where the receiver hardly ever sleeps, pays no fence; sparse traffic, where it
//! sleeps every time, stays armed and pays no heavy barrier. An event count on which no thread has
//! slept for [`IDLE_MAX`] notifications is cleared by the notifier. Where the system has no heavy
//! barrier, an event count is always armed. Asymmetric barriers for this purpose: Dice, Huang and
//! Yang, "Asymmetric Dekker synchronization" (2001); folly's `AsymmetricThreadFence`.

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

/// Notifiers must pass a fence and load the word again.
const ARMED: u32 = 1;
/// The mark: a thread was woken by a chained notification, and has not checked yet.
const WAKING: u32 = 2;
/// No thread will check again.
const SHUT: u32 = 4;
/// The mark has been set for long.
const OLD: u32 = 8;
/// One listed waiter.
const WAITER: u32 = 16;
/// The number of consecutive notifications without a waiter after which the event count is cleared.
/// That number of fences (7 ns each) costs as much as one to five heavy barriers.
#[cfg(not(any(loom, shuttle)))]
const IDLE_MAX: u32 = 256;
#[cfg(any(loom, shuttle))]
const IDLE_MAX: u32 = 1;

/// An event count: a list of waiters (threads or tasks) that are woken, in the order in which they
/// registered, when the condition that each of them checks may hold.
///
/// Notifying costs a load and a branch while no thread or task has waited for a while, a fence (7
/// ns) more while one has, and the cost of the waker (2 µs for a thread) where one waits.
/// Registering costs an uncontended lock, a fence and the clone of a waker, some 40 ns. Where none
/// has waited for a while it also costs an asymmetric fence, the system call `membarrier` (0.4 to
/// 10 µs): notifiers pay no fence until then. Nothing is allocated after construction, as long as
/// no more than 16 wait together.
///
/// An event count stores no notification: a waiter checks its condition itself, *after* it has
/// registered. Threads use [`block`](super::block), which does all that.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use thalweg::wait::{WaitMode, Pace, EventCount, block};
/// let (done, event_count) = (AtomicBool::new(false), EventCount::new());
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         done.store(true, Ordering::Release);
///         event_count.notify_one();
///     });
///     let check = || done.load(Ordering::Acquire).then_some(());
///     block(&event_count, &mut Pace::new(WaitMode::Balanced), None, check)
/// })
/// .expect("without a deadline, it comes");
/// ```
#[derive(Debug)]
pub struct EventCount {
    front: Front,
    back: Back,
}

/// The word that every notifier loads, alone on its cache line.
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
    /// The number of chained notifications that were suppressed since the mark was last checked.
    suppressed: AtomicU32,
    /// The time when the mark was set, in ticks.
    since: AtomicU64,
    list: Mutex<List>,
}

impl Default for EventCount {
    fn default() -> Self {
        Self::new()
    }
}

impl EventCount {
    /// Returns an event count without waiters. It allocates the list. The first one of a process
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

    /// Wakes the waiter that registered first, if there is one. Everything that this thread did
    /// before is visible to the waiter that is woken, and to one that registers too late for that.
    ///
    /// Returns `true` if no waiter will ever check again, so that the caller has to drop what it
    /// published. Only channels end their own event counts like that: for one made by
    /// [`new`](Self::new) it is always `false`.
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

    /// Works as [`notify`](Self::notify) for all waiters.
    #[inline]
    pub(crate) fn notify_all(&self) -> usize {
        self.notify(usize::MAX)
    }

    /// Registers a waiter. It must check its condition *after* this, and sleep only if that does
    /// not hold; and it must [`unregister`](Self::unregister) before it does anything else,
    /// whatever wakes it. It blocks only for the lock, briefly.
    pub fn register(&self, waker: &Waker) -> Entry {
        self.register_as(waker, Kind::Task)
    }

    /// Works as [`register`](Self::register), for any kind of waiter. A thread does nothing but
    /// wait: it will unregister as soon as it is woken, which
    /// [`notify_chained`](Self::notify_chained) counts on.
    pub(crate) fn register_as(&self, waker: &Waker, kind: Kind) -> Entry {
        // User code runs outside of the lock: here the clone.
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
        let is_registered = wait.is_some();
        // The waker is dropped outside of the lock; if that panics, the caller may hold an element.
        let_go(wait);
        is_registered
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
        // ORDERING: Relaxed; a figure, nothing follows from it.
        (self.front.word.load(Ordering::Relaxed) / WAITER) as usize
    }

    /// Returns the number of registrations so far: of waits that found nothing by checking and
    /// spinning. It takes the lock.
    pub fn registrations(&self) -> u64 {
        self.lock().listed()
    }

    /// Returns the number of waiters that were notified so far. It takes the lock.
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
        // heavy ones in `register_as` and `Mark::pass`.
        self.front.word.load(Ordering::Relaxed)
    }

    /// Does the second half of rule 1: returns how many were woken, and whether the event count is
    /// shut (rule 6).
    #[cold]
    #[inline(never)]
    fn notify_listed(&self, count: usize) -> (usize, bool) {
        // ORDERING: SeqCst (order::dekker), pairs with the fence in `register_as` (rules 1 and 2).
        fence(order::dekker());
        // ORDERING: Relaxed; ordered by the fence.
        let listed = (self.front.word.load(Ordering::Relaxed) / WAITER) as usize;
        if listed == 0 {
            self.count_idle();
            return (0, self.is_shut());
        }
        // ORDERING: Relaxed; an estimate of how often threads wait, which may miss some.
        self.back.idle.store(0, Ordering::Relaxed);
        (self.wake(count.min(listed)), self.is_shut())
    }

    /// Counts a notification that found no waiter; clears the event count after many.
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

    /// Stores the number of waiters in the word, after it has changed, and `ARMED`. The number must
    /// have changed: else the event count may have been cleared since the caller's check, and this
    /// would arm it without the heavy barrier (rule 3).
    fn publish(&self, list: &List) {
        // ORDERING: Relaxed; the word changes under the lock only.
        let old = self.front.word.load(Ordering::Relaxed);
        debug_assert!(old & ARMED != 0);
        let word = ARMED + list.mark() + (old & SHUT) + list.len() * WAITER;
        // ORDERING: Release (order::carry_end), pairs with the Acquire in `is_shut`, if it is shut.
        // Else it orders nothing: the caller holds the lock, and a new waiter passes the fence in
        // // `list` afterwards.
        self.front.word.store(word, order::carry_end());
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        // No user code runs under the lock.
        lock(&self.back.list)
    }
}

/// The kind of waiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A task, which may be kept unpolled, or forgotten.
    Task,
    /// A thread that waits on other event counts, too. It always checks its condition.
    Select,
    /// A thread that waits on this event count alone, and unregisters as soon as it is woken.
    Thread,
}

#[derive(Debug, Default)]
struct List {
    waits: WaitQueue<Kind>,
    /// The number of them that are threads.
    threads: usize,
    /// The number of waiters that were notified so far.
    woken: u64,
    /// The thread that has the mark: a chained notification woke it, and it has not checked yet.
    waking: Option<Entry>,
    /// The mark is old: notifications see it and pass no fence.
    is_old: bool,
}

impl List {
    fn len(&self) -> u32 {
        self.waits.len() as u32
    }

    /// Returns whether no waiter is listed, and no thread has the mark.
    fn is_idle(&self) -> bool {
        self.len() == 0 && (self.waking.is_none() || fault::is("chain_cleared"))
    }

    /// Lists a waiter.
    fn push(&mut self, waker: Waker, kind: Kind) -> Entry {
        self.threads += usize::from(kind != Kind::Task);
        self.waits.push(Some(waker), kind)
    }

    /// Removes a waiter that leaves; returns `None` if it was notified.
    fn remove(&mut self, entry: Entry) -> Option<Wait<Kind>> {
        let wait = self.waits.remove(entry)?;
        self.threads -= usize::from(wait.element != Kind::Task);
        Some(wait)
    }

    /// Returns its waiters, for [`renew`](crate::wait::renew).
    fn waits(&mut self) -> &mut WaitQueue<Kind> {
        &mut self.waits
    }

    /// Returns the number of waiters that were listed so far.
    fn listed(&self) -> u64 {
        self.waits.listed
    }

    /// Removes the first waiter, to be woken; and if that is a task, the first thread, too (rule
    /// 8). A thread gets the mark if the notification is chained.
    fn pop(&mut self, is_chained: bool) -> Option<[Option<Waker>; 2]> {
        let first = self.take(0, is_chained)?;
        let mut second = None;
        if first.element == Kind::Task && self.threads > 0 && !fault::is("task_trusted") {
            let at = (self.waits.waits()).position(|wait| wait.element != Kind::Task);
            second = at.and_then(|at| self.take(at, is_chained));
        }
        Some([first.waker, second.and_then(|wait| wait.waker)])
    }

    fn take(&mut self, at: usize, is_chained: bool) -> Option<Wait<Kind>> {
        let wait = self.waits.take(at)?;
        self.threads -= usize::from(wait.element != Kind::Task);
        if is_chained && wait.element == Kind::Thread {
            self.waking = Some(wait.entry);
        }
        self.woken += 1;
        Some(wait)
    }

    /// Returns whether a thread has the mark.
    fn is_marked(&self) -> bool {
        self.waking.is_some()
    }

    /// Returns the bits of the word that stand for the mark.
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

    /// Makes the mark fresh; returns whether it was old.
    fn renew(&mut self) -> bool {
        std::mem::take(&mut self.is_old)
    }

    /// Clears the mark if the waiter `entry` still has it, which checks next.
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

/// The time after which a thread that was woken and has not checked is overdue: it has no core, and
/// the next waiter is woken. In a crowd that happens often, and each wake-up costs the sender 2 µs,
/// so the time is not shorter.
const OVERDUE_NS: u64 = if cfg!(test) { 10_000_000_000 } else { 250_000 };
/// The number of notifications that a mark suppresses between two checks of it. Then it is old, and
/// notifications cost no fence any more.
const SUPPRESSED_MAX: u32 = 16;

/// A mark that was cleared.
#[derive(Debug, Clone, Copy)]
#[must_use = "its thread must pass a barrier"]
enum Mark {
    Fresh,
    Old,
}

impl Mark {
    /// Passes the barrier that the thread which had the mark needs before its check.
    fn pass(self) {
        if matches!(self, Self::Old) && skips_fence() {
            return barrier::heavy();
        }
        if fault::is("chain_fence") {
            return;
        }
        // ORDERING: SeqCst (order::dekker), pairs with the fence in `notify_next` (rule 4).
        fence(order::dekker());
    }
}

impl EventCount {
    /// Works as [`notify_one`](Self::notify_one) where waiters wake each other: it wakes no thread
    /// while one that it woke less than 0.25 ms ago has not checked yet. A thread that finds an
    /// element after a wait must notify the next if there may be more. So a sender that is faster
    /// than threads wake up pays for one wake-up (2 µs), not for one per element, and there is no
    /// thundering herd.
    ///
    /// All waiters must wait for the same condition, and a check that takes long, or waits itself,
    /// delays the other waiters.
    ///
    /// Returns what [`notify_one`](Self::notify_one) does.
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

    /// Does the second half of rule 1, with rules 4 and 7; `word` was loaded behind a light
    /// barrier.
    fn continue_chain(&self, mut word: u32) {
        if word & OLD == 0 {
            // ORDERING: SeqCst (order::dekker), pairs with the fences in `register_as` and
            // `Mark::pass` (rules 1, 2 and 4).
            fence(order::dekker());
            // ORDERING: Relaxed; ordered by the fence.
            word = self.front.word.load(Ordering::Relaxed);
        }
        if word & WAKING != 0 {
            return self.suppress(word);
        }
        if word / WAITER == 0 {
            return self.count_idle();
        }
        // ORDERING: Relaxed; an estimate of how often threads wait, which may miss some.
        self.back.idle.store(0, Ordering::Relaxed);
        self.wake_next(false);
    }

    /// Suppresses a notification, since a thread has the mark; now and then checks whether that is
    /// overdue.
    fn suppress(&self, word: u32) {
        // ORDERING: Relaxed; a count that may miss some.
        let suppressed = self.back.suppressed.load(Ordering::Relaxed) + 1;
        // ORDERING: Relaxed, as above.
        self.back
            .suppressed
            .store(suppressed % SUPPRESSED_MAX, Ordering::Relaxed);
        let is_old = word & OLD != 0;
        let is_turn = suppressed >= SUPPRESSED_MAX;
        if word / WAITER > 0 && (is_turn || !is_old) && self.is_overdue() {
            self.wake_next(true);
        } else if is_turn && !is_old {
            self.make_old();
        }
    }

    /// Returns whether the thread with the mark is overdue.
    fn is_overdue(&self) -> bool {
        // ORDERING: Relaxed; a time, which orders nothing.
        let since = self.back.since.load(Ordering::Relaxed);
        let clock = Clock::global();
        !IS_MODEL && clock.ticks().saturating_sub(since) > clock.ticks_from_ns(OVERDUE_NS)
    }

    /// Makes the mark old, if there is one: notifications pass no fence from now on.
    fn make_old(&self) {
        let mut list = self.lock();
        // ORDERING: Relaxed; the word changes under the lock only.
        let is_shut = self.front.word.load(Ordering::Relaxed) & SHUT != 0;
        if list.is_marked() && !is_shut && barrier::is_available() {
            list.make_old();
            self.publish(&list);
        }
    }

    /// Removes one waiter from the list and wakes it, unless a thread has the mark and is not
    /// overdue.
    fn wake_next(&self, is_overdue: bool) {
        let mut list = self.lock();
        // Another notifier may have woken a waiter since.
        let is_overdue = is_overdue && !fault::is("overdue");
        let wakers = if !list.is_marked() || (is_overdue && (IS_MODEL || self.is_overdue())) {
            list.pop(true)
        } else {
            None
        };
        if wakers.is_some() && !IS_MODEL {
            // ORDERING: Relaxed, as in `is_overdue` and `suppress`.
            self.back
                .since
                .store(Clock::global().ticks(), Ordering::Relaxed);
            // ORDERING: Relaxed, as above.
            self.back.suppressed.store(0, Ordering::Relaxed);
        }
        if must_publish(wakers.is_some()) {
            self.publish(&list);
        }
        drop(list);
        wakers.into_iter().flatten().for_each(wake);
    }
}

/// Returns `true`: notifiers see an old mark and pass no fence (a fault turns it off).
fn skips_fence() -> bool {
    !fault::is("old_mark")
}

impl EventCount {
    /// Removes up to `wanted` waiters from the list, and wakes each outside of the lock.
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

/// Returns whether the word must be stored: only if the list has changed.
fn must_publish(is_changed: bool) -> bool {
    is_changed || fault::is("publish_unchanged")
}

impl EventCount {
    /// Shuts the event count: no thread will check again after the check that follows (rule 6).
    /// That check sees what was published by a thread that has passed the barrier of its
    /// notification; the notifications of all other threads return that the event count is shut.
    ///
    /// It stays shut. The call costs an uncontended lock and a fence, and the heavy barrier if the
    /// event count is not armed (0.4 to 10 µs).
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
        if word & ARMED == 0 || (was_old && skips_fence()) {
            barrier::heavy();
        }
        drop(list);
        // ORDERING: SeqCst (order::dekker), pairs with the fences of notifiers (rules 1 and 6).
        fence(order::dekker());
    }

    /// Returns whether the event count is shut. A notifier calls it after its barrier, which is a
    /// fence or, beside an old mark or without waiters, the heavy barrier of `shut`.
    #[inline]
    pub(crate) fn is_shut(&self) -> bool {
        // ORDERING: Acquire (order::ended), pairs with the Release in `shut`, which the store of
        // `publish` carries on; the notifier's fence orders it after what it published.
        self.front.word.load(order::ended()) & SHUT != 0
    }
}
