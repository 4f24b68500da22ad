//! Flushing, giving up segments, and appends under one lock.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::storage::SimFile;
use crate::{Error, GroupCommit, Journal, JournalOptions, Lsn, Reader, Shared, SimDisk, Storage};

#[test]
fn what_was_flushed_is_there_for_readers_and_not_durable() -> Result<(), Error> {
    let disk = SimDisk::new();
    let journal = Journal::<u64, _>::open_in(disk.clone(), JournalOptions::default())?;
    let journal = journal.share(GroupCommit::default());
    assert!(journal.flush()?);
    let read = || Reader::open_in(disk.clone(), Lsn::ZERO).map(|mut r| r.records::<u64>().count());
    let lsn = journal.append_with(|slot| *slot = 7)?;
    assert_eq!(read()?, 0);
    assert!(journal.flush()?);
    assert_eq!(read()?, 1);
    assert_eq!(journal.durable().get(), Lsn::ZERO);
    assert_eq!(journal.commit(lsn)?.get(), lsn);
    Ok(())
}

/// Three blocks a segment, and segments that are continued before they are durable.
#[test]
fn what_was_flushed_behind_a_load_is_there_for_readers() -> Result<(), Error> {
    let disk = SimDisk::new();
    let options = JournalOptions::default()
        .segment_bytes(16 << 10)
        .block_bytes_max(4 << 10);
    let journal = Journal::<[u64; 8], _>::open_in(disk.clone(), options)?;
    let journal = journal.share(GroupCommit::default());
    for number in 0..1_000 {
        journal.append_with(|slot| *slot = [number; 8])?;
    }
    while !journal.flush()? {
        std::thread::yield_now();
    }
    let mut reader = Reader::open_in(disk, Lsn::ZERO)?;
    assert_eq!(reader.records::<[u64; 8]>().count(), 1_000);
    assert_eq!(journal.append_with(|slot| *slot = [0; 8])?, Lsn::new(1_001));
    Ok(())
}

/// Where a sync says that it has begun, and waits until it may go on.
type Held = Option<(Sender<()>, Receiver<()>)>;

/// A disk that says when names are to be synced, and waits until it may.
#[derive(Clone, Debug)]
struct Slow {
    disk: SimDisk,
    held: Arc<Mutex<Held>>,
}

impl Storage for Slow {
    type File = SimFile;
    type Lock = <SimDisk as Storage>::Lock;

    fn location(&self) -> String {
        self.disk.location()
    }
    fn create_directory(&self) -> io::Result<()> {
        self.disk.create_directory()
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }
    fn create(&self, name: &str) -> io::Result<SimFile> {
        self.disk.create(name)
    }
    fn open(&self, name: &str, writable: bool) -> io::Result<SimFile> {
        self.disk.open(name, writable)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }
    fn sync_names(&self) -> io::Result<()> {
        if let Some((begun, may_end)) = self.held.lock().expect("no panic").take() {
            begun.send(()).expect("the test waits");
            may_end.recv().expect("the test says so");
        }
        self.disk.sync_names()
    }
    fn lock(&self) -> io::Result<Option<Self::Lock>> {
        self.disk.lock()
    }
}

#[test]
fn a_commit_does_not_wait_for_segments_that_go() -> Result<(), Error> {
    let disk = Slow {
        disk: SimDisk::new(),
        held: Arc::default(),
    };
    let options = JournalOptions::default()
        .segment_bytes(16 << 10)
        .block_bytes_max(4 << 10)
        .in_background(false);
    let journal = Journal::<[u64; 8], _>::open_in(disk.clone(), options)?;
    let journal = journal.share(GroupCommit::default());
    let mut last = Lsn::ZERO;
    for number in 0..1_000 {
        last = journal.append_with(|slot| *slot = [number; 8])?;
    }
    let _durable = journal.commit(last)?;
    let (begun, hears) = channel();
    let (lets, may_end) = channel();
    *disk.held.lock().expect("no panic") = Some((begun, may_end));
    let retaining = {
        let journal = journal.clone();
        thread::spawn(move || journal.truncate_before(last))
    };
    hears.recv().expect("segments are given up");
    // The other thread is at it until it is signalled to go on.
    let next = journal.append_with(|slot| *slot = [7; 8])?;
    assert_eq!(journal.commit(next)?.get(), next);
    lets.send(()).expect("it waits");
    let first = retaining.join().expect("no panic")?;
    assert!(first > Lsn::new(900), "{first}");
    assert_eq!(Reader::open_in(disk, Lsn::ZERO)?.next(), first);
    Ok(())
}

#[test]
fn segments_that_are_not_durable_stay() -> Result<(), Error> {
    let options = JournalOptions::default()
        .segment_bytes(16 << 10)
        .block_bytes_max(4 << 10);
    let journal = Journal::<[u64; 8], _>::open_in(SimDisk::new(), options)?;
    let journal = journal.share(GroupCommit::default());
    let mut last = Lsn::ZERO;
    for number in 0..1_000 {
        last = journal.append_with(|slot| *slot = [number; 8])?;
    }
    assert_eq!(journal.truncate_before(last)?, Lsn::FIRST);
    let _durable = journal.commit(last)?;
    assert!(journal.truncate_before(last)? > Lsn::new(900));
    Ok(())
}

fn open(disk: &SimDisk) -> Shared<[u8], SimDisk> {
    let options = JournalOptions::default().block_bytes_max(4 << 10);
    let journal = Journal::<[u8], _>::open_in(disk.clone(), options).expect("a new one");
    journal.share(GroupCommit::default())
}

#[test]
fn records_that_fit_are_those_that_were_appended_one_by_one() {
    let disks = [(); 2].map(|()| SimDisk::new());
    let [alone, together] = [0, 1].map(|at: usize| open(&disks[at]));
    let record = |number: usize| vec![number as u8; 1 + number * 7 % 300];
    let (mut number, mut begun) = (0, 0);
    while number < 500 {
        let mut run = together.lock_appends().expect("it goes on");
        begun += 1;
        while number < 500 {
            let bytes = record(number);
            let Some(slot) = run.claim(bytes.len()) else {
                break;
            };
            slot.copy_from_slice(&bytes);
            number += 1;
            assert_eq!(run.finish(), Lsn::new(number as u64));
        }
        drop(run);
        if number < 500 {
            let bytes = record(number);
            let fill = |slot: &mut [u8]| slot.copy_from_slice(&bytes);
            let appended = together.append_bytes_with(bytes.len(), fill);
            number += 1;
            assert_eq!(appended.expect("there is room"), Lsn::new(number as u64));
        }
    }
    assert!(begun > 10, "{begun}");
    for number in 0..500 {
        let bytes = record(number);
        let fill = |slot: &mut [u8]| slot.copy_from_slice(&bytes);
        alone.append_bytes_with(bytes.len(), fill).expect("room");
    }
    let read = [(alone, &disks[0]), (together, &disks[1])].map(|(journal, disk)| {
        let durable = journal.commit(Lsn::new(500)).expect("the disk works");
        assert_eq!(durable.get(), Lsn::new(500));
        let mut reader = Reader::open_in(disk.clone(), Lsn::ZERO).expect("it is there");
        let mut all = Vec::new();
        while let Some(block) = reader.next_block().expect("it is whole") {
            all.extend(block.bytes().map(|(lsn, bytes)| (lsn, bytes.to_vec())));
        }
        all
    });
    assert_eq!(read[0].len(), 500);
    assert_eq!(read[0], read[1]);
}

#[test]
fn a_thread_that_holds_the_guard_cannot_use_the_journal_beside_it() {
    let journal = open(&SimDisk::new());
    let together = journal.lock_appends().expect("it goes on");
    let refused = journal.append_bytes_with(1, |_| ());
    assert!(matches!(refused, Err(Error::Reentrant)), "{refused:?}");
    assert!(journal.lock_appends().is_err());
    drop(together);
    assert!(journal.append_bytes_with(1, |_| ()).is_ok());
}

#[test]
fn a_record_that_is_not_finished_is_none() {
    let journal = open(&SimDisk::new());
    let mut guard = journal.lock_appends().expect("it goes on");
    guard.claim(3).expect("there is room").fill(1);
    assert_eq!(guard.finish(), Lsn::FIRST);
    guard.claim(5).expect("there is room").fill(2);
    let again = guard.claim(9).expect("there is room");
    assert_eq!(again, [0; 9], "the bytes that it left are gone");
    again.fill(3);
    drop(guard);
    let next = journal.append_bytes_with(3, |slot| assert_eq!(slot, [0; 3]));
    assert_eq!(next.expect("it goes on"), Lsn::new(2));
}

#[test]
#[should_panic(expected = "a record is claimed first")]
fn nothing_is_finished_that_was_not_claimed() {
    let journal = open(&SimDisk::new());
    let mut guard = journal.lock_appends().expect("it goes on");
    guard.claim(3).expect("there is room");
    guard.finish();
    guard.finish();
}

#[test]
#[should_panic(expected = "a record is claimed first")]
fn a_claim_is_forgotten_behind_which_one_found_no_room() {
    let journal = open(&SimDisk::new());
    let mut guard = journal.lock_appends().expect("it goes on");
    guard.claim(3).expect("there is room");
    assert_eq!(guard.claim(1 << 30), None);
    guard.finish();
}
