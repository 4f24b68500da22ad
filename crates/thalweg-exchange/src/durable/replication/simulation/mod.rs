//! Three replicas, seeded, on a simulated log and simulated disks: machines that crash and are
//! paused, writes whose outcome is not known and that arrive late, reads that are acted upon late,
//! writers that do not know yet that they were replaced; and clients that send again.
//!
//! An observer who sees everything holds against it: what was answered is in the log once, with
//! that number and that result, and was there when it was answered, written under the claim of the
//! one that answers; what was not answered is there once or not at all; and all replicas come to
//! the state of the log, executed without a break. What clients have seen of one order must be
//! linearizable. The same runs find every fault that is seeded.
//!
//! `THALWEG_EXCHANGE_SEEDS=100000 cargo test -p thalweg-exchange --release --lib replication::sim`
//! runs longer.

mod history;
mod machine;
mod observer;
mod run;
mod world;

use std::thread;

use run::{Counts, run, run_unobserved};
pub(super) use world::SimLog;

/// In the tests that always run: all seeded faults but one are found by the first 82. `cargo dev
/// soak` has 10,000.
const SEEDS: u64 = 400;
/// Runs that a seeded fault has to be found in.
const RUNS_FOR_FAULT: u64 = 1_500;
/// Where the search for a fault begins that one run of some 800 finds: 35 runs before.
const RARE_FROM: u64 = 800;

/// A fault of the replicas or of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seeded {
    /// A batch is acknowledged when it is handed over.
    AcknowledgeUnwritten,
    /// The log does not compare claims when it appends.
    SkipClaim,
    /// The log does not look for the batch before when it appends.
    SkipPrevious,
    /// The log has a batch a second time, behind others.
    Replay,
    /// One replica executes something else than the others, and says so.
    Diverge,
    /// One replica executes something else than the others, and no digest is compared.
    DivergeUnseen,
    /// A client reads from whichever replica there is, without a command.
    LookAnywhere,
}

fn number_of(variable: &str, default: u64) -> u64 {
    let asked = std::env::var(variable).ok();
    asked.map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn what_was_answered_is_in_the_log_once_and_no_two_replicas_answer() {
    let (first, wanted) = (
        number_of("THALWEG_SEED", 0),
        number_of("THALWEG_EXCHANGE_SEEDS", SEEDS),
    );
    let every_second = |first: u64, until: u64| {
        let mut counts = Counts::default();
        for seed in (first..until).step_by(2) {
            match run(seed, None) {
                Ok(one) => counts += one,
                Err(what) => panic!("seed {seed}: {what}"),
            }
        }
        counts
    };
    let until = first + wanted;
    let counts = thread::scope(|scope| {
        let others = scope.spawn(|| every_second(first + 1, until));
        let mut counts = every_second(first, until);
        counts += others.join().expect("a seed has failed");
        counts
    });
    println!("{counts:?}");
    // Each of these happened, or the runs show less than they seem to.
    for (what, count) in counts.by_name() {
        let is_rare = what.starts_with("looks at the log");
        let least = if is_rare { wanted / 200 } else { wanted / 20 };
        assert!(count > least, "{what}: {counts:?}");
    }
}

/// Looks for a run that finds the fault in this way.
fn finds(fault: Seeded, text: &str) {
    finds_by(fault, text, 0, |seed| run(seed, Some(fault)).map(drop));
}

/// Looks for a run whose clients alone find the fault.
fn clients_find(fault: Seeded) {
    finds_by(fault, "it is not linearizable", 0, |seed| {
        run_unobserved(seed, fault)
    });
}

fn finds_by(fault: Seeded, text: &str, from: u64, run: impl Fn(u64) -> Result<(), String>) {
    let first = number_of("THALWEG_SEED", from);
    let seeds = first..first + RUNS_FOR_FAULT;
    let what = |seed| run(seed).err().map(|what| (seed, what));
    let found = { seeds }.find_map(|seed| what(seed).filter(|(_, what)| what.contains(text)));
    let (seed, what) = found.unwrap_or_else(|| panic!("{fault:?} was not found"));
    println!("{fault:?}, seed {seed}: {what}");
}

#[test]
fn an_answer_before_the_append_is_found() {
    finds(
        Seeded::AcknowledgeUnwritten,
        "is answered, and not in the log",
    );
}

#[test]
fn an_answer_before_the_append_is_found_by_what_clients_see() {
    clients_find(Seeded::AcknowledgeUnwritten);
}

#[test]
fn a_read_from_a_replica_that_is_behind_is_found_by_what_clients_see() {
    clients_find(Seeded::LookAnywhere);
}

#[test]
fn a_log_that_does_not_compare_claims_is_found() {
    finds(Seeded::SkipClaim, "under the claim");
}

#[test]
fn a_batch_that_comes_in_again_after_it_was_forgotten_is_found() {
    let fault = Seeded::SkipPrevious;
    finds_by(fault, "the oldest batch is", RARE_FROM, |seed| {
        run(seed, Some(fault)).map(drop)
    });
}

#[test]
fn a_batch_that_comes_twice_halts_a_replica() {
    finds(Seeded::Replay, "of the log is out of place");
}

#[test]
fn a_replica_with_another_state_halts_and_says_where() {
    finds(Seeded::Diverge, "before command ");
}

#[test]
fn a_replica_with_another_state_is_found_where_no_digest_is_compared() {
    finds(Seeded::DivergeUnseen, "has another state");
}
