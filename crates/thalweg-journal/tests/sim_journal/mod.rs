//! A journal on a simulated disk with one record a block and three blocks a segment.

use thalweg_journal::{Error, Journal, JournalOptions, Lsn, SimDisk};

pub(crate) type Record = [u64; 4];
pub(crate) type SimJournal = Journal<Record, SimDisk>;

pub(crate) const SEGMENT_BYTES: u64 = 16 << 10;

pub(crate) fn options() -> JournalOptions {
    JournalOptions::default()
        .segment_bytes(SEGMENT_BYTES)
        .block_bytes_max(4096)
        .in_background(false)
}

pub(crate) fn open(disk: &SimDisk) -> Result<SimJournal, Error> {
    Journal::open_in(disk.clone(), options())
}

/// Appends and commits one record.
pub(crate) fn add(journal: &mut SimJournal, number: u64) -> Result<Lsn, Error> {
    journal.append_with(|record| *record = [number; 4])?;
    Ok(journal.commit()?.get())
}

/// Makes a closed journal with `records` records.
pub(crate) fn with_records(records: u64) -> SimDisk {
    let disk = SimDisk::new();
    let mut journal = open(&disk).expect("the disk is empty");
    for number in 1..=records {
        add(&mut journal, number).expect("the disk is well");
    }
    disk
}

pub(crate) fn segment(number: u64) -> String {
    format!("{number:020}.segment")
}
