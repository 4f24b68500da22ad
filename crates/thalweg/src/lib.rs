//! Event streams inside a program, with the shortest tail that the hardware allows.
#![deny(unsafe_code)]

pub mod pipeline;
#[allow(unsafe_code)] // lock-free code lives here and nowhere else in this crate
pub mod ring;
pub mod wait;
