//! How a journal is laid out.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::error::Error;
use crate::fault::Faults;
use crate::format::{
    BLOCK_BYTES_LIMIT, BLOCK_HEADER_BYTES, NUMBER_LIMIT, PAGE_BYTES, SEGMENT_BYTES_LIMIT,
};
use crate::lsn::Lsn;

const PAGE: u64 = PAGE_BYTES as u64;
/// Segments that a load may continue in the next one before they are durable.
const UNSYNCED_MAX: usize = 32;
/// How many of those rest before a thread makes the first of them durable.
const RESTING_MAX: usize = 24;

/// The options of a journal: sizes, and the preparation of segments in advance. An existing journal
/// keeps its sizes.
#[derive(Debug, Clone)]
pub struct JournalOptions {
    pub(crate) segment_bytes: u64,
    pub(crate) block_bytes_max: u64,
    pub(crate) recycled_files_max: usize,
    pub(crate) in_background: bool,
    /// Segments that may wait to be durable without a thread: none outside tests.
    pub(crate) unsynced_here_max: usize,
    pub(crate) journal: Option<u64>,
    pub(crate) first: Lsn,
    pub(crate) faults: Faults,
}

impl Default for JournalOptions {
    fn default() -> JournalOptions {
        JournalOptions {
            segment_bytes: 32 << 20,
            block_bytes_max: 320 << 10,
            recycled_files_max: 2,
            in_background: true,
            unsynced_here_max: 0,
            journal: None,
            first: Lsn::FIRST,
            faults: Faults::default(),
        }
    }
}

impl JournalOptions {
    /// Sets the length of a segment's file in bytes, a multiple of 4,096 (default: 32 MiB). All of
    /// it is written once before it is used, unless a load without commits is faster than that.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> JournalOptions {
        self.segment_bytes = bytes;
        self
    }

    /// Sets the length of the longest block in bytes, a multiple of 4,096 (default: 320 KiB).
    /// Appended records are written, though not synced, when this much has come together. A record
    /// has to fit.
    #[must_use]
    pub fn block_bytes_max(mut self, bytes: u64) -> JournalOptions {
        self.block_bytes_max = bytes;
        self
    }

    /// Sets how many files of segments that are no longer needed are kept to be used again
    /// (default: 2).
    #[must_use]
    pub fn recycled_files_max(mut self, files: usize) -> JournalOptions {
        self.recycled_files_max = files;
        self
    }

    /// Sets whether a thread makes the next segment ready (the default), or the call that
    /// needs it.
    #[must_use]
    pub fn in_background(mut self, yes: bool) -> JournalOptions {
        self.in_background = yes;
        self
    }

    /// Sets the number that distinguishes a new journal's blocks from those of any other (drawn at
    /// random).
    #[must_use]
    pub fn journal_number(mut self, number: u64) -> JournalOptions {
        self.journal = Some(number);
        self
    }

    /// Sets the number of the first record of a new journal (default: [`Lsn::FIRST`]), such as one
    /// that continues a copy of what was before.
    #[must_use]
    pub fn first(mut self, first: Lsn) -> JournalOptions {
        self.first = first;
        self
    }

    /// Returns how many bytes the longest record has that fits, with its length if it is not fixed.
    pub(crate) fn record_bytes_max(&self) -> usize {
        self.block_bytes_max as usize - BLOCK_HEADER_BYTES
    }

    /// Segments that may wait to be durable after they were continued.
    pub(crate) fn unsynced_max(&self) -> usize {
        match self.in_background {
            true => UNSYNCED_MAX,
            false => self.unsynced_here_max,
        }
    }

    pub(crate) fn resting_max(&self) -> Option<usize> {
        self.in_background.then_some(RESTING_MAX)
    }

    /// Returns a number for a new journal.
    pub(crate) fn number(&self) -> u64 {
        // The standard library's hash keys are random, and it has no other source of chance.
        self.journal
            .unwrap_or_else(|| RandomState::new().build_hasher().finish())
    }

    pub(crate) fn checked(self) -> Result<JournalOptions, Error> {
        let refuse = |what: String| Err(Error::Options { what });
        for (what, bytes) in [
            ("segment_bytes", self.segment_bytes),
            ("block_bytes_max", self.block_bytes_max),
        ] {
            if bytes == 0 || bytes % PAGE != 0 {
                return refuse(format!("{what} is {bytes}, not a multiple of {PAGE}"));
            }
        }
        if self.block_bytes_max > BLOCK_BYTES_LIMIT {
            let bytes = self.block_bytes_max;
            return refuse(format!(
                "block_bytes_max is {bytes}; the limit is {BLOCK_BYTES_LIMIT}"
            ));
        }
        let room = self.block_bytes_max + PAGE;
        if !(room..=SEGMENT_BYTES_LIMIT).contains(&self.segment_bytes) {
            let bytes = self.segment_bytes;
            return refuse(format!(
                "segment_bytes is {bytes}; blocks of {} bytes need {room} to {SEGMENT_BYTES_LIMIT}",
                self.block_bytes_max
            ));
        }
        if !(Lsn::FIRST.number()..NUMBER_LIMIT / 2).contains(&self.first.number()) {
            let first = self.first;
            return refuse(format!(
                "the first record is {first}; 1 to {} are possible",
                NUMBER_LIMIT / 2 - 1
            ));
        }
        Ok(self)
    }
}
