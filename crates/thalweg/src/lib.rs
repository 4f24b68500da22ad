//! Bounded channels, pipelines of stages and a message bus between the threads and tasks of one
//! program, with sampled latencies of each stage and exact loss counts.
//!
//! Begin with [`channel`] where threads or tasks pass values to each other, with [`pipeline`] where
//! every event takes the same steps, and with [`bus`] where several consumers choose messages by
//! topic:
//!
//! ```
//! let (mut tx, mut rx) = thalweg::channel::mpsc(1024);
//! let mut other = tx.clone();
//! std::thread::spawn(move || other.send(1).expect("the receiver is there"));
//! tx.send(2).expect("the receiver is there");
//! let mut next = || rx.recv().expect("a value is sent");
//! assert_eq!(next() + next(), 3);
//! ```
//!
//! - [`pipeline`]: stages and dependencies declared once, run on one thread, two, or one per stage,
//!   with the same results; waiting and service time of every stage, sampled, always on.
//! - [`channel`]: bounded and rendezvous channels, and growing ones with a limit, with blocking,
//!   async and batch forms.
//! - [`bus`]: messages by topic from many threads to many consumers, with priorities and exact loss
//!   counts.
//! - [`export`]: statistics of pipelines, buses and channels with a name, for a program that
//!   watches this one from outside.
//! - `metrics`, with the feature `metrics`: records these statistics with the facade `metrics`.
//! - [`ring`]: the rings underneath: one-to-one, many-to-many, one-to-many.
//! - [`state`]: the lifecycle of pipelines and buses, read by one load, with its last changes.
//! - [`wait`]: how threads wait, and which cores they can use.
//!
//! When not to use it: between processes or machines; where events are rare and a channel of the
//! standard library is good enough; to run many tasks on a few threads (an async runtime does
//! that).
//!
//! # Terms
//! The words of these pages are in the
//! [glossary](https://github.com/thalweg-rs/thalweg/blob/main/docs/GLOSSARY.md). The counters of
//! channels ([`Counters`](channel::Counters)) and of buses ([`OutcomeCounts`](bus::OutcomeCounts),
//! [`ConsumerCounts`](bus::ConsumerCounts), [`InboxReading`](bus::InboxReading)) use these:
//!
//! | term | elements of a channel | messages for an inbox of a bus |
//! |---|---|---|
//! | refused | returned, as the channel was full | lost: at the limit of their priority (*) |
//! | timed out | counted as refused | lost: no slot was free in time |
//! | dropped | lost by `DropNewest` or `DropOldest` | |
//! | evicted | | lost: replaced by a newer message |
//! | lost | dropped | refused, timed out or evicted |
//! | discarded | no receiver took them: the last one was dropped | admitted and not taken (**) |
//! | received | receivers got them | |
//! | delivered | | consumers got them, by priority |
//! | taken | | delivered, all priorities together |
//!
//! (*) Or the clone for the inbox panicked. (**) The last consumer was dropped, or the bus stopped;
//! they do not count as lost.
//!
//! Losses are reported with the next element or message: [`channel::Receiver::lost_before`] and
//! [`bus::Delivery::lost_before`].
#![cfg_attr(not(any(feature = "std", loom, shuttle, test)), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// Some of what rings and channels offer to pipelines has no other use.
#![cfg_attr(not(feature = "stats"), allow(dead_code, unused_imports))]

extern crate alloc;

#[macro_use]
mod texts;

#[cfg(feature = "std")]
pub mod bus;
#[cfg(feature = "std")]
pub mod channel;
#[cfg(feature = "std")]
pub mod export;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "stats")]
pub mod pipeline;
#[allow(unsafe_code)] // the only module of this crate with unsafe code
pub mod ring;
#[cfg(feature = "std")]
pub mod state;
#[cfg(feature = "std")]
pub mod wait;
