//! A reader of a directory whose writer renames files meanwhile: what it may see for a moment is no
//! damage.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use thalweg_journal::{Journal, JournalOptions, Lsn, Reader, SimDisk, Storage};

/// A storage whose first lists of names lack the middle one.
#[derive(Debug, Clone)]
struct Unsteady(SimDisk, Arc<AtomicU32>);

impl Storage for Unsteady {
    type File = <SimDisk as Storage>::File;
    type Lock = <SimDisk as Storage>::Lock;

    fn location(&self) -> String {
        self.0.location()
    }

    fn create_directory(&self) -> io::Result<()> {
        self.0.create_directory()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = self.0.list()?;
        // ORDERING: Relaxed, pairs with itself; there is one thread.
        if self.1.fetch_add(1, Ordering::Relaxed) < 3 {
            names.retain(|name| !name.ends_with("2.segment"));
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Self::File> {
        self.0.create(name)
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<Self::File> {
        self.0.open(name, writable)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.0.sync_names()
    }

    fn lock(&self) -> io::Result<Option<Self::Lock>> {
        self.0.lock()
    }
}

#[test]
fn names_that_a_list_misses_are_looked_for_again() {
    let disk = SimDisk::new();
    let options = JournalOptions::default()
        .segment_bytes(12 << 10)
        .block_bytes_max(4 << 10)
        .in_background(false);
    let mut journal = Journal::<u64, _>::open_in(disk.clone(), options).expect("it is empty");
    for number in 1..=8 {
        journal
            .append_with(|slot| *slot = number)
            .expect("there is room");
        let _ = journal.commit().expect("the disk is well");
    }
    let unsteady = Unsteady(disk, Arc::default());
    let mut reader = Reader::open_in(unsteady, Lsn::ZERO).expect("it is all there");
    assert_eq!(reader.records::<u64>().count(), 8);
}
