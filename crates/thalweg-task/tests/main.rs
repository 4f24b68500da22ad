//! Tasks, slots, fibers and timers from outside.

mod by_hand;
#[path = "../../thalweg/tests/allocations/counting.rs"]
mod counting;
mod drive;
mod feed;
mod fiber;
mod fiber_allocation;
mod fiber_many;
mod ids;
mod joins;
mod misuse;
mod model;
mod task_allocation;
mod tasks;
mod types;
