//! How long to spin before sleeping, learned from what waiting has cost.
//!
//! Spinning for as long as a wake-up costs, and sleeping then, costs at most twice what knowing the
//! future would (Karlin, Manasse, McGeoch and Owicki, 1990). Two things are measured to do better:
//!
//! - The cost of a wake-up: from when the waker woke this thread until it ran. EWMA of 1/8.
//! - The idle gap, until something came. EWMA of 1/8, in which a long one counts as four wake-ups.
//!   While that is above one and a half, nothing is to be expected in time, and sleeping at once is
//!   the cheaper way. While it is above half a wake-up, the budget is two: threads that wake each
//!   other see gaps of just one wake-up, and with a budget of one would never find out that both
//!   could spin. So one wait costs up to three times the best, and on average one and a half.
//!   Gaps are known after a sleep as well, since the waker stamps the clock, so that spinning comes
//!   back when things come fast again.
//!
//! On one core, nothing comes while this thread runs: it sleeps at once, or yields once where gaps
//! are short and yields have paid (`Yields`): a thread that has yielded gets its turn again when
//! the other sleeps or its time slice is over, while a wake-up takes the core at once. So does a
//! thread that is pinned to one core, after a thread on that core has woken it (`CoreView`). Wakers
//! say where they run; one that is pinned and loses its core sleeps once, so that its waker says
//! where it runs.
//!
//! A wake-up that took very long, or a long pause between two reads of the clock, says that others
//! want this core: for some waits, spinning gives the turn away.
//!
//! # Whether giving a turn away pays
//! On a shared core that is learned from how long it took to get the turn back. A yield costs some
//! 0.2 µs, a tenth of a sleep and a wake-up, where the other thread answers and waits itself. Where
//! it goes on with its own work, the scheduler lets it finish its time slice: 1 to 4 ms on Linux
//! 6.18. A sleeper takes the core as soon as it is woken.
//!
//! So the first trial comes after as many waits as it may cost wake-ups, and a yield that took long
//! is paid back by sleeping: for four times as many waits as it took wake-ups, and where a time
//! slice was lost, four times as many again for each further one in a row, up to 65,536. At a
//! message each 5 µs that makes less than 2 % of them late.

use std::time::Instant;

use thalweg_measure::clock::{Clock, TimeSource};

use super::Mode;
use super::cores::{self, View};
use super::costs::{Costs, WAKE_NS, WAKE_NS_DEFAULT};
use super::parker::Woken;
use crate::ring::sync::{IS_MODEL, spin_hint, yield_now};

/// How long latency mode spins.
const LATENCY_NS: u64 = 5_000_000;
/// How old the count of cores may be where a thread goes to sleep. A look takes some 10 µs.
const CORES_NS_MAX: u64 = 100_000_000;
/// The largest age of it where a thread spins, and another one may wait for what it finds.
const CORES_SPINNING_NS_MAX: u64 = 1_000_000_000;
/// Turns between two reads of the clock; a pause takes some 10 ns, and a read 20.
const TURNS_PER_LOOK: u32 = 16;
/// A thread that pauses for longer gives a turn away in between (0.2 to 0.4 µs where no other
/// thread wants it): else two spinning threads that share a core hand over once a time slice.
const PAUSES_NS_MAX: u64 = 50_000;
/// Wake-ups that a long gap counts as.
const GAP_WAKES_MAX: u64 = 4;
/// Waits that yield after a sign that the cores are crowded.
const CROWDED_WAITS: u32 = 64;

/// The action of a thread in each round of the spin phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turns {
    /// Sleep at once.
    None,
    /// Give one turn away, then sleep.
    YieldOnce,
    /// Give turns away until the time is over.
    Yield,
    /// Pause until the time is over.
    Pause,
}

/// The pace of an endpoint: how it waits, and what it has learned. It belongs to one thread at a
/// time, and may move.
pub struct Pace<C: TimeSource = Clock> {
    mode: Mode,
    clock: C,
    cores: CoreView,
    /// The measured cost of yielding on a shared core.
    yields: Yields,
    /// Waits to come that yield.
    crowded: u32,
    /// EWMA of what a wake-up costs, in ticks.
    wake: u64,
    /// EWMA of idle gaps, in ticks.
    gap: u64,
    /// The action of this wait in each round.
    turns: Turns,
    /// Rounds until the next look at the clock.
    rounds_left: u32,
    /// When spinning began, in ticks, once the clock was read.
    began: Option<u64>,
    /// The last read of the clock, in ticks.
    last_read: u64,
    /// When spinning ends, in ticks.
    spin_deadline: u64,
    /// When a thread that pauses yields next, in ticks.
    next_yield_at: u64,
    /// The caller's deadline.
    deadline: Option<Instant>,
    /// The next wait is to sleep at once.
    has_waited: bool,
}

shown!([C: TimeSource] Pace<C>, "Pace", this,
    "mode": this.mode, "wake_ns": this.clock.ns(this.wake), "gap_ns": this.clock.ns(this.gap),
    "usable": this.cores.usable);

impl Pace {
    /// Returns a pace that has learned nothing yet. The first one of a process calibrates the
    /// clock, which takes some 10 ms.
    pub fn new(mode: Mode) -> Self {
        cores::prepare();
        Self::with(mode, Clock::global(), cores::view)
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::new(Mode::default())
    }
}

impl<C: TimeSource> Pace<C> {
    fn with(mode: Mode, clock: C, cores: fn() -> View) -> Self {
        let wake = clock.ticks_from_ns(Costs::current().wake_ns);
        Self {
            mode,
            clock,
            cores: CoreView::new(cores),
            yields: Yields::default(),
            crowded: 0,
            wake,
            // Some waits in vain, and spinning stops.
            gap: wake / 2,
            turns: Turns::None,
            rounds_left: 0,
            began: None,
            last_read: 0,
            spin_deadline: 0,
            next_yield_at: 0,
            deadline: None,
            has_waited: false,
        }
    }

    /// Returns the mode.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns whether `threads` threads would have to share cores, as far as is known.
    pub(crate) fn is_crowd(&self, threads: u64) -> bool {
        let usable = self.cores.usable;
        !IS_MODEL && usable > 0 && threads > usable as u64 && self.mode.may_spin()
    }

    /// Whether the caller has waited in its own way, so that the next wait is to sleep at once.
    pub(crate) fn has_waited(&mut self, has_waited: bool) {
        self.has_waited = has_waited;
    }

    /// Returns whether others may run while this thread pauses for a moment, be the cores crowded
    /// or not.
    #[inline]
    pub(crate) fn may_pause(&self) -> bool {
        !IS_MODEL && !self.cores.is_alone() && self.mode.may_spin()
    }

    /// Returns whether pausing for a moment keeps no thread from running, as far as is known.
    #[inline]
    pub(crate) fn may_spin(&self) -> bool {
        !IS_MODEL && !self.cores.is_alone() && self.crowded == 0 && self.mode.may_spin()
    }

    /// Returns whether the next wait would give turns away or sleep at once, not pause.
    #[inline]
    pub(crate) fn gives_way(&self) -> bool {
        !IS_MODEL && self.mode.may_spin() && self.choose() != Turns::Pause
    }

    /// A wait begins. Does not look at the clock, unless it is to yield once.
    #[inline]
    pub(super) fn begin(&mut self, deadline: Option<Instant>) {
        self.began = None;
        self.deadline = deadline;
        self.turns = if std::mem::take(&mut self.has_waited) {
            Turns::None
        } else {
            self.choose()
        };
        self.rounds_left = if self.turns == Turns::Pause {
            TURNS_PER_LOOK
        } else {
            1
        };
        if self.turns == Turns::YieldOnce {
            let now = self.clock.ticks();
            self.began = Some(now);
            self.last_read = now;
        }
        self.crowded = self.crowded.saturating_sub(1);
        if self.cores.is_shared() {
            self.yields.pass();
        }
    }

    fn choose(&self) -> Turns {
        // A model would try every number of turns.
        if IS_MODEL {
            return Turns::None;
        }
        match self.mode {
            Mode::LowPower => Turns::None,
            _ if self.cores.is_shared() && self.yields_pay() => Turns::YieldOnce,
            _ if self.cores.is_shared() || self.cores.asks() => Turns::None,
            Mode::Latency if self.crowded == 0 => Turns::Pause,
            Mode::Latency => Turns::Yield,
            Mode::Balanced if self.gap > self.wake + self.wake / 2 => Turns::None,
            Mode::Balanced if self.crowded > 0 => Turns::Yield,
            Mode::Balanced => Turns::Pause,
        }
    }

    /// Passes a turn of spinning, if there is one left: then the caller looks again.
    #[inline]
    pub(super) fn spin_more(&mut self) -> bool {
        if self.rounds_left == 0 && !self.look() {
            return false;
        }
        self.rounds_left -= 1;
        match self.turns {
            Turns::None => return false,
            Turns::Pause => spin_hint(),
            Turns::Yield | Turns::YieldOnce => yield_now(),
        }
        true
    }

    /// Looks at the clock while spinning; returns whether there is time left.
    fn look(&mut self) -> bool {
        let mut now = self.clock.ticks();
        let is_first = self.began.is_none();
        if is_first {
            self.first_look(now);
        } else if self.turns == Turns::Pause && now >= self.next_yield_at {
            yield_now();
            now = self.clock.ticks();
            self.next_yield_at = now.saturating_add(self.clock.ticks_from_ns(PAUSES_NS_MAX));
        }
        let passed = now.saturating_sub(self.last_read);
        self.last_read = now;
        if !is_first && passed > self.clock.ticks_from_ns(*WAKE_NS.end()) {
            self.crowded = CROWDED_WAITS;
            if self.turns == Turns::Pause {
                self.turns = Turns::Yield;
            }
            self.cores.lost();
        }
        if self.turns == Turns::YieldOnce {
            self.yielded(false);
        }
        if matches!(self.turns, Turns::None | Turns::YieldOnce) || now >= self.spin_deadline {
            return false;
        }
        self.rounds_left = match self.turns {
            Turns::Pause => TURNS_PER_LOOK,
            _ => 1,
        };
        true
    }

    fn first_look(&mut self, now: u64) {
        self.began = Some(now);
        let budget = match self.mode {
            Mode::Latency => self.clock.ticks_from_ns(LATENCY_NS),
            Mode::Balanced if self.gap > self.wake / 2 => 2 * self.wake,
            Mode::Balanced => self.wake,
            Mode::LowPower => 0,
        };
        let left = self.deadline.map_or(u64::MAX, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            let left_ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
            self.clock.ticks_from_ns(left_ns)
        });
        self.spin_deadline = now.saturating_add(budget.min(left));
        self.next_yield_at = now.saturating_add(self.clock.ticks_from_ns(PAUSES_NS_MAX));
        self.look_at_cores(now, CORES_SPINNING_NS_MAX);
        if self.cores.is_shared() {
            self.turns = self.choose();
        }
    }

    /// Returns whether a yield on a shared core is the cheaper way.
    fn yields_pay(&self) -> bool {
        // A wake-up that costs more here has waited for the other's time slice.
        self.gap <= self.clock.ticks_from_ns(WAKE_NS_DEFAULT) && self.yields.are_due()
    }

    /// The wait's one yield is over, at the last look at the clock.
    fn yielded(&mut self, has_found: bool) {
        let took = self
            .last_read
            .saturating_sub(self.began.unwrap_or(self.last_read));
        let wakes = took / self.clock.ticks_from_ns(WAKE_NS_DEFAULT).max(1);
        self.yields.took(wakes, has_found);
    }

    /// Notes that spinning was worth it. It reads no clock, since another thread may wait for the
    /// result; but after a yield, which may have taken any time, it does.
    #[inline]
    pub(super) fn found_spinning(&mut self) {
        if self.turns == Turns::YieldOnce {
            self.last_read = self.clock.ticks();
            self.yielded(true);
        }
        let gap = self
            .began
            .map_or(0, |began| self.last_read.saturating_sub(began));
        self.learn_gap(gap);
    }

    /// Spinning is over, and the thread lists itself: a good time to see which cores there are.
    pub(super) fn before_sleep(&mut self) {
        if IS_MODEL {
            return;
        }
        let now = self.clock.ticks();
        self.began.get_or_insert(now);
        self.look_at_cores(now, CORES_NS_MAX);
    }

    fn look_at_cores(&mut self, now: u64, max_ns: u64) {
        self.cores.look(now, self.clock.ticks_from_ns(max_ns));
    }

    /// The thread has slept, and was woken.
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
        // If another thread was faster, another wait begins.
        self.began = Some(now);
    }

    /// Nothing came.
    pub(super) fn timed_out(&mut self) {
        let now = self.clock.ticks();
        let gap = self.began.map_or(0, |began| now.saturating_sub(began));
        // A shorter wait says nothing about how long it would have been.
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

/// The known facts of a thread's cores. Times are in ticks.
struct CoreView {
    /// Asks which cores the calling thread may use.
    cores: fn() -> View,
    /// How many they were at the last look; 0 before the first.
    usable: usize,
    /// The only one, if it was one.
    only: Option<usize>,
    /// When that was.
    looked: Option<u64>,
    /// The last waker ran on this thread's only core.
    is_beside: bool,
    /// Whether the next wait is to sleep, since its waker then shows whether they share the core.
    asks: bool,
}

impl CoreView {
    fn new(cores: fn() -> View) -> Self {
        Self {
            cores,
            usable: 0,
            only: None,
            looked: None,
            is_beside: false,
            asks: false,
        }
    }

    /// There is one core, as far as is known.
    fn is_alone(&self) -> bool {
        self.usable == 1
    }

    /// Returns whether the thread that it waits for needs this core to go on, as far as is known.
    fn is_shared(&self) -> bool {
        self.is_alone() || self.is_beside
    }

    /// Returns whether a sleep would show whether the core is shared.
    fn asks(&self) -> bool {
        self.asks
    }

    /// Looks at the cores, if the last look is `max` old.
    fn look(&mut self, now: u64, max: u64) {
        let is_new = |looked| now.saturating_sub(looked) < max;
        if !self.looked.is_some_and(is_new) {
            self.looked = Some(now);
            let View { count, only } = (self.cores)();
            (self.usable, self.only) = (count, only);
        }
    }

    /// The thread has slept, and a thread on that core has woken it.
    fn woken_from(&mut self, core: Option<usize>) {
        self.is_beside = self.only.is_some() && self.only == core;
        self.asks = false;
    }

    /// Others had the core while the thread spun. One that may run on others, too, is moved.
    fn lost(&mut self) {
        self.asks = self.only.is_some();
    }
}

/// Waits before the first trial.
const WAITS_FIRST: u64 = 2_048;
/// Waits without a yield, for each wake-up that the last one took.
const WAITS_PER_WAKE: u64 = 4;
/// The number of wake-ups in the time of a yield that has lost a time slice. Each such yield in a
/// row shifts that by two bits more.
const WAKES_SLICE: u64 = 10;
const BITS_PER_LEVEL: u32 = 2;
const LEVEL_MAX: u32 = 6;
const WAITS_MAX: u64 = 65_536;

#[derive(Debug)]
struct Yields {
    /// Waits to come that do not yield.
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
    /// Returns whether the coming wait should yield, not sleep.
    fn are_due(&self) -> bool {
        self.waits == 0
    }

    /// A wait has begun on a shared core.
    #[inline]
    fn pass(&mut self) {
        self.waits = self.waits.saturating_sub(1);
    }

    /// Notes that a yield took as long as `wakes` wake-ups, and whether something was there then.
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
