//! Memory for a block, aligned as pages are, so that records of any alignment up to 64 bytes lie in
//! it as they do in memory.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::format::{BLOCK_HEADER_BYTES, BlockHeader, Key, PAGE_BYTES, padded};

#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// Whole pages.
#[derive(Clone)]
pub(crate) struct Pages(Vec<Page>);

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pages({})", self.0.len())
    }
}

impl Pages {
    pub(crate) fn new(bytes: usize) -> Pages {
        let mut pages = Pages(Vec::new());
        pages.grow(bytes);
        pages
    }

    /// Grows to at least `bytes` bytes, new ones 0.
    pub(crate) fn grow(&mut self, bytes: usize) {
        let pages = bytes.div_ceil(PAGE_BYTES);
        if self.0.len() < pages {
            self.0.resize_with(pages, Page::new_zeroed);
        }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_slice().as_bytes()
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_slice().as_mut_bytes()
    }
}

/// A block that is being filled. The unused part of it is zero.
#[derive(Debug)]
pub(crate) struct OpenBlock {
    pages: Pages,
    used: usize,
    /// Where the record ends that was handed out last. Behind `used` if it was not finished.
    claimed: usize,
    count: u32,
}

impl OpenBlock {
    pub(crate) fn new(bytes: usize) -> OpenBlock {
        OpenBlock {
            pages: Pages::new(bytes),
            used: BLOCK_HEADER_BYTES,
            claimed: BLOCK_HEADER_BYTES,
            count: 0,
        }
    }

    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns how many bytes are used, with the header and without padding.
    #[inline]
    pub(crate) fn length(&self) -> usize {
        self.used
    }

    #[inline]
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        bytes <= self.pages.bytes().len() - self.used
    }

    /// Returns zeroed room for a record that is not in the block yet; none if it does not fit.
    #[inline]
    pub(crate) fn claim(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if self.is_claimed() {
            self.forget_claim();
        }
        let (from, to) = (self.used, self.used.checked_add(bytes)?);
        let room = self.pages.bytes_mut().get_mut(from..to)?;
        self.claimed = to;
        Some(room)
    }

    /// Whether bytes were claimed that are no record yet.
    #[inline]
    pub(crate) fn is_claimed(&self) -> bool {
        self.claimed != self.used
    }

    /// Makes the claimed bytes a record.
    #[inline]
    pub(crate) fn finish(&mut self) {
        self.used = self.claimed;
        self.count += 1;
    }

    /// Clears bytes that were claimed and not finished: where a closure has panicked, for one.
    #[cold]
    fn forget_claim(&mut self) {
        let (from, to) = (self.used, self.claimed);
        self.pages.bytes_mut()[from..to].fill(0);
        self.claimed = self.used;
    }

    /// Writes the header in front; gives the block with its padding, and its checksum.
    pub(crate) fn seal(&mut self, header: &BlockHeader, key: &Key) -> (&[u8], u32) {
        if self.is_claimed() {
            self.forget_claim();
        }
        let used = self.used;
        let crc = header.encode(&mut self.pages.bytes_mut()[..used], key);
        (&self.pages.bytes()[..padded(used)], crc)
    }

    /// Nothing fits any more.
    pub(crate) fn close(&mut self) {
        let bytes = self.pages.bytes().len();
        (self.used, self.claimed) = (bytes, bytes);
    }

    /// Empty again.
    pub(crate) fn clear(&mut self) {
        let used = self.claimed.max(self.used);
        self.pages.bytes_mut()[..used].fill(0);
        (self.used, self.claimed) = (BLOCK_HEADER_BYTES, BLOCK_HEADER_BYTES);
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_record_leaves_nothing() {
        let mut block = OpenBlock::new(4096);
        block.claim(8).expect("there is room").fill(1);
        block.finish();
        block.claim(8).expect("there is room").fill(2);
        assert_eq!(block.claim(16).expect("there is room"), [0; 16]);
        assert_eq!((block.count(), block.length()), (1, 72));
        assert!(block.claim(4096 - 72).is_some());
        assert!(block.claim(4096 - 71).is_none());
        block.clear();
        assert!(block.pages.bytes().iter().all(|byte| *byte == 0));
    }
}
