//! See DESIGN.
#![deny(unsafe_code)]

pub mod clock;
pub mod histogram;
