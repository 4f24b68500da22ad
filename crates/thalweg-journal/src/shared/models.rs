//! Group commit under schedules that [shuttle](https://docs.rs/shuttle) chooses at random. A
//! wake-up that reaches no thread shows as a deadlock; there is no clock, so a delay never ends by
//! itself. Faults are seeded, and these models find them.
//!
//! `RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle cargo test -p thalweg-journal --lib
//! --release models`

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::{Config, Runner, thread};

use super::{GroupCommit, Shared};
use crate::fault::{Faults, Seeded};
use crate::{Error, Fault, Journal, JournalOptions, Lsn, Operation, Reader, SimDisk};

const SCHEDULES: usize = 1_000;
const PREEMPTIONS: usize = 3;
const SEED: u64 = 1;
const THREADS: u64 = 3;

/// Two fit into a block, and a block into a segment.
type Record = [u8; 2_000];
type Model = fn(Option<Seeded>);

fn explore(model: Model, seeded: Option<Seeded>) {
    let mut config = Config::new();
    config.stack_size = 256 << 10;
    let run = move || model(seeded);
    let random = RandomScheduler::new_from_seed(SEED, SCHEDULES);
    Runner::new(random, config.clone()).run(run);
    let preempting = PctScheduler::new_from_seed(SEED, PREEMPTIONS, SCHEDULES);
    Runner::new(preempting, config).run(run);
}

fn finds(fault: Seeded, model: Model) {
    let explored = catch_unwind(AssertUnwindSafe(|| explore(model, Some(fault))));
    assert!(explored.is_err(), "{fault:?} was not found");
}

const NEVER: Duration = Duration::from_secs(1 << 30);
const AT_ONCE: GroupCommit = GroupCommit {
    delay_max: Duration::ZERO,
    records_max: u32::MAX,
    bytes_max: usize::MAX,
};

fn options(seeded: Option<Seeded>) -> JournalOptions {
    let mut options = JournalOptions::default()
        .segment_bytes(8 << 10)
        .block_bytes_max(4 << 10)
        .in_background(false);
    options.faults = Faults { seeded };
    options
}

fn shared(
    disk: &SimDisk,
    group: GroupCommit,
    seeded: Option<Seeded>,
) -> Arc<Shared<Record, SimDisk>> {
    let journal = Journal::open_in(disk.clone(), options(seeded)).expect("the disk is empty");
    Arc::new(journal.share(group))
}

/// Each thread does its work; all of them end.
fn together(journal: &Arc<Shared<Record, SimDisk>>, work: fn(u64, &Shared<Record, SimDisk>)) {
    let threads = (0..THREADS).map(|number| {
        let journal = Arc::clone(journal);
        thread::spawn(move || work(number, &journal))
    });
    let threads: Vec<_> = threads.collect();
    for thread in threads {
        thread.join().expect("it does not panic");
    }
}

fn add(number: u64, journal: &Shared<Record, SimDisk>) -> Result<Lsn, Error> {
    let lsn = journal.append_with(|slot| slot.fill(number as u8))?;
    assert_eq!(journal.commit(lsn)?.get(), lsn);
    Ok(lsn)
}

/// Checks that the records that each thread committed are on disk, once.
fn each_once(disk: &SimDisk, numbers: &[u8]) {
    disk.restart(SEED);
    let mut reader = Reader::open_in(disk.clone(), Lsn::ZERO).expect("it is there");
    let records = reader.records::<Record>();
    let mut found: Vec<u8> = records
        .map(|record| record.expect("it is whole").1[0])
        .collect();
    found.sort_unstable();
    assert_eq!(found, numbers);
}

fn all_commit(seeded: Option<Seeded>) {
    let disk = SimDisk::new();
    let journal = shared(&disk, AT_ONCE, seeded);
    together(&journal, |number, journal| {
        add(number, journal).expect("the disk is well");
    });
    each_once(&disk, &[0, 1, 2]);
}

/// The group waits for a record of each of two.
fn a_group_gathers(seeded: Option<Seeded>) {
    let disk = SimDisk::new();
    let group = GroupCommit {
        delay_max: NEVER,
        records_max: 2,
        ..AT_ONCE
    };
    let journal = shared(&disk, group, seeded);
    together(&journal, |number, journal| {
        if number > 0 {
            add(number, journal).expect("the disk is well");
        }
    });
    each_once(&disk, &[1, 2]);
}

/// The group waits for more records than a block holds; one that does not fit ends that.
fn a_full_block_ends_the_wait(seeded: Option<Seeded>) {
    let group = GroupCommit {
        delay_max: NEVER,
        ..AT_ONCE
    };
    let journal = shared(&SimDisk::new(), group, seeded);
    let is_done = Arc::new(AtomicBool::new(false));
    let waiting = {
        let (journal, is_done) = (Arc::clone(&journal), Arc::clone(&is_done));
        thread::spawn(move || {
            add(0, &journal).expect("the disk is well");
            // ORDERING: SeqCst, pairs with the load below; a model knows no other.
            is_done.store(true, Ordering::SeqCst);
        })
    };
    // ORDERING: SeqCst, pairs with the store above.
    while !is_done.load(Ordering::SeqCst) {
        journal.append_with(|_| {}).expect("the disk is well");
        thread::yield_now();
    }
    waiting.join().expect("it does not panic");
}

fn a_failed_write_is_heard(seeded: Option<Seeded>) {
    let disk = SimDisk::new();
    let journal = shared(&disk, AT_ONCE, seeded);
    disk.fail(Operation::WriteNow, 1, Fault::Io);
    together(&journal, |number, journal| {
        while let Ok(lsn) = add(number, journal) {
            assert!(journal.durable().get() >= lsn);
        }
        let error = add(number, journal).expect_err("it has stopped");
        assert!(matches!(error, Error::Stopped { .. }), "{error}");
    });
}

fn a_full_disk_is_heard_and_passes(seeded: Option<Seeded>) {
    let disk = SimDisk::new();
    let journal = shared(&disk, AT_ONCE, seeded);
    for refusal in 0..2 {
        disk.fail(Operation::Allocate, refusal, Fault::Full);
    }
    together(&journal, |number, journal| {
        let lsn = loop {
            match journal.append_with(|slot| slot.fill(number as u8)) {
                Ok(lsn) => break lsn,
                Err(error) => assert!(matches!(error, Error::Io { .. }), "{error}"),
            }
        };
        while let Err(error) = journal.commit(lsn) {
            assert!(matches!(error, Error::Io { .. }), "{error}");
        }
    });
    each_once(&disk, &[0, 1, 2]);
}

/// Two give up what is durable while another one commits; what is left has no gap.
fn segments_go_while_others_commit(seeded: Option<Seeded>) {
    let disk = SimDisk::new();
    let journal = shared(&disk, AT_ONCE, seeded);
    together(&journal, |number, journal| match number {
        0 => (0..4).for_each(|number| {
            add(number, journal).expect("the disk is well");
        }),
        _ => (0..2).for_each(|_| {
            let durable = journal.durable().get();
            journal.truncate_before(durable).expect("the disk is well");
            thread::yield_now();
        }),
    });
    let durable = journal.durable().get();
    let first = journal.truncate_before(durable).expect("the disk is well");
    assert_eq!(first, durable, "a segment has one record");
    drop(journal);
    each_once(&disk, &[3]);
}

/// The power fails at some operation of the disk; what was acknowledged by then is there.
fn what_was_acknowledged_is_there(seeded: Option<Seeded>) {
    for operation in 1..8 {
        let disk = SimDisk::new();
        let journal = shared(&disk, AT_ONCE, seeded);
        disk.fail_power_at(disk.operations() + operation * 3);
        together(
            &journal,
            |number, journal| {
                while add(number, journal).is_ok() {}
            },
        );
        let acknowledged = journal.durable().get();
        drop(journal);
        disk.restart(operation);
        let journal = Journal::<Record, _>::open_in(disk, options(None));
        let last = journal.expect("a crash is no damage").recovery().last;
        assert!(last >= acknowledged, "{acknowledged}, and {last} is there");
    }
}

#[test]
fn an_acknowledgement_before_the_sync_is_found() {
    finds(
        Seeded::AcknowledgeBeforeSync,
        what_was_acknowledged_is_there,
    );
}

#[test]
fn everybody_who_waits_is_answered() {
    for model in [
        all_commit,
        a_group_gathers,
        a_full_block_ends_the_wait,
        a_failed_write_is_heard,
        a_full_disk_is_heard_and_passes,
        segments_go_while_others_commit,
        what_was_acknowledged_is_there,
    ] {
        explore(model, None);
    }
}

#[test]
fn a_leader_that_wakes_one_of_many_is_found() {
    finds(Seeded::NotifyOne, all_commit);
    finds(Seeded::NotifyOne, a_failed_write_is_heard);
    finds(Seeded::NotifyOne, a_full_disk_is_heard_and_passes);
    finds(Seeded::NotifyOne, segments_go_while_others_commit);
}

#[test]
fn a_leader_that_is_not_notified_of_a_large_enough_group_is_found() {
    finds(Seeded::SkipEnoughNotification, a_group_gathers);
}

#[test]
fn a_leader_that_is_not_notified_of_a_full_block_is_found() {
    finds(Seeded::SkipFullNotification, a_full_block_ends_the_wait);
}
