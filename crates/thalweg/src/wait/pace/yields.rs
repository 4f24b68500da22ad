//! Whether giving a turn away pays on a shared core, learned from how long it took to get it back.
//!
//! A yield costs some 0.2 µs, a tenth of a sleep and a wake-up, where the other thread answers and
//! waits itself. Where it goes on with its own work, the scheduler lets it finish its time slice: 1
//! to 4 ms on Linux 6.18. A sleeper takes the core as soon as it is woken.
//!
//! So the first trial comes after as many waits as it may cost wake-ups, and a yield that took long
//! is paid back by sleeping: for four times as many waits as it took wake-ups, and where a time
//! slice was lost, four times as many again for each further one in a row, up to 65,536. At a
//! message each 5 µs that makes less than 2 % of them late.

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
pub(super) struct Yields {
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
    pub(super) fn are_due(&self) -> bool {
        self.waits == 0
    }

    /// A wait has begun on a shared core.
    #[inline]
    pub(super) fn pass(&mut self) {
        self.waits = self.waits.saturating_sub(1);
    }

    /// Notes that a yield took as long as `wakes` wake-ups, and whether something was there then.
    pub(super) fn took(&mut self, wakes: u64, has_found: bool) {
        if wakes > 0 {
            let waits = wakes.saturating_mul(WAITS_PER_WAKE << (BITS_PER_LEVEL * self.level));
            self.waits = waits.min(WAITS_MAX);
            self.level += u32::from(wakes >= WAKES_SLICE && self.level < LEVEL_MAX);
        } else if has_found {
            self.level = self.level.saturating_sub(1);
        }
    }
}
