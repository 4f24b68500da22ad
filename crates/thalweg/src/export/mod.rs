//! Figures of pipelines and buses for a program that watches this one from outside.
//!
//! Where the environment variable [`THALWEG_EXPORT`](VARIABLE) names a directory when a pipeline or
//! bus is built, or [`Builder::export_to`](crate::pipeline::Builder::export_to) does, a thread of
//! its own writes its figures into a file there, ten times a second and once more at the end. The
//! directory should be in memory, such as one under `/dev/shm`, and used by this user alone.
//! `thalweg doctor` makes one, and reads it. `docs/export-format.md` describes the files.
//!
//! ```
//! use thalweg::pipeline::{Pipeline, Placement};
//!
//! let directory = std::env::temp_dir().join(format!("figures-{}", std::process::id()));
//! std::fs::create_dir(&directory)?;
//! let mut pipeline = Pipeline::builder(64, || 0_u64)
//!     .stage("double", |event, _| *event *= 2)
//!     .placement(Placement::inline())
//!     .export_to(&directory)
//!     .build()?;
//! pipeline.publish(|event| *event = 1)?;
//! pipeline.join()?;
//! let file = std::fs::read_dir(&directory)?.next().expect("one file")?;
//! assert!(std::fs::read_to_string(file.path())?.contains("\"published\": 1,"));
//! std::fs::remove_dir_all(&directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//! Without the variable a read of the environment for each pipeline and bus. With it one thread for
//! all of them, which wakes a hundred times a second and reads counters that are there anyway.
//! Nothing waits for it.
//!
//! # Whole or not at all
//! A snapshot is written under another name and renamed. A snapshot that cannot be written, because
//! the directory is not there or full, is left out, and nothing else is affected: the next snapshot
//! may be written.

mod arrivals;
mod json;
mod latencies;
mod reporter;

pub(crate) use arrivals::Arrivals;
pub(crate) use json::Json;
pub use latencies::latencies;
pub(crate) use latencies::write_times;
pub(crate) use reporter::{Export, Kept, Source};

use crate::ring::sync::IS_MODEL;
use std::path::PathBuf;

/// The environment variable that names the directory.
pub const VARIABLE: &str = "THALWEG_EXPORT";

/// The most pipelines and buses of a process that are exported, since their files stay.
pub const EXPORTS_MAX: u64 = 256;

/// The version of the format.
pub const VERSION: u32 = 1;

/// Returns the directory that was asked for, or else that of the environment. None in a model.
pub(crate) fn directory(asked: Option<PathBuf>) -> Option<PathBuf> {
    let named = || std::env::var_os(VARIABLE).filter(|named| !named.is_empty());
    match IS_MODEL {
        true => None,
        false => asked.or_else(|| named().map(PathBuf::from)),
    }
}

/// Returns whether a ring with this part of its capacity taken is full: a producer that waits for
/// room goes on when an eighth is free.
pub(crate) fn is_full(taken: u64, capacity: u64) -> bool {
    capacity > 0 && taken >= capacity - capacity / 8
}
