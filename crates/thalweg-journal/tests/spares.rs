//! Segments that are given up, and files that are used again.

use crate::sim_journal;

use sim_journal::{Record, add, open, options, segment, with_records};
use thalweg_journal::{Fault, Journal, Lsn, Operation, SimDisk, Storage};

/// The name of a segment that is given up could not be synced. Its file is not used again before it
/// is, or else a crash would leave another segment under the old name.
#[test]
fn a_segment_is_durably_gone_before_its_file_is_used_again() {
    for (operations, seed) in (1..40).flat_map(|at| (0..8).map(move |seed| (at, seed))) {
        let disk = with_records(7);
        let mut journal = open(&disk).expect("it is whole");
        disk.fail(Operation::SyncNames, 0, Fault::Io);
        let error = journal
            .truncate_before(Lsn::new(4))
            .expect_err("the disk fails");
        let expected = "sim: cannot be synced: Input/output error";
        assert_eq!(error.to_string(), expected);
        disk.fail_power_at(disk.operations() + operations);
        let mut last = 7;
        while let Ok(lsn) = add(&mut journal, last + 1) {
            last = lsn.number();
        }
        drop(journal);
        disk.restart(seed);
        let journal = open(&disk).expect("a crash is no damage");
        assert!(journal.recovery().last.number() >= last);
    }
}

#[test]
fn retention_that_failed_can_be_tried_again() {
    let disk = with_records(7);
    let mut journal = open(&disk).expect("it is whole");
    disk.fail(Operation::SyncNames, 0, Fault::Io);
    let outcome = journal.truncate_before(Lsn::new(7));
    outcome.expect_err("the disk fails");
    let first = journal
        .truncate_before(Lsn::new(7))
        .expect("the disk is well");
    assert_eq!(first, Lsn::new(7));
}

/// Another program has deleted the segments, and left a file that was one.
#[test]
fn a_new_journal_does_not_take_old_blocks_for_its_own() {
    let disk = SimDisk::new();
    let open = || Journal::<Record, _>::open_in(disk.clone(), options().journal_number(1));
    let mut journal = open().expect("the disk is empty");
    for number in 1..=4 {
        add(&mut journal, number).expect("the disk is well");
    }
    journal
        .truncate_before(Lsn::new(4))
        .expect("the disk is well");
    drop(journal);
    disk.remove(&segment(2)).expect("it is there");
    let journal = open().expect("there is a spare file only");
    assert_eq!(
        (journal.next(), &journal.recovery().torn),
        (Lsn::FIRST, &None)
    );
}

/// Files of others that end like ours are not touched.
#[test]
fn files_of_others_are_left_alone() {
    let disk = SimDisk::new();
    disk.put("wheel.spare", vec![1; 64]);
    let mut journal = open(&disk).expect("there is no journal");
    for number in 1..=7 {
        add(&mut journal, number).expect("the disk is well");
    }
    assert_eq!(disk.contents("wheel.spare"), Some(vec![1; 64]));
}

/// The header of a spare file cannot be read while the epochs are counted, and can be later.
#[test]
fn a_file_with_blocks_of_the_same_epoch_is_not_used_again() {
    let mut opened = 0;
    for countdown in 0..40 {
        let disk = with_records(7);
        let mut journal = open(&disk).expect("it is whole");
        for number in 8..=9 {
            add(&mut journal, number).expect("the disk is well");
        }
        drop(journal);
        // The third segment becomes a spare file, and has the highest epoch.
        thalweg_journal::truncate(&disk, Some(Lsn::new(4))).expect("no writer");
        disk.fail(Operation::Read, countdown, Fault::Io);
        let Ok(mut journal) = open(&disk) else {
            continue;
        };
        if (4..=7).all(|number| add(&mut journal, number).is_ok()) {
            opened += 1;
            drop(journal);
            disk.restart(1);
            let journal = open(&disk).expect("old blocks prove nothing");
            assert_eq!(journal.next(), Lsn::new(8));
        }
    }
    assert!(opened > 0);
}
