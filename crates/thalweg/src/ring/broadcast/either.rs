//! A reading end of either kind.

use super::reader::Cursor;
use super::{Polled, Progress, ReadOnly, ReadWrite};
use crate::ring::sync::Arc;

/// A reader of either kind, as [`Builder::build`](super::Builder::build) gives it.
#[derive(Debug)]
pub enum Reader<T> {
    /// Looks only.
    Look(ReadOnly<T>),
    /// Changes elements in place.
    Write(ReadWrite<T>),
}

impl<T> Reader<T> {
    #[inline(always)]
    pub(super) fn cursor(&mut self) -> &mut Cursor<T> {
        match self {
            Self::Look(reader) => &mut reader.cursor,
            Self::Write(reader) => &mut reader.cursor,
        }
    }

    pub(super) fn peek(&self) -> &Cursor<T> {
        match self {
            Self::Look(reader) => &reader.cursor,
            Self::Write(reader) => &reader.cursor,
        }
    }

    pub(super) fn is_shard(&self) -> bool {
        matches!(self, Self::Write(reader) if reader.cursor.shard.is_some())
    }

    /// As [`ReadOnly::poll`], of either kind.
    #[inline]
    pub fn poll(&mut self) -> Polled {
        self.cursor().poll()
    }

    /// As [`ReadOnly::waiting`], of either kind.
    #[inline(always)]
    pub fn waiting(&mut self) -> usize {
        self.cursor().available()
    }

    /// As [`ReadOnly::waiting_now`], of either kind.
    #[inline]
    pub fn waiting_now(&mut self) -> usize {
        let cursor = self.cursor();
        cursor.look();
        cursor.available()
    }

    /// As [`ReadOnly::next_sequence`], of either kind.
    #[inline(always)]
    pub fn next_sequence(&self) -> u64 {
        self.peek().next
    }

    /// As [`ReadOnly::release`], of either kind.
    ///
    /// # Panics
    /// As that.
    #[inline(always)]
    pub fn release(&mut self, count: usize) {
        match self {
            Self::Look(reader) => reader.release(count),
            Self::Write(reader) => reader.release(count),
        }
    }

    /// Gives the next element back, like [`release`](Self::release), in a way that costs less and
    /// that only a publisher which [finds no room](super::Publisher::free_early) hears of before
    /// the next release (of 0 elements, say). Only for a reader that nobody comes after.
    ///
    /// # Panics
    /// If no element was found.
    #[inline(always)]
    pub fn give_back(&mut self) {
        let cursor = self.cursor();
        let (next, seen) = cursor.seen();
        assert!(seen > 0, "no element to give back");
        cursor.give_back(next + 1);
    }

    /// As [`ReadOnly::progress`], of either kind.
    pub fn progress(&self) -> Progress {
        Progress(Arc::clone(&self.peek().done))
    }

    /// As [`ReadWrite::owns`]; a reader that looks owns every element.
    #[inline]
    pub fn owns(&self, sequence: u64) -> bool {
        match self {
            Self::Look(_) => true,
            Self::Write(reader) => reader.owns(sequence),
        }
    }
}
