//! Sectors at equal distances, each made of whole groups.

use crate::accumulator::STRIPE_BYTES;

/// Stripes whose products are made together.
pub(super) const GROUP: usize = 4;
/// Bytes of a group.
pub(crate) const GROUP_BYTES: usize = GROUP * STRIPE_BYTES;
/// Four stripes that follow each other in memory.
pub(crate) type Group = [u8; GROUP_BYTES];

/// Sectors that begin with `data` and end with it, their gaps between them.
#[derive(Debug)]
pub(crate) struct Sectors<'a> {
    pub(crate) data: &'a [u8],
    /// Bytes of a sector: a multiple of a group's.
    pub(crate) take: usize,
    /// Bytes from one sector to the next.
    pub(crate) apart: usize,
    pub(crate) count: usize,
}

impl<'a> Sectors<'a> {
    /// Returns the whole groups that data begins with: one sector without a gap. None, if there are
    /// none.
    #[inline(always)]
    pub(crate) fn one(data: &'a [u8]) -> Option<Self> {
        let bytes = data.len() - data.len() % GROUP_BYTES;
        (bytes > 0).then_some(Self {
            data: &data[..bytes],
            take: bytes,
            apart: bytes,
            count: 1,
        })
    }

    /// Returns how many bytes all sectors have.
    pub(crate) fn bytes(&self) -> u64 {
        self.take as u64 * self.count as u64
    }

    #[inline(always)]
    pub(super) fn groups(&self) -> impl Iterator<Item = &'a Group> {
        let sectors = self.data.chunks(self.apart);
        let take = self.take;
        sectors.flat_map(move |sector| sector[..take].as_chunks().0)
    }
}
