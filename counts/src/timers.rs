//! Sleeps and deadlines beside many others: shared with `cargo compare tasks`.

use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use thalweg_task::{Handle, LocalExecutor, Sleep};

use crate::coroutines::Spawner;

/// Different times of sleeps that are given up.
const TIMES: u64 = 1_024;

/// A core with this many pending sleeps.
#[derive(Debug)]
pub struct Timers {
    core: LocalExecutor,
    handle: Handle,
    /// When sleeps end that begin and are given up.
    times: Vec<Instant>,
}

impl Timers {
    /// They end between one and eleven seconds from now.
    pub fn new(pending: u64) -> Self {
        let core = LocalExecutor::new();
        let (handle, begin) = (core.handle(), Instant::now());
        let at = |number: u64| {
            let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 10_000_000_000;
            begin + Duration::from_nanos(1_000_000_000 + spread)
        };
        for number in 0..pending {
            core.spawn(handle.sleep_until(at(number))).detach();
        }
        while core.poll() {}
        let times = (pending..pending + TIMES).map(at).collect();
        Self {
            core,
            handle,
            times,
        }
    }

    /// A sleep begins, and is given up.
    #[inline(always)]
    pub fn insert_cancel(&self, number: u64) {
        let at = self.times[(number % TIMES) as usize];
        let mut sleep: Sleep = self.handle.sleep_until(at);
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut sleep).poll(&mut context).is_pending());
    }

    /// As [`insert_cancel`](Self::insert_cancel), of a sleep that reads the clock.
    #[inline(always)]
    pub fn sleep(&self, number: u64) {
        let mut sleep = self
            .handle
            .sleep(Duration::from_nanos((number % TIMES + 1) << 30));
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut sleep).poll(&mut context).is_pending());
    }

    /// A task with a deadline is made, run, and gives its output in time.
    #[inline(always)]
    pub fn deadline(&self, number: u64) -> u64 {
        let after = Duration::from_nanos((number % TIMES + 1) << 30);
        let task = self.core.spawn(async move { number }).deadline(after);
        self.core.poll();
        Spawner::outcome(task).expect("it comes to its end")
    }

    /// Tasks that sleep.
    pub fn pending(&self) -> usize {
        self.core.handle().task_count()
    }
}
