//! The bus as its users see it.
#![allow(clippy::unwrap_used)] // cases are tests, though their functions are not all #[test]

#[cfg(not(sanitized))]
mod adapting;
mod blocking;
#[cfg(not(sanitized))]
mod chaos;
mod ends;
mod foreign;
#[cfg(not(sanitized))]
mod histories;
#[cfg(not(sanitized))]
mod hostile_figures;
#[cfg(not(sanitized))]
mod hostile_limits;
#[cfg(not(sanitized))]
mod hostile_snapshots;
mod hostile_types;
#[cfg(not(sanitized))]
mod hostile_waits;
mod joining;
mod leaving;
mod losses;
mod note;
mod order;
#[cfg(not(sanitized))]
mod overtaking;
#[cfg(not(sanitized))]
mod pausing;
mod publishing;
#[cfg(not(sanitized))]
mod readings;
mod tasks;
#[cfg(not(sanitized))]
use crate::channel::model::Random;
pub(crate) use crate::channel::watchdog;

use thalweg::bus::{Priority, Totals};

fn sum(by_priority: [u64; Priority::COUNT]) -> u64 {
    by_priority.iter().sum()
}

/// Checks the sums that hold while no thread is at work.
fn check_totals(totals: &Totals) {
    let Totals {
        outcomes,
        consumers,
        ..
    } = totals;
    for p in Priority::ALL.map(Priority::index) {
        let known = outcomes.admitted[p] + outcomes.refused[p] + outcomes.timed_out[p];
        assert_eq!(outcomes.issued[p], known, "issued: {totals:?}");
    }
    let left =
        consumers.taken() + consumers.waiting + sum(outcomes.evicted) + sum(outcomes.discarded);
    assert_eq!(sum(outcomes.admitted), left, "admitted: {totals:?}");
}
