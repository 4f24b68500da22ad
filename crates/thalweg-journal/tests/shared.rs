//! Group commit with several threads; every one of them gets the error of a failure.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;
use std::{fmt, io};

use thalweg_journal::{
    Error, Fault, GroupCommit, Journal, JournalOptions, Lsn, Operation, Reader, Shared, SimDisk,
    SimFile, Storage, StorageFile, WriteSync,
};

const THREADS: u64 = 6;
const EACH: u64 = 400;

fn options() -> JournalOptions {
    JournalOptions::default()
        .segment_bytes(64 << 10)
        .block_bytes_max(4 << 10)
}

fn shared(disk: &SimDisk, group: GroupCommit) -> Shared<[u64; 2], SimDisk> {
    let journal = Journal::open_in(disk.clone(), options()).expect("no other writer");
    journal.share(group)
}

/// All records of all threads are there, those of each thread in order.
fn each_in_order(disk: &SimDisk) {
    let mut reader = Reader::open_in(disk.clone(), Lsn::ZERO).expect("it is there");
    let mut next = [0; THREADS as usize];
    for record in reader.records::<[u64; 2]>() {
        let [client, number] = record.expect("it is whole").1;
        assert_eq!(next[client as usize], number);
        next[client as usize] += 1;
    }
    assert_eq!(next, [EACH; THREADS as usize]);
}

/// Each thread appends and commits its records; what is durable by then is in order, and holds all.
fn everybody_commits(group: GroupCommit) -> SimDisk {
    let disk = SimDisk::new();
    let journal = shared(&disk, group);
    thread::scope(|scope| {
        for client in 0..THREADS {
            let journal = journal.clone();
            scope.spawn(move || {
                for number in 0..EACH {
                    let build = |slot: &mut [u64; 2]| *slot = [client, number];
                    let lsn = journal.append_with(build).expect("the disk is well");
                    let durable = journal.commit(lsn).expect("the disk is well");
                    assert_eq!(durable.get(), lsn);
                    assert!(journal.durable().get() >= lsn);
                }
            });
        }
    });
    assert_eq!(journal.durable().get(), Lsn::new(THREADS * EACH));
    drop(journal);
    disk.restart(7);
    each_in_order(&disk);
    disk
}

#[test]
fn a_group_needs_no_delay() {
    everybody_commits(GroupCommit::default());
}

/// Every client waits, so a group is complete when it has a record of each.
#[test]
fn a_group_is_written_when_it_has_enough_records() {
    let group = GroupCommit {
        // It would be a long test if the group had to wait for this.
        delay_max: Duration::from_secs(3600),
        records_max: 1,
        ..GroupCommit::default()
    };
    everybody_commits(group);
    let group = GroupCommit {
        records_max: u32::MAX,
        bytes_max: 1,
        ..group
    };
    everybody_commits(group);
}

#[test]
fn a_delay_ends() {
    let group = GroupCommit {
        delay_max: Duration::from_micros(200),
        records_max: u32::MAX,
        bytes_max: usize::MAX,
    };
    everybody_commits(group);
}

/// A delay as long as a life, and a group that fills the block: the thread that does not get room
/// anymore ends the wait.
#[test]
fn a_full_block_ends_the_delay() {
    let disk = SimDisk::new();
    let group = GroupCommit {
        delay_max: Duration::from_secs(3600),
        records_max: u32::MAX,
        bytes_max: usize::MAX,
    };
    let journal = shared(&disk, group);
    let first = journal
        .append_with(|slot| *slot = [1; 2])
        .expect("there is room");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| journal.commit(first));
        while !waiting.is_finished() {
            journal
                .append_with(|slot| *slot = [2; 2])
                .expect("the disk is well");
            thread::yield_now();
        }
        let durable = waiting.join().expect("it does not panic");
        assert_eq!(durable.expect("the disk is well").get(), first);
    });
}

/// The sync fails under the leader; all threads that wait get the error, and so does one that comes
/// later.
#[test]
fn a_failed_sync_is_heard_by_everybody() {
    for countdown in 0..40 {
        let disk = SimDisk::new();
        // A segment that a thread makes ready may fail as well, and is then made again.
        let options = options().in_background(false);
        let journal = Journal::<[u64; 2], _>::open_in(disk.clone(), options).expect("it is empty");
        let journal = journal.share(GroupCommit::default());
        disk.fail(Operation::WriteNow, countdown, Fault::Io);
        let begin = Barrier::new(THREADS as usize);
        let (journal, begin) = (&journal, &begin);
        let ended: Vec<(u64, Error)> = thread::scope(|scope| {
            let clients = (0..THREADS).map(|client| {
                scope.spawn(move || {
                    begin.wait();
                    let mut acknowledged = 0;
                    loop {
                        let appended = journal.append_with(|slot| *slot = [client, 0]);
                        match appended.and_then(|lsn| journal.commit(lsn)) {
                            Ok(durable) => acknowledged = durable.get().number(),
                            Err(error) => return (acknowledged, error),
                        }
                    }
                })
            });
            let clients: Vec<_> = clients.collect();
            let ended = clients.into_iter().map(|client| client.join());
            ended.map(|end| end.expect("no panic")).collect()
        });
        for (_, error) in &ended {
            let text = error.to_string();
            assert!(
                text.ends_with("cannot be written: Input/output error"),
                "{text}"
            );
        }
        let acknowledged = ended.iter().map(|end| end.0).max().unwrap_or(0);
        disk.restart(countdown);
        let journal = Journal::<[u64; 2], _>::open_in(disk, self::options()).expect("it is whole");
        assert!(journal.recovery().last.number() >= acknowledged);
    }
}

/// The disk is full now and then: a thread that gets the error tries again, and nothing is lost or
/// twice there.
#[test]
fn a_full_disk_is_reported_and_the_journal_goes_on_when_there_is_room() {
    for delay_max in [Duration::ZERO, Duration::from_micros(100)] {
        let disk = SimDisk::new();
        let options = options().segment_bytes(12 << 10).in_background(false);
        let journal = Journal::<[u64; 2], _>::open_in(disk.clone(), options);
        let journal = journal.expect("the disk is empty").share(GroupCommit {
            delay_max,
            ..GroupCommit::default()
        });
        for full in 0..60 {
            disk.fail(Operation::Allocate, full % 7, Fault::Full);
        }
        let full = "sim/new.part: cannot be written: no storage space";
        let again = |error: Error| assert_eq!(error.to_string(), full);
        let refused: u64 = thread::scope(|scope| {
            let clients = (0..THREADS).map(|client| {
                let journal = &journal;
                scope.spawn(move || {
                    let mut refused = 0;
                    for number in 0..EACH {
                        let build = |slot: &mut [u64; 2]| *slot = [client, number];
                        let lsn = loop {
                            match journal.append_with(build) {
                                Ok(lsn) => break lsn,
                                Err(error) => again(error),
                            }
                            refused += 1;
                        };
                        while let Err(error) = journal.commit(lsn) {
                            again(error);
                            refused += 1;
                        }
                    }
                    refused
                })
            });
            let clients: Vec<_> = clients.collect();
            let refused = clients.into_iter().map(|client| client.join());
            refused.map(|refused| refused.expect("no panic")).sum()
        });
        assert!(refused > 0);
        drop(journal);
        disk.restart(3);
        each_in_order(&disk);
    }
}

#[test]
fn a_panic_while_a_record_is_built_leaves_the_journal_well() {
    let disk = SimDisk::new();
    let journal = shared(&disk, GroupCommit::default());
    let other = journal.clone();
    let panicked = thread::spawn(move || {
        other.append_with(|slot| {
            slot[0] = 9;
            panic!("it was asked to");
        })
    });
    assert!(panicked.join().is_err());
    let lsn = journal.append_with(|slot| slot[1] = 1).expect("it goes on");
    assert_eq!(lsn, Lsn::FIRST);
    let _ = journal.commit(lsn).expect("the disk is well");
    let mut reader = journal.follow(Lsn::ZERO).expect("it is there");
    let record = reader.records::<[u64; 2]>().next().expect("there is one");
    assert_eq!(record.expect("it is whole").1, [0, 1]);
}

#[test]
fn a_record_that_was_never_appended_is_not_waited_for() {
    let journal = shared(&SimDisk::new(), GroupCommit::default());
    let error = journal.commit(Lsn::FIRST).expect_err("there is none");
    assert_eq!(
        error.to_string(),
        "no record 1: there is none, the next is 1"
    );
    journal.append_with(|_| {}).expect("there is room");
    let error = journal.commit(Lsn::new(2)).expect_err("there is one only");
    assert_eq!(error.to_string(), "no record 2: there are 1 to 1");
}

#[test]
fn a_closure_that_calls_its_own_journal_is_refused() {
    let journal = shared(&SimDisk::new(), GroupCommit::default());
    let lsn = journal.append_with(|slot| {
        let refused = [
            journal.append_with(|_| {}).err(),
            journal.commit(Lsn::FIRST).err(),
            journal.flush().err(),
            journal.truncate_before(Lsn::FIRST).err(),
        ];
        let is_refused = |error: &Option<Error>| matches!(error, Some(Error::Reentrant));
        assert!(refused.iter().all(is_refused), "{refused:?}");
        assert_eq!(journal.durable().get(), Lsn::ZERO);
        slot[0] = 7;
    });
    let lsn = lsn.expect("it goes on");
    assert_eq!(journal.commit(lsn).expect("the disk is well").get(), lsn);
    assert_eq!(
        Error::Reentrant.to_string(),
        "a closure that builds a record calls its own journal"
    );
}

/// A storage that calls a closure before each of its operations, with whether that is a sync.
#[derive(Clone)]
struct Hooked<S> {
    inner: S,
    hook: Arc<dyn Fn(bool) + Send + Sync>,
}

impl<S: fmt::Debug> fmt::Debug for Hooked<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<S> Hooked<S> {
    fn before(&self) -> &S {
        (self.hook)(false);
        &self.inner
    }

    fn with<T>(&self, inner: T) -> Hooked<T> {
        let hook = Arc::clone(&self.hook);
        Hooked { inner, hook }
    }
}

impl Storage for Hooked<SimDisk> {
    type File = Hooked<SimFile>;
    type Lock = <SimDisk as Storage>::Lock;

    fn location(&self) -> String {
        self.inner.location()
    }
    fn create_directory(&self) -> io::Result<()> {
        self.before().create_directory()
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.before().list()
    }
    fn create(&self, name: &str) -> io::Result<Self::File> {
        Ok(self.with(self.before().create(name)?))
    }
    fn open(&self, name: &str, writable: bool) -> io::Result<Self::File> {
        Ok(self.with(self.before().open(name, writable)?))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.before().rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.before().remove(name)
    }
    fn sync_names(&self) -> io::Result<()> {
        self.before().sync_names()
    }
    fn lock(&self) -> io::Result<Option<Self::Lock>> {
        self.before().lock()
    }
}

impl StorageFile for Hooked<SimFile> {
    fn length_bytes(&self) -> io::Result<u64> {
        self.before().length_bytes()
    }
    fn read_at(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<usize> {
        self.before().read_at(offset_bytes, into)
    }
    fn write_at(&self, offset_bytes: u64, data: &[u8], sync: WriteSync) -> io::Result<usize> {
        self.before().write_at(offset_bytes, data, sync)
    }
    fn sync(&self) -> io::Result<()> {
        (self.hook)(true);
        self.inner.sync()
    }
    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        self.before().allocate(bytes)
    }
}

/// Returns a storage that panics when this number of operations has been called.
fn panicking(disk: &SimDisk, left: &Arc<AtomicI64>) -> Hooked<SimDisk> {
    let (inner, left) = (disk.clone(), Arc::clone(left));
    let hook = move |_| {
        if left.fetch_sub(1, SeqCst) == 1 {
            resume_unwind(Box::new("the storage"));
        }
    };
    let hook = Arc::new(hook);
    Hooked { inner, hook }
}

/// Acknowledged records are there, once, and in order; nothing is acknowledged after the panic; and
/// a follower learns that nothing comes.
#[test]
fn a_storage_that_panics_stops_the_journal_and_loses_nothing() {
    /// Enough for several segments; the number of runs grows with it.
    const LAST: u64 = 99;
    for is_shared in [false, true] {
        for at in 1.. {
            let disk = SimDisk::new();
            let left = Arc::new(AtomicI64::new(at));
            let storage = panicking(&disk, &left);
            let mut acknowledged = 0;
            let run = catch_unwind(AssertUnwindSafe(|| {
                let options = options().segment_bytes(16 << 10).in_background(false);
                let mut own = Some(Journal::<[u64; 8], _>::open_in(storage, options)?);
                let follower = own.as_ref().map(|own| own.follow(Lsn::ZERO)).transpose()?;
                let to_share = is_shared.then(|| own.take()).flatten();
                let shared = to_share.map(|own| own.share(GroupCommit::default()));
                let mut step = |number| match (&mut own, &shared) {
                    (Some(own), _) => {
                        own.append_with(|slot| *slot = [number; 8])?;
                        own.commit().map(|durable| durable.get().number())
                    }
                    (None, Some(shared)) => {
                        let lsn = shared.append_with(|slot| *slot = [number; 8])?;
                        shared.commit(lsn).map(|durable| durable.get().number())
                    }
                    (None, None) => unreachable!("one of them is there"),
                };
                for number in 1..LAST + 1 {
                    match catch_unwind(AssertUnwindSafe(|| step(number))) {
                        Ok(durable) => acknowledged = durable?,
                        Err(_) => {
                            assert!(step(number).is_err(), "it has stopped");
                            let is_final = follower.as_ref().is_some_and(Reader::is_final);
                            assert!(is_final, "nothing comes any more");
                            return Ok(());
                        }
                    }
                }
                Ok::<(), Error>(())
            }));
            if let Ok(outcome) = run {
                outcome.expect("the disk itself is well");
            }
            disk.restart(1);
            let mut number = 0;
            if let Ok(mut reader) = Reader::open_in(disk.clone(), Lsn::ZERO) {
                for record in reader.records::<[u64; 8]>() {
                    number += 1;
                    assert_eq!(record.expect("it is whole").1, [number; 8]);
                }
            }
            assert!(
                number >= acknowledged,
                "{number} of {acknowledged}; burnt at {at}"
            );
            if left.load(SeqCst) > 0 {
                assert!(at > 2 * LAST as i64 && number == LAST, "{at} calls");
                break;
            }
        }
    }
}

/// A flush waited for the segment that was left before, on the thread that owned an exchange: 20 ms
/// for all of its users, at the end of each segment.
#[test]
fn a_flush_syncs_nothing_on_its_thread() {
    let disk = SimDisk::new();
    let (own, gate) = (thread::current().id(), Arc::new(Mutex::new(())));
    let (opened, holds) = (Arc::clone(&gate), Arc::new(AtomicBool::new(false)));
    let is_held = Arc::clone(&holds);
    let hook = move |is_sync| {
        if is_sync && is_held.load(SeqCst) {
            assert_ne!(thread::current().id(), own, "the caller syncs");
            if thread::current().name() == Some("journal-sync") {
                drop(opened.lock());
            }
        }
    };
    let storage = Hooked {
        inner: disk.clone(),
        hook: Arc::new(hook),
    };
    let options = options().segment_bytes(16 << 10);
    let journal = Journal::<[u64; 8], _>::open_in(storage, options).expect("no other writer");
    let journal = journal.share(GroupCommit::default());
    let held = gate.lock().expect("no thread has panicked");
    holds.store(true, SeqCst);
    // Two segments and a half.
    for number in 0..600 {
        let appended = journal.append_with(|slot| *slot = [number; 8]);
        appended.expect("the disk is well");
    }
    assert!(!journal.flush().expect("the disk is well"));
    assert!(!journal.flush().expect("the disk is well"));
    drop(held);
    while !journal.flush().expect("the disk is well") {
        thread::yield_now();
    }
    let mut reader = Reader::open_in(disk, Lsn::ZERO).expect("it is there");
    assert_eq!(reader.records::<[u64; 8]>().count(), 600);
    holds.store(false, SeqCst);
}
