//! Errors of a journal that cannot do its work; nothing is lost then.

use crate::sim_journal;

use sim_journal::{Record, SEGMENT_BYTES, add, open, options, segment, with_records};
use thalweg_journal::format::SegmentHeader;
use thalweg_journal::{
    Error, Fault, GroupCommit, Journal, JournalOptions, Lsn, Operation, Reader, SimDisk,
    first_readable_after,
};

fn numbers(disk: &SimDisk) -> Vec<u64> {
    let mut reader = Reader::open_in(disk.clone(), Lsn::ZERO).expect("there is a journal");
    let records = reader.records::<Record>();
    records
        .map(|record| record.expect("it is whole").1[0])
        .collect()
}

fn text<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.expect_err("it should not work").to_string()
}

#[test]
fn a_failed_write_stops_the_journal_and_opening_it_again_finds_what_was_acknowledged() {
    let disk = with_records(2);
    let mut journal = open(&disk).expect("it is whole");
    disk.fail(Operation::WriteNow, 0, Fault::Io);
    let message = text(add(&mut journal, 3));
    let first = format!("sim/{}: cannot be written: Input/output error", segment(1));
    assert_eq!(message, first);
    let stopped = format!("the journal has stopped, open it again: {first}");
    assert_eq!(text(journal.commit()), stopped);
    assert_eq!(text(add(&mut journal, 4)), stopped);
    assert_eq!(text(journal.truncate_before(Lsn::FIRST)), stopped);
    drop(journal);
    let journal = open(&disk).expect("the disk is well again");
    let last = journal.recovery().last.number();
    // The third was not acknowledged: it may be there.
    assert!(last == 2 || last == 3, "{last}");
}

#[test]
fn a_failed_sync_is_not_tried_again() {
    let disk = with_records(1);
    let mut journal = open(&disk).expect("it is whole");
    journal
        .append_with(|record| record[0] = 2)
        .expect("there is room");
    journal.flush().expect("the disk is well");
    disk.fail(Operation::Sync, 0, Fault::Io);
    let first = format!("sim/{}: cannot be synced: Input/output error", segment(1));
    assert_eq!(text(journal.commit()), first);
    let again = text(journal.commit());
    assert_eq!(
        again,
        format!("the journal has stopped, open it again: {first}")
    );
}

#[test]
fn a_full_disk_is_reported_and_changes_nothing() {
    let disk = with_records(3);
    let mut journal = open(&disk).expect("it is whole");
    journal
        .append_with(|record| *record = [4; 4])
        .expect("there is room");
    for _ in 0..2 {
        disk.fail(Operation::Allocate, 0, Fault::Full);
        let message = text(journal.commit());
        assert_eq!(message, "sim/new.part: cannot be written: no storage space");
    }
    // There is room again: the same commit works.
    assert_eq!(journal.commit().expect("there is room").get(), Lsn::new(4));
    drop(journal);
    assert_eq!(numbers(&disk), [1, 2, 3, 4]);
}

#[test]
fn nothing_can_be_appended_to_a_journal_that_has_stopped() {
    let disk = with_records(1);
    let mut journal = open(&disk).expect("it is whole");
    disk.fail(Operation::WriteNow, 0, Fault::Io);
    text(add(&mut journal, 2));
    let message = text(journal.append(&[3; 4]));
    assert!(message.starts_with("the journal has stopped"), "{message}");
}

/// Numbers near the end of all numbers, with a checksum that is right.
#[test]
fn numbers_that_would_overflow_are_reported() {
    let error_of = |change: fn(&mut SegmentHeader)| {
        let mut header = SegmentHeader {
            journal: 1,
            number: 1,
            epoch: 1,
            first: Some(Lsn::FIRST),
            segment_bytes: SEGMENT_BYTES,
            record_bytes: 32,
            previous_crc: 0,
        };
        change(&mut header);
        let mut bytes = header.encode().to_vec();
        bytes.resize(SEGMENT_BYTES as usize, 0);
        let disk = SimDisk::new();
        disk.put(&segment(header.number), bytes);
        let read = Reader::open_in(disk.clone(), Lsn::ZERO)
            .and_then(|mut reader| reader.next_block().map(|_| ()));
        let message = text(open(&disk));
        let what = message
            .split_once(": ")
            .expect("a file and what is wrong")
            .1;
        (what.to_owned(), read.is_ok())
    };
    let beyond = ("its header has numbers beyond the limits".to_owned(), false);
    assert_eq!(error_of(|header| header.number = u64::MAX), beyond);
    assert_eq!(error_of(|header| header.epoch = u64::MAX), beyond);
    assert_eq!(
        error_of(|header| header.first = Some(Lsn::new(u64::MAX - 1))),
        beyond
    );
    // Still read, and not written any more.
    let full = (
        "its numbers leave no room for further records".to_owned(),
        true,
    );
    assert_eq!(error_of(|header| header.number = 1 << 61), full);
    assert_eq!(error_of(|header| header.epoch = 1 << 61), full);
    assert_eq!(
        error_of(|header| header.first = Some(Lsn::new(1 << 61))),
        full
    );
}

#[test]
fn short_writes_are_continued() {
    let disk = with_records(1);
    let mut journal = open(&disk).expect("it is whole");
    for countdown in 0..3 {
        disk.fail(Operation::WriteNow, countdown, Fault::Short);
    }
    add(&mut journal, 2).expect("a short write is none that failed");
    drop(journal);
    disk.restart(1);
    assert_eq!(numbers(&disk), [1, 2]);
}

#[test]
fn a_read_only_directory_is_reported() {
    let disk = SimDisk::new();
    disk.fail(Operation::Lock, 0, Fault::ReadOnly);
    let message = text(open(&disk));
    assert_eq!(
        message,
        "sim: cannot be locked: read-only filesystem or storage medium"
    );
}

#[test]
fn a_directory_in_use_is_reported() {
    let disk = with_records(1);
    let journal = open(&disk).expect("no writer there");
    assert_eq!(text(open(&disk)), "sim: another journal writes here");
    let message = text(thalweg_journal::truncate(&disk, None));
    assert_eq!(message, "sim: another journal writes here");
    assert_eq!(numbers(&disk), [1], "reading is allowed");
    drop(journal);
    open(&disk).expect("it has gone");
}

#[test]
fn a_newer_version_is_reported() {
    let disk = with_records(1);
    let mut bytes = disk.contents(&segment(1)).expect("it is there");
    bytes[8] = 2;
    disk.put(&segment(1), bytes);
    let expected = format!(
        "sim/{}: version 2 of the format; this program knows up to 1",
        segment(1)
    );
    assert_eq!(text(open(&disk)), expected);
    assert_eq!(text(Reader::open_in(disk, Lsn::ZERO)), expected);
}

#[test]
fn a_missing_segment_is_reported() {
    let disk = with_records(10);
    let whole = SimDisk::new();
    for number in [1, 2, 4] {
        whole.put(
            &segment(number),
            disk.contents(&segment(number)).expect("it is there"),
        );
    }
    let expected = format!(
        "sim/{}: this segment is missing; the next is {}",
        segment(3),
        segment(4)
    );
    assert_eq!(text(open(&whole)), expected);
    // The part before it is whole.
    let mut reader = Reader::open_in(whole.clone(), Lsn::ZERO).expect("the first two are there");
    let mut last = Lsn::ZERO;
    let message = loop {
        match reader.next_block() {
            Ok(block) => last = block.expect("it is no end").last(),
            Err(error) => break error.to_string(),
        }
    };
    assert_eq!(message, expected);
    assert!(last > Lsn::FIRST, "{last}");
    // And so is what is behind it.
    let behind = first_readable_after(&whole, last).expect("it can be read");
    let mut reader = Reader::open_in(whole, behind.expect("the fourth")).expect("it is whole");
    let rest = reader
        .records::<Record>()
        .map(|it| it.expect("it is whole").0);
    assert!(rest.eq((behind.expect("the fourth").number()..=10).map(Lsn::new)));
}

#[test]
fn files_that_are_no_segments_of_this_journal_are_reported() {
    let disk = with_records(4);
    let put = |change: fn(&mut Vec<u8>)| {
        let changed = SimDisk::new();
        for number in [1, 2] {
            let mut bytes = disk.contents(&segment(number)).expect("it is there");
            if number == 2 {
                change(&mut bytes);
            }
            changed.put(&segment(number), bytes);
        }
        let message = text(open(&changed));
        let (file, what) = message.split_once(": ").expect("a file and what is wrong");
        assert_eq!(file, format!("sim/{}", segment(2)));
        what.to_owned()
    };
    assert_eq!(
        put(|bytes| bytes[0] = 0),
        "does not begin as a segment does"
    );
    assert_eq!(put(|bytes| bytes[30] ^= 1), "its header is damaged");
    assert_eq!(
        put(|bytes| bytes.truncate(9)),
        "shorter than a segment's header"
    );
    let message = put(|bytes| bytes.truncate(8192));
    assert_eq!(message, "its length is not what its header says");
    let other = |change: fn(&mut SegmentHeader)| {
        let mut header = SegmentHeader {
            journal: 1,
            number: 2,
            epoch: 2,
            first: Some(Lsn::new(4)),
            segment_bytes: SEGMENT_BYTES,
            record_bytes: 32,
            previous_crc: 0,
        };
        change(&mut header);
        let mut bytes = header.encode().to_vec();
        bytes.resize(SEGMENT_BYTES as usize, 0);
        let changed = SimDisk::new();
        changed.put(
            &segment(1),
            disk.contents(&segment(1)).expect("it is there"),
        );
        changed.put(&segment(2), bytes);
        text(open(&changed))
    };
    assert!(other(|_| {}).ends_with("belongs to another journal"));
    let message = other(|header| header.number = 9);
    assert!(
        message.ends_with("its header has another number than its name"),
        "{message}"
    );
}

#[test]
fn records_of_another_size_are_refused() {
    let disk = with_records(1);
    let message = text(Journal::<u64, _>::open_in(disk.clone(), options()));
    assert_eq!(message, "sim: holds records of 32 bytes, not of 8 bytes");
    let message = text(Journal::<[u8], _>::open_in(disk.clone(), options()));
    assert_eq!(message, "sim: holds records of 32 bytes, not of any length");
    let mut reader = Reader::open_in(disk, Lsn::ZERO).expect("it is whole");
    let message = text(reader.records::<u64>().next().expect("there is an answer"));
    assert_eq!(message, "sim: holds records of 32 bytes, not of 8 bytes");
}

#[test]
fn records_that_are_too_long_are_refused() {
    let disk = SimDisk::new();
    let mut journal = Journal::<[u8], _>::open_in(disk.clone(), options()).expect("it is empty");
    let message = text(journal.append_bytes(&[0; 4029]));
    assert_eq!(message, "a record of 4029 bytes; the limit is 4028");
    let message = text(journal.append_bytes_with(usize::MAX, |_| {}));
    let expected = format!("a record of {} bytes; the limit is 4028", usize::MAX);
    assert_eq!(message, expected);
    let shared = Journal::<[u8], _>::open_in(SimDisk::new(), options()).expect("it is empty");
    let message = text(
        shared
            .share(GroupCommit::default())
            .append_bytes_with(4029, |_| {}),
    );
    assert_eq!(message, "a record of 4029 bytes; the limit is 4028");
    journal.append_bytes(&[0; 4028]).expect("it fits");
    let message = text(Journal::<[u64; 600], _>::open_in(SimDisk::new(), options()));
    assert_eq!(message, "a record of 4800 bytes; the limit is 4032");
}

#[test]
fn records_that_are_not_there_are_reported() {
    let disk = with_records(10);
    let mut journal = open(&disk).expect("it is whole");
    assert_eq!(
        journal
            .truncate_before(Lsn::new(6))
            .expect("the disk is well"),
        Lsn::new(4)
    );
    let message = text(Reader::open_in(disk.clone(), Lsn::new(3)));
    assert_eq!(message, "no record 3: there are 4 to 10");
    drop(journal);
    let message = text(thalweg_journal::truncate(&disk, Some(Lsn::new(77))));
    assert_eq!(message, "no record 77: there are 4 to 10");
    let message = text(Reader::open_in(SimDisk::new(), Lsn::ZERO));
    assert_eq!(message, "sim: no journal");
    assert_eq!(
        text(thalweg_journal::truncate(&SimDisk::new(), None)),
        "sim: no journal"
    );
}

#[test]
fn impossible_options_are_refused() {
    let error_of =
        |options: JournalOptions| text(Journal::<u64, _>::open_in(SimDisk::new(), options));
    let default = JournalOptions::default;
    assert_eq!(
        error_of(default().segment_bytes(1000)),
        "segment_bytes is 1000, not a multiple of 4096"
    );
    assert_eq!(
        error_of(default().block_bytes_max(0)),
        "block_bytes_max is 0, not a multiple of 4096"
    );
    assert_eq!(
        error_of(default().block_bytes_max(128 << 20)),
        "block_bytes_max is 134217728; the limit is 67108864"
    );
    assert_eq!(
        error_of(default().block_bytes_max(8192).segment_bytes(8192)),
        "segment_bytes is 8192; blocks of 8192 bytes need 12288 to 1099511627776"
    );
    for first in [0, 1 << 63] {
        let text = error_of(default().first(Lsn::new(first)));
        let begin = format!("the first record is {first}; 1 to ");
        assert!(text.starts_with(&begin), "{text}");
    }
}
