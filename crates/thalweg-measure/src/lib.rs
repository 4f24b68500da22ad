//! See DESIGN.
#![deny(unsafe_code)]

pub mod clock;
