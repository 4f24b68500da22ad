//! A program that changes its working directory, as daemons do. Alone in its process.

#![cfg(unix)]

use std::env;
use std::fs;

use thalweg_journal::{Journal, JournalOptions, Lsn, Reader};
use thalweg_testkit::Scratch;

#[test]
fn a_journal_stays_where_it_was_opened() {
    let base = Scratch::within(env!("CARGO_TARGET_TMPDIR"), "working-directory");
    fs::create_dir_all(base.join("elsewhere")).expect("the test's own folder");
    env::set_current_dir(&base).expect("it was made");
    let options = JournalOptions::default()
        .segment_bytes(16 << 10)
        .block_bytes_max(4 << 10);
    let mut journal = Journal::<u64>::open("log", options).expect("no other writer");
    env::set_current_dir("elsewhere").expect("it was made");
    for number in 0..10_000 {
        journal
            .append_with(|slot| *slot = number)
            .expect("further segments are made where the first is");
    }
    let _ = journal.commit().expect("the disk is well");
    let follower = journal.follow(Lsn::ZERO);
    assert!(follower.is_ok(), "{follower:?}");
    drop(journal);
    let mut reader = Reader::open("../log", Lsn::ZERO).expect("it is there");
    assert_eq!(reader.records::<u64>().count(), 10_000);
    assert_eq!(fs::read_dir(".").expect("it was made").count(), 0);
}
