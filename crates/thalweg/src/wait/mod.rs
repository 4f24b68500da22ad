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
//! threads outnumber cores, it keeps others from running. So no thread spins there.
//!
//! Pipelines and channels wait on a [`Signal`], which has any number of threads and tasks.
//! [`block`] is a thread's wait on a signal, with a [`Pace`] that learns what a wake-up costs and
//! how soon things come.

pub(crate) mod barrier;
mod block;
pub mod cores;
mod pace;
mod parker;
mod roster;
mod signal;

pub(crate) use crate::ring::panics::{Panics, discard, let_go, wake};
pub(crate) use block::{Listed, Listing, Waiter, block_listed, poll_on, wait_on};
pub use block::{Strategy, TimedOut, block};
pub use pace::{Costs, Mode, Pace};
pub(crate) use parker::Lent;
pub use roster::Entry;
pub(crate) use roster::{Roster, Wait, renew};
pub(crate) use signal::Kind;
pub use signal::Signal;
