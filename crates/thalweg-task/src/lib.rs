//! Coroutines and their channels, at the cost of a function call.
#![deny(unsafe_code)]

mod family;
pub mod fiber;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "sleep and timeout are its users, and come next")
)]
mod wheel;

pub use family::{Family, Local, Shared};
