//! Fixtures that the tests of several crates share. It depends on nothing, so that models of loom
//! and shuttle can use it as well.

pub mod counting;
mod random;

pub use random::Random;
