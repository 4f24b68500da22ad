//! How threads wait: strategies, event counts, and the cores that they can use.
//!
//! A waiting thread either spins ([`WaitStrategy::Spin`]), yields its core repeatedly
//! ([`WaitStrategy::Yield`]), or sleeps until it is woken ([`WaitStrategy::Park`]).
//! [`WaitStrategy::Adaptive`] spins first, and sleeps when that has cost as much as a wake-up
//! would: on average at most one and a half times the best that could have been done in hindsight,
//! three times for one wait ([`Pace`]; Karlin, Manasse, McGeoch and Owicki, 1990, on spin-block).
//! Endpoints of channels and buses have a [`WaitMode`].
//!
//! | | for | spins | sleeps |
//! |---|---|---|---|
//! | [`WaitStrategy::Spin`] | threads of a pipeline | always | never |
//! | [`WaitStrategy::Yield`] | threads of a pipeline | yields | never |
//! | [`WaitStrategy::Park`] | threads of a pipeline | never | at once |
//! | [`WaitStrategy::Adaptive`] | threads of a pipeline | as [`WaitMode::Balanced`] (*) | then |
//! | [`WaitMode::Latency`] | channels, buses, tasks' threads | for 5 ms | then |
//! | [`WaitMode::Balanced`] | the same | for one or two wake-ups, if that has paid | then |
//! | [`WaitMode::LowPower`] | the same | never | at once |
//!
//! (*) A thread that waits for a free slot of the ring spins for 50 µs. Where threads outnumber the
//! cores, a thread yields for 0.2 ms instead, whatever it waits for.
//!
//! The best one depends on the cores that all threads together may use: a pipeline calls
//! [`cores::usable`] when it is built, a wait reads the affinity mask now and then. On one core,
//! spinning only keeps the other thread from running; where threads outnumber cores, it keeps
//! others from running:
//! - [`WaitStrategy::Spin`] spins all the same.
//! - On one core [`WaitStrategy::Adaptive`] and a [`WaitMode`] do not spin, once a wait has found
//!   that there is one.
//! - Where threads outnumber cores, [`WaitStrategy::Adaptive`] yields, since a pipeline knows how
//!   many threads it has. An endpoint of a channel knows nothing of the program's other threads: it
//!   spins by its [`WaitMode`] until a late wake-up, or a pause while it spun, shows that they want
//!   this core, and yields instead in the next 64 waits.
//!
//! Pipelines and channels wait on an [`EventCount`], on which any number of threads and tasks can
//! wait. [`block`] is a thread's wait on an event count, with a [`Pace`] that measures what a
//! wake-up costs and how long waits are.

pub(crate) mod barrier;
mod block;
pub mod cores;
mod costs;
mod event_count;
mod pace;
mod parker;
mod strategy;
mod wait_queue;

pub(crate) use crate::ring::panics::{Panics, discard, let_go, wake};
pub(crate) use block::{
    Registration, Waiter, block_at_low_power, block_waiter, poll_until, wait_until,
};
pub use block::{TimedOut, block};
pub use costs::WaitCosts;
pub use event_count::EventCount;
pub(crate) use event_count::Kind;
pub use pace::Pace;
pub(crate) use parker::{Lent, prepare as prepare_parker};
pub use strategy::{WaitMode, WaitStrategy};
pub use wait_queue::Entry;
pub(crate) use wait_queue::{Wait, WaitQueue, renew};
