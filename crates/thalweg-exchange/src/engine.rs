//! The pure state machine: books, matching, risk, and the one function that changes them.

pub mod book;
mod fast_path;
pub(crate) mod index;
mod levels;
pub mod matching;
pub mod risk;
pub(crate) mod slab;
pub(crate) mod state;
pub(crate) mod symbol_index;
