//! A pace: how long a thread spins before it sleeps, learned from what its waits have cost.
//!
//! Spinning for as long as a wake-up costs, and sleeping then, costs at most twice what knowing the
//! future would (Karlin, Manasse, McGeoch and Owicki, 1990). A pace measures two values to do
//! better:
//!
//! - The cost of a wake-up: the time from the call of the waker until this thread ran. EWMA of 1/8.
//! - The idle gap: the time until the condition held. EWMA of 1/8, in which a long gap counts as
//!   four wake-ups. While it is above one and a half wake-ups, spinning is not expected to succeed,
//!   and sleeping without it is cheaper. While it is above half a wake-up, the budget is two
//!   wake-ups: threads that wake each other see gaps of just one, and with a budget of one would
//!   never find out that both could spin. So one wait costs up to three times the best, and on
//!   average one and a half. Gaps are known after a sleep as well, since the waker stores the time,
//!   so that spinning resumes when gaps become short.
//!
//! On one core, the condition cannot become true while this thread runs: it sleeps without
//! spinning, or yields once where gaps are short and yields have paid (`Yields`). A thread that has
//! yielded runs again when the other thread sleeps or its time slice is over, while a thread that
//! is woken preempts. A thread that is pinned to one core does the same after a thread on that core
//! has woken it (`CoreView`). Wakers store the core that they run on; a pinned thread that was
//! preempted while it spun sleeps once, to learn the core of its waker.
//!
//! A wake-up that took very long, or a long pause between two reads of the clock, shows that other
//! threads want this core: for some waits, this thread yields instead of spinning.
//!
//! # Whether yielding pays
//! On a shared core that is learned from the time that a yield took. It costs some 0.2 µs, a tenth
//! of a sleep and a wake-up, where the other thread answers and waits itself. Where that thread
//! continues with its own work, the scheduler lets it finish its time slice: 1 to 4 ms on Linux
//! 6.18. A thread that sleeps preempts it as soon as it is woken.
//!
//! `Yields` limits how often a thread yields: it counts the waits between two yields in which the
//! thread sleeps.
//! - The first yield comes after 2,048 waits: about the number of wake-ups that one yield can cost.
//! - After a yield that took as long as `n` wake-ups, the next `4 * n` waits sleep.
//! - If it lost a time slice (10 wake-ups or more), that number is multiplied by four for each
//!   time slice that was lost in a row before it; it is 65,536 at most.
//!
//! At a message each 5 µs that makes less than 2 % of them late.

use std::time::Instant;

use thalweg_measure::clock::{Clock, TimeSource};

use super::WaitMode;
use super::cores::{self, View};
use super::costs::{WAKE_NS, WAKE_NS_DEFAULT, WaitCosts};
use super::parker::Woken;
use crate::ring::sync::{IS_MODEL, spin_hint, yield_now};

/// The time for which latency mode spins.
const LATENCY_NS: u64 = 5_000_000;
/// The largest age of the affinity mask where a thread is about to sleep. Reading it takes some
/// 10 µs.
const CORES_NS_MAX: u64 = 100_000_000;
/// The largest age of it where a thread spins: another thread may wait for its result.
const CORES_SPINNING_NS_MAX: u64 = 1_000_000_000;
/// The number of rounds between two reads of the clock; a pause takes some 10 ns, and a read 20.
const ROUNDS_PER_READ: u32 = 16;
/// The time after which a thread that pauses yields once (0.2 to 0.4 µs where no other thread wants
/// the core): else two spinning threads that share a core switch once a time slice.
const PAUSES_NS_MAX: u64 = 50_000;
/// The largest gap that counts, in wake-ups.
const GAP_WAKES_MAX: u64 = 4;
/// The number of waits that yield after a sign that the cores are crowded.
const CROWDED_WAITS: u32 = 64;

/// The action of a thread in each round of the spin phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpinAction {
    /// The thread sleeps without spinning.
    None,
    /// It yields once, then sleeps.
    YieldOnce,
    /// It yields until the time is over.
    Yield,
    /// It pauses until the time is over.
    Pause,
}

/// The pace of an endpoint: how it waits, and what it has learned. It belongs to one thread at a
/// time, and may move.
pub struct Pace<C: TimeSource = Clock> {
    mode: WaitMode,
    clock: C,
    cores: CoreView,
    /// The measured cost of yielding on a shared core.
    yields: Yields,
    /// The number of coming waits that yield, not pause.
    crowded: u32,
    /// EWMA of what a wake-up costs, in ticks.
    wake: u64,
    /// EWMA of idle gaps, in ticks.
    gap: u64,
    /// The action of this wait in each round.
    action: SpinAction,
    /// Rounds until the next read of the clock.
    rounds_left: u32,
    /// The time when spinning began, in ticks, once the clock was read.
    began: Option<u64>,
    /// The last read of the clock, in ticks.
    last_read: u64,
    /// The time when spinning ends, in ticks.
    spin_deadline: u64,
    /// The time when a thread that pauses yields next, in ticks.
    next_yield_at: u64,
    /// The caller's deadline.
    deadline: Option<Instant>,
    /// The next wait sleeps without spinning.
    skips_spinning: bool,
}

shown!([C: TimeSource] Pace<C>, "Pace", this,
    "mode": this.mode, "wake_ns": this.clock.ns(this.wake), "gap_ns": this.clock.ns(this.gap),
    "usable": this.cores.usable);

impl Pace {
    /// Returns a pace that has learned nothing yet. The first one of a process calibrates the
    /// clock, which takes some 10 ms.
    pub fn new(mode: WaitMode) -> Self {
        cores::prepare();
        Self::with(mode, Clock::global(), cores::view)
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::new(WaitMode::default())
    }
}

impl<C: TimeSource> Pace<C> {
    fn with(mode: WaitMode, clock: C, cores: fn() -> View) -> Self {
        let wake = clock.ticks_from_ns(WaitCosts::current().wake_ns);
        Self {
            mode,
            clock,
            cores: CoreView::new(cores),
            yields: Yields::default(),
            crowded: 0,
            wake,
            // After a few long gaps, spinning stops.
            gap: wake / 2,
            action: SpinAction::None,
            rounds_left: 0,
            began: None,
            last_read: 0,
            spin_deadline: 0,
            next_yield_at: 0,
            deadline: None,
            skips_spinning: false,
        }
    }

    /// Returns the mode.
    pub(crate) fn mode(&self) -> WaitMode {
        self.mode
    }

    /// Returns whether `threads` threads would have to share cores, as far as is known.
    pub(crate) fn is_crowd(&self, threads: u64) -> bool {
        let usable = self.cores.usable;
        !IS_MODEL && usable > 0 && threads > usable as u64 && self.mode.may_spin()
    }

    /// Sets whether the next wait sleeps without spinning, since the caller has paused or yielded
    /// itself.
    pub(crate) fn set_skips_spinning(&mut self, skips: bool) {
        self.skips_spinning = skips;
    }

    /// Returns whether other threads can run while this thread pauses for a moment, even if the
    /// cores are crowded.
    #[inline]
    pub(crate) fn may_pause(&self) -> bool {
        !IS_MODEL && !self.cores.is_alone() && self.mode.may_spin()
    }

    /// Returns whether pausing for a moment keeps no thread from running, as far as is known.
    #[inline]
    pub(crate) fn may_spin(&self) -> bool {
        !IS_MODEL && !self.cores.is_alone() && self.crowded == 0 && self.mode.may_spin()
    }

    /// Returns whether the next wait would yield or sleep, not pause.
    #[inline]
    pub(crate) fn would_yield(&self) -> bool {
        !IS_MODEL && self.mode.may_spin() && self.choose() != SpinAction::Pause
    }

    /// Begins a wait. It reads the clock only if the wait is to yield once.
    #[inline]
    pub(super) fn begin(&mut self, deadline: Option<Instant>) {
        self.began = None;
        self.deadline = deadline;
        self.action = if std::mem::take(&mut self.skips_spinning) {
            SpinAction::None
        } else {
            self.choose()
        };
        self.rounds_left = if self.action == SpinAction::Pause {
            ROUNDS_PER_READ
        } else {
            1
        };
        if self.action == SpinAction::YieldOnce {
            let now = self.clock.ticks();
            self.began = Some(now);
            self.last_read = now;
        }
        self.crowded = self.crowded.saturating_sub(1);
        if self.cores.is_shared() {
            self.yields.pass();
        }
    }

    fn choose(&self) -> SpinAction {
        // A model would try every number of rounds.
        if IS_MODEL {
            return SpinAction::None;
        }
        match self.mode {
            WaitMode::LowPower => SpinAction::None,
            _ if self.cores.is_shared() && self.yields_pay() => SpinAction::YieldOnce,
            _ if self.cores.is_shared() || self.cores.must_sleep() => SpinAction::None,
            WaitMode::Latency if self.crowded == 0 => SpinAction::Pause,
            WaitMode::Latency => SpinAction::Yield,
            WaitMode::Balanced if self.gap > self.wake + self.wake / 2 => SpinAction::None,
            WaitMode::Balanced if self.crowded > 0 => SpinAction::Yield,
            WaitMode::Balanced => SpinAction::Pause,
        }
    }

    /// Spins for a round, if there is time left: then the caller checks again.
    #[inline]
    pub(super) fn spin_more(&mut self) -> bool {
        if self.rounds_left == 0 && !self.read_clock() {
            return false;
        }
        self.rounds_left -= 1;
        match self.action {
            SpinAction::None => return false,
            SpinAction::Pause => spin_hint(),
            SpinAction::Yield | SpinAction::YieldOnce => yield_now(),
        }
        true
    }

    /// Reads the clock while spinning; returns whether there is time left.
    fn read_clock(&mut self) -> bool {
        let mut now = self.clock.ticks();
        let is_first = self.began.is_none();
        if is_first {
            self.first_read(now);
        } else if self.action == SpinAction::Pause && now >= self.next_yield_at {
            yield_now();
            now = self.clock.ticks();
            self.next_yield_at = now.saturating_add(self.clock.ticks_from_ns(PAUSES_NS_MAX));
        }
        let passed = now.saturating_sub(self.last_read);
        self.last_read = now;
        if !is_first && passed > self.clock.ticks_from_ns(*WAKE_NS.end()) {
            self.crowded = CROWDED_WAITS;
            if self.action == SpinAction::Pause {
                self.action = SpinAction::Yield;
            }
            self.cores.preempted();
        }
        if self.action == SpinAction::YieldOnce {
            self.yielded(false);
        }
        if matches!(self.action, SpinAction::None | SpinAction::YieldOnce)
            || now >= self.spin_deadline
        {
            return false;
        }
        self.rounds_left = match self.action {
            SpinAction::Pause => ROUNDS_PER_READ,
            _ => 1,
        };
        true
    }

    fn first_read(&mut self, now: u64) {
        self.began = Some(now);
        let budget = match self.mode {
            WaitMode::Latency => self.clock.ticks_from_ns(LATENCY_NS),
            WaitMode::Balanced if self.gap > self.wake / 2 => 2 * self.wake,
            WaitMode::Balanced => self.wake,
            WaitMode::LowPower => 0,
        };
        let left = self.deadline.map_or(u64::MAX, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            let left_ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
            self.clock.ticks_from_ns(left_ns)
        });
        self.spin_deadline = now.saturating_add(budget.min(left));
        self.next_yield_at = now.saturating_add(self.clock.ticks_from_ns(PAUSES_NS_MAX));
        self.refresh_cores(now, CORES_SPINNING_NS_MAX);
        if self.cores.is_shared() {
            self.action = self.choose();
        }
    }

    /// Returns whether a yield on a shared core is expected to be cheaper than a sleep.
    fn yields_pay(&self) -> bool {
        // A wake-up that costs more here has waited for the other's time slice.
        self.gap <= self.clock.ticks_from_ns(WAKE_NS_DEFAULT) && self.yields.are_due()
    }

    /// Records the wait's one yield, which ended at the last read of the clock.
    fn yielded(&mut self, has_found: bool) {
        let took = self
            .last_read
            .saturating_sub(self.began.unwrap_or(self.last_read));
        let wakes = took / self.clock.ticks_from_ns(WAKE_NS_DEFAULT).max(1);
        self.yields.took(wakes, has_found);
    }

    /// Records that spinning succeeded. It reads the clock only after a yield, which may have taken
    /// any time, since another thread may wait for the result.
    #[inline]
    pub(super) fn found_spinning(&mut self) {
        if self.action == SpinAction::YieldOnce {
            self.last_read = self.clock.ticks();
            self.yielded(true);
        }
        let gap = self
            .began
            .map_or(0, |began| self.last_read.saturating_sub(began));
        self.learn_gap(gap);
    }

    /// Ends spinning: reads the affinity mask if it is old, since the thread is about to sleep.
    pub(super) fn before_sleep(&mut self) {
        if IS_MODEL {
            return;
        }
        let now = self.clock.ticks();
        self.began.get_or_insert(now);
        self.refresh_cores(now, CORES_NS_MAX);
    }

    fn refresh_cores(&mut self, now: u64, max_ns: u64) {
        self.cores.refresh(now, self.clock.ticks_from_ns(max_ns));
    }

    /// Records that the thread has slept and was woken.
    pub(super) fn woken(&mut self, Woken { at: woken, core }: Woken) {
        let now = self.clock.ticks();
        self.cores.woken_from(core);
        let took = now.saturating_sub(woken);
        if took > self.clock.ticks_from_ns(*WAKE_NS.end()) {
            self.crowded = CROWDED_WAITS;
        } else {
            let took = took.max(self.clock.ticks_from_ns(*WAKE_NS.start()));
            self.wake = averaged(self.wake, took);
        }
        if let Some(began) = self.began.take() {
            self.learn_gap(woken.saturating_sub(began));
        }
        // Another wait begins if another thread took the element.
        self.began = Some(now);
    }

    /// Records that the wait timed out.
    pub(super) fn timed_out(&mut self) {
        let now = self.clock.ticks();
        let gap = self.began.map_or(0, |began| now.saturating_sub(began));
        // A shorter wait does not show how long the gap is.
        if gap > self.wake {
            self.learn_gap(gap);
        }
    }

    fn learn_gap(&mut self, gap: u64) {
        self.gap = averaged(self.gap, gap.min(GAP_WAKES_MAX * self.wake));
    }
}

/// Returns an EWMA of 1/8, rounded towards the new value, so that it gets there.
fn averaged(old: u64, new: u64) -> u64 {
    if new >= old {
        old + (new - old).div_ceil(8)
    } else {
        old - (old - new).div_ceil(8)
    }
}

/// The cores of a thread, as far as is known. Times are in ticks.
struct CoreView {
    /// Reads which cores the calling thread may use.
    cores: fn() -> View,
    /// The number of cores at the last read; 0 before the first.
    usable: usize,
    /// The core, if it was the only one.
    only: Option<usize>,
    /// The time of the last read.
    read_at: Option<u64>,
    /// The last waker ran on this thread's only core.
    waker_shares: bool,
    /// The next wait is to sleep, to learn whether its waker shares the core.
    must_sleep: bool,
}

impl CoreView {
    fn new(cores: fn() -> View) -> Self {
        Self {
            cores,
            usable: 0,
            only: None,
            read_at: None,
            waker_shares: false,
            must_sleep: false,
        }
    }

    /// Returns whether there is one core, as far as is known.
    fn is_alone(&self) -> bool {
        self.usable == 1
    }

    /// Returns whether the thread that it waits for needs this core to run, as far as is known.
    fn is_shared(&self) -> bool {
        self.is_alone() || self.waker_shares
    }

    /// Returns whether the next wait is to sleep, which shows whether the core is shared.
    fn must_sleep(&self) -> bool {
        self.must_sleep
    }

    /// Reads the cores, if the last read is `max` old.
    fn refresh(&mut self, now: u64, max: u64) {
        let is_new = |read_at| now.saturating_sub(read_at) < max;
        if !self.read_at.is_some_and(is_new) {
            self.read_at = Some(now);
            let View { count, only } = (self.cores)();
            (self.usable, self.only) = (count, only);
        }
    }

    /// Records that the thread has slept, and a thread on `core` has woken it.
    fn woken_from(&mut self, core: Option<usize>) {
        self.waker_shares = self.only.is_some() && self.only == core;
        self.must_sleep = false;
    }

    /// Records that other threads had the core while this one spun. A thread that is not pinned is
    /// migrated by the scheduler.
    fn preempted(&mut self) {
        self.must_sleep = self.only.is_some();
    }
}

/// The number of waits before the first yield.
const WAITS_FIRST: u64 = 2_048;
/// The number of waits without a yield, for each wake-up that the last yield took.
const WAITS_PER_WAKE: u64 = 4;
/// The time from which on a yield has lost a time slice, in wake-ups. Each such yield in a row
/// shifts the number of waits by two bits more.
const WAKES_SLICE: u64 = 10;
const BITS_PER_LEVEL: u32 = 2;
const LEVEL_MAX: u32 = 6;
const WAITS_MAX: u64 = 65_536;

#[derive(Debug)]
struct Yields {
    /// The number of coming waits that do not yield.
    waits: u64,
    /// Time slices lost in a row.
    level: u32,
}

impl Default for Yields {
    fn default() -> Self {
        Self {
            waits: WAITS_FIRST,
            level: 0,
        }
    }
}

impl Yields {
    /// Returns whether the next wait is to yield, not sleep.
    fn are_due(&self) -> bool {
        self.waits == 0
    }

    /// Counts a wait that begins on a shared core.
    #[inline]
    fn pass(&mut self) {
        self.waits = self.waits.saturating_sub(1);
    }

    /// Records that a yield took as long as `wakes` wake-ups, and whether the check after it
    /// succeeded.
    fn took(&mut self, wakes: u64, has_found: bool) {
        if wakes > 0 {
            let waits = wakes.saturating_mul(WAITS_PER_WAKE << (BITS_PER_LEVEL * self.level));
            self.waits = waits.min(WAITS_MAX);
            self.level += u32::from(wakes >= WAKES_SLICE && self.level < LEVEL_MAX);
        } else if has_found {
            self.level = self.level.saturating_sub(1);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
