//! Appending several records under one lock.

use super::{Building, Inner, MutexGuard, Shared, State};
use crate::error::Error;
use crate::format::LENGTH_BYTES;
use crate::lsn::Lsn;
use crate::record::content_in;
use crate::storage::Storage;

/// Appends records under one lock, which goes when this is dropped: made by
/// [`Shared::append_together`]. Threads that append, flush or commit wait meanwhile.
#[derive(Debug)]
pub struct Together<'j, S: Storage> {
    inner: &'j Inner<S>,
    // Before the lock goes, so that no other thread has it yet.
    _building: Building<'j>,
    state: MutexGuard<'j, State<S>>,
}

impl<S: Storage> Shared<[u8], S> {
    /// Takes the lock for several records. Until it is given back, this thread cannot use this
    /// journal otherwise, and must not wait for a thread that does.
    ///
    /// ```
    /// use thalweg_journal::{GroupCommit, Journal, JournalOptions, Lsn, SimDisk};
    ///
    /// # fn main() -> Result<(), thalweg_journal::Error> {
    /// let journal = Journal::<[u8], _>::open_in(SimDisk::new(), JournalOptions::default())?;
    /// let journal = journal.share(GroupCommit::default());
    /// let mut together = journal.append_together()?;
    /// for number in 1..=3 {
    ///     let lsn = together.append_bytes_with(5, |record| record.fill(7));
    ///     assert_eq!(lsn, Some(Lsn::new(number)));
    /// }
    /// assert_eq!(together.append_bytes_with(1 << 30, |_| ()), None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The journal has stopped, or this thread has the lock already.
    pub fn append_together(&self) -> Result<Together<'_, S>, Error> {
        let inner = &*self.inner;
        let state = inner.enter()?;
        state.check(u64::MAX)?;
        Ok(Together {
            inner,
            _building: Building::begin(&inner.building),
            state,
        })
    }
}

impl<S: Storage> Together<'_, S> {
    /// Appends a record of `bytes` bytes, if it fits into the block that is open: else it is for
    /// [`Shared::append_bytes_with`]. The slot is zero before `build` fills it.
    #[inline(always)]
    pub fn append_bytes_with(
        &mut self,
        bytes: usize,
        build: impl FnOnce(&mut [u8]),
    ) -> Option<Lsn> {
        let state = &mut *self.state;
        let room = bytes.checked_add(LENGTH_BYTES)?;
        if !state.open.fits(room) {
            return None;
        }
        build(content_in(state.open.claim(room)?));
        state.open.finish();
        let lsn = state.next;
        state.next = lsn.after(1);
        Some(lsn)
    }
}

impl<S: Storage> Drop for Together<'_, S> {
    fn drop(&mut self) {
        self.inner.note_appended(&self.state);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use crate::{Error, GroupCommit, Journal, JournalOptions, Lsn, Reader, Shared, SimDisk};

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
            let mut run = together.append_together().expect("it goes on");
            begun += 1;
            while number < 500 {
                let bytes = record(number);
                let fill = |slot: &mut [u8]| slot.copy_from_slice(&bytes);
                let Some(lsn) = run.append_bytes_with(bytes.len(), fill) else {
                    break;
                };
                number += 1;
                assert_eq!(lsn, Lsn::new(number as u64));
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
    fn a_thread_that_appends_together_cannot_use_the_journal_otherwise() {
        let journal = open(&SimDisk::new());
        let together = journal.append_together().expect("it goes on");
        let refused = journal.append_bytes_with(1, |_| ());
        assert!(matches!(refused, Err(Error::Reentrant)), "{refused:?}");
        assert!(journal.append_together().is_err());
        drop(together);
        assert!(journal.append_bytes_with(1, |_| ()).is_ok());
    }

    #[test]
    fn a_record_whose_closure_panics_is_none() {
        use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
        let journal = open(&SimDisk::new());
        let append = AssertUnwindSafe(|| {
            let mut together = journal.append_together().expect("it goes on");
            let first = together.append_bytes_with(3, |slot| slot.fill(1));
            assert_eq!(first, Some(Lsn::FIRST));
            together.append_bytes_with(3, |slot| {
                slot.fill(2);
                resume_unwind(Box::new("a closure"))
            });
        });
        assert!(catch_unwind(append).is_err());
        // The bytes that it left are gone.
        let next = journal.append_bytes_with(3, |slot| assert_eq!(slot, [0; 3]));
        assert_eq!(next.expect("it goes on"), Lsn::new(2));
    }
}
