//! Channels under schedules that [shuttle](https://docs.rs/shuttle) chooses at random, in numbers
//! of threads and elements that loom's models can't afford: three senders and three receivers on
//! room for two to four, with ends that close, leave, multiply and change their minds.
//!
//! ```sh
//! RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle \
//!     cargo test -p thalweg --test suite --release channel_shuttle::NAME
//! ```
//!
//! The schedules are the same each time. `THALWEG_SEED` gives others, and `THALWEG_SCHEDULES` a
//! number of them for each model. A test that fails prints its schedule.
//!
//! shuttle models sequential consistency only: an atomic operation takes effect at once and for all
//! threads, whatever its ordering says, and a fence does nothing. So this looks for what is wrong
//! with the *steps*: a look that comes too early, a wake-up that reaches no waiter, a count that is
//! torn. Whether an ordering suffices is for the models under loom, in `src`. Lost wake-ups show as
//! deadlocks. There is no clock: a deadline that is over may end a wait at any moment.
//!
//! [`faults`] seeds faults and has these very tests find them.
#![allow(clippy::unwrap_used)] // models are tests, though their functions are not #[test]

mod claims;
mod clones;
mod crowds;
pub(crate) mod explored;
mod faults;
mod ledger;
mod loss;
mod replies;
mod select;
mod store;
mod tasks;

/// Schedules of each of the two kinds that a model runs under.
const SCHEDULES: usize = 1_000;
/// A thread of a model needs some 10 KiB.
const STACK_BYTES: usize = 128 * 1024;

fn explore(model: impl Fn() + Send + Sync + Copy + 'static) {
    explored::explore(SCHEDULES, STACK_BYTES, model);
}

/// A test for each kind of store that a model runs over.
macro_rules! over_stores {
    ($model:ident: $($store:ident)+) => {
        mod $model {
            $(
                #[test]
                fn $store() {
                    use $crate::channel_shuttle::{explore, store};
                    explore(|| super::$model(store::$store()));
                }
            )+
        }
    };
}
use over_stores;
