//! Slots, tasks and timers whose futures are polled by hand, with wakers of the tests' own.
#![allow(clippy::unwrap_used)] // all of it is tests, though not every function is #[test]
#![cfg(not(loom))]

/// Runs a test for both families.
macro_rules! for_both {
    ($($name:ident)+) => {$(
        mod $name {
            #[test]
            fn local() {
                super::$name::<super::Local>();
            }

            #[test]
            fn shared() {
                super::$name::<super::Shared>();
            }
        }
    )+};
}

mod alarm;
#[allow(unsafe_code)] // a waker with a table of functions
mod foreign;
mod receivers;
mod reentry;
mod slot;
mod timers;
mod turns;
