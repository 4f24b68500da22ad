//! Event streams inside a program, with the shortest tail that the hardware allows, and an account
//! of where every microsecond went.
//!
//! - [`pipeline`]: stages and dependencies declared once, run on one thread, two, or one per stage,
//!   with the same results; waiting and service time of every stage, always on.
//! - [`channel`]: bounded, unbounded and rendezvous channels with blocking, async and batch forms.
//! - [`bus`]: messages by topic from many threads to many consumers, with priorities, and an exact
//!   account of what was lost; rates, verdicts and advice for queues.
//! - [`export`]: figures of pipelines and buses for a program that watches this one from outside.
//! - [`ring`]: the rings underneath: one-to-one, many-to-many, one-to-many.
//! - [`state`]: control states with declared transitions, read by one load.
//! - [`wait`]: how threads wait, and which cores they really have.
//!
//! When not to use it: between processes or machines; where events are rare and a channel from the
//! standard library is good enough; where tasks outnumber threads by far (an async runtime does
//! that).
#![deny(unsafe_code)]

#[macro_use]
mod texts;

pub mod bus;
pub mod channel;
pub mod export;
pub mod pipeline;
#[allow(unsafe_code)] // lock-free code lives here and nowhere else in this crate
pub mod ring;
pub mod state;
pub mod wait;
