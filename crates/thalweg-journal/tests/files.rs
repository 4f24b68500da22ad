//! A journal in a real directory: a second writer, sizes that change, and files of version 1.

#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};

use thalweg_journal::{Files, GroupCommit, Journal, JournalOptions, Lsn, Reader, Storage};
use thalweg_testkit::Scratch;

fn scratch() -> Scratch {
    Scratch::within(env!("CARGO_TARGET_TMPDIR"), "files")
}

fn options() -> JournalOptions {
    JournalOptions::default()
        .segment_bytes(64 << 10)
        .block_bytes_max(16 << 10)
}

fn read(place: &Path) -> Vec<u64> {
    let mut reader = Reader::open(place, Lsn::ZERO).expect("there is a journal");
    let records = reader.records::<u64>();
    records
        .map(|record| record.expect("it is whole").1)
        .collect()
}

#[test]
fn a_journal_is_written_read_and_opened_again() {
    let scratch = scratch();
    let place = scratch.join("again").join("made/with its parents");
    let mut next = 0;
    for _ in 0..5 {
        let mut journal = Journal::<u64>::open(&place, options()).expect("no other writer");
        assert_eq!(journal.next(), Lsn::new(next + 1));
        for _ in 0..9_000 {
            journal
                .append_with(|slot| *slot = next)
                .expect("there is room");
            next += 1;
            if next.is_multiple_of(500) {
                let _ = journal.commit().expect("the disk is well");
            }
        }
    }
    assert_eq!(read(&place), (0..next).collect::<Vec<u64>>());
}

#[test]
fn a_second_writer_is_refused_and_readers_are_not() {
    let scratch = scratch();
    let place = scratch.join("locked");
    let journal = Journal::<u64>::open(&place, options()).expect("no other writer");
    let error = Journal::<u64>::open(&place, options()).expect_err("there is one");
    let expected = format!("{}: another journal writes here", place.display());
    assert_eq!(error.to_string(), expected);
    let journal = journal.share(GroupCommit::default());
    let lsn = journal
        .append_with(|slot| *slot = 1)
        .expect("there is room");
    let _ = journal.commit(lsn).expect("the disk is well");
    assert_eq!(read(&place), [1]);
    drop(journal);
    Journal::<u64>::open(&place, options()).expect("it has gone");
}

#[test]
fn a_place_that_is_no_directory_is_reported() {
    let scratch = scratch();
    let place = scratch.join("a file");
    fs::write(&place, "x").expect("the test's own folder");
    let error = Journal::<u64>::open(&place, options()).expect_err("it is a file");
    let expected = format!("{}: cannot be made: not a directory", place.display());
    assert_eq!(error.to_string(), expected);
    let error = Reader::open(&place, Lsn::ZERO).expect_err("it is a file");
    let expected = format!("{}: cannot be read: Not a directory", place.display());
    assert_eq!(error.to_string(), expected);
    fs::remove_file(&place).expect("the test's own file");
    let error = Reader::open(&place, Lsn::ZERO).expect_err("it is not there");
    assert_eq!(
        error.to_string(),
        format!("{}: no journal", place.display())
    );
}

#[test]
fn sizes_may_change_between_two_lives() {
    let scratch = scratch();
    let place = scratch.join("sizes");
    let mut expected = Vec::new();
    for (segment_bytes, block_bytes_max) in [(16, 8), (64, 32), (24, 4)] {
        let options = options()
            .segment_bytes(segment_bytes << 10)
            .block_bytes_max(block_bytes_max << 10);
        let mut journal = Journal::<u64>::open(&place, options).expect("no other writer");
        for number in 0..20_000 {
            journal
                .append_with(|slot| *slot = number)
                .expect("there is room");
            expected.push(number);
        }
        let _ = journal.commit().expect("the disk is well");
    }
    assert_eq!(read(&place), expected);
}

const OLD: [(&str, u32); 2] = [("v1-fixed", 12), ("v1-varying", 0)];

fn stored(name: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    data.join(name)
}

fn record(number: u8) -> [u8; 12] {
    std::array::from_fn(|at| number * 16 + at as u8)
}

/// Writes the content of the stored journals: three blocks in two segments.
fn write_old(place: &Path, record_bytes: u32) {
    let options = JournalOptions::default()
        .segment_bytes(12 << 10)
        .block_bytes_max(4 << 10)
        .in_background(false)
        .journal_number(0x0123_4567_89AB_CDEF);
    let mut fixed = None;
    let mut varying = None;
    match record_bytes {
        0 => varying = Some(Journal::<[u8]>::open(place, options).expect("it is empty")),
        _ => fixed = Some(Journal::<[u8; 12]>::open(place, options).expect("it is empty")),
    }
    for number in 0..6 {
        if let Some(journal) = &mut fixed {
            journal.append(&record(number)).expect("there is room");
        }
        if let Some(journal) = &mut varying {
            let bytes = &record(number)[..usize::from(number) * 2];
            journal.append_bytes(bytes).expect("there is room");
        }
        if number % 2 == 1 {
            let _ = fixed
                .as_mut()
                .map(|journal| journal.commit().expect("the disk is well"));
            let _ = varying
                .as_mut()
                .map(|journal| journal.commit().expect("the disk is well"));
        }
    }
}

/// Files that were written by the first version open, and hold what they held.
#[test]
fn files_of_version_1_open() {
    for (name, record_bytes) in OLD {
        let mut reader = Reader::open(stored(name), Lsn::ZERO).expect("it is checked in");
        assert_eq!(reader.record_bytes(), record_bytes);
        let mut found = Vec::new();
        while let Some(block) = reader.next_block().expect("it is whole") {
            found.extend(
                block
                    .bytes()
                    .map(|(lsn, bytes)| (lsn.number(), bytes.to_vec())),
            );
        }
        let expected = (0..6_u8).map(|number| {
            let bytes = match record_bytes {
                0 => record(number)[..usize::from(number) * 2].to_vec(),
                _ => record(number).to_vec(),
            };
            (u64::from(number) + 1, bytes)
        });
        assert_eq!(found, expected.collect::<Vec<_>>(), "{name}");
        // And they can be written on.
        let scratch = scratch();
        let place = scratch.join(name);
        fs::create_dir_all(&place).expect("the test's own folder");
        for entry in fs::read_dir(stored(name)).expect("it is checked in") {
            let from = entry.expect("it is checked in").path();
            let to = place.join(from.file_name().expect("it has a name"));
            fs::copy(from, to).expect("the test's own folder");
        }
        let next = match record_bytes {
            0 => Journal::<[u8]>::open(&place, options()).map(|journal| journal.next()),
            _ => Journal::<[u8; 12]>::open(&place, options()).map(|journal| journal.next()),
        };
        assert_eq!(next.expect("it is whole"), Lsn::new(7));
    }
}

/// A journal is always written to the same bytes: `docs/journal-format.md` says which.
#[test]
fn the_format_has_not_changed() {
    for (name, record_bytes) in OLD {
        let scratch = scratch();
        let place = scratch.join(format!("{name}-new"));
        write_old(&place, record_bytes);
        for number in [1, 2] {
            let file = format!("{number:020}.segment");
            let written = fs::read(place.join(&file)).expect("it was written");
            let old = fs::read(stored(name).join(&file)).expect("it is checked in");
            assert!(written == old, "{name}/{file} differs");
        }
        assert_eq!(
            thalweg_journal::truncate(&Files::new(&place), None)
                .expect("whole")
                .last
                .number(),
            6
        );
    }
}

/// Writes these numbers as records, and commits.
fn fill(journal: &mut Journal<u64>, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let appended = journal.append_with(|slot| *slot = number);
        appended.expect("there is room");
    }
    let _ = journal.commit().expect("the disk is well");
}

#[test]
fn what_is_given_up_is_in_the_archive_and_is_read_with_the_rest() {
    let scratch = scratch();
    let (place, archive) = (scratch.join("archived"), scratch.join("archive"));
    let files = Files::new(&place).archiving(&archive);
    let mut journal = Journal::<u64, Files>::open_in(files, options()).expect("no other writer");
    let all = 30_000;
    fill(&mut journal, 0..all);
    let last = Lsn::new(all);
    // The archive's disk is not there: nothing goes, and the journal goes on.
    let names = || Files::new(&place).list().expect("it is there").len();
    let before = names();
    let error = journal
        .truncate_before(last)
        .expect_err("there is no archive");
    let text = error.to_string();
    assert!(text.contains("cannot be archived: the archive "), "{text}");
    assert!(text.ends_with("archive is not there"), "{text}");
    assert!(matches!(error, thalweg_journal::Error::Archive { .. }));
    assert_eq!(names(), before);
    assert_eq!(read(&place).len(), all as usize);
    fill(&mut journal, all..all + 9);
    // It comes back.
    fs::create_dir(&archive).expect("it can be made");
    let first = journal.truncate_before(last).expect("the disk is well");
    assert!(first > Lsn::new(20_000), "{first}");
    let kept = read(&place);
    assert_eq!(kept.first(), Some(&(first.number() - 1)));
    let both = Files::new(&place).with_archive(&archive);
    let mut reader = Reader::open_in(both, Lsn::ZERO).expect("there is a journal");
    let records = reader.records::<u64>();
    let records: Vec<u64> = records
        .map(|record| record.expect("it is whole").1)
        .collect();
    assert_eq!(records, (0..all + 9).collect::<Vec<u64>>());
}

#[test]
fn a_directory_that_is_made_is_its_owner_s_alone() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = scratch();
    let above = scratch.join("private");
    let place = above.join("journal");
    let _journal = Journal::<u64>::open(&place, options()).expect("no other writer");
    for place in [above, place] {
        let mode = fs::metadata(place).expect("it is there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
    }
}
