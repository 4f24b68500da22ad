//! The model of a journal: what it has promised.

use thalweg_testkit::Random;

/// Returns the random numbers of a seed.
pub(super) fn random(seed: u64) -> Random {
    Random(seed.wrapping_mul(0xD129_0D3B_3A5C_9F01) ^ 0x5EED)
}

/// A record: its length, and what its bytes are made of. In most runs no two are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) salt: u64,
    pub(super) bytes: usize,
}

impl Entry {
    pub(super) fn fill(&self, slot: &mut [u8]) {
        let mut random = random(self.salt);
        for piece in slot.chunks_mut(8) {
            piece.copy_from_slice(&random.next_u64().to_le_bytes()[..piece.len()]);
        }
    }

    fn is(&self, record: &[u8]) -> bool {
        let mut expected = vec![0; self.bytes];
        self.fill(&mut expected);
        expected == record
    }
}

/// The records that were appended, and those of them that were acknowledged. Records count from 1.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) appended: Vec<Entry>,
    pub(super) acknowledged: usize,
    /// Records before this one may have been given up.
    pub(super) kept_from: u64,
}

impl Model {
    /// Compares what a reader found, from record `first` on, and goes on from there: what was not
    /// found is lost for good, and what was found is durable, since it was recovered.
    pub(super) fn recovered(&mut self, first: u64, records: &[Vec<u8>]) -> Result<(), String> {
        if first > self.kept_from.max(1) {
            let kept = self.kept_from;
            return Err(format!("begins with {first}, and {kept} was to be kept"));
        }
        let before = first as usize - 1;
        let found = before + records.len();
        if found < self.acknowledged {
            let lost = self.acknowledged;
            return Err(format!("ends with {found}, and {lost} was acknowledged"));
        }
        if found > self.appended.len() {
            let last = self.appended.len();
            return Err(format!("ends with {found}, and {last} was the last"));
        }
        for (at, record) in (before..).zip(records) {
            if !self.appended[at].is(record) {
                return Err(format!("record {} is another one", at + 1));
            }
        }
        self.end_at(found);
        Ok(())
    }

    /// There is nothing behind this record any more.
    pub(super) fn end_at(&mut self, last: usize) {
        self.appended.truncate(last);
        self.acknowledged = last;
    }
}
