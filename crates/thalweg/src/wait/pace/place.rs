//! The place where a waiting thread runs, and the threads that it keeps from running there.

use crate::wait::cores::View;

/// The known facts of the cores. Times are in ticks.
pub(super) struct Place {
    /// Asks which cores the calling thread may use.
    cores: fn() -> View,
    /// How many they were at the last look; 0 before the first.
    pub(super) usable: usize,
    /// The only one, if it was one.
    only: Option<usize>,
    /// When that was.
    looked: Option<u64>,
    /// The last waker ran on this thread's only core.
    is_beside: bool,
    /// Whether the next wait is to sleep, since its waker then shows whether they share the core.
    asks: bool,
}

impl Place {
    pub(super) fn new(cores: fn() -> View) -> Self {
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
    pub(super) fn is_alone(&self) -> bool {
        self.usable == 1
    }

    /// Returns whether the thread that it waits for needs this core to go on, as far as is known.
    pub(super) fn is_shared(&self) -> bool {
        self.is_alone() || self.is_beside
    }

    /// Returns whether a sleep would show whether the core is shared.
    pub(super) fn asks(&self) -> bool {
        self.asks
    }

    /// Looks at the cores, if the last look is `max` old.
    pub(super) fn look(&mut self, now: u64, max: u64) {
        let is_new = |looked| now.saturating_sub(looked) < max;
        if !self.looked.is_some_and(is_new) {
            self.looked = Some(now);
            let View { count, only } = (self.cores)();
            (self.usable, self.only) = (count, only);
        }
    }

    /// The thread has slept, and a thread on that core has woken it.
    pub(super) fn woken_from(&mut self, core: Option<usize>) {
        self.is_beside = self.only.is_some() && self.only == core;
        self.asks = false;
    }

    /// Others had the core while the thread spun. One that may run on others, too, is moved.
    pub(super) fn lost(&mut self) {
        self.asks = self.only.is_some();
    }
}
