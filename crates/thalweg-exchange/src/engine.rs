//! The pure state machine: books, matching, risk, and the one function that changes them.

pub mod book;
pub(crate) mod index;
mod level_list;
pub mod matching;
pub mod risk;
pub(crate) mod slab;
pub(crate) mod state;
