//! Writing without waiting for the disk.

use super::Shared;
use crate::error::Error;
use crate::pages::OpenBlock;
use crate::record::RecordType;
use crate::storage::Storage;
use crate::tail::Tail;

impl<K: RecordType + ?Sized, S: Storage> Shared<K, S> {
    /// Writes what was appended, without waiting for the disk. Returns whether all of it is there
    /// if the program ends, as after [`Journal::flush`](crate::Journal::flush); if not, because the
    /// segment before it is being made durable, or another thread is writing, call it again later.
    ///
    /// # Errors
    /// As [`Shared::commit`].
    pub fn flush(&self) -> Result<bool, Error> {
        let state = self.inner.enter()?;
        let refusals = state.refusals;
        state.check(u64::MAX)?;
        if state.tail.is_none() || state.gathering {
            return Ok(false);
        }
        let mut is_there = false;
        let write = |tail: &mut Tail<S>, block: &mut OpenBlock| {
            is_there = tail.begin_flush(block)?;
            Ok(())
        };
        self.lead(state, write).check(refusals)?;
        Ok(is_there)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use crate::{GroupCommit, Journal, JournalOptions, Lsn, Reader, SimDisk};

    #[test]
    fn what_was_flushed_is_there_for_readers_and_not_durable() -> Result<(), crate::Error> {
        let disk = SimDisk::new();
        let journal = Journal::<u64, _>::open_in(disk.clone(), JournalOptions::default())?;
        let journal = journal.share(GroupCommit::default());
        assert!(journal.flush()?);
        let read =
            || Reader::open_in(disk.clone(), Lsn::ZERO).map(|mut r| r.records::<u64>().count());
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
    fn what_was_flushed_behind_a_load_is_there_for_readers() -> Result<(), crate::Error> {
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
}
