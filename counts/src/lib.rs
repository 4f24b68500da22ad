//! What the counted operations share with `cargo compare`: the venue on which both trade.
#![forbid(unsafe_code)]

pub mod records;
pub mod venue;
