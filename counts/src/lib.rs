//! The parts that the counted operations share with `cargo compare`: the venue on which both trade,
//! the coroutines that get messages, and timers.
#![forbid(unsafe_code)]

pub mod coroutines;
pub mod timers;
pub mod venue;
