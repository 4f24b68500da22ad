//! A word to sleep on: a futex on Linux, a lock and a condition elsewhere and in models.

#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
mod word {
    use crate::ring::sync::AtomicU32;
    use rustix::thread::futex::{self, Flags, Timespec};
    use std::time::Instant;

    /// Sleeps while a word has a value.
    #[derive(Debug, Default)]
    pub(in crate::wait) struct Futex(pub(in crate::wait) AtomicU32);

    impl Futex {
        /// Returns when woken, when the word no longer is `value`, or for no reason.
        pub(in crate::wait) fn sleep_while(&self, value: u32) {
            self.sleep(value, None);
        }

        /// As [`sleep_while`](Self::sleep_while), and returns when `deadline` is reached.
        pub(in crate::wait) fn sleep_while_until(&self, value: u32, deadline: Instant) {
            let left = deadline.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                // A span that the system has no room for is as good as none.
                self.sleep(value, Timespec::try_from(left).ok().as_ref());
            }
        }

        fn sleep(&self, value: u32, left: Option<&Timespec>) {
            // The errors (interrupted, value changed, timed out) mean: look again. So does success.
            let _ = futex::wait(&self.0, Flags::PRIVATE, value, left);
        }

        pub(in crate::wait) fn wake(&self) {
            // Waking a private futex on a mapped, aligned word can't fail.
            let _ = futex::wake(&self.0, Flags::PRIVATE, 1);
        }
    }
}

#[cfg(any(not(target_os = "linux"), loom, shuttle))]
mod word {
    use crate::ring::sync::{AtomicU32, Condvar, Mutex, MutexGuard, Ordering};
    use std::time::Instant;

    /// Sleeps while a word has a value.
    #[derive(Debug)]
    pub(in crate::wait) struct Futex(pub(in crate::wait) AtomicU32, Mutex<()>, Condvar);

    impl Default for Futex {
        fn default() -> Self {
            Self(AtomicU32::new(0), Mutex::new(()), Condvar::new())
        }
    }

    impl Futex {
        /// Returns when woken, when the word no longer is `value`, or for no reason.
        pub(in crate::wait) fn sleep_while(&self, value: u32) {
            if let Some(guard) = self.still(value) {
                drop(self.2.wait(guard));
            }
        }

        /// As [`sleep_while`](Self::sleep_while), and returns when `deadline` is reached. In a
        /// model, which knows no time, that is at once.
        pub(in crate::wait) fn sleep_while_until(&self, value: u32, deadline: Instant) {
            #[cfg(not(any(loom, shuttle)))]
            if let Some(guard) = self.still(value) {
                let left = deadline.saturating_duration_since(Instant::now());
                drop(self.2.wait_timeout(guard, left));
            }
            #[cfg(any(loom, shuttle))]
            {
                let _ = (value, deadline);
                crate::ring::sync::yield_now();
            }
        }

        /// The lock, if the word has this value.
        fn still(&self, value: u32) -> Option<MutexGuard<'_, ()>> {
            let guard = self
                .1
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            // ORDERING: Relaxed; the lock orders it against `wake`, and the caller looks again
            // anyway.
            (self.0.load(Ordering::Relaxed) == value).then_some(guard)
        }

        pub(in crate::wait) fn wake(&self) {
            drop(self.1.lock());
            self.2.notify_one();
        }
    }
}

pub(super) use word::Futex;
