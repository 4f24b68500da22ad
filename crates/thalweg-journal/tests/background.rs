//! Losses of power while a thread makes the next segment ready. Which of its operations comes
//! before which of the writer's is up to the system, so a seed does not repeat a run.

use thalweg_journal::{Fault, Journal, JournalOptions, Lsn, Operation, Reader, SimDisk, Storage};

const CRASHES: u64 = 400;

fn open(disk: &SimDisk) -> Journal<[u64; 8], SimDisk> {
    let options = JournalOptions::default()
        .segment_bytes(16 << 10)
        .block_bytes_max(4 << 10);
    Journal::open_in(disk.clone(), options).expect("a crash is no damage")
}

/// Writes until the power fails, and returns the record that was acknowledged last. Every `group`
/// records it commits.
fn write(journal: &mut Journal<[u64; 8], SimDisk>, group: u64) -> Lsn {
    loop {
        let number = journal.next().number();
        let appended = journal.append_with(|slot| *slot = [number; 8]);
        let is_done = match appended {
            Ok(_) if !number.is_multiple_of(group) => true,
            appended => appended.and_then(|_| journal.commit()).is_ok(),
        };
        if !is_done && journal.commit().is_err() {
            return journal.durable().get();
        }
        if number.is_multiple_of(5) {
            let kept = Lsn::new(number.saturating_sub(9));
            // It may fail with the power; the next commit returns the error.
            let _ = journal.truncate_before(kept);
        }
    }
}

#[test]
fn what_was_acknowledged_survives_with_a_thread_at_work() {
    let disk = SimDisk::new();
    let mut rolled = 0;
    for crash in 0..CRASHES {
        let mut journal = open(&disk);
        // Every other time as a load, which leaves up to 32 segments before they are durable.
        let (group, within) = match crash.is_multiple_of(2) {
            true => (1, 120),
            false => (189 * (1 + crash % 50), 1_200),
        };
        disk.fail_power_at(disk.operations() + 1 + crash * 77 % within);
        if crash.is_multiple_of(3) {
            disk.fail(Operation::Allocate, crash % 4, Fault::Full);
        }
        let first = journal.recovery().first;
        let acknowledged = write(&mut journal, group);
        drop(journal);
        disk.restart(crash);
        let mut reader = Reader::open_in(disk.clone(), Lsn::ZERO).expect("it is there");
        rolled += u64::from(reader.next() > first);
        let mut last = reader.next().number() - 1;
        for record in reader.records::<[u64; 8]>() {
            let (lsn, record) = record.expect("a crash is no damage");
            last += 1;
            assert_eq!((lsn.number(), record), (last, [last; 8]));
        }
        assert!(last >= acknowledged.number(), "{acknowledged} of {last}");
    }
    assert!(rolled > CRASHES / 10, "{rolled}");
}

/// The thread has a segment ready for the load, under a name that is no segment's.
#[test]
fn what_is_ready_for_a_load_goes_when_the_journal_closes() {
    let disk = SimDisk::new();
    let mut journal = open(&disk);
    // Three blocks of 63 records a segment: five are full, and the open block is lost.
    for number in 0..1_000 {
        let appended = journal.append_with(|slot| *slot = [number; 8]);
        let _ = appended.expect("the disk is well");
    }
    drop(journal);
    let mut names = disk.list().expect("the disk is well");
    names.sort();
    let segments = (1..=5).map(|number| format!("{number:020}.segment"));
    assert_eq!(names, segments.collect::<Vec<_>>());
}
