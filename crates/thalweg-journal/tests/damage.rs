//! Recovery of a journal whose bytes were changed, and the journal that a truncation leaves.

use thalweg_journal::{
    Error, Journal, JournalOptions, Lsn, Reader, SimDisk, Storage, TornWrite, truncate,
};

const PAGE: usize = 4096;
/// Three blocks of a page a segment.
const SEGMENT_BYTES: u64 = 4 * PAGE as u64;

type SimJournal = Journal<[u64; 2], SimDisk>;

fn open(disk: &SimDisk) -> Result<SimJournal, Error> {
    let options = JournalOptions::default()
        .segment_bytes(SEGMENT_BYTES)
        .block_bytes_max(PAGE as u64)
        .in_background(false);
    Journal::open_in(disk.clone(), options)
}

fn segment(number: u64) -> String {
    format!("{number:020}.segment")
}

/// Blocks of two records, each committed.
fn with_blocks(blocks: u64) -> SimDisk {
    let disk = SimDisk::new();
    let mut journal = open(&disk).expect("the disk is empty");
    for number in 0..2 * blocks {
        let build = |record: &mut [u64; 2]| *record = [number, !number];
        journal.append_with(build).expect("the disk is well");
        if number % 2 == 1 {
            let _ = journal.commit().expect("the disk is well");
        }
    }
    disk
}

fn damage(disk: &SimDisk, number: u64, byte: usize) {
    let mut bytes = disk.contents(&segment(number)).expect("it is there");
    bytes[byte] ^= 1;
    disk.put(&segment(number), bytes);
}

/// The records up to the end or the first error.
fn read(disk: &SimDisk) -> (usize, Result<Option<TornWrite>, Error>) {
    let mut reader = match Reader::open_in(disk.clone(), Lsn::ZERO) {
        Ok(reader) => reader,
        Err(error) => return (0, Err(error)),
    };
    let mut records = 0;
    for record in reader.records::<[u64; 2]>() {
        match record {
            Ok((lsn, record)) => {
                assert_eq!(lsn, Lsn::new(record[0] + 1));
                records += 1;
            }
            Err(error) => return (records, Err(error)),
        }
    }
    (records, Ok(reader.torn().cloned()))
}

/// Returns how many records there are, where nothing is wrong.
fn whole(disk: &SimDisk) -> usize {
    let (records, end) = read(disk);
    assert_eq!(end.expect("it is whole"), None);
    records
}

#[test]
fn a_torn_tail_is_removed_and_reported_once() {
    let disk = with_blocks(5);
    // The second block of the second segment, in its second record.
    damage(&disk, 2, 2 * PAGE + 64 + 16);
    let (records, end) = read(&disk);
    let torn = end.expect("nothing follows").expect("reported");
    let expected = format!(
        "sim/{}: an unfinished write at byte 8192 (record 9) was left out",
        segment(2)
    );
    assert_eq!((records, torn.to_string()), (8, expected));
    let mut journal = open(&disk).expect("nothing durable is known to be missing");
    assert_eq!(journal.recovery().torn, Some(torn));
    assert_eq!(journal.recovery().last, Lsn::new(8));
    let lsn = journal
        .append_with(|record| *record = [8, 0])
        .expect("the disk is well");
    assert_eq!(lsn, Lsn::new(9));
    drop(journal);
    assert_eq!(open(&disk).expect("it is whole").recovery().torn, None);
}

#[test]
fn whole_blocks_behind_a_bad_one_mean_damage() {
    for byte in [0, 8, 16, 24, 32, 36, 40, 60, 64, 95] {
        let disk = with_blocks(5);
        damage(&disk, 2, PAGE + byte);
        let message = open(&disk)
            .expect_err("records 7 and 8 were durable")
            .to_string();
        let expected = format!(
            "sim/{}: damaged at byte 4096: record 7 was durable and cannot be read: later blocks \
             are whole and say so",
            segment(2)
        );
        assert_eq!(message, expected, "byte {byte}");
        let (records, end) = read(&disk);
        assert_eq!(
            (records, end.expect_err("damage").to_string()),
            (6, expected)
        );
    }
}

#[test]
fn damage_in_the_padding_of_a_block_is_ignored() {
    let disk = with_blocks(5);
    damage(&disk, 2, PAGE + 96);
    assert_eq!(read(&disk).0, 10);
}

#[test]
fn damage_in_an_earlier_segment_is_found_by_readers() {
    let disk = with_blocks(8);
    damage(&disk, 1, 3 * PAGE + 70);
    open(&disk).expect("only the last segment is read");
    let (records, end) = read(&disk);
    let message = end.expect_err("damage").to_string();
    assert_eq!(records, 4);
    let why =
        "record 5 was durable and cannot be read: the next segment begins with a later record";
    assert!(message.ends_with(why), "{message}");
}

/// The last segment is lost, alone or with those that are prepared behind it, or is as new.
#[test]
fn a_tail_that_is_lost_from_the_begin_of_a_segment_on_is_missed() {
    let header_only = |disk: &SimDisk, number| {
        let mut bytes = disk.contents(&segment(number)).expect("it is there");
        bytes[..PAGE].fill(0);
        disk.put(&segment(number), bytes);
    };
    let one = |disk: &SimDisk, number| disk.remove(&segment(number)).expect("it is there");
    let all = |disk: &SimDisk, from| {
        for number in from..=9 {
            let _ = disk.remove(&segment(number));
        }
    };
    let as_new = |disk: &SimDisk, number| {
        let mut bytes = disk.contents(&segment(number)).expect("it is there");
        // As when it was prepared: without a first record.
        let sum = |bytes: &[u8]| crc32c::crc32c(&bytes[16..64]);
        bytes[40..48].fill(0xFF);
        bytes[60..64].fill(0);
        let sum = sum(&bytes).to_le_bytes();
        bytes[12..16].copy_from_slice(&sum);
        disk.put(&segment(number), bytes);
    };
    for (blocks, lost) in [(4, 2), (7, 3), (8, 3)] {
        for at in 0..4 {
            let disk = with_blocks(blocks);
            match at {
                0 => header_only(&disk, lost),
                1 => one(&disk, lost),
                2 => all(&disk, lost),
                _ => as_new(&disk, lost),
            }
            let error = open(&disk).expect_err("records were durable");
            let error = error.to_string();
            assert!(error.contains(&segment(lost)), "{at}: {error}");
            let (_, end) = read(&disk);
            assert!(end.is_err(), "{at}: {blocks}");
            let left = truncate(&disk, None).expect("what is before is whole");
            assert_eq!(left.last, Lsn::new((lost - 1) * 6));
            assert_eq!(whole(&disk) as u64, (lost - 1) * 6);
            open(&disk).expect("nothing is reported missing");
        }
    }
}

/// A block that another journal wrote is none of this one, though its checksum is right.
#[test]
fn a_record_cannot_pass_for_a_block() {
    let disk = with_blocks(2);
    let other = with_blocks(3);
    let mut bytes = disk.contents(&segment(1)).expect("it is there");
    let foreign = other.contents(&segment(1)).expect("it is there");
    bytes[PAGE + 64] ^= 1;
    bytes[2 * PAGE..].copy_from_slice(&foreign[2 * PAGE..]);
    disk.put(&segment(1), bytes);
    // The blocks behind the damage would prove it, were they of this journal.
    assert!(open(&disk).expect("a torn tail").recovery().torn.is_some());
}

#[test]
fn a_truncation_removes_damage_and_what_is_behind_it() {
    let disk = with_blocks(8);
    damage(&disk, 1, 3 * PAGE + 70);
    let done = truncate(&disk, None).expect("no writer");
    assert_eq!(
        (done.last, done.offset_bytes),
        (Lsn::new(4), 3 * PAGE as u64)
    );
    assert_eq!(
        (done.file, done.segments_removed),
        (format!("sim/{}", segment(1)), 2)
    );
    assert_eq!(whole(&disk), 4);
    let mut journal = open(&disk).expect("it is whole");
    assert_eq!(journal.next(), Lsn::new(5));
    journal.append(&[4, 0]).expect("the disk is well");
    let _ = journal.commit().expect("the disk is well");
    drop(journal);
    assert_eq!(whole(&disk), 5);
}

#[test]
fn a_truncation_is_between_blocks() {
    let disk = with_blocks(5);
    let error = truncate(&disk, Some(Lsn::new(4))).expect_err("it is the second of its block");
    assert_eq!(
        error.to_string(),
        "record 4 is inside a block: truncate at 3 or at 5"
    );
    assert_eq!(read(&disk).0, 10);
    let done = truncate(&disk, Some(Lsn::new(7))).expect("the first of a segment");
    assert_eq!(done.last, Lsn::new(6));
    assert_eq!(whole(&disk), 6);
    let done = truncate(&disk, Some(Lsn::FIRST)).expect("all of it");
    assert_eq!(done.last, Lsn::ZERO);
    assert_eq!(whole(&disk), 0);
    assert_eq!(open(&disk).expect("it is empty").next(), Lsn::FIRST);
}

/// A crash takes one block and keeps the one behind it; a client sends the record of the first
/// again. A record that was reported as lost stays lost.
#[test]
fn a_lost_block_does_not_come_back_behind_the_same_bytes() {
    let disk = with_blocks(1);
    let append = |numbers: std::ops::Range<u64>, journal: &mut SimJournal| {
        for number in numbers {
            let lsn = journal.append(&[number, !number]);
            lsn.expect("the disk is well");
        }
        journal.flush().expect("the disk is well");
    };
    let mut journal = open(&disk).expect("it is whole");
    append(2..4, &mut journal);
    append(4..6, &mut journal);
    drop(journal);
    let mut bytes = disk.contents(&segment(1)).expect("it is there");
    bytes[2 * PAGE..3 * PAGE].fill(0);
    disk.put(&segment(1), bytes);
    let mut journal = open(&disk).expect("records 3 to 6 were not durable");
    assert_eq!(journal.recovery().last, Lsn::new(2));
    append(2..4, &mut journal);
    drop(journal);
    assert_eq!(whole(&disk), 4);
}

/// A header that is damaged, or a segment that is not there: what is before it is kept.
#[test]
fn a_truncation_is_made_before_a_segment_that_is_bad_or_missing() {
    let bad = with_blocks(8);
    damage(&bad, 2, 20);
    let missing = with_blocks(8);
    missing.remove(&segment(2)).expect("it is there");
    for (disk, removed) in [(bad, 2), (missing, 1)] {
        let before = open(&disk).expect_err("damage").to_string();
        let done = truncate(&disk, None).expect("no writer");
        assert_eq!(
            (done.last, done.segments_removed),
            (Lsn::new(6), removed),
            "{before}"
        );
        assert_eq!(whole(&disk), 6);
        assert_eq!(open(&disk).expect("it is whole").next(), Lsn::new(7));
    }
    let first = with_blocks(8);
    damage(&first, 1, 20);
    let message = truncate(&first, None)
        .expect_err("nothing would be left")
        .to_string();
    assert_eq!(
        message,
        format!("sim/{}: its header is damaged", segment(1))
    );
}

/// Records that look like blocks, on every page behind the end, as long as the file: what a hostile
/// client may have written before a crash, and what a file that is used again may hold.
#[test]
fn what_looks_like_blocks_everywhere_takes_no_longer_to_read() {
    const SEGMENT_BYTES: usize = 4 << 20;
    let disk = SimDisk::new();
    let options = || {
        JournalOptions::default()
            .segment_bytes(SEGMENT_BYTES as u64)
            .in_background(false)
    };
    let journal = Journal::<[u64; 2], _>::open_in(disk.clone(), options());
    let mut journal = journal.expect("the disk is empty");
    journal.append(&[1, 2]).expect("there is room");
    let _ = journal.commit().expect("the disk is well");
    drop(journal);
    let mut bytes = disk.contents(&segment(1)).expect("it is there");
    for page in (2 * PAGE..SEGMENT_BYTES).step_by(PAGE) {
        bytes.copy_within(PAGE..PAGE + 64, page);
        // Durable, and the length.
        bytes[page + 24] = 2;
        let length = (SEGMENT_BYTES - page) as u32;
        bytes[page + 36..page + 40].copy_from_slice(&length.to_le_bytes());
    }
    disk.put(&segment(1), bytes);
    let before = disk.operations();
    let journal = Journal::<[u64; 2], _>::open_in(disk.clone(), options());
    let journal = journal.expect("none of them is whole");
    assert!(journal.recovery().torn.is_some());
    let pages = (SEGMENT_BYTES / PAGE) as u64;
    // Each is wiped, which is one write; reads are of 256 KiB.
    let operations = disk.operations() - before;
    assert!(operations < pages + pages / 10, "{operations}");
}
