//! What programs built on Thalweg say of their own queues and stages.
//!
//! Such a program writes its figures into files of a directory that the environment variable
//! [`VARIABLE`] names; `docs/export-format.md` says what is in them. [`Directory`] makes one for a
//! program that the doctor starts, [`directory_of`] finds that of a program that runs already, and
//! [`read`] reads what is there. [`between`] gives the figures of the time between two readings,
//! and [`fill`] puts those of the queue that is nearest to its limit among the evidence.

mod directory;
mod file;
mod latency;
mod load;

pub use directory::{Directory, VARIABLE, directory_of, read};
pub use file::{Exported, Inbox, Latency, Named, Queue, Stage};
pub use latency::{fill_latency, latencies};
pub use load::fill;

/// The figures of the time between two readings: counters of `after` less those of `before`, of
/// whatever is in both. What has begun in between is there as it is, and what ended before is not.
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
