//! Messages that readers share, and where one ends and the next begins.

use std::sync::Arc;

use thalweg_exchange::SymbolId;
use thalweg_exchange::market::Epoch;

/// Kinds from here on are snapshots.
const SNAPSHOT_KIND: u8 = 192;

/// Frames of messages, and of snapshots of symbols that are new.
#[derive(Clone, Debug)]
pub(super) struct Chunk(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bytes: Box<[u8]>,
    last: u64,
    is_restart: bool,
}

impl Chunk {
    /// `last` is the number of its last message; `is_restart` where messages before it were lost.
    pub(super) fn new(bytes: &[u8], last: u64, is_restart: bool) -> Self {
        Self(Arc::new(Inner {
            bytes: bytes.into(),
            last,
            is_restart,
        }))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    pub(super) fn last(&self) -> u64 {
        self.0.last
    }

    pub(super) fn is_restart(&self) -> bool {
        self.0.is_restart
    }
}

/// The fields of a message's or a snapshot's frame that the feed needs; both have them in the same
/// places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark<'b> {
    pub(super) frame: &'b [u8],
    pub(super) symbol: SymbolId,
    pub(super) epoch: Epoch,
    /// The number in the feed.
    pub(super) number: u64,
    /// The number of the symbol.
    pub(super) of_symbol: u64,
    pub(super) is_snapshot: bool,
    /// A command ends with it.
    is_last: bool,
}

impl<'b> Mark<'b> {
    /// Returns the first frame of bytes that the writer has made; `None` where they end.
    pub(super) fn first(bytes: &'b [u8]) -> Option<Self> {
        let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
        let frame = bytes.get(..length.max(1))?;
        let long = |at: usize| {
            let bytes = frame.get(at..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let symbol = i32::from_le_bytes(*frame.get(8..)?.first_chunk()?);
        let is_snapshot = frame[4] >= SNAPSHOT_KIND;
        Some(Self {
            frame,
            symbol: SymbolId(symbol),
            epoch: Epoch(long(12)?),
            number: long(20)?,
            of_symbol: long(28)?,
            is_snapshot,
            is_last: is_snapshot || frame[6] & 1 != 0,
        })
    }
}

/// Returns all frames of bytes.
pub(super) fn marks(bytes: &[u8]) -> impl Iterator<Item = Mark<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let mark = Mark::first(rest)?;
        rest = &rest[mark.frame.len()..];
        Some(mark)
    })
}

/// Bytes cut where a command ends, at the first such place from a length on.
pub(super) struct Pieces<'b> {
    rest: &'b [u8],
    length: usize,
}

impl<'b> Pieces<'b> {
    pub(super) const fn of(bytes: &'b [u8], length: usize) -> Self {
        Self {
            rest: bytes,
            length,
        }
    }
}

impl<'b> Iterator for Pieces<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let mut at = 0;
        for mark in marks(self.rest) {
            at += mark.frame.len();
            if at >= self.length && mark.is_last {
                break;
            }
        }
        let (piece, rest) = self.rest.split_at(at);
        self.rest = rest;
        (at > 0).then_some(piece)
    }
}
