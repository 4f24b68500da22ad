//! Reads the figures that programs built on Thalweg export about their own queues and stages.
//!
//! Such a program writes its figures into files of a directory that the environment variable
//! [`VARIABLE`] names; `docs/export-format.md` describes their contents. [`Directory`] makes a
//! directory for a program that the doctor starts, [`directory_of`] finds that of a program that
//! runs already, and [`read`] reads its files. [`between`] returns the figures of the time between
//! two readings, and [`fill`] adds those of the queue that is nearest to its limit to the evidence.

mod directory;
mod file;
mod latency;
mod load;

pub use directory::{Directory, VARIABLE, directory_of, read};
pub use file::{Exported, Inbox, Latency, Named, Queue, Stage};
pub use latency::{fill_latency, latencies};
pub use load::fill;

/// Returns the figures of the time between two readings: counters of `after` minus those of
/// `before`, for each pipeline or bus that is in both. One that began in between is returned
/// unchanged, and one that ended before is left out.
#[must_use]
pub fn between(before: &[Exported], after: &[Exported]) -> Vec<Exported> {
    let same = |new: &Exported| {
        let is_same = |old: &&Exported| (old.process, old.number) == (new.process, new.number);
        before.iter().find(is_same)
    };
    let changed = after.iter().filter_map(|new| match same(new) {
        Some(old) if old.has_ended => None,
        Some(old) => Some(new.since(old)),
        None => Some(new.clone()),
    });
    changed.collect()
}

#[cfg(test)]
mod tests;
