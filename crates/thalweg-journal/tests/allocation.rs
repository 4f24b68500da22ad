//! Appends, commits and reads allocate nothing once they have begun, apart from a new segment.

#![cfg(unix)]

use thalweg_journal::{AppendBuffer, GroupCommit, Journal, JournalOptions, Lsn, Reader};
use thalweg_testkit::Scratch;
use thalweg_testkit::counting::calls;

thalweg_testkit::count_allocations!();

#[test]
fn a_journal_allocates_nothing_on_its_way() {
    let place = Scratch::within(env!("CARGO_TARGET_TMPDIR"), "allocation");
    let options = JournalOptions::default().segment_bytes(4 << 20);
    let mut journal = Journal::<u64>::open(&place, options).expect("no other writer");
    let mut append = |records: u64| {
        for number in 0..records {
            journal
                .append_with(|slot| *slot = number)
                .expect("there is room");
            if number.is_multiple_of(1_000) {
                let _ = journal.commit().expect("the disk is well");
            }
        }
    };
    append(10);
    assert_eq!(calls(|| append(50_000)), 0);
    let journal = journal.share(GroupCommit::default());
    let commit = || {
        let lsn = journal.append_with(|slot| *slot = 1);
        let durable = journal.commit(lsn.expect("there is room"));
        assert!(durable.is_ok());
    };
    commit();
    assert_eq!(calls(|| (0..50).for_each(|_| commit())), 0);
    let mut reader = Reader::open(&place, Lsn::FIRST).expect("it is there");
    // The buffer grows to the longest block so far: that of 1,000 records is among these.
    for _ in 0..10 {
        reader.next_block().expect("it is whole");
    }
    let read = || {
        for _ in 0..30 {
            let block = reader.next_block().expect("it is whole");
            assert!(block.is_some());
        }
    };
    assert_eq!(calls(read), 0);
}

#[test]
fn a_buffer_allocates_nothing_on_its_way() {
    let mut sum = 0;
    let full = |records: &mut [u64]| sum += records.iter().sum::<u64>();
    let mut buffer = AppendBuffer::new(100, || 0, full);
    let append = || (0..1_000).for_each(|number| buffer.append_with(|slot| *slot = number));
    assert_eq!(calls(append), 0);
}
