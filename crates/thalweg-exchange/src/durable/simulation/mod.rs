//! Crashes, seeded, through the whole exchange: sessions that send, get answers, lose power, send
//! again and resume, on a simulated disk; and a model that knows what was answered.
//!
//! A run is a number of lives of one exchange, each of which ends by a crash in the midst of some
//! operation of the disk (opening, appending, a snapshot, the retention), by an error of the disk,
//! or by being closed. Then every command that was answered has to be there once, any other once or
//! not at all, in order; answers to what is sent again have to be the first ones; reports have to
//! be numbered without gaps, and equal whenever they are seen; and the state has to have the hash
//! of the same commands, executed without a break. The same runs find every fault that is seeded.
//!
//! `THALWEG_EXCHANGE_SEEDS=100000 cargo test -p thalweg-exchange --release --lib durable::sim` runs
//! longer.

pub(in crate::durable) mod model;
mod recorder;
mod run;
pub(in crate::durable) mod traffic;

use std::time::Duration;

use thalweg::pipeline::Placement;
use thalweg_journal::JournalOptions;

use super::faults::Seeded;
use super::options::{Options, SessionLimits, SnapshotOptions};
use crate::service::ServiceOptions;
use recorder::Counts;
use run::run;

pub(in crate::durable) type Verdict = Result<(), String>;

pub(in crate::durable) fn must(is_so: bool, what: impl FnOnce() -> String) -> Verdict {
    is_so.then_some(()).ok_or_else(what)
}

/// How often each thing happened in a run.
macro_rules! counts {
    ($($field:ident: $name:literal,)*) => {
        #[derive(Clone, Copy, Debug, Default)]
        pub(super) struct Counts {
            $(pub(super) $field: u64,)*
        }

        impl Counts {
            pub(super) fn by_name(&self) -> Vec<(&'static str, u64)> {
                vec![$(($name, self.$field)),*]
            }
        }

        impl std::ops::AddAssign for Counts {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}
pub(in crate::durable) use counts;

const ANSWERS_KEPT: u32 = 40;
const REPORTS_KEPT: u32 = 30;

/// Returns the options of a small exchange on one thread.
pub(in crate::durable) fn options(block_bytes_max: u64) -> Options {
    Options {
        service: ServiceOptions {
            capacity: 64,
            placement: Placement::inline(),
            ..ServiceOptions::default()
        },
        journal: JournalOptions::default()
            .segment_bytes(24 << 10)
            .block_bytes_max(block_bytes_max)
            .in_background(false),
        snapshot: SnapshotOptions {
            in_background: false,
            ..SnapshotOptions::default()
        },
        sessions: SessionLimits {
            answers_kept: ANSWERS_KEPT,
            reports_kept: REPORTS_KEPT,
            ..SessionLimits::default()
        },
        room_pause: Duration::ZERO,
        ..Options::default()
    }
}

/// In the tests that always run. Every seeded fault shows within 13 seeds, wherever they begin.
const SEEDS: u64 = 120;
/// Runs that a seeded fault has to be found in.
const RUNS_FOR_FAULT: u64 = 100;

fn seeds_wanted() -> u64 {
    let asked = std::env::var("THALWEG_EXCHANGE_SEEDS").ok();
    asked.map_or(SEEDS, |text| text.parse().expect("a number of seeds"))
}

fn first_seed() -> u64 {
    let asked = std::env::var("THALWEG_SEED").ok();
    asked.map_or(0, |text| text.parse().expect("a seed"))
}

#[test]
fn what_was_answered_survives_and_nothing_happens_twice() {
    let (wanted, mut counts) = (seeds_wanted(), Counts::default());
    for seed in first_seed()..first_seed() + wanted {
        match run(seed, None) {
            Ok(one) => counts += one,
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    println!("{counts:?}");
    // Each of these happened, or the runs show less than they seem to.
    for (what, count) in counts.by_name() {
        assert!(count > wanted / 20, "{what}: {counts:?}");
    }
}

fn finds(fault: Seeded) {
    let seeds = first_seed()..first_seed() + RUNS_FOR_FAULT;
    let found = { seeds }.find_map(|seed| Some((seed, run(seed, Some(fault)).err()?)));
    let (seed, what) = found.unwrap_or_else(|| panic!("{fault:?} was not found"));
    println!("{fault:?}, seed {seed}: {what}");
}

#[test]
fn an_answer_before_the_commit_is_found() {
    finds(Seeded::PublishUnsynced);
}

#[test]
fn an_answer_after_a_failure_of_the_disk_is_found() {
    finds(Seeded::PublishFailed);
}

#[test]
fn a_snapshot_without_sessions_is_found() {
    finds(Seeded::ForgetSessions);
}

#[test]
fn a_journal_that_is_given_up_too_far_is_found() {
    finds(Seeded::RetainTooLittle);
}

#[test]
fn a_journal_that_is_never_given_up_is_found() {
    finds(Seeded::RetainTooMuch);
}
