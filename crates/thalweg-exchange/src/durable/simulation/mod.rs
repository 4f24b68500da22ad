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

mod model;
mod recorder;
mod run;
pub(in crate::durable) mod traffic;

use super::faults::Seeded;
use recorder::Counts;
use run::run;

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
