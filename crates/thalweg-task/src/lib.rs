//! Coroutines and their channels, at the cost of a function call.
#![deny(unsafe_code)]

mod family;

pub use family::{Family, Local, Shared};
