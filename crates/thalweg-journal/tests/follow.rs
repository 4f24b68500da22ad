//! Readers: from any record, of a live journal, while segments are given up and used again.

use std::thread;

use thalweg_journal::{
    Error, Fault, GroupCommit, Journal, JournalOptions, Lsn, Operation, Reader, SimDisk,
};

fn options() -> JournalOptions {
    JournalOptions::default()
        .segment_bytes(64 << 10)
        .block_bytes_max(8 << 10)
}

fn open(disk: &SimDisk) -> Journal<u64, SimDisk> {
    Journal::open_in(disk.clone(), options()).expect("no other writer")
}

fn numbers(reader: &mut Reader<SimDisk>) -> Vec<u64> {
    let records = reader.records::<u64>();
    records
        .map(|record| record.expect("it is whole").1)
        .collect()
}

#[test]
fn a_new_journal_begins_with_any_record() {
    let disk = SimDisk::new();
    let options = options().first(Lsn::new(1_001));
    let mut journal: Journal<u64, _> =
        Journal::open_in(disk.clone(), options.clone()).expect("it is new");
    assert_eq!(
        (journal.next(), journal.durable().get()),
        (Lsn::new(1_001), Lsn::new(1_000))
    );
    for number in 1_001..=30_000_u64 {
        let lsn = journal
            .append_with(|slot| *slot = number)
            .expect("the disk is well");
        assert_eq!(lsn, Lsn::new(number));
    }
    let _ = journal.commit().expect("the disk is well");
    drop(journal);
    let journal: Journal<u64, _> = Journal::open_in(disk.clone(), options).expect("it is there");
    let recovery = journal.recovery();
    assert_eq!(
        (recovery.first, recovery.last),
        (Lsn::new(1_001), Lsn::new(30_000))
    );
    let mut reader = Reader::open_in(disk.clone(), Lsn::ZERO).expect("it is there");
    assert!(numbers(&mut reader).into_iter().eq(1_001..=30_000));
    let error = Reader::open_in(disk, Lsn::new(1_000)).expect_err("it is none of its records");
    assert!(matches!(error, Error::NoRecord { .. }), "{error}");
}

#[test]
fn readers_begin_at_any_record() {
    let disk = SimDisk::new();
    let mut journal = open(&disk);
    for number in 1..=40_000_u64 {
        journal
            .append_with(|slot| *slot = number)
            .expect("the disk is well");
        if number.is_multiple_of(700) {
            let _ = journal.commit().expect("the disk is well");
        }
    }
    let _ = journal.commit().expect("the disk is well");
    for from in [1, 2, 700, 701, 1_009, 20_000, 39_999, 40_000, 40_001] {
        let mut reader = Reader::open_in(disk.clone(), Lsn::new(from)).expect("it is there");
        let expected: Vec<u64> = (from..=40_000).collect();
        assert_eq!(numbers(&mut reader), expected, "from {from}");
        let mut reader = Reader::open_in(disk.clone(), Lsn::new(from)).expect("it is there");
        let mut in_place = Vec::new();
        let mut as_bytes = Vec::new();
        while let Some(block) = reader.next_block().expect("it is whole") {
            in_place.extend_from_slice(block.records::<u64>().expect("they have this size"));
            assert!(block.records::<u32>().is_none());
            as_bytes.extend(block.bytes().map(|(lsn, bytes)| {
                assert_eq!(bytes, lsn.number().to_ne_bytes());
                lsn.number()
            }));
        }
        assert_eq!(
            (in_place, as_bytes),
            (expected.clone(), expected),
            "from {from}"
        );
    }
}

#[test]
fn records_of_any_length_come_back() {
    let disk = SimDisk::new();
    let mut journal = Journal::<[u8], _>::open_in(disk.clone(), options()).expect("it is empty");
    let record = |number: usize| vec![number as u8; number * 37 % 5_000];
    for number in 0..2_000 {
        journal
            .append_bytes(&record(number))
            .expect("the disk is well");
    }
    let _ = journal.commit().expect("the disk is well");
    for from in [1, 777, 2_000] {
        let mut reader = Reader::open_in(disk.clone(), Lsn::new(from)).expect("it is there");
        let mut next = from;
        while let Some(block) = reader.next_block().expect("it is whole") {
            for (lsn, bytes) in block.bytes() {
                assert_eq!(lsn, Lsn::new(next));
                assert_eq!(bytes, record(next as usize - 1));
                next += 1;
            }
        }
        assert_eq!(next, 2_001);
    }
}

#[test]
fn a_follower_sees_what_is_durable_and_goes_on() {
    let disk = SimDisk::new();
    let mut journal = open(&disk);
    let mut follower = journal.follow(Lsn::ZERO).expect("it is there");
    assert_eq!(numbers(&mut follower), []);
    let mut next = 1;
    for round in 0..200_u64 {
        let first = next;
        for _ in 0..1 + round % 90 {
            journal
                .append_with(|slot| *slot = next)
                .expect("the disk is well");
            next += 1;
        }
        journal.flush().expect("the disk is well");
        assert_eq!(numbers(&mut follower), [], "flushed is not durable");
        let _ = journal.commit().expect("the disk is well");
        let expected: Vec<u64> = (first..next).collect();
        assert_eq!(numbers(&mut follower), expected);
    }
}

#[test]
fn a_follower_on_another_thread_sees_everything_once() {
    const RECORDS: u64 = 30_000;
    let disk = SimDisk::new();
    let journal = open(&disk).share(GroupCommit::default());
    let mut follower = journal.follow(Lsn::ZERO).expect("it is there");
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=RECORDS {
                let lsn = journal
                    .append_with(|slot| *slot = number)
                    .expect("the disk is well");
                if number.is_multiple_of(50) {
                    let _ = journal.commit(lsn).expect("the disk is well");
                }
            }
        });
        let mut expected = 1;
        while expected <= RECORDS {
            for number in numbers(&mut follower) {
                assert_eq!(number, expected);
                expected += 1;
            }
            thread::yield_now();
        }
    });
}

#[test]
fn a_reader_that_follows_too_slowly_gets_an_error() {
    let disk = SimDisk::new();
    let mut journal = open(&disk);
    let mut follower = journal.follow(Lsn::ZERO).expect("it is there");
    let mut outsider = Reader::open_in(disk.clone(), Lsn::ZERO).expect("it is there");
    for number in 1..=100_000_u64 {
        journal
            .append_with(|slot| *slot = number)
            .expect("the disk is well");
        if number.is_multiple_of(1_000) {
            let durable = journal.commit().expect("the disk is well").get();
            journal.truncate_before(durable).expect("the disk is well");
        }
    }
    let first = Reader::open_in(disk.clone(), Lsn::ZERO)
        .expect("it is there")
        .next();
    assert!(first > Lsn::new(80_000), "{first}");
    for reader in [&mut follower, &mut outsider] {
        let error = reader.next_block().expect_err("it was given up");
        assert!(matches!(error, Error::NoRecord { .. }), "{error}");
        let expected = format!("no record 1: there are {first} to 100000");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn segments_are_given_up_as_a_whole_and_used_again() {
    let disk = SimDisk::new();
    let mut journal = open(&disk);
    let mut kept = Lsn::FIRST;
    for number in 1..=60_000_u64 {
        journal
            .append_with(|slot| *slot = number)
            .expect("the disk is well");
        if number.is_multiple_of(500) {
            let durable = journal.commit().expect("the disk is well").get();
            let wanted = Lsn::new(durable.number() - 400);
            let first = journal.truncate_before(wanted).expect("the disk is well");
            assert!(first <= wanted && first >= kept);
            kept = first;
        }
    }
    drop(journal);
    let journal = open(&disk);
    assert_eq!(journal.recovery().first, kept);
    assert_eq!(journal.recovery().last, Lsn::new(60_000));
    let mut reader = Reader::open_in(disk.clone(), kept).expect("it is there");
    assert_eq!(
        numbers(&mut reader),
        (kept.number()..=60_000).collect::<Vec<u64>>()
    );
}

/// A reader that follows a journal that is dropped, or has stopped, gets the rest and learns of the
/// end.
#[test]
fn a_follower_learns_that_there_will_be_no_more() {
    for stops in [false, true] {
        let disk = SimDisk::new();
        let mut journal = open(&disk);
        let mut follower = journal.follow(Lsn::ZERO).expect("it is there");
        assert!(!follower.is_final());
        journal.append(&1).expect("there is room");
        let _ = journal.commit().expect("the disk is well");
        journal.append(&2).expect("there is room");
        let journal = match stops {
            true => {
                disk.fail(Operation::WriteNow, 0, Fault::Io);
                journal.commit().expect_err("the disk fails");
                Some(journal)
            }
            false => {
                drop(journal);
                None
            }
        };
        assert!(follower.is_final());
        assert_eq!(numbers(&mut follower), [1]);
        drop(journal);
    }
    let disk = SimDisk::new();
    drop(open(&disk));
    let reader = Reader::open_in(disk, Lsn::ZERO).expect("it is there");
    assert!(reader.is_final(), "it does not follow");
}
