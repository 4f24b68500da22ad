//! What the counted operations share with `cargo compare`: the venue on which both trade, and the
//! coroutines that get messages.
#![forbid(unsafe_code)]

pub mod coroutines;
pub mod records;
pub mod venue;
