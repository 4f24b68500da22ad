//! The clock that the meters of a pipeline read, and what a read of it costs.

use std::sync::OnceLock;

use thalweg_measure::clock::Clock;

use crate::ring::sync::IS_MODEL;

/// A clock that knows its own cost. In tests it may be one that is driven by hand.
#[derive(Debug)]
pub(super) struct Watch {
    clock: Clock,
    look: u64,
    #[cfg(all(test, not(any(loom, shuttle))))]
    driven: Option<driven::Driven>,
}

impl Watch {
    pub(super) fn new() -> Self {
        #[cfg(all(test, not(any(loom, shuttle))))]
        if let Some(driven) = driven::installed() {
            return Self {
                clock: Clock::with_os(),
                look: driven.look,
                driven: Some(driven),
            };
        }
        Self {
            clock: Clock::global(),
            look: look(),
            #[cfg(all(test, not(any(loom, shuttle))))]
            driven: None,
        }
    }

    /// Returns the present time in ticks, when all work before is done.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        #[cfg(all(test, not(any(loom, shuttle))))]
        if let Some(driven) = &self.driven {
            return driven.read();
        }
        self.clock.ticks_after()
    }

    /// Ticks between two looks without the cost of a look: half of the first and half of the second
    /// are between them.
    #[inline(always)]
    pub(super) fn between(&self, from: u64, to: u64) -> u64 {
        to.saturating_sub(from).saturating_sub(self.look)
    }

    /// Returns the clock, for what its ticks mean.
    pub(super) fn clock(&self) -> Clock {
        self.clock
    }
}

/// Returns the cost of a look on this machine, measured once; in a model time does not count.
fn look() -> u64 {
    static LOOK: OnceLock<u64> = OnceLock::new();
    if IS_MODEL {
        return 0;
    }
    *LOOK.get_or_init(|| {
        let clock = Clock::global();
        // In picoseconds, so that less than a nanosecond counts.
        let picoseconds = (clock.read_after_cost_ns() * 1_000.0) as u64;
        (clock.ticks_from_ns(picoseconds) + 500) / 1_000
    })
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) mod driven {
    //! A clock that stands still but for what a test lets pass, and what looks at it cost.

    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A clock whose ticks are nanoseconds.
    #[derive(Debug, Clone)]
    pub(in crate::pipeline) struct Driven {
        now: Arc<AtomicU64>,
        pub(in crate::pipeline) look: u64,
    }

    impl Driven {
        /// For the pipelines that this thread builds from now on, a clock that takes `look` ticks
        /// to read.
        pub(in crate::pipeline) fn install(look: u64) -> Self {
            let now = Arc::new(AtomicU64::new(1_000));
            let driven = Self { now, look };
            INSTALLED.set(Some(driven.clone()));
            driven
        }

        pub(in crate::pipeline) fn pass(&self, ticks: u64) {
            // ORDERING: Relaxed; a test drives the clock from one thread.
            self.now.fetch_add(ticks, Ordering::Relaxed);
        }

        /// Returns the time without looking at it.
        pub(in crate::pipeline) fn peek(&self) -> u64 {
            // ORDERING: Relaxed, as in `pass`.
            self.now.load(Ordering::Relaxed)
        }

        pub(super) fn read(&self) -> u64 {
            self.pass(self.look.div_ceil(2));
            let now = self.peek();
            self.pass(self.look / 2);
            now
        }
    }

    thread_local! {
        static INSTALLED: RefCell<Option<Driven>> = const { RefCell::new(None) };
    }

    pub(super) fn installed() -> Option<Driven> {
        INSTALLED.with_borrow(Clone::clone)
    }
}
