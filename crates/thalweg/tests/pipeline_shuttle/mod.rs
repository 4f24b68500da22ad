//! Pipelines under schedules that [shuttle](https://docs.rs/shuttle) chooses at random: a thread
//! that waits for an answer, for room or for the end gets it, while producers and the pipeline
//! live.
//!
//! ```sh
//! RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle \
//!     cargo test -p thalweg --test suite --release pipeline_shuttle::NAME
//! ```
//!
//! Answers come through shuttle's own channels, whose receivers sleep: a lost wake-up shows as a
//! deadlock. `channel_shuttle` says what shuttle can't show (orderings). [`faults`] seeds faults
//! and has these very tests find them.
#![allow(clippy::unwrap_used)] // models are tests, though their functions are not #[test]

pub(crate) use crate::channel_shuttle::explored;
mod faults;
mod handover;
mod lanes;
mod medley;
mod panics;

use shuttle::sync::mpsc::{Receiver, Sender, channel};
use thalweg::pipeline::{Pipeline, PipelineBuilder};

/// Schedules of each of the two kinds that a model runs under.
const SCHEDULES: usize = 300;
const STACK_BYTES: usize = 256 * 1024;

fn explore(model: impl Fn() + Send + Sync + Copy + 'static) {
    explored::explore(SCHEDULES, STACK_BYTES, model);
}

/// Two stages over a ring of `capacity`, of which the last sends its events to the receiver.
fn answering(capacity: usize) -> (PipelineBuilder<u64>, Receiver<u64>) {
    let (sender, receiver): (Sender<u64>, _) = channel();
    let builder = Pipeline::builder(capacity, || 0_u64)
        .stage("a", |event: &mut u64, _| *event += 1)
        .observe("b", move |event, _| sender.send(*event).unwrap())
        .after("a");
    (builder, receiver)
}
