//! Pipelines under schedules that [shuttle](https://docs.rs/shuttle) chooses at random: whoever
//! waits for an answer, for room or for the end gets it, while producers and the pipeline live.
//!
//! ```sh
//! RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle \
//!     cargo test -p thalweg --test pipeline_shuttle --release NAME
//! ```
//!
//! Answers come through shuttle's own channels, whose receivers sleep: a lost wake-up shows as a
//! deadlock. What shuttle can't show (orderings) is said in `channel_shuttle`. [`faults`] seeds
//! faults and has these very tests find them.
#![cfg(shuttle)]
#![allow(clippy::unwrap_used)] // models are tests, though their functions are not #[test]

mod faults;
mod handover;
mod lanes;
mod panics;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::{Config, MaxSteps, Runner};
use thalweg::pipeline::{Builder, Pipeline};

/// Schedules of each of the two kinds that a model runs under.
const SCHEDULES: usize = 300;
const PREEMPTIONS: usize = 3;
const STEPS_MAX: usize = 300_000;
const STACK_BYTES: usize = 256 * 1024;

fn explore(model: impl Fn() + Send + Sync + Copy + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.silence_warnings = true;
    let setting = |name, default| match std::env::var(name) {
        Ok(text) => text.parse().unwrap(),
        Err(_) => default,
    };
    let schedules = setting("THALWEG_SCHEDULES", SCHEDULES as u64) as usize;
    let seed = setting("THALWEG_SEED", 1);
    let random = RandomScheduler::new_from_seed(seed, schedules);
    Runner::new(random, config.clone()).run(model);
    let preempting = PctScheduler::new_from_seed(seed, PREEMPTIONS, schedules);
    Runner::new(preempting, config).run(model);
}

/// Two stages over a ring of `capacity`, of which the last sends its events to the receiver.
fn answering(capacity: usize) -> (Builder<u64>, Receiver<u64>) {
    let (sender, receiver): (Sender<u64>, _) = channel();
    let builder = Pipeline::builder(capacity, || 0_u64)
        .stage("a", |event: &mut u64, _| *event += 1)
        .observe("b", move |event, _| sender.send(*event).unwrap())
        .after("a");
    (builder, receiver)
}
