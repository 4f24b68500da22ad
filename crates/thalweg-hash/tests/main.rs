//! XXH64 against its published vectors, in every split.

mod aarch64;
#[cfg(feature = "std")]
mod fuzz;
#[cfg(feature = "std")]
mod splits;
mod vectors;
