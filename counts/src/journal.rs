//! Records into the buffer and into a journal, whose storage forgets what it is given: what is
//! counted is the library's own work, checksum included.

use std::hint::black_box;
use std::io;

use thalweg_journal::{
    AppendBuffer, GroupCommit, Journal, JournalOptions, Storage, StorageFile, WriteSync,
};

use super::{Cases, Work, rounds};

/// Room for all commits of a case: no segment is full.
const SEGMENT_BYTES: u64 = 2 << 30;
/// The buffer fits into the first cache.
const RECORDS: usize = 512;

pub(super) fn add(cases: &mut Cases) {
    let mut add = |name: &str, work: fn() -> Work| {
        cases.insert(format!("journal/{name}"), work);
    };
    add("buffer/32B/in-place", built);
    add("append-64B", append);
    add("append-bytes-64B", append_bytes);
    add("commit-1", || commit(1));
    add("commit-256", || commit(256));
    add("commit-4096", || commit(4096));
    add("shared-commit-1", shared);
}

fn built() -> Work {
    let look = |records: &mut [[u64; 4]]| {
        black_box(records);
    };
    let mut buffer = AppendBuffer::new(RECORDS, <[u64; 4]>::default, look);
    rounds(move |number| buffer.append_with(|slot| *slot = [number, number ^ 7, number + 1, 0]))
}

/// A directory of files that hold nothing.
#[derive(Debug, Clone)]
struct Forgetful;

#[derive(Debug)]
struct Nothing;

impl Storage for Forgetful {
    type File = Nothing;
    type Lock = ();

    fn location(&self) -> String {
        "nowhere".to_owned()
    }
    fn create_directory(&self) -> io::Result<()> {
        Ok(())
    }
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
    fn create(&self, _: &str) -> io::Result<Nothing> {
        Ok(Nothing)
    }
    fn open(&self, _: &str, _: bool) -> io::Result<Nothing> {
        Ok(Nothing)
    }
    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }
    fn remove(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }
    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }
    fn lock(&self) -> io::Result<Option<()>> {
        Ok(Some(()))
    }
}

impl StorageFile for Nothing {
    fn length_bytes(&self) -> io::Result<u64> {
        Ok(SEGMENT_BYTES)
    }
    fn read_at(&self, _: u64, into: &mut [u8]) -> io::Result<usize> {
        into.fill(0);
        Ok(into.len())
    }
    fn write_at(&self, _: u64, data: &[u8], _: WriteSync) -> io::Result<usize> {
        Ok(black_box(data).len())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn allocate(&self, _: u64) -> io::Result<bool> {
        Ok(true)
    }
}

fn open<K: thalweg_journal::RecordType + ?Sized>() -> Journal<K, Forgetful> {
    let options = JournalOptions::default()
        .segment_bytes(SEGMENT_BYTES)
        .in_background(false)
        .journal_number(1);
    Journal::open_in(Forgetful, options).expect("nothing fails here")
}

/// Blocks are written as they get full.
fn append() -> Work {
    let mut journal = open::<[u64; 8]>();
    rounds(move |number| {
        let lsn = journal.append_with(|slot| *slot = [number; 8]);
        black_box(lsn.expect("nothing fails here"));
    })
}

fn append_bytes() -> Work {
    let mut journal = open::<[u8]>();
    rounds(move |number| {
        let lsn = journal.append_bytes(&black_box([number as u8; 64]));
        black_box(lsn.expect("nothing fails here"));
    })
}

fn commit(records: u64) -> Work {
    let mut journal = open::<[u64; 8]>();
    rounds(move |number| {
        for record in 0..records {
            let lsn = journal.append_with(|slot| *slot = [number ^ record; 8]);
            black_box(lsn.expect("nothing fails here"));
        }
        let _ = black_box(journal.commit().expect("nothing fails here"));
    })
}

/// A thread alone on a shared journal.
fn shared() -> Work {
    let journal = open::<[u64; 8]>().share(GroupCommit::default());
    rounds(move |number| {
        let lsn = journal.append_with(|slot| *slot = [number; 8]);
        let lsn = lsn.expect("nothing fails here");
        let _ = black_box(journal.commit(lsn).expect("nothing fails here"));
    })
}
