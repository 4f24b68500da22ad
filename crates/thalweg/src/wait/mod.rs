//! How a thread waits, and what it may wait on.
//!
//! A waiting thread either burns its core ([`Strategy::Spin`]), gives its turn away again and again
//! ([`Strategy::Yield`]), or sleeps until it is woken ([`Strategy::Park`]). [`Strategy::Adaptive`]
//! does the cheap thing first and sleeps when that has cost as much as a wake-up would: never more
//! than twice the best that could have been done in hindsight (Karlin, Manasse, McGeoch and Owicki,
//! 1990, on spin-block).
//!
//! Which one is right depends on the cores that the whole set of threads may use
//! ([`cores::usable`]). On one core, spinning only keeps the other thread from running; where
//! threads outnumber cores, it does so for someone else. [`Adaptive`] therefore has a spin budget
//! of zero there.

mod bell;
pub mod cores;
mod futex;
mod waiter;

pub use bell::Bell;
pub use waiter::{Adaptive, Strategy, Waiter};
