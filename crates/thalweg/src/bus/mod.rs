//! What a message bus knows about its rates, and what it does about them.
//!
//! Nothing in here reads a clock or touches a queue: readings come in, and reports, advice and
//! decisions come out.
//!
//! - [`Balance`]: arrival and service rate of an inbox, time until it is full, and a [`Verdict`].
//! - [`Burst`] and [`Advice`]: how long a queue must be so that it loses nothing, and when no
//!   length helps; [`Reserves`]: the same for priorities that share a queue.
//! - [`Gauge`]: the [`Level`] of an inbox, with hysteresis.
//! - [`Batching`] and [`Slowing`]: how much a consumer takes at once, and how far apart producers
//!   publish.
//! - [`Rule`]: where such a rule holds, as data, and why it is on or off.
//! - [`Tracer`] and [`Trace`]: the last decisions.

mod advice;
mod balance;
mod batching;
mod level;
mod reserve;
mod rules;
mod slowing;
mod trace;

pub use advice::{Advice, AdviceError, Burst};
pub use balance::{Balance, Horizons, Reading, Report, Verdict};
pub use batching::{BATCH_MAX, Batching};
pub use level::{Gauge, Level, Thresholds};
pub use reserve::{PRIORITIES, Reserves};
pub use rules::{Explanation, Facts, Limits, Reason, Rule};
pub use slowing::{Slow, Slowing};
pub use trace::{Decision, Event, Trace, Tracer};

#[cfg(all(test, not(any(loom, shuttle))))]
mod simulated;
