//! Giving up segments while others append and commit.

use super::{Inner, Shared};
use crate::error::Error;
use crate::lsn::Lsn;
use crate::record::RecordType;
use crate::storage::Storage;
use crate::tail::Tail;
use crate::tail::retain::give_up;

impl<K: RecordType + ?Sized, S: Storage> Shared<K, S> {
    /// Calls `ask` with the tail, under the lock, and returns its result; waits while a thread
    /// leads.
    fn with_tail<T>(&self, ask: impl FnOnce(&mut Tail<S>) -> T) -> Result<T, Error> {
        let mut state = self.inner.enter()?;
        loop {
            state.check(u64::MAX)?;
            match &mut state.tail {
                Some(tail) => return Ok(ask(tail)),
                None => state = self.inner.wait(state),
            }
        }
    }

    /// Gives up segments that hold only records before `lsn`: see
    /// [`Journal::truncate_before`](crate::Journal::truncate_before). One that is not durable yet
    /// stays. Others append and commit meanwhile.
    ///
    /// # Errors
    /// The file system.
    pub fn truncate_before(&self, lsn: Lsn) -> Result<Lsn, Error> {
        let Inner {
            storage, options, ..
        } = &*self.inner;
        loop {
            let asked = self.with_tail(|tail| tail.dispensable(lsn).ok_or_else(|| tail.first()))?;
            let number = match asked {
                Ok(number) => number,
                Err(first) => return Ok(first),
            };
            // Two threads may be at the same one: it goes once, and is forgotten once.
            give_up(storage, options, number)?;
            self.with_tail(|tail| tail.forget(number))?;
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::io;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::thread;

    use crate::storage::SimFile;
    use crate::{GroupCommit, Journal, JournalOptions, Lsn, Reader, SimDisk, Storage};

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
    fn a_commit_does_not_wait_for_segments_that_go() -> Result<(), crate::Error> {
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
    fn segments_that_are_not_durable_stay() -> Result<(), crate::Error> {
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
}
