//! The library of `cargo compare`, its program, and XXH64 beside the reference in C.

mod cases;
mod checkers;
mod hash;
mod loads;
mod smoke;
