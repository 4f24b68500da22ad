//! Tasks, slots, fibers and timers from outside.

thalweg_testkit::count_allocations!();

mod by_hand;
mod drive;
mod fiber;
mod fiber_allocation;
mod fiber_many;
mod for_each;
mod ids;
mod joins;
mod misuse;
mod model;
mod task_allocation;
mod tasks;
mod types;
