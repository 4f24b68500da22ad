//! A word to sleep on: a futex on Linux, a lock and a condition elsewhere and in models.

#[cfg(all(target_os = "linux", not(loom)))]
mod word {
    use crate::ring::sync::AtomicU32;
    use rustix::thread::futex;

    /// Sleeps while a word has a value.
    #[derive(Debug, Default)]
    pub(in crate::wait) struct Futex(pub(in crate::wait) AtomicU32);

    impl Futex {
        /// Returns when woken, when the word no longer is `value`, or for no reason.
        pub(in crate::wait) fn sleep_while(&self, value: u32) {
            // The errors (interrupted, value changed) mean: look again. So does success.
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, value, None);
        }

        pub(in crate::wait) fn wake(&self) {
            // Waking a private futex on a mapped, aligned word can't fail.
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
        }
    }
}

#[cfg(any(not(target_os = "linux"), loom))]
mod word {
    use crate::ring::sync::{AtomicU32, Ordering};
    #[cfg(loom)]
    use loom::sync::{Condvar, Mutex};
    #[cfg(not(loom))]
    use std::sync::{Condvar, Mutex};

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
            let guard = self
                .1
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            // ORDERING: Relaxed; the lock orders it against `wake`, and the caller looks again
            // anyway.
            if self.0.load(Ordering::Relaxed) == value {
                drop(self.2.wait(guard));
            }
        }

        pub(in crate::wait) fn wake(&self) {
            drop(self.1.lock());
            self.2.notify_one();
        }
    }
}

pub(super) use word::Futex;
