//! Measuring latency on a machine that is busy with other things: clocks, histograms, open-loop
//! load, interval statistics and reports.
//!
//! - [`clock`]: ticks from the counter of the processor, calibrated; or the operating system.
//! - [`histogram`]: a recorder for hot paths that others read while it is written, and histograms
//!   for reports.
//! - [`load`]: events by a schedule; latency counts from the intended time.
//! - [`statistics`]: medians, paired ratios and shifts with intervals, a rank test.
//! - [`noise`]: gaps that the machine put into a run, to distinguish quiet runs from disturbed
//!   ones.
//! - [`table`]: text tables and JSON rows.
//! - [`svg`]: pictures of results, for pages.
//! - [`random`]: the seeded numbers that the others draw from.
//!
//! A whole measurement: load at a fixed rate, latency from the intended time, summary and row.
//!
//! ```
//! use thalweg_measure::clock::Clock;
//! use thalweg_measure::histogram::Recorder;
//! use thalweg_measure::load::{OpenLoop, Rate};
//! use thalweg_measure::table::{Measurement, Nanoseconds};
//!
//! let clock = Clock::global();
//! let mut p99s_ns = Vec::new();
//! for _ in 0..5 {
//!     let recorder = Recorder::new();
//!     let mut load = OpenLoop::new(clock, "200k".parse::<Rate>()?);
//!     load.run(1_000, |i, intended_ticks| {
//!         std::hint::black_box(i * i); // the work
//!         recorder.record(clock.ticks().saturating_sub(intended_ticks));
//!     });
//!     let summary = recorder.snapshot(|ticks| clock.ns(ticks)).summary();
//!     assert_eq!(summary.count, 1_000);
//!     p99s_ns.push(summary.p99 as f64);
//! }
//! let row = Measurement::new(["example", "200k/s", "square"], ["latency_p99", "ns"], &p99s_ns);
//! println!("{} ({})", row.json(), Nanoseconds(p99s_ns[0]));
//! # Ok::<(), thalweg_measure::load::RateError>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod clock;
#[cfg(feature = "stats")]
pub mod histogram;
#[cfg(feature = "stats")]
pub mod load;
pub mod noise;
pub mod random;
pub mod statistics;
pub mod svg;
pub mod table;
