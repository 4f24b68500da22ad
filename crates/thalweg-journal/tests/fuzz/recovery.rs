//! Any changes to the files of a journal: opening it ends, without a panic, and says the same when
//! it is done again; what can be read is what was written.

use thalweg_journal::format::PAGE_BYTES;
use thalweg_journal::{Journal, JournalOptions, Lsn, Reader, SimDisk};

const SEGMENT_BYTES: u64 = 4 * PAGE_BYTES as u64;
const SEGMENTS: u64 = 3;
/// Bytes of a change: the segment, the page and what is done to it, the place, the new byte.
const CHANGE_BYTES: usize = 4;

fn options() -> JournalOptions {
    JournalOptions::default()
        .segment_bytes(SEGMENT_BYTES)
        .block_bytes_max(PAGE_BYTES as u64)
        .journal_number(1)
        .in_background(false)
}

fn name(segment: u64) -> String {
    format!("{segment:020}.segment")
}

fn written() -> SimDisk {
    let disk = SimDisk::new();
    let journal = Journal::<[u64; 3], _>::open_in(disk.clone(), options());
    let mut journal = journal.expect("the disk is empty");
    for number in 1..=16_u64 {
        let build = |slot: &mut [u64; 3]| *slot = [number; 3];
        journal.append_with(build).expect("the disk is well");
        if number.is_multiple_of(2) {
            let _ = journal.commit().expect("the disk is well");
        }
    }
    disk
}

/// The records up to the end or the first error, and whether there was none.
fn read(disk: &SimDisk) -> (Vec<(Lsn, [u64; 3])>, bool) {
    let Ok(mut reader) = Reader::open_in(disk.clone(), Lsn::ZERO) else {
        return (Vec::new(), false);
    };
    let mut found = Vec::new();
    for record in reader.records() {
        match record {
            Ok(record) => found.push(record),
            Err(_) => return (found, false),
        }
    }
    (found, true)
}

fn change(disk: &SimDisk, changes: &[u8]) {
    for change in changes.chunks_exact(CHANGE_BYTES) {
        let segment = 1 + u64::from(change[0]) % SEGMENTS;
        let Some(mut bytes) = disk.contents(&name(segment)) else {
            continue;
        };
        let page = usize::from(change[1] & 3) * PAGE_BYTES;
        let Some(there) = bytes.get_mut(page..page + PAGE_BYTES) else {
            continue;
        };
        match change[1] >> 2 {
            0 => there.fill(0),
            1 => there.rotate_left(512),
            2 => bytes.truncate(page + usize::from(change[2])),
            3 => {
                let from = usize::from(change[2] & 3) * PAGE_BYTES;
                let to = (from + PAGE_BYTES).min(bytes.len());
                bytes.copy_within(from.min(to)..to, page);
            }
            // In the header or in the first record.
            _ => there[usize::from(change[2]) % 128] ^= change[3],
        }
        disk.put(&name(segment), bytes);
    }
}

/// Checks what must hold of any changes; with a fault, that a changed journal opens.
///
/// # Panics
/// If it does not hold.
pub(crate) fn check(changes: &[u8], has_fault: bool) {
    let disk = written();
    change(&disk, changes);
    let (found, is_whole) = read(&disk);
    for (at, (lsn, record)) in (1..).zip(&found) {
        assert_eq!((lsn.number(), record), (at, &[at; 3]), "an invented record");
    }
    let open = || Journal::<[u64; 3], _>::open_in(disk.clone(), options());
    let Ok(mut journal) = open() else {
        assert!(!has_fault, "a changed journal should open");
        assert!(!is_whole, "a reader says that it is whole");
        return;
    };
    let recovery = journal.recovery().clone();
    if is_whole {
        assert_eq!(recovery.last.number(), found.len() as u64);
    }
    let lsn = journal.append(&[recovery.last.number() + 1; 3]);
    let durable = journal.commit().expect("the disk is well").get();
    assert_eq!(lsn.expect("there is room"), durable);
    drop(journal);
    disk.restart(u64::from(changes.first().copied().unwrap_or(0)));
    let again = open().expect("it opened before");
    assert_eq!(
        (again.recovery().last, &again.recovery().torn),
        (durable, &None)
    );
    drop(again);
    if is_whole {
        assert_eq!(read(&disk).0.len(), found.len() + 1);
    }
}
