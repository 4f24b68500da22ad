//! The bytes of a journal: `docs/journal-format.md` in the repository describes them.

mod block;
mod segment;

pub use block::{BlockError, BlockHeader, Key};
pub(crate) use segment::BadHeader;
pub use segment::SegmentHeader;

pub(crate) use block::{Layout, SUMMED_FROM};

/// The step, in bytes, in which files grow, and blocks begin and end.
pub const PAGE_BYTES: usize = 4096;
/// The bytes of the header in front of the records of a block.
pub const BLOCK_HEADER_BYTES: usize = 64;
/// The version that this library writes, and the newest that it reads.
pub const VERSION: u32 = 1;
/// The bytes of the length in front of each record whose length is not fixed.
pub const LENGTH_BYTES: usize = 4;

/// The longest block: its length has to fit, and a reader has to have room for it.
pub(crate) const BLOCK_BYTES_LIMIT: u64 = 64 << 20;
pub(crate) const SEGMENT_BYTES_LIMIT: u64 = 1 << 40;
/// Records, segments and epochs are numbered below this. A journal that has used up half of it is
/// not written any more, so that numbers never run over.
pub(crate) const NUMBER_LIMIT: u64 = 1 << 62;

/// Returns the bytes of a block with padding, for one with `length` bytes.
pub(crate) const fn padded(length: usize) -> usize {
    length.next_multiple_of(PAGE_BYTES)
}

/// Returns a segment's file name.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:020}.segment")
}

/// Returns the number in a segment's file name; none for other files.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    number_before(name, ".segment")
}

fn number_before(name: &str, ending: &str) -> Option<u64> {
    let digits = name.strip_suffix(ending)?;
    let is_ours = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_ours.then(|| digits.parse().ok()).flatten()
}

/// Returns the name of a file to be used again, after the epoch that it had.
pub(crate) fn spare_name(epoch: u64) -> String {
    format!("{epoch:020}.spare")
}

pub(crate) fn is_spare(name: &str) -> bool {
    number_before(name, ".spare").is_some()
}

/// A segment that is being made.
pub(crate) const NEW_NAME: &str = "new.part";

/// Returns the name of a segment that a load writes to while the part before it is not durable yet.
pub(crate) fn part_name(number: u64) -> String {
    format!("{number:020}.part")
}

/// Returns whether a file of this name is worthless once no process writes the journal.
pub(crate) fn is_part(name: &str) -> bool {
    name == NEW_NAME || number_before(name, ".part").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways_and_others_are_none() {
        assert_eq!(segment_number(&segment_name(17)), Some(17));
        assert_eq!(segment_number(&segment_name(u64::MAX)), Some(u64::MAX));
        for other in [
            "lock",
            "17.segment",
            "0000000000000000001x.segment",
            NEW_NAME,
        ] {
            assert_eq!(segment_number(other), None, "{other}");
        }
        assert_eq!(segment_number("99999999999999999999.segment"), None);
        assert!(is_spare(&spare_name(3)));
        assert!(!is_spare("wheel.spare"), "another program's file");
        assert!(is_part(&part_name(3)) && is_part(NEW_NAME));
        assert!(!is_part("wheel.part"), "another program's file");
    }
}
