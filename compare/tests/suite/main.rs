//! What `cargo compare` runs, and XXH64 beside the reference in C.

mod hash;
mod smoke;
